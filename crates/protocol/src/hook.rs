//! Hooks: commands that a person configured to run after edits or at events of a session. Part of
//! the wire to `agentd-session`; `config` reads them, and the supervisor checks each run by them.

use crate::{Decode, Encode};

/// A verifier or formatter: a command that runs after the edits of a round. Its output goes to the
/// model.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct EditHook {
    /// Which files it is for: `*.rs`, or a name as it is.
    pub files: String,
    /// The file that marks a package, in which it is run.
    pub package: Option<String>,
    /// A verifier's is for a shell, a formatter's is words.
    pub command: String,
}

impl EditHook {
    /// True if the hook applies to the file at this path; only the file name is matched.
    #[must_use]
    pub fn is_for(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        match self.files.strip_prefix('*') {
            Some(end) => name.ends_with(end),
            None => name == self.files,
        }
    }
}

/// An event of a session at which hooks run, by the names of Claude Code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Encode, Decode)]
pub enum HookEvent {
    /// A call is about to be judged.
    PreToolUse,
    /// A call succeeded.
    PostToolUse,
    /// A call failed or was refused.
    PostToolUseFailure,
    /// A person is about to be asked about a call.
    PermissionRequest,
    /// A prompt is about to be sent to the model.
    UserPromptSubmit,
    /// The first turn of a session begins.
    SessionStart,
    /// A session ends.
    SessionEnd,
    /// A turn is about to end.
    Stop,
    /// The turn of a sub-agent is about to end.
    SubagentStop,
    /// The conversation that the model gets is about to be made smaller.
    PreCompact,
    /// A person is called to the terminal.
    Notification,
}

impl HookEvent {
    /// Every event, in the order of the documentation.
    pub const ALL: [Self; 11] = [
        Self::PreToolUse,
        Self::PostToolUse,
        Self::PostToolUseFailure,
        Self::PermissionRequest,
        Self::UserPromptSubmit,
        Self::SessionStart,
        Self::SessionEnd,
        Self::Stop,
        Self::SubagentStop,
        Self::PreCompact,
        Self::Notification,
    ];

    /// As configuration and the hook's standard input name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PreToolUse => "PreToolUse",
            Self::PostToolUse => "PostToolUse",
            Self::PostToolUseFailure => "PostToolUseFailure",
            Self::PermissionRequest => "PermissionRequest",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::SessionStart => "SessionStart",
            Self::SessionEnd => "SessionEnd",
            Self::Stop => "Stop",
            Self::SubagentStop => "SubagentStop",
            Self::PreCompact => "PreCompact",
            Self::Notification => "Notification",
        }
    }

    /// True for the tools that run hooks. Events of such a call have no hooks: they would begin without
    /// end.
    #[must_use]
    pub fn is_run_by(tool: &str) -> bool {
        Self::ALL.into_iter().any(|event| event.tool() == tool)
    }

    /// The event of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.name() == name)
    }

    /// True if something waits for the hook's decision: a hook that blocks stops the guarded step.
    #[must_use]
    pub fn is_guard(self) -> bool {
        match self {
            Self::PreToolUse | Self::PermissionRequest | Self::UserPromptSubmit => true,
            Self::PostToolUse
            | Self::PostToolUseFailure
            | Self::SessionStart
            | Self::SessionEnd
            | Self::Stop
            | Self::SubagentStop
            | Self::PreCompact
            | Self::Notification => false,
        }
    }

    /// True if the supervisor sees the event, not the conversation: its hooks run beside the calls of
    /// a round, or when no turn runs.
    #[must_use]
    pub fn is_aside(self) -> bool {
        match self {
            Self::PermissionRequest | Self::SessionEnd | Self::Notification => true,
            Self::PreToolUse
            | Self::PostToolUse
            | Self::PostToolUseFailure
            | Self::UserPromptSubmit
            | Self::SessionStart
            | Self::Stop
            | Self::SubagentStop
            | Self::PreCompact => false,
        }
    }

    /// True if a turn ends there, of the session or of a sub-agent.
    #[must_use]
    pub fn is_stop(self) -> bool {
        matches!(self, Self::Stop | Self::SubagentStop)
    }

    /// The tool that runs its hooks. With `guard_hook` the project is read-only: other calls may run
    /// at the same time.
    #[must_use]
    pub fn tool(self) -> &'static str {
        match self.is_guard() || matches!(self, Self::Notification | Self::PreCompact) {
            true => "guard_hook",
            false => "hook",
        }
    }
}

/// A command that runs at an event.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct EventHook {
    /// The event.
    pub event: HookEvent,
    /// The subjects that its matcher covers: real names of tools, for events of calls. All of them
    /// where there is no list.
    pub matched: Option<Vec<String>>,
    /// For a shell.
    pub command: String,
    /// Why it cannot be run as it is written: it never starts, and counts as failed.
    pub broken: Option<String>,
    /// Longest time of one run.
    pub timeout_ms: u64,
    /// The file that names it.
    pub file: String,
}

impl EventHook {
    /// True if it runs at this event of this subject.
    #[must_use]
    pub fn is_for(&self, event: HookEvent, subject: &str) -> bool {
        self.event == event
            && self.matched.as_ref().is_none_or(|all| all.iter().any(|one| one == subject))
    }
}

/// An event that the supervisor sees.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct HookOccasion {
    /// The event.
    pub event: HookEvent,
    /// What a matcher is compared with: the tool of the call, or a word of the event.
    pub subject: String,
    /// The call that a person is about to be asked about, and its arguments as JSON.
    pub call: Option<(u32, String)>,
    /// The sentence of a notification.
    pub message: String,
}

/// A hook blocked the guarded step.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct HookRefusal {
    /// The hook.
    pub command: String,
    /// Its reason.
    pub reason: String,
}

/// All hooks of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode)]
pub struct SessionHooks {
    /// Verifiers of edited files.
    pub verifiers: Vec<EditHook>,
    /// Formatters of edited files; they run before the verifiers.
    pub formatters: Vec<EditHook>,
    /// Hooks at events, in the order in which they run.
    pub events: Vec<EventHook>,
}
