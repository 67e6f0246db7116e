//! `agentd-supervisor`: the root of the process tree. Starts all other processes, writes journal
//! and audit log, opens the control socket.

mod host_limits;

use anyhow::{Context, bail};
use config::{Config, Dirs, Environment, Sources, Trust, TrustStore};
use listenfd::ListenFd;
use nix::sys::signal::{SigSet, Signal};
use protocol::confinement::{Tier, WITHOUT_CAGE};
use sandbox::{Controller, Delegation};
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use supervise::{
    ControlAddress, ControlSocketError, DaemonLock, HandedSocket, HostLimits, HostTier, ListenMode,
    ServiceManager, SessionRoom, Supervisor, SupervisorError, SupervisorSettings, WorkerTimeouts,
};
use tokio::io::AsyncReadExt;

/// The program.
#[must_use]
pub fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("agentd-supervisor: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// How it runs, which also decides how it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Service {
    /// For one run: it ends when standard input is closed.
    Private,
    /// For all sessions of its user, detached from any terminal. Standard input only carries its
    /// first message to the client.
    Daemon,
    /// The same, but attached to the service manager or person that started it. A service manager may hand over the
    /// socket at which clients wait.
    Foreground,
}

fn run() -> anyhow::Result<ExitCode> {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let service = match arguments.first().and_then(|argument| argument.to_str()) {
        Some("--private") if arguments.len() == 1 => Service::Private,
        Some("--daemon") if arguments.len() == 1 => Service::Daemon,
        Some("--foreground") if arguments.len() == 1 => Service::Foreground,
        _ => bail!("it is started by agentd, not by hand; run `agentd --help`"),
    };
    if service == Service::Daemon {
        sandbox::close_inherited_fds().context("cannot close inherited descriptors")?;
        // Without a terminal of its own, neither its end nor a key pressed there affects the
        // daemon.
        nix::unistd::setsid().context("cannot leave its starter's terminal")?;
    }
    let first_word = match service {
        Service::Foreground => None,
        Service::Private | Service::Daemon => Some(channel()?),
    };
    match serve(service, first_word.as_ref()) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(complaint) => {
            match &first_word {
                // The client reads this line in place of an address, and shows the error.
                Some(channel) => report(channel, &complaint.line())?,
                None => eprintln!("agentd-supervisor: {}", one_sentence(&complaint.error)),
            }
            Ok(ExitCode::FAILURE)
        }
    }
}

fn channel() -> anyhow::Result<UnixStream> {
    let channel = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    if channel.local_addr().is_err() {
        bail!("it is started by agentd, not by hand; run `agentd --help`");
    }
    Ok(channel)
}

/// Why it cannot run, with a stable kind for the client's exit code.
struct StartupFailure {
    kind: &'static str,
    error: anyhow::Error,
}

impl StartupFailure {
    fn line(&self) -> serde_json::Value {
        let message = one_sentence(&self.error);
        serde_json::json!({ "error": { "kind": self.kind, "message": message } })
    }
}

/// An error with its sources. Some errors already have the text of their source.
fn one_sentence(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |text, part| match text.as_str() {
        "" => part,
        whole if whole.contains(&part) => text,
        whole => format!("{whole}: {part}"),
    })
}

