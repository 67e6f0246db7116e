//! Rules and cases in a line each, for the tests of this crate.
#![allow(dead_code, reason = "each test program uses its part")]

use approval::SessionRules;
use protocol::call::{Call, CallOrigin, ProbeReport, ProbedPath};
use protocol::ids::{CallId, SessionId};
use protocol::judgement::{
    Audience, Basis, EffectReach, JudgedCall, PermissionMode, Rule, RuleEffect, RuleSet, ToolKind,
    Verdict,
};
use std::process::{Command, Stdio};

/// What a verdict comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Allowed,
    AllowedByMode,
    AllowedAsQuery,
    Asked,
    Denied,
    RefusedByMode,
    NobodyToAsk,
    Unjudgeable,
}

pub const PROJECT: &str = "/home/me/project";

pub fn rule(effect: RuleEffect, text: &str, line: u32) -> Rule {
    Rule { effect, text: text.into(), file: "config.toml".into(), line }
}

pub fn rule_set(mode: PermissionMode, allow: &[&str], ask: &[&str], deny: &[&str]) -> RuleSet {
    let of = |effect, texts: &[&str]| -> Vec<Rule> {
        texts.iter().zip(1..).map(|(text, line)| rule(effect, text, line)).collect()
    };
    let mut rules = of(RuleEffect::Deny, deny);
    rules.extend(of(RuleEffect::Ask, ask));
    rules.extend(of(RuleEffect::Allow, allow));
    RuleSet { rules, mode, audience: Audience::Person, project: PROJECT.into() }
}

pub fn rules(mode: PermissionMode, allow: &[&str], ask: &[&str], deny: &[&str]) -> SessionRules {
    SessionRules::new(&rule_set(mode, allow, ask, deny)).unwrap()
}

fn case(tool: &str, kind: ToolKind) -> JudgedCall {
    JudgedCall {
        call: Call {
            id: CallId { session: SessionId("0123456789ab".into()), number: 1 },
            origin: CallOrigin::model("toolu_1"),
            tool: tool.into(),
            input: "{}".into(),
        },
        kind,
        command: None,
        page: None,
        probe: None,
        confinement: "may write: this project; network: off".into(),
        extra_rights: Vec::new(),
        configured: None,
        tampered: Box::default(),
        asked: None,
        typed_by: None,
        reach: EffectReach::Unknown,
    }
}

pub fn command(text: &str) -> JudgedCall {
    JudgedCall { command: Some(text.into()), ..case("bash", ToolKind::Mutation) }
}

/// A call on files; a path that ends in `/` is a directory, one outside [`PROJECT`] out of scope.
pub fn on_paths(tool: &str, paths: &[&str]) -> JudgedCall {
    let kind = if matches!(tool, "write" | "edit" | "multi_edit" | "apply_patch" | "delete") {
        ToolKind::Mutation
    } else {
        ToolKind::Query
    };
    let paths = paths
        .iter()
        .map(|path| ProbedPath {
            named: (*path).into(),
            real: if path.len() > 1 { path.trim_end_matches('/').into() } else { (*path).into() },
            in_scope: path.starts_with(PROJECT),
            digest: (!path.ends_with('/')).then(|| "d".repeat(64)),
        })
        .collect();
    JudgedCall { probe: Some(ProbeReport { paths, diff: String::new() }), ..case(tool, kind) }
}

pub fn unprobed(tool: &str) -> JudgedCall {
    JudgedCall { probe: None, ..on_paths(tool, &[]) }
}

pub fn outcome(rules: &SessionRules, case: &JudgedCall) -> Outcome {
    match rules.judge(case) {
        Verdict::Allow(Basis::Rule(_) | Basis::Rights(_)) => Outcome::Allowed,
        Verdict::Allow(Basis::Mode(_) | Basis::Opaque(_) | Basis::Sandboxed(_)) => {
            Outcome::AllowedByMode
        }
        Verdict::Allow(Basis::Query) => Outcome::AllowedAsQuery,
        Verdict::Ask(_) => Outcome::Asked,
        Verdict::Deny(Basis::Rule(_), _) => Outcome::Denied,
        Verdict::Deny(Basis::Mode(_), _) => Outcome::RefusedByMode,
        Verdict::Deny(Basis::NobodyToAsk(_), _) => Outcome::NobodyToAsk,
        Verdict::Deny(Basis::Unjudgeable(_), _) => Outcome::Unjudgeable,
        other @ (Verdict::Allow(_) | Verdict::Deny(..)) => {
            panic!("not a verdict of rules: {other:?}")
        }
    }
}

/// True if a denial notices this command: it is denied, or a person is asked.
pub fn is_noticed(rules: &SessionRules, text: &str) -> bool {
    matches!(outcome(rules, &command(text)), Outcome::Denied | Outcome::Asked)
}

/// Whether bash removes the file `f` with this script, in a directory that holds nothing else.
pub fn removes_f(script: &str) -> bool {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("f"), "").unwrap();
    let mut bash = Command::new("bash");
    bash.args(["-c", script]).current_dir(dir.path()).env_clear();
    bash.env("PATH", "/usr/bin:/bin").env("SHELL", "/bin/bash").stdin(Stdio::null());
    let ran = bash.stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(ran.is_ok(), "this test needs bash");
    !dir.path().join("f").exists()
}
