//! Halves of surrogate pairs in JSON text: `"\ud83d"` alone, half an emoji. A model or a server can write it, no text
//! of Unicode holds it, and strict parsers refuse the whole JSON. Pure. For all JSON that comes from outside.

use std::borrow::Cow;

/// Letters of an escape such as `\ud83d`.
const ESCAPE: usize = 6;

/// The JSON text with the escape of U+FFFD in place of each half that stands alone.
#[must_use]
pub fn replaced(json: &str) -> Cow<'_, str> {
    each_half(json, |_| "\\ufffd".to_owned())
}

/// The text of a JSON string that is JSON itself, such as the arguments of a call in a stream: each half that stands
/// alone becomes an escape of the inner JSON, where the half that belongs to it may follow.
#[must_use]
pub fn escaped(json: &str) -> Cow<'_, str> {
    each_half(json, |escape| format!("\\{escape}"))
}

fn each_half(json: &str, new: impl Fn(&str) -> String) -> Cow<'_, str> {
    let (mut changed, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(found) = json.get(at..).and_then(|rest| rest.find('\\')) {
        at += found;
        at += match (unit(json, at), unit(json, at + ESCAPE)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 2 * ESCAPE,
            (Some(0xd800..=0xdfff), _) => {
                changed.push_str(&json[copied..at]);
                changed.push_str(&new(&json[at..at + ESCAPE]));
                copied = at + ESCAPE;
                ESCAPE
            }
            // Its second letter may be a backslash.
            (Some(_) | None, _) => 2,
        };
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    changed.push_str(&json[copied..]);
    Cow::Owned(changed)
}

/// The code unit of the escape that begins here.
fn unit(json: &str, at: usize) -> Option<u16> {
    let digits = json.get(at..at + ESCAPE)?.strip_prefix("\\u")?;
    u16::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_that_stand_alone_are_found_and_pairs_and_letters_stay() {
        for (json, wanted) in [
            (r#"{"a":"\ud83d"}"#, r#"{"a":"\ufffd"}"#),
            (r#"{"a":"x\uDE00y\uD83D\uD83D\uDE00"}"#, r#"{"a":"x\ufffdy\ufffd\uD83D\uDE00"}"#),
            (r#"{"\ud800":"\udfff"}"#, r#"{"\ufffd":"\ufffd"}"#),
            (r#""\\ud83d""#, r#""\\ud83d""#),
            (r#""\\\ud83d""#, r#""\\\ufffd""#),
            (r#""\ud83d\\ude00""#, r#""\ufffd\\ude00""#),
            (r#""\u00e9 é \u+d83""#, r#""\u00e9 é \u+d83""#),
            (r#""\ud8é""#, r#""\ud8é""#),
            (r#""\ud83"#, r#""\ud83"#),
            ("\\", "\\"),
            ("", ""),
        ] {
            assert_eq!(replaced(json), wanted, "{json}");
        }
        assert!(matches!(replaced(r#""\ud83d\ude00""#), Cow::Borrowed(_)));
    }

    #[test]
    fn halves_in_two_pieces_of_inner_json_are_a_pair_again() {
        assert_eq!(escaped(r#""{\"a\":\"\ud83d""#), r#""{\"a\":\"\\ud83d""#);
        assert_eq!(escaped(r#""\ude00\"}""#), r#""\\ude00\"}""#);
    }
}
