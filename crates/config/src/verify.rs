//! Verifiers as they are written: which files, which package, which command.

use protocol::session::Verifier;

/// Written so, for people who wrote something else.
pub(crate) const EXAMPLE: &str = "\"*.rs in Cargo.toml: cargo check --offline\"";

/// `FILES: COMMAND` or `FILES in MARKER: COMMAND`; the first colon ends what stands before.
pub(crate) fn read(text: &str) -> Option<Verifier> {
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
    (fits && !command.is_empty()).then(|| Verifier {
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
    }
}
