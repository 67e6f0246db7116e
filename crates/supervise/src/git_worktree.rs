//! The git worktree of a sub-agent: made before its session, removed after it if nothing changed. Git runs in
//! a [`GitCage`] and starts none of the repository's hooks. Used by the task that waits for the sub-agent.

use call::tampered_in_words;
use journal::TaskWorktree;
use launch::git_cage::GitCage;
use launch::protected_restore::ProtectedCopies;
use launch::session_lock::SessionLock;
use launch::spawner::Spawner;
use protocol::call::TamperedFile;
use protocol::ids::CallId;
use setup::session_spec::SessionSpec;
use setup::task_worktree::{DIRECTORY, check_place};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;
use tool_specs::{git_words, shell_words};

/// Most characters of a list of changes.
const MOST_CHARS: usize = 4000;

/// Runs git for the worktree of a call's sub-agent.
pub(crate) struct WorktreeKeeper {
    cage: GitCage,
    /// Protected files that git changed, and what was done about each.
    pub(crate) tampered: Vec<TamperedFile>,
}

/// A worktree that is there.
pub(crate) struct MadeWorktree {
    /// The commit that it begins with.
    pub(crate) base: String,
    /// False if a death left it of an earlier attempt.
    pub(crate) is_new: bool,
}

impl WorktreeKeeper {
    pub(crate) fn new(
        call: CallId,
        spec: &SessionSpec,
        (spawner, lock, copies): (Spawner, SessionLock, ProtectedCopies),
        hello: Duration,
    ) -> Self {
        let (confinement, env) = (spec.confinement().clone(), spec.env().to_vec());
        let cage = GitCage { call, confinement, env, spawner, lock, copies, hello };
        Self { cage, tampered: Vec::new() }
    }

    /// Makes the worktree. One that a death left of an earlier attempt is taken if nothing in it changed.
    pub(crate) async fn make(
        &mut self,
        worktree: &TaskWorktree,
        stop: impl Future<Output = ()>,
    ) -> Result<MadeWorktree, String> {
        let filters = self.filters().await?;
        let known = self.tampered.len();
        let said = self.run(make_script(worktree, &filters), &filters, stop).await?;
        let (made, base) = said.trim().split_once(' ').ok_or("git named no commit")?;
        let made = MadeWorktree { base: base.to_owned(), is_new: made == "new" };
        let moved = tampered_in_words(&self.tampered[known..]);
        if moved.is_empty() {
            return Ok(made);
        }
        if made.is_new && check_place(worktree).is_ok() {
            let _ = self.run(discard_script(worktree), &filters, std::future::pending()).await;
        }
        Err(format!(
            "its checkout has protected files that differ from those of the project ({}). Commit the \
             project's changes of them, or take `isolation` out of the agent's file",
            moved.join(", ")
        ))
    }

