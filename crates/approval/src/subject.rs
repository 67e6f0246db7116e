//! The tools and rights that rules can speak of, and what their patterns are matched against.

use protocol::judgement::{RuleEffect, ToolKind, Widening};

/// What a tool's pattern is matched against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    /// The words of a command.
    Command,
    /// The real paths that a call names.
    Path(Reach),
    /// The hosts that a call asks for.
    Host,
    /// The page of the web that a call asks for.
    Page,
    /// Nothing: only a rule for every call of the tool can speak of it.
    Nothing,
}

/// How far a call on a directory reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// To what it names.
    Named,
    /// To everything below it.
    Below,
}

/// One tool.
#[derive(Debug)]
pub(crate) struct Known {
    /// Its real name.
    pub name: &'static str,
    /// Whether it looks or changes.
    pub kind: ToolKind,
    /// What its pattern is matched against.
    pub subject: Subject,
    /// The tools that do the same by another name: what rules deny to them is denied here, too.
    pub like: &'static [Like],
}

/// Another tool whose rules hold for a tool as well.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Like {
    /// Its real name.
    pub tool: &'static str,
    /// Which of them.
    pub share: Share,
}

/// Which rules of another tool hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    /// All.
    Whole,
    /// Those that deny or ask, but none that allows.
    Against,
    /// Those that deny or ask, for what a call names and not for all that it reaches below that.
    AgainstNamed,
}

const fn known(name: &'static str, kind: ToolKind, subject: Subject) -> Known {
    Known { name, kind, subject, like: &[] }
}

const fn rules_of(tool: &'static str, share: Share) -> Like {
    Like { tool, share }
}

impl Known {
    const fn like(self, like: &'static [Like]) -> Self {
        Self { like, ..self }
    }

    /// The tools whose rules are asked about a call: its own, and what it is like.
    pub(crate) fn ruled_by(&'static self, effect: RuleEffect) -> impl Iterator<Item = Ruled> {
        let mut by = vec![Ruled { tool: self.name, far: Reach::Below }];
        let mut known = vec![self];
        let mut at = 0;
        while let (Some(of), Some(&Ruled { far: before, .. })) = (known.get(at), by.get(at)) {
            for like in of.like {
                let far = match (like.share, effect) {
                    (Share::Against | Share::AgainstNamed, RuleEffect::Allow) => continue,
                    (Share::Whole | Share::Against, _) => before,
                    (Share::AgainstNamed, RuleEffect::Deny | RuleEffect::Ask) => Reach::Named,
                };
                if let Some(found) = find(like.tool) {
                    known.push(found);
                    by.push(Ruled { tool: like.tool, far });
                }
            }
            at += 1;
        }
        by.into_iter()
    }

    /// How far a rule of this effect for this tool reaches, over all tools that it holds for.
    pub(crate) fn reach(&self, effect: RuleEffect) -> Reach {
        let below = TOOLS.iter().chain(RIGHTS).any(|known| {
            known.subject == Subject::Path(Reach::Below)
                && known.ruled_by(effect).any(|by| by.tool == self.name && by.far == Reach::Below)
        });
        if below { Reach::Below } else { Reach::Named }
    }
}

/// A tool whose rules hold for a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ruled {
    /// Its name.
    pub tool: &'static str,
    /// How far below what the call names, where the call itself reaches so far.
    pub far: Reach,
}

/// These run what a person configured to be run behind edits: that allows it, unless a rule asks or
/// denies.
pub(crate) const VERIFY: &str = "verify";
const FORMAT: &str = "format";

