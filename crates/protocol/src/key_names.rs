//! Names of files and directories in which programs keep keys, below a home. `config` makes paths of them,
//! and `approval` looks for them in the forms of servers.

/// Below a home: files and directories that hold keys or sign-ins.
pub const IN_HOME: [&str; 20] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".cargo",
    ".password-store",
    ".mozilla",
    ".thunderbird",
    ".terraform.d",
    ".vault-token",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".git-credentials",
    ".claude",
    ".codex",
    ".gemini",
];
/// Below `~/.config`, or where it was moved to.
pub const IN_CONFIG: [&str; 7] =
    ["gcloud", "gh", "git", "op", "google-chrome", "chromium", "containers"];
/// Below `~/.local/share`, or where it was moved to.
pub const IN_DATA: [&str; 2] = ["keyrings", "kwalletd"];

/// True for a text that names a place of keys, such as `~/.ssh/id_ed25519`.
#[must_use]
pub fn names_key_file(text: &str) -> bool {
    let text = text.to_lowercase();
    let names = |name: &str, before: &str| {
        text.match_indices(name).any(|(at, _)| {
            let (front, rest) = (&text[..at], &text[at + name.len()..]);
            // `.npmrc-example` and `a.netrc` are other files.
            let is_whole = !rest.starts_with(|c: char| c.is_alphanumeric() || "-_".contains(c))
                && !front.ends_with(|c: char| c.is_alphanumeric() || "-_.".contains(c));
            is_whole && front.ends_with(before)
        })
    };
    IN_HOME.iter().any(|name| names(name, ""))
        || IN_CONFIG.iter().any(|name| names(name, ".config/"))
        || IN_DATA.iter().any(|name| names(name, ".local/share/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_names_a_place_of_keys() {
        for text in [
            "contents of ~/.ssh/id_rsa",
            "$HOME/.NETRC",
            ".aws/credentials",
            "~/.config/gh",
            "a/.npmrc",
        ] {
            assert!(names_key_file(text), "{text}");
        }
        for text in ["gh", "git", "config/git", "a.ssh", ".sshd", ".npmrc-example", "the ssh host"]
        {
            assert!(!names_key_file(text), "{text}");
        }
    }
}
