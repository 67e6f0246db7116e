//! Prepares a task on this host: its workspace and, after a lost host, its session with the open calls.

use crate::claim::Claim;
use crate::database::Database;
use crate::error::FleetError;
use crate::objects::Objects;
use crate::objects_error::ObjectsError;
use crate::run;
use crate::seat::number;
use crate::workspace::{Workspace, place_of};
use fleet::{HostLoss, LostSession, Onward, OpenWork, TurnProgress, go_on};
use journal::{CallProgress, LastTurn, Past, RestoredSession, ToolKind};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Records that are read at once.
const PAGE: i32 = 500;
/// How long an earlier run of the session on this host may take to end.
const ENDING: Duration = Duration::from_secs(15);

/// A task that can run here.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) workspace: Workspace,
    pub(crate) restored: Option<RestoredSession>,
    pub(crate) onward: Onward,
    /// The prompt whose turn the run waits for.
    pub(crate) prompt: String,
}

/// Prepares a claimed task.
pub(crate) async fn prepare(
    database: &Database,
    (state, work): (&Path, &Path),
    objects: Option<&Objects>,
    claim: &Claim,
) -> Result<Prepared, FleetError> {
    let sessions = state.join("sessions");
    set_aside(state, &claim.session).await?;
    let (base, snapshots, snapshot_seq) = snapshots_of(database, claim).await?;
    let place = place_of(work, &claim.session);
    let mut workspace =
        Workspace::prepare(&place, &claim.repo, &claim.reference, base.as_deref()).await?;
    restore_files(&mut workspace, &snapshots, objects).await?;
    if base.is_none() {
        // Branches move: every host begins at this commit.
        record_base(database, claim, &workspace).await?;
    }
    if claim.last_seq == 0 {
        let prompt = claim.prompt.clone();
        return Ok(Prepared { workspace, restored: None, onward: Onward::GoOn, prompt });
    }
    restore_session(database, &sessions, claim).await?;
    let directory = sessions.join(&claim.session);
    let last_seq = u64::try_from(claim.last_seq).unwrap_or_default();
    let lost = lost_session(&directory, snapshot_seq, claim.failed_over)?;
    let onward = go_on(&lost, HostLoss::of_word(&claim.on_host_loss));
    let prompt = next_prompt(&directory, claim)?;
    let restored = Some(RestoredSession { last_seq, snapshot_seq });
    Ok(Prepared { workspace, restored, onward, prompt })
}

/// Moves what an earlier lease left of the session on this host away. It may have records that the database
/// never took, and stays for the audit.
pub(crate) async fn set_aside(state: &Path, session: &str) -> Result<(), FleetError> {
    let directory = state.join("sessions").join(session);
    if !directory.exists() {
        return Ok(());
    }
    end_session(state, session).await?;
    let left = state.join("fleet").join("left");
    std::fs::create_dir_all(&left).map_err(FleetError::file(&left))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    std::fs::rename(&directory, left.join(format!("{session}-{now}")))
        .map_err(FleetError::file(&directory))
}

