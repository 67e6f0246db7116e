//! The supervisor: actors, routing, restarts, audit.
//!
//! | Actor | File | Owns |
//! |---|---|---|
//! | supervisor | `root` | the broker, the sessions, the shutdown |
//! | session | `session_actor` | one journal, its workers, calls and clients |
//! | worker | `worker::actor` | one worker process, restarted when it dies |
//! | call | `call_actor` | one call's runner, from proposal to result |
//! | reserve | `reserve_actor` | a session's next runner, until a call takes it |
//! | client | `client_actor` | one connected terminal or script |
//! | audit | `audit_actor` | the audit log |
//!
//! `messages` declares the actors' messages. Decisions are pure and apart from the actors. The crate `call` has those
//! about one call, `setup` those about the settings of a session, `launch` those about one process. Those here:
//!
//! | File | Decides |
//! |---|---|
//! | `route` | where each message of a session's workers goes |
//! | `session_room` | for how many sessions the limits of the process suffice |
//!
//! `launch` starts every process and watches it to its end; only a `Grant` lets it start a runner. The call actor makes
//! the grants of calls and probes, the reserve actor that of the reserve.
//!
//! # Tried first: a ractor actor that owns a child and its channel
//!
//! A socket pair as the child's standard input keeps `std::process::Command` on `posix_spawn` (also
//! with `process_group(0)` and a cleared environment), so one spawner thread suffices. The actor
//! must not await the child anywhere: separate tasks read, write and wait for the end, and send it
//! messages. The end is sent only after the pidfd is readable, the child is reaped and the socket
//! is read to its end; otherwise its last messages are lost. Mailboxes are unbounded, so each
//! message of a worker carries a permit, which the owner drops when it has handled the message. By
//! default ractor stops the parent of a child that fails; every parent here overrides that in
//! `handle_supervisor_evt`.

mod audit_actor;
mod call_actor;
mod client_actor;
mod command_editor;
mod control_socket;
mod fleet_seat;
mod git_worktree;
mod host_tier;
mod journal_writer;
pub mod log;
mod messages;
mod person_prompt;
mod private_dirs;
mod project_caches;
mod records;
mod remover;
mod reserve_actor;
mod root;
mod route;
mod server_pins;
mod service_manager;
mod session_actor;
mod session_page;
mod session_room;
mod session_tree;
mod sign_in;
mod ssh_agent;
mod store_dirs;
mod task_outcome;
mod unix_time;
mod unread_output;
mod wanted_compaction;
mod worker;
mod worker_ref;
mod written_dirs;

pub use control_socket::daemon_lock::DaemonLock;
pub use control_socket::{ControlSocketError, HandedSocket, ListenMode};
pub use host_tier::HostTier;
pub use launch::adopted::{adopt_orphans, reap_all};
pub use launch::spawner::{WorkerSpawnError, check_workers};
pub use launch::timeouts::WorkerTimeouts;
pub use service_manager::ServiceManager;
pub use session_room::{HostLimit, HostLimits, SessionRoom};

use config::Dirs;
use control_socket::ControlSocket;
use launch::adopted::Adopted;
use messages::RootMsg;
use ractor::{Actor, ActorRef};
use root::RootActor;
use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The settings of a supervisor.
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
    /// Receives the workers' standard error.
    pub log: File,
    /// The supervisor ends after this time without clients and without work; never, if absent.
    pub idle_exit: Option<Duration>,
    /// Who waits for news of this process.
    pub service_manager: ServiceManager,
    /// For how many sessions the limits of this process suffice.
    pub room: SessionRoom,
    /// Timeouts and limits of a session's workers.
    pub timeouts: WorkerTimeouts,
    /// The workers' environment.
    pub worker_env: Vec<(String, String)>,
    /// More variables for the broker, which judges all sessions, also those without a cage.
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
    /// The control socket could not be opened.
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
    /// Runs a supervisor until `lifeline` completes, a client shuts it down, or a signal does.
    /// `opened` is called once the control socket is open. When this returns, all its processes
    /// have ended.
    ///
    /// # Errors
    /// See [`SupervisorError`]; nothing runs then.
    pub async fn run(
        settings: SupervisorSettings,
        mode: ListenMode,
        opened: impl FnOnce(&ControlAddress),
        lifeline: impl Future<Output = ()>,
    ) -> Result<(), SupervisorError> {
        // First of all, so that a daemon that comes second starts nothing.
        let socket = ControlSocket::open(&mode)?;
        let mut signals = ShutdownSignals::catch(&mode)?;
        let mut adopted = Adopted::catch()?;
        #[cfg(agentd_hooks)]
        ipc::hook::obey_aside();
        let manager = settings.service_manager;
        let (root, ended) = RootActor::spawn(None, RootActor, settings)
            .await
            .map_err(|error| SupervisorError::Start(error.to_string()))?;
        opened(&ControlAddress {
            socket: socket.socket.clone(),
            token_file: socket.token_file.clone(),
        });
        // The control socket is open: other processes that wait for the daemon lock find it taken.
        drop(mode);
        manager.ready();
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
            () = serve(&socket, &root) => {}
            () = manager.report(&root) => {}
            () = adopted.reap() => {}
        }
        Ok(())
    }
}

/// The signals that ask a supervisor to end.
struct ShutdownSignals {
    term: Signal,
    int: Signal,
    hup: Signal,
    /// The effect of SIGHUP, which the end of a terminal or a logout sends.
    hangup: Hangup,
}

#[derive(Debug, Clone, Copy)]
enum Hangup {
    Ends,
    EndsNothing,
}

impl ShutdownSignals {
    fn catch(mode: &ListenMode) -> std::io::Result<Self> {
        let hangup = match mode {
            ListenMode::Private(_) => Hangup::Ends,
            ListenMode::Daemon(_) | ListenMode::Handed(_) => Hangup::EndsNothing,
        };
        Ok(Self {
            hangup,
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
            hup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for a signal that ends the supervisor.
    async fn end(&mut self) -> &'static str {
        loop {
            tokio::select! {
                _ = self.term.recv() => return "TERM",
                _ = self.int.recv() => return "INT",
                _ = self.hup.recv() => match self.hangup {
                    Hangup::Ends => return "HUP",
                    Hangup::EndsNothing => tracing::info!("HUP is ignored by the daemon"),
                },
            }
        }
    }
}

/// Accepts connections. Each is authenticated in its own task, so a slow peer delays no other.
async fn serve(socket: &ControlSocket, root: &ActorRef<RootMsg>) {
    loop {
        match socket.accept().await {
            Ok(stream) => {
                let (token, root) = (socket.token(), root.clone());
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
