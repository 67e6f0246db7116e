//! Restores the files that one call changed: all of them, or none. For `agentd-tool`.
//!
//! A file that has changed since is a conflict, and then no file is touched. Replaced content is
//! kept in memory until all is done, and restored if a later file fails.

use crate::cancel::Cancel;
use crate::edit::remove;
use crate::edit::replace::{OriginalFile, load_original, replace};
use crate::engine::Engine;
use crate::failure::{FailureCode, ToolFailure, failed};
use crate::files::path_trace::trace_path;
use crate::files::precondition;
use crate::files::protected::ProtectedSearch;
use crate::files::read_set::ReadSet;
use crate::files::safe_open;
use crate::files::target_path::TargetPath;
use crate::run::without_text;
use crate::text::diff;
use crate::tool_context::{ReportExtras, ToolContext};
use prompts::DeniedReads;
use protocol::call::{FileEffect, ProbeReport, ProbedPath, ProcessUsage, RunReport};
use protocol::store::{FileBackup, PriorContent};
use protocol::tool::JudgedPath;
use sandbox::CallScope;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use tool_specs::ToolAnswer;

const TOOL: &str = "undo_restore";
/// The code of a result that restored only a part of the change.
const PARTLY_RESTORED: &str = "partly_restored";
/// Most bytes of all diffs together, and one more: they are shown with a question.
const DIFFS: usize = 256 << 10;

/// The real paths of the files, their current content, and the changes to make.
#[must_use]
pub fn probe_restore(files: &[FileBackup], scope: &CallScope, cancel: &Cancel) -> ProbeReport {
    let ctx = context(scope, &[], cancel);
    let paths = files.iter().filter(|file| is_kept(file)).map(|file| {
        let real = trace_path(scope, &file.path).real;
        let in_scope = scope.contains(&real);
        let digest = if in_scope { now(Path::new(&file.path)).ok().flatten() } else { None };
        ProbedPath { named: file.path.clone(), real: file.path.clone(), in_scope, digest }
    });
    let paths = paths.collect();
    let diff = match plan(files, &ctx) {
        Ok(steps) => left_out(files, &ctx) + &diffs(&steps, &ctx),
        Err(failure) => format!("# This call would change nothing: {failure}\n"),
    };
    ProbeReport { paths, diff }
}

/// Puts them back.
#[must_use]
pub fn restore(
    files: &[FileBackup],
    (judged, denied): (&[JudgedPath], DeniedReads<'_>),
    max_result_chars: u32,
    scope: &CallScope,
    cancel: &Cancel,
) -> RunReport {
    let ctx = context(scope, judged, cancel);
    let max = usize::try_from(max_result_chars).unwrap_or(usize::MAX);
    let mut paths = files.iter().map(|file| Path::new(&file.path));
    let unread = paths.find_map(|path| denied.why(path, path));
    let (mut result, full, effects) = match (put_back(files, &ctx), unread) {
        (Ok(answer), None) => answer.into_result(max),
        (Ok(answer), Some(why)) => without_text(answer, &why).into_result(max),
        (Err(failure), _) => (failed(TOOL, failure, max), None, Vec::new()),
    };
    if !result.is_error && !files.iter().all(is_kept) {
        // No error, since the rest is restored; a rewind needs all of it.
        result.code = Some(PARTLY_RESTORED.to_owned());
    }
    RunReport {
        images: Vec::new(),
        result,
        full,
        effects,
        // The model has not read the restored files; it must read one before an edit.
        seen: Vec::new(),
        instructions: Vec::new(),
        evidence: None,
        refusals: Vec::new(),
        refusals_uncounted: 0,
        tampered: Vec::new(),
        usage: ProcessUsage::default(),
        command_pid: None,
    }
}

fn context<'a>(
    scope: &'a CallScope,
    judged: &'a [JudgedPath],
    cancel: &'a Cancel,
) -> ToolContext<'a> {
    ToolContext {
        scope,
        judged,
        cancel,
        command: None,
        max_chars: 0,
        engine: Engine::Without,
        denied: DeniedReads::NONE,
        protected: ProtectedSearch::default(),
        extras: ReportExtras::default(),
    }
}

