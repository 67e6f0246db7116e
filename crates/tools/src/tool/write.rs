//! `write`: a whole file, made or replaced in one step.

use crate::edit::replace::{OriginalFile, Replaced, load_original, replace};
use crate::failure::{FailureCode, ToolFailure};
use crate::files::precondition;
use crate::files::target_path::TargetPath;
use crate::spec::Tool;
use crate::text::diff;
use crate::tool_context::ToolContext;
use protocol::call::FileEffect;
use tool_specs::ToolAnswer;
use tool_specs::tool::write::{Input, WriteTool};

impl Tool for WriteTool {
    fn preview(input: Input, ctx: &ToolContext<'_>) -> Result<String, ToolFailure> {
        let target = target(ctx, &input.path)?;
        let before = load_original(ctx, &target)?;
        let change = change(ctx, &target, before.as_ref(), &input.content);
        let name = ctx.shown(&target.real);
        Ok(match (change.is_empty(), before.is_some()) {
            (false, _) => change,
            (true, true) => {
                format!("# {name} has this content already: the call changes nothing\n")
            }
            (true, false) => format!("# {name} is created without content\n"),
        })
    }

    fn run(input: Input, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        let target = target(ctx, &input.path)?;
        let before = load_original(ctx, &target)?;
        let shown = ctx.shown(&target.real);
        if before.as_ref().and_then(|before| before.bytes.as_deref())
            == Some(input.content.as_bytes())
        {
            ctx.record_version(&target, precondition::digest(input.content.as_bytes()));
            let body = format!("{shown} already has exactly this content; nothing was written");
            return Ok(ToolAnswer::done(body, format!("{shown}: unchanged"), Vec::new()));
        }
        let diff = change(ctx, &target, before.as_ref(), &input.content);
        ctx.check_cancelled()?;
        let replaced = replace(&target, before.as_ref(), input.content.as_bytes())?;
        ctx.record_version(&target, precondition::digest(input.content.as_bytes()));
        let (did, effect) = match replaced {
            Replaced::Created => ("created", FileEffect::Created(target.recorded())),
            Replaced::Overwritten => ("overwrote", FileEffect::Written(target.recorded())),
        };
        let bytes = input.content.len();
        let body = format!("{did} {shown}: {bytes} bytes\n{diff}");
        Ok(ToolAnswer::done(body, format!("{did} {shown}: {bytes} bytes"), vec![effect]))
    }
}

fn target(ctx: &ToolContext<'_>, path: &str) -> Result<TargetPath, ToolFailure> {
    let target = ctx.to_write(path)?;
    if path.ends_with('/') {
        let text = format!("{path:?} names a directory");
        return Err(ToolFailure::new(FailureCode::IsDirectory, text, "Name a file in it."));
    }
    Ok(target)
}

/// The diff to show, or the reason why there is none.
fn change(
    ctx: &ToolContext<'_>,
    target: &TargetPath,
    before: Option<&OriginalFile>,
    content: &str,
) -> String {
    let name = ctx.shown(&target.real);
    let Some(before) = before else {
        return diff::unified(&name, "", content);
    };
    match before.bytes.as_deref().map(std::str::from_utf8) {
        Some(Ok(old)) => diff::unified(&name, old, content),
        Some(Err(_)) => {
            format!("[no diff: the {} replaced bytes are not UTF-8]\n", before.size)
        }
        None => format!("[no diff: the {} replaced bytes are too large to compare]\n", before.size),
    }
}
