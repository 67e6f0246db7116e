//! A file as source text, whole in memory. For `summary` and `scan`.

use crate::failure::{FailureCode, ToolFailure};
use crate::files::file_type;
use crate::files::read_set::ReadSet;
use crate::files::safe_open;
use crate::files::target_path::TargetPath;
use std::fs::File;
use std::io::Read;

/// Larger files are hardly written by people, and a syntax tree takes some thirty times the bytes.
pub(crate) const SOURCE_MAX: u64 = 4 << 20;

/// Why a file is no source text.
#[derive(Debug)]
pub(crate) enum SourceTextError {
    TooLarge(u64),
    Binary(&'static str),
    /// At this line.
    NotUtf8(usize),
    Io(std::io::Error),
}

impl SourceTextError {
    /// As the failure of a call that names this file.
    pub fn failure(self, named: &str) -> ToolFailure {
        match self {
            Self::TooLarge(bytes) => ToolFailure::new(
                FailureCode::TooLarge,
                format!("{named:?} has {bytes} bytes; the limit for syntax trees is {SOURCE_MAX}"),
                "Search it with grep, or read a part of it with offset and limit.",
            ),
            Self::Binary(kind) => ToolFailure::new(
                FailureCode::Binary,
                format!("{named:?} is a binary file ({kind})"),
                "Only text files have an outline.",
            ),
            Self::NotUtf8(line) => ToolFailure::new(
                FailureCode::NotUtf8,
                format!("line {line} of {named:?} is not UTF-8"),
                file_type::NOT_UTF8_HINT,
            ),
            Self::Io(error) => ToolFailure::io("read", named, error),
        }
    }
}

/// The text of an open file.
pub(crate) fn read_text(file: &File, size: u64) -> Result<String, SourceTextError> {
    if size > SOURCE_MAX {
        return Err(SourceTextError::TooLarge(size));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    file.take(SOURCE_MAX + 1).read_to_end(&mut bytes).map_err(SourceTextError::Io)?;
    if bytes.len() as u64 > SOURCE_MAX {
        return Err(SourceTextError::TooLarge(bytes.len() as u64));
    }
    if let Some(kind) = file_type::binary_type(&bytes[..bytes.len().min(file_type::SNIFFED)]) {
        return Err(SourceTextError::Binary(kind));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        SourceTextError::NotUtf8(valid.iter().filter(|byte| **byte == b'\n').count() + 1)
    })
}

/// The text of a file that a call names.
pub(crate) fn read_named(target: &TargetPath, read_set: &ReadSet) -> Result<String, ToolFailure> {
    let (file, meta) = safe_open::open_regular(target, read_set)?;
    read_text(&file, meta.len()).map_err(|error| error.failure(&target.named))
}