fn put_back(files: &[FileBackup], ctx: &ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
    let steps = plan(files, ctx)?;
    for step in &steps {
        let then = ctx.judged.iter().find(|judged| judged.real == step.file.path);
        if then.is_some_and(|then| then.digest != step.file.after) {
            return Err(precondition::stale(
                &step.file.path,
                "changed on disk since you last read it (possibly by a command of yours)",
            ));
        }
    }
    ctx.check_cancelled()?;
    let mut text = String::new();
    let mut effects = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        if let Err(failure) = step.forward() {
            // In reverse order, so that each step finds its own result. The failed step may be half
            // done.
            let stuck: Vec<&str> = steps[..=number]
                .iter()
                .rev()
                .filter(|done| !now(&done.target.real).is_ok_and(|now| now == done.file.after))
                .filter_map(|done| done.back(ctx).err().map(|_| done.file.path.as_str()))
                .collect();
            let all = match stuck.is_empty() {
                true => "nothing was changed".to_owned(),
                false => format!(
                    "these files are changed although the call failed, check them: {}",
                    stuck.join(", ")
                ),
            };
            return Err(ToolFailure { message: format!("{}; {all}", failure.message), ..failure });
        }
        text.push_str(&format!("{} {}\n", step.did(), ctx.shown(&step.target.real)));
        effects.push(step.effect());
    }
    let text = format!("{}{text}{}", left_out(files, ctx), diffs(&steps, ctx));
    let summary = format!("restored {} files", steps.len());
    Ok(ToolAnswer::done(text, summary, effects))
}

fn is_kept(file: &FileBackup) -> bool {
    !matches!(file.before, PriorContent::NotKept(_))
}

/// True if the path is there after the restore.
fn is_made(file: &FileBackup) -> bool {
    matches!(file.before, PriorContent::File { .. } | PriorContent::Link(_))
}

/// The files that cannot be restored; listed first.
fn left_out(files: &[FileBackup], ctx: &ToolContext<'_>) -> String {
    let lines = files.iter().filter_map(|file| match &file.before {
        PriorContent::NotKept(why) => {
            Some(format!("[not restored: {}: {why}]\n", ctx.shown(Path::new(&file.path))))
        }
        PriorContent::Absent | PriorContent::File { .. } | PriorContent::Link(_) => None,
    });
    lines.collect()
}

/// The diffs, up to a limit.
fn diffs(steps: &[RestoreStep<'_>], ctx: &ToolContext<'_>) -> String {
    let mut text = String::new();
    for (number, step) in steps.iter().enumerate() {
        if text.len() > DIFFS {
            text.push_str(&format!("[no diff of {} more files]\n", steps.len() - number));
            break;
        }
        text.push_str(&step.diff(ctx));
    }
    text
}

/// One path on its way back.
struct RestoreStep<'a> {
    file: &'a FileBackup,
    target: TargetPath,
    /// The file there now.
    found: Option<OriginalFile>,
    /// The link there now.
    link: Option<std::path::PathBuf>,
}

