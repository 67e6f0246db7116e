//! The front matter of a skill or a slash command: the part of YAML that such files use. Pure.
//!
//! Own code, since YAML libraries read aliases, types and nested values that have no meaning here,
//! and would be the largest part of a process that parses untrusted files.

/// The front matter, if there is one, and the text after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FrontMatter<'a> {
    lines: Vec<&'a str>,
    pub(crate) body: &'a str,
}

/// An item of a list, and its line in the file, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListItem {
    pub(crate) text: String,
    pub(crate) line: u32,
}

/// Takes a file apart. A file that does not begin with `---` has no front matter.
pub(crate) fn split(text: &str) -> Result<Option<FrontMatter<'_>>, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Some(rest) = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n")) else {
        return Ok(None);
    };
    let mut length = 0;
    let mut lines: Vec<&str> = Vec::new();
    for line in rest.split_inclusive('\n') {
        length += line.len();
        if line.trim_end() == "---" {
            return Ok(Some(FrontMatter { lines, body: &rest[length..] }));
        }
        lines.push(line.trim_end_matches(['\n', '\r']));
    }
    Err("the lines between --- and --- have no end".to_owned())
}

impl FrontMatter<'_> {
    /// Checks that each line is a key with a value, a part of a value, or a comment.
    pub(crate) fn check(&self) -> Result<(), String> {
        let mut has_key = false;
        for (line, number) in self.lines.iter().zip(2..) {
            let said = line.trim();
            if said.is_empty() || said.starts_with('#') {
                continue;
            }
            let continues = line.starts_with([' ', '\t']) || said.starts_with("- ");
            if continues && has_key {
                continue;
            }
            let key = line.split_once(':').filter(|(key, value)| {
                let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
                let ends = value.is_empty() || value.starts_with([' ', '\t']);
                !key.is_empty() && key.chars().all(plain) && ends
            });
            let Some((key, value)) = key.filter(|_| !continues) else {
                return Err(format!("line {number} is not `key: value`"));
            };
            has_key = true;
            let value = value.trim();
            for (open, close) in [('"', '"'), ('\'', '\''), ('[', ']')] {
                let is_open = value.strip_prefix(open).is_some_and(|rest| !rest.contains(close));
                if is_open {
                    return Err(format!("line {number}: {key} begins with {open} without an end"));
                }
            }
        }
        Ok(())
    }

    /// The value of a key at the left edge: on its line, quoted or not, or on the lines below that
    /// are set in, joined.
    pub(crate) fn text(&self, key: &str) -> Option<String> {
        let (first, below) = self.entry(key)?;
        let first = match first {
            // Folded or literal: for one line of text they are the same.
            ">" | "|" | ">-" | "|-" | ">+" | "|+" => "",
            first => first,
        };
        let parts: Vec<&str> = std::iter::once(first)
            .chain(below.iter().map(|line| line.trim()))
            .filter(|part| !part.is_empty())
            .collect();
        Some(unquoted(&parts.join(" ")))
    }

    /// The items of a key: `[a, b]`, lines that begin with `-`, or words with commas between them.
    pub(crate) fn list(&self, key: &str) -> Vec<ListItem> {
        let Some((first, below)) = self.entry(key) else { return Vec::new() };
        let at = u32::try_from(self.place(key).unwrap_or_default() + 2).unwrap_or(u32::MAX);
        if let Some(inner) = first.strip_prefix('[') {
            let inner = inner.rsplit_once(']').map_or(inner, |(inner, _)| inner);
            let items = split_outside(inner, |letter| letter == ',');
            return items.iter().filter_map(|item| list_item(item, at)).collect();
        }
        if !first.is_empty() {
            let words = unquoted(first);
            let items = split_outside(&words, |letter| letter == ',');
            let items =
                items.iter().flat_map(|item| match item.contains(':') && !item.contains('(') {
                    // A rule such as `bash:cargo test`.
                    true => vec![(*item).to_owned()],
                    false => {
                        let words = split_outside(item, char::is_whitespace);
                        words.into_iter().map(str::to_owned).collect()
                    }
                });
            return items.filter_map(|item| list_item(&item, at)).collect();
        }
        let lines = below.iter().zip(at + 1..);
        let items = lines.filter_map(|(line, at)| Some((line.trim().strip_prefix('-')?, at)));
        items.filter_map(|(item, at)| list_item(item, at)).collect()
    }

    /// The keys at the left edge, in order.
    pub(crate) fn keys(&self) -> Vec<&str> {
        let keys = self.lines.iter().filter(|line| !line.starts_with([' ', '\t', '#', '-']));
        keys.filter_map(|line| line.split_once(':')).map(|(key, _)| key.trim()).collect()
    }

    fn place(&self, key: &str) -> Option<usize> {
        self.lines.iter().position(|line| {
            line.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with(':'))
        })
    }

    /// The value on the key's line, and the lines below that belong to it.
    fn entry(&self, key: &str) -> Option<(&str, &[&str])> {
        let at = self.place(key)?;
        let (_, first) = self.lines[at].split_once(':')?;
        let below = &self.lines[at + 1..];
        let belongs = |line: &&&str| {
            line.trim().is_empty() || line.starts_with([' ', '\t']) || line.starts_with("- ")
        };
        let count = below.iter().take_while(belongs).count();
        Some((first.trim(), &below[..count]))
    }
}

