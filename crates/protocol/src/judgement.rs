//! Rules, what they are asked about, and what they answer.

use crate::call::{Call, Probe};
use crate::confinement::FilePath;
use crate::hosts::HostRule;
use crate::ids::CallId;
use crate::web::WebAddress;
use crate::{Decode, Encode};

/// Whether a tool looks or changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum ToolKind {
    /// Looks. Allowed unless a rule denies it; never a question.
    Query,
    /// Changes things. Follows the rules and the mode.
    Mutation,
}

/// What happens to a mutation that no rule speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Mode {
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
}

impl Mode {
    /// As written in configuration and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::AcceptEdits => "accept-edits",
            Self::Plan => "plan",
            Self::Auto => "auto",
            Self::DontAsk => "dont-ask",
        }
    }

    /// The mode of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Ask, Self::AcceptEdits, Self::Plan, Self::Auto, Self::DontAsk]
            .into_iter()
            .find(|mode| mode.name() == name)
    }
}

/// What a rule says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum RuleEffect {
    /// Never.
    Deny,
    /// Ask a person, whatever the mode.
    Ask,
    /// Let it run.
    Allow,
}

/// One rule and where it is written.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Rule {
    /// What it says.
    pub effect: RuleEffect,
    /// `tool:pattern`, as written.
    pub text: String,
    /// The file it stands in, or `built-in`, `flag`.
    pub file: String,
    /// Counted from 1; 0 where there is no file.
    pub line: u32,
}

/// A call beside a rule, with what its author says of the two. Tried when the rule's file is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// The rule.
    pub rule: Rule,
    /// The command, or the path.
    pub what: String,
    /// What is said of it.
    pub said: Said,
    /// Where it stands in the rule's file, counted from 1.
    pub line: u32,
}

/// What an example says of its rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// The rule speaks of this call: alone it allows all of it, or asks about or denies it.
    Fits,
    /// It does not.
    Not,
}

/// Everything the broker judges a session's calls by.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct RuleSet {
    /// In the order of their files.
    pub rules: Vec<Rule>,
    /// For what no rule speaks of.
    pub mode: Mode,
    /// Whether a person can be asked at all.
    pub audience: Audience,
    /// The project directory, to which path patterns are relative.
    pub project: String,
}

/// Whether anybody is there to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Audience {
    /// A person can answer.
    Person,
    /// Nobody can: what would be asked is refused with its reason.
    Nobody,
}

/// A call put to the broker.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Case {
    /// The call.
    pub call: Call,
    /// Whether its tool looks or changes.
    pub kind: ToolKind,
    /// The text of the command, for tools that run one.
    pub command: Option<String>,
    /// The page of the web that it asks for, for tools that do.
    pub page: Option<Box<WebAddress>>,
    /// What was found at its paths; absent for calls that name none or that no rule could deny.
    pub probe: Option<Probe>,
    /// Its confinement in plain words, for the question.
    pub confinement: String,
    /// Rights beyond the session's that it asks for. A person gives them, or a rule that names the
    /// right; no rule for the command and no mode does.
    pub widens: Vec<Widening>,
    /// What has it run behind edits, for calls that no model asked for: that allows it, unless a rule
    /// asks or denies.
    pub configured: Option<Rule>,
    /// Protected names that earlier calls left otherwise than they were, with the reasons: no rule and
    /// no mode lets a command run that no person was asked about with them.
    pub tampered: Box<[String]>,
}

/// Why the broker decided as it did, for the record and the model.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Basis {
    /// A rule.
    Rule(Rule),
    /// Rules that give what the call asks for beyond its session, one for each right in their order.
    Rights(Vec<Rule>),
    /// The session's mode.
    Mode(Mode),
    /// The tool only looks.
    Query,
    /// A person, by the name of their terminal.
    Person(String),
    /// A question that nobody could be asked; the text names what would have asked.
    NobodyToAsk(String),
    /// The call itself cannot be judged, and why.
    Unjudgeable(String),
    /// The session's mode, of a command that runs a program whose name is only known when it runs.
    Opaque(Mode),
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

/// What a person is asked.
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
    pub widens: Vec<Widening>,
    /// Rules that would cover it, for an answer that holds longer. Narrowest first; none where
    /// only over-broad ones would do.
    pub offers: Vec<String>,
    /// When it expires, in milliseconds of Unix time; 0 until the supervisor has set it.
    pub deadline: u64,
    /// SHA-256 over tool, arguments, real paths and digests, confinement and widening: the answer
    /// is bound to it.
    pub digest: String,
}

/// A right beyond the session's, for one call.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Widening {
    /// Network.
    Network,
    /// These hosts, through our proxy.
    Hosts(Vec<HostRule>),
    /// One more directory, a real path.
    Directory(FilePath),
    /// Writing what `.git/config` and its like hold.
    GitAdmin,
    /// Signatures of git's commits and tags, by the person's ssh agent.
    GitSign,
}

/// What a person answered.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Answer {
    /// This once.
    Once,
    /// This, and what this rule covers, until the session ends. One of the question's offers.
    Session(String),
    /// This, and what this rule covers from now on: it goes into the user's file. One of the
    /// question's offers.
    Always(String),
    /// No; the words, if any, are for the model.
    Deny(String),
    /// No, and the turn ends.
    Stop,
}
