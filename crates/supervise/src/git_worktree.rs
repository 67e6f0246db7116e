//! The git worktree of a sub-agent: made before its session, removed after it if nothing changed. Git runs in
//! the cage of a command of the parent's session without network, and starts none of the repository's hooks.
//! Used by the task that waits for the sub-agent.

use crate::grant::Grant;
use crate::session_lock::SessionLock;
use crate::session_spec::SessionSpec;
use crate::worker::log_lines;
use crate::worker::process::{ProcessEvent, WorkerProcess};
use crate::worker::spawner::Spawner;
use journal::{StoredPath, TaskHeader, TaskWorktree};
use protocol::call::Outcome;
use protocol::confinement::Confinement;
use protocol::ids::{CallId, Generation, SessionId};
use protocol::tool::{FromTool, OutputStream, RunnerJob, ToTool, ToolLink};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tools::{git_words, shell_words};

/// Directory of the worktrees below a project. A file in it has git ignore it.
const DIRECTORY: &str = ".worktrees";
/// Longest time for the checkout of a large repository.
const LIMIT: Duration = Duration::from_secs(300);
/// How long a runner may take to end after its report.
const END: Duration = Duration::from_secs(5);
/// Most characters of an error or a list of changes.
const MOST_CHARS: usize = 4000;

/// The worktree of a sub-agent's session, without the commit that it begins with.
pub(crate) fn planned(project: &Path, child: &SessionId) -> TaskWorktree {
    TaskWorktree {
        project: StoredPath(project.to_owned()),
        path: StoredPath(project.join(DIRECTORY).join(&child.0)),
        branch: format!("agentd/{child}"),
        base: String::new(),
    }
}

/// The worktrees below a project that sub-agents of this session have, or had.
pub(crate) fn below(project: &Path, session: &SessionId) -> Vec<PathBuf> {
    let beginning = format!("{session}-");
    let entries = std::fs::read_dir(project.join(DIRECTORY)).into_iter().flatten().flatten();
    let of_session = entries.filter(|it| it.file_name().to_string_lossy().starts_with(&beginning));
    of_session.map(|entry| entry.path()).collect()
}

/// Says to a parent where the work of a sub-agent is, if it has a worktree that still exists.
pub(crate) fn left(task: &TaskHeader) -> Option<String> {
    let TaskWorktree { path, branch, .. } = task.worktree.as_ref()?;
    let there = path.0.join(".git").exists();
    there.then(|| format!("[its worktree: {}, branch {branch}]", path.0.display()))
}

/// Runs git for the worktrees of a session's sub-agents.
pub(crate) struct WorktreeKeeper {
    call: CallId,
    confinement: Confinement,
    env: Vec<(String, String)>,
    spawner: Spawner,
    lock: SessionLock,
    hello: Duration,
}

impl WorktreeKeeper {
    pub(crate) fn new(
        call: CallId,
        spec: &SessionSpec,
        (spawner, lock): (Spawner, SessionLock),
        hello: Duration,
    ) -> Self {
        let (confinement, env) = (spec.confinement.clone(), spec.env.clone());
        Self { call, confinement, env, spawner, lock, hello }
    }

    /// Makes the worktree and returns the commit that it begins with. One that a death left of an earlier
    /// attempt is taken as it is: no sub-agent has worked in it.
    pub(crate) async fn make(&self, worktree: &TaskWorktree) -> Result<String, String> {
        let base = self.run(make_script(worktree)).await?;
        Ok(base.trim().to_owned())
    }

    /// Removes the worktree if nothing in it changed, or describes the changes, for the parent's model.
    pub(crate) async fn finish(&self, worktree: &TaskWorktree) -> String {
        let TaskWorktree { path, branch, .. } = worktree;
        let place = format!("{}, branch {branch}", path.0.display());
        match self.run(finish_script(worktree)).await {
            Ok(said) if said.trim() == REMOVED => {
                "[it changed nothing in its worktree, which is removed]".to_owned()
            }
            Ok(changes) => {
                let changes: String = changes.trim_end().chars().take(MOST_CHARS).collect();
                format!("[its worktree: {place}]\n{changes}")
            }
            Err(why) => format!("[its worktree: {place}; its changes could not be listed: {why}]"),
        }
    }

    async fn run(&self, script: String) -> Result<String, String> {
        let grant = Grant::worktree(&self.call, &self.confinement);
        let job = RunnerJob::Run {
            tool: "bash".to_owned(),
            input: json!({ "command": script }).to_string(),
            judged: Vec::new(),
            env: self.env.clone(),
            timeout_ms: u64::try_from(LIMIT.as_millis()).unwrap_or(u64::MAX),
            max_result_chars: 8000,
        };
        let go = grant.go(&self.call, job).map_err(|error| error.to_string())?;
        let program = tools::RunnerProgram::Tool;
        let started = self.spawner.spawn_runner(&grant, program).await;
        let started = started.map_err(|error| error.to_string())?;
        let (sender, mut events) = mpsc::unbounded_channel();
        let process =
            WorkerProcess::<ToolLink>::attach(started, Generation(0), self.hello, move |event| {
                let _ = sender.send(event);
            });
        let process = process.map_err(|error| error.to_string())?;
        let lock = self.lock.share(process.pid).map_err(|error| error.to_string())?;
        process.send(&ToTool::SessionLock);
        process.send_descriptor(lock);
        process.send(&grant.begin());
        let answered = timeout(LIMIT, self.answer(&process, &go, &mut events)).await;
        if answered.is_err() {
            process.kill();
        }
        drop(process);
        // None of its processes may run when the session goes on.
        let gone = async {
            while let Some(event) = events.recv().await {
                if matches!(event, ProcessEvent::Ended(_)) {
                    break;
                }
            }
        };
        let _ = timeout(END, gone).await;
        answered.unwrap_or_else(|_| Err(format!("git took longer than {} s", LIMIT.as_secs())))
    }

