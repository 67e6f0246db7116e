//! Fields that ask for a secret. The protocol forbids them in forms: a server asks for a secret on a page of
//! its own, which agentd and the model do not see. Pure.

use serde_json::Value;

/// Words that name a secret.
const WORDS: [&str; 17] = [
    "password",
    "passwords",
    "passwd",
    "pwd",
    "passphrase",
    "passcode",
    "secret",
    "secrets",
    "token",
    "tokens",
    "credential",
    "credentials",
    "apikey",
    "otp",
    "cvv",
    "cvc",
    "pin",
];
/// The same in two words.
const PAIRS: [(&str, &str); 16] = [
    ("api", "key"),
    ("api", "keys"),
    ("access", "key"),
    ("private", "key"),
    ("secret", "key"),
    ("signing", "key"),
    ("encryption", "key"),
    ("ssh", "key"),
    ("license", "key"),
    ("auth", "key"),
    ("seed", "phrase"),
    ("recovery", "phrase"),
    ("recovery", "code"),
    ("security", "code"),
    ("card", "number"),
    ("pass", "phrase"),
];

/// True for a field whose answer would be a secret.
pub(super) fn is_secret(name: &str, schema: &Value) -> bool {
    let text = |key: &str| schema.get(key).and_then(Value::as_str);
    if text("format") == Some("password") || schema.get("writeOnly") == Some(&Value::Bool(true)) {
        return true;
    }
    let has_choices = ["enum", "oneOf"].iter().any(|key| schema.get(*key).is_some());
    let named = |words: &[&str]| {
        [Some(name), text("title")].into_iter().flatten().any(|it| has_word(it, words))
    };
    match text("type") {
        // A choice or a yes is no secret.
        Some("string") if has_choices => false,
        Some("string") => [Some(name), text("title"), text("description")]
            .into_iter()
            .flatten()
            .any(|it| has_word(it, &WORDS) || has_pair(it)),
        Some("integer" | "number") => named(&["pin", "otp", "cvv", "cvc", "passcode", "password"]),
        _ => false,
    }
}

/// The words of a name or a sentence, in lower case: `apiKey`, `API_KEY` and `API key` are the same.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before_is_lower = false;
    for c in text.chars() {
        let starts = !c.is_alphanumeric() || (c.is_uppercase() && before_is_lower);
        if starts {
            words.push(String::new());
        }
        if let (true, Some(word)) = (c.is_alphanumeric(), words.last_mut()) {
            word.extend(c.to_lowercase());
        }
        before_is_lower = c.is_lowercase() || c.is_numeric();
    }
    words.retain(|word| !word.is_empty());
    words
}

fn has_word(text: &str, wanted: &[&str]) -> bool {
    words(text).iter().any(|word| wanted.contains(&word.as_str()))
}

fn has_pair(text: &str) -> bool {
    words(text).windows(2).any(|pair| match pair {
        [first, second] => PAIRS.contains(&(first.as_str(), second.as_str())),
        _ => false,
    })
}
