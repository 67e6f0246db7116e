//! Variables that can be set without changing which programs run, and those that name programs.

use crate::shell::script::ArgWord;

/// Variables that programs read for how they speak: colours, language, how much they say.
const OUTPUT_VARIABLES: &[&str] = &[
    "CI",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLUMNS",
    "FORCE_COLOR",
    "LANG",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LC_NUMERIC",
    "LC_TIME",
    "LINES",
    "NO_COLOR",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "TZ",
];

/// Ends of names of variables that name a program or hold a text.
const RUN_LATER: &[&str] = &[
    "ASKPASS",
    "BROWSER",
    "COMMAND",
    "DIFF",
    "DIFFPROG",
    "EDITOR",
    "EXECUTABLE",
    "HELPER",
    "PAGER",
    "SHELL",
    "SSH",
    "VISUAL",
];

/// True if a program may run what this variable holds.
pub(crate) fn names_a_program(name: &str) -> bool {
    RUN_LATER.iter().any(|end| name.ends_with(end))
}

/// True if a program may be given this variable: its name is known to be harmless, and its value
/// names no file. A language must be UTF-8: with another character set, a shell could read other
/// letters in the rest of the text than this parser does.
pub(crate) fn is_safe_prefix(name: &str, value: &ArgWord) -> bool {
    let plain = |text: &str| {
        text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.,=:@+-".contains(&byte))
    };
    let language = name == "LANG" || name.starts_with("LC_");
    let known = |text: &str| match text.split_once('.') {
        Some((_, set)) => set.eq_ignore_ascii_case("utf-8") || set.eq_ignore_ascii_case("utf8"),
        // Without a set of its own a language has that of its old days.
        None => matches!(text, "" | "C" | "POSIX"),
    };
    OUTPUT_VARIABLES.contains(&name)
        && value.known().is_some_and(|text| plain(text) && (!language || known(text)))
}

/// True if a loop variable of this name stays in the shell: no program and no shell reads it, and
/// it is not exported.
pub(crate) fn is_safe_loop_variable(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        && name.starts_with(|c: char| c.is_ascii_lowercase())
}