    async fn answer(
        &self,
        process: &WorkerProcess<ToolLink>,
        go: &ToTool,
        events: &mut mpsc::UnboundedReceiver<ProcessEvent<ToolLink>>,
    ) -> Result<String, String> {
        let (mut out, mut err) = (String::new(), String::new());
        loop {
            let message = match events.recv().await {
                Some(ProcessEvent::Message { message, permit: _ }) => message,
                Some(ProcessEvent::Descriptor(_)) => continue,
                Some(ProcessEvent::Ended(cause)) => return Err(format!("its process {cause}")),
                None => return Err("its process is gone".to_owned()),
            };
            match message {
                FromTool::Keeper(keeper) => match self.lock.record_cage(process.pid, keeper) {
                    Ok(Ok(_)) => {}
                    Ok(Err(_)) => return Err("its process named another's".to_owned()),
                    Err(error) => return Err(error.to_string()),
                },
                FromTool::Caged(_) => process.send(go),
                FromTool::Output { stream: OutputStream::Out, text } => out.push_str(&text),
                FromTool::Output { stream: OutputStream::Err, text } => err.push_str(&text),
                FromTool::Log(line) => {
                    log_lines::write(tools::RunnerProgram::Tool.executable(), &self.call, &line);
                }
                FromTool::Uncaged { step, reason } => {
                    return Err(format!("git could not be confined ({step}: {reason})"));
                }
                FromTool::Lost(why) => return Err(why),
                FromTool::Done(report) => {
                    let is_done = report.result.outcome == Outcome::Exited { code: 0 };
                    return match (is_done, err.trim()) {
                        (true, _) => Ok(out),
                        (false, "") => Err(report.result.summary),
                        (false, err) => Err(err.chars().take(MOST_CHARS).collect()),
                    };
                }
                FromTool::Mounted
                | FromTool::Namespace(_)
                | FromTool::InBackground
                | FromTool::InputTaken(_)
                | FromTool::ProxyListener
                | FromTool::Resting { .. }
                | FromTool::Stale(_)
                | FromTool::Probed(_)
                | FromTool::Proxied { .. }
                | FromTool::Pong(_)
                | FromTool::Repaired(_)
                | FromTool::Certified(_) => {}
            }
        }
    }
}

/// The only line that the second script prints where nothing changed.
const REMOVED: &str = "removed";

fn make_script(worktree: &TaskWorktree) -> String {
    let Words { git, path, branch, .. } = Words::of(worktree);
    format!(
        "set -e\n\
         if [ ! -e .git ]; then echo 'the project is not the root of a git repository' >&2; exit 1; fi\n\
         mkdir -p {DIRECTORY}\n\
         [ -e {DIRECTORY}/.gitignore ] || echo '*' > {DIRECTORY}/.gitignore\n\
         {git} worktree prune\n\
         if [ -e {path}/.git ]; then :\n\
         elif {git} show-ref --quiet --verify refs/heads/{branch}; then {git} worktree add --quiet {path} {branch} >&2\n\
         else {git} worktree add --quiet -b {branch} {path} HEAD >&2; fi\n\
         {git} -C {path} rev-parse HEAD\n"
    )
}

fn finish_script(worktree: &TaskWorktree) -> String {
    let Words { git, path, branch, base } = Words::of(worktree);
    format!(
        "if [ ! -e {path}/.git ]; then echo {REMOVED}; exit 0; fi\n\
         set -e\n\
         commits=$({git} -C {path} log --oneline --no-decorate -n 20 {base}..HEAD)\n\
         changes=$({git} -C {path} status --short --ignore-submodules=dirty | head -n 50)\n\
         head=$({git} -C {path} rev-parse HEAD)\n\
         if [ -z \"$commits$changes\" ] && [ \"$head\" = {base} ]; then\n\
         {git} worktree remove {path} && {git} branch --quiet -d {branch} >&2 && echo {REMOVED} && exit 0; fi\n\
         if [ -n \"$commits\" ]; then printf 'commits:\\n%s\\n' \"$commits\"; fi\n\
         if [ -n \"$changes\" ]; then printf 'not committed:\\n%s\\n' \"$changes\"; fi\n"
    )
}

/// The parts of a script, quoted.
struct Words {
    git: String,
    path: String,
    branch: String,
    base: String,
}

impl Words {
    fn of(worktree: &TaskWorktree) -> Self {
        let quoted = |word: String| shell_words(&[word]);
        Self {
            git: shell_words(&git_words()),
            path: quoted(worktree.path.0.display().to_string()),
            branch: quoted(worktree.branch.clone()),
            base: quoted(worktree.base.clone()),
        }
    }
}
