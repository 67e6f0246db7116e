//! What a person or a script sees of a session: a connection to a supervisor, the transcript of
//! what happens there, and its views.
//!
//! Called by the command line only. Three parts touch the world: `connection` (the socket),
//! `spawn` (a supervisor of one's own; the only file here that starts a process) and `key` (a
//! key's memory file). [`Transcript`] and the [`View`]s are pure.

mod colour;
mod connection;
mod json;
mod key;
mod one_shot;
mod plain;
mod spawn;
mod supervisors;
mod text;
mod transcript;
mod view;

pub use colour::{Colour, Terminal};
pub use ipc::ChannelError;

pub use connection::{ConnectError, Connection};
pub use json::{JsonView, StreamJsonView, failure_line};
pub use key::seal_key;
pub use one_shot::{Finished, Input, RunError, Stop, Task, run};
pub use plain::{one_line, plain};
pub use spawn::{Launch, PrivateSupervisor, SpawnError, beside_self};
pub use supervisors::{OwnSupervisors, Supervisors};
pub use text::TextView;
pub use transcript::{Conclusion, OpenedSession, Transcript};
pub use view::{Moment, Shown, View};
