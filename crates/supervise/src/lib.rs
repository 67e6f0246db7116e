//! Actors, routing, restarts, and what is audited: the supervisor.
//!
//! | Actor | File | Owns |
//! |---|---|---|
//! | supervisor | `root` (`opening`, `roll`) | the broker, the sessions, the way out |
//! | session | `session_actor` | one journal, its workers, calls and watchers |
//! | worker | `slot` | one worker process that is started again when it dies |
//! | call | `call_actor` | one call's runner, from proposal to result |
//! | client | `client_actor` | one connected terminal or script |
//! | audit | `audit_actor` | the audit log |
//!
//! What they decide is pure and stands apart: `route` (where words go), `call` (a call's life),
//! `restart` (when a worker comes back), `pulse` (whether it still answers), `plan` (what a session is to be), `mend` (what a journal
//! left in the middle needs), `sign` (what a word says of a worker's life). `life` holds one process
//! and its channel, `hold` the lock on a session that its runners share, `keeper` the end of a cage
//! behind its runner, `temp` and `remover` the directory that its calls fill, `leftover` processes of calls that outlived their supervisor, `spawn` is the only file that starts one, `grant` the only right to start a
//! tool.
//!
//! # Tried first: a ractor actor that owns a child and its channel
//!
//! A socket pair as the child's standard input keeps `std::process::Command` on `posix_spawn`
//! (also with `process_group(0)` and a cleared environment), so one spawner thread suffices. The
//! actor must not await the child anywhere: reading, writing and waiting for the end are tasks
//! beside it that send it messages, and the end is sent only after the pidfd is readable, the
//! child reaped and the socket read to its end; otherwise last words are lost. Mailboxes are
//! unbounded, so each word read from a worker carries a permit that the owner drops when it is
//! dealt with. ractor stops the parent when a child fails unless `handle_supervisor_evt` says
//! otherwise, so every parent here says otherwise.

mod audit_actor;
mod cage_cleanup;
mod call;
mod call_actor;
mod clean_settings;
mod client_actor;
mod command_env;
mod control_socket;
mod error_chain;
mod file_versions;
mod forbidden_dirs;
mod git_signing;
mod grant;
mod host_tier;
mod journal_repair;
mod journal_writer;
pub mod log;
mod messages;
mod orphans;
mod private_dirs;
mod progress;
mod project_caches;
mod project_overlays;
mod protected_restore;
mod proxy_machine;
mod records;
mod remover;
mod root;
mod route;
mod session_actor;
mod session_lock;
mod session_spec;
mod sign_in;
mod store_dirs;
mod tool_homes;
mod unix_time;
mod worker;
mod worker_ref;

pub use control_socket::daemon_lock::DaemonLock;
pub use control_socket::{ControlSocketError, ListenMode};
pub use host_tier::HostTier;
pub use session_spec::OpenFailure;
pub use worker::restart::{ExitKind, RestartDecision, RestartHistory, RestartLimits};
pub use worker::spawner::{WorkerKind, WorkerSpawnError, check_workers};

use config::Dirs;
use control_socket::ControlSocket;
use messages::RootMsg;
use ractor::{Actor, ActorRef};
use root::RootActor;
use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a supervisor is started with.
#[derive(Debug)]
pub struct SupervisorSettings {
    /// State, run-time and configuration directories.
    pub dirs: Dirs,
    /// Where the workers' executables are.
    pub workers: PathBuf,
    /// The strongest cage this host allows.
    pub host: HostTier,
    /// The directory in which each command gets a cgroup of its own, where one was delegated.
    pub cgroup: Option<PathBuf>,
    /// Where sessions' temporary directories are made.
    pub temp_root: PathBuf,
    /// Takes what workers write to standard error.
    pub log: File,
    /// How long it stays when nobody is attached and nothing runs or waits; for ever where absent.
    pub idle_exit: Option<Duration>,
    /// The workers' environment.
    pub worker_env: Vec<(String, String)>,
    /// What the broker has besides: it judges all sessions, also those without a cage.
    pub broker_env: Vec<(String, String)>,
}

