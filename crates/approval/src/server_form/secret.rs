//! Fields and messages that ask for a secret. The protocol forbids them in forms: a server asks for a secret
//! on a page of its own, which agentd and the model do not see. `fold` reads the words, and `secret_words`
//! has those of other languages. Pure.

use super::field::plain_line;
use super::fold::readings;
use super::secret_words;
use serde_json::Value;

/// Most characters of a text that are looked at. A field shows fewer.
const TEXT: usize = 4000;
/// Words that name a secret.
const WORDS: [&str; 9] = ["pwd", "otp", "totp", "mfa", "2fa", "cvv", "cvc", "pin", "pat"];
/// Endings of words that name a secret, such as `authtoken`. A plural has one too.
const ENDINGS: [&str; 9] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "token",
    "credential",
    "jwt",
    "cookie",
];
/// The same in two words. As one word they are an ending: `myprivatekey`.
const PAIRS: [(&str, &str); 39] = [
    ("api", "key"),
    ("access", "key"),
    ("private", "key"),
    ("secret", "key"),
    ("signing", "key"),
    ("encryption", "key"),
    ("ssh", "key"),
    ("license", "key"),
    ("auth", "key"),
    ("master", "key"),
    ("deploy", "key"),
    ("account", "key"),
    ("ai", "key"),
    ("openai", "key"),
    ("anthropic", "key"),
    ("claude", "key"),
    ("gemini", "key"),
    ("mistral", "key"),
    ("openrouter", "key"),
    ("github", "key"),
    ("gitlab", "key"),
    ("hub", "key"),
    ("lab", "key"),
    ("router", "key"),
    ("aws", "key"),
    ("azure", "key"),
    ("google", "key"),
    ("stripe", "key"),
    ("slack", "key"),
    ("seed", "phrase"),
    ("recovery", "phrase"),
    ("pass", "phrase"),
    ("pass", "word"),
    ("recovery", "code"),
    ("security", "code"),
    ("verification", "code"),
    ("backup", "code"),
    ("card", "number"),
    ("2", "fa"),
];
/// Words of a short text that make a number a count: `token_limit`.
const COUNTS: [&str; 13] = [
    "max", "maximum", "min", "minimum", "limit", "count", "budget", "length", "size", "lifetime",
    "ttl", "expiry", "attempts",
];
/// Most words of such a text.
const COUNT_TEXT: usize = 4;
/// Verbs that ask a person to type something.
const VERBS: [&str; 8] = ["enter", "type", "paste", "provide", "give", "supply", "input", "send"];
/// Words that may stand between such a verb and the secret.
const BETWEEN: [&str; 16] = [
    "your", "the", "a", "an", "us", "me", "in", "here", "current", "old", "new", "personal",
    "account", "git", "hub", "login",
];
/// Words after a secret's name that name something else: `the token file`.
const AFTER: [&str; 10] =
    ["file", "files", "name", "path", "length", "manager", "policy", "id", "type", "limit"];

/// Words of a sentence that ask for something without such a verb: `Password, please`.
const CUES: [&str; 8] =
    ["please", "need", "needs", "needed", "require", "required", "requires", "what"];

/// True for a field whose answer would be a secret.
pub(super) fn is_secret(name: &str, schema: &Value) -> bool {
    let text = |key: &str| schema.get(key).and_then(Value::as_str);
    if text("format") == Some("password") || schema.get("writeOnly") == Some(&Value::Bool(true)) {
        return true;
    }
    // People see the texts without hidden letters.
    let texts = [Some(name), text("title"), text("description"), text("default")];
    let texts = texts.into_iter().flatten().map(|text| plain_line(text, TEXT));
    let mut texts = texts.map(|text| (protocol::key_names::names_key_file(&text), readings(&text)));
    let is_text = takes_text(schema);
    texts.any(|(is_key_file, readings)| {
        let secret = |words: &Vec<String>| {
            let counts = !is_text && is_count(words);
            (names_secret(words) && !counts) || secret_words::names_secret(words)
        };
        match text("type") {
            Some("string") => is_text && (is_key_file || readings.iter().any(secret)),
            Some("integer" | "number") => readings.iter().any(secret),
            // A choice or a yes is no secret.
            _ => false,
        }
    })
}

