//! From flags, files and host to the settings of a session. This crate only reads: the supervisor makes
//! directories, writes files and starts processes, as the specification says.
//!
//! | File | Decides or reads |
//! |---|---|
//! | `session_spec` | all decisions about a session, before any of its processes starts |
//! | `settings`, `chosen_model`, `task_bounds` | the settings that may change while a session is open, in layers; the rights that bound a sub-agent |
//! | `open_failure` | why a session cannot be opened as requested |
//! | `agents`, `agents_flag`, `agent_skills` | the sub-agents that a session may start, and their skills |
//! | `command_env`, `tool_homes`, `git_signing` | environment, shell, programs and signatures of commands |
//! | `forbidden_dirs`, `writable_paths`, `skill_links` | directories that no call gets, that calls write, that skills lie in |
//! | `private_paths`, `cache_paths`, `store_setup`, `task_worktree` | where the directories of a session lie |
//! | `project_place`, `sign_in_hosts` | sentences about the project, and about hosts with keys |
//! | `slash_command`, `prompt_images` | the parts of a prompt that name files |
//! | `server_tools`, `server_schemas`, `server_marks`, `server_offers`, `server_log_in` | what MCP servers offer, as models and people are shown it |

mod agent_skills;
pub mod agents;
mod agents_flag;
pub mod cache_paths;
pub mod chosen_model;
pub mod command_env;
pub mod forbidden_dirs;
pub mod git_signing;
pub mod open_failure;
pub mod private_paths;
mod project_place;
pub mod prompt_images;
pub mod server_log_in;
mod server_marks;
pub mod server_offers;
pub mod server_schemas;
pub mod server_tools;
pub mod session_spec;
pub mod settings;
mod sign_in_hosts;
mod skill_links;
pub mod slash_command;
mod store_setup;
pub mod task_bounds;
pub mod task_worktree;
mod tool_homes;
mod writable_paths;
