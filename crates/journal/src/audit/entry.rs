//! The audit records of a call.

use crate::{
    BasisRecord, Digest, Enforced, Level, Limits, Outcome, ProcessUsage, ProxyConnection, Refusal,
    StoredPath, Tier, ToolKind,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A record with its place in the chain.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AuditEntry {
    /// Counted from 1 without gaps; equals the line's number.
    pub seq: u64,
    /// When it was written, in milliseconds of Unix time.
    pub time: u64,
    /// The record.
    #[serde(flatten)]
    pub record: AuditRecord,
    /// The hash of the record before it.
    pub prev: Digest,
    /// Its own.
    pub hash: Digest,
}

/// The two records of a call, and the records about the log itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum AuditRecord {
    /// The verdict on a call.
    Decided(DecidedRecord),
    /// The call ended, or was found cut short.
    Ended(EndedRecord),
    /// The oldest records were removed, since the log had reached its bounds.
    Removed(RemovedRecord),
    /// A person opened a port of a command's network to this machine.
    PortOpened(PortOpenedRecord),
    /// A record newer than this build, as it is on disk.
    #[serde(skip_deserializing, untagged)]
    Unknown(Map<String, Value>),
}

/// A request and its verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecidedRecord {
    /// The session that asked.
    pub session: String,
    /// Its turn, by the number of its prompt counted from 1.
    pub turn: u32,
    /// The request to the model whose answer holds the call, counted from 1 over the session.
    pub round: u32,
    /// The call's number in the session.
    pub call: u32,
    /// The tool's real name.
    pub tool: String,
    /// Query or mutation.
    pub tool_kind: ToolKind,
    /// All of its arguments, as JSON text.
    pub input: String,
    /// Digest of the script or command, for every verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<Digest>,
    /// Its text. Absent in records of agentd 0.1, which stored it in a file beside the log
    /// ([`crate::script`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script_text: Option<String>,
    /// The answer.
    pub decision: DecisionRecord,
    /// The rule, mode or person behind it.
    pub basis: BasisRecord,
    /// The policy asked of the cage; absent where none was drawn up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested: Option<PolicyRecord>,
    /// Rights beyond its session's that it asked for, for itself alone, in words. They are part of
    /// the decision: given where it may run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rights: Vec<String>,
}

/// The verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionRecord {
    /// It may run.
    Allowed,
    /// It may not.
    Denied,
    /// Denied: no answer came in time.
    Expired,
}

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedRecord {
    /// The session that asked.
    pub session: String,
    /// The call's number in the session.
    pub call: u32,
    /// The tool's real name.
    pub tool: String,
    /// How it ended; exit code or signal are in it.
    pub outcome: Outcome,
    /// The stable word for the kind of failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The enforced cage; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enforced: Option<Enforced>,
    /// The runner's process id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner_pid: Option<u32>,
    /// The command's, as the host numbers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_pid: Option<u32>,
    /// When it was let go, in milliseconds of Unix time; absent where it was not, or it is not
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<u64>,
    /// When its tree was found dead, in milliseconds of Unix time.
    pub ended: u64,
    /// Resources used by its processes.
    #[serde(default)]
    pub usage: ProcessUsage,
    /// The first refusals of the kernel, in order.
    #[serde(default)]
    pub refusals: Vec<Refusal>,
    /// How many more were refused after those.
    #[serde(default)]
    pub refusals_uncounted: u64,
    /// Protected files that it changed or created, each with its repair, as text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tampered: Vec<String>,
    /// Protected names that it changed by a right that it was given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub granted: Vec<String>,
    /// How often each key signed commits and tags, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signed: Vec<String>,
    /// The program that a tool for files started. A command's is its decision's script.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ran: Vec<String>,
    /// The first decisions of the allow-list proxy, in order; only with an allow-list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connections: Vec<ProxyConnection>,
    /// How many more it decided after those.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub connections_uncounted: u64,
    /// Why those are not all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections_cut: Option<String>,
    /// The call of this session whose answer was given again, proven fresh; no process ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recalled: Option<u32>,
    /// The change that the store made for it in the memory of a session, a project or a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<StoredRecord>,
    /// SHA-256 of the result's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Digest>,
}