/// All of them. A rule for any other tool is an error: it would look like protection and be none.
pub(crate) const TOOLS: &[Known] = &[
    known("read", ToolKind::Query, Subject::Path(Reach::Named)),
    known("ls", ToolKind::Query, Subject::Path(Reach::Named)),
    known("glob", ToolKind::Query, Subject::Path(Reach::Below)),
    // What may not be read may not be searched; a directory it is in may be.
    known("grep", ToolKind::Query, Subject::Path(Reach::Below))
        .like(&[rules_of("read", Share::AgainstNamed)]),
    // Each shows the text that the other would.
    known("summary", ToolKind::Query, Subject::Path(Reach::Named))
        .like(&[rules_of("read", Share::Whole)]),
    known("scan", ToolKind::Query, Subject::Path(Reach::Below))
        .like(&[rules_of("grep", Share::Whole)]),
    known("write", ToolKind::Mutation, Subject::Path(Reach::Named)),
    known("edit", ToolKind::Mutation, Subject::Path(Reach::Named)),
    known("multi_edit", ToolKind::Mutation, Subject::Path(Reach::Named))
        .like(&[rules_of("edit", Share::Whole)]),
    // A patch may do what each of these does, and which rule allows that is not theirs to say.
    known("apply_patch", ToolKind::Mutation, Subject::Path(Reach::Named)).like(&[
        rules_of("edit", Share::Against),
        rules_of("write", Share::Against),
        rules_of("delete", Share::Against),
    ]),
    known("rewrite", ToolKind::Mutation, Subject::Path(Reach::Named))
        .like(&[rules_of("edit", Share::Whole)]),
    // Who may write a file may not yet remove directories.
    known("delete", ToolKind::Mutation, Subject::Path(Reach::Below))
        .like(&[rules_of("write", Share::Against)]),
    known("undo_restore", ToolKind::Mutation, Subject::Path(Reach::Named))
        .like(&[rules_of("write", Share::Whole)]),
    known("bash", ToolKind::Mutation, Subject::Command),
    known("run", ToolKind::Mutation, Subject::Command).like(&[rules_of("bash", Share::Whole)]),
    known("powershell", ToolKind::Mutation, Subject::Command)
        .like(&[rules_of("bash", Share::Whole)]),
    known(VERIFY, ToolKind::Mutation, Subject::Command).like(&[rules_of("bash", Share::Against)]),
    known(FORMAT, ToolKind::Mutation, Subject::Command).like(&[rules_of("bash", Share::Against)]),
    known("git_status", ToolKind::Query, Subject::Command).like(&[rules_of("bash", Share::Whole)]),
    known("git_diff", ToolKind::Query, Subject::Command).like(&[rules_of("bash", Share::Whole)]),
    known("git_log", ToolKind::Query, Subject::Command).like(&[rules_of("bash", Share::Whole)]),
    known("git_show", ToolKind::Query, Subject::Command).like(&[rules_of("bash", Share::Whole)]),
    // What may not be reached may not be read, whatever gives the network.
    known("web_search", ToolKind::Query, Subject::Page).like(&[rules_of("host", Share::Against)]),
    known("web_fetch", ToolKind::Query, Subject::Page).like(&[rules_of("host", Share::Against)]),
    known("history_search", ToolKind::Query, Subject::Nothing),
    known("memory_search", ToolKind::Query, Subject::Nothing),
    known("memory_add", ToolKind::Query, Subject::Nothing),
    known("memory_remove", ToolKind::Query, Subject::Nothing),
    known("skill_list", ToolKind::Query, Subject::Nothing),
    known("skill_activate", ToolKind::Query, Subject::Nothing),
    known("undo_list", ToolKind::Query, Subject::Nothing),
    known("checklist_create", ToolKind::Query, Subject::Nothing),
    known("checklist_update", ToolKind::Query, Subject::Nothing),
    known("git_add", ToolKind::Mutation, Subject::Command).like(&[rules_of("bash", Share::Whole)]),
    known("git_commit", ToolKind::Mutation, Subject::Command)
        .like(&[rules_of("bash", Share::Whole)]),
];

/// Rights beyond a session's that one call may ask for. They are granted by their own names alone:
/// no rule for a tool and no mode covers them.
pub(crate) const RIGHTS: &[Known] = &[
    known("network", ToolKind::Mutation, Subject::Command),
    known("git-admin", ToolKind::Mutation, Subject::Command),
    known("git-sign", ToolKind::Mutation, Subject::Command),
    known("directory", ToolKind::Mutation, Subject::Path(Reach::Below)),
    known("host", ToolKind::Mutation, Subject::Host),
];

/// The right that is asked for, as rules name it.
pub(crate) fn right(widening: &Widening) -> &'static str {
    match widening {
        // Who may have all of it may have some hosts.
        Widening::Network => "network",
        Widening::Hosts(_) => "host",
        Widening::GitAdmin => "git-admin",
        Widening::GitSign => "git-sign",
        Widening::Directory(_) => "directory",
    }
}

/// All that rules can speak of.
fn all() -> impl Iterator<Item = &'static Known> {
    TOOLS.iter().chain(RIGHTS)
}

/// The tool or right of that name. Case does not matter: other agents write `Bash(cargo:*)`.
pub(crate) fn find(name: &str) -> Option<&'static Known> {
    all().find(|known| known.name.eq_ignore_ascii_case(name))
}

/// The tool of that name; a right is none.
pub(crate) fn tool(name: &str) -> Option<&'static Known> {
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
