//! Secrets of a request that must not appear in any text: the key, and configured passwords and
//! headers. Servers and gateways repeat them in refusals. For `http`, `request` and `redactor`.
//!
//! Found as it is, percent-encoded, escaped as in JSON, and in base64 at any place of a longer text.
//! A part of a secret and other encodings are not found.

use crate::key::ApiKey;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use protocol::provider::ModelServer;
use reqwest::Url;
use std::fmt;
use zeroize::Zeroizing;

/// Shorter values are ordinary words (`none`, `dummy`) and are not redacted.
const SHORTEST: usize = 6;
/// The same limit for an answer, where redacting an ordinary word would change the model's output.
const SHORTEST_IN_ANSWER: usize = 12;
/// Headers that hold nothing secret.
const PUBLIC: [&str; 9] = [
    "anthropic-beta",
    "anthropic-version",
    "openai-beta",
    "openai-organization",
    "openai-project",
    "http-referer",
    "referer",
    "user-agent",
    "x-title",
];

/// One spelling of a secret.
struct SecretSpelling {
    bytes: Zeroizing<Vec<u8>>,
    /// The replacement text.
    blank: String,
    in_answers: bool,
}

/// All spellings of all secrets of a server.
pub(crate) struct Secrets {
    spellings: Vec<SecretSpelling>,
    /// For each byte: true if a spelling begins with it.
    begins: [bool; 256],
}

/// In which text is looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SecretContext {
    /// Messages for people.
    Words,
    /// The model's output.
    Answer,
}

/// Whether the text may continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum More {
    MayCome,
    Ended,
}

/// How a spelling compares to a text from some place on.
enum SpellingMatch {
    Not,
    /// The text ends within it.
    Begun,
    /// It ends before this place.
    Whole(usize),
}

impl Secrets {
    /// Of a recording.
    pub(crate) fn none() -> Self {
        Self { spellings: Vec::new(), begins: [false; 256] }
    }

    /// Of a server that is reached like this.
    pub(crate) fn of(server: &ModelServer, key: Option<&ApiKey>, proxy: Option<&str>) -> Self {
        let mut all = Self::none();
        if let Some(key) = key {
            all.add(key.expose(), "[the key]");
        }
        for (name, value) in &server.headers {
            if PUBLIC.iter().any(|public| name.eq_ignore_ascii_case(public)) {
                continue;
            }
            // Behind the scheme, as in `Bearer …`.
            let value = value.trim().rsplit(' ').next().unwrap_or_default();
            all.add(value, &format!("[the header {name}]"));
        }
        for (address, blank) in
            [(Some(server.base_url.as_str()), "[a password]"), (proxy, "[the proxy's password]")]
        {
            let url = address.and_then(|address| Url::parse(address.trim()).ok());
            if let Some(password) = url.as_ref().and_then(Url::password) {
                all.add(&decoded(password), blank);
            }
        }
        // The longest that fits is blanked.
        all.spellings.sort_by_key(|form| std::cmp::Reverse(form.bytes.len()));
        for form in &all.spellings {
            all.begins[usize::from(form.bytes[0])] = true;
        }
        if !all.spellings.is_empty() {
            all.begins[usize::from(b'%')] = true;
            all.begins[usize::from(b'\\')] = true;
        }
        all
    }

