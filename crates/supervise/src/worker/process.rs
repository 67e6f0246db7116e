//! One life of one worker process: its socket, its exit, and what it says.
//!
//! Used by the worker actor (for workers that come back) and by the call actor (for runners that
//! do not). Reports its end only after the process is dead and reaped and its socket drained; one that was
//! killed and is held in the kernel is reported after a time, and waited for behind that.

use crate::worker::spawner::SpawnedWorker;
use ipc::{ChannelError, HELLO_BYTES, Hello, Joiner, codec, descriptor_frame, frames};
use protocol::Link;
use protocol::ids::Generation;
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

/// Words read but not yet handled. A worker that speaks faster than it is heard waits, and only
/// it.
const PENDING_REQUESTS: usize = 64;
/// Words not yet taken by the worker. A worker this far behind is stuck, and is ended for it.
const UNSENT_MESSAGES: usize = 1024;
/// How long a dead process's socket is drained. Nothing else should hold its other end.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
/// A worker that takes nothing of what waits for it for so long is stuck. A busy machine lets
/// nobody wait this long.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the kernel gets to end what was killed. Only a process that waits for a disk which does not
/// answer needs more: it does nothing from then on but end, whenever that disk lets it go.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes handed over at once; each piece has [`SEND_TIMEOUT`] to be taken.
const CHUNK_BYTES: usize = 64 << 10;

/// Why a life ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExitCause {
    /// By itself, with this exit code.
    Exited(i32),
    /// By this signal, not ours.
    Signalled(i32),
    /// It broke the protocol, and was ended for it.
    ProtocolBreach(String),
    /// It is of another build, and was ended for it.
    BuildMismatch(String),
    /// It did not say Hello in time, and was ended for it.
    NoHello,
    /// It did not take what was sent to it, and was ended for it.
    SendStalled,
    /// It did not answer while somebody waited for it, and was ended for it.
    NoPong,
    /// It was killed and cannot end: it waits in the kernel for a disk that does not answer.
    Unkillable,
    /// It was owed a word that its wire cannot carry: without that word it would wait for ever.
    Unsendable(String),
    /// We ended it.
    Killed,
}

impl std::fmt::Display for ExitCause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exited with code {code}"),
            Self::Signalled(signal) => write!(f, "was ended by signal {signal}"),
            Self::ProtocolBreach(what) => write!(f, "broke the protocol: {what}"),
            Self::BuildMismatch(what) => f.write_str(what),
            Self::NoHello => f.write_str("did not say Hello in time"),
            Self::NoPong => f.write_str("did not answer"),
            Self::SendStalled => f.write_str("did not take what was sent to it"),
            Self::Unkillable => {
                f.write_str("cannot be ended: it waits for a disk that does not answer")
            }
            Self::Unsendable(why) => write!(f, "could not be told what it waits for: {why}"),
            Self::Killed => f.write_str("was ended by the supervisor"),
        }
    }
}

/// What a life reports, in order: any number of words and descriptors, then its end.
pub(crate) enum ProcessEvent<L: Link> {
    /// A word, with the permit that lets the next one be read when it is dropped.
    Message { message: L::From, permit: OwnedSemaphorePermit },
    /// A descriptor that rode behind the last word.
    Descriptor(OwnedFd),
    /// Dead, reaped, drained; or killed and [`ExitCause::Unkillable`].
    Ended(ExitCause),
}

/// The right to kill a worker whose channel is closed; dropping it lets the worker be.
pub(crate) struct KillHandle(mpsc::UnboundedSender<ExitCause>);

impl KillHandle {
    pub(crate) fn kill(&self) {
        let _ = self.0.send(ExitCause::Killed);
    }
}

enum OutgoingFrame {
    Bytes(Vec<u8>),
    /// Words of somebody who speaks on when this worker has taken them.
    Forwarded {
        bytes: Vec<u8>,
        _heard: OwnedSemaphorePermit,
    },
    Descriptor(OwnedFd),
}

