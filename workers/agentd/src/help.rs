//! `agentd help`: the topics, each one Markdown file of `help/`, and the help of a command.
//!
//! A topic is printed to the terminal (through a pager if it is longer than the screen) and is part
//! of the manual pages (`agentd man TOPIC`). `markdown` parses it, `terminal` and `man` render it.

pub(crate) mod man;
pub(crate) mod markdown;
mod terminal;

use crate::cli::Cli;
use crate::cli_error::CliError;
use crate::cli_exit::CliExit;
use crate::output::print_styled;
use clap::CommandFactory;
use client::{Colour, Terminal};
use protocol::did_you_mean::nearest;
use std::io::IsTerminal;

/// A topic of `agentd help`.
#[derive(Debug)]
pub(crate) struct Topic {
    pub(crate) name: &'static str,
    /// Markdown.
    pub(crate) text: &'static str,
}

/// The rules of `rules`, as a configuration file that the tests load.
const EXAMPLES: &str = include_str!("../../../config/examples.toml");

/// All topics, in the order in which they are listed.
pub(crate) const TOPICS: [Topic; 19] = [
    Topic { name: "sessions", text: include_str!("../help/sessions.md") },
    Topic { name: "scripts", text: include_str!("../help/scripts.md") },
    Topic { name: "config", text: include_str!("../help/config.md") },
    Topic { name: "rules", text: include_str!("../help/rules.md") },
    Topic { name: "sandbox", text: include_str!("../help/sandbox.md") },
    Topic { name: "network", text: include_str!("../help/network.md") },
    Topic { name: "tools", text: include_str!("../help/tools.md") },
    Topic { name: "images", text: include_str!("../help/images.md") },
    Topic { name: "commands", text: include_str!("../help/commands.md") },
    Topic { name: "agents", text: include_str!("../help/agents.md") },
    Topic { name: "context", text: include_str!("../help/context.md") },
    Topic { name: "undo", text: include_str!("../help/undo.md") },
    Topic { name: "hooks", text: include_str!("../help/hooks.md") },
    Topic { name: "mcp", text: include_str!("../help/mcp.md") },
    Topic { name: "editors", text: include_str!("../help/editors.md") },
    Topic { name: "sdk", text: include_str!("../help/sdk.md") },
    Topic { name: "fleet", text: include_str!("../help/fleet.md") },
    Topic { name: "security", text: include_str!("../help/security.md") },
    Topic { name: "exit-codes", text: include_str!("../help/exit-codes.md") },
];

/// `agentd help`, `agentd help TOPIC` and `agentd help COMMAND…`.
pub(crate) fn main(words: &[String]) -> Result<CliExit, CliError> {
    if let [name] = words
        && let Some(topic) = find(name)
    {
        show(topic);
        return Ok(CliExit::Done);
    }
    if !is_command(words) {
        return Err(unknown(&words.join(" ")));
    }
    let own = ["agentd".to_owned(), "--help".to_owned()];
    let arguments = own[..1].iter().chain(words).chain(&own[1..]);
    if let Err(help) = Cli::read(arguments) {
        // A closed pipe is not an error.
        let _ = help.print();
    }
    Ok(CliExit::Done)
}

/// Words that people look for, and the topic that has them.
const SYNONYMS: [(&str, &str); 6] = [
    ("skills", "commands"),
    ("plugins", "commands"),
    ("permissions", "rules"),
    ("models", "config"),
    ("worktrees", "agents"),
    ("keys", "sessions"),
];

/// The topic of this name, or of a synonym.
pub(crate) fn find(name: &str) -> Option<&'static Topic> {
    let name = SYNONYMS.iter().find(|(word, _)| *word == name).map_or(name, |(_, topic)| topic);
    TOPICS.iter().find(|topic| topic.name == name)
}

/// The topic as Markdown: a line such as `{keys net. web.}` is the table of the keys that begin so. `rules` ends with
/// the examples.
pub(crate) fn markdown_of(topic: &Topic) -> String {
    let mut page = String::new();
    for line in topic.text.split_inclusive('\n') {
        match line.trim_end().strip_prefix("{keys ").and_then(|rest| rest.strip_suffix('}')) {
            Some(begins) => {
                page.push_str(&config::keys_table(&begins.split(' ').collect::<Vec<_>>()))
            }
            None => page.push_str(line),
        }
    }
    if topic.name == "rules" {
        page.push_str(&format!("\n```toml\n{EXAMPLES}```\n"));
    }
    page
}

/// The names of all topics, for messages.
pub(crate) fn names() -> String {
    TOPICS.map(|topic| topic.name).join(", ")
}

/// Prints a topic, through the pager if it is longer than the terminal.
pub(crate) fn show(topic: &Topic) {
    let is_terminal = std::io::stdout().is_terminal();
    let terminal = if is_terminal { Terminal::Yes } else { Terminal::No };
    let colour = Colour::decide(terminal, |name| std::env::var(name).ok());
    let text = terminal::render(&markdown::parse(&markdown_of(topic)), colour);
    if !is_terminal || !client::page(&text, client::terminal_size().1) {
        print_styled(&text);
    }
}

/// True if the words name a command, or a command of a command.
fn is_command(words: &[String]) -> bool {
    let mut command = Cli::command();
    words.iter().all(|word| match command.find_subcommand(word).cloned() {
        Some(inner) => {
            command = inner;
            true
        }
        None => false,
    })
}

fn unknown(name: &str) -> CliError {
    let program = Cli::command();
    let commands = program.get_subcommands().map(clap::Command::get_name);
    let known = TOPICS.iter().map(|topic| topic.name).chain(commands);
    let meant = match nearest(name, known).first() {
        Some(nearest) => format!("; did you mean `agentd help {nearest}`?"),
        None => String::new(),
    };
    CliError::user(format!("no help topic and no command is named {name:?}{meant}"))
        .hint(format!("the topics are {}; `agentd --help` lists the commands", names()))
}

#[cfg(test)]
mod tests;
