//! The tools and rights that rules can name, and the part of a call that their patterns match.

use protocol::judgement::{RuleEffect, ToolKind, Widening};

/// The part of a call that a tool's pattern is matched against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MatchedBy {
    /// The command.
    Command,
    /// The real paths that a call names.
    Path(Depth),
    /// The hosts that a call asks for.
    Host,
    /// The page of the web that a call asks for.
    Page,
    /// Nothing: only a rule for every call of the tool is possible.
    Nothing,
}

/// How far a call on a directory reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Only the named path.
    Named,
    /// To everything below it.
    Below,
}

/// One tool.
#[derive(Debug)]
pub(crate) struct RuleTarget {
    /// Its real name.
    pub name: &'static str,
    /// Query or mutation.
    pub kind: ToolKind,
    /// The part of a call that its pattern is matched against.
    pub matched_by: MatchedBy,
    /// Tools with the same effect under another name: rules that deny them also deny this tool.
    pub inherits: &'static [InheritedRules],
}

/// Another tool whose rules hold for a tool as well.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InheritedRules {
    /// Its real name.
    pub tool: &'static str,
    /// The inherited rules.
    pub inherit: Inherit,
}

/// Which rules of another tool hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inherit {
    /// All.
    All,
    /// Deny and ask rules, but no allow rules.
    DenyAndAsk,
    /// Deny and ask rules, only for the path that a call names and not for paths below it.
    DenyAndAskNamed,
}

const fn target(name: &'static str, kind: ToolKind, subject: MatchedBy) -> RuleTarget {
    RuleTarget { name, kind, matched_by: subject, inherits: &[] }
}

const fn inherit(tool: &'static str, share: Inherit) -> InheritedRules {
    InheritedRules { tool, inherit: share }
}

impl RuleTarget {
    const fn like(self, like: &'static [InheritedRules]) -> Self {
        Self { inherits: like, ..self }
    }

