//! Names, passwords and tokens in addresses: `https://NAME:PASSWORD@HOST/`. For all formats of settings.

use std::ops::Range;

/// Where a sign-in stands in the first address of the text that has one, with its `@`.
fn sign_in(text: &str) -> Option<Range<usize>> {
    let mut from = 0;
    while let Some(at) = text.get(from..)?.find("://") {
        let (scheme, begin) = (text.get(..from + at)?, from + at + 3);
        let rest = text.get(begin..)?;
        let ends = |c: char| c.is_whitespace() || "/?#\"'<>,;\\".contains(c);
        let authority = rest.find(ends).map_or(rest, |end| rest.get(..end).unwrap_or(rest));
        if let Some(end) = authority.rfind('@') {
            // ssh takes a key, never a token in place of the name.
            let only_a_name = scheme.ends_with("ssh") && !authority.get(..end)?.contains(':');
            if !only_a_name {
                return Some(begin..begin + end + 1);
            }
        }
        from = begin;
    }
    None
}

/// Whether an address in this text carries a sign-in.
pub(super) fn signs_in(text: &str) -> bool {
    sign_in(text).is_some()
}

/// The text without the sign-ins in its addresses; `None` where there is none.
pub(super) fn without_sign_in(text: &str) -> Option<String> {
    let mut clean = text.to_owned();
    while let Some(range) = sign_in(&clean) {
        clean.replace_range(range, "");
    }
    (clean != text).then_some(clean)
}

#[cfg(test)]
mod tests {
    use super::*;

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
