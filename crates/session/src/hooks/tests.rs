//! The scheduler of hooks by itself: each event's run, and the effect of its answer by the table.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::tool_lookup::{CallError, ReadCall};
use protocol::call::CallOrigin;
use protocol::content::ToolSpec;
use protocol::context::{CompactionKind, ContextSettings};
use protocol::hook::{EditHook, EventHook, SessionHooks};
use protocol::ids::SessionId;
use protocol::judgement::{PermissionMode, ToolKind};
use protocol::session::{CopyBeforeChange, OfferedTool, SessionBounds, ToolListing};

/// Calls name their files as words.
fn reader(tool: &str, input: &str, _: &str) -> Result<ReadCall, CallError> {
    let paths = input.split_whitespace().map(str::to_owned).collect();
    let (tool, input) = (tool.to_owned(), input.to_owned());
    Ok(ReadCall { tool, input, note: None, paths, removed: Vec::new() })
}

fn setup(event: HookEvent, commands: &[&str]) -> SessionSetup {
    let hook = |command: &&str| EventHook {
        event,
        matched: None,
        command: (*command).to_owned(),
        broken: None,
        timeout_ms: 1000,
        file: "f".to_owned(),
    };
    let events = commands.iter().map(hook).collect();
    let (name, description, input_schema) = ("edit".to_owned(), String::new(), String::new());
    let spec = ToolSpec { name, description, input_schema };
    let kind = ToolKind::Mutation;
    SessionSetup {
        id: SessionId("s".to_owned()),
        project: "/p".to_owned(),
        model: "m".to_owned(),
        system: String::new(),
        tools: vec![OfferedTool {
            spec,
            kind,
            copies: CopyBeforeChange::Kept,
            aliases: Vec::new(),
            listing: ToolListing::Always,
        }],
        max_rounds: 9,
        max_calls: 9,
        max_session: SessionBounds::default(),
        max_tokens: 9,
        parallel: 1,
        context: ContextSettings { max_result_chars: 9, compaction: CompactionKind::Cut },
        facts: protocol::client::ModelFacts::default(),
        pinned: Vec::new(),
        hooks: SessionHooks { events, ..SessionHooks::default() },
        mode: PermissionMode::Ask,
    }
}

fn call(number: u32, origin: CallOrigin, tool: &str, input: &str) -> Call {
    let id = CallId { session: SessionId("s".to_owned()), number };
    Call { id, origin, tool: tool.to_owned(), input: input.to_owned() }
}

fn edit(files: &str) -> Call {
    call(1, CallOrigin::model("use"), "edit", files)
}

fn text(text: &str) -> ToolResult {
    let (outcome, text, summary) = (Outcome::Done, text.to_owned(), String::new());
    ToolResult { outcome, text, summary, is_error: false, code: None, images: Vec::new() }
}

/// Hooks, and the numbers of their calls.
struct Talk {
    hooks: Hooks,
    setup: SessionSetup,
    number: u32,
}

impl Talk {
    fn new(event: HookEvent, commands: &[&str]) -> Self {
        Self { hooks: Hooks::default(), setup: setup(event, commands), number: 10 }
    }

    fn happened(&mut self, event: &SessionEvent) -> Vec<HookText> {
        self.hooks.apply(event, &self.setup, reader)
    }

    fn prompt(&mut self) {
        self.happened(&SessionEvent::Prompt { text: "Go.".to_owned(), expanded: None });
    }

    fn called(&mut self, call: &Call) {
        self.happened(&SessionEvent::Called { call: call.clone() });
    }

    fn ended(&mut self, call: &Call, result: ToolResult) -> Vec<HookText> {
        self.happened(&SessionEvent::ended(call.id.clone(), call.origin.clone(), result))
    }

    /// The run becomes a call and ends with this text.
    fn run(&mut self, run: DueRun, answer: &str) -> Vec<HookText> {
        self.number += 1;
        let call = call(self.number, run.origin, run.tool, &run.input);
        self.called(&call);
        self.ended(&call, text(answer))
    }

    fn due(&self) -> Vec<DueRun> {
        self.hooks.due(&self.setup, reader)
    }

    fn before(&self, call: &Call) -> HookStep {
        self.hooks.before_call(call, &self.setup, reader)
    }

    fn aside(&mut self) -> Option<AsideStep> {
        self.hooks.next_aside(&self.setup, reader)
    }
}