/// A port of a command in the background that a person opened to this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortOpenedRecord {
    /// The command's session.
    pub session: String,
    /// The call that made the network, by its number in the session.
    pub call: u32,
    /// The port in that network.
    pub port: u16,
    /// The person's terminal.
    pub by: String,
}

/// A change that the store made for a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredRecord {
    /// The text with its id and scope, in the store's words.
    pub what: String,
    /// Bytes of text that it wrote; 0 where it removed some.
    pub bytes: u64,
}

/// Which records were removed: all up to one, which this names by its hash. So the log can begin behind
/// that one and nowhere else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedRecord {
    /// The first removed record.
    pub from: u64,
    /// The last removed record.
    pub to: u64,
    /// The last one's hash, which the first that stays goes on from.
    pub to_hash: Digest,
    /// Time of the record after the last removed one, in milliseconds of Unix time. Every removed
    /// record is older.
    pub before: u64,
    /// Which bound was reached.
    pub bound: RetentionBound,
}

/// The retention bound that caused a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetentionBound {
    /// Bytes of its files and of the texts kept beside them.
    Size,
    /// Age of its records.
    Age,
}

/// The requested confinement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyRecord {
    /// The named policy.
    pub profile: String,
    /// The project directory.
    pub project: StoredPath,
    /// Directories granted beside it.
    pub added: Vec<StoredPath>,
    /// The session's temporary directory.
    pub temp: StoredPath,
    /// The person's home, from which tool chains are readable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<StoredPath>,
    /// Variables that say where the person keeps tool chains, and where.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_homes: Vec<(String, StoredPath)>,
    /// Paths that no grant may cover.
    #[serde(default)]
    pub withheld: Vec<StoredPath>,
    /// Network of a command: `off`, `on`, `allow`.
    pub network: String,
    /// The hosts of its allow-list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Access to git's settings and hooks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub git_settings: bool,
    /// No stronger cage than this was tried.
    pub highest_tier: Tier,
    /// Action where a rule cannot be enforced.
    pub level: Level,
    /// Resource limits; zero means unlimited.
    pub limits: Limits,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A call of an MCP server's tool.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ServerCall {
    /// The tool's name as models and rules have it.
    pub tool: String,
    /// Its arguments, as JSON text.
    pub arguments: String,
}

impl DecidedRecord {
    /// The call of a server's tool, if it is one: those have one tool for all.
    #[must_use]
    pub fn server_call(&self) -> Option<ServerCall> {
        let call: Option<ServerCall> = serde_json::from_str(&self.input).ok();
        call.filter(|call| self.tool == "mcp" && call.tool.starts_with("mcp__"))
    }
}

impl AuditRecord {
    /// The events this build knows.
    const EVENTS: [&str; 4] = ["decided", "ended", "removed", "port_opened"];

    /// Session and number of the call it is about; of a record unknown here, if it says.
    #[must_use]
    pub fn call(&self) -> Option<(&str, u32)> {
        match self {
            Self::Decided(decided) => Some((&decided.session, decided.call)),
            Self::Ended(ended) => Some((&ended.session, ended.call)),
            Self::PortOpened(opened) => Some((&opened.session, opened.call)),
            Self::Removed(_) => None,
            Self::Unknown(fields) => {
                let number = fields.get("call")?.as_u64()?;
                Some((fields.get("session")?.as_str()?, u32::try_from(number).ok()?))
            }
        }
    }

    pub(crate) fn to_fields(&self) -> Result<Map<String, Value>, serde_json::Error> {
        let Value::Object(fields) = serde_json::to_value(self)? else {
            return Err(serde::ser::Error::custom("a record is an object"));
        };
        Ok(fields)
    }

    pub(crate) fn from_fields(fields: Map<String, Value>) -> Result<Self, serde_json::Error> {
        let event = fields.get("event").and_then(Value::as_str);
        if event.is_some_and(|event| Self::EVENTS.contains(&event)) {
            return serde_json::from_value(Value::Object(fields));
        }
        Ok(Self::Unknown(fields))
    }
}
