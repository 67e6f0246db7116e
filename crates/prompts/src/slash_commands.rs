//! Slash commands: the Markdown files of one directory, each a prompt.

use crate::front_matter::{self, FrontMatter};
use crate::markdown_files::{self, FoundFiles};
use crate::prompt_file::AllowedTool;
use crate::prompt_file::PromptFile;
use crate::prompt_file::PromptKind;
use crate::prompt_owner::PromptOwner;
use protocol::hidden::line;
use std::path::Path;

/// Longest description in characters.
const DESCRIPTION: usize = 400;
/// Longest hint about arguments in characters.
const HINT: usize = 80;

/// Finds the commands in a directory. The real files of a project lie inside `within`; a person's
/// own may lie anywhere.
pub(crate) fn find(
    place: &Path,
    owner: PromptOwner,
    within: Option<&Path>,
) -> FoundFiles<PromptFile> {
    markdown_files::find(place, within, &|path, name, text| command(owner, path, name, text))
}

fn command(owner: PromptOwner, path: &Path, name: &str, text: &str) -> Result<PromptFile, String> {
    let front = front_matter::split(text).map_err(|why| format!("its front matter: {why}"))?;
    if let Some(front) = &front {
        front.check().map_err(|why| format!("its front matter: {why}"))?;
    }
    let body = front.as_ref().map_or(text, |front| front.body);
    if body.trim().is_empty() {
        return Err("it has no text for the model".to_owned());
    }
    let value = |key: &str| front.as_ref().and_then(|front| front.text(key));
    let description = value("description").filter(|text| !text.trim().is_empty());
    let first = || body.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let description = description.unwrap_or_else(|| first().trim_start_matches('#').to_owned());
    Ok(PromptFile {
        name: name.to_owned(),
        kind: PromptKind::Command,
        owner,
        file: path.to_owned(),
        description: line(&description, DESCRIPTION),
        argument_hint: line(&value("argument-hint").unwrap_or_default(), HINT),
        allowed_tools: front.as_ref().map(allowed_tools).unwrap_or_default(),
        model: value("model"),
        body: body.trim().to_owned(),
        hides: Vec::new(),
        plugin_root: None,
    })
}

fn allowed_tools(front: &FrontMatter<'_>) -> Vec<AllowedTool> {
    let items = front.list("allowed-tools").into_iter();
    items.map(|item| AllowedTool { text: item.text, line: item.line }).collect()
}
