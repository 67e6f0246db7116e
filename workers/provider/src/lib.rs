//! `agentd-provider`: talks to a model API, in a process of its own. It is the only process that
//! holds the key.
//!
//! Order of start: harden the process, receive the configuration, read the few files, enter the
//! cage, then start threads and the network. It parses nothing from the network before it is in its
//! cage.

mod serve;

use anyhow::{Context, bail};
use ipc::{ChannelError, Receiver};
use protocol::confinement::{Confinement, Network, Profile};
use protocol::provider::{FromProvider, PassedFd, ProviderLink, ToProvider};
use provider::{Provider, ProviderSetup};
use sandbox::{Cage, CageError};
use std::fs::File;
use std::process::ExitCode;

/// The exit code of a cage that cannot be made, as for commands.
const NO_CAGE: u8 = 11;

/// The program.
pub fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Standard error is the only output left: the channel itself may have failed.
            eprintln!("agentd-provider: {error:#}");
            match error.is::<CageError>() {
                true => ExitCode::from(NO_CAGE),
                false => ExitCode::FAILURE,
            }
        }
    }
}

fn run() -> anyhow::Result<()> {
    sandbox::harden().context("the process cannot be hardened")?;
    ipc::step!("provider: up");
    let (mut messages, outbox) = ipc::worker::<ProviderLink>()?;
    let log = outbox.clone();
    ipc::log::start("provider", move |line| drop(log.send(&FromProvider::Log(line))));
    let setup = loop {
        match messages.recv() {
            Ok(ToProvider::Configure { source, patience, proxy, papers }) => {
                let blank = ProviderSetup {
                    source,
                    patience,
                    proxy,
                    key: None,
                    replay: None,
                    record: None,
                };
                break with_papers(blank, &papers, &mut messages)?;
            }
            // Pings may arrive before the configuration.
            Ok(ToProvider::Ping(number)) => outbox.send(&FromProvider::Pong(number))?,
            Ok(ToProvider::Ask(_) | ToProvider::Cancel) => {
                bail!("a message came before Configure")
            }
            Err(ChannelError::Closed) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    };
    // Reads key, certificates and recording. From here on only the resolver needs files.
    let provider = Provider::new(setup);
    lock()?;
    outbox.send(&FromProvider::Ready)?;
    serve::run(provider, messages, outbox)
}

/// Takes the descriptors that ride behind the configuration.
fn with_papers(
    mut setup: ProviderSetup,
    papers: &[PassedFd],
    messages: &mut Receiver<ToProvider>,
) -> anyhow::Result<ProviderSetup> {
    for paper in papers {
        let file = File::from(messages.recv_fd()?);
        let place = match paper {
            PassedFd::Key => &mut setup.key,
            PassedFd::Replay => &mut setup.replay,
            PassedFd::Record => &mut setup.record,
            PassedFd::Credential(host) => bail!("the key for {host} is for no provider"),
            PassedFd::ServerVariable(name) => bail!("the variable {name} is for no provider"),
        };
        if place.replace(file).is_some() {
            bail!("two descriptors came for one purpose: {paper:?}");
        }
    }
    Ok(setup)
}

/// Locks this process for good. A cage that cannot be made ends the worker.
fn lock() -> anyhow::Result<()> {
    if let Err(error) = Cage::enter(&sandbox::worker_confinement(confinement())) {
        tracing::error!("the provider was not started: {error}");
        return Err(error.into());
    }
    Ok(())
}

/// The profile names all that is granted; there is no project and no temporary directory in it.
fn confinement() -> Confinement {
    Confinement { network: Network::On, ..Confinement::closed(Profile::Provider, "/", "/") }
}
