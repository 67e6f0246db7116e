//! Words that every wire has: log lines.

use crate::{Decode, Encode};

/// How serious a log line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum LogLevel {
    /// Something failed.
    Error,
    /// Something is odd.
    Warn,
    /// Something happened.
    Info,
    /// For those who look for a fault.
    Debug,
}

/// A line for the log from a worker that has no file of its own.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct LogLine {
    /// How serious.
    pub level: LogLevel,
    /// Plain words.
    pub text: String,
}
