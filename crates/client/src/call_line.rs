//! A call that has ended, as one line: state, title, facts. Five words have one meaning on every screen and in every
//! text. Pure.

use crate::call_gist::call_title;
use crate::lines::one_line;
use crate::screen_items::CallBlock;
use protocol::call::{Outcome, REFUSED_LINE, SEPARATOR, ToolResult};
use protocol::hidden::on_screen;
use protocol::judgement::{NOTE_OF_PERSON, PLAN_REFUSED, REFUSED_BY_PERSON};

/// Most characters of a fact.
const FACT: usize = 80;
/// How notes of agentd begin that are for people too: what became of their files, processes, keys and network, and what
/// is not shown. The others are hints for the model.
const FOR_PEOPLE: [&str; 11] = [
    "[protected file",
    "[a protected name",
    "[git-admin",
    "[git-sign",
    "[run later",
    "[background processes were killed",
    "[no file may grow",
    "[the network proxy",
    "[the proxy",
    "[stdout had",
    "[stderr had",
];
/// What such notes say behind a number.
const FOR_PEOPLE_COUNTED: [&str; 2] =
    [" of its processes could not be killed]", " more were not made; "];

/// What the model gets of a command that printed nothing.
const NO_OUTPUT: &str = "(no output)";

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallState {
    /// It did what it should.
    Done,
    /// It ran, and did not.
    Failed,
    /// Nothing of it ran.
    NotRun,
    /// It was cut short, and may have run.
    Unknown,
    /// It has no end yet.
    Runs,
}

/// What is known of the end of a call that was interrupted. Other outcomes say it themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InterruptedEnd {
    /// A person stopped a command, and all its processes have ended.
    Stopped,
    /// Nothing is.
    Unknown,
}

impl InterruptedEnd {
    /// By a result's line for the screen: a command's has its code, once it has ended.
    #[must_use]
    pub fn of_summary(summary: &str) -> Self {
        match command_end(summary) {
            Some(_) => Self::Stopped,
            None => Self::Unknown,
        }
    }
}

impl CallState {
    /// Of a call that ended so.
    #[must_use]
    pub fn of(outcome: &Outcome, end: InterruptedEnd) -> Self {
        match outcome {
            Outcome::Done | Outcome::Exited { code: 0 } => Self::Done,
            Outcome::Failed
            | Outcome::Exited { .. }
            | Outcome::Signalled { .. }
            | Outcome::TimedOut
            | Outcome::Confined { .. }
            | Outcome::OutOfMemory
            | Outcome::Crashed => Self::Failed,
            Outcome::Denied
            | Outcome::Refused { .. }
            | Outcome::Invalid
            | Outcome::NeverStarted => Self::NotRun,
            Outcome::Interrupted => match end {
                InterruptedEnd::Stopped => Self::Failed,
                InterruptedEnd::Unknown => Self::Unknown,
            },
        }
    }

    fn of_result(result: &ToolResult) -> Self {
        Self::of(&result.outcome, InterruptedEnd::of_summary(&result.summary))
    }

    /// One character.
    #[must_use]
    pub fn mark(self) -> &'static str {
        match self {
            Self::Done => "✓",
            Self::Failed => "✗",
            Self::NotRun => "⊘",
            Self::Unknown => "?",
            Self::Runs => "●",
        }
    }

    /// The word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::NotRun => "not run",
            Self::Unknown => "unknown",
            Self::Runs => "runs",
        }
    }
}

/// How a call ended, beyond its state. None where the state says it.
fn outcome_detail(outcome: &Outcome, end: InterruptedEnd) -> Option<String> {
    Some(match outcome {
        Outcome::Done | Outcome::Failed | Outcome::Exited { code: 0 } => return None,
        Outcome::Exited { code } => format!("exit {code}"),
        Outcome::Signalled { signal } => format!("ended by signal {signal}"),
        Outcome::TimedOut => "timed out".to_owned(),
        Outcome::Denied => "denied".to_owned(),
        Outcome::Refused { rule } => format!("refused ({rule})"),
        Outcome::Confined { what } => format!("stopped by the cage ({what})"),
        Outcome::OutOfMemory => "out of memory".to_owned(),
        Outcome::Crashed => "crashed".to_owned(),
        Outcome::Interrupted => match end {
            InterruptedEnd::Stopped => "stopped".to_owned(),
            InterruptedEnd::Unknown => "may have run".to_owned(),
        },
        Outcome::Invalid => "invalid call".to_owned(),
        Outcome::NeverStarted => "never started".to_owned(),
    })
}

