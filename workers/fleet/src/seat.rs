//! One session's seat: the records that its supervisor sends go to the database in order, with what they refer
//! to and a snapshot of the workspace where a call may have changed it. Then their barrier opens.

use crate::database::Database;
use crate::error::FleetError;
use crate::objects::Objects;
use crate::workspace::{Snapshot, Workspace};
use journal::Digest;
use protocol::fleet::LeaseClock;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, mpsc, watch};
use tokio::time::{Instant, timeout_at};
use tokio_postgres::types::{ToSql, Type};

/// Lines that one request appends at most.
const MOST_LINES: usize = 1000;

/// How long records that nothing waits for are gathered, so that those that something waits for are not behind
/// a request for them, nor a snapshot beside the next request to the model.
const GATHER: Duration = Duration::from_millis(25);

/// Largest snapshot that a row takes, in bytes.
pub(crate) const IN_ROWS: u64 = 64 << 20;
/// Why a lease is lost that ran out while the database was away. If it comes back in time, the task is given
/// back.
pub(crate) const LAPSED: &str = "the fleet's database was not reached for the length of a lease";

/// The state of a lease, which `door` reports to the supervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SeatState {
    pub(crate) clock: LeaseClock,
    /// The last record that the database has.
    pub(crate) last_seq: u64,
    /// Why the lease is lost, if it is.
    pub(crate) lost: Option<String>,
}

/// Lines of the journal, the first of which has this number.
#[derive(Debug)]
pub(crate) struct Lines {
    pub(crate) first: u64,
    pub(crate) lines: Vec<String>,
}

/// A seat, as the door and the worker see it.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) session: String,
    /// The secret with which a supervisor takes it.
    pub(crate) token: String,
    pub(crate) lease: String,
    pub(crate) state: watch::Sender<SeatState>,
    pub(crate) lines: mpsc::UnboundedSender<Lines>,
}

impl Seat {
    /// The lease is lost: nothing more is appended.
    pub(crate) fn lose(&self, why: &str) {
        self.state.send_if_modified(|state| {
            let first = state.lost.is_none();
            state.lost.get_or_insert_with(|| why.to_owned());
            first
        });
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.state.borrow().lost.is_some()
    }
}

/// Appends the lines of one seat.
pub(crate) struct Appender {
    pub(crate) seat: Arc<Seat>,
    pub(crate) database: Arc<Database>,
    pub(crate) workspace: Arc<Mutex<Workspace>>,
    pub(crate) objects: Option<Objects>,
    /// The session's directory, with its long texts.
    pub(crate) directory: PathBuf,
    /// The calls that only read.
    queries: BTreeSet<u64>,
    /// Long texts that the database has.
    sent: BTreeSet<String>,
    /// Where the audit log of this host stood last.
    pub(crate) audit: watch::Sender<Option<Value>>,
}

impl Appender {
    pub(crate) fn new(
        seat: Arc<Seat>,
        database: Arc<Database>,
        (workspace, objects): (Arc<Mutex<Workspace>>, Option<Objects>),
        directory: PathBuf,
        audit: watch::Sender<Option<Value>>,
    ) -> Self {
        let (queries, sent) = (BTreeSet::new(), BTreeSet::new());
        Self { seat, database, workspace, objects, directory, queries, sent, audit }
    }

    /// Appends until the seat is gone or its lease is lost.
    pub(crate) async fn run(mut self, mut incoming: mpsc::UnboundedReceiver<Lines>) {
        let mut waiting: BTreeMap<u64, String> = BTreeMap::new();
        while let Some(lines) = incoming.recv().await {
            let gathered = Instant::now() + GATHER;
            let mut next = Some(lines);
            while let Some(Lines { first, lines }) = next {
                waiting.extend((first..).zip(lines));
                next = match waiting.values().any(|line| journal::is_waited_for(line)) {
                    true => incoming.try_recv().ok(),
                    false => timeout_at(gathered, incoming.recv()).await.ok().flatten(),
                };
            }
            while !waiting.is_empty() {
                // A supervisor that starts again sends lines again.
                let last_seq = self.seat.state.borrow().last_seq;
                waiting = waiting.split_off(&(last_seq + 1));
                let batch: Vec<String> = (last_seq + 1..)
                    .map_while(|seq| waiting.get(&seq).cloned())
                    .take(MOST_LINES)
                    .collect();
                if batch.is_empty() {
                    break;
                }
                if let Err(error) = self.append(last_seq + 1, batch).await {
                    tracing::warn!(session = self.seat.session, %error, "records are not appended");
                    self.seat.lose(&error.to_string());
                }
                if self.seat.is_lost() {
                    return;
                }
            }
        }
    }

    /// Appends these lines, behind everything that they depend on.
    async fn append(&mut self, first: u64, lines: Vec<String>) -> Result<(), FleetError> {
        let mut changed = None;
        for (seq, line) in (first..).zip(&lines) {
            self.send_texts(line).await?;
            if self.may_have_changed_files(line) {
                changed = Some(seq);
            }
        }
        if let Some(seq) = changed {
            self.send_snapshot(seq).await?;
        }
        let (from, last) = (number(first), first + lines.len() as u64 - 1);
        let (lease, lines) = (&self.seat.lease, &lines);
        self.while_held(self.database.until_answered(|client| async move {
            let text = "select agentd.append($1::text::uuid, $2, $3)";
            // Its types are named, so that it is one round trip.
            let words: [(&(dyn ToSql + Sync), Type); 3] =
                [(lease, Type::TEXT), (&from, Type::INT8), (lines, Type::TEXT_ARRAY)];
            client.query_typed(text, &words).await
        }))
        .await?;
        self.seat.state.send_modify(|state| state.last_seq = state.last_seq.max(last));
        Ok(())
    }

