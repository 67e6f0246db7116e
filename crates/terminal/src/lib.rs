//! The full-screen view of an attached session: items in, cells out. Linked by `agentd` alone.
//!
//! The screen model of `client` decides what a key and a message mean. This crate shows it, and has keys
//! of its own for what only it shows: scrolling, folding, search, the pager and the pickers.
//!
//! `frame` makes a frame of cells from the model and the view's own state, with `conversation`, `block`,
//! `markdown`, `diff`, `question`, `panels`, `pager` and `picker`: all pure. `tty` touches the
//! terminal, `guard` the process that gives it back after a kill, `files` and
//! `places` read the project, `slash` the slash commands, `server_words` what MCP servers offer beside both.

mod block;
mod choices;
mod conversation;
mod diff;
mod files;
mod frame;
mod guard;
mod help;
mod highlight;
mod markdown;
mod pager;
mod panels;
mod picker;
mod places;
mod question;
mod row;
mod selection;
mod server_words;
mod slash;
mod table;
mod theme;
mod title;
mod tty;
mod view;

pub use guard::guard_terminal;
pub use highlight::{choose_theme, code_spans, theme_names};
pub use theme::ColourDepth;
pub use title::Title;
pub use tty::{Mouse, Notify};
pub use view::{FullScreen, FullScreenOptions};