    /// Removes the worktree if nothing in it changed, or describes the changes, for the parent's model.
    pub(crate) async fn finish(
        &mut self,
        worktree: &TaskWorktree,
        stop: impl Future<Output = ()>,
    ) -> String {
        let TaskWorktree { path, branch, .. } = worktree;
        let place = format!("{}, branch {branch}", path.0.display());
        let checked = match path.0.join(".git").symlink_metadata() {
            Ok(_) => check_place(worktree),
            Err(_) => Ok(()),
        };
        if let Err(why) = checked {
            return format!("[its worktree was left as it is: {why}]");
        }
        let done = match self.filters().await {
            Ok(filters) => self.run(finish_script(worktree), &filters, stop).await,
            Err(why) => Err(why),
        };
        match done {
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

    /// The filters that git's settings name. None of them runs.
    async fn filters(&self) -> Result<BTreeSet<String>, String> {
        let value = |wanted: &str| {
            let found = self.cage.env.iter().find(|(name, _)| name == wanted);
            found.map(|(_, value)| PathBuf::from(value))
        };
        let (home, global) = (value("HOME"), value("GIT_CONFIG_GLOBAL"));
        let project = self.cage.confinement.project.to_path();
        let found = tokio::task::spawn_blocking(move || {
            sandbox::find_git_filters(&project, home.as_deref(), global.as_deref())
        });
        let found = found.await.map_err(|error| error.to_string())?;
        let found = found.map_err(|file| {
            format!("{} cannot be read as git's settings, which may name programs", file.display())
        })?;
        let names: BTreeSet<String> =
            found.of_repository.union(&found.of_person).cloned().collect();
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        match names.iter().find(|name| !name.chars().all(plain)) {
            Some(name) => Err(format!(
                "git's settings name the filter {name:?}, which cannot be switched off"
            )),
            None => Ok(names),
        }
    }

    /// Runs a script, which starts git as `run_git`, until its end or until `stop`.
    async fn run(
        &mut self,
        script: String,
        filters: &BTreeSet<String>,
        stop: impl Future<Output = ()>,
    ) -> Result<String, String> {
        let ended = self.cage.run(format!("{}{script}", git_function(filters)), stop).await?;
        self.tampered.extend(ended.tampered);
        ended.result
    }
}

/// The only line that the second script prints where nothing changed.
const REMOVED: &str = "removed";
/// Shows everything that a removal would lose, whatever the repository's settings leave out.
const STATUS: &str =
    "status --short --untracked-files=normal --ignored=traditional --ignore-submodules=dirty";

/// Defines the command `run_git`, which starts none of the programs in git's settings.
fn git_function(filters: &BTreeSet<String>) -> String {
    let keys = |name: &String| {
        ["clean", "smudge", "process", "required"].map(|key| format!("filter.{name}.{key}="))
    };
    let off = filters.iter().flat_map(keys).flat_map(|setting| ["-c".to_owned(), setting]);
    let words: Vec<String> = git_words().into_iter().chain(off).collect();
    format!("run_git() {{ command {} \"$@\"; }}\n", shell_words(&words))
}

fn make_script(worktree: &TaskWorktree, filters: &BTreeSet<String>) -> String {
    let Words { path, branch, .. } = Words::of(worktree);
    let discard = discard_script(worktree);
    let filtered: String = filters
        .iter()
        .map(|name| {
            format!(
                "file=$(run_git -C {path} ls-files -- ':(attr:filter={name})')\n\
                 if [ -n \"$file\" ]; then\n\
                 if [ $made = new ]; then\n{discard}fi\n\
                 echo 'the git filter {name} changes files of this repository, and runs in no worktree of a \
                 sub-agent. Take `isolation` out of the agent'\\''s file' >&2; exit 1; fi\n"
            )
        })
        .collect();
    format!(
        "set -e\n\
         if [ ! -e .git ]; then echo 'the project is not the root of a git repository' >&2; exit 1; fi\n\
         if [ -L {DIRECTORY} ]; then echo '{DIRECTORY} is a link. Replace it by a directory' >&2; exit 1; fi\n\
         mkdir -p {DIRECTORY}\n\
         [ -e {DIRECTORY}/.gitignore ] || echo '*' > {DIRECTORY}/.gitignore\n\
         made=new\n\
         if [ -e {path}/.git ]; then made=old\n\
         if [ -L {path} ] || [ -n \"$(run_git -C {path} {STATUS})\" ]; then\n\
         echo {path} 'has changes already. Take what you need of it, and remove it with git worktree remove' >&2; exit 1; fi\n\
         elif run_git show-ref --quiet --verify refs/heads/{branch}; then run_git worktree add -f --quiet {path} {branch} >&2\n\
         else run_git worktree add -f --quiet -b {branch} {path} HEAD >&2; fi\n\
         {filtered}\
         echo \"$made $(run_git -C {path} rev-parse HEAD)\"\n"
    )
}

/// Removes a worktree that was made just now.
fn discard_script(worktree: &TaskWorktree) -> String {
    let Words { path, branch, .. } = Words::of(worktree);
    format!(
        "run_git worktree remove --force {path} >&2\n\
         run_git branch --quiet -D {branch} >&2\n"
    )
}

fn finish_script(worktree: &TaskWorktree) -> String {
    let Words { path, branch, base } = Words::of(worktree);
    format!(
        "if [ ! -e {path}/.git ]; then echo {REMOVED}; exit 0; fi\n\
         set -e\n\
         commits=$(run_git -C {path} log --oneline --no-decorate -n 20 {base}..HEAD)\n\
         changes=$(run_git -C {path} {STATUS})\n\
         head=$(run_git -C {path} rev-parse HEAD refs/heads/{branch} | sort -u)\n\
         if [ -z \"$commits$changes\" ] && [ \"$head\" = {base} ]; then\n\
         run_git worktree remove {path} && run_git branch --quiet -d {branch} >&2 && echo {REMOVED} && exit 0; fi\n\
         if [ -n \"$commits\" ]; then printf 'commits:\\n%s\\n' \"$commits\"; fi\n\
         if [ -n \"$changes\" ]; then echo 'not committed:'; head -n 50 <<< \"$changes\"; fi\n"
    )
}

/// The parts of a script, quoted.
struct Words {
    path: String,
    branch: String,
    base: String,
}

impl Words {
    fn of(worktree: &TaskWorktree) -> Self {
        let quoted = |word: String| shell_words(&[word]);
        Self {
            path: quoted(worktree.path.0.display().to_string()),
            branch: quoted(worktree.branch.clone()),
            base: quoted(worktree.base.clone()),
        }
    }
}
