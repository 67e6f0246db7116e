//! `agentd-supervisor`: the root of the process tree. Starts all other workers, keeps journal and
//! audit log, opens the control socket.

use anyhow::{Context, bail};
use config::{Dirs, Environment};
use protocol::confinement::Tier;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;
use supervise::{Address, Settings, Supervisor};
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

fn run() -> anyhow::Result<ExitCode> {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    match arguments.first().and_then(|argument| argument.to_str()) {
        Some("--private") if arguments.len() == 1 => {}
        _ => bail!("it is started by agentd, not by hand; run `agentd --help`"),
    }
    let lifeline = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    if lifeline.local_addr().is_err() {
        bail!("it is started by agentd, not by hand; run `agentd --help`");
    }
    match serve(&lifeline) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(complaint) => {
            // The client reads this line instead of an address, and tells the person.
            report(&lifeline, &complaint.line())?;
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Why it cannot run, with a stable word for the client's exit code.
struct Complaint {
    kind: &'static str,
    error: anyhow::Error,
}

impl Complaint {
    fn line(&self) -> serde_json::Value {
        let message = format!("{:#}", self.error);
        serde_json::json!({ "error": { "kind": self.kind, "message": message } })
    }
}

/// Marks an error with its kind.
trait OfKind<T> {
    fn of_kind(self, kind: &'static str) -> Result<T, Complaint>;
}

impl<T, E: Into<anyhow::Error>> OfKind<T> for Result<T, E> {
    fn of_kind(self, kind: &'static str) -> Result<T, Complaint> {
        self.map_err(|error| Complaint { kind, error: error.into() })
    }
}

/// Runs until the lifeline's other end is closed.
fn serve(lifeline: &UnixStream) -> Result<(), Complaint> {
    // Tries every step of the cage in a child, so it comes before any thread.
    let host = sandbox::host();
    sandbox::harden().context("cannot shut itself off from other processes").of_kind("internal")?;
    // The client holds signals back for itself; held back here too, TERM would end nothing.
    nix::sys::signal::SigSet::empty()
        .thread_set_mask()
        .context("cannot let signals in")
        .of_kind("internal")?;
    // A worker dies with whoever started it; the root does not. The lifeline tells it that its client
    // is gone, and it ends in order: calls get their end on disk, and nothing is left lying about.
    nix::sys::prctl::set_pdeathsig(None)
        .context("cannot outlive its client for a moment")
        .of_kind("internal")?;
    let dirs = Dirs::resolve(&Environment::of_process()).of_kind("state")?;
    let log = open_state(&dirs).of_kind("state")?;
    let workers = own_directory().of_kind("internal")?;
    supervise::check_workers(&workers).of_kind("worker")?;
    // Nothing of ours depends on it, and it keeps no file system busy.
    std::env::set_current_dir("/").of_kind("internal")?;
    let directory = dirs.runtime.join(format!("run-{}", std::process::id()));
    let settings = Settings {
        dirs,
        workers,
        host_tier: host.tier,
        host_words: words(host.tier),
        temp_root: PathBuf::from("/tmp"),
        log,
        worker_env: worker_env(),
    };
    run_until_end(lifeline, settings, directory).of_kind("internal")
}

fn open_state(dirs: &Dirs) -> anyhow::Result<File> {
    let unwritable = || {
        format!(
            "the state directory {} cannot be written; mend its permissions or set XDG_STATE_HOME",
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

fn run_until_end(
    lifeline: &UnixStream,
    settings: Settings,
    directory: PathBuf,
) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = lifeline.try_clone()?;
    ended.set_nonblocking(true)?;
    let tell = |address: &Address| {
        if let Err(error) = report(lifeline, &address_line(address)) {
            tracing::warn!(%error, "the client was gone before it knew the address");
        }
    };
    runtime.block_on(async {
        let mut ended = tokio::net::UnixStream::from_std(ended)?;
        let closed = async move {
            let mut bytes = [0; 64];
            while matches!(ended.read(&mut bytes).await, Ok(length) if length > 0) {}
        };
        Ok(Supervisor::run(settings, directory, tell, closed).await?)
    })
}

/// What workers may know of the environment: where certificates are, and how much to log.
fn worker_env() -> Vec<(String, String)> {
    ["SSL_CERT_FILE", "SSL_CERT_DIR", "RUST_BACKTRACE"]
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?)))
        .collect()
}

fn words(tier: Tier) -> String {
    match tier {
        Tier::A => "sandbox: full (namespaces, Landlock, seccomp)",
        Tier::B => "sandbox: partial (Landlock, seccomp)",
        Tier::C => "sandbox: NONE",
    }
    .to_owned()
}

fn address_line(address: &Address) -> serde_json::Value {
    serde_json::json!({
        "socket": address.socket,
        "token_file": address.token_file,
        "pid": std::process::id(),
    })
}

fn report(mut lifeline: &UnixStream, line: &serde_json::Value) -> std::io::Result<()> {
    lifeline.write_all(format!("{line}\n").as_bytes())
}
