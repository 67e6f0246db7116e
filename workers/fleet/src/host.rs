//! What every part of a worker uses.

use crate::database::Database;
use crate::door::Seats;
use crate::objects::Objects;
use crate::turns::Turns;
use config::Dirs;
use fleet::LeaseTimes;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tokio::sync::watch;

/// What every part of a worker uses.
#[derive(Clone)]
pub(crate) struct Host {
    pub(crate) id: String,
    pub(crate) dirs: Dirs,
    /// Where the workspaces are: no directory of agentd's own, which no call may reach.
    pub(crate) work: PathBuf,
    /// For snapshots that are too large for rows.
    pub(crate) objects: Option<Objects>,
    pub(crate) times: LeaseTimes,
    pub(crate) database: Arc<Database>,
    pub(crate) seats: Seats,
    pub(crate) turns: Turns,
    /// Until when it claims nothing, because it could not run a task.
    pub(crate) rests_until: Arc<AtomicU64>,
    /// True once the worker is to end.
    pub(crate) ending: watch::Sender<bool>,
    /// Tasks that a person cancelled, by their session.
    pub(crate) cancelled: watch::Sender<BTreeSet<String>>,
}
