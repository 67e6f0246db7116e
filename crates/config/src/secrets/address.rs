//! Keys in addresses: sign-ins before a host (`https://NAME:PASSWORD@HOST/`), and tokens in paths and questions.

use std::ops::Range;

/// True if an address in this text has user information before its host, as in
/// `https://user:token@host`.
#[must_use]
pub fn signs_in(text: &str) -> bool {
    let ends = |c: char| c == '/' || c == ',' || c.is_whitespace();
    text.match_indices("://").any(|(at, mark)| {
        let authority = text[at + mark.len()..].split(ends).next().unwrap_or_default();
        let user = authority.rsplit_once('@').map(|(user, _)| user);
        // Quotes and tags end an address too; a password may have them.
        let address = authority.split(|c| "?#\"'<>;\\".contains(c)).next().unwrap_or_default();
        user.is_some_and(|user| !is_name(&text[..at], user)) || is_begun_sign_in(address)
    })
}

/// True for the name before the host of an ssh address: it is no token, since ssh uses a key.
fn is_name(scheme: &str, user: &str) -> bool {
    scheme.ends_with("ssh") && !user.contains(':')
}

/// Range of the first sign-in in an address of the text, including its `@`.
fn sign_in(text: &str) -> Option<Range<usize>> {
    let ends = |c: char| c.is_whitespace() || "/?#\"'<>,;\\".contains(c);
    text.match_indices("://").find_map(|(at, mark)| {
        let begin = at + mark.len();
        let authority = text[begin..].split(ends).next().unwrap_or_default();
        let (user, _) = authority.rsplit_once('@')?;
        (!is_name(&text[..at], user)).then(|| begin..begin + user.len() + 1)
    })
}

/// True if the colon before the first slash is followed by anything but a port: the start of a
/// password that contains a slash.
fn is_begun_sign_in(authority: &str) -> bool {
    authority.rsplit_once(':').is_some_and(|(_, port)| {
        let is_port = port.chars().all(|c| c.is_ascii_digit());
        !(is_port || port.starts_with(['$', '{']) || authority.starts_with('['))
    })
}

/// The text without sign-ins in addresses; `None` if it has none.
fn without_sign_ins(text: &str) -> Option<String> {
    let mut clean = text.to_owned();
    while let Some(range) = sign_in(&clean) {
        clean.replace_range(range, "");
    }
    (clean != text).then_some(clean)
}

/// The value of such a key without sign-ins; `None` if it has none. A proxy may have no scheme;
/// everything up to the last `@` is its sign-in.
#[must_use]
pub fn without_sign_in(key: &str, value: &str) -> Option<String> {
    let key = key.to_ascii_lowercase();
    let is_list = ["noproxy", "no-proxy", "no_proxy"].iter().any(|name| key.ends_with(name));
    let clean = without_sign_ins(value);
    if is_list || !key.ends_with("proxy") {
        return clean;
    }
    let rest = clean.as_deref().unwrap_or(value);
    let Some((before, host)) = rest.rsplit_once('@') else { return clean };
    let scheme = before.split_once("://").map(|(scheme, _)| format!("{scheme}://"));
    Some(format!("{}{}", scheme.unwrap_or_default(), host).replace(['"', '\''], ""))
}

/// Names before a colon that no password follows: `npm:package@1`, `mailto:ann@example.com`.
const NO_NAMES: [&str; 2] = ["npm", "mailto"];

/// True if a word of this text is a sign-in without a scheme, such as `ann:password@proxy:3128`. A
/// list of paths, an image with its digest and `git@host:path` do not count.
#[must_use]
pub fn is_sign_in(text: &str) -> bool {
    let ends = |c: char| c.is_whitespace() || "\"'<>".contains(c);
    text.split(ends).any(|word| {
        let Some((before, host)) = word.rsplit_once('@') else { return false };
        let Some((name, password)) = before.split_once(':') else { return false };
        let is_digest = host.starts_with("sha256:") || host.starts_with("sha512:");
        let is_path = name.contains('/') || password.starts_with("//");
        let is_remote = name.contains('@') && password.contains('/');
        let is_none = name.is_empty() || password.is_empty() || before.ends_with(':');
        !(is_digest || is_path || is_remote || is_none || NO_NAMES.contains(&name))
    })
}

/// True if an address in this text has a query, or a path segment that looks like a token.
#[must_use]
pub fn names_token(text: &str) -> bool {
    let ends = |c: char| c.is_whitespace() || "\"'<>,;|".contains(c);
    text.split(ends).filter_map(|word| word.split_once("://")).any(|(scheme, rest)| {
        let (place, question) = rest.split_once(['?', '#']).unwrap_or((rest, ""));
        let mut parts = place.split('/');
        let host = parts.next().unwrap_or_default().to_ascii_lowercase();
        let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
        let of_host = match host.as_str() {
            "dl.cloudsmith.io" => !parts.first().is_none_or(|at| ["public", "basic"].contains(at)),
            // The owner alone, or the token before the owner.
            host if host.ends_with(".fury.io") => {
                parts.get(1).is_some_and(|second| !["-", "simple"].contains(second))
            }
            _ => false,
        };
        let of_host = of_host || (!host.contains('@') && is_begun_sign_in(&host));
        let is_file = scheme.ends_with("file");
        !is_file && (!question.is_empty() || of_host || parts.into_iter().any(is_token))
    })
}

