//! Turns a model's tool call into a checked call: real name, checked arguments, the facts for the
//! verdict. The session, the supervisor and the runner use it.

use crate::arguments::coerce::{self, CoercionNotes};
use crate::arguments::command_rights::GitSigning;
use crate::arguments::dialect;
use crate::arguments::facts::{CallAbout, ConfiguredRun, JudgedFacts, RunsIn, TaskRequest};
use crate::arguments::invalid::InvalidCall;
use crate::arguments::reshape::reshape;
use crate::patch;
use crate::spec::{Alias, Caller, CheckedInput, ToolDeclaration, TypedInput};
use crate::tool::specs;
use protocol::confinement::{GitSettings, Network, Profile};
use protocol::did_you_mean::nearest;
use protocol::hidden::line_for_model;
use protocol::hosts::HostRule;
use protocol::mcp;
use protocol::web::WebAddress;
use serde_json::{Map, Value};
use std::path::Path;

/// Limit for the bytes of the note about changed arguments.
const NOTE_BYTES: usize = 1000;

/// A call that is one.
#[derive(Debug, Clone)]
pub struct InterpretedCall {
    /// The tool.
    pub spec: &'static ToolDeclaration,
    /// The cage it runs in: the tool's, or one for calls like this.
    pub profile: Profile,
    /// Its arguments as JSON: an object, keys sorted, defaults of an alias put in.
    pub input: String,
    /// The same in the type of the tool.
    pub typed: TypedInput,
    /// The paths it names, as it names them, in the order of its arguments.
    pub paths: Vec<String>,
    /// The paths among them that it removes.
    pub removed: Vec<String>,
    /// A note about arguments that were converted.
    pub note: Option<String>,
    /// The text of the command, for tools that run one.
    pub command: Option<String>,
    /// The network it asks for on its own; `None` takes the session's.
    pub network: Option<Network>,
    /// Hosts that it asks for on its own, beside the session's.
    pub hosts: Vec<HostRule>,
    /// The access to git's settings and hooks that it requests.
    pub git: GitSettings,
    /// The signatures of git commits and tags that it requests.
    pub signing: GitSigning,
    /// One more directory that it asks for on its own, as it names it.
    pub directory: Option<String>,
    /// The page of the web that it asks for.
    pub page: Option<WebAddress>,
    /// Whether the conversation waits for it.
    pub runs_in: RunsIn,
    /// What it asks another call.
    pub about: Option<CallAbout>,
    /// The work that it gives to a sub-agent.
    pub task: Option<Box<TaskRequest>>,
    /// What it runs by the configuration.
    pub configured: Option<ConfiguredRun>,
    /// Bytes of text that it has the store keep for later sessions.
    pub stored_bytes: u64,
}

/// Reads a call: resolves aliases, checks and normalises the arguments. Its output, read again,
/// stays the same.
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
    if name.starts_with(mcp::PREFIX) {
        return interpret_at(mcp::CALL, &of_server(name, input_json)?, project);
    }
    let (spec, alias) = find(name)?;
    let mut input = object(spec, input_json)?;
    if let Some(alias) = alias {
        for (field, value) in object(spec, alias.defaults)? {
            input.entry(field).or_insert(value);
        }
    }
    let real = reshape(spec.name, dialect::bare(name), &mut input, project);
    let spec = match real == spec.name {
        true => spec,
        false => find(real)?.0,
    };
    let mut notes = CoercionNotes::default();
    let schema = (spec.schema)();
    let input = coerce::coerce(spec.name, spec.field_aliases, &schema, input, &mut notes)?;
    let CheckedInput { text: input, facts, typed } = (spec.check)(Value::Object(input))?;
    let JudgedFacts {
        profile,
        paths,
        removed,
        command,
        network,
        hosts,
        git,
        signing,
        directory,
        page,
        runs_in,
        about,
        task,
        configured,
        stored_bytes,
    } = facts;
    let (git, note) = (git.unwrap_or(GitSettings::Kept), notes_line(&notes));
    let profile = profile.unwrap_or(spec.profile);
    Ok(InterpretedCall {
        spec,
        profile,
        input,
        typed,
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
        runs_in,
        about,
        task,
        configured,
        stored_bytes,
    })
}

/// The call of a server's tool, in the terms of the one tool that stands for all of them.
fn of_server(name: &str, input_json: &str) -> Result<String, InvalidCall> {
    let (spec, _) = find(mcp::CALL)?;
    let arguments = Value::Object(object(spec, input_json)?).to_string();
    Ok(serde_json::json!({ "tool": name, "arguments": arguments }).to_string())
}

/// The notes in one line for the result.
fn notes_line(notes: &CoercionNotes) -> Option<String> {
    let mut text = notes.0.join("; ");
    if text.len() > NOTE_BYTES {
        let end = (0..=NOTE_BYTES).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    let text = line_for_model(&text).into_owned();
    (!text.is_empty()).then(|| format!("[arguments: {text}]"))
}

fn object(spec: &ToolDeclaration, json: &str) -> Result<Map<String, Value>, InvalidCall> {
    // Vendors stream an empty string for a call without arguments.
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

/// The tools that models can call.
fn offered() -> impl Iterator<Item = &'static ToolDeclaration> {
    specs().iter().filter(|spec| spec.caller == Caller::Model)
}

/// Tries an exact match first, then one that ignores case, `_` and `-`.
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
        nearest: nearest(said, all),
        known: offered().map(|spec| spec.name).collect(),
    })
}
