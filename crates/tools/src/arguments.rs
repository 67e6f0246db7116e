//! From what a model asked for to a call of a tool: real name, checked arguments, what a verdict
//! needs to know. For the session and the supervisor, and again for the runner.

use crate::coerce::{self, CoercionNotes};
use crate::control::visible;
use crate::dialect;
use crate::failure::FailureCode;
use crate::nearest::did_you_mean;
use crate::patch;
use crate::rights::GitSigning;
use crate::schema;
use crate::spec::{Alias, Caller, Tool, ToolDeclaration};
use crate::tool::specs;
use protocol::call::{Outcome, ToolResult};
use protocol::confinement::{GitSettings, Network};
use protocol::hosts::HostRule;
use protocol::web::WebAddress;
use serde_json::{Map, Value};
use std::path::Path;

/// Most bytes of what a result says about how its arguments were read.
const NOTE_BYTES: usize = 1000;

/// What a verdict needs to know about a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct JudgedFacts {
    /// The paths it names, as it names them.
    pub paths: Vec<String>,
    /// Those of them at which nothing is left after it.
    pub removed: Vec<String>,
    /// The command it runs.
    pub command: Option<String>,
    /// The network it asks for; `None` is the session's.
    pub network: Option<Network>,
    /// Hosts that it asks for beside the session's.
    pub hosts: Vec<HostRule>,
    /// Whether it asks to change git's settings; `None` does not.
    pub git: Option<GitSettings>,
    /// The signatures of git's commits and tags that it asks for.
    pub signing: GitSigning,
    /// One more directory that it asks for, as it names it.
    pub directory: Option<String>,
    /// The page that it asks for.
    pub page: Option<WebAddress>,
}

/// A call that is one.
#[derive(Debug, Clone)]
pub struct InterpretedCall {
    /// The tool.
    pub spec: &'static ToolDeclaration,
    /// Its arguments as JSON: an object, keys sorted, defaults of an alias put in.
    pub input: String,
    /// The paths it names, as it names them, in the order of its arguments.
    pub paths: Vec<String>,
    /// Those of them at which it leaves nothing.
    pub removed: Vec<String>,
    /// What of its arguments was read otherwise than it was written.
    pub note: Option<String>,
    /// The text of the command, for tools that run one.
    pub command: Option<String>,
    /// The network it asks for on its own; `None` takes the session's.
    pub network: Option<Network>,
    /// Hosts that it asks for on its own, beside the session's.
    pub hosts: Vec<HostRule>,
    /// What it asks to do with git's settings and hooks.
    pub git: GitSettings,
    /// Whether it asks for signatures of git's commits and tags.
    pub signing: GitSigning,
    /// One more directory that it asks for on its own, as it names it.
    pub directory: Option<String>,
    /// The page of the web that it asks for.
    pub page: Option<WebAddress>,
}

/// Why something is no call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCall {
    /// No tool and no alias has this name.
    #[error("there is no tool {name:?}")]
    UnknownTool {
        /// As called.
        name: String,
        /// Tools with a like name.
        nearest: Vec<&'static str>,
    },
    /// The arguments cannot be read as JSON.
    #[error("{tool}: the arguments are not JSON: {reason}")]
    NotJson {
        /// The tool.
        tool: &'static str,
        /// With line and column.
        reason: String,
    },
    /// The arguments are JSON, but no object.
    #[error("{tool}: the arguments must be a JSON object")]
    NotAnObject {
        /// The tool.
        tool: &'static str,
    },
    /// A field that the tool does not have.
    #[error("{tool}: unknown field {field:?}")]
    UnknownField {
        /// The tool.
        tool: &'static str,
        /// As given.
        field: String,
        /// The field that was probably meant.
        nearest: Option<String>,
        /// All that there are.
        known: Vec<String>,
    },
    /// A field that must be there.
    #[error("{tool}: the field {field:?} is missing")]
    MissingField {
        /// The tool.
        tool: &'static str,
        /// The field.
        field: String,
        /// What it takes.
        expected: String,
    },
    /// Of the right type, and still nothing that can be asked for.
    #[error("{tool}: {reason}")]
    Unfit {
        /// The tool.
        tool: &'static str,
        /// What, and how it should be.
        reason: String,
    },
    /// A value that the field does not take.
    #[error("{tool}: the field {field:?} must be {expected}, not {found}")]
    WrongType {
        /// The tool.
        tool: &'static str,
        /// The field.
        field: String,
        /// What it takes.
        expected: String,
        /// What was given.
        found: String,
    },
}

