//! The MCP servers of a session as text. Pure. Used by the screen and `agentd mcp check`.

use crate::lines::{display_width, one_line};
use protocol::mcp::{ServerReport, ServerState};

/// Most characters of a tool's description.
const DESCRIPTION: usize = 60;
/// Most characters of a command or an address.
const PLACE: usize = 200;
/// Most columns of a tool's name before its description.
const NAME: usize = 40;

/// The servers, each with its tools, without colour.
#[must_use]
pub fn servers_text(servers: &[ServerReport]) -> String {
    match servers {
        [] => {
            "this session has no MCP servers; `agentd mcp ls` lists those of a project".to_owned()
        }
        servers => servers.iter().map(server).collect::<Vec<_>>().join("\n"),
    }
}

fn server(report: &ServerReport) -> String {
    let state = match &report.state {
        ServerState::Starts => "starts".to_owned(),
        ServerState::Ready { after_ms } => {
            let seconds = format!("{}.{:02}", after_ms / 1000, after_ms % 1000 / 10);
            let count = report.tools.len();
            let tools = if count == 1 { "tool" } else { "tools" };
            format!("ready after {seconds} s, {count} {tools}")
        }
        ServerState::Ended(why) => format!("does not run: {why}"),
    };
    let mut text =
        format!("{}: {state}\n  place: {}\n", report.name, one_line(&report.place, PLACE));
    if let Some(sandbox) = &report.sandbox {
        text.push_str(&format!("  sandbox: {sandbox}\n"));
    }
    let widest = report.tools.iter().map(|tool| display_width(&tool.name)).max();
    let width = widest.unwrap_or_default().min(NAME);
    for tool in &report.tools {
        let about: String = one_line(&tool.description, DESCRIPTION);
        text.push_str(format!("  {:<width$}  {about}", tool.name).trim_end());
        text.push('\n');
        if let Some(words) = &tool.marked {
            let words = one_line(words, DESCRIPTION);
            text.push_str(&format!("    marked: speaks of other tools or rules: {words:?}\n"));
        }
    }
    for words in &report.words {
        let typed = format!("{} {}", words.text, words.arguments);
        let about = one_line(&words.description, DESCRIPTION);
        text.push_str(format!("  {}  {about}", one_line(typed.trim_end(), PLACE)).trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::mcp::ServedTool;

    #[test]
    fn servers_have_their_state_their_sandbox_and_their_tools() {
        let tool = |name: &str, about: &str| ServedTool {
            name: name.to_owned(),
            description: about.to_owned(),
            marked: about.starts_with("Finds").then(|| "bash".to_owned()),
        };
        let report = |name: &str, state| ServerReport {
            name: name.to_owned(),
            place: "npx docs".to_owned(),
            sandbox: None,
            state,
            tools: Vec::new(),
            words: Vec::new(),
        };
        let ready = ServerReport {
            sandbox: Some("writes nothing".to_owned()),
            tools: vec![tool("mcp__a__x", "Finds\nall."), tool("mcp__a__long", "")],
            ..report("a", ServerState::Ready { after_ms: 1234 })
        };
        let text = servers_text(&[
            ready,
            report("b", ServerState::Starts),
            report("c", ServerState::Ended("it died".to_owned())),
        ]);
        assert_eq!(
            text,
            "a: ready after 1.23 s, 2 tools\n  place: npx docs\n  sandbox: writes nothing\n  \
             mcp__a__x     Finds all.\n    marked: speaks of other tools or rules: \"bash\"\n  mcp__a__long\n\nb: starts\n  place: npx docs\n\n\
             c: does not run: it died\n  place: npx docs\n"
        );
        assert!(servers_text(&[]).contains("no MCP servers"));
    }
}
