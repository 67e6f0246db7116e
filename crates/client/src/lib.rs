//! What a person or a script sees of a session: a connection to a supervisor, the transcript of
//! what happens there, and its views.
//!
//! Called by the command line only. Few parts touch the world: `connection` (the socket), `spawn`
//! (a supervisor of one's own; the only file here that starts a process), `key` (a key's memory
//! file), and the loops `one_shot` (a script's run) and `attach` (a person's terminal). Everything
//! between is pure: [`Transcript`] and the [`View`]s of a run; [`Screen`], [`Blocks`] and the
//! [`LineView`] of a terminal.

mod attach;
mod blocks;
mod calling;
mod colour;
mod connection;
mod cost;
mod daemon;
mod doubt;
mod ear;
mod json;
mod key;
mod line_view;
mod live;
mod one_shot;
mod plain;
mod run_error;
mod screen;
mod spawn;
mod supervisors;
mod text;
mod transcript;
mod view;

pub use attach::{LeaderKey, Left, Manner, Visit, attach};
pub use blocks::{Block, Blocks, Item};
pub use colour::{Colour, Terminal};
pub use ipc::ChannelError;

pub use connection::{ConnectError, Connection};
pub use daemon::{DaemonError, DaemonSupervisors};
pub use json::{JsonView, StreamJsonView, failure_line};
pub use key::{KeyFileError, key_of_file, seal_key};
pub use line_view::{Around, LineView};
pub use one_shot::{Finished, Input, Prompts, RunFailure, Task, run};
pub use plain::{columns, marked, one_line, plain};
pub use run_error::{RunError, Stop};
pub use screen::{Effect, Entrance, Input as ScreenInput, Key, Leaving, Screen};
pub use spawn::{
    Launch, PrivateSupervisor, SpawnError, become_daemon, beside_self, key_of_command,
};
pub use supervisors::{OwnSupervisors, Silence, Supervisors};
pub use text::TextView;
pub use transcript::{Conclusion, OpenedSession, Took, Transcript, resume_hint};
pub use view::{Moment, Shown, View};
