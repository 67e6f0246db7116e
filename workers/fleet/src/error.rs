//! Errors, with the way on.

use crate::objects_error::ObjectsError;
use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use tokio_postgres::error::DbError;

/// Why a command of the fleet ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FleetError {
    #[error("no fleet is named")]
    NoUrl,
    #[error("the fleet's address is not valid: {0}")]
    Url(String),
    #[error("cannot connect to the fleet's database: {}", causes(.0))]
    Connect(tokio_postgres::Error),
    #[error("this address is a pooler in transaction mode, which loses settings and notifications")]
    Pooler,
    #[error("the fleet's database does not answer within {0} s")]
    Silent(u64),
    #[error("{}", database_words(.0))]
    Database(tokio_postgres::Error),
    #[error("this database has no fleet")]
    NotInitialised,
    #[error("the fleet's schema has version {found}, this build needs {wanted}")]
    Schema { found: i32, wanted: i32 },
    #[error("there is no task {0} in this fleet")]
    NoTask(i64),
    #[error("{0}")]
    Tasks(#[from] fleet::TaskListError),
    #[error("{0}")]
    Refused(String),
    #[error("cannot use {}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("cannot write the output: {0}")]
    Output(io::Error),
    #[error("cannot start: {0}")]
    Runtime(io::Error),
    #[error("another `agentd fleet worker` of this user runs with the state directory {}", .0.display())]
    WorkerRuns(PathBuf),
    #[error("{0}")]
    Host(String),
    /// Another host may do it.
    #[error("{0}")]
    ThisHost(String),
    #[error(transparent)]
    Objects(#[from] ObjectsError),
}

impl From<tokio_postgres::Error> for FleetError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error)
    }
}

impl FleetError {
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }

    /// True if the lease that the request named is lost.
    pub(crate) fn is_lost_lease(&self) -> bool {
        matches!(self, Self::Database(error) if code_of(error) == Some("AG003"))
    }

    /// True if another host may succeed, or this one later: its disk is full, no daemon starts, the object
    /// store is away.
    pub(crate) fn is_of_this_host(&self) -> bool {
        if let Self::Objects(error) = self {
            return error.is_passing;
        }
        matches!(self, Self::File { .. } | Self::ThisHost(_))
    }

    /// True if the database takes no more connections.
    pub(crate) fn is_full(&self) -> bool {
        matches!(self, Self::Connect(error) | Self::Database(error) if code_of(error) == Some("53300"))
    }

    /// True if another connection may succeed.
    pub(crate) fn is_of_the_connection(&self) -> bool {
        let Self::Database(error) = self else {
            return matches!(self, Self::Connect(_) | Self::Silent(_));
        };
        // Class 57: the server shuts down, or starts. Class 08: connections. Class 53: resources.
        code_of(error).is_none_or(|code| {
            ["57", "08", "53"].iter().any(|class| code.starts_with(class))
                // It is a standby, or became one.
                || code == "25006"
                || code == "55000"
        })
    }

    /// The message for a terminal, with the way on.
    pub(crate) fn in_words(&self) -> String {
        let hint = match self {
            _ if self.is_full() => Some(
                "each worker keeps two connections: raise max_connections of the database, or start fewer \
                 workers with more --slots"
                    .to_owned(),
            ),
            Self::NoUrl => Some(
                "set AGENTD_FLEET_URL, or give --database postgres://USER@HOST/NAME".to_owned(),
            ),
            Self::Pooler => {
                Some("name the database itself, or a pooler with pool_mode = session".to_owned())
            }
            Self::NotInitialised => Some("its owner runs: agentd fleet init URL".to_owned()),
            Self::Schema { found, wanted } if found < wanted => {
                Some("its owner runs: agentd fleet init URL, which updates it".to_owned())
            }
            Self::Schema { .. } => Some("update agentd on this host".to_owned()),
            Self::NoTask(_) => Some("agentd tasks ls lists them".to_owned()),
            Self::Database(error) => error.as_db_error().and_then(DbError::hint).map(str::to_owned),
            Self::Url(_)
            | Self::Connect(_)
            | Self::Silent(_)
            | Self::Tasks(_)
            | Self::Refused(_)
            | Self::File { .. }
            | Self::Output(_)
            | Self::Runtime(_)
            | Self::WorkerRuns(_)
            | Self::Host(_)
            | Self::ThisHost(_)
            | Self::Objects(_) => None,
        };
        match hint {
            Some(hint) => format!("error: {self}\n  hint: {hint}"),
            None => format!("error: {self}"),
        }
    }

    /// The exit code, as `agentd help exit-codes` lists them.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::NoUrl | Self::Url(_) | Self::Pooler | Self::NoTask(_) | Self::Tasks(_) => 2,
            Self::NotInitialised | Self::Schema { .. } => 16,
            Self::WorkerRuns(_) => 75,
            Self::Connect(_)
            | Self::Silent(_)
            | Self::Database(_)
            | Self::Refused(_)
            | Self::File { .. }
            | Self::Output(_)
            | Self::Runtime(_)
            | Self::Host(_)
            | Self::ThisHost(_)
            | Self::Objects(_) => 1,
        })
    }
}

pub(crate) fn code_of(error: &tokio_postgres::Error) -> Option<&str> {
    error.code().map(tokio_postgres::error::SqlState::code)
}

/// The database's own words where it said something, else those of the connection.
fn database_words(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(said) => said.message().to_owned(),
        None => format!("the fleet's database is lost: {}", causes(error)),
    }
}

/// An error's text with those of its causes.
pub(crate) fn causes(error: &dyn Error) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let more = cause.to_string();
        if !words.contains(&more) {
            words = format!("{words}: {more}");
        }
        source = cause.source();
    }
    words
}
