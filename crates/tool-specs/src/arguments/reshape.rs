//! Calls of other agents that have another shape: converts them to a call of one of our tools.

use crate::arguments::dialect::JsonFields;
use crate::patch;
use crate::text::shell_words::shell_words;
use serde_json::Value;
use std::path::Path;

/// The tool that a call is for by its shape, its arguments put in our order.
pub(crate) fn reshape(
    tool: &'static str,
    said: &str,
    fields: &mut JsonFields,
    at: &Path,
) -> &'static str {
    match tool {
        "bash" | "run" => command(tool, said, fields, at),
        "edit" => editor(fields),
        "checklist_create" => todos(fields),
        "git_commit" => message(fields),
        "grep" => search(fields),
        _ => tool,
    }
}

/// A command as text or as words, with a directory of its own or without.
fn command(
    tool: &'static str,
    said: &str,
    fields: &mut JsonFields,
    project: &Path,
) -> &'static str {
    if let Some(Value::Object(action)) = fields.remove("action") {
        fields.remove("type");
        fields.extend(action.into_iter().filter(|(name, _)| name != "type" && name != "user"));
    }
    let directory = directory(said, fields, project);
    let given = ["command", "argv", "cmd", "script", "commands", "program"]
        .iter()
        .find_map(|name| fields.remove(*name).filter(|value| !value.is_null()));
    let Some(given) = given else { return tool };
    let mut argv = words(&given);
    if let (Some(argv), Some(more)) = (&mut argv, fields.get("args").and_then(arguments)) {
        argv.extend(more);
        fields.remove("args");
    } else if let (Some(program), Some(more)) =
        (given.as_str(), fields.get("args").and_then(arguments))
    {
        argv = Some(std::iter::once(program.to_owned()).chain(more).collect());
        fields.remove("args");
    }
    let script = match &argv {
        Some(argv) => script_of(argv).map(str::to_owned),
        None => given.as_str().filter(|_| tool == "bash").map(str::to_owned),
    };
    let patch = match (&argv, &script) {
        (Some(argv), _) if argv.first().is_some_and(|first| is_patch_program(first)) => {
            argv.get(1).map(|text| patch::unwrapped(text).to_owned())
        }
        (_, Some(script)) => patch::in_script(script),
        (_, None) => None,
    };
    if let Some(patch) = patch.filter(|_| directory.is_none()) {
        *fields = JsonFields::from_iter([("patch".to_owned(), Value::String(patch))]);
        return "apply_patch";
    }
    let (tool, name, value) = match (script, argv, directory) {
        (Some(script), _, None) => ("bash", "command", Value::String(script)),
        (Some(script), _, Some(dir)) => {
            ("bash", "command", Value::String(format!("cd {} || exit\n{script}", quoted(&dir))))
        }
        (None, Some(argv), Some(dir)) => {
            let text = format!("cd {} && {}", quoted(&dir), shell_words(&argv));
            ("bash", "command", Value::String(text))
        }
        (None, Some(argv), None) => ("run", "argv", Value::from(argv)),
        (None, None, _) => (tool, if tool == "run" { "argv" } else { "command" }, given),
    };
    fields.insert(name.to_owned(), value);
    tool
}

fn quoted(dir: &str) -> String {
    shell_words(&[dir.to_owned()])
}

/// The directory that a command is to run in, where it is not the project's.
fn directory(said: &str, fields: &mut JsonFields, project: &Path) -> Option<String> {
    let names =
        ["workdir", "cwd", "working_directory", "working_dir", "workingDirectory", "dir_path"];
    // Our own `directory` is one more directory to read and write.
    let theirs = ["run_shell_command"].contains(&said).then_some("directory");
    let mut found = None;
    for name in names.into_iter().chain(theirs) {
        if let Some(Value::String(dir)) = fields.get(name) {
            found = found.or(Some(dir.clone()));
            fields.remove(name);
        } else if fields.get(name).is_some_and(Value::is_null) {
            fields.remove(name);
        }
    }
    found.filter(|dir| {
        let plain = dir.trim_end_matches('/');
        !matches!(plain, "" | ".") && Path::new(plain) != project || dir == "/"
    })
}

fn words(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|word| word.as_str().map(str::to_owned)).collect()
}

/// A list of words, or one in a string.
fn arguments(value: &Value) -> Option<Vec<String>> {
    match value.as_str() {
        Some(text) => words(&serde_json::from_str(text).ok()?),
        None => words(value),
    }
}

/// The script of a shell that is given one, as in `bash -lc SCRIPT`.
fn script_of(argv: &[String]) -> Option<&str> {
    let [shell, options @ .., script] = argv else { return None };
    let name = shell.rsplit('/').next().unwrap_or(shell);
    let plain = matches!(options, [only] if matches!(only.as_str(), "-c" | "-lc" | "-cl"))
        || matches!(options, [one, two] if one == "-l" && two == "-c");
    (matches!(name, "bash" | "sh" | "dash") && plain).then_some(script.as_str())
}

fn is_patch_program(name: &str) -> bool {
    matches!(name, "apply_patch" | "applypatch")
}

/// One tool for all operations of an editor; `command` selects the operation.
fn editor(fields: &mut JsonFields) -> &'static str {
    let Some(command) = fields.get("command").and_then(Value::as_str).map(str::to_owned) else {
        return "edit";
    };
    let tool = match command.as_str() {
        "view" => "read",
        "create" | "write" => "write",
        "str_replace" => "edit",
        _ => return "edit",
    };
    fields.remove("command");
    tool
}

/// A whole list with how far each step is.
fn todos(fields: &mut JsonFields) -> &'static str {
    let list = ["todos", "plan", "todo_list"].iter().find_map(|name| fields.remove(*name));
    let Some(list) = list else { return "checklist_create" };
    let list = list.as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or(list);
    let Some(steps) = list.as_array() else {
        fields.insert("items".to_owned(), list);
        return "checklist_create";
    };
    let text = |step: &Value| {
        let named = ["content", "step", "text", "task", "description", "title"];
        let word = step.as_str().or_else(|| named.iter().find_map(|name| step[*name].as_str()));
        Value::from(word.unwrap_or_default())
    };
    let status = |step: &Value| match step["status"].as_str() {
        Some("completed" | "done" | "complete") => "done",
        Some("in_progress" | "in-progress" | "inprogress") => "in_progress",
        Some("cancelled" | "canceled" | "failed" | "blocked") => "failed",
        Some(_) | None => "pending",
    };
    fields.insert("items".to_owned(), steps.iter().map(text).collect());
    fields.insert("statuses".to_owned(), steps.iter().map(status).collect());
    fields.entry("group").or_insert_with(|| "todo".into());
    fields.entry("title").or_insert_with(|| "To do".into());
    "checklist_create"
}

/// A search whose words say that it is one of text.
fn search(fields: &mut JsonFields) -> &'static str {
    if ["regex", "regexp", "search_pattern", "output_mode"]
        .iter()
        .any(|name| fields.contains_key(*name))
    {
        fields.remove("names_first");
    }
    "grep"
}

/// A commit's message in one piece.
fn message(fields: &mut JsonFields) -> &'static str {
    if let Some(text) = fields.get("message").and_then(Value::as_str).map(str::to_owned) {
        fields.remove("message");
        let (subject, body) = text.trim().split_once('\n').unwrap_or((text.trim(), ""));
        fields.entry("subject").or_insert_with(|| subject.trim().into());
        if !body.trim().is_empty() {
            fields.entry("body").or_insert_with(|| body.trim().into());
        }
    }
    "git_commit"
}
