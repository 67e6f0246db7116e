//! The name and place of a sub-agent's git worktree. Used by the session specification, and where a
//! sub-agent begins and ends.

use journal::{StoredPath, TaskHeader, TaskWorktree};
use protocol::ids::SessionId;
use std::path::{Path, PathBuf};

/// Directory of the worktrees below a project.
pub const DIRECTORY: &str = tool_specs::WORKTREES;

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
pub fn below(project: &Path, session: &SessionId) -> Vec<PathBuf> {
    let beginning = format!("{session}-");
    let entries = std::fs::read_dir(project.join(DIRECTORY)).into_iter().flatten().flatten();
    let of_session = entries.filter(|it| it.file_name().to_string_lossy().starts_with(&beginning));
    of_session.map(|entry| entry.path()).collect()
}

/// True if the sub-agent with this session works in a worktree that was made for it, and not for one above
/// it.
pub fn is_own(worktree: &TaskWorktree, child: &SessionId) -> bool {
    worktree.path.0.file_name().is_some_and(|name| *name == *child.0)
}

/// Checks that the worktree is the one that was made: a call of the parent can put a link or another
/// repository in its place.
pub fn check_place(worktree: &TaskWorktree) -> Result<(), String> {
    let TaskWorktree { path, project, .. } = worktree;
    let (path, shown) = (&path.0, path.0.display());
    let real = path.canonicalize().map_err(|error| format!("{shown} cannot be used: {error}"))?;
    if real != *path {
        return Err(format!("{shown} leads to {}", real.display()));
    }
    match sandbox::is_worktree_of(path, &project.0) {
        true => Ok(()),
        false => Err(format!("{shown} is no git worktree of {}", project.0.display())),
    }
}

/// Says to a parent where the work of a sub-agent is, if it has a worktree that still exists.
pub fn left(task: &TaskHeader) -> Option<String> {
    let TaskWorktree { path, branch, .. } = task.worktree.as_ref()?;
    let there = path.0.join(".git").exists();
    there.then(|| format!("[its worktree: {}, branch {branch}]", path.0.display()))
}
