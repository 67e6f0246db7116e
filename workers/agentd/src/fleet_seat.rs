//! The file with which `agentd fleet worker` gives a run its seat: one JSON object.

use crate::cli_error::CliError;
use protocol::fleet::{FleetSeat, RestoredSession};
use protocol::ids::SessionId;
use protocol::judgement::Audience;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// The file's object.
#[derive(Debug, Deserialize)]
pub(crate) struct SeatFile {
    session: String,
    task: i64,
    socket: PathBuf,
    token: String,
    shared_disk: bool,
    ask: bool,
    restored: Option<RestoredSession>,
}

impl SeatFile {
    pub(crate) fn session(&self) -> SessionId {
        SessionId(self.session.clone())
    }

    /// Whether questions wait for a person, who attaches from anywhere.
    pub(crate) fn audience(&self) -> Audience {
        if self.ask { Audience::Person } else { Audience::NonInteractive }
    }

    pub(crate) fn into_seat(self) -> FleetSeat {
        let Self { task, socket, token, shared_disk, restored, .. } = self;
        FleetSeat { task, socket: (&socket).into(), token, shared_disk, restored }
    }
}

pub(crate) fn read(file: &Path) -> Result<SeatFile, CliError> {
    let unusable = |why: String| CliError::user(format!("the seat {}: {why}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| unusable(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| unusable(error.to_string()))
}
