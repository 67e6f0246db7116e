//! From what a model asked for to a call of a tool: real name, checked arguments, what a verdict
//! needs to know. For the session and the supervisor, and again for the runner.

use crate::failure::Code;
use crate::nearest::nearest;
use crate::schema;
use crate::spec::{Alias, Caller, Spec, Tool};
use crate::tool::specs;
use protocol::call::{Outcome, ToolResult};
use protocol::confinement::{GitSettings, Network};
use protocol::hosts::HostRule;
use protocol::web::WebAddress;
use serde_json::{Map, Value};

/// What a verdict needs to know about a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The paths it names, as it names them.
    pub paths: Vec<String>,
    /// The command it runs.
    pub command: Option<String>,
    /// The network it asks for; `None` is the session's.
    pub network: Option<Network>,
    /// Hosts that it asks for beside the session's.
    pub hosts: Vec<HostRule>,
    /// Whether it asks to change git's settings; `None` does not.
    pub git: Option<GitSettings>,
    /// One more directory that it asks for, as it names it.
    pub directory: Option<String>,
    /// The page that it asks for.
    pub page: Option<WebAddress>,
}

/// A call that is one.
#[derive(Debug, Clone)]
pub struct Interpreted {
    /// The tool.
    pub spec: &'static Spec,
    /// Its arguments as JSON: an object, keys sorted, defaults of an alias put in.
    pub input: String,
    /// The paths it names, as it names them, in the order of its arguments.
    pub paths: Vec<String>,
    /// The text of the command, for tools that run one.
    pub command: Option<String>,
    /// The network it asks for on its own; `None` takes the session's.
    pub network: Option<Network>,
    /// Hosts that it asks for on its own, beside the session's.
    pub hosts: Vec<HostRule>,
    /// What it asks to do with git's settings and hooks.
    pub git: GitSettings,
    /// One more directory that it asks for on its own, as it names it.
    pub directory: Option<String>,
    /// The page of the web that it asks for.
    pub page: Option<WebAddress>,
}

/// Why something is no call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
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

impl Invalid {
    /// Its stable code.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::UnknownTool { .. } => Code::UnknownTool,
            Self::NotJson { .. }
            | Self::NotAnObject { .. }
            | Self::UnknownField { .. }
            | Self::MissingField { .. }
            | Self::Unfit { .. }
            | Self::WrongType { .. } => Code::InvalidArguments,
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
        ToolResult {
            outcome: Outcome::Invalid,
            text: format!("Error [{}]: {self}.\nHint: {}", self.code().name(), self.hint()),
            summary: self.to_string(),
            is_error: true,
            code: Some(self.code().name().to_owned()),
        }
    }
}

/// Reads a call: alias to real name, arguments checked and normalised.
///
/// # Errors
/// [`Invalid`], which names the field, or the tools nearest to an unknown name.
pub fn interpret(name: &str, input_json: &str) -> Result<Interpreted, Invalid> {
    let (spec, alias) = find(name)?;
    let mut input = object(spec, input_json)?;
    // Models often send null for an argument that they leave out.
    input.retain(|_, value| !value.is_null());
    if let Some(alias) = alias {
        for (field, value) in object(spec, alias.defaults)? {
            input.entry(field).or_insert(value);
        }
    }
    let (input, facts) = (spec.check)(Value::Object(input))?;
    let Facts { paths, command, network, hosts, git, directory, page } = facts;
    let git = git.unwrap_or(GitSettings::Kept);
    Ok(Interpreted { spec, input, paths, command, network, hosts, git, directory, page })
}

/// Checks and normalises the arguments of one tool; see [`Spec`].
pub(crate) fn check<T: Tool>(input: Value) -> Result<(String, Facts), Invalid> {
    let Value::Object(fields) = &input else {
        return Err(Invalid::NotAnObject { tool: T::NAME });
    };
    schema::check(T::NAME, &schema::value_of::<T::Input>(), fields)?;
    // Sorted here and not by serde_json's map, whose order depends on how it was built.
    let sorted: std::collections::BTreeMap<_, _> = fields.iter().collect();
    let unreadable =
        |error: serde_json::Error| Invalid::NotJson { tool: T::NAME, reason: error.to_string() };
    let text = serde_json::to_string(&sorted).map_err(unreadable)?;
    // It fits the schema: what is wrong now is what it says.
    let parsed: T::Input = serde_json::from_value(input)
        .map_err(|error| Invalid::Unfit { tool: T::NAME, reason: error.to_string() })?;
    Ok((text, T::facts(&parsed)))
}

fn object(spec: &Spec, json: &str) -> Result<Map<String, Value>, Invalid> {
    // An empty string is what vendors stream for a call without arguments.
    let json = if json.trim().is_empty() { "{}" } else { json };
    let value: Value = serde_json::from_str(json)
        .map_err(|error| Invalid::NotJson { tool: spec.name, reason: error.to_string() })?;
    match value {
        Value::Object(map) => Ok(map),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(Invalid::NotAnObject { tool: spec.name })
        }
    }
}

/// Those that models are told of.
fn offered() -> impl Iterator<Item = &'static Spec> {
    specs().iter().filter(|spec| spec.caller == Caller::Model)
}

fn find(name: &str) -> Result<(&'static Spec, Option<&'static Alias>), Invalid> {
    for spec in specs() {
        if spec.name == name {
            return Ok((spec, None));
        }
        if let Some(alias) = spec.aliases.iter().find(|alias| alias.name == name) {
            return Ok((spec, Some(alias)));
        }
    }
    let all = offered().flat_map(|spec| {
        std::iter::once(spec.name).chain(spec.aliases.iter().map(|alias| alias.name))
    });
    Err(Invalid::UnknownTool { name: name.chars().take(80).collect(), nearest: nearest(name, all) })
}
