//! Permission rules, the calls judged by them, and the verdicts.

use crate::call::{Call, ProbeReport};
use crate::confinement::{FilePath, Tier};
use crate::hosts::HostRule;
use crate::ids::CallId;
use crate::web_address::WebAddress;
use crate::{Decode, Encode};
pub use journal::{Bounded, Rule, RuleEffect, ToolKind};

/// The treatment of mutations that match no rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum PermissionMode {
    /// Ask a person.
    Ask,
    /// File tools in the project pass, commands are asked about, and so are directories that
    /// would go.
    AcceptEdits,
    /// Queries only.
    Plan,
    /// Everything the cage allows.
    Auto,
    /// Refuse instead of asking.
    DontAsk,
    /// What the full sandbox bounds and undo covers passes, everything else is asked about.
    Sandboxed,
}

impl PermissionMode {
    /// All modes, the loosest first.
    pub const ALL: [Self; 6] =
        [Self::Auto, Self::Sandboxed, Self::AcceptEdits, Self::Ask, Self::DontAsk, Self::Plan];

    /// As written in configuration and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::AcceptEdits => "accept-edits",
            Self::Plan => "plan",
            Self::Auto => "auto",
            Self::DontAsk => "dont-ask",
            Self::Sandboxed => "sandboxed",
        }
    }

    /// The mode of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }

    /// The loosest mode that lets no more pass than either of the two.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        match (self, other) {
            // Each lets calls pass that the other asks about.
            (Self::Sandboxed, Self::AcceptEdits) | (Self::AcceptEdits, Self::Sandboxed) => {
                Self::Ask
            }
            (one, other) => {
                let place = |mode: Self| Self::ALL.iter().position(|known| *known == mode);
                if place(one) >= place(other) { one } else { other }
            }
        }
    }

    /// True if this mode lets nothing pass that the other one asks about or refuses.
    #[must_use]
    pub fn is_within(self, other: Self) -> bool {
        self.stricter(other) == self
    }

    /// The mode under agentd's name or Claude Code's.
    #[must_use]
    pub fn parse_either(name: &str) -> Option<Self> {
        Self::parse(name).or(match name {
            "default" => Some(Self::Ask),
            "acceptEdits" => Some(Self::AcceptEdits),
            "bypassPermissions" => Some(Self::Auto),
            "dontAsk" => Some(Self::DontAsk),
            _ => None,
        })
    }
}

/// The tool that shows a plan to a person. Its questions are answered by `PersonAnswer::Mode`.
pub const EXIT_PLAN: &str = "exit_plan";

/// The tool by which a model asks the person. Its questions are answered by `PersonAnswer::Chosen`.
pub const ASK_USER: &str = "ask_user";

/// How the result of a call begins that a person refused. A colon and their reason may follow. Screens show the reason
/// alone.
pub const REFUSED_BY_PERSON: &str = "Not run: the user refused this call";

/// The same of a plan.
pub const PLAN_REFUSED: &str = "The user did not approve the plan";

/// How the note begins that goes with a person's yes. The model gets it in front of the result; screens leave it out.
pub const NOTE_OF_PERSON: &str = "[The user allowed this call and says: ";

/// How the reason of a question begins that no rule answers. The tool's name follows, in backticks.
pub const NO_RULE: &str = "no rule allows this call of";

/// The name of the tool in questions that an MCP server asks a person during a call.
pub const SERVER_QUESTION: &str = "mcp_question";

/// An example call next to a rule, with the verdict its author expects. Tested when the rule's file
/// is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleExample {
    /// The rule.
    pub rule: Rule,
    /// The command, or the path.
    pub what: String,
    /// The expected verdict.
    pub said: ExampleVerdict,
    /// Line in the rule's file, counted from 1.
    pub line: u32,
}

/// The verdict that an example expects of its rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExampleVerdict {
    /// The rule matches this call: alone, it allows all of it, asks about it or denies it.
    Fits,
    /// It does not.
    Not,
}

