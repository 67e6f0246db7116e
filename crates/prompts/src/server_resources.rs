//! Resources of MCP servers that a prompt names: `@SERVER:URI`. Used by the supervisor. Pure.

use crate::shown_files::word;

/// The servers and the addresses that a prompt names, each once, in order.
#[must_use]
pub fn server_resources(prompt: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for word in words(prompt) {
        let word = word.trim_start_matches('(');
        let word = word.trim_end_matches(['.', ',', ';', '!', '?', ')']);
        let named = word.strip_prefix('@').and_then(|rest| rest.split_once(':'));
        let Some((server, uri)) = named else { continue };
        let letter = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if server.is_empty() || uri.is_empty() || !server.chars().all(letter) {
            continue;
        }
        let named = (server.to_owned(), uri.to_owned());
        if !found.contains(&named) {
            found.push(named);
        }
    }
    found
}

/// The words of a text, without the quotes around them.
#[must_use]
pub fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| !c.is_whitespace()) {
        let (next, behind) = word(&rest[start..]);
        words.push(next);
        rest = behind;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_a_server_and_an_address() {
        let found = |prompt: &str| {
            let found = server_resources(prompt).into_iter();
            found.map(|(server, uri)| format!("{server} {uri}")).collect::<Vec<_>>()
        };
        assert_eq!(found("Read @docs:note://a, please (@t-1:x)."), ["docs note://a", "t-1 x"]);
        assert_eq!(found("@docs:a @docs:a @\"docs:my note\""), ["docs a", "docs my note"]);
        for text in ["@docs", "@docs: a", "a@docs:x", "@:x", "@a.b:x", "@src/main.rs:10"] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    }
}
