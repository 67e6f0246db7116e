//! The names and arguments of a call as Claude Code's hooks know them.

use crate::arguments::interpret::interpret;
use crate::spec::ToolDeclaration;
use crate::tool::specs;
use serde_json::{Map, Value};
use std::path::Path;

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

/// The tool's name in a hook's standard input.
pub(super) fn tool_name(tool: &str) -> &str {
    hook_names(tool).get(1).copied().unwrap_or(tool)
}

/// The arguments of a call under Claude Code's names. A call of several files is shown once for each
/// of them, in `file_path`.
pub(super) fn tool_input(tool: &str, input: &Value, file: Option<&str>, project: &Path) -> Value {
    // A tool of an MCP server has its own arguments.
    if tool.starts_with(protocol::mcp::PREFIX) {
        return input.clone();
    }
    let mut fields = input.as_object().cloned().unwrap_or_default();
    let text = input.to_string();
    let read = interpret(tool, &text).ok();
    let command = read.as_ref().and_then(|call| call.command.clone());
    let file = file.or_else(|| read.as_ref()?.paths.first().map(String::as_str));
    let names_files = !["ls", "glob", "grep", "scan"].contains(&tool);
    if let (Some(file), true) = (file, names_files) {
        fields.remove("path");
        let absolute = project.join(file).to_string_lossy().into_owned();
        fields.insert("file_path".to_owned(), absolute.into());
    }
    if let Some(command) = command {
        fields.insert("command".to_owned(), command.into());
    }
    rename(&mut fields, "timeout_ms", "timeout");
    for edit in fields.get_mut("edits").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(edit) = edit.as_object_mut() {
            rename(edit, "find", "old_string");
            rename(edit, "replace", "new_string");
        }
    }
    fields.into()
}

fn rename(fields: &mut Map<String, Value>, ours: &str, theirs: &str) {
    if let Some(value) = fields.remove(ours) {
        fields.insert(theirs.to_owned(), value);
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
    use serde_json::json;

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
        assert_eq!((hook_names("nothing"), tool_name("nothing")), (Vec::new(), "nothing"));
        assert_eq!((tool_name("multi_edit"), tool_name("run")), ("MultiEdit", "Bash"));
    }

    #[test]
    fn arguments_are_shown_under_their_names_with_absolute_paths() {
        let shown = |tool, input: Value| tool_input(tool, &input, None, Path::new("/p"));
        assert_eq!(
            shown("edit", json!({"path": "a", "old_string": "x", "new_string": "y"})),
            json!({"file_path": "/p/a", "old_string": "x", "new_string": "y"})
        );
        assert_eq!(shown("read", json!({"path": "/q/a"})), json!({"file_path": "/q/a"}));
        assert_eq!(
            shown("bash", json!({"command": "ls", "timeout_ms": 5})),
            json!({"command": "ls", "timeout": 5})
        );
        assert_eq!(shown("run", json!({"argv": ["rm", "a b"]}))["command"], "rm 'a b'");
        assert_eq!(shown("grep", json!({"pattern": "x", "path": "a"}))["path"], "a");
        let edits = json!({"path": "a", "edits": [{"find": "x", "replace": "y"}]});
        let expected = json!([{"old_string": "x", "new_string": "y"}]);
        assert_eq!(shown("multi_edit", edits)["edits"], expected);
        let several =
            tool_input("delete", &json!({"paths": ["a", "b"]}), Some("b"), Path::new("/p"));
        assert_eq!(several["file_path"], "/p/b");
    }
}
