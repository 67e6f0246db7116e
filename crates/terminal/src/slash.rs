//! Slash commands and skills in the list behind `/` and `:`, read in the background.

use crate::picker::PickerItem;
use client::{ScreenInput, SlashRow, one_line};
use prompts::{PromptFile, PromptList, PromptPlaces};
use std::path::Path;
use std::sync::mpsc::SyncSender;

/// Characters of a description.
const DESCRIPTION: usize = 100;

/// Reads the files and sends their rows.
pub(crate) fn list(places: PromptPlaces, inputs: SyncSender<ScreenInput>) {
    std::thread::spawn(move || {
        let rows = rows(&PromptList::read(&places), &places);
        let _ = inputs.send(ScreenInput::SlashCommands(rows));
    });
}

/// A row for each file, then one for each that cannot be used.
fn rows(list: &PromptList, places: &PromptPlaces) -> Vec<SlashRow> {
    let broken = list.troubles.iter().map(|trouble| SlashRow {
        text: trouble.clone(),
        detail: "cannot be used".to_owned(),
        insert: None,
    });
    list.files.iter().map(|file| row(file, places)).chain(broken).collect()
}

fn row(file: &PromptFile, places: &PromptPlaces) -> SlashRow {
    let text = format!("/{} {}", file.name, file.argument_hint).trim_end().to_owned();
    let description = one_line(&file.description, DESCRIPTION);
    let (owner, kind) = (file.owner.name(), file.kind.name());
    let place = shown(&file.file, places);
    let hides = match file.hides.first() {
        Some(hidden) => format!("; hides {}", shown(hidden, places)),
        None => String::new(),
    };
    SlashRow {
        text,
        detail: format!("{description}  ({owner} {kind}, {place}{hides})"),
        insert: Some(format!("/{} ", file.name)),
    }
}

fn shown(path: &Path, places: &PromptPlaces) -> String {
    let inside = path.strip_prefix(&places.project).ok().map(|inside| inside.display().to_string());
    let home = places.home.as_ref().and_then(|home| path.strip_prefix(home).ok());
    let of_home = || home.map(|inside| format!("~/{}", inside.display()));
    inside.or_else(of_home).unwrap_or_else(|| path.display().to_string())
}

/// The items of the picker; those that cannot be used come last.
pub(crate) fn items(rows: &[SlashRow]) -> Vec<PickerItem> {
    let item = |row: &SlashRow| PickerItem {
        text: row.text.clone(),
        detail: row.detail.clone(),
        value: row.insert.clone().unwrap_or_default(),
    };
    let usable = rows.iter().filter(|row| row.insert.is_some()).map(item);
    let broken = rows.iter().filter(|row| row.insert.is_none()).map(item);
    usable.chain(broken).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use prompts::{PromptKind, PromptOwner};

    #[test]
    fn a_row_names_arguments_purpose_and_place_and_the_broken_come_last() {
        let places = PromptPlaces {
            project: "/p".into(),
            home: Some("/home/me".into()),
            config: None,
            plugins: Vec::new(),
        };
        let file = PromptFile {
            name: "review".to_owned(),
            kind: PromptKind::Command,
            owner: PromptOwner::Project,
            file: "/p/.claude/commands/review.md".into(),
            description: "Review a file".to_owned(),
            argument_hint: "FILE".to_owned(),
            allowed_tools: Vec::new(),
            model: None,
            body: "x".to_owned(),
            hides: vec!["/home/me/.claude/commands/review.md".into()],
            plugin_root: None,
        };
        let list = PromptList { files: vec![file], troubles: vec!["/p/x.md: why".to_owned()] };
        let items = items(&rows(&list, &places));
        assert_eq!((items[0].text.as_str(), items[0].value.as_str()), ("/review FILE", "/review "));
        assert_eq!(
            items[0].detail,
            "Review a file  (project command, .claude/commands/review.md; hides \
             ~/.claude/commands/review.md)"
        );
        let last = items.last().unwrap();
        assert_eq!((last.detail.as_str(), last.value.as_str()), ("cannot be used", ""));
    }
}
