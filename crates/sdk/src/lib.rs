//! The wire between the Claude Agent SDKs and their command-line program, from that program's side: JSON lines, with
//! control requests both ways. `agentd help sdk` has the subset.
//!
//! All of it is pure; `agentd sdk` reads and writes. `lines` reads what a program says. A [`ProgramView`] is the
//! session as the program sees it: it takes what happens there and what the program says, and says what each gets. Of its
//! parts, `partial` makes the events of a streamed answer, `permission` asks the program's callback, `hooks` its hooks, and `names` gives modes
//! and tools their names there.

mod hooks;
mod lines;
mod names;
mod partial;
mod permission;
mod program_view;

pub use hooks::ProgramHook;
pub use lines::{ControlRequest, InitializeRequest, PermissionReply, ProgramLine};
pub use names::mode_of;
pub use permission::PermissionCallback;
pub use program_view::{
    LastResult, PartialMessages, ProgramOptions, ProgramOutput, ProgramView, ReplayedMessages,
};
