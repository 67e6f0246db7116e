//! A task that this host claimed.

use serde::{Deserialize, Serialize};

/// A task that this host claimed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Claim {
    pub(crate) lease: String,
    pub(crate) task: i64,
    pub(crate) session: String,
    pub(crate) epoch: i32,
    pub(crate) last_seq: i64,
    pub(crate) failed_over: bool,
    pub(crate) repo: String,
    pub(crate) reference: String,
    pub(crate) prompt: String,
    pub(crate) flags: Vec<String>,
    pub(crate) timeout_ms: Option<i64>,
    pub(crate) on_host_loss: String,
    pub(crate) resume_after: i64,
    pub(crate) ask: bool,
}
