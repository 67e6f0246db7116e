//! A session that another program follows (an editor, an SDK), beside the people at terminals. The loop in
//! `session_loop` passes the supervisor's messages on; if the supervisor is lost, another one resumes the session
//! behind the last event that was received. Who follows it knows which of its prompts reached the disk.

use crate::client_error::ClientError;
use crate::session_connection::{
    LoopInput, LossLimit, PingWhen, SessionConnection, SupervisorInput, input_queue,
};
use crate::session_facts::{SessionFacts, is_progress};
use crate::session_loop::{self, NextWait, SessionUser};
use crate::supervisor_source::SupervisorSource;
use ipc::ChannelError;
use protocol::client::{
    BacklogFrom, ClientRights, FromClient, OtherClients, SessionRequest, ToClient,
};
use protocol::ids::SessionId;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{self, SyncSender};
use std::time::Duration;

/// Losses of supervisors that a program waits through, as a person does.
const LOSSES: LossLimit = LossLimit { most: 3, within: Duration::from_secs(60) };

/// What happens to a followed session.
#[derive(Debug)]
// Each is moved once.
#[allow(clippy::large_enum_variant)]
pub enum LiveEvent {
    /// It is open. Comes once, first.
    Opened {
        /// Its facts.
        facts: SessionFacts,
        /// The journal number of its newest event.
        last_seq: u64,
    },
    /// A message of the supervisor about it.
    Message(ToClient),
    /// The supervisor was lost, and another one is asked for the session. Streamed text that was not recorded is
    /// void, and open questions come again. A prompt that is neither in a turn nor in the queue when `Attached` comes
    /// did not reach the disk.
    Lost(String),
    /// A note for the person.
    Note(String),
}

/// Where the events that a program wants begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveFrom {
    /// Behind the newest one.
    Now,
    /// The first one.
    Beginning,
}

/// Sends into a followed session. When the last clone is gone, the session is left; it goes on.
#[derive(Debug, Clone)]
pub struct LiveSender(SyncSender<LiveInput>);

impl LiveSender {
    /// Sends a message to the session's supervisor, once the session is open. False if it is not followed any more.
    #[must_use]
    pub fn send(&self, word: FromClient) -> bool {
        self.0.send(LiveInput::Send(word)).is_ok()
    }

    /// Leaves the session, which goes on.
    pub fn leave(&self) {
        // It was left before.
        let _ = self.0.send(LiveInput::Leave);
    }
}

/// The receiving end of a [`LiveSender`].
#[derive(Debug)]
pub struct LiveReceiver(SyncSender<LiveInput>, mpsc::Receiver<LiveInput>);

/// A sender, and the end that [`live`] takes.
#[must_use]
pub fn live_queue() -> (LiveSender, LiveReceiver) {
    let (sender, inputs) = input_queue();
    (LiveSender(sender.clone()), LiveReceiver(sender, inputs))
}

#[derive(Debug)]
// As of `SupervisorInput`.
#[allow(clippy::large_enum_variant)]
enum LiveInput {
    Supervisor(SupervisorInput),
    Send(FromClient),
    Leave,
}

impl From<SupervisorInput> for LiveInput {
    fn from(input: SupervisorInput) -> Self {
        Self::Supervisor(input)
    }
}

impl LoopInput for LiveInput {
    fn is_message(&self) -> bool {
        matches!(self, Self::Supervisor(SupervisorInput::Message(_)))
    }
}

/// Opens a session and follows it until it is left. `sink` gets what happens, and must not wait for the session.
///
/// # Errors
/// Where it cannot be opened, was ended, or its supervisors are lost for good.
pub fn live(
    supervisors: &mut dyn SupervisorSource,
    session: (SessionRequest, Vec<OwnedFd>),
    LiveReceiver(sender, inputs): LiveReceiver,
    from: LiveFrom,
    sink: &mut dyn FnMut(LiveEvent),
) -> Result<(), ClientError> {
    let connection = SessionConnection::open(supervisors, session, (sender, inputs), LOSSES)?;
    session_loop::follow(&mut LiveSession { connection, sink, from, open: None, held: Vec::new() })
}

struct LiveSession<'a, 'b> {
    connection: SessionConnection<'a, LiveInput>,
    sink: &'b mut dyn FnMut(LiveEvent),
    from: LiveFrom,
    open: Option<FollowedSession>,
    /// Words that were sent while no supervisor had the session.
    held: Vec<FromClient>,
}

/// A session that was opened.
struct FollowedSession {
    session: SessionId,
    /// The last recorded event that was received.
    last_seq: u64,
    state: LiveState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LiveState {
    /// Another supervisor was asked for it.
    Reopening,
    /// Its events since the last one come.
    CatchingUp,
    Live,
}

impl<'a> SessionUser<'a> for LiveSession<'a, '_> {
    type Input = LiveInput;
    type End = Result<(), ClientError>;

    fn connection(&mut self) -> &mut SessionConnection<'a, LiveInput> {
        &mut self.connection
    }

    fn prepare(&mut self) -> ControlFlow<Self::End, NextWait> {
        let awaited = self.open.as_ref().is_none_or(|open| open.state != LiveState::Live);
        let ping = if awaited { PingWhen::Always } else { PingWhen::ReplyDue };
        ControlFlow::Continue(NextWait { most: None, ping })
    }

