//! A session's seat in a fleet: its records go to `agentd-fleet` too, and a barrier waits for both copies.
//!
//! [`sit`] connects; the task that it starts keeps the connection, and makes a new one when `agentd-fleet`
//! starts again. Records that were not confirmed are sent again. The session opener calls it, the journal's
//! writer waits by [`FleetLease::durable`], and the session actor hears of [`FleetEvent`]s.

use ipc::{HELLO_BYTES, Hello, MessageJoiner, codec};
use journal::JournalCopy;
use protocol::Link;
use protocol::client::RequestFailure;
use protocol::fleet::{FleetLink, FleetSeat, FromFleet, LeaseClock, ToFleet};
use protocol::ids::{Generation, SessionId};
use rustix::time::{ClockId, clock_gettime};
use setup::open_failure::OpenFailure;
use std::collections::VecDeque;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, watch};

/// How long `agentd-fleet` may take to give the seat.
const SITTING: Duration = Duration::from_secs(10);
/// Between two tries to reach it again.
const PAUSE: Duration = Duration::from_millis(100);
/// How long `agentd-fleet` may take to take a message or to say hello. Meanwhile nobody looks at the clock.
const HEARING: Duration = Duration::from_millis(500);
/// Why a lease is lost that ran out.
const LAPSED: &str = "the fleet's database was not reached for the length of a lease";
/// Lines that one message carries at most, and their bytes.
const MOST_LINES: usize = 512;
const MOST_BYTES: usize = 8 << 20;

/// A lease changed its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FleetEvent {
    /// The database was not reached for two thirds of the lease: running commands stop for now.
    Frozen,
    /// It was reached again.
    Thawed,
    /// The session is another host's, or will be.
    Lost(String),
}

/// How far the second copy is.
#[derive(Debug, Clone)]
struct CopyState {
    durable: u64,
    /// Until when the lease holds, by the clock of this host.
    kill_at: u64,
    /// The calls stand still.
    frozen: bool,
    lost: Option<String>,
}

/// The second copy, as the journal sees it.
#[derive(Debug, Clone)]
pub(crate) struct FleetCopy {
    lines: mpsc::UnboundedSender<Lines>,
    pub(crate) lease: FleetLease,
}

/// The lease of a session, as its calls and those of its sub-agents see it.
#[derive(Debug, Clone)]
pub(crate) struct FleetLease {
    state: watch::Receiver<CopyState>,
}

/// Lines of the journal, the first of which has this number.
#[derive(Debug)]
struct Lines {
    first: u64,
    lines: Vec<String>,
}

impl JournalCopy for FleetCopy {
    fn take(&mut self, first: u64, lines: Vec<String>) {
        // Where the seat is lost, the next barrier says so.
        let _ = self.lines.send(Lines { first, lines });
    }
}

impl FleetLease {
    /// Waits until the fleet's database has this record.
    ///
    /// # Errors
    /// The lease is lost, and why.
    pub(crate) async fn durable(&self, seq: u64) -> Result<(), String> {
        let mut state = self.state.clone();
        let reached = state.wait_for(|state| state.lost.is_some() || state.durable >= seq).await;
        reached.map(drop).map_err(|_| "the connection to the fleet ended".to_owned())?;
        self.holds()
    }

    /// Whether a call may begin now. The process may have stood still since something else said so.
    ///
    /// # Errors
    /// The lease is lost, and why.
    pub(crate) fn holds(&self) -> Result<(), String> {
        let state = self.state.borrow();
        match &state.lost {
            Some(why) => Err(why.clone()),
            None if boot_ms() >= state.kill_at => Err(LAPSED.to_owned()),
            None => Ok(()),
        }
    }

    /// True while the calls are to stand still.
    pub(crate) fn stands_still(&self) -> bool {
        self.state.borrow().frozen
    }

    /// Waits until the calls are to stand still, or need not. False once the lease is gone.
    pub(crate) async fn turns(&self, stands_still: bool) -> bool {
        let mut state = self.state.clone();
        state.wait_for(|state| state.frozen == stands_still || state.lost.is_some()).await.is_ok()
            && self.state.borrow().lost.is_none()
    }
}

/// A seat that was taken.
pub(crate) struct Seated {
    pub(crate) copy: FleetCopy,
    /// The last record that the database has.
    pub(crate) last_seq: u64,
    /// What happens to the lease.
    pub(crate) events: mpsc::UnboundedReceiver<FleetEvent>,
}

