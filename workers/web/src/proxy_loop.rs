//! The proxy's main loop. A separate thread reads the channel.

use super::Say;
use anyhow::Context;
use ipc::Receiver;
use protocol::company_proxy::ProxyEnvironment;
use protocol::hosts::HostRule;
use protocol::tool::{FromTool, ToTool};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use tokio::sync::oneshot;
use web::{Credentials, Proxy, ProxyListener};

/// Limit of simultaneous name lookups. Each takes a socket in addition to the two of every
/// connection, and a process has 1,024.
const MAX_LOOKUPS: usize = 64;

/// Serves until the supervisor reports the command's end, or is gone.
pub(crate) fn run_proxy(
    (hosts, denied): (Vec<HostRule>, Vec<HostRule>),
    private: Vec<HostRule>,
    beyond: (Option<Credentials>, ProxyEnvironment),
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
    // Each new kind of decision is reported at once, so that it is recorded even if this process
    // dies.
    let teller = say.clone();
    let proxy =
        Proxy::new((hosts.clone(), denied), private, beyond, move |connections, uncounted| {
            // If this fails, the reader thread sees the closed channel.
            let _ = teller.send(&FromTool::Proxied { connections, uncounted });
        });
    let why = runtime.block_on(async {
        let doors =
            sockets.into_iter().map(|socket| ProxyListener::new(TcpListener::from(socket), &hosts));
        let doors = doors.collect::<Result<_, _>>().context("an allow-list socket")?;
        anyhow::Ok(proxy.serve(doors, ended).await.unwrap_or(ProxyEnd::SupervisorGone))
    })?;
    // Data in flight is abandoned, and a pending lookup does not delay the exit.
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

/// Why the proxy ends.
enum ProxyEnd {
    CommandEnded,
    SupervisorGone,
}

/// Reads messages until one ends the proxy.
fn wait_for_end(mut words: Receiver<ToTool>, say: &Say) -> ProxyEnd {
    loop {
        match words.recv() {
            Ok(ToTool::Cancel) => return ProxyEnd::CommandEnded,
            // If this fails, the next receive sees the closed channel.
            Ok(ToTool::Ping(number)) => drop(say.send(&FromTool::Pong(number))),
            Ok(
                ToTool::Handover(_)
                | ToTool::Begin(_)
                | ToTool::Renew
                | ToTool::Go(_)
                | ToTool::Call(_),
            )
            | Err(_) => return ProxyEnd::SupervisorGone,
        }
    }
}
