//! The marks at the beginning of a line that make it no prompt: `!`, a person's own command, and `#`, a note to keep.
//! Pure.

use super::{Screen, ScreenEffect};
use crate::screen_items::ScreenItem;
use protocol::client::{FromClient, SessionWish, WhileBusy};
use protocol::hidden::without_hidden;
use protocol::ids::SessionId;

/// How `:note` is used.
const USE: &str = "write :note agents TEXT, :note project TEXT or :note all TEXT, in one line";

/// Where a note of the person is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotePlace {
    /// At the end of the project's file of instructions.
    Instructions,
    /// In the memory.
    Memory(MemoryReach),
}

/// The sessions that find a memory of the person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryReach {
    /// Those of this project.
    Project,
    /// Those of all projects.
    AllProjects,
}

impl NotePlace {
    /// As the list shows them.
    pub const ALL: [Self; 3] = [
        Self::Instructions,
        Self::Memory(MemoryReach::Project),
        Self::Memory(MemoryReach::AllProjects),
    ];

    /// The word behind `:note`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Instructions => "agents",
            Self::Memory(MemoryReach::Project) => "project",
            Self::Memory(MemoryReach::AllProjects) => "all",
        }
    }

    /// A row of the list. `instructions` is the name of the project's file.
    #[must_use]
    pub fn label(self, instructions: &str) -> String {
        match self {
            Self::Instructions => format!("append to {instructions}"),
            Self::Memory(MemoryReach::Project) => "remember for this project".to_owned(),
            Self::Memory(MemoryReach::AllProjects) => "remember for all projects".to_owned(),
        }
    }

    /// The command that writes this text there.
    #[must_use]
    pub fn command(self, text: &str) -> String {
        format!(":note {} {text}", self.word())
    }
}

/// The text behind `#`, if the whole input is one line with that mark. A space before the mark makes it a prompt.
#[must_use]
pub fn note_of(input: &str) -> Option<&str> {
    let text = input.strip_prefix('#')?.trim();
    (!text.is_empty() && !text.contains(['\n', '\r'])).then_some(text)
}

/// The message that an entered line is. A space before the mark makes it a prompt, and so does a second line.
pub(super) fn message(session: SessionId, text: String, busy: WhileBusy) -> FromClient {
    // Of several lines it was pasted, or is made of several texts that came back into the line.
    match text.strip_prefix('!').filter(|command| !command.contains('\n')) {
        Some(command) => {
            let wish = SessionWish::Run { command: command.to_owned() };
            FromClient::Wish { session, wish }
        }
        None => FromClient::Prompt { session, text, form: None, busy },
    }
}

/// Parses a `:note` with its arguments. The error is a message for the user.
pub(super) fn parse_note(typed: &str) -> Result<(NotePlace, String), String> {
    let words = typed.trim_start_matches(':').trim_start();
    let words = words.strip_prefix("note").unwrap_or_default().trim();
    let (word, text) = words.split_once(char::is_whitespace).unwrap_or_default();
    let place = NotePlace::ALL.into_iter().find(|place| place.word() == word);
    match (place, text.trim()) {
        (Some(place), text) if !text.is_empty() && !text.contains(['\n', '\r']) => {
            Ok((place, text.to_owned()))
        }
        (Some(_) | None, _) => Err(USE.to_owned()),
    }
}

/// What a note may become, for a view without lists.
pub(super) fn list_places(note: &str) -> Vec<ScreenEffect> {
    let mut rows = String::from("a line behind # is not sent. Type one of:");
    for place in NotePlace::ALL {
        let does = place.label("AGENTS.md, or the file in its place");
        rows.push_str(&format!("\n  {}\n    to {does}", place.command(note)));
    }
    rows.push_str("\n  the line with a space before #\n    to send it as a prompt");
    vec![ScreenEffect::Show(ScreenItem::Note(rows))]
}

/// Has a note written. Later sessions trust it, so it must be what is seen.
pub(super) fn write_note(screen: &mut Screen, place: NotePlace, text: String) -> Vec<ScreenEffect> {
    if without_hidden(&text) != text {
        screen.give_back(vec![format!("#{text}")]);
        let why = "the note has a hidden character or an unusual blank; write it without";
        return vec![ScreenEffect::Show(ScreenItem::Error(why.to_owned()))];
    }
    let write = |session| ScreenEffect::WriteNote(session, place, text);
    screen.session().cloned().map(write).into_iter().collect()
}