/// Adds the kind to an error.
trait OfKind<T> {
    fn of_kind(self, kind: &'static str) -> Result<T, StartupFailure>;
}

impl<T, E: Into<anyhow::Error>> OfKind<T> for Result<T, E> {
    fn of_kind(self, kind: &'static str) -> Result<T, StartupFailure> {
        self.map_err(|error| StartupFailure { kind, error: error.into() })
    }
}

/// Runs until it is asked to end.
fn serve(service: Service, first_word: Option<&UnixStream>) -> Result<(), StartupFailure> {
    let dirs = Dirs::resolve(&Environment::of_process()).of_kind("state")?;
    let way = match service {
        Service::Private => {
            ListenMode::Private(dirs.runtime.join(format!("run-{}", std::process::id())))
        }
        Service::Daemon => claimed(&dirs)?,
        Service::Foreground => match handed_socket().of_kind("state")? {
            Some(listener) => {
                ListenMode::Handed(HandedSocket::check(listener, &dirs.runtime).of_kind("state")?)
            }
            None => claimed(&dirs)?,
        },
    };
    // A signal that ends this process waits until the probes have ended theirs.
    let ends = SigSet::from_iter([Signal::SIGHUP, Signal::SIGINT, Signal::SIGTERM]);
    ends.thread_block().context("cannot block signals").of_kind("internal")?;
    // Both fork children to probe the host, so they run before any thread starts.
    let cgroup = sandbox::set_up_cgroups();
    let temp_root =
        sandbox::temporary_root(config::temporary_fallback(&Environment::of_process()).as_deref())
            .of_kind("state")?;
    let host = HostTier::probed(&temp_root, sandbox::probe_tier);
    let host = host.context("the sandbox cannot be tried").of_kind("state")?;
    sandbox::harden().context("cannot protect itself from other processes").of_kind("internal")?;
    // The client blocks signals too. Inherited here, that mask would disable TERM.
    SigSet::empty().thread_set_mask().context("cannot unblock signals").of_kind("internal")?;
    // Workers die with their parent; the root must not. It sees the end of its client by the closed
    // standard input and then ends in order: calls get their end on disk, and nothing is left
    // behind.
    nix::sys::prctl::set_pdeathsig(None)
        .context("cannot clear the parent-death signal")
        .of_kind("internal")?;
    supervise::adopt_orphans()
        .context("cannot wait for processes whose parent ends")
        .of_kind("internal")?;
    let limits = host_limits::raise_and_read();
    let limits = limits.context("cannot read the limits of this process").of_kind("internal")?;
    let log = open_state(&dirs).of_kind("state")?;
    let workers = own_directory().of_kind("internal")?;
    supervise::check_workers(&workers).of_kind("worker")?;
    if service == Service::Daemon {
        // For the message of a panic; the starter's standard error is no longer read.
        nix::unistd::dup2_stderr(&log).of_kind("internal")?;
    }
    let idle_exit = match service {
        Service::Private => None,
        Service::Daemon | Service::Foreground => Some(idle_exit(&dirs).of_kind("configuration")?),
    };
    // No code depends on the working directory, and `/` keeps no other file system busy.
    std::env::set_current_dir("/").of_kind("internal")?;
    let settings = SupervisorSettings {
        dirs,
        workers,
        cgroup: command_cgroup_base(cgroup),
        temp_root,
        log,
        idle_exit,
        service_manager: match service {
            Service::Foreground => ServiceManager::Starter,
            Service::Private | Service::Daemon => ServiceManager::None,
        },
        room: session_room(&limits),
        timeouts: worker_timeouts(),
        worker_env: worker_env(),
        broker_env: broker_env(host.last_known()),
        host,
    };
    run_until_end(service, first_word, settings, way)
}

/// The lock under which this process may become the daemon.
fn claimed(dirs: &Dirs) -> Result<ListenMode, StartupFailure> {
    match DaemonLock::acquire(&dirs.runtime) {
        Ok(claim) => Ok(ListenMode::Daemon(claim)),
        Err(error @ ControlSocketError::DaemonRunning { .. }) => Err(error).of_kind("taken"),
        Err(error) => Err(error).of_kind("state"),
    }
}

/// The socket that the service manager handed over, if it did.
/// <https://www.freedesktop.org/software/systemd/man/latest/sd_listen_fds.html>
fn handed_socket() -> anyhow::Result<Option<UnixListener>> {
    let mut handed = ListenFd::from_env();
    if handed.len() > 1 {
        bail!(
            "the service manager handed over {} sockets; the unit must have one ListenStream=",
            handed.len()
        );
    }
    handed.take_unix_listener(0).context("the service manager handed over no listening Unix socket")
}

/// A daemon with less room than this says so in its log.
const LITTLE_ROOM: u64 = 100;

fn session_room(limits: &HostLimits) -> SessionRoom {
    let room = SessionRoom::of(limits);
    let SessionRoom { sessions, limit } = &room;
    match *sessions < LITTLE_ROOM {
        true => tracing::warn!(sessions, limit, "room for few sessions"),
        false => tracing::info!(sessions, limit, "room for sessions"),
    }
    room
}

/// Timeouts and limits of a session's workers. Tests that stop and kill workers ask a debug build for others: the time
/// of a ping, and the crashes after which a worker has failed.
fn worker_timeouts() -> WorkerTimeouts {
    let mut times = WorkerTimeouts::default();
    let asked = |name: &str| std::env::var(name).ok().filter(|_| cfg!(debug_assertions));
    if let Some(ms) = asked("AGENTD_TEST_PING_MS").and_then(|ms| ms.parse().ok()) {
        times.ping = Duration::from_millis(ms);
    }
    if let Some(crashes) = asked("AGENTD_TEST_CRASHES").and_then(|crashes| crashes.parse().ok()) {
        times.limits.no_progress = crashes;
        times.limits.total = crashes;
        times.replay.0 = crashes;
    }
    times
}

/// How long an idle daemon stays, by the configuration of its user and administrator. No project is
/// read: the given path does not exist.
fn idle_exit(dirs: &Dirs) -> Result<Duration, config::ConfigError> {
    let config = Config::load(&Sources {
        managed: PathBuf::from(config::MANAGED_FILE),
        user: dirs.user_file(),
        project: dirs.state.join("no-project"),
        // Paths may begin with `~/`.
        environment: std::env::var_os("HOME").map(|home| ("HOME", home)).into_iter().collect(),
        flags: Vec::new(),
        trust: Trust::AsRecorded(TrustStore::at(dirs.trust_file())),
        plugin_trust: TrustStore::at(dirs.trust_file()),
        // The daemon itself judges nothing: a session reads its own.
        claude_rules: |_, _| Ok(Vec::new()),
    })?;
    Ok(Duration::from_millis(config.daemon.idle_exit_ms))
}

fn open_state(dirs: &Dirs) -> anyhow::Result<File> {
    let unwritable = || {
        format!(
            "the state directory {} cannot be written; fix its permissions or set XDG_STATE_HOME",
            dirs.state.display()
        )
    };
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&dirs.state)
        .with_context(unwritable)?;
    let filter = std::env::var("RUST_LOG").ok();
    supervise::log::start(&dirs.state.join("log"), filter.as_deref()).with_context(unwritable)
}

