//! `apply_patch`: creates, changes, moves and deletes several files with one text: all of it or
//! nothing.

use crate::edit::apply_hunks::apply_hunks;
use crate::edit::remove;
use crate::edit::transaction::{FileChange, apply_all};
use crate::failure::{FailureCode, ToolFailure};
use crate::files::file_type;
use crate::spec::Tool;
use crate::text::diff;
use crate::tool_context::ToolContext;
use protocol::call::FileEffect;
use tool_specs::ToolAnswer;
use tool_specs::patch::{FileAction, PatchSection};
use tool_specs::tool::apply_patch::{ApplyPatchTool, Input};

/// Bytes of diffs that one call shows. Stops a result from being larger than a frame.
const DIFFS: usize = 1 << 20;

impl Tool for ApplyPatchTool {
    fn preview(input: Input, ctx: &ToolContext<'_>) -> Result<String, ToolFailure> {
        Ok(diffs(&changes(&input.patch.sections, ctx)?, ctx))
    }

    fn run(input: Input, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        let changes = changes(&input.patch.sections, ctx)?;
        let diffs = diffs(&changes, ctx);
        ctx.check_cancelled()?;
        apply_all(&changes, ctx)?;
        let mut effects = Vec::new();
        let mut lines = String::new();
        for change in &changes {
            let (did, effect) = did(change);
            lines.push_str(&format!("{did} {}\n", ctx.shown(&change.target.real)));
            effects.extend(effect);
            if let Some(after) = &change.after {
                ctx.record_version(&change.target, crate::files::precondition::digest(after));
            }
        }
        let summary = match changes.as_slice() {
            [only] => format!("{} {}", did(only).0, ctx.shown(&only.target.real)),
            several => format!("patched {} files", several.len()),
        };
        Ok(ToolAnswer::done(format!("{lines}{diffs}"), summary, effects))
    }
}

fn did(change: &FileChange) -> (&'static str, Option<FileEffect>) {
    let path = || change.target.recorded();
    match (&change.before, &change.after) {
        (None, Some(_)) => ("created", Some(FileEffect::Created(path()))),
        (Some(_), Some(_)) => ("edited", Some(FileEffect::Written(path()))),
        (Some(_), None) => ("deleted", Some(FileEffect::Deleted(path()))),
        (None, None) => ("left", None),
    }
}

/// Every file as it will be. Nothing is changed yet.
fn changes(
    sections: &[PatchSection],
    ctx: &ToolContext<'_>,
) -> Result<Vec<FileChange>, ToolFailure> {
    let mut changes = Vec::new();
    for section in sections {
        let at = found(&mut changes, &section.path, ctx)?;
        match &section.work {
            FileAction::Add { content } => {
                absent(&changes[at], &section.path)?;
                changes[at].after = Some(content.clone().into_bytes());
            }
            FileAction::Delete => {
                not_a_link(&section.path, &changes[at], ctx)?;
                present(&mut changes[at])?;
                changes[at].after = None;
            }
            FileAction::Update { to, hunks } => {
                let old = present(&mut changes[at])?;
                let mode = changes[at].mode;
                let new = match hunks.is_empty() {
                    true => old,
                    false => {
                        apply_hunks(&section.path, &text(&section.path, old)?, hunks)?.into_bytes()
                    }
                };
                let Some(to) = to else {
                    changes[at].after = Some(new);
                    continue;
                };
                not_a_link(&section.path, &changes[at], ctx)?;
                changes[at].after = None;
                let unread = unread(&changes[at], ctx);
                let at = found(&mut changes, to, ctx)?;
                stays_unread(unread, &section.path, &changes[at], ctx)?;
                absent(&changes[at], to)?;
                changes[at].after = Some(new);
                changes[at].mode = mode;
            }
        }
    }
    changes.retain(|change| change.before.is_some() || change.after.is_some());
    let made = changes.iter().filter(|change| change.after.is_some());
    ctx.refuse_repository(&made.map(|change| change.target.real.as_path()).collect::<Vec<_>>())?;
    Ok(changes)
}