    /// Waits for a request as long as the lease holds.
    async fn while_held<T>(
        &self,
        request: impl Future<Output = Result<T, FleetError>>,
    ) -> Result<T, FleetError> {
        let mut state = self.seat.state.subscribe();
        tokio::select! {
            answer = request => answer,
            lost = state.wait_for(|state| state.lost.is_some()) => {
                let why = lost.ok().and_then(|state| state.lost.clone());
                Err(FleetError::Host(why.unwrap_or_default()))
            }
        }
    }

    /// True if a call ended with this record that may have changed files.
    fn may_have_changed_files(&mut self, line: &str) -> bool {
        let kind_is = |kind: &str| line.contains(&format!("\"kind\":\"{kind}\""));
        if !["START", "RESULT", "INTERRUPTED"].iter().any(|kind| kind_is(kind)) {
            return false;
        }
        let Ok(record) = serde_json::from_str::<Value>(line) else { return false };
        let call = record["call"].as_u64().unwrap_or_default();
        if record["kind"] == "START" {
            if record["tool_kind"] == "query" {
                self.queries.insert(call);
            }
            return false;
        }
        if let Some(head) = record.get("audit").filter(|head| !head.is_null()) {
            self.audit.send_replace(Some(head.clone()));
        }
        !self.queries.remove(&call)
    }

    async fn send_texts(&mut self, line: &str) -> Result<(), FleetError> {
        for digest in journal::kept_beside(line) {
            let name = digest.to_string();
            if self.sent.contains(&name) {
                continue;
            }
            let bytes = journal::kept_bytes(&self.directory, digest)
                .map_err(|error| FleetError::Host(error.to_string()))?;
            put_blob(&self.database, &self.seat.lease, digest, &bytes).await?;
            self.sent.insert(name);
        }
        Ok(())
    }

    async fn send_snapshot(&self, seq: u64) -> Result<(), FleetError> {
        let mut workspace = self.workspace.lock().await;
        let taken = self.while_held(workspace.snapshot()).await?;
        let Some(taken) = taken else { return Ok(()) };
        let stores = Stores { database: &self.database, objects: self.objects.as_ref() };
        let place = (self.seat.session.as_str(), self.seat.lease.as_str());
        self.while_held(store_snapshot(stores, place, seq, &taken)).await?;
        workspace.stored(taken.tree);
        Ok(())
    }
}

/// Where a snapshot goes.
#[derive(Clone, Copy)]
pub(crate) struct Stores<'a> {
    pub(crate) database: &'a Database,
    pub(crate) objects: Option<&'a Objects>,
}

/// Puts a snapshot into the database, or a large one into the object store and its name into the database.
pub(crate) async fn store_snapshot(
    stores: Stores<'_>,
    (session, lease): (&str, &str),
    seq: u64,
    taken: &Snapshot,
) -> Result<(), FleetError> {
    let file = &taken.pack;
    let bytes = std::fs::metadata(file).map_err(FleetError::file(file))?.len();
    let (pack, object) = match (bytes <= IN_ROWS, stores.objects) {
        (true, _) => (std::fs::read(file).map_err(FleetError::file(file))?, None),
        (false, Some(objects)) => {
            // The name is new in each claim: a host that lost its lease overwrites nothing.
            let name = format!("{session}/{lease}/{seq}.pack");
            objects.put(&name, file).await?;
            (Vec::new(), Some(name))
        }
        (false, None) => {
            return Err(FleetError::Host(format!(
                "the changes of the workspace have {} MiB, and rows take {}: name an object store by \
                 AGENTD_FLEET_OBJECTS on each host",
                bytes >> 20,
                IN_ROWS >> 20
            )));
        }
    };
    let apart = stores.database.apart(pack.len() as u64);
    let (seq, pack, object) = (number(seq), &pack, &object);
    let put = |client: Arc<tokio_postgres::Client>| async move {
        let text = "select agentd.put_snapshot($1::text::uuid, $2, $3, $4, $5, $6)";
        client.execute(text, &[&lease, &seq, &taken.base, &taken.tree, pack, object]).await
    };
    apart.as_ref().unwrap_or(stores.database).until_answered(put).await.map(drop)
}

/// Puts bytes into the database under their digest.
pub(crate) async fn put_blob(
    database: &Database,
    lease: &str,
    digest: Digest,
    bytes: &[u8],
) -> Result<(), FleetError> {
    let (name, apart) = (digest.to_string(), database.apart(bytes.len() as u64));
    let (name, bytes) = (&name, &bytes);
    let put = |client: Arc<tokio_postgres::Client>| async move {
        let text = "select agentd.put_blob($1::text::uuid, decode($2, 'hex'), $3)";
        client.execute(text, &[&lease, name, bytes]).await
    };
    apart.as_ref().unwrap_or(database).until_answered(put).await.map(drop)
}

/// A sequence number, as the database has it.
pub(crate) fn number(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}
