//! The seat of a session that is opened: taken before its journal is opened, and given the records that the
//! fleet lacks.

use crate::fleet_seat::{FleetCopy, Seated, sit};
use journal::{Journal, JournalCopy as _};
use protocol::client::RequestFailure;
use protocol::error_chain::chain;
use setup::open_failure::OpenFailure;
use setup::session_spec::SessionSpec;
use std::path::Path;

/// Takes the seat that the request names. A session that works for a fleet is opened with its seat only:
/// another host may have it. `earlier` is its directory, if it is resumed.
pub(super) async fn take_seat(
    spec: &SessionSpec,
    earlier: Option<&Path>,
) -> Result<Option<Seated>, OpenFailure> {
    if let Some(seat) = spec.seat() {
        return sit(seat, spec.id()).await.map(Some);
    }
    // What cannot be read is named when the journal is opened.
    let header = earlier.and_then(|directory| journal::header(directory).ok());
    let Some(task) = header.and_then(|header| header.fleet_task) else { return Ok(None) };
    let message = format!(
        "session {0} works for task {task} of a fleet, which decides where it goes on: `agentd tasks retry \
         {task}`. `agentd fork {0}` copies it into a session of yours",
        spec.id()
    );
    Err(OpenFailure::new(RequestFailure::Held, message))
}

/// Gives the fleet the records that it lacks, and each further one.
pub(super) fn copy_records(
    mut journal: Journal,
    directory: &Path,
    (known, mut copy): (u64, FleetCopy),
) -> Result<Journal, OpenFailure> {
    let own = journal.last_seq();
    if own < known {
        let message = format!(
            "the fleet has {known} records of this session, and this host has {own}: it was not restored"
        );
        return Err(OpenFailure::new(RequestFailure::Disk, message));
    }
    let lacking = journal::lines_after(directory, known);
    let lacking = lacking.map_err(|error| OpenFailure::new(RequestFailure::Disk, chain(&error)))?;
    copy.take(known + 1, lacking);
    journal.set_copy(Box::new(copy));
    Ok(journal)
}
