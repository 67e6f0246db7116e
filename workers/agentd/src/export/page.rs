//! The page of a session: one file that loads nothing, runs nothing and is readable offline. Pure. For
//! `export`.

use super::html_text::escape;
use super::markdown::{coloured, to_html};
use super::report::{CallEnd, CallReport, ReportItem, SessionReport, SpanKind, TurnReport};
use crate::audit::time;
use client::{Spent, in_dollars, one_line};
use protocol::content::Usage;
use std::fmt::Write;

/// Nothing may be loaded, run or sent, whatever a text could smuggle in.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
/// Characters of a call's line.
const LINE: usize = 140;

const STYLE: &str = "\
:root{color-scheme:light dark;--line:#8884;--dim:#777;--good:#1a7f37;--bad:#cf222e;--model:#6f8fd8;\
--person:#d8a23a;--call:#4aa36c;--other:#9994}\
body{font:15px/1.5 system-ui,sans-serif;margin:0}main{max-width:60rem;margin:0 auto;padding:1.5rem}\
h1{font-size:1.4rem}h2{font-size:1.15rem}.turn{font-size:1rem;color:var(--dim);font-weight:normal;margin:2.5rem 0 .5rem}\
dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem}dt{color:var(--dim)}dd{margin:0}\
pre,code{font:13px/1.45 ui-monospace,monospace}\
pre{overflow-x:auto;white-space:pre-wrap;overflow-wrap:anywhere;border:1px solid var(--line);\
border-radius:6px;padding:.6rem;margin:.3rem 0}\
.prompt{border-left:4px solid var(--model);padding:.2rem .8rem;white-space:pre-wrap;overflow-wrap:anywhere}\
.note,.dim{color:var(--dim)}.good{color:var(--good)}.bad{color:var(--bad)}\
details{border:1px solid var(--line);border-radius:6px;padding:.3rem .7rem;margin:.5rem 0}\
summary{cursor:pointer;overflow-wrap:anywhere}h3{font-size:.85rem;color:var(--dim);margin:.7rem 0 0}\
table{border-collapse:collapse}td,th{border:1px solid var(--line);padding:.2rem .5rem}\
.bar{display:flex;height:.8rem;border-radius:4px;overflow:hidden;margin:.3rem 0}.bar i{min-width:1px}\
.model{background:var(--model)}.person{background:var(--person)}.call{background:var(--call)}\
.other{background:var(--other)}.key i{display:inline-block;width:.8rem;height:.8rem;border-radius:3px;\
margin:0 .3rem 0 1rem}\
.c1,.c9{color:#cf222e}.c2,.c10{color:#1a7f37}.c3,.c11{color:#9a6700}.c4,.c12{color:#3a6fd8}\
.c5,.c13{color:#a04fb8}.c6,.c14{color:#1b7c83}.c7,.c8{color:var(--dim)}";

/// The page. `redaction` says what was masked, if anything was looked for.
pub(super) fn page(report: &SessionReport, redaction: Option<&str>) -> String {
    let mut out = String::new();
    let title = format!("agentd session {}", report.session);
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n",
        title = escape(&title)
    );
    facts(&mut out, report, redaction);
    for turn in &report.turns {
        turn_section(&mut out, report, turn);
    }
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

fn facts(out: &mut String, report: &SessionReport, redaction: Option<&str>) {
    let mut rows = vec![
        ("project", report.project.clone()),
        ("model", models(&report.models)),
        ("began", format!("{} UTC", time(report.began))),
        ("last record", format!("{} UTC", time(report.last))),
        ("turns, calls", format!("{}, {}", report.turns.len(), report.calls.len())),
        ("tokens", tokens(report.usage)),
    ];
    rows.push((
        "cost",
        match report.spent {
            Spent::Micros(micros) => format!("{} at the vendor's list prices", in_dollars(micros)),
            Spent::Nothing => "nothing".to_owned(),
            Spent::AtLeast(0) => "unknown: the model has no known price".to_owned(),
            Spent::AtLeast(micros) => format!(
                "at least {} at the vendor's list prices; one model has no known price",
                in_dollars(micros)
            ),
        },
    ));
    let refused: u64 = report.calls.values().map(|call| call.refusals).sum();
    match &report.audit_fault {
        None => rows.push(("refused by the sandbox", refused.to_string())),
        Some(why) => rows.push(("audit log", why.clone())),
    }
    rows.extend(redaction.map(|words| ("redacted", words.to_owned())));
    out.push_str("<dl>\n");
    for (name, value) in rows {
        let _ = writeln!(out, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(&value));
    }
    out.push_str("</dl>\n<p class=\"key dim\">time:");
    for kind in [SpanKind::Model, SpanKind::Person, SpanKind::Call, SpanKind::Other] {
        let took = duration(report.spent_on(kind));
        let _ = write!(out, "<i class=\"{}\"></i>{} {took}", class(kind), words(kind));
    }
    out.push_str("</p>\n");
}

