//! A blocking channel for workers and clients: one thread receives, any may send.

use crate::codec::{self, CodecError, Decode, Encode};
use crate::fd;
use crate::frame::{FrameError, Message, MessageJoiner, descriptor_frame, frames};
use crate::handshake::{HELLO_BYTES, Hello, HelloError};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use protocol::Link;
use protocol::ids::Generation;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Read at once; a usual word fits.
const READ_BYTES: usize = 64 << 10;

/// Why nothing more comes or goes.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// The peer is gone, between two messages.
    #[error("the other side closed the channel")]
    Closed,
    /// The peer is gone in the middle of a message.
    #[error("the other side closed the channel in the middle of a message")]
    Cut,
    /// The socket failed.
    #[error("the channel failed: {0}")]
    Io(#[from] io::Error),
    /// The peer broke the framing.
    #[error("the other side broke the protocol: {0}")]
    Frame(#[from] FrameError),
    /// The peer sent bytes that are not a valid message.
    #[error("the other side broke the protocol: {0}")]
    Codec(#[from] CodecError),
    /// The peer is of another build, or not ours.
    #[error(transparent)]
    Hello(#[from] HelloError),
    /// A word where a descriptor belongs, or the other way round.
    #[error("the other side broke the protocol: a word out of turn")]
    OutOfTurn,
    /// A message of ours that is too long for its wire. Nothing was sent.
    #[error("a message of {length} bytes, over the {cap} that the {wire} wire takes")]
    TooLong {
        /// Its length.
        length: usize,
        /// The wire's cap.
        cap: usize,
        /// The wire's name.
        wire: &'static str,
    },
    /// Standard input is no channel.
    #[error("{program} is started by agentd, not by hand; run `agentd --help`")]
    ByHand {
        /// The executable's name.
        program: String,
    },
}

/// A message with its frame's header fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received<R> {
    /// The sender's life.
    pub generation: Generation,
    /// Correlation ID of the request; 0 if it answers none.
    pub correlation: u64,
    /// The word.
    pub word: R,
}

/// The end that receives `R`.
#[derive(Debug)]
pub struct Receiver<R> {
    socket: UnixStream,
    joiner: MessageJoiner,
    waiting: VecDeque<OwnedFd>,
    buffer: Box<[u8]>,
    generation: Arc<AtomicU32>,
    words: PhantomData<fn() -> R>,
}

/// The end that sends `W`. Clones share the socket; a message is never mixed with another.
#[derive(Debug)]
pub struct Sender<W> {
    socket: Arc<Mutex<UnixStream>>,
    generation: Arc<AtomicU32>,
    cap: usize,
    wire: &'static str,
    words: PhantomData<fn(W)>,
}

impl<W> Clone for Sender<W> {
    fn clone(&self) -> Self {
        Self {
            socket: Arc::clone(&self.socket),
            generation: Arc::clone(&self.generation),
            cap: self.cap,
            wire: self.wire,
            words: PhantomData,
        }
    }
}

/// Both directions of one side of a channel.
pub type Ends<R, W> = (Receiver<R>, Sender<W>);

/// The worker's end of its channel, which is its standard input. Says Hello; the supervisor
/// checks the build.
///
/// # Errors
/// [`ChannelError::ByHand`] when standard input is no socket.
pub fn worker<L: Link>() -> Result<Ends<L::To, L::From>, ChannelError> {
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    if socket.local_addr().is_err() {
        let program = std::env::args().next().unwrap_or_default();
        let program = program.rsplit('/').next().unwrap_or_default().to_owned();
        return Err(ChannelError::ByHand { program });
    }
    (&socket).write_all(&Hello::own().to_bytes())?;
    ends::<L::To, L::From>(socket, L::MESSAGE_CAP, L::NAME)
}

/// A client's end of a connected socket. Both sides say Hello; builds that differ part here.
///
/// # Errors
/// [`ChannelError::Hello`] naming both builds where they differ.
pub fn connect<L: Link>(socket: UnixStream) -> Result<Ends<L::To, L::From>, ChannelError> {
    (&socket).write_all(&Hello::own().to_bytes())?;
    let mut bytes = [0; HELLO_BYTES];
    (&socket).read_exact(&mut bytes).map_err(|error| {
        // A peer that sends nothing within the socket's time-out is alive.
        let silent = error.kind() == io::ErrorKind::WouldBlock;
        if silent { ChannelError::Io(error) } else { ChannelError::Closed }
    })?;
    Hello::from_bytes(&bytes)?.check()?;
    ends::<L::To, L::From>(socket, L::MESSAGE_CAP, L::NAME)
}

fn ends<R, W>(
    socket: UnixStream,
    cap: usize,
    wire: &'static str,
) -> Result<Ends<R, W>, ChannelError> {
    #[cfg(agentd_hooks)]
    crate::hook::speaks_over(socket.as_fd());
    let generation = Arc::new(AtomicU32::new(0));
    let receiver = Receiver {
        socket: socket.try_clone()?,
        joiner: MessageJoiner::new(cap),
        waiting: VecDeque::new(),
        buffer: vec![0; READ_BYTES].into_boxed_slice(),
        generation: Arc::clone(&generation),
        words: PhantomData,
    };
    let socket = Arc::new(Mutex::new(socket));
    Ok((receiver, Sender { socket, generation, cap, wire, words: PhantomData }))
}

impl<R: Decode<()>> Receiver<R> {
    /// The next word. Blocks.
    ///
    /// # Errors
    /// [`ChannelError::Closed`] when the peer is gone; others when it broke the protocol.
    pub fn recv(&mut self) -> Result<R, ChannelError> {
        Ok(self.recv_about()?.word)
    }

    /// The next word, if it can be had without waiting for it.
    ///
    /// # Errors
    /// As [`Receiver::recv`].
    pub fn try_recv(&mut self) -> Result<Option<R>, ChannelError> {
        loop {
            if let Some(message) = self.joiner.next_message()? {
                return self.word_of(message).map(|received| Some(received.word));
            }
            let mut asked = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
            match poll(&mut asked, PollTimeout::ZERO) {
                Ok(0) | Err(Errno::EINTR) => return Ok(None),
                Ok(_) => self.read_more()?,
                Err(errno) => return Err(io::Error::from(errno).into()),
            }
        }
    }

    /// The next message with its frame's generation and correlation ID. Blocks. Later messages from
    /// this process carry the same generation.
    ///
    /// # Errors
    /// As [`Receiver::recv`].
    pub fn recv_about(&mut self) -> Result<Received<R>, ChannelError> {
        let message = self.next_message()?;
        self.word_of(message)
    }

    fn word_of(&self, message: Message) -> Result<Received<R>, ChannelError> {
        let Message { generation, correlation, body } = message;
        let word = codec::decode(&body.ok_or(ChannelError::OutOfTurn)?)?;
        self.generation.store(generation.0, Ordering::Relaxed);
        Ok(Received { generation, correlation, word })
    }

    /// The descriptor that rides behind the word received last. Blocks.
    ///
    /// # Errors
    /// [`ChannelError::OutOfTurn`] when a word comes instead; as [`Receiver::recv`].
    pub fn recv_fd(&mut self) -> Result<OwnedFd, ChannelError> {
        match self.next_message()?.body {
            None => self.waiting.pop_front().ok_or(ChannelError::OutOfTurn),
            Some(_) => Err(ChannelError::OutOfTurn),
        }
    }

    fn next_message(&mut self) -> Result<Message, ChannelError> {
        loop {
            if let Some(message) = self.joiner.next_message()? {
                return Ok(message);
            }
            #[cfg(agentd_hooks)]
            crate::hook::wait(self.socket.as_fd());
            self.read_more()?;
        }
    }

    /// Takes a message that has arrived, or waits for the next one.
    fn read_more(&mut self) -> Result<(), ChannelError> {
        match fd::receive(self.socket.as_fd(), &mut self.buffer, &mut self.waiting) {
            Ok(0) if self.joiner.is_mid_message() => Err(ChannelError::Cut),
            Ok(0) => Err(ChannelError::Closed),
            Ok(length) => {
                self.joiner.push(&self.buffer[..length]);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                Err(ChannelError::Closed)
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl<R> AsFd for Receiver<R> {
    /// To poll for the next word; buffered words are not seen by a poll, so drain with `recv`
    /// first.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl<W: Encode> Sender<W> {
    /// Sends a word that answers nothing. Blocks while the peer does not read.
    ///
    /// # Errors
    /// [`ChannelError::TooLong`] before anything was sent, [`ChannelError::Io`] when the peer is
    /// gone.
    pub fn send(&self, word: &W) -> Result<(), ChannelError> {
        self.send_about(0, word)
    }

    /// Sends a word about an earlier one, by that one's correlation. Blocks.
    ///
    /// # Errors
    /// As [`Sender::send`].
    pub fn send_about(&self, correlation: u64, word: &W) -> Result<(), ChannelError> {
        let body = codec::encode(word)?;
        if body.len() > self.cap {
            let (length, cap, wire) = (body.len(), self.cap, self.wire);
            return Err(ChannelError::TooLong { length, cap, wire });
        }
        #[cfg(agentd_hooks)]
        crate::hook::said(self.generation(), &body);
        let bytes = frames(self.generation(), correlation, &body);
        Ok(self.locked().write_all(&bytes)?)
    }

    /// Sends a descriptor behind the word sent last. Blocks.
    ///
    /// # Errors
    /// [`ChannelError::Io`] when the peer is gone.
    pub fn send_fd(&self, descriptor: BorrowedFd<'_>) -> Result<(), ChannelError> {
        let frame = descriptor_frame(self.generation());
        let mut socket = self.locked();
        let sent = fd::send(socket.as_fd(), &frame, descriptor)?;
        Ok(socket.write_all(&frame[sent..])?)
    }

    fn generation(&self) -> Generation {
        Generation(self.generation.load(Ordering::Relaxed))
    }

    fn locked(&self) -> MutexGuard<'_, UnixStream> {
        self.socket.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
