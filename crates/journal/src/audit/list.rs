//! Reads the audit log for people: call by call, filtered, or record by record. It trusts the log's
//! content; [`crate::verify`] detects tampering.

use super::files::AuditLines;
use super::retention::tells_of;
use super::{FILE, SCRIPTS, chain};
use crate::blobs::{BlobError, Blobs};
use crate::{
    AuditEntry, AuditRecord, ChainHead, ConnectionOutcome, DecisionRecord, Digest, LineFault,
    Outcome, spill,
};
use memchr::memmem;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// Why a record cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// The system refused.
    #[error("cannot read the audit log {path}")]
    Io {
        /// The log.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// A line is damaged; those behind it can still be read.
    #[error("line {line} of the audit log {path} is damaged; see `agentd audit verify`")]
    Damaged {
        /// The file of the log.
        path: PathBuf,
        /// Counted from 1 in it.
        line: u64,
        /// The damage.
        #[source]
        fault: LineFault,
    },
    /// A record's fields are not those of its event.
    #[error("line {line} of the audit log {path} does not have the fields of its event")]
    Fields {
        /// The log.
        path: PathBuf,
        /// Counted from 1.
        line: u64,
        /// The damage.
        source: serde_json::Error,
    },
    /// A long input is gone or changed.
    #[error("a text that line {line} of the audit log {path} speaks of cannot be used")]
    Text {
        /// The log.
        path: PathBuf,
        /// Counted from 1.
        line: u64,
        /// The damage.
        source: BlobError,
    },
}

/// The records of the log, in order, through all of its files. A line that cannot be used is an error
/// of its own, and the next is read; an error of a file ends it.
#[derive(Debug)]
pub struct AuditReader {
    lines: AuditLines,
    scripts: Blobs,
    dir: PathBuf,
}

/// Reads the log in this directory; a log that does not exist yet has no records.
///
/// # Errors
/// Where it may not be read.
pub fn entries(dir: &Path) -> Result<AuditReader, ListError> {
    let lines =
        AuditLines::open(dir).map_err(|source| ListError::Io { path: dir.join(FILE), source })?;
    Ok(AuditReader { lines, scripts: Blobs::at(dir.join(SCRIPTS)), dir: dir.to_owned() })
}

/// The script that a record names.
///
/// # Errors
/// Where it is gone or changed.
pub fn script(dir: &Path, digest: Digest) -> Result<String, BlobError> {
    Blobs::at(dir.join(SCRIPTS)).get(digest)
}

/// The records of one call.
#[derive(Default)]
pub(super) struct CallRecords {
    /// Its decision.
    pub decided: bool,
    /// True if its network was an allow-list.
    pub listed: bool,
    /// Where it says that it ended.
    pub end: Option<ChainHead>,
}

/// The records of a call in this directory's log. Parses only lines that contain the session's ID.
///
/// # Errors
/// Where the log may not be read. A damaged line says nothing.
pub(super) fn told_of(dir: &Path, session: &str, call: u32) -> Result<CallRecords, ListError> {
    let AuditReader { mut lines, .. } = entries(dir)?;
    let mut told = CallRecords::default();
    let named = format!(r#""session":{}"#, Value::from(session));
    loop {
        let line = lines.next();
        let line = line.map_err(|source| ListError::Io { path: lines.path.clone(), source })?;
        let Some(text) = line else { return Ok(told) };
        if memmem::find(&text, named.as_bytes()).is_none() {
            continue;
        }
        let Ok(link) = chain::open(&text) else { continue };
        let is = |name: &str, value: Value| link.fields.get(name) == Some(&value);
        if !is("session", session.into()) || !is("call", call.into()) {
            continue;
        }
        if is("event", "decided".into()) {
            told.decided = true;
            let requested = link.fields.get("requested");
            told.listed =
                requested.and_then(|policy| policy.get("network")) == Some(&"allow".into());
        }
        if is("event", "ended".into()) {
            told.end = Some(ChainHead { seq: link.seq, hash: link.hash });
            return Ok(told);
        }
    }
}

impl AuditReader {
    /// The record on this line; none where the log says that it was removed and its text is gone: a
    /// death may leave the one without the other.
    fn entry(&self, text: &[u8]) -> Result<Option<AuditEntry>, ListError> {
        let (path, line) = (self.lines.path.clone(), self.lines.line);
        let mut link = match chain::open(text) {
            Ok(link) => link,
            Err(fault) => return Err(ListError::Damaged { path, line, fault }),
        };
        if let Err(source) = spill::take_in(&mut link.fields, |digest| self.scripts.get(digest)) {
            let told = source.is_gone().then(|| tells_of(&self.dir, link.seq)).transpose();
            return match told {
                Ok(Some(true)) => Ok(None),
                Ok(Some(false) | None) => Err(ListError::Text { path, line, source }),
                Err(source) => Err(ListError::Io { path: self.dir.join(FILE), source }),
            };
        }
        match AuditRecord::from_fields(link.fields) {
            Ok(record) => {
                let (seq, time, prev, hash) = (link.seq, link.time, link.prev, link.hash);
                Ok(Some(AuditEntry { seq, time, record, prev, hash }))
            }
            Err(source) => Err(ListError::Fields { path, line, source }),
        }
    }
}

impl Iterator for AuditReader {
    type Item = Result<AuditEntry, ListError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.lines.next() {
                Ok(text) => match self.entry(&text?) {
                    Ok(None) => {}
                    Ok(Some(entry)) => return Some(Ok(entry)),
                    Err(error) => return Some(Err(error)),
                },
                Err(source) => {
                    self.lines.end();
                    return Some(Err(ListError::Io { path: self.lines.path.clone(), source }));
                }
            }
        }
    }
}

