//! The text of a hook that runs after edits: files, package, command.

use protocol::hook::EditHook;

/// An example of a verifier, for error messages.
pub(crate) const VERIFIER: &str = "\"*.rs in Cargo.toml: cargo check --offline\"";

/// An example of a formatter, for error messages.
pub(crate) const FORMATTER: &str =
    "\"*.rs: rustfmt --edition 2024\", \"*.js: prettier --stdin-filepath {path}\"";

/// A formatter: its command is words, which reach no shell.
pub(crate) fn read_formatter(text: &str) -> Option<EditHook> {
    read(text).filter(|hook| shlex::split(&hook.command).is_some_and(|words| !words.is_empty()))
}

/// Parses `FILES: COMMAND` or `FILES in MARKER: COMMAND`; the command begins after the first colon.
pub(crate) fn read(text: &str) -> Option<EditHook> {
    let (of, command) = text.split_once(':')?;
    let (files, package) = match of.trim().split_once(" in ") {
        Some((files, marker)) => (files.trim(), Some(marker.trim())),
        None => (of.trim(), None),
    };
    let name = |text: &str| {
        !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || "/*?[]{}".contains(c))
    };
    let fits = name(files.strip_prefix('*').unwrap_or(files)) && package.is_none_or(name);
    let command = command.trim();
    (fits && !command.is_empty()).then(|| EditHook {
        files: files.to_owned(),
        package: package.map(str::to_owned),
        command: command.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn files_a_package_and_a_command() {
        let full = read("*.rs in Cargo.toml: cargo check -p a::b").unwrap();
        let parts = (full.files.as_str(), full.package.as_deref(), full.command.as_str());
        assert_eq!(parts, ("*.rs", Some("Cargo.toml"), "cargo check -p a::b"));
        let short = read("Makefile: make -n").unwrap();
        assert_eq!((short.files.as_str(), short.package), ("Makefile", None));
        for wrong in ["", "*.rs", "*.rs:", ": make", "*: make", "src/*.rs: make", "*.rs in : make"]
        {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        assert!(read_formatter("*.c: clang-format '--style={BasedOnStyle: LLVM}'").is_some());
        assert_eq!(read_formatter("*.c: clang-format '--style"), None, "a quote stays open");
    }
}
