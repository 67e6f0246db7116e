//! One line of the audit log: JSON that names the hash of the line before it and is closed by its
//! own. Pure.

use crate::{ChainHead, Digest};
use serde_json::{Map, Value};
use std::fmt::Write as _;

const SEAL: &str = r#","hash":""#;
const SEAL_LENGTH: usize = SEAL.len() + 64 + r#""}"#.len();

/// A line whose own hash matches its text. Its position in the chain is checked elsewhere.
#[derive(Debug)]
pub(crate) struct ChainLine {
    pub seq: u64,
    pub time: u64,
    pub prev: Digest,
    pub hash: Digest,
    /// Everything else.
    pub fields: Map<String, Value>,
}

/// Damage of a single line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LineFault {
    /// It does not end as a record does, or is no JSON.
    #[error("it is no record")]
    NoRecord,
    /// Its text is not the text that was hashed.
    #[error("its hash does not fit its text")]
    Hash,
    /// No record can follow it.
    #[error("its number is the last that there is")]
    Number,
}

/// The line that goes behind `head`, its line end included, and the head it makes.
///
/// # Errors
/// Where no number is left.
pub(crate) fn seal(
    head: ChainHead,
    time: u64,
    fields: &Map<String, Value>,
) -> Result<(String, ChainHead), LineFault> {
    let seq = numbered(head.seq.saturating_add(1))?;
    let mut line = format!(r#"{{"seq":{seq},"time":{time}"#);
    for (name, value) in fields {
        // Writing into a String cannot fail.
        let _ = write!(line, ",{}:{value}", Value::from(name.as_str()));
    }
    let _ = write!(line, r#","prev":"{}""#, head.hash);
    let hash = Digest::of(line.as_bytes());
    let _ = writeln!(line, r#"{SEAL}{hash}"}}"#);
    Ok((line, ChainHead { seq, hash }))
}

/// The number of a record, which has a next.
fn numbered(seq: u64) -> Result<u64, LineFault> {
    seq.checked_add(1).map(|_| seq).ok_or(LineFault::Number)
}

/// The record on this line, which comes without its line end.
pub(crate) fn open(line: &[u8]) -> Result<ChainLine, LineFault> {
    let body_length = line.len().checked_sub(SEAL_LENGTH).ok_or(LineFault::NoRecord)?;
    let (body, end) = line.split_at(body_length);
    if !end.starts_with(SEAL.as_bytes()) || !end.ends_with(br#""}"#) {
        return Err(LineFault::NoRecord);
    }
    let hash = Digest::of(body);
    if end[SEAL.len()..SEAL.len() + 64] != *hash.to_string().as_bytes() {
        return Err(LineFault::Hash);
    }
    let mut fields: Map<String, Value> =
        serde_json::from_slice(line).map_err(|_| LineFault::NoRecord)?;
    fields.remove("hash");
    let mut take = |name: &str| fields.remove(name).ok_or(LineFault::NoRecord);
    let seq = numbered(take("seq")?.as_u64().ok_or(LineFault::NoRecord)?)?;
    let time = take("time")?.as_u64().ok_or(LineFault::NoRecord)?;
    let prev = serde_json::from_value(take("prev")?).map_err(|_| LineFault::NoRecord)?;
    Ok(ChainLine { seq, time, prev, hash, fields })
}
