//! The list of what becomes of a line behind `#`. The text stays in the input line until one is chosen.

use crate::picker::{Picker, PickerItem, PickerKind};
use client::{ConnectionState, KeyPress, NotePlace, Screen, ScreenInput, note_of};
use protocol::client::ClientRights;
use std::path::Path;

/// True if Enter asks what becomes of the line.
pub(super) fn is_in_line(screen: &Screen) -> bool {
    let may_write = screen.options().rights == ClientRights::Full
        && screen.connection() == ConnectionState::Live;
    let goes_on = screen.input().0.before_cursor().ends_with('\\');
    may_write && !goes_on && note_of(&screen.draft()).is_some()
}

/// The list, in a project.
pub(super) fn places(project: &Path) -> Picker {
    let instructions = prompts::instructions_name(project);
    let item = |place: NotePlace| PickerItem {
        text: place.label(instructions),
        detail: String::new(),
        value: place.word().to_owned(),
    };
    let prompt = PickerItem {
        text: "send as a prompt".to_owned(),
        detail: String::new(),
        value: String::new(),
    };
    let items = NotePlace::ALL.into_iter().map(item).chain([prompt]).collect();
    Picker::new(PickerKind::Note, items)
}

/// The line that does what was chosen. None if the line is no note any more.
pub(super) fn in_line(value: &str, screen: &Screen) -> Option<ScreenInput> {
    let draft = screen.draft();
    let text = note_of(&draft)?;
    let place = NotePlace::ALL.into_iter().find(|place| place.word() == value);
    Some(ScreenInput::Edited(match place {
        Some(place) => place.command(text),
        // The blank makes it a prompt.
        None => format!(" {draft}"),
    }))
}

/// The same, entered.
pub(super) fn chosen(value: &str, screen: &Screen) -> Vec<ScreenInput> {
    let line = in_line(value, screen);
    line.into_iter().flat_map(|line| [line, ScreenInput::Key(KeyPress::Enter)]).collect()
}
