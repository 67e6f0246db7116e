//! One hook of Claude Code's format: the command that runs it as it is written, or the reason why agentd cannot. A
//! guard that ran otherwise than written would let calls pass that it is there to stop. Pure. Used by `event_hooks`.
//!
//! The fields by <https://code.claude.com/docs/en/hooks>: `args` is the exec form, where no shell reads the words and
//! `${CLAUDE_PROJECT_DIR}` and `${CLAUDE_PLUGIN_ROOT}` are replaced; `if` is a permission rule that narrows the
//! matcher, and fits no event without a call; `async` and `asyncRewake` run it in the background.

use protocol::hook::HookEvent;
use serde_json::{Map, Value};

/// Fields that change nothing about the run: text for people, names, and `once`, which Claude Code heeds
/// in skills only.
pub(crate) const HARMLESS: [&str; 9] =
    ["statusMessage", "description", "once", "id", "name", "comment", "_comment", "//", "$schema"];
/// Fields that are read here or by `event_hooks`.
const KNOWN: [&str; 8] =
    ["type", "command", "args", "timeout", "shell", "if", "async", "asyncRewake"];
/// Variables that stand in words of the exec form.
const VARIABLES: [&str; 2] = ["${CLAUDE_PROJECT_DIR}", "${CLAUDE_PLUGIN_ROOT}"];

/// How a hook runs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct HookForm {
    /// For a shell.
    pub command: String,
    /// The one tool that it is for, by its name.
    pub only: Option<String>,
    /// Why it cannot be run as it is written.
    pub broken: Option<String>,
}

/// A field whose value is not of its kind.
#[derive(Debug)]
pub(crate) struct BadField {
    pub field: &'static str,
    pub wanted: &'static str,
}

/// The form of a hook; none for one that never fits its event.
pub(crate) fn of(
    event: HookEvent,
    hook: &Map<String, Value>,
) -> Result<Option<HookForm>, BadField> {
    let given = |field: &str| hook.get(field).filter(|value| !value.is_null());
    let kind = given("type");
    if kind.is_some_and(|kind| kind != "command") || (kind.is_none() && given("command").is_none())
    {
        let kind = kind.and_then(Value::as_str).unwrap_or("missing");
        let why = format!("agentd runs no hook of the type {kind:?}, but commands");
        return Ok(Some(HookForm {
            command: kind.to_owned(),
            broken: Some(why),
            ..HookForm::default()
        }));
    }
    let command = given("command").and_then(Value::as_str).map(str::trim);
    let command = command
        .filter(|text| !text.is_empty() && !text.contains('\0'))
        .ok_or(BadField { field: "command", wanted: "a command for a shell" })?;
    let mut broken = Vec::new();
    let mut line = command.to_owned();
    let mut only = None;
    for field in hook.keys() {
        match (field.as_str(), given(field)) {
            (_, None) | ("async" | "asyncRewake", Some(Value::Bool(false))) => {}
            ("args", Some(Value::Array(args))) => match words(command, args) {
                Some(words) => line = words,
                None => broken.push("`args` is no list of texts".to_owned()),
            },
            ("shell", Some(Value::String(shell))) if shell == "bash" => {}
            ("if", Some(Value::String(rule))) => {
                let (name, pattern) = rule.trim().split_once('(').unwrap_or((rule.trim(), "*)"));
                only = Some(name.trim().to_owned());
                let is_whole_name = name.trim().starts_with(|c: char| c.is_ascii_alphabetic())
                    && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
                    && (!name.starts_with("mcp__") || name.trim().matches("__").count() > 1);
                if !matches!(pattern.trim(), "*)" | ")") || !is_whole_name {
                    broken.push(format!("agentd knows a tool's name alone in `if`, not {rule:?}"));
                }
            }
            ("async" | "asyncRewake", Some(_)) => {
                broken.push(format!("agentd waits for each hook, and cannot run one `{field}`"));
            }
            (known, Some(value)) if KNOWN.contains(&known) => {
                if !matches!(known, "type" | "command" | "timeout") {
                    broken.push(format!("agentd does not know `{field}` = {value}"));
                }
            }
            (other, Some(_)) if HARMLESS.contains(&other) => {}
            (_, Some(_)) => broken.push(format!("agentd does not know `{field}`")),
        }
    }
    if only.is_some() && !event.is_about_call() {
        return Ok(None);
    }
    if given("shell").is_some_and(|shell| shell == "bash") && given("args").is_none() {
        line = format!("bash -c {}", quoted(&line));
    }
    let broken = (!broken.is_empty()).then(|| broken.join("; "));
    Ok(Some(HookForm { command: line, only, broken }))
}