    fn add(&mut self, secret: &str, blank: &str) {
        if secret.len() < SHORTEST {
            return;
        }
        let in_answers = secret.len() >= SHORTEST_IN_ANSWER;
        let mut form = |bytes: Zeroizing<Vec<u8>>| {
            self.spellings.push(SecretSpelling { bytes, blank: blank.to_owned(), in_answers });
        };
        form(Zeroizing::new(secret.as_bytes().to_vec()));
        for engine in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
            for before in 0..3 {
                form(in_base64(engine, secret.as_bytes(), before));
            }
        }
    }

    /// The text without them.
    pub(crate) fn redact(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.redact_bytes(text.as_bytes())).into_owned()
    }

    /// The same of bytes.
    pub(crate) fn redact_bytes(&self, bytes: &[u8]) -> Vec<u8> {
        self.redact_prefix(bytes, SecretContext::Words, More::Ended).0
    }

    /// The bytes without them, and from where on they may be the beginning of one.
    pub(crate) fn redact_prefix(
        &self,
        bytes: &[u8],
        within: SecretContext,
        more: More,
    ) -> (Vec<u8>, usize) {
        let mut out = Vec::with_capacity(bytes.len());
        let (mut at, mut from) = (0, 0);
        while at < bytes.len() {
            if !self.begins[usize::from(bytes[at])] {
                at += 1;
                continue;
            }
            match self.found(&bytes[at..], within) {
                (SpellingMatch::Whole(length), blank) => {
                    out.extend_from_slice(&bytes[from..at]);
                    out.extend_from_slice(blank.as_bytes());
                    at += length;
                    from = at;
                }
                (SpellingMatch::Begun, _) if more == More::MayCome => break,
                (SpellingMatch::Begun | SpellingMatch::Not, _) => at += 1,
            }
        }
        out.extend_from_slice(&bytes[from..at]);
        (out, at)
    }

    /// The longest secret at the start of the text; otherwise, whether the text may be the start of
    /// one.
    fn found(&self, text: &[u8], within: SecretContext) -> (SpellingMatch, &str) {
        let mut begun = SpellingMatch::Not;
        for form in
            self.spellings.iter().filter(|form| form.in_answers || within == SecretContext::Words)
        {
            match form.compare(text) {
                SpellingMatch::Whole(length) => return (SpellingMatch::Whole(length), &form.blank),
                SpellingMatch::Begun => begun = SpellingMatch::Begun,
                SpellingMatch::Not => {}
            }
        }
        (begun, "")
    }
}

impl SecretSpelling {
    fn compare(&self, text: &[u8]) -> SpellingMatch {
        let mut at = 0;
        for wanted in self.bytes.iter() {
            match one(&text[at..], *wanted) {
                SpellingMatch::Whole(length) => at += length,
                not @ (SpellingMatch::Not | SpellingMatch::Begun) => return not,
            }
        }
        SpellingMatch::Whole(at)
    }
}

/// Compares the start of a text with this byte, plain or escaped.
fn one(text: &[u8], wanted: u8) -> SpellingMatch {
    let Some(first) = text.first() else { return SpellingMatch::Begun };
    if *first == wanted {
        return SpellingMatch::Whole(1);
    }
    let escapes = match first {
        b'%' => format!("%{wanted:02x}"),
        b'\\' if text.get(1) == Some(&wanted) => return SpellingMatch::Whole(2),
        b'\\' => format!("\\u00{wanted:02x}"),
        _ => return SpellingMatch::Not,
    };
    let shared = text.len().min(escapes.len());
    match text[..shared].eq_ignore_ascii_case(&escapes.as_bytes()[..shared]) {
        true if shared == escapes.len() => SpellingMatch::Whole(shared),
        true => SpellingMatch::Begun,
        false => SpellingMatch::Not,
    }
}

/// The base64 letters of a secret that do not depend on the bytes around it; `before` is its offset
/// in a group of three bytes.
fn in_base64(engine: &impl Engine, secret: &[u8], before: usize) -> Zeroizing<Vec<u8>> {
    let mut bytes = Zeroizing::new(vec![0; before]);
    bytes.extend_from_slice(secret);
    let encoded = Zeroizing::new(engine.encode(&*bytes));
    let (first, last) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
    Zeroizing::new(encoded.as_bytes()[first..last].to_vec())
}

