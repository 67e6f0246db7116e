//! `agentd open`: this process listens at a port of this machine, joins the network of a session's background commands,
//! confines itself, and passes each connection on to the port there.

use crate::cli_error::{CliError, chain};
use crate::cli_exit::CliExit;
use crate::context::CliContext;
use crate::query;
use crate::sessions;
use client::SupervisorConnection;
use protocol::client::{
    BacklogFrom, ClientRights, FromClient, OtherClients, SessionWish, ToClient,
};
use protocol::confinement::{Confinement, Profile};
use protocol::ids::SessionId;
use sandbox::{Cage, CageError, NetworkNamespace};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Most connections at once. A browser opens six to a server.
const MOST: usize = 64;

pub(crate) fn main(beginning: &str, port: u16, here: u16) -> Result<CliExit, CliError> {
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
    let network = network(&mut connection, &session, port)?;
    enter(&network).map_err(|error| {
        CliError::config(format!("this process cannot be confined: {error}"))
            .hint(error.hint.clone())
    })?;
    eprintln!(
        "agentd: http://127.0.0.1:{here} is port {port} of session {session}; Ctrl-C closes it"
    );
    let listening = std::thread::Builder::new().spawn(move || listen(&listener, port));
    listening.map_err(|error| CliError::internal(format!("no thread: {error}")))?;
    Err(ended(&mut connection, &session))
}

/// Asks for the network. The record of the opening is on disk when it arrives.
fn network(
    connection: &mut SupervisorConnection,
    session: &SessionId,
    port: u16,
) -> Result<NetworkNamespace, CliError> {
    let (rights, others) = (ClientRights::Full, OtherClients::Stay);
    let attach = FromClient::Attach {
        session: session.clone(),
        from: BacklogFrom::Newest(0),
        rights,
        others,
    };
    let open = FromClient::Wish { session: session.clone(), wish: SessionWish::OpenPort(port) };
    for word in [attach, open] {
        connection.send(&word, &[]).map_err(|error| query::lost(&error))?;
    }
    loop {
        let word = connection.recv().map_err(|error| query::lost(&error))?;
        let ToClient::NetworkOpened { namespaces } = query::checked(word)? else { continue };
        let mut network = NetworkNamespace::default();
        for kind in namespaces {
            let descriptor = connection.recv_descriptor().map_err(|error| query::lost(&error))?;
            network.add(kind, descriptor);
        }
        return Ok(network);
    }
}

/// From here on this process reaches that network and no file.
fn enter(network: &NetworkNamespace) -> Result<(), CageError> {
    network.join()?;
    let wanted = Confinement::closed(Profile::Web, "/", "/");
    Cage::enter(&sandbox::worker_confinement(wanted)).map(drop)
}

/// Waits for the session's end.
fn ended(connection: &mut SupervisorConnection, session: &SessionId) -> CliError {
    loop {
        match connection.recv() {
            Ok(ToClient::Detached { reason, .. }) => {
                return CliError::user(format!("session {session} is closed here: {reason}"));
            }
            Ok(_) => {}
            Err(error) => return query::lost(&error),
        }
    }
}

fn listen(listener: &TcpListener, port: u16) {
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        let Ok((from, _)) = listener.accept() else {
            // As many files are open as may be.
            std::thread::sleep(std::time::Duration::from_millis(100));
            continue;
        };
        if open.fetch_add(1, Ordering::Relaxed) >= MOST {
            eprintln!(
                "agentd: {MOST} connections are open, which is the most; one more was closed"
            );
            open.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let count = Arc::clone(&open);
        let passed = std::thread::Builder::new().spawn(move || {
            if let Err(error) = pass_on(&from, port) {
                eprintln!("agentd: nothing answers at port {port} in the sandbox: {error}");
            }
            count.fetch_sub(1, Ordering::Relaxed);
        });
        if let Err(error) = passed {
            eprintln!("agentd: no thread for one more connection, which was closed: {error}");
            open.fetch_sub(1, Ordering::Relaxed);
        }
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