/// Where a supervisor can be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlAddress {
    /// The control socket.
    pub socket: PathBuf,
    /// The file that holds the token.
    pub token_file: PathBuf,
}

/// Why a supervisor could not run.
#[derive(Debug, thiserror::Error)]
pub enum SupervisorError {
    /// Its door could not be opened.
    #[error(transparent)]
    ControlSocket(#[from] ControlSocketError),
    /// Its broker or audit log could not be started.
    #[error("cannot start: {0}")]
    Start(String),
    /// The system refused.
    #[error("cannot start: {0}")]
    Io(#[from] std::io::Error),
}

/// The root of the process tree.
#[derive(Debug)]
pub struct Supervisor;

impl Supervisor {
    /// Runs a supervisor until `lifeline` completes, a client ends it, or a signal does.
    /// `opened` is called once the door is open. When this returns, every process of it has ended.
    ///
    /// # Errors
    /// See [`SupervisorError`]; nothing runs then.
    pub async fn run(
        settings: SupervisorSettings,
        way: ListenMode,
        opened: impl FnOnce(&ControlAddress),
        lifeline: impl Future<Output = ()>,
    ) -> Result<(), SupervisorError> {
        // First of all, so that a daemon that comes second starts nothing.
        let door = ControlSocket::open(&way)?;
        let mut signals = ShutdownSignals::catch(&way)?;
        #[cfg(agentd_hooks)]
        ipc::hook::obey_aside();
        let (root, ended) = RootActor::spawn(None, RootActor, settings)
            .await
            .map_err(|error| SupervisorError::Start(error.to_string()))?;
        opened(&ControlAddress {
            socket: door.socket.clone(),
            token_file: door.token_file.clone(),
        });
        // It is open: whoever waits for the right to open it finds it taken.
        drop(way);
        let over = async {
            tokio::select! {
                () = lifeline => tracing::info!("the lifeline ended"),
                signal = signals.end() => tracing::info!(signal, "ends in order"),
            }
            let _ = root.send_message(RootMsg::Shutdown);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            _ = ended => {}
            () = over => {}
            () = serve(&door, &root) => {}
        }
        Ok(())
    }
}

/// The signals that ask a supervisor to end.
struct ShutdownSignals {
    term: Signal,
    int: Signal,
    hup: Signal,
    /// What the end of a terminal, or a logout, is to this supervisor.
    hangup: Hangup,
}

#[derive(Debug, Clone, Copy)]
enum Hangup {
    Ends,
    EndsNothing,
}

impl ShutdownSignals {
    fn catch(way: &ListenMode) -> std::io::Result<Self> {
        let hangup = match way {
            ListenMode::Private(_) => Hangup::Ends,
            ListenMode::Daemon(_) => Hangup::EndsNothing,
        };
        Ok(Self {
            hangup,
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
            hup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for one of them.
    async fn end(&mut self) -> &'static str {
        loop {
            tokio::select! {
                _ = self.term.recv() => return "TERM",
                _ = self.int.recv() => return "INT",
                _ = self.hup.recv() => match self.hangup {
                    Hangup::Ends => return "HUP",
                    Hangup::EndsNothing => tracing::info!("HUP, which ends nothing here"),
                },
            }
        }
    }
}

/// Lets peers in, each checked in a task of its own so that a slow one holds nobody up.
async fn serve(door: &ControlSocket, root: &ActorRef<RootMsg>) {
    loop {
        match door.accept().await {
            Ok(stream) => {
                let (token, root) = (door.token(), root.clone());
                tokio::spawn(async move {
                    if let Some(client) = control_socket::admit(stream, &token).await {
                        let _ = root.send_message(RootMsg::ClientConnected(client));
                    }
                });
            }
            Err(error) => {
                // Out of descriptors, most likely; trying at once would only burn the processor.
                tracing::error!(%error, "cannot accept");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        }
    }
}
