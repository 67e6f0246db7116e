//! The connection of a client to its session, at one supervisor after another: it opens the session, sends,
//! gives the next input, pings a supervisor that owes a message, and counts losses. One thread reads each
//! supervisor's messages. Used by the loop in `session_loop`.

use crate::client_error::ClientError;
use crate::silence::{PING_AFTER, SilenceAction};
use crate::supervisor_connection::SupervisorConnection;
use crate::supervisor_source::SupervisorSource;
use ipc::{ChannelError, Receiver, Sender};
use protocol::client::{FromClient, SessionRequest, SessionStart, ToClient};
use protocol::ids::SessionId;
use protocol::session::OpenTurn;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

/// Bound on inputs that were not handled. Then the reader thread blocks.
const QUEUE: usize = 256;
/// Pings in a row that may stay unanswered. One may be our own fault: a client that was stopped
/// itself finds the answer a moment later.
const MAX_PINGS: u32 = 2;

/// Inputs of a loop, among them those from a supervisor.
pub(crate) trait LoopInput: From<SupervisorInput> + Send + 'static {
    fn is_message(&self) -> bool;
}

/// What comes from a supervisor.
#[derive(Debug)]
// Each input is moved once. A box per message would cost more than it saves.
#[allow(clippy::large_enum_variant)]
pub(crate) enum SupervisorInput {
    Message(ToClient),
    /// It is gone.
    Lost(ChannelError),
    /// It was given up because it does not answer.
    Silent,
}

/// The inputs of a loop, and the end that other threads send into.
pub(crate) fn input_queue<T>() -> (SyncSender<T>, mpsc::Receiver<T>) {
    mpsc::sync_channel(QUEUE)
}

/// Losses of supervisors that a client accepts without progress in between. More are a bug that a
/// restart does not fix.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LossLimit {
    pub(crate) most: usize,
    /// Earlier losses do not count.
    pub(crate) within: Duration,
}

/// When a silent supervisor is pinged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PingWhen {
    /// Never: others may end it by force.
    Never,
    /// While it owes the reply to a message that was sent.
    ReplyDue,
    Always,
}

/// The end of a wait.
#[derive(Debug)]
pub(crate) enum Waited<T> {
    Input(T),
    /// The supervisor does not answer, and is given more time. Reported once per silence.
    Slow,
    /// Nothing came in time.
    Nothing,
}

/// A connection to a session.
pub(crate) struct SessionConnection<'a, T> {
    supervisors: &'a mut dyn SupervisorSource,
    /// How the session is opened, and the descriptors that it names.
    opening: SessionRequest,
    papers: Vec<OwnedFd>,
    sender: Sender<FromClient>,
    inputs: mpsc::Receiver<T>,
    into_inputs: SyncSender<T>,
    /// Which supervisor is the current one, counted from 1.
    current: Arc<AtomicU32>,
    pings: PingState,
    limit: LossLimit,
    losses: Vec<Instant>,
}

/// Pings of a supervisor that owes a message.
struct PingState {
    /// Time of the last message or ping.
    last_message: Instant,
    /// Pings since the last message.
    unanswered: u32,
    reply_due: bool,
}

impl PingState {
    /// Of a supervisor that has just said something.
    fn fresh() -> Self {
        Self { last_message: Instant::now(), unanswered: 0, reply_due: false }
    }
}

impl<'a, T: LoopInput> SessionConnection<'a, T> {
    /// Connects, and asks for the session.
    pub(crate) fn open(
        supervisors: &'a mut dyn SupervisorSource,
        (opening, papers): (SessionRequest, Vec<OwnedFd>),
        (into_inputs, inputs): (SyncSender<T>, mpsc::Receiver<T>),
        limit: LossLimit,
    ) -> Result<Self, ClientError> {
        let connection = supervisors.connect().map_err(ClientError::NoSupervisor)?;
        let current = Arc::default();
        let sender = begin(connection, (&opening, &papers), &into_inputs, &current)?;
        let pings = PingState::fresh();
        Ok(Self {
            supervisors,
            opening,
            papers,
            sender,
            inputs,
            into_inputs,
            current,
            pings,
            limit,
            losses: Vec::new(),
        })
    }

    /// The request that opened the session.
    pub(crate) fn opening(&self) -> &SessionRequest {
        &self.opening
    }

    /// Sends a message. If this fails, the reader thread reports the loss of the supervisor.
    pub(crate) fn send(&mut self, word: &FromClient) {
        self.pings.reply_due = true;
        let _ = self.sender.send(word);
    }

    /// Asks the same supervisor for a session, with the descriptors that the request names.
    pub(crate) fn send_opening(&self, opening: SessionRequest, papers: &[OwnedFd]) {
        // As above.
        let _ = self.sender.send(&FromClient::Open(opening));
        papers.iter().for_each(|paper| drop(self.sender.send_fd(paper.as_fd())));
    }

    /// Asks the same supervisor for a session that is opened as this one was.
    pub(crate) fn send_start(&self, start: SessionStart) {
        self.send_opening(SessionRequest { start, ..self.opening.clone() }, &self.papers);
    }

    /// The session is another from now on, which was opened so.
    pub(crate) fn replace_opening(&mut self, opening: SessionRequest, papers: Vec<OwnedFd>) {
        (self.opening, self.papers) = (opening, papers);
    }

    /// Opens the session at another supervisor.
    pub(crate) fn resume(&mut self, session: SessionId) -> Result<(), ClientError> {
        self.drop_current();
        let found = self.supervisors.connect().map_err(ClientError::NoSupervisor)?;
        self.open_over(found, session, OpenTurn::GoesOn)
    }

