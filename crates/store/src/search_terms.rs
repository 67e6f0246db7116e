//! Texts as they are looked for. Pure.

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
}
