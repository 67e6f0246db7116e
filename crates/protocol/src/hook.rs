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

/// Row of the table of events. `agentd help hooks` shows the same table, and a test compares the two.
#[derive(Debug, Clone, Copy)]
pub struct HookEventRow {
    /// The name in the configuration and in the hook's standard input.
    pub name: &'static str,
    /// When its hooks run, for people.
    pub when: &'static str,
    /// The fields of the hook's standard input, beside those of every event.
    pub input: &'static [HookField],
    /// What an answer may do, for people.
    pub answer: &'static str,
    /// The effect of an answer that blocks.
    pub block: BlockEffect,
    /// The meaning of printed text that is no JSON object.
    pub plain_text: PlainText,
    /// The names that a matcher is compared with.
    pub matcher: MatcherSubjects,
    /// The process that sees the event.
    pub seen_by: SeenBy,
    /// The hook's access to the project.
    pub project: HookAccess,
}

/// The effect of a hook's answer that blocks (exit code 2, `block`, `deny`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockEffect {
    /// The call does not run. A hook that fails has the same effect.
    CallRefused,
    /// The model never gets the prompt. A hook that fails has the same effect.
    PromptRefused,
    /// The call is denied. If the hook fails, the person is asked.
    QuestionDenied,
    /// The model learns the reason.
    ModelLearns,
    /// The model goes on with the reason.
    TurnGoesOn,
    /// A compaction that a person wants does not happen.
    CompactionRefused,
    /// The person learns the reason.
    PersonLearns,
}

/// The meaning of printed text that is no JSON object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlainText {
    /// Context for the model.
    Context,
    /// None.
    Ignored,
}

/// The names that a hook's matcher is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatcherSubjects {
    /// The names of tools: the event is about a call.
    Tools,
    /// These words.
    Words(&'static [&'static str]),
    /// The name of the sub-agent whose session it is.
    Agent,
    /// None: the hooks always run.
    Nothing,
}

/// The process that sees an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeenBy {
    /// The conversation.
    Conversation,
    /// The supervisor. The hooks run beside the calls of a round, or while no turn runs.
    Supervisor,
}

/// A hook's access to the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookAccess {
    /// Other calls may run at the same time.
    ReadOnly,
    /// As a command has it.
    Writable,
}

