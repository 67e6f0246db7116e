//! `agentd open`: this process listens at a port of this machine, joins the network of a session's background commands,
//! confines itself, and passes each connection on to the port there.

use crate::cli_error::{CliError, chain};
use crate::cli_exit::CliExit;
use crate::context::CliContext;
use crate::query;
use crate::sessions;
use client::SupervisorConnection;
use nix::errno::Errno;
use protocol::client::{
    BacklogFrom, ClientRights, FromClient, OtherClients, SessionWish, ToClient,
};
use protocol::confinement::{Confinement, Profile};
use protocol::ids::SessionId;
use sandbox::{Cage, CageError, NetworkNamespace};
use std::fmt;
use std::io::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// Most connections at once. A browser opens six to a server.
const MOST: usize = 64;

/// The ports on the command line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ports {
    /// In the sandbox.
    pub(crate) port: u16,
    /// On this machine.
    pub(crate) here: u16,
    /// Of a command in the network; the newest network if none.
    pub(crate) call: Option<u32>,
}

/// A network of a session.
struct Opened {
    /// The call that made it.
    call: u32,
    /// The calls that made the session's other ones.
    others: Vec<u32>,
    network: NetworkNamespace,
}

pub(crate) fn main(beginning: &str, ports: Ports) -> Result<CliExit, CliError> {
    let Ports { port, here, .. } = ports;
    let context = CliContext::of_process()?;
    let session = sessions::named(&context, beginning)?;
    let Some(mut connection) = sessions::holder(&context, &session)? else {
        return Err(CliError::user(format!("session {session} is not running"))
            .hint(format!("`agentd attach {session}` continues it")));
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, here)).map_err(|error| {
        CliError::user(format!("port {here} of this machine cannot be used: {error}"))
            .hint("`--as PORT` takes another one, `--as 0` a free one")
    })?;
    let here = listener.local_addr().map_err(|error| CliError::internal(chain(&error)))?.port();
    let Opened { call, others, network } = open(&mut connection, &session, ports)?;
    enter(&network).map_err(|error| {
        CliError::config(format!("this process cannot be confined: {error}"))
            .hint(error.hint.clone())
    })?;
    let others = match others.as_slice() {
        [] => String::new(),
        [other] => format!(" (call {other} has another network: `--call {other}`)"),
        several => {
            let several: Vec<String> = several.iter().map(u32::to_string).collect();
            format!(" (the calls {} have other networks: `--call N`)", several.join(", "))
        }
    };
    show(format_args!(
        "http://127.0.0.1:{here} is port {port} of call {call} of session {session}{others}; Ctrl-C closes it"
    ));
    let (ends, end) = mpsc::channel();
    let listens = ends.clone();
    let threads = [
        std::thread::Builder::new().spawn(move || listens.send(listen(&listener, port))),
        std::thread::Builder::new()
            .spawn(move || ends.send(ended(&mut connection, &session, port))),
    ];
    for thread in threads {
        thread.map_err(|error| CliError::internal(format!("no thread: {error}")))?;
    }
    Err(end.recv().unwrap_or_else(|error| CliError::internal(chain(&error))))
}

/// Says something to the person. A closed standard error is not an error.
fn show(words: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "agentd: {words}");
}

/// Asks for the network. The record of the opening is on disk when it arrives. This process is no terminal, so it does
/// not stay attached.
fn open(
    connection: &mut SupervisorConnection,
    session: &SessionId,
    Ports { port, call, .. }: Ports,
) -> Result<Opened, CliError> {
    let (rights, others) = (ClientRights::Full, OtherClients::Stay);
    let attach = FromClient::Attach {
        session: session.clone(),
        from: BacklogFrom::Newest(0),
        rights,
        others,
    };
    let wish = SessionWish::OpenPort { port, call };
    for word in [attach, FromClient::Wish { session: session.clone(), wish }] {
        connection.send(&word, &[]).map_err(|error| query::lost(&error))?;
    }
    loop {
        let word = connection.recv().map_err(|error| query::lost(&error))?;
        let ToClient::NetworkOpened { call, others, namespaces } = query::checked(word)? else {
            continue;
        };
        let mut network = NetworkNamespace::default();
        for kind in namespaces {
            let descriptor = connection.recv_descriptor().map_err(|error| query::lost(&error))?;
            network.add(kind, descriptor);
        }
        let detach = FromClient::Detach { session: session.clone() };
        connection.send(&detach, &[]).map_err(|error| query::lost(&error))?;
        return Ok(Opened { call, others, network });
    }
}

/// From here on this process reaches that network and no file.
fn enter(network: &NetworkNamespace) -> Result<(), CageError> {
    network.join()?;
    let wanted = Confinement::closed(Profile::Web, "/", "/");
    Cage::enter(&sandbox::worker_confinement(wanted)).map(drop)
}

/// Waits for the end of the commands in the network.
fn ended(connection: &mut SupervisorConnection, session: &SessionId, port: u16) -> CliError {
    loop {
        match connection.recv() {
            Ok(ToClient::NetworkClosed { call }) => {
                return CliError::user(format!(
                    "the commands in the network of call {call} of session {session} have ended"
                ))
                .hint(format!(
                    "`agentd open {session} {port}` reaches a server that starts later"
                ));
            }
            Ok(_) => {}
            Err(error) => return query::lost(&error),
        }
    }
}

/// Passes all connections on, until the listener fails.
fn listen(listener: &TcpListener, port: u16) -> CliError {
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        let from = match listener.accept() {
            Ok((from, _)) => from,
            Err(error) => match error.raw_os_error().map(Errno::from_raw) {
                // As many files are open as may be, or there is no memory: it passes.
                Some(Errno::EMFILE | Errno::ENFILE | Errno::ENOBUFS | Errno::ENOMEM) => {
                    std::thread::sleep(Duration::from_millis(100));
                    continue;
                }
                Some(Errno::ECONNABORTED | Errno::EINTR) => continue,
                Some(_) | None => {
                    return CliError::internal(format!(
                        "no more connections can be taken: {error}"
                    ));
                }
            },
        };
        let Some(place) = Place::take(&open) else {
            show(format_args!(
                "{MOST} connections are open, which is the most; one more was closed"
            ));
            continue;
        };
        let passed = std::thread::Builder::new().spawn(move || {
            let _place = place;
            if let Err(error) = pass_on(&from, port) {
                show(format_args!("nothing answers at port {port} in the sandbox: {error}"));
            }
        });
        if let Err(error) = passed {
            show(format_args!("no thread for one more connection, which was closed: {error}"));
        }
    }
}

/// One of the connections at once, until it is dropped.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(open: &Arc<AtomicUsize>) -> Option<Self> {
        let before = open.fetch_add(1, Ordering::Relaxed);
        // Dropped, it takes its count back.
        let place = Self(Arc::clone(open));
        (before < MOST).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Passes one connection on, until both sides have closed it.
fn pass_on(from: &TcpStream, port: u16) -> io::Result<()> {
    let to = TcpStream::connect((Ipv4Addr::LOCALHOST, port))
        .or_else(|_| TcpStream::connect((Ipv6Addr::LOCALHOST, port)))?;
    std::thread::scope(|scope| {
        std::thread::Builder::new().spawn_scoped(scope, || copy(from, &to))?;
        copy(&to, from);
        Ok(())
    })
}

/// Copies one direction. Where one side is gone, the other side sees its end.
fn copy(mut from: &TcpStream, mut to: &TcpStream) {
    if io::copy(&mut from, &mut to).is_err() {
        let _ = from.shutdown(Shutdown::Both);
    }
    let _ = to.shutdown(Shutdown::Write);
}