/// How a call ended: the word, and what it does not say.
#[must_use]
pub fn outcome_words(outcome: &Outcome, end: InterruptedEnd) -> String {
    let word = CallState::of(outcome, end).word();
    match outcome_detail(outcome, end) {
        Some(detail) => format!("{word}: {detail}"),
        None => word.to_owned(),
    }
}

/// A call in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallLine {
    /// What became of it.
    pub state: CallState,
    /// The call, without JSON.
    pub title: String,
    /// What is worth knowing about its end, the most important first.
    pub facts: Vec<String>,
}

impl CallLine {
    /// Of a call with or without an end.
    #[must_use]
    pub fn of(block: &CallBlock) -> Self {
        let title = one_line(&call_title(&block.call), 400);
        let Some(result) = &block.result else {
            let waits = (!block.runs()).then(|| "waits".to_owned());
            return Self { state: CallState::Runs, title, facts: waits.into_iter().collect() };
        };
        let state = CallState::of_result(result);
        let has_failed = state == CallState::Done && result.is_error;
        let state = if has_failed { CallState::Failed } else { state };
        let mut facts = end_facts(state, block, result);
        facts.extend(block.agent_calls.map(calls_in_words));
        Self { state, title, facts: facts.iter().map(|fact| one_line(fact, FACT)).collect() }
    }

    /// The facts behind the title, with the word where neither the mark nor a fact says it.
    #[must_use]
    pub fn end(&self) -> String {
        let word = match self.state {
            CallState::Done | CallState::Runs => None,
            CallState::Failed => self.facts.is_empty().then_some(self.state),
            CallState::NotRun | CallState::Unknown => Some(self.state),
        };
        let words = word.map(CallState::word).into_iter();
        words.chain(self.facts.iter().map(String::as_str)).map(|it| format!(" · {it}")).collect()
    }
}

/// A number of calls.
pub(crate) fn calls_in_words(calls: u32) -> String {
    match calls {
        1 => "1 call".to_owned(),
        calls => format!("{calls} calls"),
    }
}

fn end_facts(state: CallState, block: &CallBlock, result: &ToolResult) -> Vec<String> {
    // A command's line for the screen has its code and its time.
    if let Some(end) = command_end(&result.summary).filter(|_| state != CallState::NotRun) {
        if result.outcome == Outcome::Interrupted {
            let time = end.split_once(" · ").map(|(_, time)| time.to_owned());
            return std::iter::once("stopped".to_owned()).chain(time).collect();
        }
        let of_success = end.strip_prefix("0 · ").filter(|_| state == CallState::Done);
        return vec![of_success.map_or_else(|| format!("exit {end}"), str::to_owned)];
    }
    match (state, outcome_detail(&result.outcome, InterruptedEnd::Unknown), block.basis.as_deref())
    {
        (CallState::Done | CallState::Runs, ..) => done_facts(block, result),
        (CallState::NotRun, Some(_), Some(basis)) if result.outcome == Outcome::Denied => {
            vec![format!("denied: {basis}")]
        }
        (_, detail, _) => detail.into_iter().collect(),
    }
}

/// The code and the time in a command's summary, which agentd makes when all of it has ended.
fn command_end(summary: &str) -> Option<&str> {
    summary.strip_prefix("exit ")
}

fn done_facts(block: &CallBlock, result: &ToolResult) -> Vec<String> {
    let summary = result.summary.trim();
    // Most tools name their subject first, as the title does.
    let fact = summary.split_once(": ").map_or(summary, |(_, fact)| fact);
    // The answer of a sub-agent is shown below.
    let is_told =
        ["", "done"].contains(&fact) || block.call.tool == "task" || result.text.trim() == fact;
    if is_told { Vec::new() } else { vec![fact.to_owned()] }
}

/// The reason that a person gave for a refusal, in their words.
#[must_use]
pub fn reason_of_person(block: &CallBlock) -> Option<&str> {
    let result = block.result.as_ref()?;
    let of = |beginning: &str| result.summary.strip_prefix(beginning)?.strip_prefix(": ");
    of(REFUSED_BY_PERSON).or_else(|| of(PLAN_REFUSED)).map(str::trim).filter(|it| !it.is_empty())
}

