//! How a run of `agentd -p` ended, with its JSON answer. `task_run` uses it.

use crate::error::FleetError;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::process::Child;

/// How a run ended.
pub(crate) enum RunEnd {
    /// By itself, with its JSON answer.
    Exited { code: i32, answer: Value },
    /// With this worker; another host goes on.
    Released,
    /// The lease is lost, or the records cannot be kept.
    Lost(String),
}

/// Why a run has no answer.
pub(crate) fn error_of(code: i32, answer: &Value) -> String {
    // The text of a turn that ended well is no reason.
    let result = || answer["result"].as_str().filter(|_| answer["is_error"] == true);
    let why = answer["error"].as_str().or_else(result).filter(|why| !why.is_empty());
    why.map_or_else(
        || format!("the run ended with exit code {code}; see `agentd help exit-codes`"),
        str::to_owned,
    )
}

/// Waits for the end of a run.
pub(crate) async fn answer_of(child: &mut Child) -> Result<RunEnd, FleetError> {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let read = async {
        if let Some(mut stdout) = stdout {
            let _ = stdout.read_to_end(&mut out).await;
        }
    };
    let read_errors = async {
        if let Some(mut stderr) = stderr {
            let _ = stderr.read_to_end(&mut err).await;
        }
    };
    let (status, (), ()) = tokio::join!(child.wait(), read, read_errors);
    let status = status.map_err(|error| FleetError::Host(error.to_string()))?;
    let code = status.code().unwrap_or(-1);
    let answer = String::from_utf8_lossy(&out);
    let last = answer.lines().rev().find_map(|line| serde_json::from_str::<Value>(line).ok());
    let words = String::from_utf8_lossy(&err).trim().to_owned();
    let answer = last.unwrap_or_else(|| json!({"error": words}));
    Ok(RunEnd::Exited { code, answer })
}
