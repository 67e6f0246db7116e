//! The title of the terminal's window or tab: what the session does, and which one it is. Pure.

use client::{Screen, TurnState};
use protocol::hidden::visible;
use std::path::Path;

/// Most characters of the name.
const NAME: usize = 40;

/// Who writes the title of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Title {
    /// The session's name and state stand there. On leaving, the title of before is back.
    Written,
    /// It stays as it is.
    LeftAlone,
}

/// `? agentd: NAME` while something waits for the person, `● agentd: NAME` while a turn runs. The name is the session's,
/// or that of its project's directory.
pub(crate) fn title(screen: &Screen, project: &Path) -> String {
    let name = screen.facts().map_or("", |facts| facts.name.as_str());
    let dir = project.file_name().unwrap_or_default().to_string_lossy();
    let name: String = if name.is_empty() { &dir } else { name }.chars().take(NAME).collect();
    let state = match (screen.question(), screen.turn()) {
        (Some(_), _) => "? ",
        (None, TurnState::Working) => "● ",
        (None, TurnState::Idle) => "",
    };
    let name = visible(&name).replace(['\n', '\t'], " ");
    match name.trim() {
        "" => format!("{state}agentd"),
        name => format!("{state}agentd: {name}"),
    }
}
