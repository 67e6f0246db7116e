//! The names of tools as Claude Code's hooks know them, and the subjects that matchers choose from.

use crate::spec::ToolDeclaration;
use crate::tool::specs;
use protocol::hook::{HookEvent, MatcherSubjects};

/// Our tool, and the tool of Claude Code that does the same.
const NAMES: &[(&str, &str)] = &[
    ("bash", "Bash"),
    ("read", "Read"),
    ("write", "Write"),
    ("edit", "Edit"),
    ("multi_edit", "MultiEdit"),
    ("glob", "Glob"),
    ("grep", "Grep"),
    ("ls", "LS"),
    ("web_fetch", "WebFetch"),
    ("web_search", "WebSearch"),
    ("task", "Task"),
    ("skill_activate", "Skill"),
    ("exit_plan", "ExitPlanMode"),
    ("ask_user", "AskUserQuestion"),
    ("bash_output", "BashOutput"),
    ("bash_stop", "KillShell"),
];

/// Tools that change files by other means than `edit` and `write`. A hook for either guards them.
const EDITS: &[&str] = &["apply_patch", "delete", "rewrite", "undo_restore"];

/// Every name that a matcher may use for a tool: its own, Claude Code's, and those of the tools whose
/// rules apply to it. A hook for `Bash` so guards every tool that runs a command.
#[must_use]
pub fn hook_names(tool: &str) -> Vec<&'static str> {
    let Some(spec) = declaration(tool) else { return Vec::new() };
    let mut own = vec![spec];
    let mut at = 0;
    while let Some(of) = own.get(at) {
        let more = of.inherits.iter().filter_map(|rules| declaration(rules.tool));
        let more: Vec<_> = more.collect();
        own.extend(more);
        at += 1;
    }
    let edits = if EDITS.contains(&spec.name) { &["Edit", "Write"][..] } else { &[] };
    let theirs = own.iter().filter_map(|of| theirs(of.name)).chain(edits.iter().copied());
    let mut names = vec![spec.name];
    for name in theirs {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The subjects that a matcher covers; none where the event has no subjects, so that its hooks always run.
#[must_use]
pub fn hook_subjects(event: HookEvent, covers: impl Fn(&str) -> bool) -> Option<Vec<String>> {
    match event.row().matcher {
        MatcherSubjects::Tools => {
            let names = specs().iter().map(|spec| spec.name);
            let names = names.filter(|name| !HookEvent::is_run_by(name));
            let covered = |name: &&str| hook_names(name).iter().any(|one| covers(one));
            Some(names.filter(covered).map(str::to_owned).collect())
        }
        MatcherSubjects::Words(words) => {
            Some(words.iter().filter(|word| covers(word)).map(|&word| word.to_owned()).collect())
        }
        // A matcher for an agent is compared once, when the session begins.
        MatcherSubjects::Agent | MatcherSubjects::Nothing => None,
    }
}

fn theirs(tool: &str) -> Option<&'static str> {
    NAMES.iter().find(|(ours, _)| *ours == tool).map(|(_, theirs)| *theirs)
}

fn declaration(tool: &str) -> Option<&'static ToolDeclaration> {
    specs().iter().find(|spec| spec.name == tool)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_for_one_tool_of_claude_guards_every_tool_that_does_the_same() {
        assert_eq!(hook_names("bash"), ["bash", "Bash"]);
        assert_eq!(hook_names("task"), ["task", "Task"]);
        for runs in ["run", "powershell", "git_commit", "git_status"] {
            assert!(hook_names(runs).contains(&"Bash"), "{runs}");
        }
        for changes in ["edit", "multi_edit", "apply_patch", "rewrite", "delete", "undo_restore"] {
            assert!(hook_names(changes).contains(&"Edit"), "{changes}");
        }
        assert!(hook_names("delete").contains(&"Write") && hook_names("summary").contains(&"Read"));
        assert!(hook_names("scan").contains(&"Grep") && !hook_names("read").contains(&"Edit"));
        assert_eq!(hook_names("checklist_create"), ["checklist_create"]);
        assert_eq!(hook_names("nothing"), Vec::<&str>::new());
    }
}