impl InvalidCall {
    /// The tool's real name, where there is such a tool.
    #[must_use]
    pub fn tool(&self) -> Option<&'static str> {
        match self {
            Self::UnknownTool { .. } => None,
            Self::NotJson { tool, .. }
            | Self::NotAnObject { tool }
            | Self::UnknownField { tool, .. }
            | Self::MissingField { tool, .. }
            | Self::Unfit { tool, .. }
            | Self::WrongType { tool, .. } => Some(tool),
        }
    }

    /// Its stable code.
    #[must_use]
    pub fn code(&self) -> FailureCode {
        match self {
            Self::UnknownTool { .. } => FailureCode::UnknownTool,
            Self::NotJson { .. }
            | Self::NotAnObject { .. }
            | Self::UnknownField { .. }
            | Self::MissingField { .. }
            | Self::Unfit { .. }
            | Self::WrongType { .. } => FailureCode::InvalidArguments,
        }
    }

    /// The way on.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::UnknownTool { nearest, .. } if !nearest.is_empty() => {
                format!("Did you mean {}?", nearest.join(" or "))
            }
            Self::UnknownTool { .. } => {
                let names: Vec<&str> = offered().map(|spec| spec.name).collect();
                format!("The tools are {}.", names.join(", "))
            }
            Self::NotJson { .. } | Self::NotAnObject { .. } => {
                "Send the arguments as one JSON object.".to_owned()
            }
            Self::UnknownField { nearest: Some(near), .. } => format!("Did you mean {near:?}?"),
            Self::UnknownField { known, .. } => format!("The fields are {}.", known.join(", ")),
            Self::MissingField { expected, .. } => format!("It must be {expected}."),
            Self::Unfit { .. } | Self::WrongType { .. } => {
                "Nothing was done; correct the field.".to_owned()
            }
        }
    }

    /// The result of a call that was none, for the model and the record.
    #[must_use]
    pub fn result(&self) -> ToolResult {
        let (said, code) = (visible(&self.to_string()).into_owned(), self.code().name());
        let (tool, message) = match (self, self.tool()) {
            (Self::UnknownTool { name, .. }, _) => (visible(name).into_owned(), said.as_str()),
            (_, tool) => {
                let tool = tool.unwrap_or_default();
                (tool.to_owned(), said.strip_prefix(&format!("{tool}: ")).unwrap_or(&said))
            }
        };
        let hint = visible(&self.hint()).into_owned();
        ToolResult::error(Outcome::Invalid, code, &tool, message, &hint)
    }
}

/// Reads a call: alias to real name, arguments checked and normalised. What it gives reads as itself.
///
/// # Errors
/// [`InvalidCall`], which names the field, or the tools nearest to an unknown name.
pub fn interpret(name: &str, input_json: &str) -> Result<InterpretedCall, InvalidCall> {
    interpret_at(name, input_json, Path::new(""))
}

/// The same for a call as a model wrote it: a directory that it names for a command is left out where
/// it is the project's.
///
/// # Errors
/// As [`interpret`].
pub fn interpret_at(
    name: &str,
    input_json: &str,
    project: &Path,
) -> Result<InterpretedCall, InvalidCall> {
    let (spec, alias) = find(name)?;
    let mut input = object(spec, input_json)?;
    if let Some(alias) = alias {
        for (field, value) in object(spec, alias.defaults)? {
            input.entry(field).or_insert(value);
        }
    }
    let real = dialect::reshape(spec.name, dialect::bare(name), &mut input, project);
    let spec = match real == spec.name {
        true => spec,
        false => find(real)?.0,
    };
    let mut notes = CoercionNotes::default();
    let schema: Value = serde_json::from_str(&(spec.schema)())
        .map_err(|error| InvalidCall::NotJson { tool: spec.name, reason: error.to_string() })?;
    let input = coerce::coerce(spec.name, &schema, input, &mut notes)?;
    let (input, facts) = (spec.check)(Value::Object(input))?;
    let JudgedFacts { paths, removed, command, network, hosts, git, signing, directory, page } =
        facts;
    let (git, note) = (git.unwrap_or(GitSettings::Kept), notes_line(&notes));
    Ok(InterpretedCall {
        spec,
        input,
        paths,
        removed,
        note,
        command,
        network,
        hosts,
        git,
        signing,
        directory,
        page,
    })
}