/// Everything the broker judges a session's calls by.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct RuleSet {
    /// In the order of their files.
    pub rules: Vec<Rule>,
    /// For calls that match no rule.
    pub mode: PermissionMode,
    /// The person who can answer questions, if any.
    pub audience: Audience,
    /// The project directory, to which path patterns are relative.
    pub project: String,
}

impl RuleSet {
    /// No rule.
    #[must_use]
    pub fn empty() -> Self {
        let (mode, audience) = (PermissionMode::Ask, Audience::Person);
        Self { rules: Vec::new(), mode, audience, project: String::new() }
    }
}

/// The availability of a person to answer questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Audience {
    /// A person can answer.
    Person,
    /// Non-interactive: a call that would need an approval is refused with the reason.
    NonInteractive,
}

/// A call put to the broker.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct JudgedCall {
    /// The call.
    pub call: Call,
    /// The kind of its tool.
    pub kind: ToolKind,
    /// The text of the command, for tools that run one.
    pub command: Option<String>,
    /// The page of the web that it asks for, for tools that do.
    pub page: Option<Box<WebAddress>>,
    /// The probe's findings on its paths; absent for calls without paths, or if no rule could deny
    /// one.
    pub probe: Option<ProbeReport>,
    /// Its confinement in plain words, for the question.
    pub confinement: String,
    /// Rights beyond the session's that it asks for. A person gives them, or a rule that names the
    /// right; no rule for the command and no mode does.
    pub extra_rights: Vec<ExtraRight>,
    /// The hook that runs it after edits, for calls that no model requested. The hook allows the
    /// call unless a rule asks or denies.
    pub configured: Option<Rule>,
    /// Protected names that earlier calls left otherwise than they were, with the reasons: no rule and
    /// no mode lets a command run that no person was asked about with them.
    pub tampered: Box<[String]>,
    /// A hook wants a person to approve it, and why. No rule and no mode takes that back.
    pub asked: Option<Box<str>>,
    /// The terminal of the person who typed the command. No question is asked about it; a rule that denies it holds.
    pub typed_by: Option<Box<str>>,
    /// How far its effects reach. The mode `sandboxed` decides by it.
    pub reach: EffectReach,
}

/// How far the effects of a call reach: by its cage, and by what undo covers.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum EffectReach {
    /// It was not found out, since the session had another mode or the call needs no approval by it.
    Unknown,
    /// The full sandbox bounds it, without network, and undo covers what it may write in the project. The
    /// paths that a file tool names are judged apart.
    Undoable,
    /// They reach further. The list is never empty.
    Beyond(Vec<Effect>),
    /// The cage bounds it as in [`EffectReach::Undoable`]. The session has a mode that asks, so the store was not
    /// asked what undo covers.
    InSandbox,
}

/// An effect of a call beyond the sandbox of its project, or beyond undo.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Effect {
    /// Any, since the sandbox is a weaker one.
    WeakerSandbox(Tier),
    /// It has the whole network.
    Network,
    /// It reaches these hosts.
    Hosts(Vec<HostRule>),
    /// It writes in these directories beside the project.
    Outside(Vec<FilePath>),
    /// It changes the git directory, which undo leaves out.
    GitDirectory,
    /// It works on in the background, where its changes and those of others are not told apart.
    Background,
    /// A command that runs already gets input.
    Input,
    /// This tool of an MCP server does the work.
    ServerTool(String),
    /// Undo would not bring back what it changes, for this reason.
    NotUndone(String),
}