/// Ends what runs of a session on this host.
pub(crate) async fn end_session(state: &Path, session: &str) -> Result<(), FleetError> {
    let directory = state.join("sessions").join(session);
    let until = tokio::time::Instant::now() + ENDING;
    while journal::is_held(&directory) {
        // A daemon that runs it yet ends it. Where none runs, there is nothing to end.
        let _ = run::agentd(&["kill", session]).await;
        if tokio::time::Instant::now() > until {
            let why = format!("an earlier run of {session} on this host does not end");
            return Err(FleetError::ThisHost(why));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// How far the last turn of the session in this directory is. A call before the first prompt counts as a turn
/// that ended: it may not be made again.
pub(crate) fn turn_of(directory: &Path) -> TurnProgress {
    if !journal::was_begun(directory) {
        return TurnProgress::NotBegun;
    }
    let Ok(entries) = journal::read(directory) else { return TurnProgress::Ended };
    let mut turn = TurnProgress::NotBegun;
    for entry in entries.flatten() {
        let record = &entry.record;
        if record.is_prompt() {
            turn = TurnProgress::Open;
        } else if record.ends_turn() || turn != TurnProgress::Open && !record.is_header() {
            turn = TurnProgress::Ended;
        }
    }
    turn
}

/// The workspace of a run that a worker before this one began here.
pub(crate) async fn reopen(
    database: &Database,
    claim: &Claim,
    place: &Path,
) -> Result<Workspace, FleetError> {
    let (_, snapshots, _) = snapshots_of(database, claim).await?;
    let tree = snapshots.into_iter().next_back().map(|kept| kept.tree);
    Workspace::reopen(place, &claim.repo, tree).await
}

/// A snapshot in the database.
struct KeptSnapshot {
    tree: String,
    pack: Vec<u8>,
    object: Option<String>,
}

/// Brings the workspace to the last snapshot.
async fn restore_files(
    workspace: &mut Workspace,
    snapshots: &[KeptSnapshot],
    objects: Option<&Objects>,
) -> Result<(), FleetError> {
    let file = workspace.tree().with_file_name("restored-pack");
    for KeptSnapshot { pack, object, .. } in snapshots {
        match (object, objects) {
            (None, _) => std::fs::write(&file, pack).map_err(FleetError::file(&file))?,
            (Some(name), Some(objects)) => objects.get(name, &file).await?,
            (Some(_), None) => return Err(ObjectsError::unnamed().into()),
        }
        workspace.add_pack(&file).await?;
    }
    match snapshots.last() {
        None => Ok(()),
        Some(last) => workspace.restore(&last.tree).await,
    }
}

/// The base commit, the snapshots in their order, and the last record that they include.
async fn snapshots_of(
    database: &Database,
    claim: &Claim,
) -> Result<(Option<String>, Vec<KeptSnapshot>, u64), FleetError> {
    let lease = &claim.lease;
    let rows = database
        .until_answered(|client| async move {
            let text = "select seq, base, tree, pack, object from agentd.snapshots($1::text::uuid)";
            client.query(text, &[lease]).await
        })
        .await?;
    let (mut base, mut snapshots, mut last) = (None, Vec::new(), 0);
    for row in rows {
        let seq: i64 = row.try_get(0)?;
        base = Some(row.try_get(1)?);
        last = u64::try_from(seq).unwrap_or_default();
        let kept =
            KeptSnapshot { tree: row.try_get(2)?, pack: row.try_get(3)?, object: row.try_get(4)? };
        // The first has the base commit alone.
        if !kept.tree.is_empty() {
            snapshots.push(kept);
        }
    }
    Ok((base, snapshots, last))
}

async fn record_base(
    database: &Database,
    claim: &Claim,
    workspace: &Workspace,
) -> Result<(), FleetError> {
    let (lease, base) = (&claim.lease, &workspace.base().to_owned());
    database
        .until_answered(|client| async move {
            let text = "select agentd.put_snapshot($1::text::uuid, 0, $2, '', '', null)";
            client.execute(text, &[lease, base]).await
        })
        .await
        .map(drop)
}

/// Makes the session of the records that the database has.
async fn restore_session(
    database: &Database,
    sessions: &Path,
    claim: &Claim,
) -> Result<(), FleetError> {
    let (lease, mut lines) = (&claim.lease, Vec::new());
    while lines.len() < usize::try_from(claim.last_seq).unwrap_or_default() {
        let after = number(lines.len() as u64);
        let rows = database
            .until_answered(|client| async move {
                let text = "select seq, line from agentd.records($1::text::uuid, $2, $3)";
                client.query(text, &[lease, &after, &PAGE]).await
            })
            .await?;
        if rows.is_empty() {
            let why = format!(
                "the database has {after} of {} records of {}",
                claim.last_seq, claim.session
            );
            return Err(FleetError::Host(why));
        }
        for row in rows {
            lines.push(row.try_get::<_, String>(1)?);
        }
    }
    let mut beside = Vec::new();
    for digest in lines.iter().flat_map(|line| journal::kept_beside(line)) {
        let name = &digest.to_string();
        let row = database
            .until_answered(|client| async move {
                let text = "select agentd.blob_of($1::text::uuid, decode($2, 'hex'))";
                client.query_one(text, &[lease, name]).await
            })
            .await?;
        let bytes: Option<Vec<u8>> = row.try_get(0)?;
        beside.push(
            bytes.ok_or_else(|| FleetError::Host(format!("the database lacks the text {name}")))?,
        );
    }
    journal::restore(sessions, &claim.session, &lines, &beside)
        .map_err(|error| FleetError::ThisHost(format!("cannot restore {}: {error}", claim.session)))
}

/// The open calls and the open turn of the session in this directory.
fn lost_session(
    directory: &Path,
    snapshot_seq: u64,
    failed_over: bool,
) -> Result<LostSession, FleetError> {
    let past = journal::past_of(directory).map_err(|error| FleetError::Host(error.to_string()))?;
    let said = Past::fold(&past.entries);
    let began = said.open_calls().into_iter().filter(|call| {
        // The records of a sub-agent are on its host alone.
        (call.tool_kind == ToolKind::Mutation || call.tool == journal::TASK)
            && call.progress == CallProgress::MayHaveRun
            && call.refused.is_none()
    });
    let work = |call: journal::OpenCall| {
        let start = said.starts.iter().find(|start| start.call == call.number);
        let (start_seq, contained) =
            start.map(|start| (start.seq, start.contained)).unwrap_or_default();
        OpenWork { tool: call.tool, start_seq, contained }
    };
    Ok(LostSession { open: began.map(work).collect(), snapshot_seq, failed_over })
}

/// The prompt whose turn the run waits for: the last one, or a further one where a person let a task go on
/// whose turn had ended.
fn next_prompt(directory: &Path, claim: &Claim) -> Result<String, FleetError> {
    let unreadable = |error: journal::ReadError| FleetError::Host(error.to_string());
    let (mut last, mut ended_at, mut turns, mut turn) = (None, 0, 0, LastTurn::Ended);
    for entry in journal::read(directory).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        if let Some(text) = entry.record.prompt_text() {
            (last, turn) = (Some(text.to_owned()), LastTurn::Open);
            turns += 1;
        } else if entry.record.ends_turn() {
            (ended_at, turn) = (number(entry.seq), LastTurn::Ended);
        }
    }
    Ok(match last {
        None => claim.prompt.clone(),
        Some(_) if turn == LastTurn::Ended && ended_at <= claim.resume_after => {
            format!("Go on with the task. This is attempt {}.", turns + 1)
        }
        Some(text) => text,
    })
}
