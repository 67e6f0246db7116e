//! The name and the arguments of a call as Claude Code's hooks know them, and programs that draw by its names.

use crate::{hook_names, interpret};
use serde_json::{Map, Value};
use std::path::Path;

/// The tool's name there.
#[must_use]
pub fn hook_tool_name(tool: &str) -> &str {
    hook_names(tool).get(1).copied().unwrap_or(tool)
}

/// The arguments of a call under Claude Code's names. A call of several files is shown once for each
/// of them, in `file_path`.
#[must_use]
pub fn hook_tool_input(tool: &str, input: &Value, file: Option<&str>, project: &Path) -> Value {
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_tool_has_the_name_of_claudes_tool_that_does_the_same() {
        assert_eq!(
            (hook_tool_name("nothing"), hook_tool_name("multi_edit")),
            ("nothing", "MultiEdit")
        );
        assert_eq!(hook_tool_name("run"), "Bash");
    }

    #[test]
    fn arguments_are_shown_under_their_names_with_absolute_paths() {
        let shown = |tool, input: Value| hook_tool_input(tool, &input, None, Path::new("/p"));
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
            hook_tool_input("delete", &json!({"paths": ["a", "b"]}), Some("b"), Path::new("/p"));
        assert_eq!(several["file_path"], "/p/b");
    }
}
