//! `agentd-supervisor`: the root of the process tree. Starts all other workers, keeps journal and
//! audit log, opens the control socket.

use anyhow::{Context, bail};
use config::{Dirs, Environment};
use protocol::confinement::Tier;
use std::ffi::OsString;
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
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("agentd-supervisor: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    match arguments.first().and_then(|argument| argument.to_str()) {
        Some("--private") if arguments.len() == 1 => {}
        _ => bail!("it is started by agentd, not by hand; run `agentd --help`"),
    }
    let lifeline = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    if lifeline.local_addr().is_err() {
        bail!("it is started by agentd, not by hand; run `agentd --help`");
    }
    if let Err(error) = serve(&lifeline) {
        // The client reads this line instead of an address.
        report(&lifeline, &error_line(&error))?;
        return Err(error);
    }
    Ok(())
}

/// Runs until the lifeline's other end is closed.
fn serve(lifeline: &UnixStream) -> anyhow::Result<()> {
    // Tries every step of the cage in a child, so it comes before any thread.
    let host = sandbox::host();
    sandbox::harden().context("cannot shut itself off from other processes")?;
    let dirs = Dirs::resolve(&Environment::of_process())?;
    let unwritable = |dir: &PathBuf| {
        format!(
            "the state directory {} cannot be written; mend its permissions or set XDG_STATE_HOME",
            dir.display()
        )
    };
    let make = |dir: &PathBuf| std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
    make(&dirs.state).with_context(|| unwritable(&dirs.state))?;
    let filter = std::env::var("RUST_LOG").ok();
    let log = supervise::log::start(&dirs.state.join("log"), filter.as_deref())
        .with_context(|| unwritable(&dirs.state))?;
    let workers = std::env::current_exe()?
        .parent()
        .map(PathBuf::from)
        .context("this executable has no directory")?;
    // Nothing of ours depends on it, and it keeps no file system busy.
    std::env::set_current_dir("/")?;
    let mut name = [0; 8];
    std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut name)?;
    let directory = dirs.runtime.join(format!("run-{:016x}", u64::from_le_bytes(name)));
    let settings = Settings {
        dirs,
        workers,
        host_tier: host.tier,
        host_words: words(host.tier),
        temp_root: PathBuf::from("/tmp"),
        log,
        worker_env: worker_env(),
    };
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
            let mut byte = [0; 64];
            while matches!(ended.read(&mut byte).await, Ok(length) if length > 0) {}
        };
        Supervisor::run(settings, directory, tell, closed).await.map_err(anyhow::Error::from)
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

fn error_line(error: &anyhow::Error) -> serde_json::Value {
    serde_json::json!({ "error": { "kind": "start", "message": format!("{error:#}") } })
}

fn report(mut lifeline: &UnixStream, line: &serde_json::Value) -> std::io::Result<()> {
    lifeline.write_all(format!("{line}\n").as_bytes())
}
