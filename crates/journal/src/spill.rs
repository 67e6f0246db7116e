//! Long texts of a record go out to blobs before it is written and come back when it is read.

use crate::Digest;
use crate::blobs::{BlobError, Blobs};
use memchr::memmem::Finder;
use serde_json::{Map, Value};
use std::sync::LazyLock;

/// Longest text in bytes that stays in the line.
pub(crate) const INLINE_CAP: usize = 64 << 10;

/// The name that marks a reference. Records hold JSON of models and tools as text only, so that no
/// object of theirs can be taken for one.
const MARK: &str = "$blob";

/// Replaces each long text by a reference, once the text is on disk.
pub(crate) fn put_out(fields: &mut Map<String, Value>, blobs: &Blobs) -> Result<(), BlobError> {
    fields.values_mut().try_for_each(|value| put_out_of(value, blobs))
}

fn put_out_of(value: &mut Value, blobs: &Blobs) -> Result<(), BlobError> {
    match value {
        Value::String(text) if text.len() > INLINE_CAP => {
            let digest = blobs.put(text)?;
            let bytes = text.len();
            *value = serde_json::json!({ MARK: digest.to_string(), "bytes": bytes });
            Ok(())
        }
        Value::Array(items) => items.iter_mut().try_for_each(|item| put_out_of(item, blobs)),
        Value::Object(fields) => put_out(fields, blobs),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

/// Puts each text back where its reference is, as `text_of` gives it.
pub(crate) fn take_in(
    fields: &mut Map<String, Value>,
    text_of: impl Fn(Digest) -> Result<String, BlobError> + Copy,
) -> Result<(), BlobError> {
    fields.values_mut().try_for_each(|value| take_in_to(value, text_of))
}

fn take_in_to(
    value: &mut Value,
    text_of: impl Fn(Digest) -> Result<String, BlobError> + Copy,
) -> Result<(), BlobError> {
    match value {
        Value::Array(items) => items.iter_mut().try_for_each(|item| take_in_to(item, text_of)),
        Value::Object(fields) => {
            if let Some(digest) = reference(fields) {
                *value = Value::String(text_of(digest)?);
                return Ok(());
            }
            take_in(fields, text_of)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

/// The texts that these fields refer to, with their lengths.
pub(crate) fn references(fields: &Map<String, Value>) -> Vec<(Digest, Option<u64>)> {
    fn of(value: &Value) -> Vec<(Digest, Option<u64>)> {
        match value {
            Value::Array(items) => items.iter().flat_map(of).collect(),
            Value::Object(fields) => match reference(fields) {
                Some(digest) => vec![(digest, fields.get("bytes").and_then(Value::as_u64))],
                None => references(fields),
            },
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
        }
    }
    fields.values().flat_map(of).collect()
}

/// True if a line may refer to a stored text; decided without parsing it.
pub(crate) fn may_refer(line: &[u8]) -> bool {
    static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br#""$blob":"#));
    FINDER.find(line).is_some()
}

fn reference(fields: &Map<String, Value>) -> Option<Digest> {
    fields.get(MARK).and_then(Value::as_str).and_then(|digest| digest.parse().ok())
}
