//! Keys and secrets of known shapes in a text. Pure.

use regex::{Captures, Regex};

/// A shape of secrets.
struct SecretShape {
    /// What it is, in the place of the secret.
    name: &'static str,
    /// The groups `before` and `after` stay, where there are any.
    pattern: &'static str,
}

const fn shape(name: &'static str, pattern: &'static str) -> SecretShape {
    SecretShape { name, pattern }
}

/// In this order: a key file first, since others would mask a part of it.
const SHAPES: [SecretShape; 11] = [
    shape(
        "private key",
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|\z)",
    ),
    shape(
        "value of a secret",
        r#"(?i)(?P<before>[a-z0-9_.-]*(?:passw(?:or)?d|secret|token|api_?-?key|access_?key)[a-z0-9_.-]*\\?["']?[ \t]*[:=][ \t]*\\?["']?)(?:[^ \t\r\n"',;\\<>\[(]|\\u[0-9a-f]{4}){6,}"#,
    ),
    shape(
        "password of an address",
        r#"(?i)(?P<before>[a-z][a-z0-9+.-]*://[^ \t\r\n/:@"']*:)[^ \t\r\n/@"']+(?P<after>@)"#,
    ),
    shape("bearer token", r"(?i)(?P<before>bearer[ \t]+)[a-z0-9._~+/-]{12,}=*"),
    shape("token", r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    shape(
        "API key",
        r"(?-u:\b)(?:(?:sk|rk|pk|xai|gsk|hf|npm|pypi)[-_][A-Za-z0-9_-]{16,}|AIza[A-Za-z0-9_-]{30,})",
    ),
    shape("GitHub token", r"(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{22,})"),
    shape("GitLab token", r"gl(?:pat|dt|rt|cbt|ptt)-[A-Za-z0-9_-]{20,}"),
    shape("Slack token", r"xox[abeprs]-[A-Za-z0-9-]{10,}"),
    shape("Slack address", r"https://hooks\.slack\.com/services/[A-Za-z0-9/]+"),
    shape("AWS key", r"(?-u:\b)(?:AKIA|ASIA)[A-Z0-9]{16}(?-u:\b)"),
];

/// Masks texts and counts what it masked.
#[derive(Debug)]
pub struct Redactor {
    shapes: Vec<(&'static str, Regex)>,
    masked: usize,
}

impl Redactor {
    /// One that masks all known shapes.
    ///
    /// # Errors
    /// A shape is no pattern: a bug.
    pub fn new() -> Result<Self, regex::Error> {
        let shapes = SHAPES.iter().map(|shape| Ok((shape.name, Regex::new(shape.pattern)?)));
        Ok(Self { shapes: shapes.collect::<Result<_, regex::Error>>()?, masked: 0 })
    }

    /// One that masks nothing.
    #[must_use]
    pub fn of_nothing() -> Self {
        Self { shapes: Vec::new(), masked: 0 }
    }

    /// How many secrets were masked so far.
    #[must_use]
    pub fn masked(&self) -> usize {
        self.masked
    }

    /// True if a text has a secret.
    #[must_use]
    pub fn finds(&self, text: &str) -> bool {
        self.shapes.iter().any(|(_, pattern)| pattern.is_match(text))
    }

    /// The text with each secret replaced by what it was.
    pub fn mask(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, pattern) in &self.shapes {
            let mut count = 0;
            let masked = pattern.replace_all(&text, |found: &Captures<'_>| {
                count += 1;
                let group = |name| found.name(name).map_or("", |group| group.as_str());
                format!("{}[redacted: {name}]{}", group("before"), group("after"))
            });
            if count > 0 {
                text = masked.into_owned();
                self.masked += count;
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn known_shapes_are_masked_and_other_words_stay() {
        let long = "a1B2".repeat(12);
        for (secret, name) in [
            (format!("sk-ant-api03-{long}"), "API key"),
            (format!("sk-proj-{long}"), "API key"),
            (format!("AIza{long}"), "API key"),
            (format!("ghp_{long}"), "GitHub token"),
            (format!("github_pat_{long}"), "GitHub token"),
            (format!("glpat-{long}"), "GitLab token"),
            ("xoxb-123456789012-abcdef".to_owned(), "Slack token"),
            ("AKIAIOSFODNN7EXAMPLE".to_owned(), "AWS key"),
            (format!("eyJ{long}.eyJ{long}.{long}"), "token"),
        ] {
            let mut redactor = Redactor::new().unwrap();
            let masked = redactor.mask(&format!("export it: ({secret}) and go on"));
            assert_eq!(masked, format!("export it: ([redacted: {name}]) and go on"));
            assert_eq!(redactor.masked(), 1, "{secret}");
        }
        let mut redactor = Redactor::new().unwrap();
        for same in [
            "a task of the token bucket",
            "tokens: 12",
            "skip-this-very-long-name-of-a-branch",
            "https://example.org:8080/path?x=1",
            "let secret = read()?;",
            "the password is asked for",
        ] {
            assert_eq!(redactor.mask(same), same);
        }
        assert_eq!(redactor.masked(), 0);
    }

    #[test]
    fn what_stands_around_a_secret_stays() {
        let mut redactor = Redactor::new().unwrap();
        for (text, masked) in [
            ("DB_PASSWORD=hunter2hunter2 make", "DB_PASSWORD=[redacted: value of a secret] make"),
            (
                r#"{"command":"curl -H \"X-Api-Key: abcdef123\" u"}"#,
                r#"{"command":"curl -H \"X-Api-Key: [redacted: value of a secret]\" u"}"#,
            ),
            (
                "git clone https://ann:s3cr3t@example.org/x.git",
                "git clone https://ann:[redacted: password of an address]@example.org/x.git",
            ),
            // A control code in JSON belongs to the value.
            (r"PASSWORD=abcdefgh\u0007ijk make", "PASSWORD=[redacted: value of a secret] make"),
            (
                "Authorization: Bearer abcdefghijklmnop==",
                "Authorization: Bearer [redacted: bearer token]",
            ),
            (
                "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----\nx",
                "[redacted: private key]\nx",
            ),
            ("-----BEGIN RSA PRIVATE KEY-----\ncut off", "[redacted: private key]"),
        ] {
            assert_eq!(redactor.mask(text), masked);
        }
        assert_eq!(redactor.masked(), 7);
        assert_eq!(redactor.mask("token=[redacted: API key]"), "token=[redacted: API key]");
    }
}
