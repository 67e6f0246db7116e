//! The line at the end of a turn: its time, calls, tokens, cost and changed lines. Pure.

use crate::cost::{count, in_dollars, sum};
use crate::lines::in_time;
use protocol::call::{Call, ToolResult};
use protocol::content::Usage;
use protocol::session::{TaskSpent, TurnEnd};
use std::time::Duration;

/// Tools whose result is the diff of what they changed.
const EDITS: &[&str] =
    &["edit", "multi_edit", "write", "rewrite", "apply_patch", "delete", "format", "undo_restore"];

/// Added and removed lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ChangedLines {
    added: u32,
    removed: u32,
}

/// What a turn took.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TurnTotals {
    calls: u32,
    usage: Usage,
    changed: ChangedLines,
    /// The cost of sub-agents; none where one is not known.
    tasks: Option<u64>,
    /// The whole cost, if it is known.
    cost: Option<u64>,
    took: Option<Duration>,
    /// How it ended.
    end: Option<TurnEnd>,
}

impl ChangedLines {
    /// Of a call's result.
    pub(crate) fn of(call: &Call, result: &ToolResult) -> Self {
        match EDITS.contains(&call.tool.as_str()) && !result.is_error {
            true => Self::of_diff(&result.text),
            false => Self::default(),
        }
    }

    /// A line of a hunk may look like a header, so the lengths of hunks count.
    fn of_diff(text: &str) -> Self {
        let mut changed = Self::default();
        let (mut old, mut new) = (0u32, 0u32);
        for line in text.lines() {
            if let (0, 0) = (old, new) {
                (old, new) = hunk(line).unwrap_or_default();
                continue;
            }
            match line.as_bytes().first() {
                Some(b'+') => {
                    changed.added += 1;
                    new = new.saturating_sub(1);
                }
                Some(b'-') => {
                    changed.removed += 1;
                    old = old.saturating_sub(1);
                }
                Some(b'\\') => {}
                Some(_) | None => (old, new) = (old.saturating_sub(1), new.saturating_sub(1)),
            }
        }
        changed
    }

    /// None where no line changed.
    pub(crate) fn in_words(self) -> Option<String> {
        let Self { added, removed } = self;
        (added + removed > 0).then(|| format!("+{added} -{removed}"))
    }

    fn add(&mut self, more: Self) {
        self.added = self.added.saturating_add(more.added);
        self.removed = self.removed.saturating_add(more.removed);
    }
}

/// The lengths in a hunk's header, `@@ -1,4 +1,4 @@`.
fn hunk(line: &str) -> Option<(u32, u32)> {
    let (ranges, _) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let length = |range: &str| match range.split_once(',') {
        Some((_, length)) => length.parse().ok(),
        None => Some(1),
    };
    Some((length(old)?, length(new)?))
}

impl TurnTotals {
    pub(crate) fn answered(&mut self, usage: Usage) {
        self.usage = sum(self.usage, usage);
    }

    /// A call ended; `spent` is what its sub-agent used.
    pub(crate) fn called(&mut self, call: &Call, result: &ToolResult, spent: Option<&TaskSpent>) {
        if !call.origin.is_model() {
            return;
        }
        if self.calls == 0 {
            self.tasks = Some(0);
        }
        self.calls = self.calls.saturating_add(1);
        self.changed.add(ChangedLines::of(call, result));
        if let Some(spent) = spent {
            self.usage = sum(self.usage, spent.usage);
            self.tasks = self.tasks.zip(spent.cost).map(|(all, more)| all.saturating_add(more));
        }
    }

    /// With its end.
    #[must_use]
    pub(crate) fn ending(self, end: TurnEnd) -> Self {
        Self { end: Some(end), ..self }
    }

    /// With the cost of the turn's own answers, if it is known.
    #[must_use]
    pub(crate) fn costing(self, own: Option<u64>) -> Self {
        let tasks = if self.calls == 0 { Some(0) } else { self.tasks };
        let cost = own.zip(tasks).map(|(own, tasks)| own.saturating_add(tasks));
        Self { cost, ..self }
    }