    fn take(&mut self, input: LiveInput) -> ControlFlow<Self::End> {
        match input {
            LiveInput::Leave => return ControlFlow::Break(Ok(())),
            LiveInput::Send(word) => self.send(word),
            LiveInput::Supervisor(SupervisorInput::Message(ToClient::Pong(_))) => {}
            LiveInput::Supervisor(SupervisorInput::Message(message)) => return self.heard(message),
            LiveInput::Supervisor(SupervisorInput::Lost(error)) => return self.reconnect(error),
            LiveInput::Supervisor(SupervisorInput::Silent) => {
                return self.reconnect(ChannelError::Closed);
            }
        }
        ControlFlow::Continue(())
    }

    fn note(&mut self, text: &str) {
        (self.sink)(LiveEvent::Note(text.to_owned()));
    }
}

impl LiveSession<'_, '_> {
    fn send(&mut self, word: FromClient) {
        match &self.open {
            Some(open) if open.state == LiveState::Live => self.connection.send(&word),
            Some(_) | None => self.held.push(word),
        }
    }

    fn heard(&mut self, message: ToClient) -> ControlFlow<Result<(), ClientError>> {
        let Some(open) = &mut self.open else { return self.opened(message) };
        match &message {
            ToClient::Opened { .. } => {
                open.state = LiveState::CatchingUp;
                let attach = open.attach(BacklogFrom::Seq(open.last_seq.saturating_add(1)));
                self.connection.send(&attach);
                return ControlFlow::Continue(());
            }
            ToClient::Failed { kind, message } if open.state == LiveState::Reopening => {
                let (kind, message) = (*kind, message.clone());
                return ControlFlow::Break(Err(ClientError::Failed { kind, message }));
            }
            ToClient::Event { seq, event, .. } => {
                if *seq > open.last_seq && is_progress(event, |_| None) {
                    self.connection.forget_losses();
                }
                open.last_seq = open.last_seq.max(*seq);
            }
            ToClient::Attached { .. } => {
                open.state = LiveState::Live;
                let held = std::mem::take(&mut self.held);
                (self.sink)(LiveEvent::Message(message));
                held.into_iter().for_each(|word| self.send(word));
                return ControlFlow::Continue(());
            }
            // This client read too slowly; the supervisor sends the skipped events from disk.
            ToClient::Behind { .. } => {
                open.state = LiveState::CatchingUp;
                let attach = open.attach(BacklogFrom::Seq(open.last_seq.saturating_add(1)));
                self.connection.send(&attach);
                return ControlFlow::Continue(());
            }
            ToClient::Detached { .. } => {
                (self.sink)(LiveEvent::Message(message));
                return ControlFlow::Break(Ok(()));
            }
            ToClient::Welcome { .. }
            | ToClient::Refused { .. }
            | ToClient::NetworkOpened { .. }
            | ToClient::NetworkClosed { .. }
            | ToClient::Page { .. }
            | ToClient::Changes { .. }
            | ToClient::Context { .. }
            | ToClient::Servers { .. }
            | ToClient::TakenBack { .. }
            | ToClient::Sessions(_)
            | ToClient::Status(_)
            | ToClient::Done
            | ToClient::Processes(_)
            | ToClient::Pong(_)
            | ToClient::Failed { .. } => {}
        }
        (self.sink)(LiveEvent::Message(message));
        ControlFlow::Continue(())
    }

    fn opened(&mut self, message: ToClient) -> ControlFlow<Result<(), ClientError>> {
        if let ToClient::Failed { kind, message } = message {
            return ControlFlow::Break(Err(ClientError::Failed { kind, message }));
        }
        let Some((facts, last_seq)) = SessionFacts::of_opening(message) else {
            return ControlFlow::Break(Err(ClientError::Lost(ChannelError::OutOfTurn)));
        };
        let (first, seen) = match self.from {
            LiveFrom::Now => (last_seq.saturating_add(1), last_seq),
            LiveFrom::Beginning => (1, 0),
        };
        let open = FollowedSession {
            session: facts.session.clone(),
            last_seq: seen,
            state: LiveState::CatchingUp,
        };
        self.connection.send(&open.attach(BacklogFrom::Seq(first)));
        self.open = Some(open);
        (self.sink)(LiveEvent::Opened { facts, last_seq });
        ControlFlow::Continue(())
    }

    /// Asks another supervisor to open the session, and again if that one is lost.
    fn reconnect(&mut self, mut error: ChannelError) -> ControlFlow<Result<(), ClientError>> {
        let Some(open) = &mut self.open else {
            return ControlFlow::Break(Err(ClientError::Lost(error)));
        };
        open.state = LiveState::Reopening;
        (self.sink)(LiveEvent::Lost(error.to_string()));
        loop {
            if let Some(losses) = self.connection.count_loss() {
                let how = self.connection.how_lost().unwrap_or_else(|| error.to_string());
                let place = "while the session was followed";
                return ControlFlow::Break(Err(ClientError::LostAgain { losses, how, place }));
            }
            match self.connection.resume(open.session.clone()) {
                Ok(()) => return ControlFlow::Continue(()),
                Err(ClientError::Lost(lost)) => error = lost,
                Err(
                    other @ (ClientError::Failed { .. }
                    | ClientError::LostAgain { .. }
                    | ClientError::NoSupervisor(_)
                    | ClientError::Stopped(_)),
                ) => return ControlFlow::Break(Err(other)),
            }
        }
    }
}

impl FollowedSession {
    fn attach(&self, from: BacklogFrom) -> FromClient {
        FromClient::Attach {
            session: self.session.clone(),
            from,
            rights: ClientRights::Full,
            others: OtherClients::Stay,
        }
    }
}
