//! The fleet: tasks that worker hosts take from one PostgreSQL database. This crate has its commands and
//! its decisions, without IO; `agentd-fleet` does the rest.
//!
//! | File | Idea | Called by |
//! |---|---|---|
//! | `command` | the command lines of `agentd fleet`, `submit` and `tasks` | `agentd`, `agentd-fleet` |
//! | `task_list` | the tasks of a submission, from flags or from a file of JSON lines | `agentd-fleet` |
//! | `lease` | until when a host may run calls, by its own clock | `agentd-fleet` |
//! | `run_end` | what the end of a run means for its task | `agentd-fleet` |
//! | `loss` | what becomes of a session whose host was lost | `agentd-fleet` |

mod command;
mod lease;
mod loss;
mod run_end;
mod task_list;

pub use command::{
    DatabaseArgs, ExportAs, FleetCommand, HostLoss, InitArgs, Recipe, RetryFrom, SubmitArgs,
    TaskRunArgs, TaskState, TasksCommand, WorkerArgs,
};
pub use lease::{Lease, LeaseTimes};
pub use loss::{LostSession, Onward, OpenWork, go_on};
pub use run_end::{AfterRun, TurnProgress, after_run, give_back};
pub use task_list::{NewTask, TaskListError, tasks_of};