fn own_directory() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()?;
    own.parent().map(PathBuf::from).context("this executable has no directory")
}

/// How long threads that still write at the end may take.
const LAST_WRITES: Duration = Duration::from_secs(1);

fn run_until_end(
    service: Service,
    first_word: Option<&UnixStream>,
    settings: SupervisorSettings,
    way: ListenMode,
) -> Result<(), StartupFailure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.of_kind("internal")?;
    let tell = |address: &ControlAddress| {
        let told = first_word.map_or(Ok(()), |channel| report(channel, &address_line(address)));
        if let Err(error) = told {
            tracing::warn!(%error, "the client left before it received the address");
        }
        if service == Service::Daemon
            && let Err(error) = close_input()
        {
            tracing::warn!(%error, "standard input stays open");
        }
    };
    let ran = runtime.block_on(async {
        let lifeline = match (service, first_word) {
            (Service::Private, Some(channel)) => Some(listening(channel)?),
            (Service::Private | Service::Daemon | Service::Foreground, _) => None,
        };
        Ok(Supervisor::run(settings, way, tell, end_of(lifeline)).await)
    });
    // Writes to a disk that does not answer are abandoned.
    runtime.shutdown_timeout(LAST_WRITES);
    let held = supervise::reap_all();
    if !held.is_empty() {
        tracing::warn!(
            ?held,
            "processes cannot be ended; the first process of this machine gets them"
        );
    }
    match ran.map_err(|error: std::io::Error| error).of_kind("internal")? {
        Err(SupervisorError::ControlSocket(error @ ControlSocketError::DaemonRunning { .. })) => {
            Err(error).of_kind("taken")
        }
        Err(SupervisorError::ControlSocket(error)) => Err(error).of_kind("state"),
        other => other.of_kind("internal"),
    }
}

fn listening(channel: &UnixStream) -> std::io::Result<tokio::net::UnixStream> {
    let channel = channel.try_clone()?;
    channel.set_nonblocking(true)?;
    tokio::net::UnixStream::from_std(channel)
}

/// Completes when the other end is closed; without a lifeline never.
async fn end_of(lifeline: Option<tokio::net::UnixStream>) {
    let Some(mut lifeline) = lifeline else { return std::future::pending().await };
    let mut bytes = [0; 64];
    while matches!(lifeline.read(&mut bytes).await, Ok(length) if length > 0) {}
}

/// Closes standard input: the starter expects no further message.
fn close_input() -> std::io::Result<()> {
    let nothing = File::open("/dev/null")?;
    Ok(nix::unistd::dup2_stdin(&nothing)?)
}

/// Variables that workers inherit from this process. The location of certificates comes from the
/// session's client.
fn worker_env() -> Vec<(String, String)> {
    let given = |name: &str| Some((name.to_owned(), std::env::var(name).ok()?));
    ["RUST_BACKTRACE", "RUST_LOG"].into_iter().filter_map(given).collect()
}

/// If no cage can be built, the broker of sessions without one has none either. The sessions' own
/// workers get this setting from their session: the host may have a cage by then.
fn broker_env(host: Tier) -> Vec<(String, String)> {
    (host == Tier::C).then(|| (WITHOUT_CAGE.to_owned(), "1".to_owned())).into_iter().collect()
}

/// The cgroup below which each command gets its own, if any was delegated.
fn command_cgroup_base(cgroup: Delegation) -> Option<PathBuf> {
    match cgroup {
        Delegation::Available { base, controllers } => {
            let holds: Vec<_> = controllers.into_iter().map(Controller::label).collect();
            tracing::info!(base = %base.display(), ?holds, "each command gets a cgroup");
            Some(base)
        }
        Delegation::Unavailable(reason) => {
            tracing::info!(%reason, "commands get no cgroup");
            None
        }
    }
}

fn address_line(address: &ControlAddress) -> serde_json::Value {
    serde_json::json!({
        "socket": address.socket,
        "token_file": address.token_file,
        "pid": std::process::id(),
    })
}

fn report(mut lifeline: &UnixStream, line: &serde_json::Value) -> std::io::Result<()> {
    lifeline.write_all(format!("{line}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_said_once() {
        let refused = || std::io::Error::from_raw_os_error(13);
        let path = PathBuf::from("/run/user/7/agentd");
        let twice = ControlSocketError::Io { path, source: refused() };
        let text = one_sentence(&anyhow::Error::from(twice));
        assert_eq!(text.matches("Permission denied").count(), 1, "{text}");
        let apart = anyhow::Error::from(refused()).context("cannot start");
        assert_eq!(one_sentence(&apart), "cannot start: Permission denied (os error 13)");
    }
}
