//! Other agents' ways to write a call: their names for tools and arguments, and calls that are shaped
//! otherwise. Tables, and one function for each shape.
//!
//! The result uses only our names, so rules, records and runners see the real tool, the real path
//! and the real command. A tool's aliases are in its own file.

use serde_json::{Map, Value};

pub(crate) type JsonFields = Map<String, Value>;

/// The meaning of another agent's word for an argument.
#[derive(Debug, Clone, Copy)]
pub enum ArgMeaning {
    /// The same value under our name.
    Field(&'static str),
    /// The opposite truth value under our name.
    Opposite(&'static str),
    /// A time under our name: seconds below 1000, milliseconds from there on.
    Time(&'static str),
    /// A time in seconds, under our name in milliseconds.
    Seconds(&'static str),
    /// Two line numbers: the first is our offset, the last gives our limit.
    Range,
    /// The last line of a window that begins at our offset.
    EndLine,
    /// The name of a language, whose files are our include.
    FileType,
    /// The pattern is text and not a regular expression.
    Literal,
    /// Nothing that changes the result.
    Ignored,
    /// Something that is not done here; the result says this sentence.
    Unmet(&'static str),
}

use ArgMeaning::{Field, Ignored, Seconds, Time, Unmet};

/// Field names of other agents with their meanings.
pub type FieldAliases = &'static [(&'static str, ArgMeaning)];

const PATH: &[&str] = &[
    "file_path",
    "filepath",
    "file",
    "filename",
    "file_name",
    "absolute_path",
    "target_file",
    "dir_path",
    "dir",
    "directory",
    "folder",
    "target_directory",
    "relative_workspace_path",
];

/// For the person who reads along, or for another agent's own machinery.
const IGNORED: &[&str] = &[
    "description",
    "explanation",
    "explain",
    "reason",
    "reasoning",
    "justification",
    "thought",
    "thoughts",
    "thinking",
    "comment",
    "instruction",
    "instructions",
    "purpose",
    "intent",
    "title",
    "tool_call_id",
    "task_progress",
    "requires_approval",
    "security_risk",
    "login",
    "tty",
    "shell",
    "prefix_rule",
    "yield_time_ms",
    "max_output_tokens",
    "wait_for_previous_tools",
];

pub(crate) const BACKGROUND: ArgMeaning = Unmet(
    "Only bash runs commands in the background: this one ran to its end, and its remaining \
        processes were killed.",
);
const ESCALATED: ArgMeaning = Unmet(
    "To ask for more rights than the session has, use network, hosts, directory, \
        git_settings or git_signing.",
);
/// The fields of a tool that runs a command, behind those of its own.
macro_rules! command_fields {
    ($($own:expr),* $(,)?) => {
        &[
            $($own,)*
            ("timeout", Time("timeout_ms")),
            ("timeout_seconds", Seconds("timeout_ms")),
            ("timeout_secs", Seconds("timeout_ms")),
            ("timeout_sec", Seconds("timeout_ms")),
            ("with_escalated_permissions", ESCALATED),
            ("dangerously_disable_sandbox", ESCALATED),
            ("sandbox_permissions", Ignored),
            ("additional_permissions", ESCALATED),
            (
                "env",
                Unmet(
                    "env was ignored: put variables before the command, as in \
                        `NAME=value command`.",
                ),
            ),
            ("environment", Unmet("environment was ignored: put variables before the command.")),
        ]
    };
}

/// Fields of tools that run a command to its end.
pub(crate) const COMMAND_FIELDS: FieldAliases = command_fields![
    ("run_in_background", BACKGROUND),
    ("is_background", BACKGROUND),
    ("background", BACKGROUND),
];
/// Fields of `bash`.
pub(crate) const BASH_FIELDS: FieldAliases = command_fields![
    ("run_in_background", Field("background")),
    ("is_background", Field("background")),
];
/// Names that other agents give the number of a background call.
pub(crate) const JOB_FIELDS: FieldAliases = &[
    ("id", Field("call")),
    ("bash_id", Field("call")),
    ("shell_id", Field("call")),
    ("task_id", Field("call")),
    ("session_id", Field("call")),
];

/// Fields that other agents give a task.
pub(crate) const TASK_FIELDS: FieldAliases = &[
    ("agent", Field("subagent_type")),
    ("agent_type", Field("subagent_type")),
    ("agent_name", Field("subagent_type")),
    ("task", Field("prompt")),
    ("run_in_background", Field("background")),
    ("is_background", Field("background")),
    ("model", Unmet("model was ignored: an agent's own file names its model.")),
    ("isolation", Unmet("isolation was ignored: an agent's own file asks for it.")),
    ("resume", Unmet("resume was ignored: each task starts a new sub-agent.")),
];

/// The meaning of a field name in the object at `path` inside a tool's arguments; `None` for unknown
/// names.
pub(crate) fn meaning(aliases: FieldAliases, path: &str, said: &str) -> Option<ArgMeaning> {
    let same = |alias: &&(&str, ArgMeaning)| {
        let name = match path {
            "" => Some(alias.0).filter(|name| !name.contains('.')),
            path => alias.0.strip_prefix(path).and_then(|name| name.strip_prefix('.')),
        };
        name.is_some_and(|name| match name.starts_with('-') || said.starts_with('-') {
            // -A and -a are different names.
            true => name == said,
            false => fold(name) == fold(said),
        })
    };
    let own = aliases.iter().find(same).map(|(_, means)| *means);
    own.or_else(|| PATH.iter().any(|path| fold(path) == fold(said)).then_some(Field("path")))
        .or_else(|| IGNORED.iter().any(|word| fold(word) == fold(said)).then_some(Ignored))
}

/// A name in lower case without `_` and `-`: `withinSymbol` equals `within_symbol`.
pub(crate) fn fold(name: &str) -> String {
    let joins = |c: &char| !matches!(c, '_' | '-');
    name.chars().filter(joins).flat_map(char::to_lowercase).collect()
}

/// A tool's name without the module that some models put before it.
pub(crate) fn bare(name: &str) -> &str {
    let modules = ["functions.", "default_api.", "default_api:", "developer__", "tools."];
    modules.iter().find_map(|module| name.strip_prefix(module)).unwrap_or(name)
}

/// Files of a language, by the names that ripgrep has for it.
pub(crate) fn files_of(language: &str) -> Option<&'static str> {
    Some(match language {
        "rust" => "*.rs",
        "py" | "python" => "*.{py,pyi}",
        "js" | "javascript" => "*.{js,jsx,mjs,cjs}",
        "ts" | "typescript" => "*.{ts,tsx,mts,cts}",
        "go" => "*.go",
        "java" => "*.java",
        "c" => "*.{c,h}",
        "cpp" | "c++" => "*.{cpp,cc,cxx,hpp,hh,hxx,h}",
        "cs" | "csharp" => "*.cs",
        "rb" | "ruby" => "*.rb",
        "php" => "*.php",
        "swift" => "*.swift",
        "kotlin" => "*.{kt,kts}",
        "sh" | "bash" => "*.{sh,bash}",
        "html" => "*.{html,htm}",
        "css" => "*.{css,scss}",
        "json" => "*.json",
        "yaml" => "*.{yaml,yml}",
        "toml" => "*.toml",
        "xml" => "*.xml",
        "sql" => "*.sql",
        "md" | "markdown" => "*.{md,markdown}",
        "txt" => "*.txt",
        _ => return None,
    })
}
