//! Starts worker and runner processes. No other file of the supervisor starts any.
//!
//! One thread starts them all and lives until the supervisor's end, because PR_SET_PDEATHSIG follows
//! the thread that started a child, not the process. A worker's channel is its standard input. So
//! nothing has to run between fork and exec, and `spawn` stays a cheap `posix_spawn`.

use crate::grant::Grant;
use protocol::confinement::{FilePath, Profile};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tokio::sync::oneshot;
use tool_specs::RunnerProgram;

/// Workers that outlive a call. Runners have no variant: they start from a `Grant` only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WorkerKind {
    /// The conversation of a session.
    Session,
    /// Talks to one model API.
    Provider,
    /// Judges calls.
    Broker,
    /// The stored data of a session and its project.
    Store,
}

impl WorkerKind {
    /// Its executable.
    #[must_use]
    pub fn executable(self) -> &'static str {
        match self {
            Self::Session => "agentd-session",
            Self::Provider => "agentd-provider",
            Self::Broker => "agentd-broker",
            Self::Store => "agentd-store",
        }
    }
}

/// Why a worker could not be started.
#[derive(Debug, Clone, thiserror::Error)]
pub enum WorkerSpawnError {
    /// Its executable is not there.
    #[error(
        "{} is missing; build all executables with `cargo build --workspace` or install them \
         with `cargo install --locked --path .`",
        path.display()
    )]
    Missing {
        /// Where it should be.
        path: PathBuf,
    },
    /// The system refused to start it.
    #[error("cannot start {}: {reason}", path.display())]
    Refused {
        /// The executable.
        path: PathBuf,
        /// The system's error.
        reason: String,
    },
}

/// Checks that this directory has every executable, before anything depends on it.
///
/// # Errors
/// [`WorkerSpawnError::Missing`] for the first missing one.
pub fn check_workers(directory: &Path) -> Result<(), WorkerSpawnError> {
    let permanent =
        [WorkerKind::Session, WorkerKind::Provider, WorkerKind::Broker, WorkerKind::Store];
    let runners = RunnerProgram::ALL.map(RunnerProgram::executable);
    let names = permanent.map(WorkerKind::executable).into_iter().chain(runners);
    match names.map(|name| directory.join(name)).find(|path| !path.is_file()) {
        Some(path) => Err(WorkerSpawnError::Missing { path }),
        None => Ok(()),
    }
}

/// A process that was just started, and the supervisor's end of its channel.
#[derive(Debug)]
pub struct SpawnedWorker {
    pub(crate) child: Child,
    pub(crate) socket: UnixStream,
    pub(crate) pidfd: OwnedFd,
    /// The directory in which its command gets a cgroup, which is removed after the command's end.
    pub(crate) cgroup: Option<PathBuf>,
}

enum SpawnOrder {
    Start(SpawnRequest),
    /// The thread ends. Dropped once it starts nothing any more.
    End(oneshot::Sender<()>),
}

struct SpawnRequest {
    executable: &'static str,
    env: Arc<[(String, String)]>,
    reply: oneshot::Sender<Result<SpawnedWorker, WorkerSpawnError>>,
}

/// The handle of the spawner thread.
#[derive(Debug, Clone)]
pub struct Spawner {
    requests: mpsc::Sender<SpawnOrder>,
    env: Arc<[(String, String)]>,
    /// Additional variables of `agentd-web`, which may hold the password of the person's proxy.
    web_env: Arc<[(String, String)]>,
    directory: Arc<Path>,
}

impl Spawner {
    /// Starts the thread. Workers are looked up in `directory`. Their standard error, which a panic
    /// at most writes to, goes to `log`.
    pub fn start(directory: PathBuf, log: File, env: Vec<(String, String)>) -> io::Result<Self> {
        #[cfg(agentd_hooks)]
        let env = ipc::hook::handed_on(env);
        let (orders, inbox) = mpsc::channel::<SpawnOrder>();
        let kept = Arc::from(directory.as_path());
        std::thread::Builder::new().name("spawner".into()).spawn(move || {
            while let Ok(order) = inbox.recv() {
                match order {
                    SpawnOrder::Start(wanted) => start_wanted(wanted, &directory, &log),
                    // The sender is dropped behind the inbox: a later request is refused.
                    SpawnOrder::End(_ended) => return drop(inbox),
                }
            }
        })?;
        let (env, web_env) = (env.into(), Arc::default());
        Ok(Self { requests: orders, env, web_env, directory: kept })
    }

    /// The same thread, for workers with these additional variables.
    pub fn with_env(&self, more: &[(String, String)]) -> Self {
        Self { env: self.env.iter().chain(more).cloned().collect(), ..self.clone() }
    }

    /// The same thread, with these additional variables for `agentd-web` alone.
    pub fn with_web_env(&self, web_env: &[(String, String)]) -> Self {
        Self { web_env: web_env.into(), ..self.clone() }
    }

    /// The path of a runner's executable, for a cage that may run it.
    pub fn path_of(&self, runner: RunnerProgram) -> PathBuf {
        self.directory.join(runner.executable())
    }

    /// Starts a worker that outlives a call.
    ///
    /// # Errors
    /// See [`WorkerSpawnError`].
    pub async fn spawn_worker(
        &self,
        worker: WorkerKind,
    ) -> Result<SpawnedWorker, WorkerSpawnError> {
        self.request(worker.executable(), &[]).await
    }

