//! The socket at which supervisors of this host take their seats.

use crate::connection::Connection;
use crate::error::FleetError;
use crate::seat::{Lines, Seat};
use protocol::fleet::{FleetLink, FromFleet, ToFleet};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::{UnixListener, UnixStream};

/// The seats of this host, by their lease. A session has a second one while the run of a lease that was lost
/// ends here, and this host has the session again.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seats(Arc<Mutex<BTreeMap<String, Arc<Seat>>>>);

impl Seats {
    pub(crate) fn add(&self, seat: Arc<Seat>) {
        self.locked().insert(seat.lease.clone(), seat);
    }

    pub(crate) fn remove(&self, lease: &str) {
        self.locked().remove(lease);
    }

    pub(crate) fn all(&self) -> Vec<Arc<Seat>> {
        self.locked().values().cloned().collect()
    }

    /// The seat of a session whose lease holds.
    pub(crate) fn held(&self, session: &str) -> Option<Arc<Seat>> {
        self.locked().values().find(|seat| seat.session == session && !seat.is_lost()).cloned()
    }

    fn of(&self, session: &str, token: &str) -> Option<Arc<Seat>> {
        self.locked().values().find(|seat| seat.session == session && seat.token == token).cloned()
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Arc<Seat>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The socket's path in the private directory of this user.
pub(crate) fn socket_in(runtime: &Path) -> PathBuf {
    runtime.join("fleet.socket")
}

/// Opens the door and serves it until the process ends. The caller holds the lock of this worker.
pub(crate) fn open(socket: &Path, seats: Seats) -> Result<(), FleetError> {
    if let Err(error) = std::fs::remove_file(socket)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(FleetError::file(socket)(error));
    }
    let listener = UnixListener::bind(socket).map_err(FleetError::file(socket))?;
    tokio::spawn(async move {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    tokio::spawn(serve(stream, seats.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "a supervisor cannot be let in");
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                }
            }
        }
    });
    Ok(())
}

async fn serve(stream: UnixStream, seats: Seats) {
    if let Err(error) = converse(stream, &seats).await {
        tracing::debug!(%error, "the connection of a supervisor ended");
    }
}

async fn converse(stream: UnixStream, seats: &Seats) -> io::Result<()> {
    let Connection { mut reader, mut writer } = Connection::accept::<FleetLink>(stream).await?;
    let ToFleet::Sit { session, token } = reader.recv().await? else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let Some(seat) = seats.of(&session.0, &token) else {
        let why = "this host has no lease for the session".to_owned();
        return writer.send(&FromFleet::Lost(why)).await;
    };
    let mut state = seat.state.subscribe();
    let mut told = state.borrow_and_update().clone();
    let seated = FromFleet::Seated { last_seq: told.last_seq, lease: told.clock };
    writer.send(&seated).await?;
    loop {
        if let Some(why) = told.lost {
            return writer.send(&FromFleet::Lost(why)).await;
        }
        tokio::select! {
            word = reader.recv() => match word? {
                ToFleet::Append { first, lines } => {
                    if seat.lines.send(Lines { first, lines }).is_err() {
                        seat.lose("its records are not taken any more");
                    }
                }
                ToFleet::Sit { .. } => return Err(io::ErrorKind::InvalidData.into()),
            },
            changed = state.changed() => {
                changed.map_err(|_| io::ErrorKind::BrokenPipe)?;
            }
        }
        let now = state.borrow_and_update().clone();
        if now.last_seq != told.last_seq {
            writer.send(&FromFleet::Durable(now.last_seq)).await?;
        }
        if now.clock != told.clock {
            writer.send(&FromFleet::Renewed(now.clock)).await?;
        }
        told = now;
    }
}