/// A password as it was before it stood in an address.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let digits = behind.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let byte = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
        match (first, byte) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            _ => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets(…)")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;
    use protocol::provider::{Api, Auth};
    use std::io::Write;

    const KEY: &str = "sk-ant/1+x?4f1c";

    fn secrets(key: &str, headers: &[(&str, &str)], base_url: &str) -> Secrets {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(key.as_bytes()).unwrap();
        let headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let headers = headers.collect();
        let base_url = base_url.to_owned();
        let server =
            ModelServer { api: Api::Chat, base_url, auth: Auth::Bearer, headers, effort: None };
        let key = ApiKey::read(&file).unwrap();
        Secrets::of(&server, Some(&key), Some("http://ann:hunter%3222@proxy:1"))
    }

    #[test]
    fn a_key_is_found_in_every_spelling() {
        let secrets = secrets(KEY, &[], "http://a/");
        let percent: String = KEY.bytes().map(|byte| format!("%{byte:02X}")).collect();
        for (text, redacted) in [
            (format!("no: {KEY}."), "no: [the key]."),
            (format!("{KEY}{KEY}"), "[the key][the key]"),
            ("?k=sk-ant%2F1%2bx%3F4f1c&".into(), "?k=[the key]&"),
            (format!("x={percent}"), "x=[the key]"),
            (r"sk-ant\/1+x?4f1c \u0073k-ant/1\u002Bx?4f1c".into(), "[the key] [the key]"),
            ("é sk-ant/1+x?4f1".into(), "é sk-ant/1+x?4f1"),
            ("100 % of \\ sk".into(), "100 % of \\ sk"),
        ] {
            assert_eq!(secrets.redact(&text), redacted, "{text}");
        }
    }

    #[test]
    fn base64_is_found_behind_any_number_of_bytes_in_both_alphabets() {
        let secrets = secrets(KEY, &[], "http://a/");
        for before in ["", "u", "us", "ann:", "ann b:"] {
            for after in ["", "x", "xy"] {
                for engine in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
                    let text = format!(
                        "Basic {} is refused",
                        engine.encode(format!("{before}{KEY}{after}"))
                    );
                    let redacted = secrets.redact(&text);
                    assert!(redacted.contains("[the key]"), "{before:?} {after:?}: {redacted}");
                    // One letter may remain: it also encodes bits of a neighbour.
                    assert!(redacted.len() < 60, "{before:?} {after:?}: {redacted}");
                }
            }
        }
    }

    #[test]
    fn headers_and_passwords_are_secrets_and_public_headers_are_not() {
        let headers = [
            ("cf-access-token", "token-of-mine"),
            ("Proxy-Auth", "Bearer other-of-mine"),
            ("anthropic-beta", "context-1m-2025"),
            ("x-short", "true"),
        ];
        let secrets = secrets("dummy", &headers, "https://ann:passw%6Frd@host/");
        assert_eq!(
            secrets.redact(
                "token-of-mine other-of-mine context-1m-2025 true dummy password hunter222"
            ),
            "[the header cf-access-token] [the header Proxy-Auth] context-1m-2025 true dummy \
             [a password] [the proxy's password]"
        );
        let answer =
            secrets.redact_prefix(b"password token-of-mine", SecretContext::Answer, More::Ended).0;
        assert_eq!(answer, b"password [the header cf-access-token]", "short words stay in answers");
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same(cuts in proptest::collection::vec(0usize..60, 0..20)) {
            let secrets = secrets(KEY, &[], "http://a/");
            let text = format!("sk-sk-ant {KEY} %73k-ant%2f1+x?4f1c {KEY}sk-an");
            let whole = secrets.redact(&text);
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut < text.len()).collect();
            cuts.push(text.len());
            cuts.sort_unstable();
            let (mut out, mut held, mut from) = (Vec::new(), Vec::new(), 0);
            for cut in cuts {
                held.extend_from_slice(&text.as_bytes()[from..cut]);
                from = cut;
                let (passed, kept) = secrets.redact_prefix(&held, SecretContext::Answer, More::MayCome);
                out.extend(passed);
                held.drain(..kept);
            }
            out.extend(secrets.redact_prefix(&held, SecretContext::Answer, More::Ended).0);
            prop_assert_eq!(String::from_utf8(out).unwrap(), whole);
        }
    }
}
