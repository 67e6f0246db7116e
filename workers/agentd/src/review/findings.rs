//! What the model found: its form, its places in the files, and how it is printed. Pure.

use protocol::hidden::on_screen;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How bad a finding is, the worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    /// Worth knowing.
    Note,
    /// It may go wrong.
    Warning,
    /// It is wrong.
    Error,
}

impl Severity {
    const ALL: [Self; 3] = [Self::Error, Self::Warning, Self::Note];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }

    fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|severity| severity.name() == name)
    }
}

/// Something that the model found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    severity: Severity,
    place: FindingPlace,
    title: String,
    text: String,
}

/// Where a finding is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum FindingPlace {
    /// In this line of a changed file.
    Line(String, u64),
    /// In this changed file.
    File(String),
    /// The model named a place that is not in the changes.
    Unknown(String),
}

/// All of a review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Review {
    pub(super) findings: Vec<Finding>,
    pub(super) summary: String,
}

/// The form of the model's answer, as a JSON Schema.
pub(super) fn schema() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["summary", "findings"],
        "properties": {
            "summary": {"type": "string"},
            "findings": {"type": "array", "items": {
                "type": "object",
                "additionalProperties": false,
                "required": ["severity", "file", "line", "title", "text"],
                "properties": {
                    "severity": {"enum": Severity::ALL.map(Severity::name)},
                    "file": {"type": "string"},
                    "line": {"type": ["integer", "null"]},
                    "title": {"type": "string"},
                    "text": {"type": "string"},
                },
            }},
        },
    })
}

impl Review {
    /// Reads an answer of that form. `lines` has the changed files and how many lines each has.
    pub(super) fn read(answer: &Value, lines: &BTreeMap<String, u64>) -> Self {
        let word = |value: &Value, name: &str| {
            value.get(name).and_then(Value::as_str).unwrap_or_default().trim().to_owned()
        };
        let found = answer.get("findings").and_then(Value::as_array);
        let mut findings: Vec<Finding> = found
            .into_iter()
            .flatten()
            .filter_map(|value| {
                let severity = Severity::of(&word(value, "severity"))?;
                let file = word(value, "file");
                let file = file.strip_prefix("./").unwrap_or(&file).to_owned();
                let line = value.get("line").and_then(Value::as_u64);
                let place = match (lines.get(&file), line) {
                    (Some(most), Some(line)) if (1..=*most).contains(&line) => {
                        FindingPlace::Line(file, line)
                    }
                    (Some(_), None) => FindingPlace::File(file),
                    (_, Some(line)) => FindingPlace::Unknown(format!("{file}:{line}")),
                    (None, None) => FindingPlace::Unknown(file),
                };
                let (title, text) = (word(value, "title"), word(value, "text"));
                Some(Finding { severity, place, title, text })
            })
            .collect();
        findings
            .sort_by(|a, b| b.severity.cmp(&a.severity).then_with(|| a.order().cmp(&b.order())));
        Self { findings, summary: word(answer, "summary") }
    }

    /// The worst of it.
    pub(super) fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }

    /// A line a finding, as compilers print them, and its text below.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for finding in &self.findings {
            let place = match &finding.place {
                FindingPlace::Line(file, line) => format!("{}:{line}", on_screen(file)),
                FindingPlace::File(file) => on_screen(file),
                FindingPlace::Unknown(named) => {
                    format!("({} is not in the changes)", on_screen(named))
                }
            };
            let severity = finding.severity.name();
            text.push_str(&format!("{place}: {severity}: {}\n", on_screen(&finding.title)));
            for line in on_screen(&finding.text).lines() {
                text.push_str(&format!("  {line}\n"));
            }
        }
        match self.findings.len() {
            0 => text.push_str("no findings\n"),
            count => {
                let of =
                    |severity| self.findings.iter().filter(|it| it.severity == severity).count();
                let parts =
                    Severity::ALL.map(|severity| format!("{} {}", of(severity), severity.name()));
                let noun = if count == 1 { "finding" } else { "findings" };
                text.push_str(&format!("{count} {noun}: {}\n", parts.join(", ")));
            }
        }
        if !self.summary.is_empty() {
            text.push_str(&format!("\n{}\n", on_screen(&self.summary)));
        }
        text
    }

    /// The same for programs.
    pub(super) fn json(&self) -> Vec<Value> {
        self.findings
            .iter()
            .map(|finding| {
                let (file, line, unknown) = match &finding.place {
                    FindingPlace::Line(file, line) => (Some(file), Some(*line), None),
                    FindingPlace::File(file) => (Some(file), None, None),
                    FindingPlace::Unknown(named) => (None, None, Some(named)),
                };
                json!({
                    "severity": finding.severity.name(),
                    "file": file,
                    "line": line,
                    "unknown_place": unknown,
                    "title": finding.title,
                    "text": finding.text,
                })
            })
            .collect()
    }
}

impl Finding {
    fn order(&self) -> (&str, u64) {
        match &self.place {
            FindingPlace::Line(file, line) => (file, *line),
            FindingPlace::File(file) | FindingPlace::Unknown(file) => (file, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(severity: &str, file: &str, line: Value) -> Value {
        json!({"severity": severity, "file": file, "line": line, "title": "t", "text": "a\nb"})
    }

    fn review(all: Vec<Value>) -> Review {
        let lines = [("src/a.rs".to_owned(), 10)].into();
        Review::read(&json!({"summary": "Short.", "findings": all}), &lines)
    }

    #[test]
    fn findings_are_printed_worst_first_and_as_compilers_do() {
        let all = vec![
            found("note", "src/a.rs", json!(null)),
            found("error", "./src/a.rs", json!(7)),
            found("warning", "src/a.rs", json!(2)),
        ];
        let review = review(all);
        assert_eq!(review.worst(), Some(Severity::Error));
        let text = "src/a.rs:7: error: t\n  a\n  b\nsrc/a.rs:2: warning: t\n  a\n  b\nsrc/a.rs: note: t\n  a\n  b\n\
                    3 findings: 1 error, 1 warning, 1 note\n\nShort.\n";
        assert_eq!(review.text(), text);
        assert_eq!(review.json()[0]["line"], 7);
    }

    #[test]
    fn a_place_that_is_not_in_the_changes_is_said_to_be_none() {
        for (file, line) in [
            ("src/b.rs", json!(1)),
            ("src/a.rs", json!(11)),
            ("src/a.rs", json!(0)),
            ("../x", json!(null)),
        ] {
            let review = review(vec![found("error", file, line)]);
            assert!(review.text().starts_with(&format!("({file}")), "{}", review.text());
            assert_eq!(review.json()[0]["file"], Value::Null);
        }
        assert!(review(Vec::new()).text().starts_with("no findings"));
    }

    #[test]
    fn what_the_model_writes_cannot_move_the_cursor() {
        let mut bad = found("error", "src/a.rs", json!(1));
        bad["title"] = "\u{1b}[2J".into();
        assert!(!review(vec![bad]).text().contains('\u{1b}'));
    }
}