/// The notes in one line for the result.
fn notes_line(notes: &CoercionNotes) -> Option<String> {
    let mut text = notes.0.join("; ");
    if text.len() > NOTE_BYTES {
        let end = (0..=NOTE_BYTES).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    let text = visible(&text).into_owned();
    (!text.is_empty()).then(|| format!("[arguments: {text}]"))
}

/// Checks and normalises the arguments of one tool; see [`ToolDeclaration`].
pub(crate) fn check<T: Tool>(input: Value) -> Result<(String, JudgedFacts), InvalidCall> {
    let Value::Object(fields) = &input else {
        return Err(InvalidCall::NotAnObject { tool: T::NAME });
    };
    schema::check(T::NAME, &schema::value_of::<T::Input>(), fields)?;
    // Sorted here and not by serde_json's map, whose order depends on how it was built.
    let sorted: std::collections::BTreeMap<_, _> = fields.iter().collect();
    let unreadable = |error: serde_json::Error| InvalidCall::NotJson {
        tool: T::NAME,
        reason: error.to_string(),
    };
    let text = serde_json::to_string(&sorted).map_err(unreadable)?;
    // It fits the schema: what is wrong now is what it says.
    let parsed: T::Input = serde_json::from_value(input)
        .map_err(|error| InvalidCall::Unfit { tool: T::NAME, reason: error.to_string() })?;
    Ok((text, T::facts(&parsed)))
}

fn object(spec: &ToolDeclaration, json: &str) -> Result<Map<String, Value>, InvalidCall> {
    // An empty string is what vendors stream for a call without arguments.
    let json = if json.trim().is_empty() { "{}" } else { json };
    if let Some(text) = patch::bare(json).filter(|_| spec.name == patch::TOOL) {
        return Ok(Map::from_iter([("patch".to_owned(), Value::from(text))]));
    }
    let value: Value = serde_json::from_str(json)
        .map_err(|error| InvalidCall::NotJson { tool: spec.name, reason: error.to_string() })?;
    match value {
        Value::Object(map) => Ok(map),
        // Some models encode the object twice.
        Value::String(text) if text.trim_start().starts_with(['{', '*']) => match json == text {
            true => Err(InvalidCall::NotAnObject { tool: spec.name }),
            false => object(spec, &text),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(InvalidCall::NotAnObject { tool: spec.name })
        }
    }
}

/// Those that models are told of.
fn offered() -> impl Iterator<Item = &'static ToolDeclaration> {
    specs().iter().filter(|spec| spec.caller == Caller::Model)
}

/// As it is written, else without regard to case and to what joins its words.
fn find(name: &str) -> Result<(&'static ToolDeclaration, Option<&'static Alias>), InvalidCall> {
    let said = dialect::bare(name);
    let folded = dialect::fold(&said.chars().take(80).collect::<String>());
    let same: [&dyn Fn(&str) -> bool; 2] =
        [&|known| known == said, &|known| !folded.is_empty() && dialect::fold(known) == folded];
    for same in same {
        for spec in specs() {
            if same(spec.name) {
                return Ok((spec, None));
            }
            if let Some(alias) = spec.aliases.iter().find(|alias| same(alias.name)) {
                return Ok((spec, Some(alias)));
            }
        }
    }
    let all = offered().flat_map(|spec| {
        std::iter::once(spec.name).chain(spec.aliases.iter().map(|alias| alias.name))
    });
    Err(InvalidCall::UnknownTool {
        name: name.chars().take(80).collect(),
        nearest: did_you_mean(said, all),
    })
}
