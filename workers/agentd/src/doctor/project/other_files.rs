//! Files of other agents: MCP servers, and those that agentd does not read: plugins, and the rest of
//! `.claude`.

use super::{PartState, ProjectReport};
use crate::context::TrustFlag;
use crate::settings::sound_as;
use config::TrustStore;
use protocol::hidden::line;
use serde_json::Value;
use std::path::Path;

/// Entries of `.claude` that other parts of the report name.
const REPORTED: [&str; 6] =
    ["settings.json", "settings.local.json", "commands", "skills", "agents", "CLAUDE.md"];
/// Other entries, with the reason.
const REASONS: &[(&str, &str)] = &[
    ("hooks", "not read by itself: hooks of the settings run the programs that they name"),
    ("output-styles", "agentd has no output styles; --append-system-prompt adds text"),
    ("rules", "instructions are read from AGENTS.md or CLAUDE.md alone"),
    ("plugins", "agentd uses a plugin where --plugin-dir names it"),
    ("worktrees", "those of sub-agents of agentd are in .worktrees"),
];
/// Largest file that is looked into, in bytes.
const LARGEST: usize = 1 << 20;
/// Names that are listed of one file.
const NAMED: usize = 8;

pub(super) fn look(report: &mut ProjectReport<'_>) {
    let first = report.parts.len();
    servers(report);
    plugin(report);
    for name in names_in(&report.project.join(".claude")) {
        if !REPORTED.contains(&name.as_str()) {
            let why = REASONS.iter().find(|(known, _)| *known == name).map(|(_, why)| *why);
            report.ignored(&format!(".claude/{name}"), why.unwrap_or("agentd does not read it"));
        }
    }
    report.cap(first, "other files");
}

/// The MCP servers of the project's `.mcp.json`, as a session would load them.
fn servers(report: &mut ProjectReport<'_>) {
    let name = ".mcp.json";
    let path = report.project.join(name);
    let content = match config::read_file(&path) {
        Ok(Some(content)) => content,
        Ok(None) => return,
        Err(error) => return report.wrong(&error.to_string()),
    };
    let config = match sound_as(report.context, report.project, TrustFlag::Given) {
        Ok(config) => config,
        // Another file may be the wrong one, which is named already.
        Err(failure) if failure.message().contains(name) => return report.wrong(failure.message()),
        Err(_) => {
            return report.ignored(name, "it is read once the wrong files above are repaired");
        }
    };
    let trust = TrustStore::at(report.context.dirs.trust_file());
    let state = match trust.holds(&path, &content) {
        Ok(true) => PartState::Used,
        Ok(false) | Err(_) => PartState::Untrusted,
    };
    let file = path.display().to_string();
    for server in config.servers.iter().filter(|server| server.by.file == file) {
        let place = format!("{name}:{}", server.by.line);
        report.add(state, &place, format!("the MCP server {}", server.in_words()));
    }
    for warning in config.warnings.iter().filter(|warning| warning.origin.file == file) {
        let place = format!("{name}:{}", warning.origin.line);
        report.ignored(&place, format!("`{}` {}", warning.key, warning.text));
    }
}

fn plugin(report: &mut ProjectReport<'_>) {
    let name = ".claude-plugin/plugin.json";
    if let Some(file) = json(report, name) {
        let plugin = file.get("name").and_then(Value::as_str).into_iter().collect::<Vec<_>>();
        report.ignored(
            name,
            format!("agentd uses a plugin where --plugin-dir names it{}", listed(&plugin)),
        );
    }
    let name = ".claude-plugin/marketplace.json";
    if report.project.join(name).exists() {
        report.ignored(name, "agentd installs no plugins; --plugin-dir names a local one");
    }
}

/// A JSON file that agentd does not use; one that cannot be read is named as such.
fn json(report: &mut ProjectReport<'_>, name: &str) -> Option<Value> {
    match prompts::read_text(&report.project.join(name), LARGEST) {
        Ok(None) => None,
        Ok(Some(text)) => {
            let read = serde_json::from_str(text.trim_start_matches('\u{feff}'));
            if let Err(error) = &read {
                report.ignored(name, format!("it is not JSON: {error}"));
            }
            read.ok()
        }
        Err(why) => {
            report.ignored(name, why);
            None
        }
    }
}

fn listed(names: &[&str]) -> String {
    let shown: Vec<String> = names.iter().take(NAMED).map(|name| line(name, 40)).collect();
    match names.len() {
        0 => String::new(),
        count if count > NAMED => format!(": {} and {} more", shown.join(", "), count - NAMED),
        _ => format!(": {}", shown.join(", ")),
    }
}

/// The names in a directory, in their order; none where there is no such directory.
fn names_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
