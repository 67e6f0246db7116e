//! Starts `agentd` and `git`, and no other program. The only file here that starts processes.
//!
//! Commands of a task change its workspace while git reads it: a directory may become a link to anything. So git
//! with the workspace runs in a cage with the task's directory alone, and git that needs this user's keys and the
//! network runs without the workspace.

use crate::error::FleetError;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

/// Most bytes of git's output that are kept: a patch, a pack.
const MOST_OUTPUT: usize = 64 << 20;

/// How long git may take in a workspace. It reads what the agent wrote, and opens a FIFO that is named
/// `.gitignore`.
const LONGEST: Duration = Duration::from_secs(300);

/// The program beside this one.
pub(crate) fn sibling(name: &str) -> Result<PathBuf, FleetError> {
    let own = std::env::current_exe().map_err(FleetError::Runtime)?;
    Ok(own.with_file_name(name))
}

/// Starts a run of `agentd -p` with this prompt on its standard input. Its answer comes on standard output.
pub(crate) async fn start_agentd(words: &[OsString], prompt: &str) -> Result<Child, FleetError> {
    let mut command = Command::new(sibling("agentd")?);
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A key pressed in this terminal is for the worker, which ends its runs in order.
    command.process_group(0).kill_on_drop(true);
    let mut child = command
        .spawn()
        .map_err(|error| FleetError::Host(format!("cannot start agentd: {error}")))?;
    if let Some(mut input) = child.stdin.take() {
        // If the run ended, its exit says why.
        let _ = input.write_all(prompt.as_bytes()).await;
    }
    Ok(child)
}

/// Runs a command of `agentd` for this host to its end, which does not ask the fleet. Its standard error is the error's text.
pub(crate) async fn agentd(words: &[&str]) -> Result<(), FleetError> {
    let mut command = Command::new(sibling("agentd")?);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command.env_remove("AGENTD_FLEET_URL");
    let done = command.kill_on_drop(true).output().await;
    let done = done.map_err(|error| FleetError::Host(format!("cannot start agentd: {error}")))?;
    match done.status.success() {
        true => Ok(()),
        false => Err(FleetError::Host(String::from_utf8_lossy(&done.stderr).trim().to_owned())),
    }
}

/// Git for one repository and one work tree, which are beside each other. Nothing that the work tree names is run:
/// neither its own settings, hooks and drivers have an effect, nor filters of this user that its `.gitattributes`
/// choose.
#[derive(Debug, Clone)]
pub(crate) struct Git {
    pub(crate) dir: PathBuf,
    pub(crate) tree: PathBuf,
    /// The index of snapshots.
    pub(crate) index: PathBuf,
}

impl Git {
    /// Runs git in its cage and returns its standard output. This user's settings have no effect.
    pub(crate) async fn run(&self, words: &[&str], input: &[u8]) -> Result<Vec<u8>, FleetError> {
        let mut command = self.caged_command(words);
        command.stdout(Stdio::piped());
        in_time(words, async { ended(self.spawn_in_cage(command)?, input).await }).await
    }

    /// Runs git in its cage with its standard output, or its standard input, in this file.
    pub(crate) async fn run_with_file(
        &self,
        words: &[&str],
        input: &[u8],
        file: GitFile<'_>,
    ) -> Result<(), FleetError> {
        let mut command = self.caged_command(words);
        match file {
            GitFile::Output(path) => {
                let file = std::fs::File::create(path).map_err(FleetError::file(path))?;
                command.stdout(file);
            }
            GitFile::Input(path) => {
                let file = std::fs::File::open(path).map_err(FleetError::file(path))?;
                command.stdin(file);
            }
        }
        in_time(words, async { ended(self.spawn_in_cage(command)?, input).await }).await.map(drop)
    }

    /// Runs git for another repository, with this user's ways and keys to it. It may take its time. It has no work
    /// tree; the words keep it from submodules.
    pub(crate) async fn run_with_remote(&self, words: &[&str]) -> Result<(), FleetError> {
        let mut command = self.command();
        let done = output(command.args(words).env("GIT_TERMINAL_PROMPT", "0"), b"").await;
        done.map(drop).map_err(failed(words))
    }