fn command(run: &DueRun) -> String {
    let input: serde_json::Value = serde_json::from_str(&run.input).unwrap();
    let word = |field: &str| input[field].as_str().unwrap_or_default().to_owned();
    let file = input["about"]["file"].as_str().unwrap_or_default();
    format!("{} {}{file}", run.tool, word("command")).trim_end().to_owned()
}

fn first(step: HookStep) -> DueRun {
    let HookStep::Run(run) = step else { panic!("{step:?}") };
    run
}

const PASS: &str = r#"{"verdict":"pass"}"#;
const BLOCK: &str = r#"{"verdict":"block","reason":"no"}"#;

/// Brings an event about; its first run.
fn begin(talk: &mut Talk, event: HookEvent) -> DueRun {
    let occasion =
        |call| HookOccasion { event, subject: "edit".to_owned(), call, message: String::new() };
    match event {
        HookEvent::UserPromptSubmit | HookEvent::SessionStart => talk.prompt(),
        HookEvent::Stop | HookEvent::SubagentStop => talk.hooks.turn_ends(),
        HookEvent::PreToolUse => {
            talk.called(&edit("a"));
            return first(talk.before(&edit("a")));
        }
        HookEvent::PostToolUse | HookEvent::PostToolUseFailure => {
            talk.called(&edit("a"));
            let is_error = event == HookEvent::PostToolUseFailure;
            talk.ended(&edit("a"), ToolResult { is_error, ..text("x") });
        }
        HookEvent::PreCompact => {
            let of = Compacting { cause: CompactionCause::Person, focus: String::new() };
            return first(talk.hooks.begin_compaction(&of, &talk.setup, reader));
        }
        HookEvent::PermissionRequest | HookEvent::Notification | HookEvent::SessionEnd => {
            let of_call = (event == HookEvent::PermissionRequest).then(|| (1, "{}".to_owned()));
            talk.hooks.occurred(occasion(of_call));
            let Some(AsideStep::Run(run)) = talk.aside() else { panic!() };
            return run;
        }
    }
    talk.due().remove(0)
}

#[test]
fn a_block_has_the_effect_that_the_table_names() {
    for event in HookEvent::ALL {
        let mut talk = Talk::new(event, &["one"]);
        let run = begin(&mut talk, event);
        assert_eq!(command(&run), format!("{} one", event.tool()), "{event:?}");
        let texts = talk.run(run, BLOCK);
        let notices = talk.hooks.take_notices();
        let (stopped, goes_on) = (talk.hooks.stopped(), talk.hooks.makes_go_on());
        let of = Compacting { cause: CompactionCause::Person, focus: String::new() };
        let compaction = talk.hooks.before_compaction(&of, &talk.setup, reader);
        let refusal = match talk.aside() {
            Some(AsideStep::Ended { refusal, .. }) => refusal.is_some(),
            Some(AsideStep::Run(run)) => panic!("{run:?}"),
            None => false,
        };
        let call = talk.before(&edit("a"));
        let effects = (
            matches!(call, HookStep::Blocked(_)),
            matches!(compaction, HookStep::Blocked(_)),
            (stopped.is_some(), goes_on, refusal),
            (texts.len(), notices.len()),
        );
        let none = (false, false, false);
        let wanted = match event.row().block {
            BlockEffect::CallRefused => (true, false, none, (0, 0)),
            BlockEffect::PromptRefused => (false, false, (true, false, false), (0, 0)),
            BlockEffect::QuestionDenied => (false, false, (false, false, true), (0, 0)),
            BlockEffect::ModelLearns => (false, false, none, (1, 0)),
            BlockEffect::TurnGoesOn => (false, false, (false, true, false), (1, 0)),
            BlockEffect::CompactionRefused => (false, true, none, (0, 0)),
            BlockEffect::PersonLearns => (false, false, none, (0, 1)),
        };
        assert_eq!(effects, wanted, "{event:?}");
    }
}