/// The rule that keeps this file from being read.
fn unread(change: &FileChange, ctx: &ToolContext<'_>) -> Option<String> {
    ctx.unreadable(&change.target, &change.target.real)
}

/// Refuses to give the text of a file that may not be read a name by which it may.
fn stays_unread(
    why: Option<String>,
    from: &str,
    to: &FileChange,
    ctx: &ToolContext<'_>,
) -> Result<(), ToolFailure> {
    match why {
        Some(why) if unread(to, ctx).is_none() => Err(ToolFailure::new(
            FailureCode::AccessDenied,
            format!("{from:?} cannot be moved to {:?}: {why}", to.target.named),
            "The file could be read by its new name. Ask the user to move it.",
        )),
        Some(_) | None => Ok(()),
    }
}

/// The index of a file among the changes; loads the file the first time.
fn found(
    changes: &mut Vec<FileChange>,
    path: &str,
    ctx: &ToolContext<'_>,
) -> Result<usize, ToolFailure> {
    let target = ctx.to_write(path)?;
    if path.ends_with('/') {
        let text = format!("{path:?} names a directory");
        return Err(ToolFailure::new(FailureCode::IsDirectory, text, "Name a file in it."));
    }
    if let Some(at) = changes.iter().position(|change| change.target.real == target.real) {
        return Ok(at);
    }
    changes.push(FileChange::of(target, ctx)?);
    Ok(changes.len() - 1)
}

fn absent(change: &FileChange, path: &str) -> Result<(), ToolFailure> {
    match change.after {
        None => Ok(()),
        Some(_) => Err(ToolFailure::new(
            FailureCode::AlreadyExists,
            format!("the file {path:?} already exists"),
            "Nothing was changed. Use `*** Update File:`, or delete it in the same patch first.",
        )),
    }
}

/// The content of the file after the sections so far.
fn present(change: &mut FileChange) -> Result<Vec<u8>, ToolFailure> {
    change.after.clone().ok_or_else(|| crate::files::target_path::not_found(&change.target))
}

/// Deleting a link's target would leave the link.
fn not_a_link(path: &str, change: &FileChange, ctx: &ToolContext<'_>) -> Result<(), ToolFailure> {
    match remove::link_path(path, ctx.scope).is_some_and(|own| own == change.target.real) {
        true => Ok(()),
        false => Err(ToolFailure::new(
            FailureCode::InvalidArguments,
            format!("{path:?} is a symbolic link"),
            "Nothing was changed. Use delete for a symbolic link.",
        )),
    }
}

fn text(path: &str, bytes: Vec<u8>) -> Result<String, ToolFailure> {
    if let Some(kind) = file_type::binary_type(&bytes[..bytes.len().min(file_type::SNIFFED)]) {
        let text = format!("{path:?} is a binary file ({kind})");
        return Err(ToolFailure::new(FailureCode::Binary, text, "Only text files can be patched."));
    }
    String::from_utf8(bytes).map_err(|_| {
        let text = format!("{path:?} is not UTF-8");
        ToolFailure::new(FailureCode::NotUtf8, text, file_type::NOT_UTF8_HINT)
    })
}

fn diffs(changes: &[FileChange], ctx: &ToolContext<'_>) -> String {
    let mut text = String::new();
    for (number, change) in changes.iter().enumerate() {
        if text.len() > DIFFS {
            text.push_str(&format!("[no diff of {} more files]\n", changes.len() - number));
            break;
        }
        let shown = ctx.shown(&change.target.real);
        let before = change.before.as_ref().and_then(|before| before.bytes.as_deref());
        let [old, new] = [before, change.after.as_deref()]
            .map(|bytes| std::str::from_utf8(bytes.unwrap_or_default()));
        match (old, new) {
            (Ok(old), Ok(new)) if old != new => text.push_str(&diff::unified(&shown, old, new)),
            (Ok(_), Ok(_)) => text.push_str(&format!("[{shown}: {}]\n", did(change).0)),
            (_, _) => text.push_str(&format!("[no diff of {shown}: not text]\n")),
        }
    }
    text
}