/// The supervisor's hold on a living worker. Dropping it closes the channel, which tells the
/// worker to end.
pub(crate) struct WorkerProcess<L: Link> {
    pub(crate) pid: u32,
    generation: Generation,
    outbox: mpsc::Sender<OutgoingFrame>,
    end: mpsc::UnboundedSender<ExitCause>,
    link: std::marker::PhantomData<fn(L)>,
}

impl<L: Link> WorkerProcess<L> {
    /// Takes the process over. `report` is called from a task of its own and must not block.
    pub(crate) fn attach(
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
            let cause = run_until_exit(listener, &exit, ending, &report).await;
            // Before it is waited for: until then its number is nobody else's.
            let sweep = async || {
                if let Some(cgroup) = cgroup.clone() {
                    let sweep = move || sandbox::remove_cgroup_of(&cgroup, pid);
                    let _ = tokio::task::spawn_blocking(sweep).await;
                }
            };
            let held = timeout(KILL_TIMEOUT, exit.readable()).await.is_err();
            if held {
                sweep().await;
                report(ProcessEvent::Ended(ExitCause::Unkillable));
                let _ = exit.readable().await;
            }
            sweep().await;
            let status = child.wait();
            if !held {
                report(ProcessEvent::Ended(cause.unwrap_or_else(|| exit_cause(status))));
            }
        });
        Ok(Self { pid, generation, outbox, end, link: std::marker::PhantomData })
    }

    /// Sends a word without waiting. A full queue ends the worker: it is its fault.
    pub(crate) fn send(&self, word: &L::To) {
        if let Some(bytes) = self.encode(word) {
            self.enqueue(OutgoingFrame::Bytes(bytes));
        }
    }

    /// Sends words of somebody who is not heard further until this worker has taken them.
    pub(crate) fn forward(&self, words: &[L::To], heard: OwnedSemaphorePermit) {
        let framed: Option<Vec<_>> = words.iter().map(|word| self.encode(word)).collect();
        if let Some(framed) = framed {
            self.enqueue(OutgoingFrame::Forwarded { bytes: framed.concat(), _heard: heard });
        }
    }

    /// The word as it goes over the wire. One that cannot be said ends the worker, visibly.
    fn encode(&self, word: &L::To) -> Option<Vec<u8>> {
        let why = match codec::encode(word) {
            Ok(body) if body.len() <= L::MESSAGE_CAP => {
                return Some(frames(self.generation, 0, &body));
            }
            Ok(body) => format!("a word of {} bytes is over the cap", body.len()),
            Err(error) => error.to_string(),
        };
        tracing::error!(wire = L::NAME, why, "word not sent");
        let _ = self.end.send(ExitCause::Unsendable(why));
        None
    }

    /// Sends a descriptor behind the word sent last.
    pub(crate) fn send_descriptor(&self, descriptor: OwnedFd) {
        self.enqueue(OutgoingFrame::Descriptor(descriptor));
    }

    /// Kills the process; its end is reported as any other.
    pub(crate) fn kill(&self) {
        let _ = self.end.send(ExitCause::Killed);
    }

    /// Kills the process because it does not answer.
    pub(crate) fn kill_unresponsive(&self) {
        let _ = self.end.send(ExitCause::NoPong);
    }

    /// Kills the process because it broke the protocol in this way.
    pub(crate) fn kill_for_breach(&self, what: &str) {
        let _ = self.end.send(ExitCause::ProtocolBreach(what.to_owned()));
    }

    /// Closes the channel, which tells the worker to end, and leaves only the right to kill it.
    pub(crate) fn close(self) -> KillHandle {
        KillHandle(self.end)
    }

    fn enqueue(&self, outgoing: OutgoingFrame) {
        if let Err(mpsc::error::TrySendError::Full(_)) = self.outbox.try_send(outgoing) {
            let _ = self.end.send(ExitCause::SendStalled);
        }
    }
}

