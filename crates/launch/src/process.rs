//! One worker process: its socket, its messages and its exit.
//!
//! Used by the supervisor's worker actor, for workers that are restarted, and by `runner`, for runners,
//! which are not. Its end is reported only after the process is dead and reaped and its socket is
//! drained. A killed process that the kernel cannot end is reported after `KILL_TIMEOUT`; its
//! reaping then continues in the background.

use crate::spawner::SpawnedWorker;
use call::Heard;
use ipc::{ChannelError, HELLO_BYTES, Hello, MessageJoiner, codec, descriptor_frame, frames};
use protocol::Link;
use protocol::ids::Generation;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::timeout;

/// Bound on messages read but not yet handled. A worker that sends faster blocks on its own socket.
const PENDING_REQUESTS: usize = 64;
/// Bound on messages queued for the worker. A worker that falls this far behind is killed.
const UNSENT_MESSAGES: usize = 1024;
/// How long a dead process's socket is drained. No other process should hold its other end.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
/// A worker that reads nothing of its pending messages for this long is killed.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the kernel gets to end a killed process, which runs no more code. Only a stalled disk needs more.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a process whose handle was dropped may take to end.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes written at once; each chunk has [`SEND_TIMEOUT`] to be read.
const CHUNK_BYTES: usize = 64 << 10;
/// Most bytes of one read.
const READ_BYTES: usize = 64 << 10;

/// Why a process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExitCause {
    /// It exited with this code.
    Exited(i32),
    /// It was ended by this signal, which the supervisor did not send.
    Signalled(i32),
    /// Killed because it broke the protocol.
    ProtocolBreach(String),
    /// Killed because it is of another build.
    BuildMismatch(String),
    /// Killed because it did not send Hello in time.
    NoHello,
    /// Killed because it did not read its messages.
    SendStalled,
    /// Killed because it did not answer a ping while work depended on it.
    NoPong,
    /// Killed, but it cannot end: it waits in the kernel for a disk that does not answer.
    Unkillable,
    /// Killed because a message for it could not be encoded or is over the cap.
    Unsendable(String),
    /// Killed by the supervisor.
    Killed,
}

impl std::fmt::Display for ExitCause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exited with code {code}"),
            Self::Signalled(signal) => write!(f, "was ended by signal {signal}"),
            Self::ProtocolBreach(what) => write!(f, "broke the protocol: {what}"),
            Self::BuildMismatch(what) => f.write_str(what),
            Self::NoHello => f.write_str("did not send Hello in time"),
            Self::NoPong => f.write_str("did not answer"),
            Self::SendStalled => f.write_str("did not read its messages"),
            Self::Unkillable => {
                f.write_str("cannot be ended: it waits for a disk that does not answer")
            }
            Self::Unsendable(why) => write!(f, "could not be sent a message: {why}"),
            Self::Killed => f.write_str("was ended by the supervisor"),
        }
    }
}

/// Events of a process, in order: any number of messages and descriptors, then its end.
pub enum ProcessEvent<L: Link> {
    /// A message.
    Message {
        /// What the process sent.
        message: L::From,
        /// Dropping it lets the next message be read.
        permit: OwnedSemaphorePermit,
    },
    /// A descriptor that followed the last message.
    Descriptor(OwnedFd),
    /// Dead, reaped and drained; or [`ExitCause::Unkillable`].
    Ended(ExitCause, Heard),
}

/// Can kill a worker whose channel is closed. Dropping it does not kill the worker.
pub struct KillHandle(mpsc::UnboundedSender<ExitCause>);

impl KillHandle {
    /// Kills the worker.
    pub fn kill(&self) {
        let _ = self.0.send(ExitCause::Killed);
    }
}

enum OutgoingFrame {
    Bytes(Vec<u8>),
    /// Messages whose sender may send more once this worker has read them.
    Forwarded {
        bytes: Vec<u8>,
        _permit: OwnedSemaphorePermit,
    },
    Descriptor(OwnedFd),
}

/// Handle of a live process. Dropping it closes the channel; a worker alive `CLOSE_TIMEOUT` later is killed.
pub struct WorkerProcess<L: Link> {
    pid: u32,
    generation: Generation,
    outbox: mpsc::Sender<OutgoingFrame>,
    end: mpsc::UnboundedSender<ExitCause>,
    link: std::marker::PhantomData<fn(L)>,
}

