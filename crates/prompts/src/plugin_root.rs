//! `CLAUDE_PLUGIN_ROOT` in the texts of a plugin: the name of its folder. Pure; used by `expand` and by
//! those who show a skill.

use std::path::Path;

/// As the texts name it, behind a dollar sign.
const FORMS: [&str; 2] = ["{CLAUDE_PLUGIN_ROOT}", "CLAUDE_PLUGIN_ROOT"];

/// The bytes of the variable at the beginning of a text that follows a dollar sign.
pub(crate) fn length(text: &str) -> Option<usize> {
    let form = FORMS.into_iter().find(|form| text.starts_with(form))?;
    let goes_on = |c: char| c.is_alphanumeric() || c == '_';
    let is_longer = !form.ends_with('}') && text[form.len()..].starts_with(goes_on);
    (!is_longer).then_some(form.len())
}

/// The text with the folder in place of the variable.
#[must_use]
pub fn put_plugin_root(text: &str, root: &Path) -> String {
    let mut put = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        put.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        match length(rest) {
            Some(taken) => {
                put.push_str(&root.display().to_string());
                rest = &rest[taken..];
            }
            None => put.push('$'),
        }
    }
    put.push_str(rest);
    put
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_stands_where_the_text_names_it() {
        for (text, wanted) in [
            ("run ${CLAUDE_PLUGIN_ROOT}/x.sh", "run /p q/x.sh"),
            ("$CLAUDE_PLUGIN_ROOT, $CLAUDE_PLUGIN_ROOT", "/p q, /p q"),
            ("$CLAUDE_PLUGIN_ROOTS ${CLAUDE_PLUGIN} $", "$CLAUDE_PLUGIN_ROOTS ${CLAUDE_PLUGIN} $"),
        ] {
            assert_eq!(put_plugin_root(text, Path::new("/p q")), wanted);
        }
    }
}
