//! Commands as people and agents write them, under the rules that `agentd init` writes: few that ran without
//! a question before denials by three answers are asked about now, none is newly allowed. And commands that
//! the rules of a careful person are written for, in plain, wrapped and compound spellings.

use super::bench::{Outcome, command, outcome, rules};
use approval::SessionRules;
use protocol::judgement::PermissionMode;
use std::collections::BTreeMap;

const COMMANDS: &str = include_str!("corpus/commands.txt");
const GUARDED: &str = include_str!("corpus/guarded.txt");

/// Rules of `config/init.toml`, which `syntax.rs` compares with it.
const ALLOW: &[&str] = &["bash:cargo *", "bash:rg *"];
const DENY: &[&str] = &["bash:sudo *", "bash:rm -rf /*"];

/// Rules of a careful person.
const CAREFUL_DENY: &[&str] = &[
    "bash:sudo *",
    "bash:rm -rf *",
    "bash:git push --force *",
    "bash:npm publish *",
    "bash:kubectl delete *",
    "bash:terraform apply *",
    "bash:chmod 777 *",
    "bash:chmod -R 777 *",
];
const CAREFUL_ASK: &[&str] = &["bash:git push *", "bash:docker run *", "bash:ssh *"];

/// The text of a row behind its verdicts.
fn text_of(row: &str) -> String {
    row.replace('␤', "\n")
}

#[test]
fn few_real_commands_are_newly_asked_about_and_none_is_newly_allowed() {
    let rows: Vec<_> = COMMANDS.lines().filter(|row| !row.starts_with("## ")).collect();
    assert!(rows.len() >= 400, "{}", rows.len());
    let modes = [PermissionMode::Auto, PermissionMode::Ask];
    let judges = modes.map(|mode| rules(mode, ALLOW, &[], DENY));
    let mut asked = Vec::new();
    for row in &rows {
        let mut parts = row.splitn(3, ' ');
        let before = [parts.next().unwrap(), parts.next().unwrap()];
        let text = text_of(parts.next().unwrap());
        for (judge, before) in judges.iter().zip(before) {
            let now = verdict(judge, &text);
            match (before, now) {
                ("allowed", "asked") => asked.push(row),
                ("denied", "asked") => {}
                _ => assert_eq!(now, before, "{text}"),
            }
        }
    }
    assert!(asked.len() * 100 <= rows.len() * 3, "{} of {}: {asked:#?}", asked.len(), rows.len());
}

#[test]
fn rules_of_a_careful_person_hold_for_the_commands_that_they_are_written_for() {
    let mode = PermissionMode::Auto;
    let (careful, free) = (rules(mode, &[], CAREFUL_ASK, CAREFUL_DENY), rules(mode, &[], &[], &[]));
    let rows = GUARDED.lines().filter(|row| !row.starts_with("## "));
    let mut counts = BTreeMap::new();
    for row in rows {
        let (wanted, text) = row.split_once(' ').unwrap();
        let text = text_of(text);
        assert_eq!(verdict(&careful, &text), wanted, "{text}");
        // Without the rules nothing is asked.
        assert_eq!(verdict(&free, &text), "allowed", "{text}");
        *counts.entry(wanted).or_insert(0) += 1;
    }
    assert!(
        counts["denied"] >= 20 && counts["asked"] >= 10 && counts["allowed"] >= 10,
        "{counts:?}"
    );
}

fn verdict(judge: &SessionRules, text: &str) -> &'static str {
    match outcome(judge, &command(text)) {
        Outcome::Allowed | Outcome::AllowedByMode => "allowed",
        Outcome::Asked => "asked",
        Outcome::Denied => "denied",
        Outcome::AllowedAsQuery
        | Outcome::RefusedByMode
        | Outcome::NobodyToAsk
        | Outcome::Unjudgeable => "refused",
    }
}