    /// Without variables of this process, which hold keys.
    fn caged_command(&self, words: &[&str]) -> Command {
        let mut command = self.command();
        command
            .args(words)
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .env("GIT_DIR", &self.dir)
            .env("GIT_WORK_TREE", &self.tree)
            .env("GIT_INDEX_FILE", &self.index)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            // Only what writes an index leaves it younger than the files in it.
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_AUTHOR_NAME", "agentd")
            .env("GIT_AUTHOR_EMAIL", "agentd@localhost")
            .env("GIT_COMMITTER_NAME", "agentd")
            .env("GIT_COMMITTER_EMAIL", "agentd@localhost")
            .stdout(Stdio::null());
        command
    }

    fn command(&self) -> Command {
        let mut command = Command::new("git");
        command
            .args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"])
            .args(["-c", "core.attributesFile=/dev/null", "-c", "protocol.ext.allow=never"])
            // These repositories are gone after their task: git need not tidy them.
            .args(["-c", "maintenance.auto=false", "-c", "gc.auto=0"])
            .current_dir(self.place())
            .env("GIT_DIR", &self.dir)
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// The task's directory.
    fn place(&self) -> &Path {
        self.dir.parent().unwrap_or(&self.dir)
    }

    /// Starts it in the cage of `config/confinement/fleet-git.toml`, by a thread that is in it.
    fn spawn_in_cage(&self, mut command: Command) -> Result<Child, String> {
        let runtime = tokio::runtime::Handle::current();
        let started = std::thread::scope(|scope| {
            let start = || {
                let _in_runtime = runtime.enter();
                sandbox::restrict_to_git_in(self.place()).map_err(|error| error.to_string())?;
                spawn(&mut command)
            };
            scope.spawn(start).join()
        });
        started.unwrap_or_else(|_| Err("the thread that starts it failed".to_owned()))
    }
}

fn failed(words: &[&str]) -> impl FnOnce(String) -> FleetError {
    let what = words.first().copied().unwrap_or_default().to_owned();
    move |why| FleetError::Host(format!("git {what}: {why}"))
}

/// The outcome of git in a workspace, if it comes in time.
async fn in_time<T>(
    words: &[&str],
    git: impl Future<Output = Result<T, String>>,
) -> Result<T, FleetError> {
    let done = tokio::time::timeout(LONGEST, git).await;
    let late = || {
        let most = LONGEST.as_secs();
        Err(format!("it does not end within {most} s; a very large file or a FIFO is in its way"))
    };
    done.unwrap_or_else(|_| late()).map_err(failed(words))
}

/// The standard stream of git that is a file.
#[derive(Debug, Clone, Copy)]
pub(crate) enum GitFile<'a> {
    Output(&'a Path),
    Input(&'a Path),
}

/// Runs git outside of a repository.
pub(crate) async fn git_plain(words: &[&OsStr], at: &Path) -> Result<Vec<u8>, FleetError> {
    let mut command = Command::new("git");
    command.args(words).current_dir(at).env("GIT_TERMINAL_PROMPT", "0");
    // A branch is a file.
    command.env("GIT_DEFAULT_REF_FORMAT", "files");
    output(&mut command, b"").await.map_err(|why| FleetError::Host(format!("git: {why}")))
}

async fn output(command: &mut Command, input: &[u8]) -> Result<Vec<u8>, String> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    ended(spawn(command)?, input).await
}

fn spawn(command: &mut Command) -> Result<Child, String> {
    command.spawn().map_err(|error| match error.kind() == io::ErrorKind::NotFound {
        true => "git is not installed".to_owned(),
        false => error.to_string(),
    })
}

async fn ended(mut child: Child, input: &[u8]) -> Result<Vec<u8>, String> {
    let stdin = child.stdin.take();
    let write = async {
        if let Some(mut stdin) = stdin {
            // If git ended, its exit says why.
            let _ = stdin.write_all(input).await;
        }
    };
    let (done, ()) = tokio::join!(child.wait_with_output(), write);
    let done = done.map_err(|error| error.to_string())?;
    if !done.status.success() {
        let text = String::from_utf8_lossy(&done.stderr);
        return Err(text.trim().chars().take(600).collect());
    }
    match done.stdout.len() > MOST_OUTPUT {
        true => Err(format!("its output has more than {} MiB", MOST_OUTPUT >> 20)),
        false => Ok(done.stdout),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn git_that_hangs_is_an_error_with_a_reason() {
        let hangs = std::future::pending::<Result<(), String>>();
        let error = in_time(&["ls-files"], hangs).await.map_err(|error| error.to_string());
        assert!(error.is_err_and(|why| why.contains("git ls-files") && why.contains("FIFO")));
    }
}
