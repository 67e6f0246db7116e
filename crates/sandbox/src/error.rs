//! Why a cage could not be made: the step, the reason, and a hint.

use std::fmt;
use std::io;

/// One step of making a cage, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CageStep {
    /// The process has no other thread.
    Threads,
    /// The kernel supports Landlock in a sufficient version.
    Landlock,
    /// User and group ID maps of the user namespace.
    Maps,
    /// Every granted path exists.
    Grants,
    /// A process of agentd could be forked.
    Fork,
    /// User, PID, IPC and network namespaces.
    Namespaces,
    /// The new root directory with the allowed paths.
    Root,
    /// A `/proc` that shows only the namespace's own processes.
    Proc,
    /// Loopback in the network namespace.
    Loopback,
    /// Messages and descriptors between the three processes of a cage.
    Handover,
    /// Capabilities dropped, `no_new_privs` set.
    Privileges,
    /// Resource limits.
    Limits,
    /// The Landlock ruleset.
    Layer,
    /// The seccomp filter.
    Filter,
    /// The descriptor for seccomp user notifications.
    Listener,
    /// A copy of the protected files, to restore them if the runner cannot.
    Saved,
    /// The program itself.
    Program,
    /// A process of the cage died before the program began, for example killed for lack of memory.
    /// Another try may succeed.
    Lost,
}

impl CageStep {
    /// Every step, in order.
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
            Self::Grants => protocol::confinement::UNGRANTED_STEP,
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

    /// True if only tier A has this step.
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

    /// A hint for the user if this step fails.
    const fn hint(self) -> &'static str {
        match self {
            Self::Threads => "this is a bug in agentd: a cage must be made before any thread",
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

/// The cage could not be made, or the program could not be started in it. Nothing was run.
#[derive(Debug, thiserror::Error)]
#[error("the cage could not be made at the step `{step}`: {reason}; {hint}")]
pub struct CageError {
    /// The failed step.
    pub step: CageStep,
    /// The reason, in plain words.
    pub reason: String,
    /// A remedy for the user.
    pub hint: String,
    /// The error from the kernel, if there was one.
    #[source]
    pub source: Option<io::Error>,
}

impl CageError {
    /// A failure without an error from the kernel.
    pub(crate) fn new(step: CageStep, reason: impl Into<String>) -> Self {
        Self { step, reason: reason.into(), hint: step.hint().to_owned(), source: None }
    }

    /// A failed system call; `what` names the attempted action.
    pub(crate) fn os(step: CageStep, what: impl fmt::Display, error: impl Into<io::Error>) -> Self {
        let error = error.into();
        Self {
            step,
            reason: format!("{what}: {error}"),
            hint: step.hint().to_owned(),
            source: Some(error),
        }
    }

    /// The same failure with a better hint.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// The errno of the source, 0 without one.
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
