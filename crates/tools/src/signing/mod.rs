//! Signing git's commits and tags for one call with a key that stays in the person's ssh agent. For
//! `agentd-tool`, which serves the command. The keys and the messages are in `tool_specs::signing`.

mod serve;

pub use serve::{AgentSocket, Signer};
