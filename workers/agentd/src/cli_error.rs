//! Error messages of the command line: who can fix the problem, and the next step.

use crate::cli_exit::CliExit;
use client::{ConnectError, DaemonError, StartError};
use protocol::ids::SessionId;
use std::error::Error;
use std::fmt;
use std::path::Path;

/// Who can fix the problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorSource {
    /// The caller's, by calling differently.
    User,
    /// The configuration's, or the machine's.
    Config,
    /// Ours.
    Internal,
}

/// Something that cannot be done.
#[derive(Debug)]
pub(crate) struct CliError {
    source: ErrorSource,
    exit: CliExit,
    message: String,
    hint: Option<String>,
    session: Option<SessionId>,
}

impl CliError {
    pub(crate) fn user(message: impl Into<String>) -> Self {
        Self {
            source: ErrorSource::User,
            exit: CliExit::Usage,
            message: message.into(),
            hint: None,
            session: None,
        }
    }

    pub(crate) fn config(message: impl Into<String>) -> Self {
        let (whose, exit) = (ErrorSource::Config, CliExit::Configuration);
        Self { source: whose, exit, message: message.into(), hint: None, session: None }
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self {
            source: ErrorSource::Internal,
            exit: CliExit::Failed,
            message: message.into(),
            hint: None,
            session: None,
        }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn exit(mut self, exit: CliExit) -> Self {
        self.exit = exit;
        self
    }

    /// The session that it is about.
    pub(crate) fn of_session(mut self, session: Option<SessionId>) -> Self {
        self.session = session;
        self
    }

    pub(crate) fn session(&self) -> Option<&SessionId> {
        self.session.as_ref()
    }

    /// The same error with a prefix.
    pub(crate) fn preceded_by(mut self, what: &str) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }

    pub(crate) fn code(&self) -> CliExit {
        self.exit
    }

    /// Without its colon and hint, for programs.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.source {
            ErrorSource::User => "error",
            ErrorSource::Config => "configuration error",
            ErrorSource::Internal => "internal error",
        };
        write!(f, "{word}: {}", self.message)?;
        match (&self.hint, self.source) {
            (Some(hint), _) => write!(f, "\nhint: {hint}"),
            (None, ErrorSource::Internal) => {
                write!(
                    f,
                    "\nhint: this is a bug in agentd; attach the output of `agentd doctor` \
                           to a report"
                )
            }
            (None, ErrorSource::User | ErrorSource::Config) => Ok(()),
        }
    }
}

/// An error with its sources, in one sentence.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let inner_text = inner.to_string();
        // Some errors already contain the text of their source.
        if !text.contains(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        source = inner.source();
    }
    text
}

impl From<config::DirsError> for CliError {
    fn from(error: config::DirsError) -> Self {
        Self::config(chain(&error))
    }
}

impl From<config::ConfigError> for CliError {
    fn from(error: config::ConfigError) -> Self {
        Self::config(chain(&error))
    }
}

/// How `agentd-fleet` comes to this path.
fn fleet_hint(path: &Path) -> String {
    let bin = path.parent().filter(|directory| directory.ends_with("bin"));
    let root = match bin.and_then(Path::parent) {
        Some(root) => format!(" --root {}", root.display()),
        None => String::new(),
    };
    format!(
        "in a checkout of agentd, `cargo install --locked --path . --features fleet{root}` installs it with the others"
    )
}

impl From<StartError> for CliError {
    fn from(error: StartError) -> Self {
        let message = chain(&error);
        match error {
            StartError::Missing { .. } => {
                Self::config(message).exit(CliExit::SupervisorUnreachable).hint(
                    "all executables of agentd must be in one directory; build them with \
                     `cargo build --workspace`, or install them with `cargo install --locked \
                     --path .`",
                )
            }
            StartError::NoFleet { path } => {
                Self::config(message).exit(CliExit::SupervisorUnreachable).hint(fleet_hint(&path))
            }
            StartError::Refused { .. } | StartError::NotUp { .. } | StartError::Nowhere(_) => {
                Self::internal(message).exit(CliExit::SupervisorUnreachable)
            }
            StartError::Cannot { kind, message } => match kind.as_str() {
                "configuration" | "state" => Self::config(message),
                // It ran while this process wanted to start it, and was gone when it asked.
                "taken" => Self::internal(message).exit(CliExit::SupervisorUnreachable),
                "sandbox" => Self::config(message).exit(CliExit::SandboxUnavailable),
                "worker" => Self::config(message).exit(CliExit::SupervisorUnreachable),
                _ => Self::internal(message).exit(CliExit::SupervisorUnreachable),
            },
        }
    }
}

impl From<ConnectError> for CliError {
    fn from(error: ConnectError) -> Self {
        let message = chain(&error);
        match error {
            ConnectError::Unreachable { .. } | ConnectError::Ended | ConnectError::OutOfTurn => {
                Self::internal(message).exit(CliExit::SupervisorUnreachable)
            }
            ConnectError::OtherBuild { .. } => {
                Self::config(message).exit(CliExit::SupervisorUnreachable).hint(
                    "`agentd daemon restart --force` replaces it with this build and interrupts \
                     running turns; every session stays on disk",
                )
            }
            ConnectError::Silent { .. }
            | ConnectError::Token { .. }
            | ConnectError::Channel(_)
            | ConnectError::Refused { .. } => {
                Self::config(message).exit(CliExit::SupervisorUnreachable)
            }
        }
    }
}

impl From<DaemonError> for CliError {
    fn from(error: DaemonError) -> Self {
        match error {
            DaemonError::Connect(error) => error.into(),
            DaemonError::Start(error) => error.into(),
        }
    }
}