/// Why the broker decided as it did, for the record and the model.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Basis {
    /// A rule.
    Rule(Rule),
    /// The rules that grant rights beyond the session's, one per right, in order.
    Rights(Vec<Rule>),
    /// The session's mode.
    Mode(PermissionMode),
    /// The tool only looks.
    Query,
    /// A person, by the name of their terminal.
    Person(String),
    /// An approval was required, but the session is non-interactive; the text names the rule that
    /// asks.
    NobodyToAsk(String),
    /// The call itself cannot be judged, and why.
    Unjudgeable(String),
    /// The session's mode, of a command that runs a program whose name is only known when it runs.
    Opaque(PermissionMode),
    /// A person as `Person`, with words for the model beside the result.
    NotedByPerson {
        /// The name of their terminal.
        by: String,
        /// The words.
        note: String,
    },
    /// The mode `sandboxed`, by these bounds.
    Sandboxed(Bounded),
    /// A person typed the command, at the terminal of this name.
    Typed(String),
    /// A person answered the questions of the model.
    Answered {
        /// The name of their terminal.
        by: String,
        /// The questions with the answers, for the model.
        answers: String,
    },
}

/// The broker's answer.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Verdict {
    /// It may run.
    Allow(Basis),
    /// It may not; the text is for the model.
    Deny(Basis, String),
    /// A person must say.
    Ask(Question),
}

/// A question to the person.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Question {
    /// The call it is about; also the question's name.
    pub call: CallId,
    /// The tool.
    pub tool: String,
    /// Its arguments as JSON.
    pub input: String,
    /// The diff or the script.
    pub preview: String,
    /// Its confinement in plain words.
    pub confinement: String,
    /// Why it is asked.
    pub reason: String,
    /// Rights beyond the session's that this call asks for; granted to this call alone.
    pub widens: Vec<ExtraRight>,
    /// The answers that fit it besides a refusal.
    pub ask: Ask,
    /// When it expires, in milliseconds of Unix time; 0 until the supervisor has set it.
    pub deadline: u64,
    /// SHA-256 over tool, arguments, real paths and digests, confinement and widening: the answer
    /// is bound to it.
    pub digest: String,
}

impl Question {
    /// True for a call that changes what later sessions read: memories.
    #[must_use]
    pub fn keeps_memory(&self) -> bool {
        matches!(self.tool.as_str(), "memory_add" | "memory_remove")
    }

    /// True if its reason says more than that no rule allows the call.
    #[must_use]
    pub fn has_own_reason(&self) -> bool {
        self.reason != format!("{NO_RULE} `{}`", self.tool)
    }

    /// Rules that an answer may give besides its yes.
    #[must_use]
    pub fn rules(&self) -> &[String] {
        match &self.ask {
            Ask::Call { rules, .. } => rules,
            Ask::Plan { .. } | Ask::Form { .. } | Ask::Visit | Ask::Choose { .. } => &[],
        }
    }

    /// True if it is about a plan, which is approved with a mode.
    #[must_use]
    pub fn is_plan(&self) -> bool {
        matches!(self.ask, Ask::Plan { .. })
    }

    /// True if an MCP server asks it, during a call that runs already.
    #[must_use]
    pub fn is_of_server(&self) -> bool {
        matches!(self.ask, Ask::Form { .. } | Ask::Visit)
    }

    /// The questions that the model asks; none for another kind.
    #[must_use]
    pub fn of_model(&self) -> &[AskedQuestion] {
        match &self.ask {
            Ask::Choose { questions } => questions,
            Ask::Call { .. } | Ask::Plan { .. } | Ask::Form { .. } | Ask::Visit => &[],
        }
    }

    /// True if it is answered by filling in a form.
    #[must_use]
    pub fn is_form(&self) -> bool {
        matches!(self.ask, Ask::Form { .. })
    }
}

/// What is asked, with the answers that fit besides a refusal.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Ask {
    /// May the call run? Once, or with one of these rules.
    Call {
        /// Rules that would cover it, narrowest first. None where only over-broad ones would do, or where
        /// the answer is for this call alone.
        rules: Vec<String>,
        /// Modes that an answer may change to besides its yes: those that ask less about calls of this kind.
        modes: Vec<PermissionMode>,
    },
    /// Is the plan good? With one of these modes.
    Plan {
        /// The most careful one first.
        modes: Vec<PermissionMode>,
    },
    /// An MCP server has a form to fill in.
    Form {
        /// Its lines, with the defaults.
        lines: Vec<String>,
    },
    /// An MCP server wants a page to be visited.
    Visit,
    /// The model has questions. No call runs by the answers.
    Choose {
        /// At least one.
        questions: Vec<AskedQuestion>,
    },
}

