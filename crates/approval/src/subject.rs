//! The tools that rules can speak of, and what their patterns are matched against.

use protocol::judgement::ToolKind;

/// What a tool's pattern is matched against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    /// The words of a command.
    Command,
    /// The real paths that a call names.
    Path(Reach),
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
}

const fn known(name: &'static str, kind: ToolKind, subject: Subject) -> Known {
    Known { name, kind, subject }
}

/// All of them. A rule for any other tool is an error: it would look like protection and be none.
pub(crate) const TOOLS: &[Known] = &[
    known("read", ToolKind::Query, Subject::Path(Reach::Named)),
    known("ls", ToolKind::Query, Subject::Path(Reach::Named)),
    known("glob", ToolKind::Query, Subject::Path(Reach::Below)),
    known("grep", ToolKind::Query, Subject::Path(Reach::Below)),
    known("write", ToolKind::Mutation, Subject::Path(Reach::Named)),
    known("edit", ToolKind::Mutation, Subject::Path(Reach::Named)),
    known("bash", ToolKind::Mutation, Subject::Command),
];

/// The tool of that name. Case does not matter: other agents write `Bash(cargo:*)`.
pub(crate) fn find(name: &str) -> Option<&'static Known> {
    TOOLS.iter().find(|tool| tool.name.eq_ignore_ascii_case(name))
}

/// The tool that a mistyped name is nearest to: at most two letters added, dropped or changed.
pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    TOOLS
        .iter()
        .map(|tool| (distance(&name, tool.name), tool.name))
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
