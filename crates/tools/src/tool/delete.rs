//! `delete`: removes files, links and, with `recursive`, directories.

use crate::edit::remove::{self, ENTRIES, RemovalKind, RemovalTarget, remove, visit_contents};
use crate::edit::replace::{LOADED_MAX, load_original};
use crate::failure::{FailureCode, ToolFailure};
use crate::files::target_path::{TargetPath, access_denied};
use crate::files::{file_type, precondition, safe_open};
use crate::spec::{ProbeMode, Tool};
use crate::text::diff;
use crate::tool_context::ToolContext;
use protocol::call::FileEffect;
use std::fs::FileType;
use std::path::{Path, PathBuf};
use tool_specs::ToolAnswer;
use tool_specs::tool::delete::{DeleteTool, Input};

/// Most paths of one call.
const PATHS: usize = 100;
/// Bytes of diffs that one call keeps. Stops a result from being larger than a frame.
const KEPT: usize = 4 << 20;

impl Tool for DeleteTool {
    const PROBE_MODE: ProbeMode = ProbeMode::Removal;

    fn preview(input: Input, ctx: &ToolContext<'_>) -> Result<String, ToolFailure> {
        Ok(DeletePlan::make(&input, ctx)?.kept.text)
    }

    fn run(input: Input, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        let plan = DeletePlan::make(&input, ctx)?;
        ctx.check_cancelled()?;
        remove(&plan.removals)?;
        let summary = match plan.shown.as_slice() {
            [only] => format!("deleted {only}"),
            several => format!("deleted {} paths", several.len()),
        };
        let body = format!("deleted {}\n{}", plan.shown.join(", "), plan.kept.text);
        Ok(ToolAnswer::done(body, summary, plan.effects))
    }
}

/// Everything to remove, checked before the first removal.
struct DeletePlan {
    removals: Vec<RemovalTarget>,
    shown: Vec<String>,
    kept: DeletedText,
    effects: Vec<FileEffect>,
}

impl DeletePlan {
    fn make(input: &Input, ctx: &ToolContext<'_>) -> Result<Self, ToolFailure> {
        if input.paths.is_empty() {
            return Err(invalid("paths is empty", "Give at least one path."));
        }
        if input.paths.len() > PATHS {
            let text = format!("{} paths, but at most {PATHS} are allowed", input.paths.len());
            return Err(invalid(&text, "Split them over several calls."));
        }
        let kept = DeletedText { text: String::new(), left_out: 0 };
        let mut plan = Self { removals: Vec::new(), shown: Vec::new(), kept, effects: Vec::new() };
        let mut reals: Vec<PathBuf> = Vec::new();
        for named in &input.paths {
            let real = plan.add(named, input.recursive, ctx)?;
            let clash = |other: &&PathBuf| real.starts_with(other) || other.starts_with(&real);
            if let Some(other) = reals.iter().find(clash) {
                let text =
                    format!("one of {named:?} and {:?} contains the other", ctx.shown(other));
                return Err(invalid(&text, "Nothing was deleted. Name each path once."));
            }
            reals.push(real);
        }
        plan.kept.finish();
        Ok(plan)
    }

    /// Checks one path. Returns its real path; for a link the path of the link itself.
    fn add(
        &mut self,
        named: &str,
        recursive: bool,
        ctx: &ToolContext<'_>,
    ) -> Result<PathBuf, ToolFailure> {
        let target = ctx.to_write(named)?;
        if !target.exists {
            return Err(crate::files::target_path::not_found(&target));
        }
        let own = remove::link_path(named, ctx.scope);
        let parts = own.as_deref().and_then(|own| Some((own.parent()?, own.file_name()?)));
        let Some((parent, name)) = parts else {
            return Err(invalid(
                &format!("{named:?} is not a path of a file or directory"),
                "Name it.",
            ));
        };
        let (parent, name) = (parent.to_owned(), name.to_owned());
        let real = parent.join(&name);
        let shown = ctx.shown(&real);
        let what = if real == target.real {
            self.of_what_is_there(&target, recursive, ctx)?
        } else {
            if !ctx.scope.contains(&real) {
                return Err(access_denied(ctx.scope, &real, named, "is outside the project"));
            }
            refuse_protected(named, &real, ctx)?;
            precondition::check_unchanged(
                ctx.judged,
                named,
                &real,
                remove::link_digest(&real).as_deref(),
            )?;
            self.kept.note(&format!("[the symbolic link {shown} is removed; its target stays]\n"));
            RemovalKind::Link
        };
        self.effects.push(FileEffect::Deleted(real.to_string_lossy().into_owned()));
        self.removals.push(RemovalTarget { named: named.to_owned(), parent, name, what });
        self.shown.push(shown);
        Ok(real)
    }

