//! `agentd mcp import`: servers of Claude Code and Codex, shown, and added to the person's file if asked.

use super::{not_edited, own_file};
use crate::cli::OtherAgent;
use crate::cli_error::CliError;
use crate::cli_exit::CliExit;
use crate::context::{CliContext, real_dir};
use crate::output::print;
use config::secrets::Redactor;
use config::{FoundServer, NewServer, add_servers, claude_servers, codex_servers, server_line};
use protocol::hidden::on_screen;
use std::io;
use std::path::{Path, PathBuf};

/// Use of the flag `--yes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ImportAct {
    Show,
    Add,
}

pub(super) fn main(
    project: &Path,
    from: Option<OtherAgent>,
    names: &[String],
    act: ImportAct,
) -> Result<CliExit, CliError> {
    let project = real_dir(project, "the project directory")?;
    let context = CliContext::of_process()?;
    let own = own_file(&context)?;
    let (mut found, mut looked) = (Vec::new(), Vec::new());
    for agent in [OtherAgent::Claude, OtherAgent::Codex] {
        if from.is_none_or(|from| from == agent) {
            let file = file_of(&context, agent)?;
            found.extend(servers(&file, agent, &project)?);
            looked.push(file.display().to_string());
        }
    }
    if let Some(unknown) = names.iter().find(|name| !found.iter().any(|one| one.name == **name)) {
        let known: Vec<&str> = found.iter().map(|one| one.name.as_str()).collect();
        let files = looked.join(" and ");
        let hint = format!(
            "there are: {}",
            if known.is_empty() { "none".into() } else { known.join(", ") }
        );
        return Err(
            CliError::user(format!("no server {unknown:?} in {files}")).hint(on_screen(&hint))
        );
    }
    found.retain(|one| names.is_empty() || names.contains(&one.name));
    if found.is_empty() {
        eprintln!("agentd: there is no server in {}", looked.join(" and "));
        return Ok(CliExit::Done);
    }
    let SortedServers { new, left_out, notes } = sorted(found, |name| {
        let line = server_line(&own, name).map_err(|error| not_edited(&error))?;
        Ok(line.map(|line| format!("{}:{line}", own.display())))
    })?;
    let mut said = String::new();
    match act {
        ImportAct::Add => {
            let lines = add_servers(&own, &new).map_err(|error| not_edited(&error))?;
            for (server, line) in new.iter().zip(lines) {
                said.push_str(&format!("added {} to {}:{line}\n", server.name, own.display()));
            }
        }
        ImportAct::Show if new.is_empty() => {}
        ImportAct::Show => {
            let texts: Vec<String> = new.iter().map(NewServer::text).collect();
            said.push_str(&format!("{}\n", texts.join("\n")));
        }
    }
    for line in notes.iter().chain(&left_out) {
        said.push_str(&format!("{line}\n"));
    }
    print(&said);
    if !new.is_empty() {
        eprintln!(
            "agentd: they have no network until `hosts` in a table names the hosts they may reach"
        );
    }
    if act == ImportAct::Show && !new.is_empty() {
        eprintln!(
            "agentd: nothing is written; --yes adds {} to {}",
            count(new.len()),
            own.display()
        );
    }
    Ok(CliExit::Done)
}

fn count(servers: usize) -> String {
    if servers == 1 { "the server".to_owned() } else { format!("the {servers} servers") }
}

/// Where an agent has its servers.
fn file_of(context: &CliContext, agent: OtherAgent) -> Result<PathBuf, CliError> {
    let (variable, below_home, name) = match agent {
        OtherAgent::Claude => ("CLAUDE_CONFIG_DIR", "", ".claude.json"),
        OtherAgent::Codex => ("CODEX_HOME", ".codex", "config.toml"),
    };
    let home = || Some(context.environment.absolute("HOME")?.join(below_home));
    let dir = context.environment.absolute(variable).or_else(home);
    Ok(dir.ok_or_else(|| CliError::config("HOME is not set to an absolute path"))?.join(name))
}

/// The servers of a file; none where there is no file.
fn servers(file: &Path, agent: OtherAgent, project: &Path) -> Result<Vec<FoundServer>, CliError> {
    let name = file.display().to_string();
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(CliError::config(format!("{name} cannot be read: {error}"))),
    };
    let known = Redactor::new().map_err(|error| CliError::internal(error.to_string()))?;
    Ok(match agent {
        OtherAgent::Claude => claude_servers((&name, &text), project, &known)?,
        OtherAgent::Codex => codex_servers((&name, &text), &known)?,
    })
}

/// The servers that were found.
#[derive(Debug, Default)]
struct SortedServers {
    /// Those to add.
    new: Vec<NewServer>,
    /// A sentence with the reason for each other.
    left_out: Vec<String>,
    /// What is not as it was in those to add.
    notes: Vec<String>,
}

/// `place` says where the person's file has a server of this name.
fn sorted(
    found: Vec<FoundServer>,
    place: impl Fn(&str) -> Result<Option<String>, CliError>,
) -> Result<SortedServers, CliError> {
    let mut sorted = SortedServers::default();
    for FoundServer { name, place: from, server, notes: own } in found {
        let taken = place(&name)?;
        let is_double = sorted.new.iter().any(|known| known.name == name);
        let why = match (server, taken) {
            (Err(why), _) => why,
            (Ok(_), Some(place)) => format!("{place} has a server of this name"),
            (Ok(_), None) if is_double => "a server of this name comes before it".to_owned(),
            (Ok(server), None) => {
                sorted.notes.extend(own.into_iter().map(|note| format!("{name}: {note}")));
                sorted.new.push(server);
                continue;
            }
        };
        sorted.left_out.push(format!("{name} of {from} is not imported: {why}"));
    }
    Ok(sorted)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_name_is_added_once_and_not_over_another() {
        let text = r#"{"mcpServers": {"a": {"command": "x"}, "own": {"command": "x"}, "far": {"url": "u"}},
            "projects": {"/p": {"mcpServers": {"a": {"command": "first", "cwd": "/"}}}}}"#;
        let found =
            claude_servers(("f", text), Path::new("/p"), &Redactor::new().unwrap()).unwrap();
        let place = |name: &str| Ok((name == "own").then(|| "mine:3".to_owned()));
        let SortedServers { new, left_out, notes } = sorted(found, place).unwrap();
        assert_eq!((new.len(), new[0].place.words()), (1, &["first".to_owned()][..]));
        assert!(notes.len() == 1 && notes[0].starts_with("a: `cwd`"), "{notes:?}");
        let words = ["comes before it", "URL", "mine:3 has a server"];
        assert_eq!(left_out.len(), words.len(), "{left_out:?}");
        for (line, words) in left_out.iter().zip(words) {
            assert!(line.contains(words), "{line}");
        }
    }
}