impl<L: Link> WorkerProcess<L> {
    /// Takes over a spawned process. `report` is called from a separate task and must not block.
    pub fn attach(
        started: SpawnedWorker,
        generation: Generation,
        hello: Duration,
        report: impl Fn(ProcessEvent<L>) + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let pid = started.child.id();
        let (reader, writer) = UnixStream::from_std(started.socket)?.into_split();
        // Deprecated for descriptors that may close early; an `OwnedFd` inside it cannot.
        #[allow(deprecated)]
        let exit = AsyncFd::with_interest(started.pidfd, Interest::READABLE)?;
        let (outbox, unsent) = mpsc::channel(UNSENT_MESSAGES);
        let (end, ending) = mpsc::unbounded_channel();
        tokio::spawn(write_all(writer, unsent, end.clone()));
        let (mut child, cgroup) = (started.child, started.cgroup);
        tokio::spawn(async move {
            let listener = MessageReader::<L>::new(reader, generation, hello);
            let (cause, heard) = run_until_exit(listener, &exit, ending, &report).await;
            // The cgroup is cleaned up before the process is reaped: until then its pid cannot be
            // reused.
            let sweep = async || {
                if let Some(cgroup) = cgroup.clone() {
                    let sweep = move || sandbox::remove_cgroup_of(&cgroup, pid);
                    let _ = tokio::task::spawn_blocking(sweep).await;
                }
            };
            let held = timeout(KILL_TIMEOUT, exit.readable()).await.is_err();
            if held {
                sweep().await;
                report(ProcessEvent::Ended(ExitCause::Unkillable, Heard::Cut));
                let _ = exit.readable().await;
            }
            sweep().await;
            let status = child.wait();
            if !held {
                let cause = cause.unwrap_or_else(|| exit_cause(status));
                report(ProcessEvent::Ended(cause, heard));
            }
        });
        Ok(Self { pid, generation, outbox, end, link: std::marker::PhantomData })
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Queues a message without waiting. If the queue is full, the worker is killed: it does not
    /// read.
    pub fn send(&self, message: &L::To) {
        if let Some(bytes) = self.encode(message) {
            self.enqueue(OutgoingFrame::Bytes(bytes));
        }
    }

    /// Queues messages whose sender may send more once this worker has read them.
    pub fn forward(&self, messages: &[L::To], permit: OwnedSemaphorePermit) {
        let framed: Option<Vec<_>> = messages.iter().map(|message| self.encode(message)).collect();
        if let Some(framed) = framed {
            self.enqueue(OutgoingFrame::Forwarded { bytes: framed.concat(), _permit: permit });
        }
    }

    /// Encodes a message for the wire. If that fails, the worker is killed and the reason logged.
    fn encode(&self, message: &L::To) -> Option<Vec<u8>> {
        let why = match codec::encode(message) {
            Ok(body) if body.len() <= L::MESSAGE_CAP => {
                return Some(frames(self.generation, 0, &body));
            }
            Ok(body) => format!("a message of {} bytes is over the cap", body.len()),
            Err(error) => error.to_string(),
        };
        tracing::error!(wire = L::NAME, why, "message not sent");
        let _ = self.end.send(ExitCause::Unsendable(why));
        None
    }

    /// Sends a descriptor after the message sent last.
    pub fn send_descriptor(&self, descriptor: OwnedFd) {
        self.enqueue(OutgoingFrame::Descriptor(descriptor));
    }

    /// Kills the process; its end is reported as any other.
    pub fn kill(&self) {
        let _ = self.end.send(ExitCause::Killed);
    }

    /// Kills the process because it did not answer a ping.
    pub fn kill_unresponsive(&self) {
        let _ = self.end.send(ExitCause::NoPong);
    }

    /// Kills the process because it broke the protocol in this way.
    pub fn kill_for_breach(&self, what: &str) {
        let _ = self.end.send(ExitCause::ProtocolBreach(what.to_owned()));
    }

    /// Closes the channel, which asks the worker to end. The returned handle can only kill it.
    pub fn close(self) -> KillHandle {
        KillHandle(self.end)
    }

    /// Closes the channel, and kills the process if it is alive after this time: a stopped process does
    /// not notice that its channel was closed.
    pub(crate) fn close_within(self, limit: Duration) {
        let end = self.close();
        tokio::spawn(async move {
            tokio::time::sleep(limit).await;
            end.kill();
        });
    }

    fn enqueue(&self, outgoing: OutgoingFrame) {
        if let Err(mpsc::error::TrySendError::Full(_)) = self.outbox.try_send(outgoing) {
            let _ = self.end.send(ExitCause::SendStalled);
        }
    }
}

/// Reads until the socket or the process ends, and also what a process said that is killed. Returns
/// the cause if the supervisor found it; the process is dead or dying then.
async fn run_until_exit<L: Link>(
    mut listener: MessageReader<L>,
    exit: &AsyncFd<OwnedFd>,
    mut ending: mpsc::UnboundedReceiver<ExitCause>,
    report: &(impl Fn(ProcessEvent<L>) + Send + Sync),
) -> (Option<ExitCause>, Heard) {
    let killed = async {
        match ending.recv().await {
            Some(cause) => cause,
            // The handle was dropped; the closed channel asks the worker to end. A stopped process
            // does not notice that.
            None => {
                tokio::time::sleep(CLOSE_TIMEOUT).await;
                ExitCause::Killed
            }
        }
    };
    let cause = tokio::select! {
        biased;
        cause = killed => { kill(exit); Some(cause) }
        cause = listener.read_all(report) => {
            return match cause {
                // End of file: the worker is exiting by itself, and gets time for it.
                None if timeout(DRAIN_TIMEOUT, exit.readable()).await.is_ok() => (None, Heard::All),
                None => {
                    kill(exit);
                    let what = "closed its channel but did not exit".to_owned();
                    (Some(ExitCause::ProtocolBreach(what)), Heard::All)
                }
                Some(cause) => { kill(exit); (Some(cause), Heard::Cut) }
            };
        }
        _ = exit.readable() => None,
    };
    // Its last messages are still in the socket.
    match timeout(DRAIN_TIMEOUT, listener.read_all(report)).await {
        Ok(None) => (cause, Heard::All),
        Ok(Some(_)) | Err(_) => (cause, Heard::Cut),
    }
}

fn kill(exit: &AsyncFd<OwnedFd>) {
    let signal = rustix::process::Signal::KILL;
    if let Err(error) = rustix::process::pidfd_send_signal(exit.get_ref().as_fd(), signal) {
        tracing::debug!(%error, "the worker was gone already");
    }
}

fn exit_cause(status: std::io::Result<std::process::ExitStatus>) -> ExitCause {
    use std::os::unix::process::ExitStatusExt;
    match status.map(|status| (status.code(), status.signal())) {
        Ok((Some(code), _)) => ExitCause::Exited(code),
        Ok((None, signal)) => ExitCause::Signalled(signal.unwrap_or(0)),
        Err(error) => ExitCause::ProtocolBreach(format!("cannot be waited for: {error}")),
    }
}

thread_local! {
    /// Of all processes whose messages this thread reads: one of its own for each of a thousand idle ones
    /// would cost 64 MiB.
    static READ_BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES]);
}