    fn of_what_is_there(
        &mut self,
        target: &TargetPath,
        recursive: bool,
        ctx: &ToolContext<'_>,
    ) -> Result<RemovalKind, ToolFailure> {
        let kind = safe_open::kind(target)?;
        if !kind.is_dir() {
            let Some(before) = load_original(ctx, target)? else {
                return Err(crate::files::target_path::not_found(target));
            };
            self.kept.file(&ctx.shown(&target.real), before.bytes.as_deref(), before.size);
            return Ok(RemovalKind::File(before));
        }
        if !recursive {
            return Err(ToolFailure::new(
                FailureCode::IsDirectory,
                format!("{:?} is a directory", target.named),
                "Set recursive to delete it with all its content.",
            ));
        }
        refuse_roots(target, ctx)?;
        let tree = remove::tree_digest(&target.real)?;
        precondition::check_unchanged(ctx.judged, &target.named, &target.real, Some(&tree))?;
        self.kept
            .note(&format!("[the directory {} with all its content:]\n", ctx.shown(&target.real)));
        visit_contents(&target.named, &target.real, ENTRIES, &mut |path, kind| {
            ctx.check_cancelled()?;
            refuse_protected(&target.named, path, ctx)?;
            self.entry(target, path, kind, ctx);
            Ok(())
        })?;
        Ok(RemovalKind::Directory(tree))
    }

    /// Keeps the content of a file of a directory, if it is readable.
    fn entry(&mut self, target: &TargetPath, path: &Path, kind: FileType, ctx: &ToolContext<'_>) {
        let shown = ctx.shown(path);
        if kind.is_dir() {
            return;
        }
        if !kind.is_file() {
            return self.kept.note(&format!("[{shown}: {}]\n", file_type::describe(kind)));
        }
        if let Some(why) = ctx.unreadable(target, path) {
            return self.kept.note(&format!("[{shown}: content not shown: {why}]\n"));
        }
        let size = path.symlink_metadata().map_or(0, |meta| meta.len());
        let bytes = (size <= LOADED_MAX && self.kept.has_room(size))
            .then(|| std::fs::read(path).ok())
            .flatten();
        self.kept.file(&shown, bytes.as_deref(), size);
    }
}

/// The diffs that are kept, within a bound.
struct DeletedText {
    text: String,
    left_out: usize,
}

impl DeletedText {
    fn has_room(&self, bytes: u64) -> bool {
        usize::try_from(bytes).is_ok_and(|bytes| self.text.len() + bytes < KEPT)
    }

    fn note(&mut self, line: &str) {
        if self.text.len() < KEPT { self.text.push_str(line) } else { self.left_out += 1 }
    }

    fn file(&mut self, shown: &str, bytes: Option<&[u8]>, size: u64) {
        let text = bytes.map(std::str::from_utf8);
        match text {
            Some(Ok(_)) if size == 0 => self.note(&format!("[{shown}: an empty file]\n")),
            Some(Ok(text)) if self.has_room(size) => {
                let diff = diff::removed(shown, text);
                self.note(&diff);
            }
            Some(Err(_)) => {
                self.note(&format!("[{shown}: {size} bytes, not text, content not kept]\n"))
            }
            Some(Ok(_)) | None => {
                self.note(&format!("[{shown}: {size} bytes, too large, content not kept]\n"))
            }
        }
    }

    fn finish(&mut self) {
        if self.left_out > 0 {
            self.text.push_str(&format!("[… and {} more entries …]\n", self.left_out));
        }
    }
}

/// Refuses the granted directories themselves and the withheld ones below them.
fn refuse_roots(target: &TargetPath, ctx: &ToolContext<'_>) -> Result<(), ToolFailure> {
    let place = ctx.scope;
    let kept = place.roots().chain(place.withheld.iter().map(PathBuf::as_path));
    for root in kept {
        if root.starts_with(&target.real) {
            return Err(ToolFailure::new(
                FailureCode::Protected,
                format!(
                    "{:?} is, or contains, the project or another granted directory",
                    target.named
                ),
                "Name the entries in it to delete.",
            ));
        }
    }
    Ok(())
}

fn refuse_protected(named: &str, real: &Path, ctx: &ToolContext<'_>) -> Result<(), ToolFailure> {
    match ctx.protected.at(ctx.scope, real) {
        None => Ok(()),
        Some(name) => Err(ToolFailure::new(
            FailureCode::Protected,
            format!("{named:?} is, or contains, the protected file {name}"),
            "Ask the user to make this change; do not try another way. For git's index and branches, run git.",
        )),
    }
}

fn invalid(text: &str, hint: &str) -> ToolFailure {
    ToolFailure::new(FailureCode::InvalidArguments, text, hint)
}
