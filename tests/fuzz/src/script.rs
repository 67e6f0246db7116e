//! Properties for any text that a model may propose as a command. Called by the fuzz target, and by
//! `crates/approval/tests/approval/replay.rs` with the inputs that it found.

use approval::{SessionRules, programs};
use protocol::call::{Call, CallOrigin};
use protocol::ids::{CallId, SessionId};
use protocol::judgement::{
    Audience, Basis, EffectReach, JudgedCall, PermissionMode, Rule, RuleEffect, RuleSet, ToolKind,
    Verdict,
};
use std::sync::LazyLock;

static RULES: LazyLock<SessionRules> = LazyLock::new(|| {
    let rule =
        |effect, text: &str| Rule { effect, text: text.into(), file: "flag".into(), line: 0 };
    let rules = [
        rule(RuleEffect::Deny, "bash:sudo *"),
        rule(RuleEffect::Allow, "bash:cargo *"),
        rule(RuleEffect::Allow, "bash:git *"),
        rule(RuleEffect::Allow, "bash:find *"),
    ];
    let (rules, project) = (rules.into(), "/project".into());
    let set =
        RuleSet { rules, mode: PermissionMode::Ask, audience: Audience::NonInteractive, project };
    SessionRules::new(&set).expect("these are rules")
});

/// A text as a command: judged without a panic and the same each time. An allowed one was parsed
/// whole. It is still allowed with a harmless command behind it, and denied with a denied one.
pub fn script(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let verdict = judged(text);
    assert_eq!(judged(text), verdict);
    if !matches!(verdict, Verdict::Allow(Basis::Rule(_))) {
        return;
    }
    assert!(!programs(text).expect("an allowed command was parsed").is_empty());
    if text.len() < 1_000 {
        let behind = |more: &str| judged(&format!("{text}\n{more}"));
        assert!(matches!(behind("sudo x"), Verdict::Deny(Basis::Rule(_), _)));
        assert!(matches!(behind("rm x"), Verdict::Deny(Basis::NobodyToAsk(_), _)));
    }
}

fn judged(text: &str) -> Verdict {
    let id = CallId { session: SessionId("0123456789ab".into()), number: 1 };
    let (tool, input) = ("bash".into(), "{}".into());
    RULES.judge(&JudgedCall {
        call: Call { id, origin: CallOrigin::model("toolu_1"), tool, input },
        kind: ToolKind::Mutation,
        command: Some(text.into()),
        page: None,
        probe: None,
        confinement: String::new(),
        extra_rights: Vec::new(),
        configured: None,
        tampered: Box::default(),
        asked: None,
        typed_by: None,
        reach: EffectReach::Unknown,
    })
}
