//! Texts as they are looked for and as they are shown. Pure.

/// Most terms of a search; a person would not type more.
const TERMS: usize = 32;

/// The search terms in the syntax of FTS5: any of the words, as prefixes. The query language of
/// FTS5 itself is escaped, so that no search is a syntax error. `None` if there is no word.
pub(crate) fn query(text: &str) -> Option<String> {
    let words =
        text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    let terms: Vec<String> = words.take(TERMS).map(|word| format!("\"{word}\"*")).collect();
    (!terms.is_empty()).then(|| terms.join(" OR "))
}

/// The same text with control codes as their escapes; lines and tabs stay.
pub(crate) fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\t' => out.push(letter),
            letter if letter.is_control() => out.extend(letter.escape_default()),
            letter => out.push(letter),
        }
    }
    out
}

/// On one line, at most so long.
pub(crate) fn line(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.chars().count() > most {
        true => line.chars().take(most).chain(std::iter::once('…')).collect(),
        false => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_is_words_and_nothing_else() {
        assert_eq!(query("build fast"), Some("\"build\"* OR \"fast\"*".to_owned()));
        assert_eq!(query("a\" OR NEAR(b"), Some("\"a\"* OR \"OR\"* OR \"NEAR\"* OR \"b\"*".into()));
        assert_eq!(query("größe"), Some("\"größe\"*".to_owned()));
        assert_eq!(query(" *-\"() "), None);
    }

    #[test]
    fn control_codes_are_shown_and_not_obeyed() {
        assert_eq!(visible("a\u{1b}[31mb\tc\n"), "a\\u{1b}[31mb\tc\n");
        assert_eq!(line("a\n  b c", 4), "a b …");
        assert_eq!(line("a\n b", 4), "a b");
    }
}
