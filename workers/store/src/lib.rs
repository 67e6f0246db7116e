//! `agentd-store`: stored data of a session and its project, in a process that can write only its
//! own directories and read the project. For `agentd memory` it lists and removes memories, for a terminal it adds one, and ends.

mod memories;

use anyhow::{Context, bail};
use ipc::ChannelError;
use protocol::store::{FromStore, StoreLink, StoreSetup, ToStore};
use sandbox::{Cage, CageError};
use std::path::Path;
use std::process::ExitCode;
use store::{DeniedReads, Store};

/// Exit code if no cage can be built, the same as for commands.
const NO_CAGE: u8 = 11;

/// The program.
#[must_use]
pub fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The channel may have failed, so the error goes to standard error.
            eprintln!("agentd-store: {error:#}");
            match error.is::<CageError>() {
                true => ExitCode::from(NO_CAGE),
                false => ExitCode::FAILURE,
            }
        }
    }
}

fn run() -> anyhow::Result<()> {
    sandbox::harden().context("the process cannot be hardened")?;
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    if !words.is_empty() {
        return memories::run(&words);
    }
    ipc::step!("store: up");
    let (mut words, say) = ipc::worker::<StoreLink>()?;
    let log = say.clone();
    ipc::log::start("store", move |line| drop(log.send(&FromStore::Log(line))));
    let setup: StoreSetup = loop {
        match words.recv() {
            Ok(ToStore::Begin(setup)) => break setup,
            Ok(ToStore::Ping(number)) => say.send(&FromStore::Pong(number))?,
            Ok(
                ToStore::Do(_)
                | ToStore::BackUp { .. }
                | ToStore::CallEnded { .. }
                | ToStore::PrepareSnapshot
                | ToStore::AskUndo { .. }
                | ToStore::TakeSnapshot(_)
                | ToStore::CommandEnded { .. }
                | ToStore::RunningCommands(_)
                | ToStore::FetchBackups(_)
                | ToStore::FetchChanges { .. }
                | ToStore::CacheGet(_)
                | ToStore::CachePut { .. }
                | ToStore::Invalidate(_),
            ) => {
                bail!("a message came before Begin")
            }
            Err(ChannelError::Closed) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    };
    let enforced = Cage::enter(&sandbox::worker_confinement(setup.confinement.clone()))?;
    tracing::debug!(profile = %enforced.profile, landlock = enforced.landlock_abi, "confined");
    say.send(&FromStore::Ready)?;
    let mut store = Store::new(&setup);
    let denied = setup.denied_reads.clone();
    let why = |named: &Path, real: &Path| approval::denied_read(&denied, named, real);
    for said in store.foreword(DeniedReads::by(&why)) {
        say.send(&said)?;
    }
    loop {
        // Background work is done while no message is pending.
        let word = match store.has_work() {
            true => words.try_recv(),
            false => words.recv().map(Some),
        };
        let word = match word {
            Ok(Some(word)) => word,
            Ok(None) => {
                for said in store.work() {
                    say.send(&said)?;
                }
                continue;
            }
            Err(ChannelError::Closed) => {
                store.end();
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        ipc::step!("store: call in", if matches!(word, ToStore::Do(_)));
        for said in store.step(word) {
            ipc::step!("store: before answer", if matches!(said, FromStore::Answered { .. }));
            note(&said);
            say.send(&said)?;
        }
    }
}

/// Logs answers.
fn note(said: &FromStore) {
    match said {
        FromStore::Ready => tracing::info!("ready"),
        FromStore::Answered { call, result } => {
            tracing::info!(%call, is_error = result.is_error, "answered");
        }
        FromStore::CacheAnswer { call, found: Some(found) } => {
            tracing::info!(%call, by = found.by, "answered from the cache");
        }
        FromStore::BackupsFetched { call, files: Err(_) } => {
            tracing::info!(%call, "no copies to restore")
        }
        FromStore::BackedUp { call, cover } => tracing::debug!(%call, ?cover, "copies kept"),
        FromStore::Instructions { .. }
        | FromStore::ChangesRecorded(_)
        | FromStore::BackupsFetched { .. }
        | FromStore::ChangesFetched { .. }
        | FromStore::CacheAnswer { found: None, .. }
        | FromStore::UndoCovers { .. }
        | FromStore::Pong(_)
        | FromStore::Log(_) => {}
    }
}
