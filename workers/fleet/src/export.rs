//! Tasks as JSON lines and as one HTML page, and a journal's record as a line. Pure.

use crate::shown::one_line;
use crate::shown::span;
use protocol::hidden::{in_json, on_screen};
use serde_json::Value;
use std::fmt::Write as _;

/// Most characters of a record's text on its line.
const SHOWN: usize = 160;

pub(crate) fn lines(tasks: &[Value]) -> String {
    tasks.iter().map(|task| format!("{}\n", in_json(&task.to_string()))).collect()
}

/// One page without scripts and without anything from elsewhere.
pub(crate) fn page(tasks: &[Value]) -> String {
    let mut out = String::from(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>agentd tasks</title>\n\
         <style>body{font:15px system-ui;margin:2em}td,th{text-align:left;vertical-align:top;\
         padding:.3em .8em;border-bottom:1px solid #ddd}pre{white-space:pre-wrap;margin:0}</style>\n",
    );
    let many = |state: &str| tasks.iter().filter(|task| task["state"] == state).count();
    let states = ["done", "failed", "held", "cancelled", "running", "queued"];
    let counts: Vec<_> = states.iter().map(|state| format!("{} {state}", many(state))).collect();
    let _ = writeln!(out, "<h1>{} tasks</h1><p>{}</p>", tasks.len(), counts.join(", "));
    out.push_str("<table><tr><th>Task<th>State<th>Time<th>Prompt<th>Answer\n");
    for task in tasks {
        let word = |value: &Value| escape(&on_screen(value.as_str().unwrap_or_default()));
        let answer = &task["result"]["answer"];
        let answer = word(if answer.is_string() { answer } else { &task["reason"] });
        let time = task["seconds"].as_f64().map(span).unwrap_or_default();
        let _ = writeln!(
            out,
            "<tr><td>{}<td>{}<td>{time}<td><pre>{}</pre><td><pre>{answer}</pre>",
            task["task"],
            word(&task["state"]),
            word(&task["prompt"]),
        );
    }
    out.push_str("</table>\n");
    out
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A record of a journal: number, kind, and its call or the beginning of its text.
pub(crate) fn record_line(line: &str) -> String {
    let Ok(record) = serde_json::from_str::<Value>(line) else {
        return "a record that cannot be read\n".to_owned();
    };
    let kind = one_line(record["kind"].as_str().unwrap_or("?"));
    let of_blocks = || {
        let blocks = record["blocks"].as_array()?.iter();
        blocks.filter_map(|block| block["text"].as_str()).next()
    };
    let text = ["text", "summary", "tool", "cause", "message"].iter();
    let text = text.filter_map(|key| record[*key].as_str()).find(|text| !text.is_empty());
    let text = text.or_else(of_blocks).unwrap_or_default();
    let text: String = one_line(text).chars().take(SHOWN).collect();
    let call = record["call"].as_u64().map(|call| format!("call {call} ")).unwrap_or_default();
    format!("{:>5}  {kind:<12} {call}{text}\n", record["seq"].as_u64().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_page_contains_no_markup_of_a_task() {
        let task = json!({"task": 1, "state": "done", "prompt": "<script>alert(1)</script>",
            "seconds": 1.5, "result": {"answer": "a & b"}});
        let page = page(&[task]);
        assert!(!page.contains("<script>"));
        assert!(page.contains("a &amp; b") && page.contains("1.5 s") && page.contains("1 done"));
    }

    #[test]
    fn a_record_is_one_line_without_control_characters() {
        let line = r#"{"seq":7,"time":1,"kind":"RESULT","call":3,"text":"a\nb\u001b[31m","crc":1}"#;
        assert_eq!(record_line(line), "    7  RESULT       call 3 a b\u{fffd}[31m\n");
    }
}