    /// The tools whose rules apply to a call: the tool itself and those that it inherits from.
    pub(crate) fn applied_rules(
        &'static self,
        effect: RuleEffect,
    ) -> impl Iterator<Item = AppliedRules> {
        let mut by = vec![AppliedRules { tool: self.name, depth: Depth::Below }];
        let mut known = vec![self];
        let mut at = 0;
        while let (Some(of), Some(&AppliedRules { depth: before, .. })) =
            (known.get(at), by.get(at))
        {
            for like in of.inherits {
                let far = match (like.inherit, effect) {
                    (Inherit::DenyAndAsk | Inherit::DenyAndAskNamed, RuleEffect::Allow) => continue,
                    (Inherit::All | Inherit::DenyAndAsk, _) => before,
                    (Inherit::DenyAndAskNamed, RuleEffect::Deny | RuleEffect::Ask) => Depth::Named,
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

    /// How far a rule of this effect for this tool reaches, over all tools that it holds for.
    pub(crate) fn depth(&self, effect: RuleEffect) -> Depth {
        let below = TOOLS.iter().chain(RIGHTS).any(|known| {
            known.matched_by == MatchedBy::Path(Depth::Below)
                && known
                    .applied_rules(effect)
                    .any(|by| by.tool == self.name && by.depth == Depth::Below)
        });
        if below { Depth::Below } else { Depth::Named }
    }
}

/// A tool whose rules hold for a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AppliedRules {
    /// Its name.
    pub tool: &'static str,
    /// Depth of these rules below the path that a call names, if the call itself reaches below it.
    pub depth: Depth,
}

/// These run the configured hooks after edits. The configuration allows them, unless a rule asks or
/// denies.
pub(crate) const VERIFY: &str = "verify";
const FORMAT: &str = "format";

/// All tools. A rule for any other tool is an error: it would protect nothing.
pub(crate) const TOOLS: &[RuleTarget] = &[
    target("read", ToolKind::Query, MatchedBy::Path(Depth::Named)),
    target("ls", ToolKind::Query, MatchedBy::Path(Depth::Named)),
    target("glob", ToolKind::Query, MatchedBy::Path(Depth::Below)),
    // A file that must not be read must not be searched, but the directory around it may be.
    target("grep", ToolKind::Query, MatchedBy::Path(Depth::Below))
        .like(&[inherit("read", Inherit::DenyAndAskNamed)]),
    // Each shows the text that the other would.
    target("summary", ToolKind::Query, MatchedBy::Path(Depth::Named))
        .like(&[inherit("read", Inherit::All)]),
    target("scan", ToolKind::Query, MatchedBy::Path(Depth::Below))
        .like(&[inherit("grep", Inherit::All)]),
    target("write", ToolKind::Mutation, MatchedBy::Path(Depth::Named)),
    target("edit", ToolKind::Mutation, MatchedBy::Path(Depth::Named)),
    target("multi_edit", ToolKind::Mutation, MatchedBy::Path(Depth::Named))
        .like(&[inherit("edit", Inherit::All)]),
    // A patch can do all of these, so it inherits their denials. No single one of their allow rules
    // is enough for it.
    target("apply_patch", ToolKind::Mutation, MatchedBy::Path(Depth::Named)).like(&[
        inherit("edit", Inherit::DenyAndAsk),
        inherit("write", Inherit::DenyAndAsk),
        inherit("delete", Inherit::DenyAndAsk),
    ]),
    target("rewrite", ToolKind::Mutation, MatchedBy::Path(Depth::Named))
        .like(&[inherit("edit", Inherit::All)]),
    // Who may write a file may not yet remove directories.
    target("delete", ToolKind::Mutation, MatchedBy::Path(Depth::Below))
        .like(&[inherit("write", Inherit::DenyAndAsk)]),
    target("undo_restore", ToolKind::Mutation, MatchedBy::Path(Depth::Named))
        .like(&[inherit("write", Inherit::All)]),
    target("bash", ToolKind::Mutation, MatchedBy::Command),
    target("run", ToolKind::Mutation, MatchedBy::Command).like(&[inherit("bash", Inherit::All)]),
    target("powershell", ToolKind::Mutation, MatchedBy::Command)
        .like(&[inherit("bash", Inherit::All)]),
    target(VERIFY, ToolKind::Mutation, MatchedBy::Command)
        .like(&[inherit("bash", Inherit::DenyAndAsk)]),
    target(FORMAT, ToolKind::Mutation, MatchedBy::Command)
        .like(&[inherit("bash", Inherit::DenyAndAsk)]),
    target("git_status", ToolKind::Query, MatchedBy::Command)
        .like(&[inherit("bash", Inherit::All)]),
    target("git_diff", ToolKind::Query, MatchedBy::Command).like(&[inherit("bash", Inherit::All)]),
    target("git_log", ToolKind::Query, MatchedBy::Command).like(&[inherit("bash", Inherit::All)]),
    target("git_show", ToolKind::Query, MatchedBy::Command).like(&[inherit("bash", Inherit::All)]),
    // A denied host must not be read either, even if another rule grants the network.
    target("web_search", ToolKind::Query, MatchedBy::Page)
        .like(&[inherit("host", Inherit::DenyAndAsk)]),
    target("web_fetch", ToolKind::Query, MatchedBy::Page)
        .like(&[inherit("host", Inherit::DenyAndAsk)]),
    target("history_search", ToolKind::Query, MatchedBy::Nothing),
    target("memory_search", ToolKind::Query, MatchedBy::Nothing),
    target("memory_add", ToolKind::Query, MatchedBy::Nothing),
    target("memory_remove", ToolKind::Query, MatchedBy::Nothing),
    target("skill_list", ToolKind::Query, MatchedBy::Nothing),
    target("skill_activate", ToolKind::Query, MatchedBy::Nothing),
    target("undo_list", ToolKind::Query, MatchedBy::Nothing),
    target("checklist_create", ToolKind::Query, MatchedBy::Nothing),
    target("checklist_update", ToolKind::Query, MatchedBy::Nothing),
    target("git_add", ToolKind::Mutation, MatchedBy::Command)
        .like(&[inherit("bash", Inherit::All)]),
    target("git_commit", ToolKind::Mutation, MatchedBy::Command)
        .like(&[inherit("bash", Inherit::All)]),
];

/// Rights beyond a session's that one call may ask for. They are granted by their own names alone:
/// no rule for a tool and no mode covers them.
pub(crate) const RIGHTS: &[RuleTarget] = &[
    target("network", ToolKind::Mutation, MatchedBy::Command),
    target("git-admin", ToolKind::Mutation, MatchedBy::Command),
    target("git-sign", ToolKind::Mutation, MatchedBy::Command),
    target("directory", ToolKind::Mutation, MatchedBy::Path(Depth::Below)),
    target("host", ToolKind::Mutation, MatchedBy::Host),
];

/// The right that is asked for, as rules name it.
pub(crate) fn right(widening: &Widening) -> &'static str {
    match widening {
        // A rule for the whole network also grants single hosts.
        Widening::Network => "network",
        Widening::Hosts(_) => "host",
        Widening::GitAdmin => "git-admin",
        Widening::GitSign => "git-sign",
        Widening::Directory(_) => "directory",
    }
}

/// All tools and rights.
fn all() -> impl Iterator<Item = &'static RuleTarget> {
    TOOLS.iter().chain(RIGHTS)
}

/// The tool or right of that name. Case does not matter: other agents write `Bash(cargo:*)`.
pub(crate) fn find(name: &str) -> Option<&'static RuleTarget> {
    all().find(|known| known.name.eq_ignore_ascii_case(name))
}

/// The tool of that name; rights do not count.
pub(crate) fn tool(name: &str) -> Option<&'static RuleTarget> {
    TOOLS.iter().find(|tool| tool.name.eq_ignore_ascii_case(name))
}

/// The tool that a mistyped name is nearest to: at most two letters added, dropped or changed.
pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    all()
        .map(|known| (distance(&name, known.name), known.name))
        .filter(|(far, known)| *far <= 2 && *far < known.len())
        .min()
        .map(|(_, known)| known)
}

fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().take(40).enumerate() {
        let mut row = vec![i + 1];
        for (j, other) in b.iter().enumerate() {
            let changed = above[j] + usize::from(letter != *other);
            row.push(changed.min(above[j + 1] + 1).min(row[j] + 1));
        }
        above = row;
    }
    above[b.len()]
}