/// Checks all files before any change.
fn plan<'a>(
    files: &'a [FileBackup],
    ctx: &ToolContext<'_>,
) -> Result<Vec<RestoreStep<'a>>, ToolFailure> {
    // The caller compares the judged digests; here only the real paths matter.
    let plain = self::context(ctx.scope, &[], ctx.cancel);
    let mut conflicts = Vec::new();
    let mut steps = Vec::new();
    let made = files.iter().filter(|file| is_made(file)).map(|file| Path::new(&file.path));
    plain.refuse_repository(&made.collect::<Vec<_>>())?;
    for file in files.iter().filter(|file| is_kept(file)) {
        let path = Path::new(&file.path);
        let name = path.file_name().map(Path::new);
        // A symbolic link is not followed: the link itself is restored.
        let parent = path.parent().and_then(Path::to_str).unwrap_or("/");
        let above = plain.to_write(parent)?;
        let real = name.map_or_else(|| above.real.clone(), |name| above.real.join(name));
        if real != path {
            return Err(precondition::stale(&file.path, "now resolves to another path"));
        }
        match path.is_symlink() {
            true => plain.refuse_protected(&file.path, &real)?,
            false => plain.to_write(&file.path).map(drop)?,
        }
        let found = now(path)?;
        if found != file.after && is_restored(file, found.as_deref())? {
            // By an earlier call of the same restore, which a death cut short behind it.
            continue;
        }
        if found != file.after {
            conflicts.push(ctx.shown(path));
            continue;
        }
        let link = std::fs::read_link(path).ok();
        let exists = path.symlink_metadata().is_ok();
        let target = TargetPath { named: file.path.clone(), real, exists };
        let found = match (exists, &link) {
            (true, None) => load_original(&plain, &target)?,
            (true, Some(_)) | (false, _) => None,
        };
        if found.as_ref().is_some_and(|found| found.bytes.is_none()) {
            return Err(ToolFailure::new(
                FailureCode::TooLarge,
                format!(
                    "nothing was restored: {} is now too large to keep a copy of it during \
                        the restore",
                    ctx.shown(path)
                ),
                "Use edit to make the changes you still want.",
            ));
        }
        steps.push(RestoreStep { file, target, found, link });
    }
    match conflicts.is_empty() {
        true => Ok(steps),
        false => Err(ToolFailure::new(
            FailureCode::Stale,
            format!(
                "nothing was restored, because these files have changed since: {}",
                conflicts.join(", ")
            ),
            "Read these files, and use edit to make the changes you still want.",
        )),
    }
}

/// The current content of a path, in the format of [`KeptFile::after`].
fn now(path: &Path) -> Result<Option<String>, ToolFailure> {
    let Ok(meta) = path.symlink_metadata() else { return Ok(None) };
    if meta.is_symlink() {
        return Ok(remove_link(path));
    }
    let named = path.to_string_lossy().into_owned();
    let target = TargetPath { named: named.clone(), real: path.to_owned(), exists: true };
    let (file, _) = safe_open::open_regular(&target, &ReadSet::unrecorded())?;
    precondition::digest_reader(file)
        .map(Some)
        .map_err(|error| ToolFailure::io("read", &named, error))
}

/// True if a file whose content is `found` is as the restore would leave it.
fn is_restored(file: &FileBackup, found: Option<&str>) -> Result<bool, ToolFailure> {
    let before = match &file.before {
        PriorContent::Absent => return Ok(found.is_none()),
        PriorContent::NotKept(_) => return Ok(false),
        PriorContent::Link(to) => {
            format!("{}{}", FileBackup::LINK, to.to_path().to_string_lossy())
        }
        PriorContent::File { bytes, mode } => {
            let meta = Path::new(&file.path).symlink_metadata();
            if meta.is_ok_and(|meta| (meta.permissions().mode() ^ mode) & 0o777 != 0) {
                return Ok(false);
            }
            let digest = precondition::digest_reader(&bytes[..]);
            digest.map_err(|error| ToolFailure::io("read", &file.path, error))?
        }
    };
    Ok(found == Some(before.as_str()))
}

fn remove_link(path: &Path) -> Option<String> {
    let leads_to = std::fs::read_link(path).ok()?;
    Some(format!("{}{}", FileBackup::LINK, leads_to.to_string_lossy()))
}