/// True for a field that a person types any text into.
pub(super) fn takes_text(schema: &Value) -> bool {
    let has_choices = ["enum", "oneOf"].iter().any(|key| schema.get(*key).is_some());
    schema.get("type").and_then(Value::as_str) == Some("string") && !has_choices
}

/// All texts of a schema that a person is shown.
pub(super) fn shown_texts(schema: &Value) -> Vec<&str> {
    let mut texts = Vec::new();
    for key in ["title", "description", "default", "enum", "enumNames", "const"] {
        match schema.get(key) {
            Some(Value::String(text)) => texts.push(text.as_str()),
            Some(Value::Array(all)) => texts.extend(all.iter().filter_map(Value::as_str)),
            _ => {}
        }
    }
    for key in ["oneOf", "anyOf"] {
        let choices = schema.get(key).and_then(Value::as_array).into_iter().flatten();
        texts.extend(choices.flat_map(shown_texts));
    }
    texts.extend(schema.get("items").into_iter().flat_map(shown_texts));
    texts
}

/// True for a message that names a secret, above a form that takes any text. In English a sentence without a
/// request may name one: `Your password has expired`.
pub(super) fn mentions_secret(message: &str) -> bool {
    let text = plain_line(message, TEXT);
    let is_cue = |words: &[String]| words.iter().any(|word| CUES.contains(&word.as_str()));
    protocol::key_names::names_key_file(&text)
        || sentences(message).iter().any(|(sentence, readings)| {
            let is_label = sentence.trim_end().ends_with(':');
            readings.iter().any(|words| {
                let names = (0..words.len()).any(|at| is_object_secret(&words[at..]));
                secret_words::names_secret(words)
                    || (names && !is_negated(words) && (is_label || is_cue(words)))
            })
        })
}

/// True for a message that plainly asks a person to type a secret: `enter your password`.
pub(super) fn asks_for_secret(message: &str) -> bool {
    sentences(message).iter().any(|(_, readings)| {
        readings.iter().any(|words| {
            words.iter().enumerate().any(|(at, word)| {
                let (before, after) = words.split_at(at);
                VERBS.contains(&word.as_str())
                    && !is_negated(before)
                    && is_object_secret(after.get(1..).unwrap_or_default())
            })
        })
    })
}

fn is_negated(words: &[String]) -> bool {
    words.iter().any(|word| matches!(word.as_str(), "not" | "never" | "don"))
}

/// The sentences of a message, each with its words in all readings.
fn sentences(message: &str) -> Vec<(String, Vec<Vec<String>>)> {
    let sentences = message.split(['.', '!', '?', ';', '\n']).map(|it| plain_line(it, TEXT));
    sentences.map(|sentence| (sentence.clone(), readings(&sentence))).collect()
}

/// True if the object of a verb, which these words follow, is a secret.
fn is_object_secret(words: &[String]) -> bool {
    let skipped = words.iter().take_while(|word| BETWEEN.contains(&word.as_str())).count();
    // Two names may overlap with a filler: `account key`.
    (0..=skipped).any(|from| {
        let rest = words.get(from..).unwrap_or_default();
        (1..=2).any(|length| {
            let is_other = rest.iter().take(length + 1).any(|it| AFTER.contains(&it.as_str()));
            !is_other && rest.get(..length).is_some_and(names_secret)
        })
    })
}

/// True for a number of secrets or of their letters.
fn is_count(words: &[String]) -> bool {
    let is_plural = |word: &String| word.ends_with('s') && is_word(word);
    let has_count = words.iter().any(|word| COUNTS.contains(&word.as_str()));
    let singular: Vec<String> = words.iter().filter(|word| !is_plural(word)).cloned().collect();
    !names_secret(&singular) || (words.len() <= COUNT_TEXT && has_count)
}

fn names_secret(words: &[String]) -> bool {
    let is_pair = |pair: &[String]| match pair {
        [first, second] => {
            let second = second.strip_suffix('s').unwrap_or(second);
            PAIRS.contains(&(first.as_str(), second))
        }
        _ => false,
    };
    words.iter().any(|word| is_word(word)) || words.windows(2).any(is_pair)
}