    /// A runner starts only from a grant, whose permissions are then sent to it in a frame.
    pub(crate) async fn spawn_runner(
        &self,
        grant: &Grant,
        runner: RunnerProgram,
    ) -> Result<SpawnedWorker, WorkerSpawnError> {
        let more = match runner {
            RunnerProgram::Web => &*self.web_env,
            RunnerProgram::Tool | RunnerProgram::Code | RunnerProgram::Mcp => &[],
        };
        let started = self.request(runner.executable(), more).await?;
        let confinement = grant.confinement();
        // Only commands get a cgroup.
        let runs = matches!(
            confinement.profile,
            Profile::Command
                | Profile::Verify
                | Profile::Git
                | Profile::GitLook
                | Profile::Hook
                | Profile::GuardHook
                | Profile::Document
                | Profile::Mcp
                | Profile::McpWrite
                | Profile::McpRemote
        );
        let cgroup = confinement.cgroup.as_ref().filter(|_| runs).map(FilePath::to_path);
        Ok(SpawnedWorker { cgroup, ..started })
    }

    /// Ends the thread, and with it the processes that it started and that still run. When this returns,
    /// none is started any more; it waits at most this long.
    pub async fn end(&self, patience: Duration) {
        let (ended, told) = oneshot::channel();
        let _ = self.requests.send(SpawnOrder::End(ended));
        if tokio::time::timeout(patience, told).await.is_err() {
            tracing::warn!("a process is still being started");
        }
    }

    async fn request(
        &self,
        executable: &'static str,
        more: &[(String, String)],
    ) -> Result<SpawnedWorker, WorkerSpawnError> {
        let (reply, answer) = oneshot::channel();
        let gone = || WorkerSpawnError::Refused {
            path: executable.into(),
            reason: "the spawner thread has ended".into(),
        };
        let env = self.env.iter().chain(more).cloned().collect();
        let wanted = SpawnRequest { executable, env, reply };
        self.requests.send(SpawnOrder::Start(wanted)).map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}

/// Starts a process for a request that still waits. One that nobody takes is ended: no task waits for it.
fn start_wanted(wanted: SpawnRequest, directory: &Path, log: &File) {
    let SpawnRequest { executable, env, reply } = wanted;
    if reply.is_closed() {
        return;
    }
    let started = spawn_process(&directory.join(executable), log, &env);
    if let Err(Ok(SpawnedWorker { child, .. })) = reply.send(started) {
        end_unclaimed(child);
    }
}

fn end_unclaimed(mut child: Child) {
    let ended = child.kill().and_then(|()| child.wait());
    tracing::debug!(?ended, "a process was started that nobody waits for");
}

fn spawn_process(
    path: &Path,
    log: &File,
    env: &[(String, String)],
) -> Result<SpawnedWorker, WorkerSpawnError> {
    let refused = |error: io::Error| {
        let path = path.to_owned();
        match error.kind() == io::ErrorKind::NotFound {
            true => WorkerSpawnError::Missing { path },
            false => WorkerSpawnError::Refused { path, reason: error.to_string() },
        }
    };
    let (ours, theirs) = UnixStream::pair().map_err(refused)?;
    ours.set_nonblocking(true).map_err(refused)?;
    let child = Command::new(path)
        .env_clear()
        .envs(env.iter().map(|(name, value)| (name, value)))
        .process_group(0)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(log.try_clone().map_err(refused)?)
        .spawn()
        .map_err(refused)?;
    let pid = rustix::process::Pid::from_child(&child);
    match rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::NONBLOCK) {
        Ok(pidfd) => Ok(SpawnedWorker { child, socket: ours, pidfd, cgroup: None }),
        Err(error) => {
            end_unclaimed(child);
            Err(refused(error.into()))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn log() -> File {
        File::options().write(true).open("/dev/null").unwrap()
    }

    #[test]
    fn a_missing_executable_is_named_with_the_command_that_builds_it() {
        let error = spawn_process(Path::new("/nonexistent/agentd-tool"), &log(), &[]).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("/nonexistent/agentd-tool is missing"), "{text}");
        assert!(text.contains("cargo build --workspace"), "{text}");
    }

    #[tokio::test]
    async fn a_process_that_nobody_waits_for_is_not_left() {
        let spawner = Spawner::start("/bin".into(), log(), Vec::new()).unwrap();
        let (env, (reply, answer)) = (Arc::default(), oneshot::channel());
        drop(answer);
        let unheard = SpawnRequest { executable: "/nonexistent/never-looked-for", env, reply };
        start_wanted(unheard, Path::new("/"), &log());
        let started = spawner.request("cat", &[]).await.unwrap();
        let pid = started.child.id();
        end_unclaimed(started.child);
        assert!(!Path::new(&format!("/proc/{pid}")).exists(), "it is dead and reaped");
        spawner.end(Duration::from_secs(5)).await;
        let refused = spawner.request("cat", &[]).await.unwrap_err().to_string();
        assert!(refused.contains("the spawner thread has ended"), "{refused}");
        spawner.end(Duration::from_secs(5)).await;
    }

    #[test]
    fn a_worker_gets_the_given_environment_and_nothing_else() {
        use std::io::Read;
        let mut started = spawn_process(Path::new("/bin/cat"), &log(), &[]).unwrap();
        let environ = std::fs::read(format!("/proc/{}/environ", started.child.id())).unwrap();
        assert_eq!(environ, b"", "the worker's environment is empty");
        drop(started.socket);
        let mut rest = Vec::new();
        if let Some(mut out) = started.child.stdout.take() {
            out.read_to_end(&mut rest).unwrap();
        }
        assert!(started.child.wait().unwrap().success(), "end of file ends the worker");
    }
}