/// Why a call did not do what it should, for people. None of a command, which has its code, and of a person's refusal.
#[must_use]
pub fn failure_of(block: &CallBlock) -> Option<&str> {
    let result = block.result.as_ref()?;
    let is_good = CallState::of_result(result) == CallState::Done;
    let summary = result.summary.trim();
    let is_refusal = [REFUSED_BY_PERSON, PLAN_REFUSED].iter().any(|it| summary.starts_with(it));
    if is_good || is_refusal || command_end(summary).is_some() {
        return None;
    }
    let summary = summary.strip_prefix(&format!("{}: ", block.call.tool)).unwrap_or(summary);
    Some(summary).filter(|it| !it.is_empty())
}

/// The part of a result that people see without asking for more: what a program or a tool printed. What agentd says to
/// the model is left out.
#[must_use]
pub fn shown_output(block: &CallBlock) -> String {
    let Some(result) = &block.result else { return String::new() };
    let is_for_model = result.is_own_error()
        || block.call.tool == "exit_plan"
        || CallState::of_result(result) == CallState::NotRun;
    let separator = format!("{SEPARATOR}\n");
    let (printed, notes) = match result.text.rsplit_once(&separator) {
        Some(parts) => parts,
        None if is_for_model => ("", result.text.as_str()),
        None => (without_summary(result), ""),
    };
    let printed = match block.is_answered_by_person() {
        true => without_note_of_person(printed),
        false => printed.to_owned(),
    };
    let printed = without_refusals(&printed, &block.refused);
    let notes = notes.lines().filter(|line| is_for_people(line));
    let all: Vec<&str> = printed.lines().chain(notes).collect();
    let all = all.join("\n");
    on_screen(Some(all.trim_end()).filter(|all| *all != NO_OUTPUT).unwrap_or_default())
}

/// An output without the note that the person typed. Only other notes of agentd stand before it.
fn without_note_of_person(printed: &str) -> String {
    let own = printed.split_inclusive('\n').take_while(|line| line.starts_with('['));
    let mut before = 0;
    for line in own {
        if line.starts_with(NOTE_OF_PERSON) {
            let (others, note) = printed.split_at(before);
            let behind = note.split_once("]\n").map_or("", |(_, behind)| behind);
            return format!("{others}{behind}");
        }
        before += line.len();
    }
    printed.to_owned()
}

fn is_for_people(note: &str) -> bool {
    FOR_PEOPLE.iter().any(|it| note.starts_with(it))
        || FOR_PEOPLE_COUNTED.iter().any(|it| note.starts_with('[') && note.contains(it))
}

/// A call's output without the refusals that are shown below it.
#[must_use]
pub fn without_refusals(output: &str, refused: &[String]) -> String {
    let is_shown = |line: &&str| !refused.is_empty() && line.starts_with(REFUSED_LINE);
    output.lines().filter(|line| !is_shown(line)).collect::<Vec<_>>().join("\n")
}

