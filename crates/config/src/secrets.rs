//! Finds keys, passwords and tokens in texts: by a name ([`sounds_secret`]), by an assignment to such a name
//! (`assigns_secret`), in an address (`address`), or by their shape (`shape`). Pure.
//!
//! Used for copies of settings, variables of commands, configured MCP servers and exported sessions.

mod address;
mod shape;

use crate::credential_paths::names_credential_path;
pub use address::{is_sign_in, names_token, signs_in, without_sign_in, without_tokens};
pub use shape::Redactor;

/// How a word belongs to a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SecretWord {
    /// Anywhere in the name: `NPMTOKEN`, `apikey`.
    Part,
    /// At the end of a word: `SSHPASS`, `SIGNINGKEY`.
    End,
    /// As a whole word.
    Whole,
}
use SecretWord::{End, Part, Whole};

/// Words in names of what holds keys or points to them.
const WORDS: [(&str, SecretWord); 27] = [
    ("TOKEN", Part),
    ("SECRET", Part),
    ("PASSW", Part),
    ("PASSPHRASE", Part),
    ("APIKEY", Part),
    ("CREDENTIAL", Part),
    ("EXTRAHEADER", Part),
    ("PASS", End),
    ("KEY", End),
    ("PWD", End),
    ("KEYS", Whole),
    ("CRED", Whole),
    ("CREDS", Whole),
    ("AUTH", Whole),
    ("OAUTH", Whole),
    ("AUTHORIZATION", Whole),
    ("XAUTHORITY", Whole),
    ("COOKIE", Whole),
    ("COOKIES", Whole),
    ("PAT", Whole),
    ("SESSION", Whole),
    ("SESSIONS", Whole),
    ("JWT", Whole),
    ("BEARER", Whole),
    ("DSN", Whole),
    ("WEBHOOK", Whole),
    ("NETRC", Whole),
];
/// Words of options and headers with keys. Other words of a command line may be anything: `--author=pat`.
const OF_PROGRAMS: [&str; 8] =
    ["KEY", "AUTH", "PASS", "SSHPASS", "AUTHORIZATION", "BEARER", "COOKIE", "COOKIES"];
/// Words with such an ending and another meaning, among them two directories of the shell.
const NO_SECRETS: [&str; 6] = ["OLDPWD", "BYPASS", "COMPASS", "MONKEY", "TURKEY", "HOTKEY"];
/// How names begin whose session is one at a desktop.
const OF_DESKTOPS: [&str; 2] = ["XDG_SESSION_", "DESKTOP_SESSION"];

/// True if what has this name, such as a variable or a setting, holds a key or points to keys.
#[must_use]
pub fn sounds_secret(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let desktop = OF_DESKTOPS.iter().any(|begin| upper.starts_with(begin));
    // The shell's directory is the one name that is nothing but such a word.
    let is_free =
        |word: &str| NO_SECRETS.contains(&word) || upper == "PWD" || (desktop && word == "SESSION");
    let is_secret = |word: &str| {
        let word = word.trim_end_matches(|c: char| c.is_ascii_digit());
        let fits = |(secret, how): &(&str, SecretWord)| match how {
            Part => false,
            End => word.ends_with(secret),
            Whole => word == *secret,
        };
        !is_free(word) && WORDS.iter().any(fits)
    };
    names_credential_path(name)
        || upper.split(|c: char| !c.is_ascii_alphanumeric()).any(is_secret)
        || WORDS.iter().any(|(part, how)| *how == Part && upper.contains(part))
}

/// Variables with addresses of downloads: a query or a token-like path segment in them may hold a
/// key.
const DOWNLOADS: [&str; 4] = ["GOPROXY", "GOSUMDB", "RUSTUP_DIST_SERVER", "RUSTUP_UPDATE_ROOT"];

/// True if the value of this variable contains a key: a sign-in before a host, a token in an
/// address, or a value assigned to the name of a key.
#[must_use]
pub fn holds_secret(name: &str, value: &str) -> bool {
    // `sr@latin` is a language.
    let signs_in = signs_in(value) || (name != "LANGUAGE" && is_sign_in(value));
    let words = || value.split_whitespace();
    let gives = |word: &str| word == "--" || (word.contains('=') && !word.starts_with('-'));
    signs_in
        || assigns_secret(value)
        // make puts all variables of its command line there, under any names.
        || (name == "MAKEFLAGS" && words().any(gives))
        || (DOWNLOADS.contains(&name) && names_token(value))
}

/// True if this text assigns a value to the name of a key, as in `--token=x`, `Password=x;` and
/// `?api_key=x`.
fn assigns_secret(text: &str) -> bool {
    let ends = |c: char| c.is_whitespace() || ";&?,\"'".contains(c);
    text.split(ends).filter_map(|part| part.rsplit_once('=')).any(|(names, value)| {
        let of_make = names.ends_with("-jobserver-auth");
        !value.is_empty() && !of_make && names.split('=').any(sounds_secret)
    })
}

/// True if an address or a sign-in in this text may hold a secret.
#[must_use]
pub fn address_holds_secret(text: &str) -> bool {
    signs_in(text) || is_sign_in(text) || names_token(text)
}

/// True if a text such as options, headers or program arguments may contain a secret.
#[must_use]
pub fn carries_secret(text: &str) -> bool {
    let upper = text.to_ascii_uppercase();
    let mut words = upper.split(|c: char| !c.is_ascii_alphanumeric());
    WORDS.iter().any(|(part, how)| *how == Part && upper.contains(part))
        || words.any(|word| OF_PROGRAMS.contains(&word))
        || assigns_secret(text)
        || address_holds_secret(text)
}

/// True for a file with a private key, such as one of a certificate.
#[must_use]
pub fn holds_private_key(file: &[u8]) -> bool {
    file.windows(12).any(|part| part == b"PRIVATE KEY-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_programs_that_may_be_keys_are_seen() {
        for (text, carries) in [
            ("-c http.extraHeader='X: y' fetch", true),
            ("publish --token abc", true),
            ("sshpass -p x ssh h", true),
            ("curl -u ann:pw@h", true),
            ("log --oneline --author=ann", false),
            ("log --author=pat", false),
            ("/home/pat/bin/clang", false),
            ("-L /srv/session/lib", false),
            ("merge-keys %O %A %B", false),
            ("run --pat=x", true),
            ("-H 'Cookie: x'", true),
            ("build --release", false),
            ("ls $(pwd)", false),
            ("https://github.com/org/x", false),
        ] {
            assert_eq!(carries_secret(text), carries, "{text}");
        }
    }
}
