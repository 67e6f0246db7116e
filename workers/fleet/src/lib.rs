//! `agentd-fleet`: the only process that speaks with a fleet's database.
//!
//! `agentd fleet`, `submit` and `tasks` become this program. On a worker host it runs as long as the host
//! takes tasks; supervisors reach it over a Unix socket, so that no other process of agentd links a
//! database client.
//!
//! | File | Idea |
//! |---|---|
//! | `database`, `tls` | the connection: encryption, time-outs, a new one in place of a lost one |
//! | `pooler` | tells a pooler in transaction mode from the database |
//! | `schema`, `schema_version` | makes the schema, roles and members; the check of its version |
//! | `error` | errors, with the way on |
//! | `submit`, `tasks`, `export`, `status` | the commands of people |
//! | `recipe` | files that start workers in clusters and on hosts |
//! | `worker` | claims tasks and renews their leases |
//! | `task_run` | one claimed task: its workspace and its run |
//! | `task_flags` | a task's flags against its host's configuration |
//! | `task_end` | the end of a task on this host: its last records and its result |
//! | `rest` | the records that the database lacks when a task is given back |
//! | `answer` | how a run ended, with its JSON answer |
//! | `turns` | one run at a time for each session of this host |
//! | `seat` | one session's place: its records go to the database in order, then their barrier opens |
//! | `door` | the socket at which supervisors take their seats |
//! | `workspace` | a task's repository, snapshots and patch, by git |
//! | `objects` | the object store of large snapshots |
//! | `restore` | a session of a lost host: journal, workspace, and what is open |
//! | `sessions` | sessions on other hosts, for `agentd ls` and `agentd show` |
//! | `relay`, `terminals` | attach to a session on another host: the terminal's end, and the session's |
//! | `far_answers` | the answers that count from another host |
//! | `connection` | the hello and the messages of a connection to another process of this host |
//! | `daemon` | a connection to this host's daemon |
//! | `run` | starts `agentd` and `git`; no other file starts processes |

mod answer;
mod claim;
mod clock;
mod connection;
mod daemon;
mod database;
mod door;
mod error;
mod export;
mod far_answers;
mod host;
mod objects;
mod objects_error;
mod pooler;
mod private_file;
mod recipe;
mod relay;
mod rest;
mod restore;
mod run;
mod schema;
mod schema_version;
mod seat;
mod secret;
mod sessions;
mod shown;
mod status;
mod submit;
mod task_end;
mod task_flags;
mod task_run;
mod tasks;
mod terminals;
mod tls;
mod turns;
mod worker;
mod workspace;

use clap::{Parser, Subcommand};
use error::FleetError;
use fleet::{FleetCommand, SubmitArgs, TasksCommand};
use protocol::hidden::on_screen;
use std::io::Write;
use std::process::ExitCode;

#[derive(Debug, Parser)]
#[command(name = "agentd")]
struct Words {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// A fleet: tasks on many hosts.
    Fleet {
        #[command(subcommand)]
        command: FleetCommand,
    },
    /// Submit tasks to the fleet.
    Submit(SubmitArgs),
    /// List and control the fleet's tasks.
    Tasks {
        #[command(subcommand)]
        command: TasksCommand,
    },
}

/// The program.
pub fn main() -> ExitCode {
    if std::env::args_os().len() < 2 {
        let text = "agentd-fleet is started by `agentd fleet`, `submit` and `tasks`, not by hand";
        let _ = writeln!(std::io::stderr(), "{text}");
        return ExitCode::from(2);
    }
    let words = Words::parse();
    let ran = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(FleetError::Runtime)
        .and_then(|runtime| runtime.block_on(run_command(words.command)));
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of standard output has enough.
        Err(FleetError::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            // A closed standard error is not an error.
            let _ = writeln!(std::io::stderr(), "{}", on_screen(&error.in_words()));
            error.exit_code()
        }
    }
}

async fn run_command(command: Command) -> Result<(), FleetError> {
    match command {
        Command::Fleet { command: FleetCommand::Init(args) } => schema::init(&args).await,
        Command::Fleet { command: FleetCommand::Allow { role, tenant, database } } => {
            schema::allow(&database, &role, &tenant).await
        }
        Command::Fleet { command: FleetCommand::Worker(args) } => worker::main(&args).await,
        Command::Fleet { command: FleetCommand::Status { database, json } } => {
            status::main(&database, json).await
        }
        Command::Fleet { command: FleetCommand::Sessions { database } } => {
            sessions::list(&database).await
        }
        Command::Fleet { command: FleetCommand::Fetch { session, directory, database } } => {
            sessions::fetch(&session, &directory, &database).await
        }
        Command::Fleet { command: FleetCommand::Recipe { recipe } } => recipe::main(recipe),
        Command::Fleet { command: FleetCommand::Relay { session, database } } => {
            relay::main(&session, &database).await
        }
        Command::Submit(args) => submit::main(&args).await,
        Command::Tasks { command } => tasks::main(command).await,
    }
}
