//! Writes log lines of workers into the supervisor's log, with the worker's name as target. So
//! `RUST_LOG=provider=debug` has the same meaning here and in the worker.

use protocol::log::{LogLevel, LogLine};
use std::fmt::Display;

/// Writes one line at its level. `tracing` fixes target and level per call site, so each pair needs
/// a call site of its own.
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
pub fn write(worker: &str, about: impl Display, line: &LogLine) {
    match worker {
        "session" => at_level!("session", about, line),
        "provider" => at_level!("provider", about, line),
        "broker" => at_level!("broker", about, line),
        "store" => at_level!("store", about, line),
        "agentd-tool" => at_level!("tool", about, line),
        "agentd-code" => at_level!("code", about, line),
        "agentd-web" => at_level!("web", about, line),
        "agentd-mcp" => at_level!("mcp", about, line),
        _ => at_level!("worker", about, line),
    }
}
