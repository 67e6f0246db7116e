//! What a tool declares about itself: the trait behind a line of the table.

use crate::answer::Answer;
use crate::arguments::{Facts, Invalid};
use crate::failure::Failure;
use crate::site::Site;
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Another name under which models and people call a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alias {
    /// The other name.
    pub name: &'static str,
    /// JSON object of arguments that this name implies where the call does not give them.
    pub defaults: &'static str,
}

impl Alias {
    /// A name that implies nothing.
    pub(crate) const fn plain(name: &'static str) -> Self {
        Self { name, defaults: "{}" }
    }
}

/// The program that runs a tool's calls, one process a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Runner {
    /// Files, git, commands.
    Tool,
    /// Syntax trees. A program of its own, so that no other links the grammars.
    Code,
    /// The network, for calls that have none.
    Web,
}

impl Runner {
    /// Every runner.
    pub const ALL: [Self; 3] = [Self::Tool, Self::Code, Self::Web];

    /// Its executable.
    #[must_use]
    pub const fn executable(self) -> &'static str {
        match self {
            Self::Tool => "agentd-tool",
            Self::Code => "agentd-code",
            Self::Web => "agentd-web",
        }
    }
}

/// What a tool's arguments rest on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Premise {
    /// Nothing that the model would have to know.
    Nothing,
    /// The files that it names, as the model last read or wrote them.
    FilesAsRead,
}

/// Who calls a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// Models, which are told of it.
    Model,
    /// The conversation alone, on its own account.
    Conversation,
}

/// For how long a tool's answer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lasting {
    /// It is asked anew each time.
    Never,
    /// While every file that it was made from is as it was. The tool notes each on its trail.
    WhileUnchanged,
}

/// One tool as the table has it, without the code that runs it.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    /// The real name.
    pub name: &'static str,
    /// Whether it looks or changes.
    pub kind: ToolKind,
    /// The cage its calls run in.
    pub profile: Profile,
    /// The program that runs it.
    pub runner: Runner,
    /// What its arguments rest on.
    pub premise: Premise,
    /// For how long its answer holds.
    pub lasting: Lasting,
    /// Who calls it.
    pub caller: Caller,
    /// The program that has to be installed; the tool is not offered where it is not.
    pub program: Option<&'static str>,
    /// What the model is told.
    pub description: &'static str,
    /// Other names.
    pub aliases: &'static [Alias],
    /// JSON schema of its arguments, the same bytes at every call.
    pub schema: fn() -> String,
    pub(crate) check: fn(serde_json::Value) -> Result<(String, Facts), Invalid>,
}

impl Spec {
    /// As which of the two a call of it is judged: what changes nothing but agentd's own notes
    /// is never asked about, though it waits for its neighbours as a change does.
    #[must_use]
    pub fn judged_as(&self) -> ToolKind {
        match self.profile {
            Profile::Store | Profile::Session => ToolKind::Query,
            Profile::Probe
            | Profile::Query
            | Profile::Mutate
            | Profile::Command
            | Profile::Verify
            | Profile::Format
            | Profile::Git
            | Profile::GitLook
            | Profile::Broker
            | Profile::Provider
            | Profile::Web => self.kind,
        }
    }
}

/// What a verdict on a change is bound to, at each path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// The file there, whatever links lead to it.
    Content,
    /// All that would be gone: a file, a directory with what is in it, a link itself.
    Removal,
}

/// A tool. `run` is reached through a table of its own, so that a program that only reads
/// [`Spec`]s does not link it.
pub(crate) trait Tool {
    /// Its arguments; the doc comments of the fields are what the model reads about them.
    type Input: DeserializeOwned + Serialize + JsonSchema;
    /// The real name.
    const NAME: &'static str;
    /// Whether it looks or changes.
    const KIND: ToolKind;
    /// The cage its calls run in.
    const PROFILE: Profile;
    /// What the model is told.
    const DESCRIPTION: &'static str;
    /// Other names.
    const ALIASES: &'static [Alias];

    /// The program that runs it.
    const RUNNER: Runner = Runner::Tool;

    /// The program that has to be installed.
    const PROGRAM: Option<&'static str> = None;

    /// What its arguments rest on.
    const PREMISE: Premise = Premise::Nothing;

    /// For how long its answer holds.
    const LASTING: Lasting = Lasting::Never;

    /// Who calls it.
    const CALLER: Caller = Caller::Model;

    /// What the look before a verdict sees at a path.
    const LOOK: Look = Look::Content;

    /// What a verdict needs to know about a call.
    fn facts(input: &Self::Input) -> Facts;

    /// The unified diff that the call would make; empty for tools that make none.
    fn preview(_input: Self::Input, _site: &Site<'_>) -> Result<String, Failure> {
        Ok(String::new())
    }

    /// Does it. Nothing is changed where this fails, except by a command.
    fn run(input: Self::Input, site: &mut Site<'_>) -> Result<Answer, Failure>;
}

/// The table's entry for a tool.
pub(crate) const fn spec_of<T: Tool>() -> Spec {
    Spec {
        name: T::NAME,
        kind: T::KIND,
        profile: T::PROFILE,
        runner: T::RUNNER,
        premise: T::PREMISE,
        lasting: T::LASTING,
        caller: T::CALLER,
        program: T::PROGRAM,
        description: T::DESCRIPTION,
        aliases: T::ALIASES,
        schema: crate::schema::text_of::<T::Input>,
        check: crate::arguments::check::<T>,
    }
}

/// The working half of a tool.
#[derive(Clone, Copy)]
pub(crate) struct Works {
    /// The tool's real name.
    pub name: &'static str,
    /// See [`Tool::LOOK`].
    pub look: Look,
    /// See [`Tool::preview`]; the input is normalised JSON.
    pub preview: fn(&str, &Site<'_>) -> Result<String, Failure>,
    /// See [`Tool::run`]; the input is normalised JSON.
    pub run: fn(&str, &mut Site<'_>) -> Result<Answer, Failure>,
}

/// The working half of `T`.
pub(crate) const fn works_of<T: Tool>() -> Works {
    Works {
        name: T::NAME,
        look: T::LOOK,
        preview: |input, site| T::preview(parsed::<T>(input)?, site),
        run: |input, site| T::run(parsed::<T>(input)?, site),
    }
}

/// The arguments, which `interpret` has checked before.
fn parsed<T: Tool>(input: &str) -> Result<T::Input, Failure> {
    serde_json::from_str(input).map_err(|error| {
        Failure::new(
            crate::Code::InvalidArguments,
            format!("the arguments do not fit: {error}"),
            "",
        )
    })
}
