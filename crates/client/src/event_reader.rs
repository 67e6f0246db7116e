//! Reads the messages of one supervisor after another for `one_shot` and `attach`: one thread per
//! connection. Also decides when silence counts as a loss.

use crate::client_error::ClientError;
use crate::silence::SilenceAction;
use crate::supervisor_connection::SupervisorConnection;
use crate::supervisor_source::SupervisorSource;
use ipc::{ChannelError, Receiver, Sender};
use protocol::client::{FromClient, SessionRequest, ToClient};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::SyncSender;

/// Questions in a row that may stay unanswered. One may be our own fault: a client that was stopped
/// itself finds the answer a moment later.
pub(crate) const MAX_PINGS: u32 = 2;

/// Note to the user, printed once while a supervisor gets more time.
pub(crate) const SLOW_NOTE: &str =
    "agentd-supervisor does not answer; agentd waits for it before it starts another";

/// Inputs that a loop receives from a supervisor.
pub(crate) trait SupervisorInput: Send + 'static {
    fn message(word: ToClient) -> Self;
    fn lost(error: ChannelError) -> Self;
}

/// Passes on the messages of the current supervisor.
#[derive(Debug)]
pub(crate) struct EventReader<T> {
    sender: SyncSender<T>,
    /// Which supervisor that is, counted from 1.
    current: Arc<AtomicU32>,
}

impl<T: SupervisorInput> EventReader<T> {
    pub(crate) fn new(sender: SyncSender<T>) -> Self {
        Self { sender, current: Arc::default() }
    }

    /// Connects, asks for the session, and has a thread listen.
    pub(crate) fn connect(
        &self,
        supervisors: &mut dyn SupervisorSource,
        opening: &SessionRequest,
        papers: &[OwnedFd],
    ) -> Result<Sender<FromClient>, ClientError> {
        self.drop_current();
        let connection = supervisors.connect().map_err(ClientError::NoSupervisor)?;
        self.open_over(connection, opening, papers)
    }

    /// The same over a connection that is there.
    pub(crate) fn open_over(
        &self,
        connection: SupervisorConnection,
        opening: &SessionRequest,
        papers: &[OwnedFd],
    ) -> Result<Sender<FromClient>, ClientError> {
        let life = self.drop_current();
        connection.send(&FromClient::Open(opening.clone()), papers).map_err(ClientError::Lost)?;
        let (words, say) = connection.split();
        let (sender, current) = (self.sender.clone(), Arc::clone(&self.current));
        std::thread::spawn(move || read_messages(words, &sender, &current, life));
        Ok(say)
    }

    /// Reacts to a supervisor that left several pings unanswered; see
    /// [`SupervisorSource::on_silence`]. A supervisor that is given up is dropped first, so that
    /// its end is not reported twice. A stuck one is killed.
    pub(crate) fn on_silence(
        &self,
        supervisors: &mut dyn SupervisorSource,
        checks: u32,
    ) -> SilenceAction {
        let silence = supervisors.on_silence(checks);
        match silence {
            SilenceAction::Wait => {}
            SilenceAction::Reconnect => {
                self.drop_current();
            }
            SilenceAction::Kill => {
                self.drop_current();
                supervisors.kill();
            }
        }
        silence
    }

    /// Drops all further messages of the current supervisor, its end above all. Returns the number
    /// of the next one.
    pub(crate) fn drop_current(&self) -> u32 {
        self.current.fetch_add(1, Ordering::Relaxed) + 1
    }
}

fn read_messages<T: SupervisorInput>(
    mut words: Receiver<ToClient>,
    sender: &SyncSender<T>,
    current: &AtomicU32,
    life: u32,
) {
    loop {
        let (input, last) = match words.recv() {
            Ok(word) => (T::message(word), false),
            Err(error) => (T::lost(error), true),
        };
        // The other end is gone when the run is over.
        let past = current.load(Ordering::Relaxed) != life;
        if past || sender.send(input).is_err() || last {
            return;
        }
    }
}
