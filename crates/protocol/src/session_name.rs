//! Which names a session may have beside its ID. Pure.

use crate::hidden::{is_hidden, visible};

/// Most characters of a name.
const MOST: usize = 60;

/// The name as a person wants it to be kept; an empty text takes the name away.
///
/// # Errors
/// As [`check`].
pub fn wanted(text: &str) -> Result<String, String> {
    if text.is_empty() { Ok(String::new()) } else { check(text) }
}

/// The name as it is kept: its words with one blank between them. Names need not be unique.
///
/// # Errors
/// For a text that is no name, with the reason.
pub fn check(text: &str) -> Result<String, String> {
    let name = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if name.is_empty() {
        return Err("give a name, as in :name the release".to_owned());
    }
    if let Some(hidden) = name.chars().find(|c| c.is_control() || *c != ' ' && is_hidden(*c)) {
        let sign = visible(&hidden.to_string());
        return Err(format!("a name has no hidden characters, and this one has {sign}"));
    }
    let length = name.chars().count();
    if length > MOST {
        return Err(format!("a name has at most {MOST} characters, and this one has {length}"));
    }
    if name.starts_with('-') {
        return Err("a name does not begin with -, since commands take that for a flag".to_owned());
    }
    if name.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-') {
        return Err(format!(
            "{name} could be the beginning of an ID; add a word or a letter behind f"
        ));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_words_that_no_id_has_and_a_screen_can_show() {
        for (text, name) in [
            ("the release", "the release"),
            ("  the \t release\n", "the release"),
            ("Größe 2", "Größe 2"),
            ("cafe au lait", "cafe au lait"),
            ("v2.1", "v2.1"),
        ] {
            assert_eq!(check(text).as_deref(), Ok(name), "{text:?}");
        }
        let long = "x".repeat(61);
        for (text, why) in [
            ("red \u{1b}[31m", "hidden"),
            ("a\u{202e}b", "hidden"),
            ("zero\u{200b}width", "hidden"),
            (long.as_str(), "at most 60"),
            (" ", "give a name"),
            ("-x", "begin with -"),
            ("cafe", "an ID"),
            ("B96915830553", "an ID"),
            ("b96915830553-1", "an ID"),
            ("12", "an ID"),
        ] {
            let error = check(text).err().unwrap_or_default();
            assert!(error.contains(why), "{text:?}: {error}");
        }
        assert_eq!(wanted("").as_deref(), Ok(""));
        assert_eq!(wanted(" the  release").as_deref(), Ok("the release"));
        assert!(wanted("-x").is_err() && check("").is_err());
        assert_eq!(check(&long[1..]).map(|name| name.len()), Ok(60));
    }
}
