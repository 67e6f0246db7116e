//! Outlines of files that need no syntax tree: headings of Markdown, keys of TOML and JSON.

use crate::symbols::one_line;
use std::path::Path;
use tools::{Outline, OutlineEntry};

/// The outline of a file of this name. `None` for an unknown file type, or if the content does not
/// match the type.
pub(crate) fn outline(path: &Path, text: &str) -> Option<Outline> {
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    let (language, entries) = match ending.as_str() {
        "md" | "markdown" => ("Markdown", markdown(text)),
        "toml" => ("TOML", toml(text)?),
        "json" => ("JSON", json(text)?),
        _ => return None,
    };
    Some(Outline { language, entries, errors: false })
}

fn entry(line: usize, depth: usize, text: String) -> OutlineEntry {
    OutlineEntry { line, last: line, depth, text }
}

/// Lines that begin with up to six `#` and a blank, outside of fenced code; and underlined ones.
fn markdown(text: &str) -> Vec<OutlineEntry> {
    let mut entries: Vec<OutlineEntry> = Vec::new();
    let mut fence: Option<&str> = None;
    let mut above = "";
    for (line, number) in text.lines().zip(1..) {
        let trimmed = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (Some(_), _) => {}
            (None, None) => {
                let depth = trimmed.chars().take_while(|sign| *sign == '#').count();
                let title = trimmed.trim_start_matches('#');
                if (1..=6).contains(&depth) && title.starts_with(' ') {
                    entries.push(entry(number, depth - 1, one_line(title.trim_end_matches('#'))));
                } else if let Some(depth) = underline(trimmed).filter(|_| !above.trim().is_empty())
                {
                    entries.push(entry(number - 1, depth, one_line(above)));
                }
            }
        }
        above = if fence.is_some() { "" } else { line };
    }
    entries
}

fn underline(line: &str) -> Option<usize> {
    let line = line.trim_end();
    match line.chars().next()? {
        '=' if line.len() > 2 && line.chars().all(|sign| sign == '=') => Some(0),
        '-' if line.len() > 3 && line.chars().all(|sign| sign == '-') => Some(1),
        _ => None,
    }
}

/// Tables and the keys above them.
fn toml(text: &str) -> Option<Vec<OutlineEntry>> {
    let table = toml::de::DeTable::parse(text).ok()?;
    let mut entries: Vec<OutlineEntry> = table
        .get_ref()
        .iter()
        .map(|(key, value)| {
            let line = line_of(text, key.span().start);
            let inner = match value.get_ref() {
                toml::de::DeValue::Table(inner) => {
                    let keys: Vec<&str> =
                        inner.iter().map(|(key, _)| key.get_ref().as_ref()).collect();
                    format!("{}: {}", key.get_ref(), keys.join(", "))
                }
                toml::de::DeValue::Array(items) => {
                    format!("{}: {} items", key.get_ref(), items.len())
                }
                toml::de::DeValue::String(_)
                | toml::de::DeValue::Integer(_)
                | toml::de::DeValue::Float(_)
                | toml::de::DeValue::Boolean(_)
                | toml::de::DeValue::Datetime(_) => key.get_ref().to_string(),
            };
            entry(line, 0, inner)
        })
        .collect();
    entries.sort_by_key(|entry| entry.line);
    Some(entries)
}

fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}

/// The keys of the outermost object, or how many items the outermost array has.
fn json(text: &str) -> Option<Vec<OutlineEntry>> {
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    match value {
        serde_json::Value::Object(_) => Some(keys(text)),
        serde_json::Value::Array(items) => {
            Some(vec![entry(1, 0, format!("an array of {} items", items.len()))])
        }
        serde_json::Value::Null
        | serde_json::Value::Bool(_)
        | serde_json::Value::Number(_)
        | serde_json::Value::String(_) => None,
    }
}

/// The keys of the outermost object of text that is JSON, with their lines.
fn keys(text: &str) -> Vec<OutlineEntry> {
    let mut entries = Vec::new();
    let (mut depth, mut line) = (0_usize, 1);
    let mut string: Option<(usize, usize)> = None;
    let mut last: Option<(usize, &str)> = None;
    let mut quoted = false;
    for (at, sign) in text.char_indices() {
        match (string, sign) {
            (Some(_), _) if quoted => quoted = false,
            (Some(_), '\\') => quoted = true,
            (Some((start, begun)), '"') => {
                last = text.get(start + 1..at).map(|text| (begun, text));
                string = None;
            }
            (Some(_), _) => {}
            (None, '"') => string = Some((at, line)),
            (None, '{' | '[') => depth += 1,
            (None, '}' | ']') => depth = depth.saturating_sub(1),
            (None, ':') if depth == 1 => {
                entries.extend(last.take().map(|(line, key)| entry(line, 0, key.to_owned())));
            }
            (None, _) => {}
        }
        line += usize::from(sign == '\n');
    }
    entries
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn listed(name: &str, text: &str) -> Option<Vec<(usize, usize, String)>> {
        let outline = outline(Path::new(name), text)?;
        Some(outline.entries.into_iter().map(|e| (e.line, e.depth, e.text)).collect())
    }

    #[test]
    fn markdown_has_its_headings() {
        let text =
            "# One #\n\n```sh\n# no heading\n```\n## Two\n#none\nThree\n=====\n---\nFour\n----\n";
        assert_eq!(
            listed("a.md", text).unwrap(),
            [
                (1, 0, "One".into()),
                (6, 1, "Two".into()),
                (8, 0, "Three".into()),
                (11, 1, "Four".into())
            ]
        );
    }

    #[test]
    fn toml_and_json_have_their_keys() {
        let toml = "name = \"x\"\n[b.c]\nd = 1\n[a]\ne = \"\"\"\n[no]\n\"\"\"\n[[list]]\nf = 1\n";
        assert_eq!(
            listed("a.toml", toml).unwrap(),
            [
                (1, 0, "name".into()),
                (2, 0, "b: c".into()),
                (4, 0, "a: e".into()),
                (8, 0, "list: 1 items".into())
            ]
        );
        let json =
            "{\n  \"a\\\"b\": {\"inner\": \"x:y\"},\n  \"c\": [\"d\", {\"e\": 1}],\n\"f\":1}";
        assert_eq!(
            listed("a.json", json).unwrap(),
            [(2, 0, "a\\\"b".into()), (3, 0, "c".into()), (4, 0, "f".into())]
        );
        assert_eq!(listed("a.json", "{"), None);
        assert_eq!(listed("a.toml", "= 1"), None);
        assert_eq!(listed("a.txt", "x"), None);
    }
}