/// Listens until the socket or the process ends. Returns the cause where it was ours to find; the
/// process is dead or dying then.
async fn run_until_exit<L: Link>(
    mut listener: MessageReader<L>,
    exit: &AsyncFd<OwnedFd>,
    mut ending: mpsc::UnboundedReceiver<ExitCause>,
    report: &(impl Fn(ProcessEvent<L>) + Send + Sync),
) -> Option<ExitCause> {
    let told = async {
        match ending.recv().await {
            Some(cause) => cause,
            // The hold was dropped; the closed channel tells the worker.
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        cause = told => { kill(exit); Some(cause) }
        cause = listener.read_all(report) => {
            match cause {
                // End of file: it is leaving by itself; give it the time to.
                None if timeout(DRAIN_TIMEOUT, exit.readable()).await.is_ok() => None,
                None => { kill(exit); Some(ExitCause::ProtocolBreach("closed its channel and stayed".into())) }
                Some(cause) => { kill(exit); Some(cause) }
            }
        }
        _ = exit.readable() => {
            // What it said last is still in the socket.
            let _ = timeout(DRAIN_TIMEOUT, listener.read_all(report)).await;
            None
        }
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

struct MessageReader<L: Link> {
    reader: OwnedReadHalf,
    generation: Generation,
    hello: Option<Duration>,
    joiner: Joiner,
    permits: Arc<Semaphore>,
    /// A word that waits for its permit. It stands here, not in the waiting, because that is given
    /// up when the process ends, and a last word counts.
    next: Option<IncomingMessage<L>>,
    /// Descriptors that came, and whose frames are not read yet.
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
            joiner: Joiner::new(L::MESSAGE_CAP),
            permits: Arc::new(Semaphore::new(PENDING_REQUESTS)),
            next: None,
            descriptors: VecDeque::new(),
        }
    }

    /// Until end of file (`None`) or a breach.
    async fn read_all(
        &mut self,
        report: &(impl Fn(ProcessEvent<L>) + Send + Sync),
    ) -> Option<ExitCause> {
        if let Some(deadline) = self.hello.take()
            && let Err(cause) = self.read_hello(deadline).await
        {
            return cause;
        }
        let mut buffer = vec![0; 64 << 10];
        loop {
            match self.deliver(report).await {
                Ok(()) => {}
                Err(breach) => return Some(ExitCause::ProtocolBreach(breach.to_string())),
            }
            match self.read(&mut buffer).await {
                Ok(0) | Err(_) if self.joiner.is_mid_message() => {
                    return Some(ExitCause::ProtocolBreach(ChannelError::Cut.to_string()));
                }
                Ok(0) | Err(_) => return None,
                Ok(length) => self.joiner.push(&buffer[..length]),
            }
        }
    }

    async fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            self.reader.readable().await?;
            let stream: &UnixStream = self.reader.as_ref();
            let descriptors = &mut self.descriptors;
            let read = stream.try_io(Interest::READABLE, || {
                ipc::fd::receive(stream.as_fd(), buffer, descriptors)
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
            let unheard = Arc::clone(&self.permits);
            let Ok(heard) = unheard.acquire_owned().await else { return Ok(()) };
            match self.next.take() {
                Some(IncomingMessage::Message(word)) => {
                    report(ProcessEvent::Message { message: word, permit: heard })
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
            let word = match message.body {
                Some(body) => IncomingMessage::Message(codec::decode(&body)?),
                None => {
                    let came = self.descriptors.pop_front();
                    IncomingMessage::Descriptor(came.ok_or(ChannelError::OutOfTurn)?)
                }
            };
            // Generation 0 is a worker that has not been spoken to yet.
            if message.generation == self.generation || message.generation == Generation(0) {
                return Ok(Some(word));
            }
            tracing::warn!(wire = L::NAME, "a word of an earlier life was dropped");
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
            OutgoingFrame::Bytes(bytes) | OutgoingFrame::Forwarded { bytes, _heard: _ } => {
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
            // The reader sees the end of file; that is where it is dealt with.
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
