//! Commands as people and agents write them, under the rules that `agentd init` writes: few that ran without
//! a question before denials by three answers are asked about now, none is newly allowed.

use super::bench::{Outcome, command, outcome, rules};
use protocol::judgement::PermissionMode;

const COMMANDS: &str = include_str!("corpus/commands.txt");

/// Rules of `config/init.toml`, which `syntax.rs` compares with it.
const ALLOW: &[&str] = &["bash:cargo *", "bash:rg *"];
const DENY: &[&str] = &["bash:sudo *", "bash:rm -rf /*"];

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
        let text = parts.next().unwrap().replace('␤', "\n");
        for (judge, before) in judges.iter().zip(before) {
            let now = match outcome(judge, &command(&text)) {
                Outcome::Allowed | Outcome::AllowedByMode => "allowed",
                Outcome::Asked => "asked",
                Outcome::Denied => "denied",
                Outcome::AllowedAsQuery
                | Outcome::RefusedByMode
                | Outcome::NobodyToAsk
                | Outcome::Unjudgeable => "refused",
            };
            match (before, now) {
                ("allowed", "asked") => asked.push(row),
                ("denied", "asked") => {}
                _ => assert_eq!(now, before, "{text}"),
            }
        }
    }
    assert!(asked.len() * 100 <= rows.len() * 3, "{} of {}: {asked:#?}", asked.len(), rows.len());
}
