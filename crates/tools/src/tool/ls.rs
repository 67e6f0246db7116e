//! `ls`: one level of a directory.

use crate::failure::{FailureCode, ToolFailure};
use crate::files::file_type;
use crate::files::read_set::ReadSet;
use crate::search::walk::{DirWalk, WalkDepth};
use crate::spec::Tool;
use crate::tool_context::ToolContext;
use protocol::call::FileEffect;
use protocol::hidden::line_for_model;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use tool_specs::ToolAnswer;
use tool_specs::tool::ls::{Input, LsTool};

/// More entries are counted, not listed.
const ENTRIES: usize = 500;
/// Number of names that are listed if everything is ignored.
const IGNORED: usize = 20;

impl Tool for LsTool {
    fn run(input: Input, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        let target = ctx.existing(&input.path)?;
        directory(&target.real, &input.path)?;
        let mut total = 0_usize;
        // Directories first, then by name; only the entries to list are kept.
        let mut entries: BTreeSet<(bool, OsString)> = BTreeSet::new();
        let mut walk = DirWalk::new(ctx, &target.real, WalkDepth::OneLevel);
        while let Some(found) = walk.next() {
            ctx.check_cancelled()?;
            total += 1;
            let name = found.path.file_name().unwrap_or_default().to_owned();
            entries.insert((!found.kind.is_dir(), name));
            if entries.len() > ENTRIES {
                entries.pop_last();
            }
        }
        let mut body = String::new();
        for (_, name) in &entries {
            body.push_str(&line(&target.real.join(name), &ctx.extras.read_set));
            body.push('\n');
        }
        let shown = ctx.shown(&target.real);
        if total == 0 {
            body = nothing(&target.real, ctx);
        }
        let summary = format!("{shown}: {total} entries");
        let mut answer = ToolAnswer::done(body, summary, vec![FileEffect::Read(target.recorded())]);
        let ignored = (total > 0).then(|| ignored(&walk, ctx)).flatten();
        answer.footer = walk.finish();
        answer.footer.extend(ignored);
        if total > ENTRIES {
            answer.footer.push(format!(
                "[{ENTRIES} of {total} entries; {} not shown, find them with glob]",
                total - ENTRIES
            ));
        }
        Ok(answer)
    }
}

/// The note about entries that ignore files keep out of the list.
fn ignored(walk: &DirWalk, ctx: &ToolContext<'_>) -> Option<String> {
    let by = walk.ignored_by().iter();
    let by: Vec<String> = by
        .map(|(file, count)| format!("{count} by {}", line_for_model(&ctx.shown(file))))
        .collect();
    let told = format!("[ignored entries are not listed: {}; name one as path]", by.join(", "));
    (!by.is_empty()).then_some(told)
}

/// The text for a directory without listed entries.
fn nothing(real: &Path, ctx: &ToolContext<'_>) -> String {
    let mut walk = DirWalk::through_ignored(ctx, real, WalkDepth::OneLevel);
    let mut names: Vec<String> = Vec::new();
    while names.len() <= IGNORED
        && let Some(found) = walk.next()
    {
        names.push(
            line_for_model(&found.path.file_name().unwrap_or_default().to_string_lossy())
                .into_owned(),
        );
    }
    let more = if names.len() > IGNORED { ", …" } else { "" };
    names.truncate(IGNORED);
    match names.as_slice() {
        [] => "(empty directory)".to_owned(),
        names => {
            format!("(every entry here is ignored: {}{more})", names.join(", "))
        }
    }
}

/// Opens the directory once, so that a refusal is an error and not an empty list.
pub(super) fn directory(real: &Path, named: &str) -> Result<(), ToolFailure> {
    match real.read_dir() {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => Err(ToolFailure::new(
            FailureCode::NotADirectory,
            format!("{named:?} is not a directory"),
            "Use read for a file.",
        )),
        Err(error) => Err(ToolFailure::io("list", named, error)),
    }
}

fn line(path: &Path, read_set: &ReadSet) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = line_for_model(&name);
    match read_set.stat(path) {
        Ok(meta) if meta.is_symlink() => {
            let target = path.read_link().unwrap_or_default();
            format!("l {} {name} -> {}", meta.len(), line_for_model(&target.to_string_lossy()))
        }
        Ok(meta) => format!("{} {} {name}", file_type::letter(meta.file_type()), meta.len()),
        // Removed since the directory was listed.
        Err(_) => {
            read_set.mark_incomplete();
            format!("? ? {name}")
        }
    }
}