fn list_item(text: &str, line: u32) -> Option<ListItem> {
    let text = unquoted(text.trim());
    (!text.is_empty()).then_some(ListItem { text, line })
}

/// The parts between separators that are in no parentheses and no quotes.
fn split_outside(text: &str, is_separator: impl Fn(char) -> bool) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut quote) = (Vec::new(), 0, 0_u32, None);
    for (at, letter) in text.char_indices() {
        match (letter, quote) {
            (letter, Some(open)) if letter == open => quote = None,
            (_, Some(_)) => {}
            ('(', None) => depth += 1,
            (')', None) => depth = depth.saturating_sub(1),
            // An apostrophe inside a word opens nothing.
            ('"' | '\'', None) if text[start..at].trim().is_empty() => quote = Some(letter),
            (letter, None) if depth == 0 && is_separator(letter) => {
                parts.push(&text[start..at]);
                start = at + letter.len_utf8();
            }
            (_, None) => {}
        }
    }
    parts.push(&text[start..]);
    parts
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

    fn front(text: &str) -> FrontMatter<'_> {
        split(text).unwrap().unwrap()
    }

    #[test]
    fn names_and_descriptions_as_people_write_them() {
        for (text, name, description) in [
            ("---\nname: pdf\ndescription: Reads PDFs.\n---\nBody", "pdf", "Reads PDFs."),
            ("---\r\nname: \"a b\"\r\ndescription: 'It''s'\r\n---\r\nBody", "a b", "It's"),
            ("---\ndescription: >\n  two\n  lines\nname: x # why\n---\nBody", "x", "two lines"),
            ("---\nnames: no\nname: x\ndescription: a: b\n---\nBody", "x", "a: b"),
        ] {
            let front = front(text);
            assert_eq!(front.text("name").as_deref(), Some(name), "{text}");
            assert_eq!(front.text("description").as_deref(), Some(description), "{text}");
            assert_eq!(front.body, "Body");
            assert_eq!(front.check(), Ok(()), "{text}");
        }
    }

    #[test]
    fn what_is_no_front_is_said() {
        for text in ["", "no front", "--- name: x ---"] {
            assert_eq!(split(text), Ok(None), "{text:?}");
        }
        assert!(split("---\nname: x\n").is_err());
        let front = front("---\n---\n");
        assert_eq!((front.text("name"), front.list("name"), front.body), (None, Vec::new(), ""));
    }

    #[test]
    fn a_list_is_written_in_three_ways() {
        let items = |text: &str| -> Vec<(String, u32)> {
            let text = format!("---\ndescription: x\n{text}\nmodel: m\n---\n");
            let items = front(&text).list("allowed-tools");
            items.into_iter().map(|item| (item.text, item.line)).collect()
        };
        let wanted = [("Bash(git add:*)".to_owned(), 3), ("Read".to_owned(), 3)];
        for text in [
            "allowed-tools: Bash(git add:*), Read",
            "allowed-tools: Bash(git add:*) Read",
            "allowed-tools: [Bash(git add:*), \"Read\"]",
            "allowed-tools: \"Bash(git add:*), Read\"",
        ] {
            assert_eq!(items(text), wanted, "{text}");
        }
        let below = "allowed-tools:\n  - Bash(echo a, b)\n  # why\n  - 'Read'";
        assert_eq!(items(below), [("Bash(echo a, b)".to_owned(), 4), ("Read".to_owned(), 6)]);
        assert_eq!(items("allowed-tools:\n- Read"), [("Read".to_owned(), 4)]);
        assert_eq!(
            items("allowed-tools: bash:cargo test, Read"),
            [("bash:cargo test".to_owned(), 3), ("Read".to_owned(), 3)]
        );
        assert_eq!(items("other: x"), []);
    }

    #[test]
    fn a_line_that_is_no_yaml_is_named() {
        for (text, wrong) in [
            ("description", "line 2 is not"),
            ("  a: b", "line 2 is not"),
            ("a: b\nc d: e", "line 3 is not"),
            ("a:b", "line 2 is not"),
            ("a: \"b", "line 2: a begins with \""),
            ("# fine\na: [b", "line 3: a begins with ["),
        ] {
            let said = front(&format!("---\n{text}\n---\n")).check().unwrap_err();
            assert!(said.contains(wrong), "{text}: {said}");
        }
    }
}
