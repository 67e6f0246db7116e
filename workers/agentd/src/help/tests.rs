//! That the help topics cover the program: each command, long flag, configuration key and exit code is
//! documented in exactly one topic.
//!
//! "Documented" means: the first cell of a table row has the name as a code span. A command is
//! written with the program's name (`agentd audit ls`), a flag with its dashes and optional value
//! (`--model MODEL`), a key with its table (`net.mode`), an exit code as its number. A flag of
//! several commands has one row.
#![allow(clippy::unwrap_used)]

use super::markdown::{PageBlock, PageSpan};
use super::*;
use std::collections::BTreeMap;

/// The code spans in the first cells of a topic's tables.
fn documented(topic: &Topic) -> Vec<String> {
    let mut names = Vec::new();
    for block in markdown::parse(&markdown_of(topic)) {
        let PageBlock::Table(table) = block else { continue };
        for span in table.rows.iter().filter_map(|row| row.first()).flatten() {
            if let PageSpan::Code(code) = span {
                let is_command = code.starts_with("agentd ");
                let name = if is_command { code } else { code.split(' ').next().unwrap() };
                names.push(name.to_owned());
            }
        }
    }
    names
}

/// Where each name is documented.
fn places() -> BTreeMap<String, Vec<&'static str>> {
    let mut places: BTreeMap<String, Vec<&'static str>> = BTreeMap::new();
    for topic in &TOPICS {
        for name in documented(topic) {
            places.entry(name).or_default().push(topic.name);
        }
    }
    places
}

/// Commands that only group others have no row: `agentd daemon`.
fn commands_and_flags(command: &clap::Command, path: &str, found: &mut Vec<String>) {
    for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
        found.extend(argument.get_long().map(|long| format!("--{long}")));
    }
    if command.get_subcommands().next().is_none() {
        found.push(path.to_owned());
    }
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        if inner.get_name() != "help" || path == "agentd" {
            commands_and_flags(inner, &format!("{path} {}", inner.get_name()), found);
        }
    }
}

fn rows() -> Vec<config::ConfigRow> {
    let dir = std::env::temp_dir().join("agentd-no-such-project");
    let sources = config::Sources {
        managed: dir.join("managed.toml"),
        user: None,
        project: dir.clone(),
        environment: config::Environment::default(),
        flags: Vec::new(),
        trust: config::Trust::Trusted,
        plugin_trust: config::TrustStore::at(dir.join("trust")),
        claude_rules: approval::claude_rule,
    };
    config::Config::load(&sources).unwrap().rows
}