impl RestoreStep<'_> {
    fn forward(&self) -> Result<(), ToolFailure> {
        let named = &self.target.named;
        let failed = |error| ToolFailure::io("put back", named, error);
        if self.link.is_some() {
            std::fs::remove_file(&self.target.real).map_err(failed)?;
        }
        match &self.file.before {
            PriorContent::File { bytes, mode } => {
                replace(&self.target, self.found.as_ref(), bytes)?;
                let mode = std::fs::Permissions::from_mode(mode & 0o777);
                std::fs::set_permissions(&self.target.real, mode).map_err(failed)
            }
            PriorContent::Absent => match &self.found {
                Some(found) => remove::remove_file(&self.target, found),
                None => Ok(()),
            },
            PriorContent::Link(leads_to) => {
                if let Some(found) = &self.found {
                    remove::remove_file(&self.target, found)?;
                }
                symlink(leads_to.to_path(), &self.target.real).map_err(failed)
            }
            PriorContent::NotKept(_) => Ok(()),
        }
    }

    /// As it was before [`Self::forward`].
    fn back(&self, ctx: &ToolContext<'_>) -> Result<(), ToolFailure> {
        let named = &self.target.named;
        let failed = |error| ToolFailure::io("put back", named, error);
        let plain = self::context(ctx.scope, &[], ctx.cancel);
        let exists = self.target.real.symlink_metadata().is_ok();
        let target = TargetPath { named: named.clone(), real: self.target.real.clone(), exists };
        let there = match exists && !target.real.is_symlink() {
            true => load_original(&plain, &target)?,
            false => None,
        };
        if target.real.is_symlink() {
            std::fs::remove_file(&target.real).map_err(failed)?;
        }
        match (&self.found, &self.link) {
            (Some(found), _) => {
                replace(&target, there.as_ref(), found.bytes.as_deref().unwrap_or_default())?;
                let mode = std::fs::Permissions::from_mode(found.mode() & 0o777);
                std::fs::set_permissions(&target.real, mode).map_err(failed)
            }
            (None, link) => {
                if let Some(there) = &there {
                    remove::remove_file(&target, there)?;
                }
                match link {
                    Some(leads_to) => symlink(leads_to, &target.real).map_err(failed),
                    None => Ok(()),
                }
            }
        }
    }

    fn did(&self) -> &'static str {
        match (&self.file.before, self.target.exists) {
            (PriorContent::Absent, _) => "removed",
            (PriorContent::NotKept(_), _) => "left",
            (PriorContent::File { .. } | PriorContent::Link(_), true) => "put back",
            (PriorContent::File { .. } | PriorContent::Link(_), false) => "brought back",
        }
    }

    fn effect(&self) -> FileEffect {
        let path = self.target.recorded();
        match (&self.file.before, self.target.exists) {
            (PriorContent::Absent, _) => FileEffect::Deleted(path),
            (PriorContent::NotKept(_), _) => FileEffect::Read(path),
            (PriorContent::File { .. } | PriorContent::Link(_), true) => FileEffect::Written(path),
            (PriorContent::File { .. } | PriorContent::Link(_), false) => FileEffect::Created(path),
        }
    }

    fn diff(&self, ctx: &ToolContext<'_>) -> String {
        let shown = ctx.shown(&self.target.real);
        let text =
            |bytes: Option<&[u8]>| bytes.and_then(|bytes| String::from_utf8(bytes.to_vec()).ok());
        let old = match &self.found {
            Some(found) => text(found.bytes.as_deref()),
            None => Some(String::new()),
        };
        let new = match &self.file.before {
            PriorContent::File { bytes, .. } => text(Some(bytes)),
            PriorContent::Absent => Some(String::new()),
            PriorContent::Link(leads_to) => {
                return format!("[{shown} becomes a link to {:?} again]\n", leads_to.to_path());
            }
            PriorContent::NotKept(_) => return String::new(),
        };
        match (old, new) {
            (Some(old), Some(new)) => diff::unified(&shown, &old, &new),
            _ => format!("[no diff: {shown} is not text]\n"),
        }
    }
}
