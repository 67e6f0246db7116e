//! The socket at which supervisors of this host take their seats.

use crate::error::FleetError;
use crate::seat::{Lines, Seat};
use ipc::{HELLO_BYTES, Hello, MessageJoiner, codec};
use protocol::Link;
use protocol::fleet::{FleetLink, FromFleet, ToFleet};
use protocol::ids::Generation;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::OwnedReadHalf;
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

async fn converse(mut stream: UnixStream, seats: &Seats) -> io::Result<()> {
    if stream.peer_cred()?.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    stream.write_all(&Hello::own().to_bytes()).await?;
    let mut bytes = [0; HELLO_BYTES];
    stream.read_exact(&mut bytes).await?;
    Hello::from_bytes(&bytes).and_then(|hello| hello.check()).map_err(io::Error::other)?;
    let (reader, mut writer) = stream.into_split();
    let mut words = Words {
        reader,
        joiner: MessageJoiner::new(FleetLink::MESSAGE_CAP),
        buffer: vec![0; 64 << 10],
    };
    let ToFleet::Sit { session, token } = words.next().await? else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let Some(seat) = seats.of(&session.0, &token) else {
        let why = "this host has no lease for the session".to_owned();
        return writer.write_all(&bytes_of(&FromFleet::Lost(why))?).await;
    };
    let mut state = seat.state.subscribe();
    let mut told = state.borrow_and_update().clone();
    let seated = FromFleet::Seated { last_seq: told.last_seq, lease: told.clock };
    writer.write_all(&bytes_of(&seated)?).await?;
    loop {
        if let Some(why) = told.lost {
            return writer.write_all(&bytes_of(&FromFleet::Lost(why))?).await;
        }
        tokio::select! {
            word = words.next() => match word? {
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
            writer.write_all(&bytes_of(&FromFleet::Durable(now.last_seq))?).await?;
        }
        if now.clock != told.clock {
            writer.write_all(&bytes_of(&FromFleet::Renewed(now.clock))?).await?;
        }
        told = now;
    }
}

fn bytes_of(word: &FromFleet) -> io::Result<Vec<u8>> {
    let body = codec::encode(word).map_err(io::Error::other)?;
    Ok(ipc::frames(Generation(0), 0, &body))
}

/// The messages of a supervisor.
struct Words {
    reader: OwnedReadHalf,
    joiner: MessageJoiner,
    buffer: Vec<u8>,
}

impl Words {
    /// The next message. May be cancelled.
    async fn next(&mut self) -> io::Result<ToFleet> {
        loop {
            if let Some(message) = self.joiner.next_message().map_err(io::Error::other)? {
                let body = message.body.ok_or(io::ErrorKind::InvalidData)?;
                return codec::decode(&body).map_err(io::Error::other);
            }
            match self.reader.read(&mut self.buffer).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                length => self.joiner.push(&self.buffer[..length]),
            }
        }
    }
}