struct MessageReader<L: Link> {
    reader: OwnedReadHalf,
    generation: Generation,
    hello: Option<Duration>,
    joiner: MessageJoiner,
    permits: Arc<Semaphore>,
    /// A message that waits for its permit; the waiting future is dropped when the process ends.
    next: Option<IncomingMessage<L>>,
    /// Descriptors received whose frames are not read yet.
    descriptors: VecDeque<OwnedFd>,
}

enum IncomingMessage<L: Link> {
    Message(L::From),
    Descriptor(OwnedFd),
}

impl<L: Link> MessageReader<L> {
    fn new(reader: OwnedReadHalf, generation: Generation, hello: Duration) -> Self {
        Self {
            reader,
            generation,
            hello: Some(hello),
            joiner: MessageJoiner::new(L::MESSAGE_CAP),
            permits: Arc::new(Semaphore::new(PENDING_REQUESTS)),
            next: None,
            descriptors: VecDeque::new(),
        }
    }

    /// Reads until end of file (`None`) or a protocol breach.
    async fn read_all(
        &mut self,
        report: &(impl Fn(ProcessEvent<L>) + Send + Sync),
    ) -> Option<ExitCause> {
        if let Some(deadline) = self.hello.take()
            && let Err(cause) = self.read_hello(deadline).await
        {
            return cause;
        }
        loop {
            match self.deliver(report).await {
                Ok(()) => {}
                Err(breach) => return Some(ExitCause::ProtocolBreach(breach.to_string())),
            }
            match self.read().await {
                Ok(0) | Err(_) if self.joiner.is_mid_message() => {
                    return Some(ExitCause::ProtocolBreach(ChannelError::Cut.to_string()));
                }
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// Reads what is there. Returns the number of bytes; none at the end of the file.
    async fn read(&mut self) -> std::io::Result<usize> {
        loop {
            self.reader.readable().await?;
            let stream: &UnixStream = self.reader.as_ref();
            let (descriptors, joiner) = (&mut self.descriptors, &mut self.joiner);
            let read: std::io::Result<usize> = READ_BUFFER.with_borrow_mut(|buffer| {
                let receive = || ipc::fd::receive(stream.as_fd(), buffer, descriptors);
                let length = stream.try_io(Interest::READABLE, receive)?;
                joiner.push(&buffer[..length]);
                Ok(length)
            });
            match read {
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }

    async fn read_hello(&mut self, deadline: Duration) -> Result<(), Option<ExitCause>> {
        let mut bytes = [0; HELLO_BYTES];
        match timeout(deadline, self.reader.read_exact(&mut bytes)).await {
            Err(_) => return Err(Some(ExitCause::NoHello)),
            Ok(Err(_)) => return Err(None),
            Ok(Ok(_)) => {}
        }
        let hello =
            Hello::from_bytes(&bytes).map_err(|error| ExitCause::ProtocolBreach(error.to_string()));
        match hello.map(|hello| hello.check()) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(Some(ExitCause::BuildMismatch(error.to_string()))),
            Err(cause) => Err(Some(cause)),
        }
    }

    async fn deliver(
        &mut self,
        report: &(impl Fn(ProcessEvent<L>) + Send + Sync),
    ) -> Result<(), ChannelError> {
        loop {
            if self.next.is_none() {
                self.next = self.decode_next()?;
            }
            if self.next.is_none() {
                return Ok(());
            }
            let permits = Arc::clone(&self.permits);
            let Ok(permit) = permits.acquire_owned().await else { return Ok(()) };
            match self.next.take() {
                Some(IncomingMessage::Message(message)) => {
                    report(ProcessEvent::Message { message, permit })
                }
                Some(IncomingMessage::Descriptor(descriptor)) => {
                    report(ProcessEvent::Descriptor(descriptor))
                }
                None => {}
            }
        }
    }

    fn decode_next(&mut self) -> Result<Option<IncomingMessage<L>>, ChannelError> {
        while let Some(message) = self.joiner.next_message()? {
            let incoming = match message.body {
                Some(body) => IncomingMessage::Message(codec::decode(&body)?),
                None => {
                    let came = self.descriptors.pop_front();
                    IncomingMessage::Descriptor(came.ok_or(ChannelError::OutOfTurn)?)
                }
            };
            // Generation 0 is a worker that has not received a message yet.
            if message.generation == self.generation || message.generation == Generation(0) {
                return Ok(Some(incoming));
            }
            tracing::warn!(wire = L::NAME, "a message of an earlier process was dropped");
        }
        Ok(None)
    }
}

async fn write_all(
    mut writer: OwnedWriteHalf,
    mut unsent: mpsc::Receiver<OutgoingFrame>,
    end: mpsc::UnboundedSender<ExitCause>,
) {
    while let Some(outgoing) = unsent.recv().await {
        let written = match &outgoing {
            OutgoingFrame::Bytes(bytes) | OutgoingFrame::Forwarded { bytes, _permit: _ } => {
                write_bytes(&mut writer, bytes).await
            }
            OutgoingFrame::Descriptor(descriptor) => {
                write_descriptor(&mut writer, descriptor).await
            }
        };
        match written {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::TimedOut => {
                let _ = end.send(ExitCause::SendStalled);
                return;
            }
            // The reader sees the end of file and handles it.
            Err(_) => return,
        }
    }
}

async fn write_bytes(writer: &mut OwnedWriteHalf, bytes: &[u8]) -> std::io::Result<()> {
    for piece in bytes.chunks(CHUNK_BYTES) {
        timeout(SEND_TIMEOUT, writer.write_all(piece)).await??;
    }
    Ok(())
}

async fn write_descriptor(
    writer: &mut OwnedWriteHalf,
    descriptor: &OwnedFd,
) -> std::io::Result<()> {
    let frame = descriptor_frame(Generation(0));
    let sent = loop {
        writer.writable().await?;
        let stream: &UnixStream = writer.as_ref();
        let attempt = stream.try_io(Interest::WRITABLE, || {
            ipc::fd::send(stream.as_fd(), &frame, descriptor.as_fd())
        });
        match attempt {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            other => break other?,
        }
    };
    writer.write_all(&frame[sent..]).await
}

#[cfg(test)]
#[path = "process_tests.rs"]
mod tests;