/// The words as a shell takes them without reading anything in them.
fn words(program: &str, args: &[Value]) -> Option<String> {
    let args: Option<Vec<&str>> = args.iter().map(Value::as_str).collect();
    let all = std::iter::once(program).chain(args?);
    let words: Vec<String> = all.map(word).collect();
    let line = words.join(" ");
    (!line.contains('\0')).then_some(line)
}

/// One word, with the variables of the exec form in it.
fn word(text: &str) -> String {
    let first = VARIABLES.iter().filter_map(|name| Some((text.find(name)?, name))).min();
    match first {
        None => quoted(text),
        Some((at, name)) => {
            let behind = &text[at + name.len()..];
            let before = if at == 0 { String::new() } else { quoted(&text[..at]) };
            let behind = if behind.is_empty() { String::new() } else { word(behind) };
            format!("{before}\"{name}\"{behind}")
        }
    }
}

/// The text for a shell, as one word.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '-' | '_');
    // A word of letters alone may be one of the shell's own.
    let is_own = text.chars().all(|c| c.is_ascii_lowercase());
    match text.chars().all(is_plain) && !is_own {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    fn form(hook: Value) -> HookForm {
        of(HookEvent::PreToolUse, hook.as_object().unwrap()).unwrap().unwrap()
    }

    #[test]
    fn the_exec_form_is_words_that_no_shell_reads() {
        let hook = json!({"command": "python3", "args": ["a b.py", "it's", "$HOME", "${CLAUDE_PROJECT_DIR}/x y", ""]});
        let wanted = r#"python3 'a b.py' 'it'\''s' '$HOME' "${CLAUDE_PROJECT_DIR}"'/x y' ''"#;
        assert_eq!(form(hook), HookForm { command: wanted.into(), ..HookForm::default() });
        let hook = json!({"command": "if", "args": ["x"]});
        assert_eq!(form(hook).command, "'if' 'x'");
        let hook = json!({"command": "${CLAUDE_PLUGIN_ROOT}/a b", "args": []});
        assert_eq!(form(hook).command, "\"${CLAUDE_PLUGIN_ROOT}\"'/a b'");
    }

    #[test]
    fn fields_are_followed_or_named() {
        let fine = json!({"type": "command", "command": "x y", "async": false, "statusMessage": "s", "if": null});
        assert_eq!(form(fine), HookForm { command: "x y".into(), ..HookForm::default() });
        assert_eq!(form(json!({"command": "a|b", "shell": "bash"})).command, "bash -c 'a|b'");
        let harmless =
            json!({"command": "x", "id": "pre:bash", "name": "n", "//": "c", "once": true});
        assert_eq!(form(harmless), HookForm { command: "x".into(), ..HookForm::default() });
        for rule in ["*", "", "mcp__*", "mcp__server", "Write|Bash", "Bash(git *)"] {
            let form = form(json!({"command": "x", "if": rule}));
            assert!(form.broken.is_some_and(|why| why.contains("`if`")), "{rule}");
        }
        assert!(form(json!({"command": "x", "if": "mcp__s__t"})).broken.is_none());
        let named = form(json!({"command": "x", "if": "Bash"}));
        assert_eq!((named.only.as_deref(), named.broken), (Some("Bash"), None));
        for (field, value) in [
            ("args", json!("x")),
            ("args", json!([1])),
            ("shell", json!("powershell")),
            ("if", json!("Bash(git *)")),
            ("if", json!(1)),
            ("async", json!(true)),
            ("asyncRewake", json!("yes")),
            ("of_tomorrow", json!(1)),
            ("type", json!("prompt")),
            ("type", json!(7)),
        ] {
            let mut hook = json!({"type": "command", "command": "x"});
            hook[field] = value.clone();
            assert!(form(hook).broken.is_some(), "{field}: {value}");
        }
        let stop = json!({"command": "x", "if": "Bash"});
        assert!(of(HookEvent::Stop, stop.as_object().unwrap()).unwrap().is_none());
    }
}
