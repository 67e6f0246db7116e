//! Outlines of files that need no syntax tree: headings of Markdown, keys of TOML and JSON.

use crate::symbols::one_line;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::ops::Range;
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

/// The headings, as they are written.
#[allow(clippy::wildcard_enum_match_arm)]
fn markdown(text: &str) -> Vec<OutlineEntry> {
    let mut entries = Vec::new();
    let mut heading: Option<(OutlineEntry, Range<usize>)> = None;
    let (mut line, mut counted) = (1, 0);
    let options = Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                line += text[counted..range.start].matches('\n').count();
                counted = range.start;
                heading = Some((entry(line, level as usize - 1, String::new()), 0..0));
            }
            Event::End(TagEnd::Heading(_)) => {
                entries.extend(
                    heading.take().map(|(entry, title)| OutlineEntry {
                        text: one_line(&text[title]),
                        ..entry
                    }),
                );
            }
            _ => {
                if let Some((_, title)) = &mut heading {
                    let start = if title.end == 0 { range.start } else { title.start };
                    *title = start..range.end.max(title.end);
                }
            }
        }
    }
    entries
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
        let text = "---\nname: x\n---\n# One #\n\n```sh\n# no heading\n```\n## Two\n#none\n\nThree *and*\nmore\n\
             =====\n---\nFour C#\n----\n<!--\n# none\n-->\n\n    # code\n\n### `é` [b](c) #\n";
        assert_eq!(
            listed("a.md", text).unwrap(),
            [
                (4, 0, "One".into()),
                (9, 1, "Two".into()),
                (12, 0, "Three *and* more".into()),
                (16, 1, "Four C#".into()),
                (24, 2, "`é` [b](c)".into()),
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