#[test]
fn the_hooks_of_a_call_run_one_by_one_and_file_by_file_until_one_refuses() {
    let mut talk = Talk::new(HookEvent::PreToolUse, &["one", "one", "two", "three"]);
    let of = edit("a b");
    talk.called(&of);
    for wanted in ["guard_hook onea", "guard_hook oneb", "guard_hook twoa"] {
        let run = first(talk.before(&of));
        assert_eq!(command(&run), wanted);
        talk.run(run, r#"{"verdict":"ask","reason":"why"}"#);
    }
    let run = first(talk.before(&of));
    talk.run(run, "no answer");
    let HookStep::Blocked(why) = talk.before(&of) else { panic!() };
    assert!(why.contains("the PreToolUse hook `two` (f) failed"), "{why}");
    // A call of no model has no hooks, and the answers about another call are not its own.
    assert!(matches!(talk.before(&call(2, CallOrigin::Undo, "edit", "a")), HookStep::Open(_)));
    let other = call(3, CallOrigin::model("other"), "edit", "a");
    assert_eq!(command(&first(talk.before(&other))), "guard_hook one");
}

#[test]
fn answers_about_a_call_are_joined() {
    let mut talk = Talk::new(HookEvent::PreToolUse, &["one", "two"]);
    talk.called(&edit("a"));
    let run = first(talk.before(&edit("a")));
    talk.run(run, r#"{"verdict":"ask","reason":"why","updated_input":"z"}"#);
    let run = first(talk.before(&edit("a")));
    assert!(run.input.contains(r#""input":"z""#), "{run:?}");
    talk.run(run, PASS);
    let HookStep::Open(passed) = talk.before(&edit("a")) else { panic!() };
    assert_eq!(passed.input, "z");
    let asked = "the PreToolUse hook `one` (f) asks about it: why";
    assert_eq!(passed.asked.as_deref(), Some(asked));
    assert_eq!(passed.note.as_deref(), Some("[the PreToolUse hook `one` changed the arguments]"));
}

#[test]
fn hooks_behind_calls_come_before_formatters_and_those_before_verifiers() {
    let mut talk = Talk::new(HookEvent::PostToolUse, &["after"]);
    let hook = |command: &str| EditHook {
        files: "*.rs".to_owned(),
        package: None,
        command: command.to_owned(),
    };
    (talk.setup.hooks.formatters, talk.setup.hooks.verifiers) =
        (vec![hook("fmt")], vec![hook("check")]);
    talk.called(&call(1, CallOrigin::model("use"), "edit", "a.rs"));
    assert!(talk.due().is_empty(), "the call has not ended");
    talk.ended(&edit("a.rs"), text("x"));
    for wanted in ["hook after", "format fmt", "verify check"] {
        let run = talk.due().remove(0);
        assert_eq!(command(&run), wanted);
        talk.run(run, PASS);
    }
    assert!(talk.due().is_empty());
}

#[test]
fn a_question_is_answered_once_and_a_notification_each_time() {
    for (event, again) in [(HookEvent::PermissionRequest, 0), (HookEvent::Notification, 1)] {
        let mut talk = Talk::new(event, &["one"]);
        let run = begin(&mut talk, event);
        assert!(talk.aside().is_none(), "its hook runs");
        talk.run(run, PASS);
        assert!(matches!(talk.aside(), Some(AsideStep::Ended { refusal: None, .. })));
        let (subject, message) = ("edit".to_owned(), String::new());
        let call = (again == 0).then(|| (1, "{}".to_owned()));
        talk.hooks.occurred(HookOccasion { event, subject, call, message });
        let runs = matches!(talk.aside(), Some(AsideStep::Run(_)));
        assert_eq!(usize::from(runs), again, "{event:?}");
    }
}

#[test]
fn a_call_waits_for_a_guard_that_has_begun() {
    let mut talk = Talk::new(HookEvent::PreToolUse, &["guard"]);
    let run = begin(&mut talk, HookEvent::PreToolUse);
    let begun = call(11, run.origin, run.tool, &run.input);
    talk.called(&begun);
    assert!(matches!(talk.before(&edit("a")), HookStep::Run(_)), "it has not answered");
    talk.ended(&begun, text(PASS));
    assert!(matches!(talk.before(&edit("a")), HookStep::Open(_)));
}

#[test]
fn a_call_of_more_files_than_hooks_are_run_for_is_blocked_where_one_guards() {
    let names = |count: usize| (0..count).map(|n| format!("f{n} ")).collect::<String>();
    let mut talk = Talk::new(HookEvent::PreToolUse, &["guard"]);
    talk.called(&edit(&names(21)));
    let HookStep::Blocked(why) = talk.before(&edit(&names(21))) else { panic!("not blocked") };
    assert!(why.contains("21 files"), "{why}");
    assert!(matches!(talk.before(&edit(&names(20))), HookStep::Run(_)));
}
