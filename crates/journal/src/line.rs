//! One line of a session journal: JSON closed by a checksum of all that stands before it.
//!
//! The checksum is over the bytes themselves and has one spelling, so that no bit of a line can
//! change unseen, white space included.

use crate::BlobError;
use crate::record::about_a_call;
use serde::Deserialize;
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt::{self, Write as _};

/// The end of a line, around its eight-digit checksum.
const SEAL: &str = r#","crc":""#;
const SEAL_LENGTH: usize = SEAL.len() + 8 + r#""}"#.len();

/// Longest line in bytes, read or written. Stops a damaged file from filling the memory: long
/// texts are blobs, so that a line this long is never honest.
pub(crate) const LINE_CAP: usize = 64 << 20;

/// A line that passed its checksum.
#[derive(Debug)]
pub(crate) struct JournalLine {
    pub seq: u64,
    pub time: u64,
    pub kind: String,
    pub fields: Map<String, Value>,
}

/// Damage of a line.
#[derive(Debug, thiserror::Error)]
pub enum LineDamage {
    /// It does not end as a record does, or is no JSON.
    #[error("it is no record")]
    NoRecord,
    /// The checksum does not match.
    #[error("its checksum does not fit its text")]
    Checksum,
    /// The line end after it changed.
    #[error("the line end behind it was changed")]
    LineEnd,
    /// Records before it are missing, doubled or moved.
    #[error("it is number {found} where {expected} should be")]
    Sequence {
        /// The number found.
        found: u64,
        /// The number expected.
        expected: u64,
    },
    /// Its kind is known, but its fields do not match that kind.
    #[error("its fields are not those of its kind")]
    Fields(#[source] serde_json::Error),
    /// A long text that it refers to cannot be read.
    #[error("a text kept beside the journal cannot be used")]
    Blob(#[source] BlobError),
    /// It is longer than any record.
    #[error("it is longer than any record")]
    TooLong,
}

/// The line for a record, its line end included.
pub(crate) fn seal(seq: u64, time: u64, kind: &str, fields: &Map<String, Value>) -> String {
    let kind = Value::from(kind);
    let mut line = format!(r#"{{"seq":{seq},"time":{time},"kind":{kind}"#);
    for (name, value) in fields {
        // Writing into a String cannot fail.
        let _ = write!(line, ",{}:{value}", Value::from(name.as_str()));
    }
    let checksum = crc32fast::hash(line.as_bytes());
    let _ = writeln!(line, r#"{SEAL}{checksum:08x}"}}"#);
    line
}

/// Checks a line, given without its line end, against its checksum.
pub(crate) fn check(line: &[u8]) -> Result<(), LineDamage> {
    let body_length = line.len().checked_sub(SEAL_LENGTH).ok_or(LineDamage::NoRecord)?;
    let (body, end) = line.split_at(body_length);
    if !end.starts_with(SEAL.as_bytes()) || !end.ends_with(br#""}"#) {
        return Err(LineDamage::NoRecord);
    }
    if end[SEAL.len()..SEAL.len() + 8] != digits(crc32fast::hash(body)) {
        return Err(LineDamage::Checksum);
    }
    Ok(())
}

/// The checksum in its one spelling. Made for every line of a journal that is opened, and so without
/// an allocation.
fn digits(checksum: u32) -> [u8; 8] {
    let mut shift = 32;
    [(); 8].map(|()| {
        shift -= 4;
        b"0123456789abcdef"[(checksum >> shift & 0xf) as usize]
    })
}

/// The record on this line, which comes without its line end.
pub(crate) fn open(line: &[u8]) -> Result<JournalLine, LineDamage> {
    check(line)?;
    let mut fields: Map<String, Value> =
        serde_json::from_slice(line).map_err(|_| LineDamage::NoRecord)?;
    fields.remove("crc");
    let number = |value: Option<Value>| value.as_ref().and_then(Value::as_u64);
    let seq = number(fields.remove("seq")).ok_or(LineDamage::NoRecord)?;
    let time = number(fields.remove("time")).ok_or(LineDamage::NoRecord)?;
    let Some(Value::String(kind)) = fields.remove("kind") else {
        return Err(LineDamage::NoRecord);
    };
    Ok(JournalLine { seq, time, kind, fields })
}

/// The number that a line begins with, unchecked: enough to find one's way in a file.
pub(crate) fn seq(line: &[u8]) -> Option<u64> {
    let (seq, rest) = number(line.strip_prefix(br#"{"seq":"#)?)?;
    rest.starts_with(b",").then_some(seq)
}

/// The number and the time that a line begins with, unchecked.
pub(crate) fn seq_and_time(line: &[u8]) -> Option<(u64, u64)> {
    let (seq, rest) = number(line.strip_prefix(br#"{"seq":"#)?)?;
    let (time, rest) = number(rest.strip_prefix(br#","time":"#)?)?;
    rest.starts_with(b",").then_some((seq, time))
}

/// The leading number of these bytes, and the bytes after it.
fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0_u64;
    let mut length = 0;
    while let Some(digit) = bytes.get(length).filter(|byte| byte.is_ascii_digit()) {
        number = number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
        length += 1;
    }
    (length > 0).then(|| (number, &bytes[length..]))
}

/// The leading fields of a line: enough to decide if the rest must be parsed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LineFront<'a> {
    pub seq: u64,
    pub kind: Cow<'a, str>,
    /// Of kinds that are about a call.
    pub call: Option<u32>,
}

/// Parses the leading fields of a line whose checksum matched; the checksum covers the rest. Long
/// texts come last.
pub(crate) fn front(line: &[u8]) -> Result<LineFront<'_>, LineDamage> {
    if let Some(front) = plain_front(line) {
        return Ok(front);
    }
    let mut front = LineFront::default();
    // An end before the line's own is an error to the parser and none to us.
    let _ = serde_json::Deserializer::from_slice(line).deserialize_map(Fill(&mut front));
    if front.seq == 0 || front.kind.is_empty() {
        return Err(LineDamage::NoRecord);
    }
    Ok(front)
}

/// The front as this build writes it, which most lines have: read without a parser.
fn plain_front(line: &[u8]) -> Option<LineFront<'_>> {
    let (seq, rest) = number(line.strip_prefix(br#"{"seq":"#)?)?;
    let (_, rest) = number(rest.strip_prefix(br#","time":"#)?)?;
    let rest = rest.strip_prefix(br#","kind":""#)?;
    let length = rest.iter().position(|byte| !byte.is_ascii_uppercase() && *byte != b'_')?;
    let (kind, rest) = rest.split_at(length);
    let kind = str::from_utf8(kind).ok().filter(|kind| !kind.is_empty())?;
    let rest = rest.strip_prefix(b"\"")?;
    let call = match about_a_call(kind) {
        false => None,
        true => {
            let (call, rest) = number(rest.strip_prefix(br#","call":"#)?)?;
            rest.starts_with(b",").then_some(())?;
            Some(u32::try_from(call).ok()?)
        }
    };
    (seq > 0).then_some(LineFront { seq, kind: Cow::Borrowed(kind), call })
}

/// Fills the leading fields until the bulk of the record begins.
struct Fill<'f, 'a>(&'f mut LineFront<'a>);

impl<'de> Visitor<'de> for Fill<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a record")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(BorrowedText(name)) = map.next_key()? {
            match &*name {
                "seq" => self.0.seq = map.next_value()?,
                "kind" => {
                    BorrowedText(self.0.kind) = map.next_value()?;
                    if !about_a_call(&self.0.kind) {
                        break;
                    }
                }
                "call" => {
                    self.0.call = Some(map.next_value()?);
                    break;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// A text that is not copied where it need not be.
#[derive(Deserialize)]
struct BorrowedText<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn fields() -> Map<String, Value> {
        Map::from_iter([
            ("text".to_owned(), Value::from("a\nb \u{1f600} \"q\" \u{0}")),
            ("n".to_owned(), Value::from(7)),
        ])
    }

    #[test]
    fn a_line_comes_back() {
        let line = seal(3, 1_700_000_000_000, "X Y\"", &fields());
        assert_eq!(line.matches('\n').count(), 1, "{line}");
        let opened = open(line.trim_end().as_bytes()).unwrap();
        assert_eq!((opened.seq, opened.time), (3, 1_700_000_000_000));
        assert_eq!(opened.kind, "X Y\"");
        assert_eq!(opened.fields, fields());
    }

    #[test]
    fn a_front_is_the_same_with_and_without_a_parser() {
        let parsed = |line: &[u8]| {
            let mut front = LineFront::default();
            let _ = serde_json::Deserializer::from_slice(line).deserialize_map(Fill(&mut front));
            (front.seq, front.kind.into_owned(), front.call)
        };
        let call = |number: u32| Map::from_iter([("call".to_owned(), Value::from(number))]);
        for (kind, fields) in [("PROMPT", fields()), ("START", call(7)), ("RESULT", call(u32::MAX))]
        {
            let line = seal(12, 1_700_000_000_000, kind, &fields);
            let line = line.trim_end().as_bytes();
            let plain = plain_front(line).unwrap();
            assert_eq!((plain.seq, plain.kind.into_owned(), plain.call), parsed(line));
        }
        // Written in another way, it is left to the parser.
        for line in [
            r#"{"seq": 1,"time":2,"kind":"START","call":3,"crc":""}"#,
            r#"{"seq":1,"time":2,"kind":"START","tool":"x","call":3,"crc":""}"#,
            r#"{"seq":1,"time":2,"kind":"START","call":3.5,"crc":""}"#,
            r#"{"seq":1,"time":2,"kind":"START","call":4294967296,"crc":""}"#,
            r#"{"seq":99999999999999999999,"time":2,"kind":"PROMPT","text":""}"#,
            r#"{"seq":1,"time":2,"kind":"a\u0062","text":""}"#,
            r#"{"seq":0,"time":2,"kind":"PROMPT","text":""}"#,
        ] {
            assert_eq!(plain_front(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn no_bit_changes_unseen() {
        let line = seal(1, 2, "PROMPT", &fields()).trim_end().as_bytes().to_vec();
        for position in 0..line.len() * 8 {
            let mut changed = line.clone();
            changed[position / 8] ^= 1 << (position % 8);
            assert!(open(&changed).is_err(), "bit {position}");
        }
    }

    proptest! {
        #[test]
        fn rubbish_is_refused_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(open(&bytes).is_err());
        }

        #[test]
        fn any_text_comes_back(text: String, name: String, seq: u64, time: u64) {
            prop_assume!(!["seq", "time", "kind", "crc"].contains(&name.as_str()));
            let fields = Map::from_iter([(name, Value::from(text))]);
            let line = seal(seq, time, "K", &fields);
            let opened = open(line.strip_suffix('\n').unwrap().as_bytes()).unwrap();
            prop_assert_eq!(opened.fields, fields);
            prop_assert_eq!((opened.seq, opened.time), (seq, time));
        }
    }
}
