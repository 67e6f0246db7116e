//! Fault injection: named steps at which a test holds a process, and faults that a process causes
//! in itself on a test's order. Compiled under `--cfg agentd_hooks` only; [`crate::step!`] marks
//! the steps and expands to nothing in any other build.
//!
//! A process speaks to the test over two connections, made before it is locked into its cage: on
//! one it says each step and waits for `go`, on the other it takes orders while it waits for words.
//! The lines are `agentd_hook: …`; the test that no shipped executable has hooks looks for them.

use crate::frame::{FRAME_CAP, HEADER_BYTES, frames};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use protocol::ids::Generation;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The variable with the path of the test's socket. Without it, no step is reported.
pub const VARIABLE: &str = "AGENTD_HOOKS";

/// The test's end of both connections.
struct TestConnection {
    steps: Mutex<UnixStream>,
    orders: Mutex<UnixStream>,
}

/// The channel between this process and the rest of agentd.
struct HookedChannel {
    socket: UnixStream,
    generation: Generation,
    /// The bytes of the word said last.
    said: Option<Vec<u8>>,
}

/// An order of the test, one a line.
#[derive(PartialEq, Eq)]
enum HookOrder {
    Obeyed,
    Go,
    /// The test has closed its end.
    Gone,
}

static TEST: OnceLock<Option<TestConnection>> = OnceLock::new();
static CHANNEL: Mutex<Option<HookedChannel>> = Mutex::new(None);

/// Says that this step is reached, and waits to be let go.
pub fn at(step: &str) {
    let Some(test) = test() else { return };
    let mut steps = locked(&test.steps);
    if say(&steps, &format!("at {step}")).is_ok() {
        while obey(&mut steps) == HookOrder::Obeyed {}
    }
}

/// Waits until there is something to read from the channel, and obeys the test meanwhile.
pub(crate) fn wait(channel: BorrowedFd<'_>) {
    let Some(test) = test() else { return };
    let mut orders = locked(&test.orders);
    loop {
        let ready = {
            let asked = [channel, orders.as_fd()].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
            let mut asked = asked;
            match poll(&mut asked, PollTimeout::NONE) {
                Ok(_) => asked.map(|fd| fd.any() == Some(true)),
                Err(_) => continue,
            }
        };
        match ready {
            [_, true] if obey(&mut orders) == HookOrder::Obeyed => {}
            [false, false] => {}
            _ => return,
        }
    }
}

/// Obeys the test from a thread of its own: for a process that waits for words in an event loop.
pub fn obey_aside() {
    if let Some(test) = test() {
        std::thread::spawn(|| while obey(&mut locked(&test.orders)) == HookOrder::Obeyed {});
    }
}

/// An environment for a child, with the way to the test in it.
#[must_use]
pub fn handed_on(mut env: Vec<(String, String)>) -> Vec<(String, String)> {
    env.extend(std::env::var(VARIABLE).ok().map(|place| (VARIABLE.to_owned(), place)));
    env
}

/// From now on this is the channel that harm is done on.
pub fn speaks_over(channel: BorrowedFd<'_>) {
    if test().is_some()
        && let Ok(copy) = channel.try_clone_to_owned()
    {
        let (socket, generation) = (UnixStream::from(copy), Generation(0));
        *locked(&CHANNEL) = Some(HookedChannel { socket, generation, said: None });
    }
}

/// A message was sent.
pub(crate) fn said(generation: Generation, body: &[u8]) {
    if let Some(channel) = locked(&CHANNEL).as_mut() {
        channel.generation = generation;
        channel.said = Some(body.to_vec());
    }
}

fn locked<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

fn test() -> Option<&'static TestConnection> {
    TEST.get_or_init(|| {
        let place = std::env::var_os(VARIABLE)?;
        let steps = UnixStream::connect(&place).ok()?;
        let orders = UnixStream::connect(&place).ok()?;
        let (name, pid) = (std::env::args().next()?, std::process::id());
        let name = name.rsplit('/').next()?;
        say(&steps, &format!("steps {pid} {name}")).ok()?;
        say(&orders, &format!("orders {pid} {name}")).ok()?;
        Some(TestConnection { steps: Mutex::new(steps), orders: Mutex::new(orders) })
    })
    .as_ref()
}

/// A line in one piece: the process may be ended at any moment.
fn say(mut test: &UnixStream, line: &str) -> io::Result<()> {
    test.write_all(format!("agentd_hook: {line}\n").as_bytes())
}

/// Reads one line and carries it out.
fn obey(test: &mut UnixStream) -> HookOrder {
    let mut line = Vec::new();
    let mut byte = [0];
    loop {
        match test.read(&mut byte) {
            Ok(1) if byte[0] == b'\n' => break,
            Ok(1) => line.push(byte[0]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => return HookOrder::Gone,
        }
    }
    let harmed = match line.as_slice() {
        b"go" => return HookOrder::Go,
        b"exit" => std::process::exit(0),
        order => harm(order),
    };
    let answer = if harmed.is_some() { "done" } else { "cannot" };
    match say(test, answer) {
        Ok(()) => HookOrder::Obeyed,
        Err(_) => HookOrder::Gone,
    }
}

/// Does harm on the channel; `None` where it cannot be done.
fn harm(order: &[u8]) -> Option<()> {
    let mut held = locked(&CHANNEL);
    let channel = held.as_mut()?;
    let life = channel.generation;
    let bytes = match order {
        b"close" => return channel.socket.shutdown(Shutdown::Both).ok(),
        b"garbage" => frames(life, 0, &[0xff; 32]),
        b"over-long" => {
            let mut bytes = frames(life, 0, &[0; 16]);
            let claimed = u32::try_from(FRAME_CAP + 1).ok()?;
            bytes[..4].copy_from_slice(&claimed.to_le_bytes());
            bytes
        }
        b"half" => {
            let mut bytes = frames(life, 0, &[0; 100]);
            bytes.truncate(HEADER_BYTES + 10);
            bytes
        }
        // The last message, resent with an earlier generation. Generation 0 does not exist; it
        // means a worker without any message yet.
        b"old" => {
            let earlier = life.0.checked_sub(1).filter(|&number| number > 0);
            frames(Generation(earlier.unwrap_or(u32::MAX)), 0, channel.said.as_ref()?)
        }
        _ => return None,
    };
    channel.socket.write_all(&bytes).ok()
}
