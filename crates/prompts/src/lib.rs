//! Prompts that people keep in files: slash commands and skills, found, listed and expanded.
//!
//! `slash_commands` and `skills` find the files, with `read_text` and `front_matter` for one file;
//! `prompt_list` joins them to the one list behind `/`; `expand` turns a file and the typed
//! arguments into the text for the model. The only IO is reading those files: nothing here runs a
//! command. Used by the supervisor, which expands a prompt, by the store, which hands skills to the
//! model, and by the terminal, which shows the list.

mod expand;
mod front_matter;
mod prompt_list;
mod read_text;
mod shown;
mod skills;
mod slash_commands;

pub use expand::{ExpandError, PromptPiece, expand};
pub use prompt_list::{
    AllowedTool, NameNotFound, PromptFile, PromptKind, PromptList, PromptOwner, PromptPlaces,
    parse_slash,
};
pub use read_text::read as read_text;
pub use shown::line;
pub use skills::{FoundSkills, Skill, find as find_skills};
