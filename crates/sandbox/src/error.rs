//! Why a cage could not be made: the step, the reason, and a way on. For every caller of this crate.

use std::fmt;
use std::io;

/// One step on the way to a caged process, in the order in which they are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CageStep {
    /// No thread besides this one exists.
    Threads,
    /// The kernel has Landlock, and enough of it.
    Landlock,
    /// Who is who in the user namespace.
    Maps,
    /// What is granted is there.
    Grants,
    /// A process of our own could be started.
    Fork,
    /// User, PID, IPC and network namespaces.
    Namespaces,
    /// The root built by allow.
    Root,
    /// A `/proc` that shows only the namespace's own processes.
    Proc,
    /// Loopback in the network namespace.
    Loopback,
    /// Descriptors and words between the three processes.
    Handover,
    /// No capabilities, no new privileges.
    Privileges,
    /// Bounds on processes, files and sizes.
    Limits,
    /// The Landlock layer.
    Layer,
    /// The seccomp filter.
    Filter,
    /// The descriptor that refused system calls are reported to.
    Listener,
    /// What protected names hold is kept for whoever puts them right if the runner cannot.
    Saved,
    /// The program itself.
    Program,
    /// A process of the cage died before the program began: killed, as by the kernel for memory.
    /// Another try may succeed.
    Lost,
}

impl CageStep {
    /// All of them, in order.
    pub const ALL: [Self; 18] = [
        Self::Threads,
        Self::Landlock,
        Self::Maps,
        Self::Grants,
        Self::Fork,
        Self::Namespaces,
        Self::Root,
        Self::Proc,
        Self::Loopback,
        Self::Handover,
        Self::Privileges,
        Self::Limits,
        Self::Layer,
        Self::Filter,
        Self::Listener,
        Self::Saved,
        Self::Program,
        Self::Lost,
    ];

    /// Its stable name in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Threads => "threads",
            Self::Landlock => "landlock",
            Self::Namespaces => "namespaces",
            Self::Maps => "maps",
            Self::Grants => "grants",
            Self::Fork => "fork",
            Self::Root => "root",
            Self::Proc => "proc",
            Self::Loopback => "loopback",
            Self::Handover => "handover",
            Self::Privileges => "privileges",
            Self::Limits => "limits",
            Self::Layer => "layer",
            Self::Filter => "filter",
            Self::Listener => "listener",
            Self::Saved => "saved",
            Self::Program => "program",
            Self::Lost => "lost",
        }
    }

    /// Whether only tier A takes it.
    pub(crate) const fn needs_namespaces(self) -> bool {
        match self {
            Self::Maps | Self::Namespaces | Self::Root | Self::Proc | Self::Loopback => true,
            Self::Threads
            | Self::Landlock
            | Self::Grants
            | Self::Fork
            | Self::Handover
            | Self::Privileges
            | Self::Limits
            | Self::Layer
            | Self::Filter
            | Self::Listener
            | Self::Saved
            | Self::Program
            | Self::Lost => false,
        }
    }

    /// What to try when this step fails.
    const fn hint(self) -> &'static str {
        match self {
            Self::Threads => "this is a mistake in agentd: a cage must be made before any thread",
            Self::Landlock => {
                "a kernel of 5.13 or newer with Landlock switched on is needed; `agentd doctor` says what is missing"
            }
            Self::Namespaces | Self::Maps | Self::Root | Self::Proc | Self::Loopback => {
                "`agentd doctor` tries each step; `sandbox.tier = \"b\"` does without namespaces"
            }
            Self::Grants => "check the project directory and the added directories",
            Self::Fork => "the limit on processes may be reached: end some, then try again",
            Self::Handover | Self::Privileges | Self::Limits => {
                "`agentd doctor` tries each step and says more"
            }
            Self::Layer | Self::Filter | Self::Listener => {
                "`agentd doctor` tries each step; nothing was run without its cage"
            }
            Self::Saved => {
                "free space where agentd keeps its state, or move it with XDG_STATE_HOME; then try again"
            }
            Self::Lost => "try again; the kernel's log says whether it ran out of memory",
            Self::Program => "check its name, that it is executable, and where it lies",
        }
    }
}

impl fmt::Display for CageStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A cage that could not be made, or a program that could not be started in it. Nothing was run.
#[derive(Debug, thiserror::Error)]
#[error("the cage could not be made at the step `{step}`: {reason}; {hint}")]
pub struct CageError {
    /// Where it stopped.
    pub step: CageStep,
    /// What happened, in plain words.
    pub reason: String,
    /// A way on.
    pub hint: String,
    /// What the kernel said, where it was the kernel.
    #[source]
    pub source: Option<io::Error>,
}

impl CageError {
    /// A failure that we found ourselves.
    pub(crate) fn new(step: CageStep, reason: impl Into<String>) -> Self {
        Self { step, reason: reason.into(), hint: step.hint().to_owned(), source: None }
    }

    /// A failure of a system call; `what` is what was tried.
    pub(crate) fn os(step: CageStep, what: impl fmt::Display, error: impl Into<io::Error>) -> Self {
        let error = error.into();
        Self {
            step,
            reason: format!("{what}: {error}"),
            hint: step.hint().to_owned(),
            source: Some(error),
        }
    }

    /// The same failure with a better way on.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// The errno behind it, 0 where there is none.
    pub(crate) fn errno(&self) -> i32 {
        self.source.as_ref().and_then(io::Error::raw_os_error).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::CageStep;

    #[test]
    fn names_are_distinct() {
        let mut names: Vec<_> = CageStep::ALL.iter().map(|step| step.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CageStep::ALL.len());
    }
}