/// Takes the seat.
///
/// # Errors
/// `agentd-fleet` does not answer, or the lease is lost.
pub(crate) async fn sit(seat: &FleetSeat, session: &SessionId) -> Result<Seated, OpenFailure> {
    let failed = |why: String| {
        let message = format!("the session works for task {} of a fleet, and {why}", seat.task);
        OpenFailure::new(RequestFailure::Held, message)
    };
    let sitting = tokio::time::timeout(SITTING, Connection::open(seat, session)).await;
    let (connection, last_seq, lease) = match sitting {
        Ok(Ok(seated)) => seated,
        Ok(Err(error)) => return Err(failed(error.to_string())),
        Err(_) => return Err(failed("agentd-fleet does not answer".to_owned())),
    };
    let (lines, incoming) = mpsc::unbounded_channel();
    let (state, seen) = watch::channel(CopyState {
        durable: last_seq,
        kill_at: lease.kill_at,
        frozen: false,
        lost: None,
    });
    let (events, heard) = mpsc::unbounded_channel();
    let keeper = SeatKeeper {
        seat: seat.clone(),
        session: session.clone(),
        state,
        events,
        lease,
        unconfirmed: VecDeque::new(),
        sent: last_seq,
    };
    tokio::spawn(keeper.keep(connection, incoming));
    Ok(Seated {
        copy: FleetCopy { lines, lease: FleetLease { state: seen } },
        last_seq,
        events: heard,
    })
}

/// A connection to `agentd-fleet`.
struct Connection {
    reader: OwnedReadHalf,
    writer: OwnedWriteHalf,
    joiner: MessageJoiner,
    buffer: Vec<u8>,
}

impl Connection {
    /// Connects and sits down.
    async fn open(seat: &FleetSeat, session: &SessionId) -> io::Result<(Self, u64, LeaseClock)> {
        let socket = seat.socket.to_path();
        let mut stream = UnixStream::connect(&socket).await.map_err(|error| {
            io::Error::other(format!(
                "agentd-fleet cannot be reached at {}: {error}",
                socket.display()
            ))
        })?;
        if stream.peer_cred()?.uid() != rustix::process::geteuid().as_raw() {
            return Err(io::Error::other(format!("another user listens at {}", socket.display())));
        }
        stream.write_all(&Hello::own().to_bytes()).await?;
        let mut bytes = [0; HELLO_BYTES];
        stream.read_exact(&mut bytes).await?;
        Hello::from_bytes(&bytes).and_then(|hello| hello.check()).map_err(io::Error::other)?;
        let (reader, writer) = stream.into_split();
        let mut connection = Self {
            reader,
            writer,
            joiner: MessageJoiner::new(FleetLink::MESSAGE_CAP),
            buffer: vec![0; 64 << 10],
        };
        let sit = ToFleet::Sit { session: session.clone(), token: seat.token.clone() };
        connection.send(&sit).await?;
        match connection.recv().await? {
            FromFleet::Seated { last_seq, lease } => Ok((connection, last_seq, lease)),
            FromFleet::Lost(why) => Err(io::Error::new(io::ErrorKind::PermissionDenied, why)),
            FromFleet::Durable(_) | FromFleet::Renewed(_) => {
                Err(io::Error::other("agentd-fleet broke the protocol"))
            }
        }
    }

    async fn send(&mut self, word: &ToFleet) -> io::Result<()> {
        let body = codec::encode(word).map_err(io::Error::other)?;
        self.writer.write_all(&ipc::frames(Generation(0), 0, &body)).await
    }

