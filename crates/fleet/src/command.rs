//! The command lines of `agentd fleet`, `submit` and `tasks`. `agentd` shows their help and checks them;
//! `agentd-fleet` reads the same words again.

use clap::{Args, Subcommand, ValueEnum};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Where the fleet's database is.
#[derive(Debug, Clone, Default, Args)]
pub struct DatabaseArgs {
    /// The fleet's database: postgres://USER@HOST/NAME.
    ///
    /// Default: the variable AGENTD_FLEET_URL. Other programs can read a password in a flag; the
    /// variable PGPASSWORD holds it better.
    #[arg(long = "database", value_name = "URL")]
    pub url: Option<String>,
}

/// `agentd fleet`.
#[derive(Debug, Subcommand)]
pub enum FleetCommand {
    /// Make or update the schema of a fleet in a database.
    Init(InitArgs),
    /// Let a database role submit tasks, or work for them.
    Allow {
        /// The role, which exists in the database.
        role: String,
        /// The tenant that it belongs to.
        #[arg(long, value_name = "NAME", default_value = "default")]
        tenant: String,
        /// The fleet.
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Take tasks from the fleet and run them on this host.
    Worker(WorkerArgs),
    /// Show the hosts, the queue and the throughput.
    Status {
        /// The fleet.
        #[command(flatten)]
        database: DatabaseArgs,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Print a file that starts workers in a cluster or on a host.
    Recipe {
        /// For which of them.
        #[arg(value_enum, value_name = "PLACE")]
        recipe: Recipe,
    },
    /// Print the sessions that hosts work for, a JSON object per line; for `agentd ls`.
    #[command(hide = true)]
    Sessions {
        /// The fleet.
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Copy a session's records into this directory; for `agentd show`.
    #[command(hide = true)]
    Fetch {
        /// The beginning of the session's name, or a task's number.
        session: String,
        /// A directory for sessions.
        directory: PathBuf,
        /// The fleet.
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Make a socket for a session on another host; for `agentd attach`.
    #[command(hide = true)]
    Relay {
        /// The session.
        session: String,
        /// The fleet.
        #[command(flatten)]
        database: DatabaseArgs,
    },
}

/// `agentd fleet init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// The database; default: the variable AGENTD_FLEET_URL.
    #[arg(value_name = "URL")]
    pub url: Option<String>,
    /// The tenant of the role that runs this.
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub tenant: String,
    /// Seconds for which a host keeps a task without contact to the database.
    ///
    /// 30 in a new fleet. Workers that run keep the time that they began with.
    #[arg(long, value_name = "SECS", value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub lease: Option<u32>,
    /// Accept that a failover to an asynchronous standby loses the newest records.
    ///
    /// Calls of the lost seconds may then run twice.
    #[arg(long)]
    pub accept_async_standby: bool,
}

/// `agentd fleet worker`.
#[derive(Debug, Args)]
pub struct WorkerArgs {
    /// Tasks that run at once.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..=512))]
    pub slots: u16,
    /// A label of this host; repeatable. It takes tasks whose labels it has.
    #[arg(long = "label", value_name = "KEY=VALUE")]
    pub labels: Vec<String>,
    /// The host's name in `agentd fleet status`; default: its host name.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Directory of the tasks' workspaces; default: agentd-fleet in XDG_DATA_HOME.
    #[arg(long, value_name = "DIR")]
    pub work_dir: Option<PathBuf>,
    /// End when no task of the fleet waits or runs that this host could take.
    #[arg(long)]
    pub until_empty: bool,
    /// The fleet.
    #[command(flatten)]
    pub database: DatabaseArgs,
}

/// What starts workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Recipe {
    /// Pods of Kubernetes that stay
    KubernetesDeployment,
    /// Pods of Kubernetes that end when no task is left
    KubernetesJob,
    /// An array of jobs for `sbatch`
    Slurm,
    /// A bash script that starts and ends workers on hosts
    Ssh,
    /// A unit of systemd
    Systemd,
}

/// The policy for a task if its host is lost during a call with unknown effects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HostLoss {
    /// The task is held for a person
    #[default]
    Report,
    /// The task starts from the beginning, in a new session
    Retry,
    /// The session goes on; the model is told that the call may have run
    Resume,
}

impl HostLoss {
    /// Its word in the database.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Report => "report",
            Self::Retry => "retry",
            Self::Resume => "resume",
        }
    }

    /// From its word in the database. Of another version's word nothing is assumed: a person decides.
    #[must_use]
    pub fn of_word(word: &str) -> Self {
        match word {
            "retry" => Self::Retry,
            "resume" => Self::Resume,
            _ => Self::Report,
        }
    }
}