/// True if a path segment is long and mixes letters and digits in a way that names do not.
/// `cuda12-wheels` counts as a name: words with a number at the end.
fn is_token(part: &str) -> bool {
    let has = |kind: fn(&char) -> bool| part.chars().any(|c| kind(&c));
    let mixes = has(char::is_ascii_alphabetic) && has(char::is_ascii_digit);
    let is_name = |word: &str| {
        let letters = word.trim_end_matches(|c: char| c.is_ascii_digit());
        let plain = letters.chars().all(|c| c.is_ascii_alphabetic());
        let digits = word.len() - letters.len();
        plain && (digits == 0 || letters.is_empty() || (letters.len() <= 11 && digits <= 4))
    };
    part.len() >= 16 && mixes && !part.split(['-', '_', '.', '@', '+']).all(is_name)
}

/// The text without words that are addresses with tokens in path or query; `None` if it has none.
#[must_use]
pub fn without_tokens(text: &str) -> Option<String> {
    if !names_token(text) {
        return None;
    }
    let words = text.split_whitespace().filter(|word| !names_token(word));
    Some(words.collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sign_ins_without_a_scheme_are_known_from_paths_and_images() {
        for (text, is) in [
            ("root:s3cret@tcp(db)/x", true),
            ("user:pw@proxy:3128", true),
            ("ann@corp.example:pw@proxy:3128", true),
            ("jdbc:oracle:thin:scott/tiger@db:1521/x", true),
            ("root:/s3=c,ret@tcp(db)", true),
            ("-x ann:p@proxy", true),
            ("proxy:3128", false),
            ("jdbc:oracle:thin:@db:1521/x", false),
            ("git@github.com:org/repo@v1", false),
            ("postgres:15@sha256:0a1b", false),
            ("host:5000/image:1@sha256:0a1b", false),
            ("/usr/bin:/opt/python@3/bin", false),
            ("./bin:/opt/python@3/bin", false),
            ("https://registry.example/@scope/x", false),
            ("npm:package@1.2", false),
            ("de_DE.UTF-8@euro", false),
        ] {
            assert_eq!(is_sign_in(text), is, "{text}");
        }
    }

    #[test]
    fn tokens_in_paths_and_questions_are_known_from_names() {
        for (text, names) in [
            ("https://dl.cloudsmith.io/a8Kd92kdkdjK3x0q/corp/r/python/simple/", true),
            ("https://dl.cloudsmith.io/TOKEN/corp/r/", true),
            ("https://npm-proxy.fury.io/TOKEN/ann/", true),
            ("https://packagecloud.io/priv/0123456789abcdef01/ann/r/simple", true),
            ("https://h.example/s3cr3t-t0ken-of-mine/simple", true),
            ("https://h.example/hunterhunter2024/", true),
            ("https://h.example/0a1b2c3d-0000-1111-2222-333344445555/", true),
            ("https://one.example,https://h.example/?token=x", true),
            ("https://h.example/simple?x", true),
            ("sparse+https://h.example/a8Kd92kdkdjK3x0q/", true),
            ("https://h.example/#a8Kd", true),
            ("https://ann:p/w@h.example/simple", true),
            ("https://ann:pw@h.example/simple", false),
            ("https://h.example:8443/simple", false),
            ("https://[::1]:8443/simple", false),
            ("https://dl.cloudsmith.io/public/corp/r/python/simple/", false),
            ("https://npm.fury.io/ann/", false),
            ("https://repo.example/artifactory/api/npm/npm-virtual/", false),
            ("https://gitlab.example/api/v4/projects/1234/packages/pypi/simple", false),
            ("https://pypi.org/simple", false),
            ("https://x.example/jax-releases/jax_cuda12_releases.html", false),
            ("https://download.pytorch.org/whl/cu121", false),
            ("sparse+https://index.crates.io/", false),
            ("https://github.com/rust-lang/crates.io-index", false),
            ("https://x.d.codeartifact.us-east-1.amazonaws.com/npm/r2/", false),
            ("file:///srv/a8Kd92kdkdjK3x0q", false),
            ("a8Kd92kdkdjK3x0q", false),
        ] {
            assert_eq!(names_token(text), names, "{text}");
        }
    }

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
            assert_eq!(without_sign_in(key, value).as_deref(), clean, "{key}={value}");
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
            ("<url>http://nexus.corp:8081</url>", None),
            ("curl -x 'http://proxy:3128'", None),
        ] {
            assert_eq!(without_sign_ins(text).as_deref(), clean, "{text}");
            assert_eq!(signs_in(text), clean.is_some(), "{text}");
        }
    }
}
