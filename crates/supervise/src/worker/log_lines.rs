//! Writes the lines that workers send into the supervisor's log, each under its worker's name, so that
//! `RUST_LOG=provider=debug` chooses them here as it does in the worker.

use protocol::upkeep::{LogLevel, LogLine};
use std::fmt::Display;

/// One line at its level. A target and a level are fixed where a line is traced, so each pair is a place
/// of its own.
macro_rules! at_level {
    ($target:literal, $about:ident, $line:ident) => {
        match $line.level {
            LogLevel::Error => tracing::error!(target: $target, about = %$about, "{}", $line.text),
            LogLevel::Warn => tracing::warn!(target: $target, about = %$about, "{}", $line.text),
            LogLevel::Info => tracing::info!(target: $target, about = %$about, "{}", $line.text),
            LogLevel::Debug => tracing::debug!(target: $target, about = %$about, "{}", $line.text),
        }
    };
}

/// Writes a worker's line. `about` is the session or call that the worker serves.
pub(crate) fn write(worker: &str, about: impl Display, line: &LogLine) {
    match worker {
        "session" => at_level!("session", about, line),
        "provider" => at_level!("provider", about, line),
        "broker" => at_level!("broker", about, line),
        "store" => at_level!("store", about, line),
        "agentd-tool" => at_level!("tool", about, line),
        "agentd-code" => at_level!("code", about, line),
        "agentd-web" => at_level!("web", about, line),
        _ => at_level!("worker", about, line),
    }
}