/// `agentd submit`.
#[derive(Debug, Args)]
pub struct SubmitArgs {
    /// The git repository: an address, or a directory that all hosts have.
    #[arg(long, value_name = "REPO", required_unless_present = "file")]
    pub repo: Option<String>,
    /// Branch, tag or commit to begin at.
    #[arg(long = "ref", value_name = "REF", default_value = "HEAD")]
    pub reference: String,
    /// The prompt.
    #[arg(long, value_name = "TEXT", required_unless_present = "file")]
    pub prompt: Option<String>,
    /// Tasks from a file, a JSON object per line; `-` for standard input.
    ///
    /// Keys: repo, ref, prompt, labels, priority, timeout, max_cost, max_turns, model, permission_mode,
    /// allowed_tools, on_host_loss, ask. The flags give what a line leaves out.
    #[arg(short = 'f', long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Only hosts with this label take it; repeatable.
    #[arg(long = "label", value_name = "KEY=VALUE")]
    pub labels: Vec<String>,
    /// Flags of the run.
    #[command(flatten)]
    pub run: TaskRunArgs,
    /// Let questions about calls wait for a person, who answers by `agentd attach`.
    ///
    /// Without it they are refused at once, as with `agentd -p`.
    #[arg(long)]
    pub ask: bool,
    /// The policy if the host is lost during a call with unknown effects.
    #[arg(long, value_enum, value_name = "POLICY", default_value = "report")]
    pub on_host_loss: HostLoss,
    /// Tasks of higher priority begin first.
    #[arg(long, value_name = "N", default_value = "0", allow_negative_numbers = true)]
    pub priority: i32,
    /// Submit the task so often; `{n}` in the prompt becomes 1, 2, and so on.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub array: Option<u32>,
    /// Print one JSON object per task.
    #[arg(long)]
    pub json: bool,
    /// The fleet.
    #[command(flatten)]
    pub database: DatabaseArgs,
}

/// Flags of a task's run, as `agentd -p` has them.
#[derive(Debug, Args)]
pub struct TaskRunArgs {
    /// Most requests to the model.
    #[arg(long, value_name = "N", alias = "budget", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_turns: Option<u32>,
    /// Send no further request once the task has cost this many US dollars.
    #[arg(long, value_name = "DOLLARS")]
    pub max_cost: Option<String>,
    /// Longest time of a run, in seconds.
    #[arg(long, value_name = "SECS", value_parser = clap::value_parser!(u32).range(1..))]
    pub timeout: Option<u32>,
    /// Vendor's name of the model, or the name of one in the host's configuration.
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// How to treat calls that match no rule, as with `agentd -p`. Not above the mode of the host.
    #[arg(long, value_name = "MODE")]
    pub permission_mode: Option<String>,
    /// Add an allow rule such as 'bash:cargo *'; repeatable. The host has to allow as much.
    #[arg(long, value_name = "RULE")]
    pub allowed_tools: Vec<String>,
}

/// How far a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TaskState {
    /// No host has it yet
    Queued,
    /// A host works for it
    Running,
    /// It waits for a person
    Held,
    /// It ended with an answer
    Done,
    /// It ended without one
    Failed,
    /// A person cancelled it
    Cancelled,
}

impl TaskState {
    /// Its word in the database.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Held => "held",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Where a task goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryFrom {
    /// In its session, as far as it is recorded.
    Session,
    /// At the beginning, in a new session.
    Beginning,
}

/// The form of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportAs {
    /// One JSON object per line
    Jsonl,
    /// One HTML page
    Html,
}

/// `agentd tasks`.
#[derive(Debug, Subcommand)]
pub enum TasksCommand {
    /// List tasks, the newest last.
    Ls {
        /// Only tasks in this state.
        #[arg(long, value_enum, value_name = "STATE")]
        state: Option<TaskState>,
        /// Only tasks of this submission.
        #[arg(long, value_name = "BATCH")]
        batch: Option<i64>,
        /// Print one JSON object per line.
        #[arg(long)]
        json: bool,
        /// The fleet.
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Print a task with its answer, tokens and cost.
    Show {
        /// The task's number.
        #[arg(value_name = "TASK")]
        task: i64,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
        /// The fleet.
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Print the records of a task's session.
    Logs {
        /// The task's number.
        #[arg(value_name = "TASK")]
        task: i64,
        /// Keep printing until the task is over.
        #[arg(short = 'f', long)]
        follow: bool,
        /// Print the journal's lines as they are.
        #[arg(long)]
        json: bool,
        /// The fleet.
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Print a task's changes as a patch.
    Diff {
        /// The task's number.
        #[arg(value_name = "TASK")]
        task: i64,
        /// The fleet.
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Cancel tasks.
    Cancel {
        /// The tasks' numbers.
        #[arg(value_name = "TASK", required = true)]
        tasks: Vec<i64>,
        /// The fleet.
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Let a task go on that is held or over.
    ///
    /// In its session: the model is told of calls that may have run.
    Retry {
        /// The tasks' numbers.
        #[arg(value_name = "TASK", required = true)]
        tasks: Vec<i64>,
        /// Start from the beginning, in a new session.
        #[arg(long)]
        anew: bool,
        /// The fleet.
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Print the results of tasks.
    Export {
        /// Only tasks of this submission.
        #[arg(long, value_name = "BATCH")]
        batch: Option<i64>,
        /// Form of the output.
        #[arg(long, value_enum, value_name = "FORMAT", default_value = "jsonl")]
        format: ExportAs,
        /// The fleet.
        #[command(flatten)]
        database: DatabaseArgs,
    },
}