/// A field of a hook's standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookField {
    /// The call's tool.
    ToolName,
    /// The call's arguments.
    ToolInput,
    /// The call's number.
    ToolUseId,
    /// The result of a call that succeeded.
    ToolResponse,
    /// The result of a call that failed.
    Error,
    /// The prompt.
    Prompt,
    /// True if a hook made the turn go on before.
    StopHookActive,
    /// The word that a matcher is compared with, under this name.
    Word(&'static str),
    /// A sentence of the event, under this name.
    Sentence(&'static str),
}

impl HookField {
    /// The name of the field.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ToolName => "tool_name",
            Self::ToolInput => "tool_input",
            Self::ToolUseId => "tool_use_id",
            Self::ToolResponse => "tool_response",
            Self::Error => "error",
            Self::Prompt => "prompt",
            Self::StopHookActive => "stop_hook_active",
            Self::Word(name) | Self::Sentence(name) => name,
        }
    }
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

    /// The table of events.
    #[must_use]
    pub const fn row(self) -> HookEventRow {
        use HookField::{
            Error, Prompt, Sentence, StopHookActive, ToolInput, ToolName, ToolResponse, ToolUseId,
            Word,
        };
        match self {
            Self::PreToolUse => HookEventRow {
                name: "PreToolUse",
                when: "before a call of the model is judged",
                input: &[ToolName, ToolInput, ToolUseId],
                answer: "deny it, have you asked, add context, change its arguments",
                block: BlockEffect::CallRefused,
                plain_text: PlainText::Ignored,
                matcher: MatcherSubjects::Tools,
                seen_by: SeenBy::Conversation,
                project: HookAccess::ReadOnly,
            },
            Self::PostToolUse => HookEventRow {
                name: "PostToolUse",
                when: "after the calls of a round, for each that succeeded",
                input: &[ToolName, ToolInput, ToolUseId, ToolResponse],
                answer: "give the model a reason (`block`), add context",
                block: BlockEffect::ModelLearns,
                plain_text: PlainText::Ignored,
                matcher: MatcherSubjects::Tools,
                seen_by: SeenBy::Conversation,
                project: HookAccess::Writable,
            },
            Self::PostToolUseFailure => HookEventRow {
                name: "PostToolUseFailure",
                when: "the same for each that ran and failed",
                input: &[ToolName, ToolInput, ToolUseId, Error],
                answer: "the same",
                ..Self::PostToolUse.row()
            },
            Self::PermissionRequest => HookEventRow {
                name: "PermissionRequest",
                when: "when a call needs your answer, before you are asked",
                input: &[ToolName, ToolInput, ToolUseId],
                answer: "deny the call",
                block: BlockEffect::QuestionDenied,
                plain_text: PlainText::Ignored,
                matcher: MatcherSubjects::Tools,
                seen_by: SeenBy::Supervisor,
                project: HookAccess::ReadOnly,
            },
            Self::UserPromptSubmit => HookEventRow {
                name: "UserPromptSubmit",
                when: "before a prompt is sent to the model",
                input: &[Prompt],
                answer: "refuse it, add context",
                block: BlockEffect::PromptRefused,
                plain_text: PlainText::Context,
                matcher: MatcherSubjects::Nothing,
                seen_by: SeenBy::Conversation,
                project: HookAccess::ReadOnly,
            },
            Self::SessionStart => HookEventRow {
                name: "SessionStart",
                when: "before the first prompt of a session (`source` is `startup`); not when a session goes on",
                input: &[Word("source")],
                answer: "add context",
                block: BlockEffect::ModelLearns,
                plain_text: PlainText::Context,
                matcher: MatcherSubjects::Words(&["startup"]),
                seen_by: SeenBy::Conversation,
                project: HookAccess::Writable,
            },
            Self::SessionEnd => HookEventRow {
                name: "SessionEnd",
                when: "when a session ends between turns (`reason` is `other`)",
                input: &[Word("reason")],
                answer: "nothing",
                block: BlockEffect::PersonLearns,
                plain_text: PlainText::Ignored,
                matcher: MatcherSubjects::Words(&["other"]),
                seen_by: SeenBy::Supervisor,
                project: HookAccess::Writable,
            },
            Self::Stop => HookEventRow {
                name: "Stop",
                when: "when the model has answered without calls",
                input: &[StopHookActive],
                answer: "make it go on with a reason, at most 5 times a turn",
                block: BlockEffect::TurnGoesOn,
                plain_text: PlainText::Ignored,
                matcher: MatcherSubjects::Nothing,
                seen_by: SeenBy::Conversation,
                project: HookAccess::Writable,
            },
            Self::SubagentStop => HookEventRow {
                name: "SubagentStop",
                when: "the same in a sub-agent's session, in place of `Stop`; its matcher is for the sub-agent's name",
                answer: "the same",
                matcher: MatcherSubjects::Agent,
                ..Self::Stop.row()
            },
            Self::PreCompact => HookEventRow {
                name: "PreCompact",
                when: "before the conversation is made smaller: by `:compact` (its matcher and `trigger` are \
                       `manual`), or because it fills the model's context (`auto`)",
                input: &[Word("trigger"), Sentence("custom_instructions")],
                answer: "block a manual one (exit code 2 or `block`). An automatic one goes on, and you see the reason",
                block: BlockEffect::CompactionRefused,
                plain_text: PlainText::Ignored,
                matcher: MatcherSubjects::Words(&["manual", "auto"]),
                seen_by: SeenBy::Conversation,
                project: HookAccess::ReadOnly,
            },
            Self::Notification => HookEventRow {
                name: "Notification",
                when: "when you are asked (`permission_prompt`), and when a session has waited for your prompt \
                       (`idle_prompt`, see `hooks.idle_after`)",
                input: &[Word("notification_type"), Sentence("message")],
                answer: "nothing: you see its reason or `systemMessage`. It has no network and no desktop: for \
                         notices there, use `ui.notify`",
                block: BlockEffect::PersonLearns,
                plain_text: PlainText::Ignored,
                matcher: MatcherSubjects::Words(&["permission_prompt", "idle_prompt"]),
                seen_by: SeenBy::Supervisor,
                project: HookAccess::ReadOnly,
            },
        }
    }

    /// The name in the configuration and in the hook's standard input.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().name
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

    /// True if the event is about a call, so that its matcher names tools.
    #[must_use]
    pub fn is_about_call(self) -> bool {
        self.row().matcher == MatcherSubjects::Tools
    }

    /// True if the supervisor sees the event, not the conversation.
    #[must_use]
    pub fn is_aside(self) -> bool {
        self.row().seen_by == SeenBy::Supervisor
    }

    /// The tool that runs its hooks.
    #[must_use]
    pub fn tool(self) -> &'static str {
        match self.row().project {
            HookAccess::ReadOnly => "guard_hook",
            HookAccess::Writable => "hook",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_shows_the_table_of_events() {
        let help = include_str!("../../../workers/agentd/help/hooks.md");
        let code =
            |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>();
        for event in HookEvent::ALL {
            let HookEventRow { name, when, input, answer, .. } = event.row();
            let input = code(&input.iter().map(|field| field.name()).collect::<Vec<_>>());
            let row = format!("| `{name}` | {when} | {} | {answer} |\n", input.join(", "));
            assert!(help.contains(&row), "{row}");
        }
        let of = |is_one: fn(HookEventRow) -> bool| {
            let all = HookEvent::ALL.map(HookEvent::row).into_iter();
            code(&all.filter(|row| is_one(*row)).map(|row| row.name).collect::<Vec<_>>())
        };
        let read_only = of(|row| row.project == HookAccess::ReadOnly).join(", ");
        assert!(help.contains(&format!("| | {read_only} | All others |\n")), "{read_only}");
        let context = of(|row| row.plain_text == PlainText::Context).join(" and ");
        assert!(help.contains(&format!("Other text of {context} is context.")), "{context}");
    }
}
