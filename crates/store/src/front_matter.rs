//! The front matter of a skill: two keys of the YAML subset that such files use. Pure.
//!
//! Own code, since YAML libraries read aliases, types and nested values that have no meaning here,
//! and would be the largest part of this process that parses untrusted files.

/// The front matter and the text after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FrontMatter<'a> {
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) body: &'a str,
}

/// Takes a file apart.
pub(crate) fn front(text: &str) -> Result<FrontMatter<'_>, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Some(rest) = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n")) else {
        return Err("it does not begin with a line --- and its name and description".to_owned());
    };
    let mut length = 0;
    let mut lines: Vec<&str> = Vec::new();
    let mut closed = false;
    for line in rest.split_inclusive('\n') {
        length += line.len();
        if line.trim_end() == "---" {
            closed = true;
            break;
        }
        lines.push(line.trim_end_matches(['\n', '\r']));
    }
    if !closed {
        return Err("the lines between --- and --- have no end".to_owned());
    }
    let value = |key: &str| value(&lines, key);
    Ok(FrontMatter {
        name: value("name"),
        description: value("description"),
        body: &rest[length..],
    })
}

/// The value of a key at the left edge: on its line, quoted or not, or on the lines below that are
/// set in, joined.
fn value(lines: &[&str], key: &str) -> Option<String> {
    let at = lines.iter().position(|line| {
        line.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with(':'))
    })?;
    let (_, first) = lines[at].split_once(':')?;
    let below = lines[at + 1..].iter().take_while(|line| {
        line.trim().is_empty() || line.starts_with(' ') || line.starts_with('\t')
    });
    let first = match first.trim() {
        // Folded or literal: for one line of text they are the same.
        ">" | "|" | ">-" | "|-" | ">+" | "|+" => "",
        first => first,
    };
    let parts: Vec<&str> = std::iter::once(first)
        .chain(below.map(|line| line.trim()))
        .filter(|part| !part.is_empty())
        .collect();
    Some(unquoted(&parts.join(" ")))
}

fn unquoted(text: &str) -> String {
    let inner = |mark: char| {
        text.strip_prefix(mark).and_then(|rest| rest.strip_suffix(mark)).map(str::to_owned)
    };
    match (inner('"'), inner('\'')) {
        (Some(inner), _) => inner.replace("\\\"", "\"").replace("\\\\", "\\"),
        (None, Some(inner)) => inner.replace("''", "'"),
        (None, None) => {
            // A comment behind a plain value.
            text.split(" #").next().unwrap_or_default().trim().to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn names_and_descriptions_as_people_write_them() {
        for (text, name, description) in [
            ("---\nname: pdf\ndescription: Reads PDFs.\n---\nBody", "pdf", "Reads PDFs."),
            ("---\r\nname: \"a b\"\r\ndescription: 'It''s'\r\n---\r\nBody", "a b", "It's"),
            ("---\ndescription: >\n  two\n  lines\nname: x # why\n---\nBody", "x", "two lines"),
            ("---\nnames: no\nname: x\ndescription: a: b\n---\nBody", "x", "a: b"),
        ] {
            let front = front(text).unwrap();
            assert_eq!(front.name.as_deref(), Some(name), "{text}");
            assert_eq!(front.description.as_deref(), Some(description), "{text}");
            assert_eq!(front.body, "Body");
        }
    }

    #[test]
    fn what_is_no_front_is_said() {
        for text in ["", "no front", "---\nname: x\n", "--- name: x ---"] {
            assert!(front(text).is_err(), "{text:?}");
        }
        let front = front("---\n---\n").unwrap();
        assert_eq!((front.name, front.description, front.body), (None, None, ""));
    }
}
