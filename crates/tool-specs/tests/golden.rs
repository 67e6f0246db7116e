//! The contract of every tool, compared with the one on record: names, rules, description and schema, as
//! models, people and rules see them.
//!
//! A tool that changes, a new one and one that is gone all fail here, so that a reviewer sees each change.
//! After a change that is meant: `UPDATE_GOLDEN=1 cargo test -p tool-specs --test golden`, and look at the
//! difference.

#![allow(clippy::unwrap_used)]

use std::fmt::Write;
use std::fs;
use tool_specs::{ToolDeclaration, specs};

const RECORD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/contract.golden");

fn section(tool: &ToolDeclaration) -> String {
    let mut text = format!("## {}\n", tool.name);
    let mut line = |name: &str, value: String| {
        if !value.is_empty() {
            writeln!(text, "{name}: {value}").unwrap();
        }
    };
    line("called by", format!("{:?}", tool.caller));
    line("kind", format!("{:?}, judged as {:?}", tool.kind, tool.judged_as()));
    line("runs", format!("as {} in {}", tool.profile.name(), tool.runner.executable()));
    line("needs", tool.program.unwrap_or_default().to_owned());
    let traits = [(tool.requires_read, "files as read"), (tool.cacheable, "cacheable")];
    let traits = traits.iter().filter(|(is, _)| *is).map(|(_, name)| *name).collect::<Vec<_>>();
    line("condition", traits.join(", "));
    line("rules match", format!("{:?}", tool.matched_by));
    for of in tool.inherits {
        line("rules of", format!("{} ({:?})", of.tool, of.inherit));
    }
    for alias in tool.aliases {
        line("alias", format!("{} {}", alias.name, alias.defaults));
    }
    line("found by", tool.found_by.unwrap_or_default().to_owned());
    line("description", tool.description.to_owned());
    line("limits", tool.limits.to_owned());
    line("example", tool.example.to_owned());
    line("schema", serde_json::to_string_pretty(&(tool.schema)()).unwrap());
    text
}

#[test]
fn every_contract_is_as_on_record() {
    let found = specs().iter().map(section).collect::<Vec<_>>().join("\n");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(RECORD, &found).unwrap();
    }
    let recorded = fs::read_to_string(RECORD).unwrap_or_default();
    let (old, new) = (recorded.split("\n## "), found.split("\n## "));
    for (old, new) in old.zip(new) {
        assert_eq!(old, new, "a contract differs; if it is meant, see the head of this file");
    }
    assert_eq!(recorded, found, "the list of tools differs");
}
