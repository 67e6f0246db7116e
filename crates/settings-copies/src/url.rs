//! Names, passwords and tokens in URLs: `https://NAME:PASSWORD@HOST/`. For all formats of settings.

use std::ops::Range;

/// Range of the first sign-in in a URL of the text, including its `@`.
fn sign_in(text: &str) -> Option<Range<usize>> {
    let mut from = 0;
    while let Some(at) = text.get(from..)?.find("://") {
        let (scheme, begin) = (text.get(..from + at)?, from + at + 3);
        let rest = text.get(begin..)?;
        let ends = |c: char| c.is_whitespace() || "/?#\"'<>,;\\".contains(c);
        let authority = rest.find(ends).map_or(rest, |end| rest.get(..end).unwrap_or(rest));
        if let Some(end) = authority.rfind('@') {
            // In an ssh URL the name is not a token: ssh uses a key.
            let only_a_name = scheme.ends_with("ssh") && !authority.get(..end)?.contains(':');
            if !only_a_name {
                return Some(begin..begin + end + 1);
            }
        }
        from = begin;
    }
    None
}

/// True if a URL in this text has a sign-in.
pub(crate) fn signs_in(text: &str) -> bool {
    sign_in(text).is_some()
}

/// The text without sign-ins in URLs; `None` if it has none.
pub(crate) fn without_sign_in(text: &str) -> Option<String> {
    let mut clean = text.to_owned();
    while let Some(range) = sign_in(&clean) {
        clean.replace_range(range, "");
    }
    (clean != text).then_some(clean)
}

/// The value of such a key without sign-ins; `None` if it has none. A proxy may have no scheme;
/// everything up to the last `@` is its sign-in.
pub(crate) fn without_sign_in_of(key: &str, value: &str) -> Option<String> {
    let key = key.to_ascii_lowercase();
    let is_list = ["noproxy", "no-proxy", "no_proxy"].iter().any(|name| key.ends_with(name));
    let clean = without_sign_in(value);
    if is_list || !key.ends_with("proxy") {
        return clean;
    }
    let rest = clean.as_deref().unwrap_or(value);
    let Some((before, host)) = rest.rsplit_once('@') else { return clean };
    let scheme = before.split_once("://").map(|(scheme, _)| format!("{scheme}://"));
    Some(format!("{}{}", scheme.unwrap_or_default(), host).replace(['"', '\''], ""))
}

/// The text without words that are URLs with tokens in path or query; `None` if it has none.
pub(crate) fn without_tokens(text: &str) -> Option<String> {
    if !config::names_token(text) {
        return None;
    }
    let words = text.split_whitespace().filter(|word| !config::names_token(word));
    Some(words.collect::<Vec<_>>().join(" "))
}

/// True if a text such as options, headers or program arguments may contain a secret.
pub(crate) fn carries_key(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let mut words = lower.split(|c: char| !c.is_ascii_alphanumeric());
    CARRIERS.iter().any(|carrier| lower.contains(carrier))
        || words.any(|word| ["key", "auth", "pass"].contains(&word))
        || config::assigns_secret(text)
        || signs_in(text)
        || config::is_sign_in(text)
        || config::names_token(text)
}
const CARRIERS: [&str; 11] = [
    "token",
    "secret",
    "password",
    "passwd",
    "sshpass",
    "credential",
    "apikey",
    "authorization",
    "bearer",
    "extraheader",
    "cookie",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_s_sign_in_needs_no_scheme() {
        for (key, value, clean) in [
            ("http.proxy", "ann:pw@proxy:3128", Some("proxy:3128")),
            ("http.proxy", "http://ann:p/w@proxy:3128", Some("http://proxy:3128")),
            ("https-proxy", "\"ann:pw@proxy:3128\"", Some("proxy:3128")),
            ("proxy", "http://ann:pw@proxy:3128", Some("http://proxy:3128")),
            ("PROXY", "pw@proxy", Some("proxy")),
            ("proxy", "proxy:3128", None),
            ("noproxy", "a.example,@b", None),
            ("registry", "https://npm.example/@scope", None),
        ] {
            assert_eq!(without_sign_in_of(key, value).as_deref(), clean, "{key}={value}");
        }
    }

    #[test]
    fn words_of_programs_that_may_be_keys_are_seen() {
        for (text, carries) in [
            ("-c http.extraHeader='X: y' fetch", true),
            ("publish --token abc", true),
            ("sshpass -p x ssh h", true),
            ("curl -u ann:pw@h", true),
            ("log --oneline --author=ann", false),
            ("build --release", false),
            ("https://github.com/org/x", false),
        ] {
            assert_eq!(carries_key(text), carries, "{text}");
        }
    }

    #[test]
    fn sign_ins_are_found_and_taken_out_of_addresses() {
        for (text, clean) in [
            ("https://ann:pw@pkgs.example.com/simple", Some("https://pkgs.example.com/simple")),
            ("https://ghp_token@github.com/", Some("https://github.com/")),
            ("http://a%40b:p@proxy:3128", Some("http://proxy:3128")),
            ("http://ann:p@w@proxy:3128", Some("http://proxy:3128")),
            ("a https://x@h/ b http://y:z@i", Some("a https://h/ b http://i")),
            ("ssh://git:pw@host/x", Some("ssh://host/x")),
            ("ssh://git@host/x https://t@h", Some("ssh://git@host/x https://h")),
            ("git+ssh://git@host/x", None),
            ("git@github.com:", None),
            ("https://registry.npmjs.org/@scope/pkg", None),
            ("https://github.com/", None),
            ("ann@example.com", None),
        ] {
            assert_eq!(without_sign_in(text).as_deref(), clean, "{text}");
            assert_eq!(signs_in(text), clean.is_some(), "{text}");
        }
    }
}