    /// With the time it took, where this terminal saw its beginning.
    #[must_use]
    pub fn lasting(self, took: Option<Duration>) -> Self {
        Self { took, ..self }
    }

    /// One line; empty where nothing is known.
    #[must_use]
    pub fn in_words(&self) -> String {
        let Usage { input, output, cache_read, cache_write } = self.usage;
        let sent =
            [input, cache_read, cache_write].into_iter().flatten().reduce(u64::saturating_add);
        let calls = match self.calls {
            0 => None,
            1 => Some("1 call".to_owned()),
            calls => Some(format!("{calls} calls")),
        };
        let words = [
            self.took.map(time),
            calls,
            sent.map(|tokens| format!("{} in", count(tokens))),
            output.map(|tokens| format!("{} out", count(tokens))),
            self.cost.map(in_dollars),
            self.changed.in_words(),
        ];
        let words = words.into_iter().flatten().collect::<Vec<_>>().join(" · ");
        match self.end {
            Some(TurnEnd::Done) if !words.is_empty() => format!("✓ {words}"),
            Some(_) | None => words,
        }
    }
}

fn time(took: Duration) -> String {
    match took.as_secs() {
        0..10 => format!("{:.1} s", took.as_secs_f64()),
        seconds => in_time(seconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::call::{CallOrigin, Outcome};
    use protocol::ids::{CallId, SessionId};

    fn call(tool: &str) -> Call {
        let id = CallId { session: SessionId("s".to_owned()), number: 1 };
        let tool = tool.to_owned();
        Call { id, origin: CallOrigin::model("u"), tool, input: "{}".to_owned() }
    }

    fn result(text: &str) -> ToolResult {
        let (text, summary) = (text.to_owned(), String::new());
        let (code, images) = (None, Vec::new());
        ToolResult { outcome: Outcome::Done, text, summary, is_error: false, code, images }
    }

    #[test]
    fn the_line_has_what_is_known_of_the_turn() {
        let mut totals = TurnTotals::default();
        assert_eq!(totals.in_words(), "");
        let usage = Usage {
            input: Some(3_000),
            cache_read: Some(80_000),
            output: Some(1_200),
            ..Usage::default()
        };
        totals.answered(usage);
        let diff = "edited a\n--- a/a\n+++ b/a\n@@ -1,2 +1,3 @@\n kept\n--- no header\n++++ nor this\n+x\n";
        totals.called(&call("edit"), &result(diff), None);
        // A tool that only shows a diff changes nothing.
        totals.called(&call("git_diff"), &result(diff), None);
        let totals = totals.costing(Some(150_000)).lasting(Some(Duration::from_secs(48)));
        let words = "48 s · 2 calls · 83.0k in · 1.2k out · $0.15 · +2 -1";
        assert_eq!(totals.clone().ending(TurnEnd::Interrupted).in_words(), words);
        assert_eq!(totals.ending(TurnEnd::Done).in_words(), format!("✓ {words}"));
        assert_eq!(TurnTotals::default().ending(TurnEnd::Done).in_words(), "");
        let short = TurnTotals::default().lasting(Some(Duration::from_millis(440)));
        assert_eq!(short.in_words(), "0.4 s");
    }

    #[test]
    fn a_sub_agent_counts_and_one_of_unknown_cost_leaves_the_cost_out() {
        for (cost, words) in [(Some(50_000), "1 call · 7 out · $0.15"), (None, "1 call · 7 out")]
        {
            let mut totals = TurnTotals::default();
            let usage = Usage { output: Some(7), ..Usage::default() };
            let session = SessionId("t".to_owned());
            let spent = TaskSpent { session, rounds: 1, calls: 2, usage, cost };
            totals.called(&call("task"), &result("found"), Some(&spent));
            assert_eq!(totals.costing(Some(100_000)).in_words(), words);
        }
    }

    #[test]
    fn lines_of_several_files_and_hunks() {
        let text = "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n\\ No newline\n--- c\n+++ d\n@@ -0,0 +1,2 @@\n+1\n+2\n";
        assert_eq!(ChangedLines::of_diff(text).in_words().as_deref(), Some("+3 -1"));
        assert_eq!(ChangedLines::of_diff("+ no diff\n").in_words(), None);
    }
}
