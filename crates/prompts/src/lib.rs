//! Prompts that people keep in files: slash commands, skills and sub-agents, found, listed and expanded.
//!
//! `slash_commands`, `skills` and `agents` read the files, with `markdown_files`, `read_text` and `front_matter`;
//! `prompt_list` joins them to the one list behind `/`; `expand` turns a file and the typed
//! arguments into the text for the model; `instructions` finds the files with instructions for agents, with those that they import (`imports`);
//! `shown_files` finds the images that a prompt names. The only IO is reading those files: nothing here runs a
//! command. Used by the supervisor, which expands a prompt, by the store, which hands skills to the
//! model, and by the terminal, which shows the list.

mod agents;
mod denied_reads;
mod expand;
mod front_matter;
mod imports;
mod instructions;
mod markdown_files;
mod plugin_place;
mod plugin_root;
mod prompt_file;
mod prompt_list;
mod prompt_owner;
mod read_text;
mod server_resources;
mod shown_files;
mod skills;
mod slash_commands;

pub use agents::{AGENT_KEYS, AgentFile, AgentList, check_agent_name};
pub use denied_reads::DeniedReads;
pub use expand::{ExpandError, PromptPiece, commands, expand, expand_text};
pub use imports::{Import, ImportOutcome};
pub use instructions::{
    INSTRUCTION_BYTES, INSTRUCTION_NAMES, Instructions, directories_around, instructions_name,
    instructions_of, nested_directories,
};
pub use plugin_place::PluginPlace;
pub use plugin_root::put_plugin_root;
pub use prompt_file::AllowedTool;
pub use prompt_file::PromptFile;
pub use prompt_file::PromptKind;
pub use prompt_list::{NameNotFound, PromptList, PromptPlaces, parse_slash};
pub use prompt_owner::PromptOwner;
pub use read_text::read as read_text;
pub use server_resources::{server_resources, words};
pub use shown_files::{NamedBy, ShownFile, shown_files};
pub use skills::{FoundSkills, Skill, SkillCallers, find as find_skills, links as skill_links};