fn turn_section(out: &mut String, report: &SessionReport, turn: &TurnReport) {
    let took: u64 = turn.spans.iter().map(|(_, ms)| ms).sum();
    let _ = writeln!(
        out,
        "<h2 class=\"turn\">{} UTC, {}</h2>",
        escape(&time(turn.began)),
        duration(took)
    );
    if !turn.spans.is_empty() {
        out.push_str("<div class=\"bar\">");
        for (kind, ms) in &turn.spans {
            let (class, title) = (class(*kind), format!("{} {}", words(*kind), duration(*ms)));
            let title = escape(&title);
            let _ = write!(out, "<i class=\"{class}\" style=\"flex:{ms}\" title=\"{title}\"></i>");
        }
        out.push_str("</div>\n");
    }
    for item in &turn.items {
        match item {
            ReportItem::Prompt(text) => {
                let _ = writeln!(out, "<div class=\"prompt\">{}</div>", escape(text.trim_end()));
            }
            ReportItem::Answer(text) => {
                let _ = writeln!(out, "<div>{}</div>", to_html(text));
            }
            ReportItem::Thinking(text) => folded(out, "thinking", text),
            ReportItem::Note(text) => {
                let _ = writeln!(out, "<p class=\"note\">{}</p>", escape(text));
            }
            ReportItem::Call(number) => {
                if let Some(call) = report.calls.get(number) {
                    call_block(out, *number, call);
                }
            }
        }
    }
}

fn call_block(out: &mut String, number: u32, call: &CallReport) {
    let (class, end) = match &call.end {
        CallEnd::Open => ("bad", "no end on record"),
        CallEnd::Good(end) => ("good", end.as_str()),
        CallEnd::Bad(end) => ("bad", end.as_str()),
    };
    let took = call.started.zip(call.ended).map(|(from, to)| to.saturating_sub(from));
    let took = took.map(|ms| format!(", {}", duration(ms))).unwrap_or_default();
    let refused = match call.refusals {
        0 => String::new(),
        count => format!(" <span class=\"bad\">{count} refused by the sandbox</span>"),
    };
    let _ = writeln!(
        out,
        "<details>\n<summary>{number}. <b>{}</b> {} <span class=\"{class}\">{}</span>\
         <span class=\"dim\">{took}</span>{refused}</summary>",
        escape(&call.tool),
        escape(&one_line(&call.headline, LINE)),
        escape(end),
    );
    section(out, "arguments", &call.input);
    if let Some((preview, reason)) = &call.question {
        section(out, &format!("asked: {reason}"), preview);
    }
    section(out, "result", &call.text);
    section(out, "audit record", &call.audit);
    out.push_str("</details>\n");
}

/// A part of a call, unless it is empty.
fn section(out: &mut String, name: &str, text: &str) {
    if !text.trim().is_empty() {
        let text = text.trim_end();
        let shown = if is_diff(text) { coloured("diff", text) } else { escape(text) };
        let _ = writeln!(out, "<h3>{}</h3>\n<pre>{shown}</pre>", escape(name));
    }
}

fn is_diff(text: &str) -> bool {
    text.contains("--- ") && text.contains("\n+++ ") && text.contains("\n@@ ")
}

fn folded(out: &mut String, name: &str, text: &str) {
    let _ = writeln!(
        out,
        "<details><summary class=\"dim\">{name}</summary><pre>{}</pre></details>",
        escape(text.trim_end())
    );
}

fn models(models: &[String]) -> String {
    let mut models = models.to_vec();
    models.dedup();
    models.join(", then ")
}

fn tokens(usage: Usage) -> String {
    let Usage { input, output, cache_read, cache_write } = usage;
    let counts = [
        (input, "read"),
        (cache_read, "from the cache"),
        (cache_write, "into the cache"),
        (output, "written"),
    ];
    let counts = counts.iter().filter_map(|(count, what)| Some(format!("{} {what}", (*count)?)));
    let counts: Vec<_> = counts.collect();
    if counts.is_empty() { "not reported".to_owned() } else { counts.join(", ") }
}

fn class(kind: SpanKind) -> &'static str {
    match kind {
        SpanKind::Model => "model",
        SpanKind::Person => "person",
        SpanKind::Call => "call",
        SpanKind::Other => "other",
    }
}

fn words(kind: SpanKind) -> &'static str {
    match kind {
        SpanKind::Model => "waiting for the model",
        SpanKind::Person => "waiting for a person",
        SpanKind::Call => "running calls",
        SpanKind::Other => "other",
    }
}

/// A duration for people.
fn duration(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..60_000 => format!("{:.1} s", ms as f64 / 1e3),
        _ => format!("{} min {} s", ms / 60_000, ms / 1000 % 60),
    }
}
