//! Other agents' ways to write a call: their names for tools and arguments, and calls that are shaped
//! otherwise. Tables, and one function for each shape.
//!
//! The result uses only our names, so rules, records and runners see the real tool, the real path
//! and the real command. A tool's aliases are in its own file.

use serde_json::{Map, Value};

pub(crate) type JsonFields = Map<String, Value>;

/// The meaning of another agent's word for an argument.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ArgMeaning {
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

use ArgMeaning::{
    EndLine, Field, FileType, Ignored, Literal, Opposite, Range, Seconds, Time, Unmet,
};

type Words = &'static [(&'static str, ArgMeaning)];

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

const BACKGROUND: ArgMeaning = Unmet(
    "Background commands are not supported: the command ran to its end, and its remaining \
        processes were killed.",
);
const ESCALATED: ArgMeaning = Unmet(
    "To ask for more rights than the session has, use network, hosts, directory, \
        git_settings or git_signing.",
);
const COMMAND: Words = &[
    ("timeout", Time("timeout_ms")),
    ("timeout_seconds", Seconds("timeout_ms")),
    ("timeout_secs", Seconds("timeout_ms")),
    ("timeout_sec", Seconds("timeout_ms")),
    ("run_in_background", BACKGROUND),
    ("is_background", BACKGROUND),
    ("background", BACKGROUND),
    ("with_escalated_permissions", ESCALATED),
    ("dangerously_disable_sandbox", ESCALATED),
    ("sandbox_permissions", Ignored),
    ("additional_permissions", ESCALATED),
    (
        "env",
        Unmet("env was ignored: put variables before the command, as in `NAME=value command`."),
    ),
    ("environment", Unmet("environment was ignored: put variables before the command.")),
];