/// A tool's text without its last line, if the summary repeats that line.
fn without_summary(result: &ToolResult) -> &str {
    let text = result.text.trim_end();
    let (before, last) = text.rsplit_once('\n').unwrap_or(("", text));
    match result.summary.trim().strip_prefix(last.trim()) {
        Some(rest) if rest.is_empty() || rest.starts_with(',') => before,
        Some(_) | None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::call::{Call, CallOrigin};
    use protocol::ids::{CallId, SessionId};

    fn block(tool: &str, input: &str, outcome: Outcome, text: &str, summary: &str) -> CallBlock {
        let id = CallId { session: SessionId("s".to_owned()), number: 1 };
        let (tool, input) = (tool.to_owned(), input.to_owned());
        let mut block = CallBlock::new(Call { id, origin: CallOrigin::model("u"), tool, input });
        let is_error = CallState::of(&outcome, InterruptedEnd::Unknown) != CallState::Done;
        let (text, summary) = (text.to_owned(), summary.to_owned());
        let (code, images) = (None, Vec::new());
        block.result = Some(ToolResult { outcome, text, summary, is_error, code, images });
        block
    }

    fn line(block: &CallBlock) -> String {
        let line = CallLine::of(block);
        format!("{} {}{}", line.state.mark(), line.title, line.end())
    }

    #[test]
    fn each_end_of_a_call_is_one_line_in_one_of_five_words() {
        let bash = r#"{"command":"python3 tests/run.py"}"#;
        let edit = r#"{"path":"a.rs"}"#;
        let diff = "edited a.rs: 1 replacement\n--- a/a.rs\n+++ b/a.rs\n@@ -1 +1 @@\n-a\n+b\n";
        for (tool, input, outcome, text, summary, shown) in [
            (
                "bash",
                bash,
                Outcome::Exited { code: 0 },
                "ok",
                "exit 0 · 0.1 s",
                "✓ python3 tests/run.py · 0.1 s",
            ),
            (
                "bash",
                bash,
                Outcome::Exited { code: 1 },
                "no",
                "exit 1 · 0.1 s",
                "✗ python3 tests/run.py · exit 1 · 0.1 s",
            ),
            (
                "edit",
                edit,
                Outcome::Done,
                diff,
                "edited a.rs: 1 replacement",
                "✓ edit a.rs · 1 replacement",
            ),
            ("read", edit, Outcome::Done, "x", "a.rs: 1 lines", "✓ read a.rs · 1 lines"),
            (
                "edit",
                edit,
                Outcome::Failed,
                "Error [x] edit: no",
                "edit: no",
                "✗ edit a.rs · failed",
            ),
            (
                "edit",
                edit,
                Outcome::NeverStarted,
                "x",
                "x",
                "⊘ edit a.rs · not run · never started",
            ),
            (
                "bash",
                bash,
                Outcome::Interrupted,
                "x",
                "exit 130 (cancelled; all its processes were killed) · 3.0 s",
                "✗ python3 tests/run.py · stopped · 3.0 s",
            ),
            ("edit", edit, Outcome::Interrupted, "x", "x", "? edit a.rs · unknown · may have run"),
            (
                "exit_plan",
                "{}",
                Outcome::Done,
                "carry the plan out",
                "the session left mode plan",
                "✓ plan · the session left mode plan",
            ),
        ] {
            assert_eq!(line(&block(tool, input, outcome, text, summary)), shown);
        }
        let running = CallBlock::new(block("bash", bash, Outcome::Done, "", "").call);
        assert_eq!(line(&running), "● python3 tests/run.py · waits");
    }

    #[test]
    fn of_a_denial_the_persons_words_are_shown_and_none_of_those_for_the_model() {
        let text = format!("Error [denied] edit: {REFUSED_BY_PERSON}: use yarn");
        let summary = format!("{REFUSED_BY_PERSON}: use yarn");
        let mut denied = block("edit", r#"{"path":"a.rs"}"#, Outcome::Denied, &text, &summary);
        denied.basis = Some("answered by you".to_owned());
        assert_eq!(line(&denied), "⊘ edit a.rs · not run · denied: answered by you");
        assert_eq!(reason_of_person(&denied), Some("use yarn"));
        assert_eq!(failure_of(&denied), None);
        assert_eq!(shown_output(&denied), "");
        let silent = format!("{REFUSED_BY_PERSON}. Find another way, or ask what they want.");
        let silent = block("edit", "{}", Outcome::Denied, &silent, &silent);
        assert_eq!(reason_of_person(&silent), None);
    }

    #[test]
    fn the_note_of_a_person_is_no_output_of_the_call() {
        let printed = format!("one\n{NOTE_OF_PERSON}x]\n{SEPARATOR}\nexit code: 0");
        for note in ["keep it]\n", "two\n\nlines]\n", "odd] words]\n"] {
            for other in ["", "[read as a path]\n"] {
                let text = format!("{other}{NOTE_OF_PERSON}{note}{printed}");
                let ended = Outcome::Exited { code: 0 };
                let mut noted = block("bash", "{}", ended, &text, "exit 0 · 0.1 s");
                // Without a person who answered, a program printed it.
                assert!(shown_output(&noted).contains(NOTE_OF_PERSON));
                noted.basis = Some("answered by you".to_owned());
                let want = format!("{other}one\n{NOTE_OF_PERSON}x]");
                assert_eq!(shown_output(&noted), want);
            }
        }
        let text = format!("{NOTE_OF_PERSON}thanks]\nedited a.rs: 1 replacement\n+b");
        let mut edit = block("edit", "{}", Outcome::Done, &text, "edited a.rs: 1 replacement");
        edit.basis = Some("answered by terminal 2".to_owned());
        assert_eq!(shown_output(&edit), "edited a.rs: 1 replacement\n+b");
    }

    #[test]
    fn an_output_is_what_the_program_printed_and_what_became_of_the_persons_files() {
        let text =
            format!("one\n{SEPARATOR}\n[protected file: .git/config]\n[hint: ask]\nexit code: 1");
        let failed = block("bash", "{}", Outcome::Exited { code: 1 }, &text, "exit 1 · 0.1 s");
        assert_eq!(shown_output(&failed), "one\n[protected file: .git/config]");
        let silent = format!("{NO_OUTPUT}\n{SEPARATOR}\nexit code: 0");
        let silent = block("bash", "{}", Outcome::Exited { code: 0 }, &silent, "exit 0 · 0.1 s");
        assert_eq!(shown_output(&silent), "");
    }

    #[test]
    fn only_an_error_in_agentds_own_words_is_hidden() {
        let with_code = |mut block: CallBlock, code: &str| {
            if let Some(result) = &mut block.result {
                result.code = Some(code.to_owned());
            }
            block
        };
        let own = block("edit", "{}", Outcome::Failed, "Error [x] edit: no\nHint: y", "edit: no");
        let own = with_code(own, "x");
        assert_eq!((shown_output(&own).as_str(), failure_of(&own)), ("", Some("no")));
        // A program prints the same.
        let node = "Error [ERR_MODULE_NOT_FOUND]: Cannot find package";
        let text = format!("{node}\n{SEPARATOR}\n[hint: ask]\nexit code: 1");
        let printed = block("bash", "{}", Outcome::Exited { code: 1 }, &text, "exit 1 · 0.1 s");
        assert_eq!(shown_output(&printed), node);
        let text = format!("Error [timed_out] mine\n{SEPARATOR}\nexit code: 124 (timed out)");
        let slow = block("bash", "{}", Outcome::TimedOut, &text, "exit 124 (timed out) · 2.0 s");
        assert_eq!(shown_output(&with_code(slow, "timed_out")), "Error [timed_out] mine");
    }

    #[test]
    fn notes_for_people_are_shown_and_those_for_the_model_are_not() {
        let notes = [
            "[stdout had 9 bytes, 4 not shown; narrow it]",
            "[background processes were killed when the command ended: sleep; start it]",
            "[2 of its processes could not be killed]",
            "[the network proxy: example.org:443 was refused]",
            "[3 more were not made; agentd audit show has the record]",
        ];
        let text = format!(
            "x\n{SEPARATOR}\n{}\n[timeout_ms may be up to 9]\nexit code: 1",
            notes.join("\n")
        );
        let failed = block("bash", "{}", Outcome::Exited { code: 1 }, &text, "exit 1 · 0.1 s");
        assert_eq!(shown_output(&failed), format!("x\n{}", notes.join("\n")));
        let text =
            "Error [interrupted] bash: interrupted: may have run.\n[a protected name: .envrc]";
        let mut lost =
            block("bash", "{}", Outcome::Interrupted, text, "interrupted: may have run.");
        if let Some(result) = &mut lost.result {
            result.code = Some("interrupted".to_owned());
        }
        assert_eq!(shown_output(&lost), "[a protected name: .envrc]");
    }

    #[test]
    fn a_call_that_did_not_run_has_its_reason() {
        for (outcome, summary, why) in [
            (Outcome::Invalid, "edit: path is missing", "path is missing"),
            (
                Outcome::NeverStarted,
                "not run: the turn was stopped",
                "not run: the turn was stopped",
            ),
            (Outcome::Interrupted, "interrupted: may have run", "interrupted: may have run"),
        ] {
            let text = format!("Error [x] {summary}\nHint: y");
            let block = block("edit", "{}", outcome, &text, summary);
            assert_eq!(failure_of(&block), Some(why));
        }
    }

    #[test]
    fn outcomes_in_words_for_records() {
        let cases = [
            (Outcome::Done, "done"),
            (Outcome::Exited { code: 3 }, "failed: exit 3"),
            (Outcome::Denied, "not run: denied"),
            (Outcome::NeverStarted, "not run: never started"),
            (Outcome::Interrupted, "unknown: may have run"),
        ];
        let stopped = outcome_words(&Outcome::Interrupted, InterruptedEnd::Stopped);
        assert_eq!(stopped, "failed: stopped");
        for (outcome, words) in cases {
            assert_eq!(outcome_words(&outcome, InterruptedEnd::Unknown), words);
        }
    }
}
