//! The supervisor's messages to a running command: that it goes on in the background, and bytes for
//! its standard input. Shared by the thread that runs the command and the thread that reads the
//! messages.

use protocol::mcp::ToServer;
use protocol::tool::{AfterInput, ProtectedOrder};
use std::fs::File;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Clones refer to the same command.
#[derive(Debug, Clone, Default)]
pub struct JobControl(Arc<JobState>);

#[derive(Debug, Default)]
struct JobState {
    in_background: AtomicBool,
    input: Mutex<JobInput>,
    /// The way to the server that the command is.
    server: Mutex<Option<Sender<ToServer>>>,
    /// Those about protected files that the command's loop has not taken.
    orders: Mutex<Vec<ProtectedOrder>>,
    wake: JobWake,
}

/// Wakes the loop of the command. Without a pipe it looks when it wakes by itself.
#[derive(Debug)]
struct JobWake(Option<(PipeReader, PipeWriter)>);

impl Default for JobWake {
    fn default() -> Self {
        Self(std::io::pipe().ok())
    }
}

/// The standard input of a command.
#[derive(Debug, Default)]
enum JobInput {
    /// It has none.
    #[default]
    Absent,
    Open(File),
    /// A write waits for the command to read.
    Busy,
    /// It was closed, or the command has ended.
    Closed,
}

/// Why bytes were not written to a command's input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// It was started without an input.
    #[error("the command has no standard input; only bash with background gives it one")]
    Absent,
    /// An earlier write waits.
    #[error("the command has not read the earlier input yet")]
    Busy,
    /// The input was closed, by an earlier call or by the command.
    #[error("the command's standard input is closed")]
    Closed,
}

impl JobControl {
    /// The conversation goes on while the command runs: the longer time limit applies.
    pub fn move_to_background(&self) {
        self.0.in_background.store(true, Ordering::Release);
        self.order(ProtectedOrder::Look);
    }

    /// Passes on what the supervisor says about protected files.
    pub fn order(&self, order: ProtectedOrder) {
        let mut orders = self.orders();
        // One byte for all that wait never fills the pipe.
        if let (true, Some((_, wake))) = (orders.is_empty(), &self.0.wake.0) {
            let _ = (&*wake).write_all(&[1]);
        }
        orders.push(order);
    }

    /// The orders that came.
    pub(crate) fn take_orders(&self) -> Vec<ProtectedOrder> {
        let mut orders = self.orders();
        if let (false, Some((woken, _))) = (orders.is_empty(), &self.0.wake.0) {
            let _ = (&*woken).read(&mut [0]);
        }
        std::mem::take(&mut *orders)
    }

    /// Readable while orders wait.
    pub(crate) fn woken(&self) -> Option<BorrowedFd<'_>> {
        self.0.wake.0.as_ref().map(|(woken, _)| woken.as_fd())
    }

    fn orders(&self) -> MutexGuard<'_, Vec<ProtectedOrder>> {
        self.0.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True once it was moved.
    #[must_use]
    pub fn is_in_background(&self) -> bool {
        self.0.in_background.load(Ordering::Acquire)
    }

    /// The command reads from the other end of this pipe.
    pub(crate) fn takes_input(&self, pipe: File) {
        self.replace(JobInput::Open(pipe));
    }

    /// The command has ended and reads no more.
    pub(crate) fn ended(&self) {
        self.replace(JobInput::Closed);
        drop(self.server().take());
    }

    /// The command is a server: what it is asked for from now on.
    pub(crate) fn serves(&self) -> Receiver<ToServer> {
        let (sender, receiver) = channel();
        *self.server() = Some(sender);
        receiver
    }

    /// Asks the server that the command is. One that has ended has no answer: its end is the answer.
    pub fn ask(&self, ask: ToServer) {
        if let Some(server) = self.server().as_ref() {
            let _ = server.send(ask);
        }
    }

    fn server(&self) -> MutexGuard<'_, Option<Sender<ToServer>>> {
        self.0.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes these bytes to its input, and waits until the pipe has taken all of them.
    ///
    /// # Errors
    /// [`InputError`]; the command may have read the beginning of them where it closed its input.
    pub fn write(&self, bytes: &[u8], then: AfterInput) -> Result<(), InputError> {
        let mut pipe = match self.replace(JobInput::Busy) {
            JobInput::Open(pipe) => pipe,
            JobInput::Busy => return Err(InputError::Busy),
            JobInput::Absent => {
                self.replace(JobInput::Absent);
                return Err(InputError::Absent);
            }
            JobInput::Closed => {
                self.replace(JobInput::Closed);
                return Err(InputError::Closed);
            }
        };
        match (pipe.write_all(bytes), then) {
            (Ok(()), AfterInput::KeepOpen) => {
                self.replace(JobInput::Open(pipe));
                Ok(())
            }
            (Ok(()), AfterInput::Close) => {
                self.replace(JobInput::Closed);
                Ok(())
            }
            (Err(_), _) => {
                self.replace(JobInput::Closed);
                Err(InputError::Closed)
            }
        }
    }

    fn replace(&self, input: JobInput) -> JobInput {
        let mut held = self.0.input.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *held, input)
    }
}