/// A question of the model. Its texts are as people see them, and have no hidden characters.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct AskedQuestion {
    /// One or two words for what it is about; may be empty.
    pub header: String,
    /// The question.
    pub text: String,
    /// How many options an answer may name.
    pub picks: Picks,
    /// What may be chosen, beside words of one's own. No two have the same label.
    pub options: Vec<AskedOption>,
}

/// How many options an answer may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Picks {
    /// One.
    One,
    /// One or more.
    Several,
}

/// An option of a question of the model.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct AskedOption {
    /// Its name.
    pub label: String,
    /// What it means; may be empty.
    pub description: String,
}

/// The answer to one question of the model. It is never empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode)]
pub struct ChosenAnswer {
    /// The labels of the chosen options.
    pub labels: Vec<String>,
    /// Words of the person's own; may be empty.
    pub words: String,
}

/// A right beyond the session's, for one call.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ExtraRight {
    /// Network.
    Network,
    /// These hosts, through our proxy.
    Hosts(Vec<HostRule>),
    /// One more directory, a real path.
    Directory(FilePath),
    /// Write access to `.git/config` and similar files.
    GitAdmin,
    /// Signatures of git's commits and tags, by the person's ssh agent.
    GitSign,
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum PersonAnswer {
    /// This once.
    Once,
    /// Allow this, and all that this rule matches, until the session ends. The rule is one of the
    /// question's rules.
    Session(String),
    /// Allow this, and all that this rule matches in this project from now on; the rule is added to
    /// the user's file for this project. The rule is one of the question's rules.
    Always(String),
    /// The answers to a server's question: a line for each field, or a JSON object.
    Form(String),
    /// Yes to a plan or a call, and the session has this mode from then on. It is one of the question's modes.
    Mode(PermissionMode),
    /// No; the words, if any, are for the model.
    Deny(String),
    /// No, and the turn ends.
    Stop,
    /// As `Always`, for all projects: the rule is added to the user's own file.
    Everywhere(String),
    /// Yes, with words for the model.
    Noted(Consent, String),
    /// The answers to the model's questions, one for each.
    Chosen(Vec<ChosenAnswer>),
}

/// A yes that words for the model may go with.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Consent {
    /// As [`PersonAnswer::Once`].
    Once,
    /// As [`PersonAnswer::Session`].
    Session(String),
    /// As [`PersonAnswer::Always`].
    Always(String),
    /// As [`PersonAnswer::Everywhere`].
    Everywhere(String),
    /// As [`PersonAnswer::Mode`].
    Mode(PermissionMode),
}

impl PersonAnswer {
    /// This answer with words for the model, if it is a yes that they may go with and there are any.
    #[must_use]
    pub fn noted(self, note: &str) -> Self {
        let note = note.trim();
        let consent = match self.clone() {
            Self::Once => Consent::Once,
            Self::Session(rule) => Consent::Session(rule),
            Self::Always(rule) => Consent::Always(rule),
            Self::Everywhere(rule) => Consent::Everywhere(rule),
            Self::Mode(mode) => Consent::Mode(mode),
            Self::Form(_) | Self::Deny(_) | Self::Stop | Self::Noted(..) | Self::Chosen(_) => {
                return self;
            }
        };
        if note.is_empty() { self } else { Self::Noted(consent, note.to_owned()) }
    }

    /// The answer by itself, and the words for the model.
    #[must_use]
    pub fn split_note(self) -> (Self, Option<String>) {
        let Self::Noted(consent, note) = self else { return (self, None) };
        let answer = match consent {
            Consent::Once => Self::Once,
            Consent::Session(rule) => Self::Session(rule),
            Consent::Always(rule) => Self::Always(rule),
            Consent::Everywhere(rule) => Self::Everywhere(rule),
            Consent::Mode(mode) => Self::Mode(mode),
        };
        (answer, Some(note))
    }
}