    /// Joins the session at the supervisor where another client has resumed it. False if none has.
    pub(crate) fn join_resumed(&mut self, session: &SessionId) -> Result<bool, ClientError> {
        let found = self.supervisors.connect_where_live(session);
        let Some(found) = found.map_err(ClientError::NoSupervisor)? else { return Ok(false) };
        self.open_over(found, session.clone(), OpenTurn::Waits).map(|()| true)
    }

    fn open_over(
        &mut self,
        connection: SupervisorConnection,
        session: SessionId,
        open_turn: OpenTurn,
    ) -> Result<(), ClientError> {
        self.opening.start = SessionStart::Resume { session, open_turn };
        let opening = (&self.opening, &*self.papers);
        self.sender = begin(connection, opening, &self.into_inputs, &self.current)?;
        self.pings = PingState::fresh();
        Ok(())
    }

    /// Drops all further messages of the current supervisor, its end above all.
    pub(crate) fn drop_current(&self) {
        self.current.fetch_add(1, Ordering::Relaxed);
    }

    /// The next input; none after `wait`. A silent supervisor is pinged. One that leaves several pings
    /// unanswered is given time or given up; see [`SupervisorSource::on_silence`].
    pub(crate) fn next(&mut self, wait: Option<Duration>, ping: PingWhen) -> Waited<T> {
        let begun = Instant::now();
        let pings =
            ping == PingWhen::Always || (ping == PingWhen::ReplyDue && self.pings.reply_due);
        if !pings {
            let input = match wait {
                Some(wait) => self.inputs.recv_timeout(wait).ok(),
                None => self.inputs.recv().ok(),
            };
            self.pings.last_message = Instant::now();
            return input.map_or(Waited::Nothing, Waited::Input);
        }
        loop {
            let patience = PING_AFTER.saturating_sub(self.pings.last_message.elapsed());
            let left = wait.map(|wait| wait.saturating_sub(begun.elapsed()));
            let is_over = left.is_some_and(|left| left < patience);
            match self.inputs.recv_timeout(left.map_or(patience, |left| left.min(patience))) {
                Ok(input) => {
                    self.note_answer(&input);
                    return Waited::Input(input);
                }
                Err(RecvTimeoutError::Timeout) if !is_over && self.pings.unanswered < MAX_PINGS => {
                    self.pings.last_message = Instant::now();
                    self.pings.unanswered += 1;
                    // If this fails, the reader thread reports the loss of the supervisor.
                    let _ = self.sender.send(&FromClient::Ping(u64::from(self.pings.unanswered)));
                }
                Err(RecvTimeoutError::Timeout) if !is_over => return self.on_silence(),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    return Waited::Nothing;
                }
            }
        }
    }

    /// An input that is there already.
    pub(crate) fn try_next(&mut self) -> Option<T> {
        self.inputs.try_recv().ok().inspect(|input| self.note_answer(input))
    }

    fn note_answer(&mut self, input: &T) {
        if input.is_message() {
            self.pings = PingState::fresh();
        }
    }

    /// A supervisor that is given up is dropped first, so that its end is not reported twice. A stuck
    /// one is killed.
    fn on_silence(&mut self) -> Waited<T> {
        let checks = self.pings.unanswered - MAX_PINGS;
        let action = self.supervisors.on_silence(checks);
        if action == SilenceAction::Wait {
            self.pings.last_message = Instant::now();
            self.pings.unanswered += 1;
            return if checks == 0 { Waited::Slow } else { Waited::Nothing };
        }
        self.pings.unanswered = 0;
        self.drop_current();
        if action == SilenceAction::Kill {
            self.supervisors.kill();
        }
        Waited::Input(SupervisorInput::Silent.into())
    }

    /// Counts a supervisor that was lost. Returns how many were lost without progress, if that is more
    /// than the limit.
    pub(crate) fn count_loss(&mut self) -> Option<usize> {
        let now = Instant::now();
        self.losses.retain(|lost| now.duration_since(*lost) < self.limit.within);
        self.losses.push(now);
        Some(self.losses.len()).filter(|losses| *losses > self.limit.most)
    }

    /// The session made progress: earlier losses do not count any more.
    pub(crate) fn forget_losses(&mut self) {
        self.losses.clear();
    }

    /// How the current supervisor ended, as far as this client can know.
    pub(crate) fn how_lost(&mut self) -> Option<String> {
        self.supervisors.how_lost()
    }
}

/// Asks for the session over a new connection, and has a thread read its messages.
fn begin<T: LoopInput>(
    connection: SupervisorConnection,
    (opening, papers): (&SessionRequest, &[OwnedFd]),
    inputs: &SyncSender<T>,
    current: &Arc<AtomicU32>,
) -> Result<Sender<FromClient>, ClientError> {
    let number = current.fetch_add(1, Ordering::Relaxed) + 1;
    connection.send(&FromClient::Open(opening.clone()), papers).map_err(ClientError::Lost)?;
    let (words, sender) = connection.split();
    let (inputs, current) = (inputs.clone(), Arc::clone(current));
    std::thread::spawn(move || read_messages(words, &inputs, &current, number));
    Ok(sender)
}

fn read_messages<T: LoopInput>(
    mut words: Receiver<ToClient>,
    inputs: &SyncSender<T>,
    current: &AtomicU32,
    number: u32,
) {
    loop {
        let (input, last) = match words.recv() {
            Ok(message) => (SupervisorInput::Message(message), false),
            Err(error) => (SupervisorInput::Lost(error), true),
        };
        // The other end is gone when the run is over.
        let past = current.load(Ordering::Relaxed) != number;
        if past || inputs.send(input.into()).is_err() || last {
            return;
        }
    }
}