/// Each tool's words, by the tool and by the place of an object in its arguments.
const WORDS: &[(&str, Words)] = &[
    (
        "read",
        &[
            ("start_line", Field("offset")),
            ("start_line_one_indexed", Field("offset")),
            ("line_start", Field("offset")),
            ("end_line", EndLine),
            ("end_line_one_indexed_inclusive", EndLine),
            ("line_end", EndLine),
            ("view_range", Range),
            ("line_count", Field("limit")),
            ("lines", Field("limit")),
            ("should_read_entire_file", Ignored),
            ("encoding", Ignored),
            ("mode", Ignored),
            ("indentation", Ignored),
            ("pages", Unmet("pages was ignored: only text files are read.")),
        ],
    ),
    (
        "ls",
        &[
            (
                "ignore",
                Unmet("ignore was ignored: all entries that no ignore file excludes are listed."),
            ),
            ("recursive", Unmet("One level is listed; glob finds files at any depth.")),
            ("depth", Unmet("One level is listed; glob finds files at any depth.")),
            ("max_depth", Ignored),
            ("limit", Ignored),
            ("offset", Ignored),
            ("show_hidden", Ignored),
            ("all", Ignored),
            ("respect_git_ignore", Ignored),
            ("file_filtering_options", Ignored),
        ],
    ),
    (
        "glob",
        &[
            ("glob_pattern", Field("pattern")),
            ("query", Field("pattern")),
            ("glob", Field("pattern")),
            ("case_sensitive", Ignored),
            ("respect_git_ignore", Ignored),
            ("respect_gemini_ignore", Ignored),
            ("limit", Ignored),
            ("max_results", Ignored),
            ("head_limit", Ignored),
            (
                "exclude",
                Unmet("exclude was ignored: all matching files that are not ignored are listed."),
            ),
        ],
    ),
    (
        "grep",
        &[
            ("query", Field("pattern")),
            ("regex", Field("pattern")),
            ("search_pattern", Field("pattern")),
            ("glob", Field("include")),
            ("include_pattern", Field("include")),
            ("file_pattern", Field("include")),
            ("glob_pattern", Field("include")),
            ("type", FileType),
            ("file_type", FileType),
            ("-i", Field("case_insensitive")),
            ("ignore_case", Field("case_insensitive")),
            ("case_sensitive", Opposite("case_insensitive")),
            ("-A", Field("context")),
            ("-B", Field("context")),
            ("-C", Field("context")),
            ("after", Field("context")),
            ("before", Field("context")),
            ("context_lines", Field("context")),
            ("-n", Ignored),
            ("line_numbers", Ignored),
            ("-o", Ignored),
            ("-r", Ignored),
            ("output_mode", Ignored),
            ("head_limit", Ignored),
            ("limit", Ignored),
            ("max_results", Ignored),
            ("total_max_matches", Ignored),
            ("max_matches_per_file", Ignored),
            ("names_only", Ignored),
            ("recursive", Ignored),
            ("offset", Ignored),
            ("fixed_strings", Literal),
            ("-F", Literal),
            (
                "multiline",
                Unmet(
                    "multiline was ignored: a pattern matches line by line unless it contains a \
                line break.",
                ),
            ),
            ("exclude_pattern", Unmet("exclude_pattern was ignored; use include with `!PATTERN`.")),
            (
                "no_ignore",
                Unmet("no_ignore was ignored: to search ignored files, give their path."),
            ),
        ],
    ),
    (
        "scan",
        &[
            ("pattern", Field("patterns")),
            ("lang", Field("language")),
            ("max_results", Field("limit")),
        ],
    ),
    ("rewrite", &[("ops", Field("edits")), ("operations", Field("edits"))]),
    (
        "write",
        &[
            ("contents", Field("content")),
            ("file_text", Field("content")),
            ("text", Field("content")),
            ("code_edit", Field("content")),
            ("overwrite", Ignored),
            ("create_dirs", Ignored),
            ("encoding", Ignored),
            ("line_count", Ignored),
        ],
    ),
    ("edit", EDIT),
    ("multi_edit", &[]),
    (
        "multi_edit.edits",
        &[
            ("old_string", Field("find")),
            ("old_str", Field("find")),
            ("old_text", Field("find")),
            ("search", Field("find")),
            ("new_string", Field("replace")),
            ("new_str", Field("replace")),
            ("new_text", Field("replace")),
            ("replacement", Field("replace")),
        ],
    ),
    (
        "apply_patch",
        &[
            ("input", Field("patch")),
            ("patch_text", Field("patch")),
            ("diff", Field("patch")),
            ("content", Field("patch")),
        ],
    ),
    ("delete", &[("path", Field("paths"))]),
    ("bash", COMMAND),
    ("run", COMMAND),
    (
        "powershell",
        &[
            ("command", Field("script")),
            ("timeout", Time("timeout_ms")),
            ("timeout_seconds", Seconds("timeout_ms")),
            ("run_in_background", BACKGROUND),
            ("is_background", BACKGROUND),
        ],
    ),
    (
        "web_fetch",
        &[
            ("uri", Field("url")),
            ("link", Field("url")),
            ("prompt", Ignored),
            ("format", Ignored),
            ("timeout", Ignored),
            ("max_length", Ignored),
            ("raw", Ignored),
        ],
    ),
    (
        "web_search",
        &[
            ("q", Field("query")),
            ("search_term", Field("query")),
            ("num_results", Field("limit")),
            ("max_results", Field("limit")),
            ("count", Field("limit")),
            (
                "allowed_domains",
                Unmet("allowed_domains was ignored: put `site:NAME` into the query."),
            ),
            (
                "blocked_domains",
                Unmet("blocked_domains was ignored: put `-site:NAME` into the query."),
            ),
        ],
    ),
    ("history_search", &[("query", Field("keyword")), ("pattern", Field("keyword"))]),
    ("memory_search", &[("keyword", Field("query")), ("max_results", Field("limit"))]),
    (
        "memory_add",
        &[("fact", Field("text")), ("content", Field("text")), ("memory", Field("text"))],
    ),
    (
        "skill_activate",
        &[
            ("skill", Field("name")),
            ("skill_name", Field("name")),
            ("command", Field("name")),
            ("args", Field("arguments")),
        ],
    ),
    (
        "git_diff",
        &[("cached", Field("staged")), ("unified", Field("context")), ("target", Ignored)],
    ),
    ("git_log", &[("max_count", Field("limit")), ("count", Field("limit")), ("n", Field("limit"))]),
    ("git_show", &[("commit", Field("ref")), ("revision", Field("ref")), ("rev", Field("ref"))]),
    ("git_add", &[("files", Field("paths")), ("path", Field("paths"))]),
];

const EDIT: Words = &[
    ("old_str", Field("old_string")),
    ("old_text", Field("old_string")),
    ("find", Field("old_string")),
    ("search", Field("old_string")),
    ("before", Field("old_string")),
    ("new_str", Field("new_string")),
    ("new_text", Field("new_string")),
    ("replace", Field("new_string")),
    ("replacement", Field("new_string")),
    ("after", Field("new_string")),
    ("allow_multiple", Field("replace_all")),
];

/// The meaning of a field name at a place of a tool's arguments; `None` for unknown names.
pub(crate) fn meaning(place: &str, said: &str) -> Option<ArgMeaning> {
    let words = WORDS.iter().find(|(of, _)| *of == place).map_or(&[] as Words, |(_, words)| words);
    let same = |word: &&(&str, ArgMeaning)| match word.0.starts_with('-') || said.starts_with('-') {
        // -A and -a are two words.
        true => word.0 == said,
        false => fold(word.0) == fold(said),
    };
    let own = words.iter().find(same).map(|(_, means)| *means);
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