#[track_caller]
fn assert_documented_once(names: impl IntoIterator<Item = String>) {
    let places = places();
    let nowhere = Vec::new();
    let mut wrong: Vec<String> = names
        .into_iter()
        .map(|name| (places.get(&name).unwrap_or(&nowhere), name))
        .filter(|(topics, _)| topics.len() != 1)
        .map(|(topics, name)| format!("{name} is documented in {topics:?}"))
        .collect();
    wrong.sort();
    wrong.dedup();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn each_command_and_long_flag_is_documented_once() {
    let mut found = Vec::new();
    let mut program = Cli::command();
    program.build();
    commands_and_flags(&program, "agentd", &mut found);
    assert!(found.len() > 50, "{found:?}");
    assert_documented_once(found);
}

#[test]
fn each_configuration_key_is_documented_once_with_its_default() {
    let rows = rows();
    assert!(rows.len() > 50, "{}", rows.len());
    assert_documented_once(rows.iter().map(|row| row.key.to_owned()));
    let all: Vec<Vec<Vec<PageSpan>>> = TOPICS
        .iter()
        .flat_map(|topic| markdown::parse(&markdown_of(topic)))
        .filter_map(|block| match block {
            PageBlock::Table(table) => Some(table.rows),
            PageBlock::Title(_)
            | PageBlock::Heading(_)
            | PageBlock::Paragraph(_)
            | PageBlock::Item(..)
            | PageBlock::Code(_) => None,
        })
        .flatten()
        .collect();
    for row in rows {
        // The built-in value means the vendor's default.
        if ["provider.model", "provider.base_url"].contains(&row.key) {
            continue;
        }
        let first = vec![PageSpan::Code(row.key.to_owned())];
        let cells = all.iter().find(|cells| cells[0] == first).unwrap();
        let default = row.value.trim_matches('"').replace("\\\\", "\\");
        let text = markdown::plain(&cells[1]);
        let says = text.contains(&format!("Default: `{default}`"));
        assert!(says, "the default of {} is {default}: {text}", row.key);
    }
}

#[test]
fn each_exit_code_is_documented_once() {
    assert_documented_once(CliExit::ALL.map(|exit| (exit as u8).to_string()));
}

#[test]
fn no_table_documents_what_the_program_does_not_have() {
    let mut found = Vec::new();
    let mut program = Cli::command();
    program.build();
    commands_and_flags(&program, "agentd", &mut found);
    found.extend(rows().into_iter().map(|row| row.key.to_owned()));
    for (name, topics) in places() {
        let is_key = name.contains('.') && !name.contains(['/', ' ', ':', '$']);
        if name.starts_with("--") || name.starts_with("agentd ") || is_key {
            assert!(found.contains(&name), "{name} of {topics:?} does not exist");
        }
    }
}

#[test]
fn the_help_of_the_program_fits_on_a_screen() {
    let help = Cli::read(["agentd", "--help"]).unwrap_err().to_string();
    assert!(help.lines().count() <= 60, "{} lines: {help}", help.lines().count());
    let wide: Vec<&str> = help.lines().filter(|line| line.chars().count() > 80).collect();
    assert!(wide.is_empty(), "{wide:#?}");
}

#[test]
fn the_help_of_a_command_is_the_long_one() {
    for words in [&["agentd", "attach", "--help"][..], &["agentd", "audit", "ls", "--help"]] {
        let help = Cli::read(words).unwrap_err();
        assert_eq!(help.kind(), clap::error::ErrorKind::DisplayHelp, "{help}");
    }
    let help = Cli::read(["agentd", "attach", "--help"]).unwrap_err().to_string();
    assert!(
        help.contains("--read-only") && help.contains("Cannot be set in a configuration"),
        "{help}"
    );
}

#[test]
fn topics_are_at_most_80_columns_wide() {
    for topic in &TOPICS {
        let text = terminal::render(&markdown::parse(&markdown_of(topic)), Colour::Off);
        assert!(text.lines().count() > 10, "{}", topic.name);
        for line in text.lines() {
            assert!(client::display_width(line) <= 80, "{}: {line}", topic.name);
        }
    }
}

#[test]
fn blocks_are_printed_with_bold_headings_and_hanging_indents() {
    let page = "# Title\n\nText with `code`.\n\n- one\n- two\n\n```sh\nls  -l\n```\n";
    let text = terminal::render(&markdown::parse(page), Colour::On);
    let want = "\u{1b}[1mTitle\u{1b}[0m\n\nText with `code`.\n\n- one\n- two\n\n    ls  -l\n";
    assert_eq!(text, want);
    let table = format!("| Key | Use |\n|---|---|\n| `a` | {} |\n", "word ".repeat(30));
    let text = terminal::render(&markdown::parse(&table), Colour::Off);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("  a  word") && lines[1].starts_with("     word"), "{text}");
}

#[test]
fn every_synonym_leads_to_a_topic() {
    for (word, topic) in SYNONYMS {
        assert_eq!(find(word).map(|found| found.name), Some(topic));
        assert!(!TOPICS.iter().any(|known| known.name == word), "{word} is a topic");
    }
}

#[test]
fn an_unknown_topic_names_the_nearest_and_all() {
    let error = main(&["undoo".to_owned()]).unwrap_err().to_string();
    assert!(error.contains("did you mean `agentd help undo`?"), "{error}");
    assert!(TOPICS.iter().all(|topic| error.contains(topic.name)), "{error}");
    let error = main(&["qqqq".to_owned()]).unwrap_err().to_string();
    assert!(!error.contains("did you mean"), "{error}");
}

#[test]
fn a_topic_is_a_manual_page_too() {
    let page = man::page(find("undo").unwrap());
    assert!(page.contains(".TH agentd-undo 7"), "{page}");
    assert!(page.contains(".SH UNDO") && page.contains("\\fB:undo\\fR"), "{page}");
}