fn is_word(word: &str) -> bool {
    let is_joined = |word: &str| {
        PAIRS.iter().any(|(first, second)| {
            // Short ones end other words too.
            word.strip_suffix(second).is_some_and(|rest| match first.len() {
                0..=2 => rest == *first,
                _ => rest.ends_with(first),
            })
        })
    };
    [Some(word), word.strip_suffix('s')].into_iter().flatten().any(|word| {
        WORDS.contains(&word)
            || ENDINGS.iter().any(|ending| word.ends_with(ending))
            || is_joined(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn common_names_of_secrets_are_found_and_like_words_are_not() {
        for text in [
            "authtoken",
            "APIToken",
            "SMTPPassword",
            "privatekey",
            "2FA code",
            "Your GitHub PAT",
            "Your OpenAI key",
            "Your GitHub key",
            "myApikeys",
            "oauth2Token",
            "session cookie",
            "pass\u{200b}word",
            "Card number",
            "mfa",
            "JWT",
            "pass-word",
        ] {
            assert!(is_secret("value", &json!({"type": "string", "title": text})), "{text}");
            let described = json!({"type": "string", "description": text});
            assert!(is_secret("value", &described), "{text}");
        }
        for text in [
            "monkey",
            "keyboard",
            "key",
            "projectKey",
            "issuekey",
            "path",
            "spin",
            "pattern",
            "secretary",
            "Tokenizer",
            "author",
            "airkey",
            "keyword",
        ] {
            assert!(!is_secret("value", &json!({"type": "string", "title": text})), "{text}");
        }
    }

    #[test]
    fn other_letters_other_languages_and_files_of_keys_do_not_hide_a_secret() {
        for text in [
            "Ｐａｓｓｗｏｒｄ",
            "P4ssw0rd",
            "раѕѕԝоrd",
            "pw",
            "Passwort",
            "contraseña",
            "пароль",
            "密码",
            "contents of ~/.ssh/id_ed25519",
            "The text of $HOME/.netrc",
        ] {
            for key in ["title", "description", "default"] {
                let field = json!({"type": "string", key: text});
                assert!(is_secret("value", &field), "{key} {text}");
            }
        }
        for text in ["Color of the tokenizer", "pinned", "Secretary", "Keyboard", "palabra clave"] {
            assert!(!is_secret("value", &json!({"type": "string", "title": text})), "{text}");
        }
    }

    #[test]
    fn a_message_above_a_line_for_text_may_not_name_what_is_typed() {
        for message in [
            "Password:",
            "What is your P4ssw0rd?",
            "Your API token, please",
            "Geben Sie bitte Ihr Passwort ein",
            "Введите пароль",
            "请输入密码",
            "Paste the contents of ~/.ssh/id_ed25519",
        ] {
            assert!(mentions_secret(message) || asks_for_secret(message), "{message}");
        }
        for message in [
            "Your password has expired. Which project?",
            "Never type your password. What is your name?",
            "Who are you?",
            "Please name the tokenizer",
        ] {
            assert!(!mentions_secret(message), "{message}");
        }
    }

    #[test]
    fn a_number_is_a_secret_unless_it_counts() {
        for (name, about) in [
            ("value", "Card number"),
            ("value", "The PIN of your card"),
            ("value", "The PIN of your card, of maximum length 6"),
            ("otp", "x"),
        ] {
            assert!(is_secret(name, &json!({"type": "integer", "description": about})), "{about}");
        }
        for (name, about) in
            [("max_tokens", "The most tokens of an answer"), ("token_limit", "A limit")]
        {
            assert!(!is_secret(name, &json!({"type": "integer", "description": about})), "{name}");
        }
        assert!(!is_secret("use_password", &json!({"type": "boolean"})));
    }

    #[test]
    fn a_message_is_looked_at_only_where_it_asks_to_type_a_secret() {
        for message in [
            "Please enter your password.",
            "To go on, paste your GitHub token here",
            "Enter your API key:",
            "Type in your pass\u{200b}word",
        ] {
            assert!(asks_for_secret(message), "{message}");
        }
        for message in [
            "Your password has expired.",
            "Never enter your password here. Which project?",
            "Enter the name of the token",
            "Enter the token file",
            "Enter your name",
        ] {
            assert!(!asks_for_secret(message), "{message}");
        }
    }
}