    /// The next message. May be cancelled.
    async fn recv(&mut self) -> io::Result<FromFleet> {
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

/// Keeps the seat of a session until its lease is lost or its session ends.
struct SeatKeeper {
    seat: FleetSeat,
    session: SessionId,
    state: watch::Sender<CopyState>,
    events: mpsc::UnboundedSender<FleetEvent>,
    lease: LeaseClock,
    /// Lines that the database has not confirmed, with their numbers.
    unconfirmed: VecDeque<(u64, String)>,
    /// The last line that was sent over the present connection.
    sent: u64,
}

/// Why the present connection is left.
enum Parting {
    /// The session ended, or its lease did.
    Over,
    /// Another connection may go on.
    Reconnect,
}

impl SeatKeeper {
    async fn keep(mut self, first: Connection, mut incoming: mpsc::UnboundedReceiver<Lines>) {
        let mut connection = Some(first);
        loop {
            let parting = match &mut connection {
                Some(open) => self.use_connection(open, &mut incoming).await,
                None => self.wait(&mut incoming).await,
            };
            match parting {
                Parting::Over => return,
                Parting::Reconnect => connection = None,
            }
            let opened = Connection::open(&self.seat, &self.session);
            match within(HEARING, opened).await {
                Ok((open, last_seq, lease)) => {
                    if self.on_time() {
                        return;
                    }
                    self.renewed(lease);
                    self.confirm(last_seq);
                    self.sent = last_seq;
                    connection = Some(open);
                }
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    return self.lose(error.to_string());
                }
                Err(error) => {
                    tracing::debug!(session = %self.session, %error, "agentd-fleet is away")
                }
            }
        }
    }

    /// Sends lines and hears answers over this connection.
    async fn use_connection(
        &mut self,
        connection: &mut Connection,
        incoming: &mut mpsc::UnboundedReceiver<Lines>,
    ) -> Parting {
        loop {
            if let Some(batch) = self.next_batch()
                && within(HEARING, connection.send(&batch)).await.is_err()
            {
                return Parting::Reconnect;
            }
            let due = self.due();
            tokio::select! {
                // The clock is looked at first: a process that stood still may have old answers.
                biased;
                () = sleep_until(due) => if self.on_time() {
                    return Parting::Over;
                },
                lines = incoming.recv() => match lines {
                    Some(lines) => self.queue(lines),
                    None => return Parting::Over,
                },
                heard = connection.recv() => match heard {
                    Ok(FromFleet::Durable(seq)) => self.confirm(seq),
                    Ok(FromFleet::Renewed(lease)) => self.renewed(lease),
                    Ok(FromFleet::Lost(why)) => {
                        self.lose(why);
                        return Parting::Over;
                    }
                    Ok(FromFleet::Seated { .. }) | Err(_) => return Parting::Reconnect,
                },
            }
        }
    }

    /// Without a connection: lines are kept, and the lease runs on.
    async fn wait(&mut self, incoming: &mut mpsc::UnboundedReceiver<Lines>) -> Parting {
        let again = boot_ms().saturating_add(u64::try_from(PAUSE.as_millis()).unwrap_or(100));
        loop {
            let due = self.due().min(again);
            tokio::select! {
                lines = incoming.recv() => match lines {
                    Some(lines) => self.queue(lines),
                    None => return Parting::Over,
                },
                () = sleep_until(due) => {
                    if self.on_time() {
                        return Parting::Over;
                    }
                    if boot_ms() >= again {
                        return Parting::Reconnect;
                    }
                }
            }
        }
    }

    fn queue(&mut self, Lines { first, lines }: Lines) {
        self.unconfirmed.extend((first..).zip(lines));
    }

    /// The next lines to send.
    fn next_batch(&mut self) -> Option<ToFleet> {
        let mut bytes = 0;
        let waiting = self.unconfirmed.iter().filter(|(seq, _)| *seq > self.sent);
        let lines: Vec<_> = waiting
            .take(MOST_LINES)
            .take_while(|(_, line)| {
                let fits = bytes == 0 || bytes + line.len() <= MOST_BYTES;
                bytes += line.len();
                fits
            })
            .collect();
        let (first, last) = (lines.first()?.0, lines.last()?.0);
        let lines = lines.into_iter().map(|(_, line)| line.clone()).collect();
        self.sent = last;
        Some(ToFleet::Append { first, lines })
    }

    fn confirm(&mut self, seq: u64) {
        while self.unconfirmed.front().is_some_and(|(front, _)| *front <= seq) {
            self.unconfirmed.pop_front();
        }
        self.state.send_modify(|state| state.durable = state.durable.max(seq));
    }

    fn renewed(&mut self, lease: LeaseClock) {
        self.lease = lease;
        self.state.send_modify(|state| state.kill_at = lease.kill_at);
        if self.is_frozen() && boot_ms() < lease.freeze_at {
            self.state.send_modify(|state| state.frozen = false);
            let _ = self.events.send(FleetEvent::Thawed);
        }
    }

    /// When the lease next changes what may run.
    fn due(&self) -> u64 {
        if self.is_frozen() { self.lease.kill_at } else { self.lease.freeze_at }
    }

    /// True if the lease is over.
    fn on_time(&mut self) -> bool {
        let now = boot_ms();
        if now >= self.lease.kill_at {
            self.lose(LAPSED.to_owned());
            return true;
        }
        if now >= self.lease.freeze_at && !self.is_frozen() {
            self.state.send_modify(|state| state.frozen = true);
            let _ = self.events.send(FleetEvent::Frozen);
        }
        false
    }

    fn is_frozen(&self) -> bool {
        self.state.borrow().frozen
    }

    fn lose(&mut self, why: String) {
        self.state.send_modify(|state| state.lost = Some(why.clone()));
        let _ = self.events.send(FleetEvent::Lost(why));
    }
}

/// The outcome, or an error where it takes longer.
async fn within<T>(time: Duration, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::time::timeout(time, work).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Sleeps until this time of `CLOCK_BOOTTIME`. Timers stand still while the machine sleeps, so that it looks
/// at the clock every second.
async fn sleep_until(at: u64) {
    let left = Duration::from_millis(at.saturating_sub(boot_ms()));
    tokio::time::sleep(left.min(Duration::from_secs(1))).await;
}

fn boot_ms() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let ms = now.tv_sec.saturating_mul(1000).saturating_add(now.tv_nsec / 1_000_000);
    u64::try_from(ms).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that stood still gets an answer of the time before. The lease is over meanwhile.
    #[tokio::test(flavor = "current_thread")]
    async fn a_record_that_is_durable_opens_no_barrier_after_the_lease() {
        let lease_until = |kill_at| {
            let (sender, state) =
                watch::channel(CopyState { durable: 5, kill_at, frozen: false, lost: None });
            (sender, FleetLease { state })
        };
        let (_sender, lease) = lease_until(u64::MAX);
        assert_eq!(lease.durable(5).await, Ok(()));
        let (_sender, lease) = lease_until(0);
        assert_eq!(lease.durable(5).await, Err(LAPSED.to_owned()));
    }
}