/// Selects calls. An absent field does not filter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallFilter {
    /// The beginning of the session's name.
    pub session: Option<String>,
    /// The call's number in its session.
    pub call: Option<u32>,
    /// The tool's name.
    pub tool: Option<String>,
    /// All calls, or only refused ones.
    pub which: WithRefusals,
    /// Those decided at or after this time, in milliseconds of Unix time.
    pub since: Option<u64>,
}

/// Selection by refusals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WithRefusals {
    /// All.
    #[default]
    All,
    /// Calls that were denied, or that the kernel or agentd's own tools refused something.
    Denied,
}

/// The kinds of failure with which a tool for files refuses a path: out of scope, a protected name, not
/// allowed to this user.
const REFUSALS: [&str; 3] = ["access_denied", "protected", "permission_denied"];

/// The log's records of one call, merged.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditedCall {
    /// The session.
    pub session: String,
    /// The call's number in it.
    pub call: u32,
    /// Its records, in order.
    pub entries: Vec<AuditEntry>,
}

/// The calls that pass the filter, in the order in which they were first spoken of.
///
/// # Errors
/// The first record that cannot be read.
pub fn calls(dir: &Path, filter: &CallFilter) -> Result<Vec<AuditedCall>, ListError> {
    let mut found: Vec<AuditedCall> = Vec::new();
    let mut places = BTreeMap::new();
    for entry in entries(dir)? {
        let entry = entry?;
        let Some((session, call)) = entry.record.call() else { continue };
        if !filter.names(session, call) {
            continue;
        }
        let session = session.to_owned();
        let place = *places.entry((session.clone(), call)).or_insert(found.len());
        if place == found.len() {
            found.push(AuditedCall { session, call, entries: Vec::new() });
        }
        found[place].entries.push(entry);
    }
    found.retain(|call| filter.passes(call));
    Ok(found)
}

impl CallFilter {
    fn names(&self, session: &str, call: u32) -> bool {
        self.session.as_deref().is_none_or(|beginning| session.starts_with(beginning))
            && self.call.is_none_or(|number| number == call)
    }

    fn passes(&self, call: &AuditedCall) -> bool {
        self.tool
            .as_deref()
            .is_none_or(|tool| call.tool().as_deref() == Some(tool) || call.is_of_server(tool))
            && self.since.is_none_or(|since| call.entries[0].time >= since)
            && match self.which {
                WithRefusals::All => true,
                WithRefusals::Denied => call.refused(),
            }
    }
}

impl AuditedCall {
    /// The tool's name, where a record says it. A server's tool has the name that models and rules use.
    #[must_use]
    pub fn tool(&self) -> Option<String> {
        self.entries.iter().find_map(|entry| match &entry.record {
            AuditRecord::Decided(decided) => Some(match decided.server_call() {
                Some(of_server) => of_server.tool,
                None => decided.tool.clone(),
            }),
            AuditRecord::Ended(ended) => Some(ended.tool.clone()),
            AuditRecord::Removed(_) | AuditRecord::PortOpened(_) | AuditRecord::Unknown(_) => None,
        })
    }

    /// True if it is a call of a server's tool and this is the name of all of those.
    fn is_of_server(&self, tool: &str) -> bool {
        self.entries.iter().any(|entry| match &entry.record {
            AuditRecord::Decided(decided) => {
                decided.tool == tool && decided.server_call().is_some()
            }
            AuditRecord::Ended(_)
            | AuditRecord::Removed(_)
            | AuditRecord::PortOpened(_)
            | AuditRecord::Unknown(_) => false,
        })
    }

    /// True if it was denied, or if the kernel, the proxy of an allow-list or a tool for files refused it
    /// something.
    #[must_use]
    pub fn refused(&self) -> bool {
        self.entries.iter().any(|entry| match &entry.record {
            AuditRecord::Decided(decided) => decided.decision != DecisionRecord::Allowed,
            AuditRecord::Ended(ended) => {
                !ended.refusals.is_empty()
                    || ended.refusals_uncounted > 0
                    || !ended.tampered.is_empty()
                    || ended.code.as_deref().is_some_and(|code| REFUSALS.contains(&code))
                    || ended
                        .connections
                        .iter()
                        .any(|it| matches!(it.decision, ConnectionOutcome::Refused(_)))
                    || matches!(
                        ended.outcome,
                        Outcome::Denied | Outcome::Refused { .. } | Outcome::Confined { .. }
                    )
            }
            AuditRecord::Removed(_) | AuditRecord::PortOpened(_) | AuditRecord::Unknown(_) => false,
        })
    }
}
