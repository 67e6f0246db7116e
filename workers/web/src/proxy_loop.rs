//! The proxy's loop: one thread reads the channel, this one carries.

use super::Say;
use anyhow::Context;
use ipc::Receiver;
use protocol::hosts::HostRule;
use protocol::tool::{FromTool, ToTool};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use tokio::sync::oneshot;
use web::{Credentials, Proxy, ProxyListener};

/// Most names that are looked up at once; each takes a socket beside the two of every connection, and
/// a process has 1,024.
const MAX_LOOKUPS: usize = 64;

/// Carries until the supervisor says that the command is over, or is gone itself.
pub(crate) fn run_proxy(
    (hosts, denied): (Vec<HostRule>, Vec<HostRule>),
    credentials: Option<Credentials>,
    sockets: Vec<OwnedFd>,
    words: Receiver<ToTool>,
    say: &Say,
) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(MAX_LOOKUPS)
        .build()
        .context("no event loop")?;
    let (over, ended) = oneshot::channel();
    let pong = say.clone();
    std::thread::Builder::new()
        .name("channel".into())
        .spawn(move || drop(over.send(wait_for_end(words, &pong))))
        .context("no thread for the channel")?;
    // Each decision of a new kind is told at once, to be on record whatever becomes of this process.
    let teller = say.clone();
    let proxy = Proxy::new((hosts.clone(), denied), credentials, move |connections, uncounted| {
        // Nobody to tell: the channel's end comes in as the next word.
        let _ = teller.send(&FromTool::Proxied { connections, uncounted });
    });
    let why = runtime.block_on(async {
        let doors =
            sockets.into_iter().map(|socket| ProxyListener::new(TcpListener::from(socket), &hosts));
        let doors = doors.collect::<Result<_, _>>().context("a socket of the allow-list")?;
        anyhow::Ok(proxy.serve(doors, ended).await.unwrap_or(ProxyEnd::SupervisorGone))
    })?;
    // What is still under way a server does not take; a look-up holds up nobody.
    runtime.shutdown_background();
    match why {
        ProxyEnd::CommandEnded => {
            let (connections, uncounted) = proxy.decided();
            tracing::info!(connections = connections.len(), uncounted, "proxy ends");
            Ok(say.send(&FromTool::Proxied { connections, uncounted })?)
        }
        ProxyEnd::SupervisorGone => Ok(()),
    }
}

/// Why carrying ends.
enum ProxyEnd {
    CommandEnded,
    SupervisorGone,
}

/// Until a word that ends the errand.
fn wait_for_end(mut words: Receiver<ToTool>, say: &Say) -> ProxyEnd {
    loop {
        match words.recv() {
            Ok(ToTool::Cancel) => return ProxyEnd::CommandEnded,
            // Should this fail, the channel's end comes in as the next word.
            Ok(ToTool::Ping(number)) => drop(say.send(&FromTool::Pong(number))),
            Ok(
                ToTool::Hold
                | ToTool::Overlays
                | ToTool::Mounted
                | ToTool::Save
                | ToTool::Sign(_)
                | ToTool::Confine(_)
                | ToTool::Repair(_)
                | ToTool::Go(_),
            )
            | Err(_) => return ProxyEnd::SupervisorGone,
        }
    }
}
