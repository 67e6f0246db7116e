//! The tools and rights that rules can name. Each tool declares its rules itself, in the crate `tools`.

use protocol::did_you_mean;
use protocol::judgement::{ExtraRight, RuleEffect, ToolKind};
use protocol::mcp;
use tool_specs::{Inherit, rule_targets};
pub(crate) use tool_specs::{MatchedBy, RuleDepth, RuleTarget};

/// A right, which no rule of a tool covers.
const fn right_target(name: &'static str, matched_by: MatchedBy) -> RuleTarget {
    RuleTarget { name, kind: ToolKind::Mutation, matched_by, inherits: &[] }
}

/// The rules that apply to a tool or right.
pub(crate) trait TargetRules {
    /// The tools whose rules apply to a call: the tool itself and those that it inherits from.
    fn applied_rules(&'static self, effect: RuleEffect) -> impl Iterator<Item = AppliedRules>;

    /// The depth of a rule of this effect for this tool, over all tools that it applies to.
    fn depth(&self, effect: RuleEffect) -> RuleDepth;
}

impl TargetRules for RuleTarget {
    fn applied_rules(&'static self, effect: RuleEffect) -> impl Iterator<Item = AppliedRules> {
        let mut by = vec![AppliedRules { tool: self.name, depth: RuleDepth::Below }];
        let mut known = vec![self];
        let mut at = 0;
        while let (Some(of), Some(&AppliedRules { depth: before, .. })) =
            (known.get(at), by.get(at))
        {
            for like in of.inherits {
                let far = match (like.inherit, effect) {
                    (Inherit::DenyAndAsk | Inherit::DenyAndAskNamed, RuleEffect::Allow) => continue,
                    (Inherit::All | Inherit::DenyAndAsk, _) => before,
                    (Inherit::DenyAndAskNamed, RuleEffect::Deny | RuleEffect::Ask) => {
                        RuleDepth::Named
                    }
                };
                if let Some(found) = find(like.tool) {
                    known.push(found);
                    by.push(AppliedRules { tool: like.tool, depth: far });
                }
            }
            at += 1;
        }
        by.into_iter()
    }

    fn depth(&self, effect: RuleEffect) -> RuleDepth {
        let below = rule_targets().iter().chain(RIGHTS).any(|known| {
            known.matched_by == MatchedBy::Path(RuleDepth::Below)
                && known
                    .applied_rules(effect)
                    .any(|by| by.tool == self.name && by.depth == RuleDepth::Below)
        });
        if below { RuleDepth::Below } else { RuleDepth::Named }
    }
}

/// A tool whose rules hold for a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AppliedRules {
    /// Its name.
    pub tool: &'static str,
    /// How far these rules apply below the path that a call names, if the call itself reaches below it.
    pub depth: RuleDepth,
}

/// Rights beyond a session's that one call may ask for. They are granted by their own names alone:
/// no rule for a tool and no mode covers them.
pub(crate) const RIGHTS: &[RuleTarget] = &[
    right_target("network", MatchedBy::Command),
    right_target("git-admin", MatchedBy::Command),
    right_target("git-sign", MatchedBy::Command),
    right_target("directory", MatchedBy::Path(RuleDepth::Below)),
    right_target("host", MatchedBy::Host),
];

/// The right that is asked for, as rules name it.
pub(crate) fn right(widening: &ExtraRight) -> &'static str {
    match widening {
        // A rule for the whole network also grants single hosts.
        ExtraRight::Network => "network",
        ExtraRight::Hosts(_) => "host",
        ExtraRight::GitAdmin => "git-admin",
        ExtraRight::GitSign => "git-sign",
        ExtraRight::Directory(_) => "directory",
    }
}

/// All tools and rights.
fn all() -> impl Iterator<Item = &'static RuleTarget> {
    rule_targets().iter().chain(RIGHTS)
}

/// The tool or right of that name. Case does not matter: other agents write `Bash(cargo:*)`.
pub(crate) fn find(name: &str) -> Option<&'static RuleTarget> {
    let name = if name.starts_with(mcp::PREFIX) { mcp::CALL } else { name };
    all().find(|known| known.name.eq_ignore_ascii_case(name))
}

/// The tool of that name; rights do not count.
pub(crate) fn tool(name: &str) -> Option<&'static RuleTarget> {
    rule_targets().iter().find(|tool| tool.name.eq_ignore_ascii_case(name))
}

/// The tool or right that a mistyped name is nearest to.
pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    did_you_mean::nearest(name, all().map(|known| known.name)).first().copied()
}
