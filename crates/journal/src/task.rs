//! The call that a sub-agent's session works for: a part of the session's first record.

use crate::StoredPath;
use serde::{Deserialize, Serialize};

/// The tool that gives work to a sub-agent.
pub const TASK: &str = "task";

/// The call that a sub-agent's session works for, and the bounds that it never exceeds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskHeader {
    /// The parent session.
    pub session: String,
    /// The call of the parent.
    pub call: u32,
    /// The agent's name.
    pub agent: String,
    /// Its task.
    pub prompt: String,
    /// The end of its system prompt.
    pub instructions: String,
    /// The model that its file names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The tools that it may call; all where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Rules that deny calls.
    pub deny: Vec<String>,
    /// The MCP servers of its parent that it may have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<String>,
    /// Its loosest rights.
    pub rights: TaskRights,
    /// Its limits.
    pub limits: TaskLimits,
    /// The git worktree that it works in, if its file asks for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<TaskWorktree>,
}

/// A git worktree of a sub-agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskWorktree {
    /// The project of its parent, a real path: the root of the repository.
    pub project: StoredPath,
    /// The worktree below it.
    pub path: StoredPath,
    /// Its branch.
    pub branch: String,
    /// The commit that it began with.
    pub base: String,
}

/// The loosest rights of a sub-agent: those of its parent when it began, or fewer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRights {
    /// The permission mode.
    pub mode: String,
    /// The network of commands.
    pub network: String,
    /// The hosts of an allow-list.
    pub hosts: Vec<String>,
    /// Directories beside the project.
    pub added: Vec<StoredPath>,
    /// True if its parent has no cage.
    pub uncaged: bool,
}

/// The limits of a sub-agent, and its part of the parent's budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskLimits {
    /// Levels of sub-agents that it may have below itself.
    pub depth: u32,
    /// Most requests to the model in one turn.
    pub rounds: u32,
    /// Most calls.
    pub calls: Option<u32>,
    /// Most cost, in millionths of a US dollar.
    pub cost: Option<u64>,
}
