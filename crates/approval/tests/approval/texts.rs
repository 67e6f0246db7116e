//! Scripts as data: each of `texts/denied.txt` removes the file `f` when bash runs it, and must be denied or
//! asked about where a rule denies `rm *`; each of `texts/free.txt` names the program and leaves the file where
//! it is, so it is not denied, and few are asked about.
//!
//! One script a line; `␤` stands for a line end, and lines that begin with `## ` are headings.

use super::bench::{Outcome, command, is_noticed, outcome, removes_f, rules};
use protocol::judgement::PermissionMode;

const DENIED: &str = include_str!("texts/denied.txt");
const FREE: &str = include_str!("texts/free.txt");

fn scripts(texts: &str) -> Vec<String> {
    let rows = texts.lines().filter(|row| !row.is_empty() && !row.starts_with("## "));
    rows.map(|row| row.replace('␤', "\n")).collect()
}

#[test]
fn what_starts_a_denied_program_is_denied_or_asked_about() {
    let auto = rules(PermissionMode::Auto, &[], &[], &["bash:rm *"]);
    let allowing = rules(PermissionMode::Ask, &["bash:*"], &[], &["bash:rm *"]);
    let rows = scripts(DENIED);
    assert!(rows.len() > 200);
    for row in rows {
        assert!(removes_f(&row), "bash does not remove the file: {row:?}");
        for judge in [&auto, &allowing] {
            assert!(is_noticed(judge, &row), "{row:?}");
        }
    }
}

#[test]
fn what_only_names_a_denied_program_is_not_denied() {
    let judge = rules(PermissionMode::Auto, &[], &[], &["bash:rm *"]);
    let rows = scripts(FREE);
    assert!(rows.len() > 100);
    let mut asked = Vec::new();
    for row in &rows {
        assert!(!removes_f(row), "bash removes the file: {row:?}");
        let found = outcome(&judge, &command(row));
        assert!(matches!(found, Outcome::AllowedByMode | Outcome::Asked), "{found:?}: {row:?}");
        asked.extend((found == Outcome::Asked).then_some(row));
    }
    assert!(asked.len() * 100 <= rows.len() * 8, "{} of {}: {asked:#?}", asked.len(), rows.len());
}
