//! The proxy's loop: one thread reads the channel, this one carries.

use super::Say;
use anyhow::Context;
use ipc::Receiver;
use protocol::hosts::HostRule;
use protocol::tool::{FromTool, ToTool};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use tokio::sync::oneshot;
use web::{Credentials, Door, Proxy};

/// Most names that are looked up at once; each takes a socket beside the two of every connection, and
/// a process has 1,024.
const LOOK_UPS: usize = 64;

/// Carries until the supervisor says that the command is over, or is gone itself.
pub(crate) fn carry(
    (hosts, denied): (Vec<HostRule>, Vec<HostRule>),
    credentials: Option<Credentials>,
    sockets: Vec<OwnedFd>,
    words: Receiver<ToTool>,
    say: &Say,
) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(LOOK_UPS)
        .build()
        .context("no event loop")?;
    let (over, ended) = oneshot::channel();
    let pong = say.clone();
    std::thread::Builder::new()
        .name("channel".into())
        .spawn(move || drop(over.send(listen(words, &pong))))
        .context("no thread for the channel")?;
    // Each decision of a new kind is told at once, to be on record whatever becomes of this process.
    let teller = say.clone();
    let proxy = Proxy::new((hosts.clone(), denied), credentials, move |connections, uncounted| {
        // Nobody to tell: the channel's end comes in as the next word.
        let _ = teller.send(&FromTool::Proxied { connections, uncounted });
    });
    let why = runtime.block_on(async {
        let doors = sockets.into_iter().map(|socket| Door::of(TcpListener::from(socket), &hosts));
        let doors = doors.collect::<Result<_, _>>().context("a socket of the allow-list")?;
        anyhow::Ok(proxy.serve(doors, ended).await.unwrap_or(Over::Gone))
    })?;
    // What is still under way a server does not take; a look-up holds up nobody.
    runtime.shutdown_background();
    match why {
        Over::Asked => {
            let (connections, uncounted) = proxy.decided();
            tracing::info!(connections = connections.len(), uncounted, "proxy ends");
            Ok(say.send(&FromTool::Proxied { connections, uncounted })?)
        }
        Over::Gone => Ok(()),
    }
}

/// Why carrying ends.
enum Over {
    Asked,
    Gone,
}

/// Until a word that ends the errand.
fn listen(mut words: Receiver<ToTool>, say: &Say) -> Over {
    loop {
        match words.recv() {
            Ok(ToTool::Cancel) => return Over::Asked,
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
            | Err(_) => return Over::Gone,
        }
    }
}
