//! Tests of keys and supervisor messages, without a terminal.
#![allow(clippy::unwrap_used)]

mod answered_once;
mod line_marks;
mod of_model;
mod questions;
mod running;

use super::*;
use crate::colour::Colour;
use crate::line_view::{LineView, LiveArea};
use crate::live_rows::live_rows;
use protocol::call::{Call, CallOrigin, Outcome, ToolResult};
use protocol::client::{
    AnswerPart, ClientEvent, DetachReason, NextTry, NumberedEvent, SettingChange,
};
use protocol::client::{ModelFacts, WaitingText, WhileBusy};
use protocol::client::{PromptUse, SessionQuery, SessionWish};
use protocol::confinement::Network;
use protocol::content::{ContentBlock, Usage};
use protocol::context::{Compaction, CompactionCause, ContextReport, NumberedSummary, SummaryStep};
use protocol::ids::CallId;
use protocol::judgement::{Ask, PermissionMode, PersonAnswer, Question};
use protocol::provider::ProviderFailure;
use protocol::session::TurnEnd;
use protocol::store::{ChangeSet, FileDiff};

fn session() -> SessionId {
    SessionId("3f2a91c0d4e5".to_owned())
}

fn call_id(number: u32) -> CallId {
    CallId { session: session(), number }
}

fn entrance(rights: ClientRights) -> AttachOptions {
    AttachOptions {
        rights,
        others: OtherClients::Stay,
        prompt: None,
        leader: "Ctrl-\\".to_owned(),
        keys: crate::LineKeys::Emacs,
        busy: WhileBusy::Queue,
        first_words: None,
    }
}

fn opened(session: SessionId) -> ScreenInput {
    ScreenInput::Message(ToClient::Opened {
        session,
        name: String::new(),
        model: "model-1".to_owned(),
        facts: protocol::client::ModelFacts::default(),
        tools: Vec::new(),
        mode: PermissionMode::Ask,
        network: Network::Off,
        hosts: Vec::new(),
        sandbox: "sandbox: full (namespaces); project".to_owned(),
        last_seq: 0,
        warnings: Vec::new(),
        temp: protocol::confinement::FilePath::from(std::path::PathBuf::from("/t/tmp")),
    })
}

/// Prompts that wait for the end of the turn.
fn queued(texts: &[&str]) -> ClientEvent {
    let busy = WhileBusy::Queue;
    let waiting = texts.iter().map(|&text| WaitingText { text: text.to_owned(), busy });
    ClientEvent::Queue { waiting: waiting.collect() }
}

#[test]
fn ctrl_v_and_paste_put_the_image_of_the_clipboard_where_the_cursor_is() {
    let mut screen = screen();
    let dir = protocol::confinement::FilePath::from(std::path::PathBuf::from("/t/tmp"));
    let asks = [ScreenEffect::PasteImage(dir)];
    screen.update(ScreenInput::Paste("see".to_owned()));
    assert_eq!(screen.update(ScreenInput::Key(KeyPress::Control('v'))), asks);
    let shown = screen.pasted_image(Ok("/t/tmp/clipboard-1.png".into()));
    assert!(matches!(&shown[..], [ScreenEffect::Show(ScreenItem::Note(_))]), "{shown:?}");
    assert_eq!(screen.draft(), "see @/t/tmp/clipboard-1.png ");
    screen.update(ScreenInput::Edited(":paste".to_owned()));
    assert_eq!(screen.update(ScreenInput::Key(KeyPress::Enter)), asks);
    let failed = screen.pasted_image(Err("no".to_owned()));
    assert_eq!(failed, [ScreenEffect::Show(ScreenItem::Error("no".to_owned()))]);
    let mut watching = screen_with(ClientRights::ReadOnly);
    assert_eq!(watching.update(ScreenInput::Key(KeyPress::Control('v'))), []);
}

#[test]
fn up_has_the_prompts_of_the_session_that_was_attached_to_behind_those_of_its_project() {
    let mut screen = screen();
    screen.set_history(vec!["of another session".to_owned()]);
    for (seq, text) in [(2, "of this one"), (3, ":undo")] {
        screen.update(event(
            seq,
            ClientEvent::Prompt { text: text.to_owned(), of: PromptUse::Prompt },
        ));
    }
    for recalled in ["of this one", "of another session", "of another session"] {
        screen.update(ScreenInput::Key(KeyPress::Up));
        assert_eq!(screen.draft(), recalled);
    }
}

/// A terminal in which this line was entered, and what that sent.
fn enters(line: &str) -> (Screen, Vec<ScreenEffect>) {
    let mut screen = screen();
    screen.update(ScreenInput::Edited(line.to_owned()));
    let sent = screen.update(ScreenInput::Key(KeyPress::Enter));
    (screen, sent)
}

#[test]
fn words_that_leave_other_programs_leave_where_no_key_follows_and_go_to_no_model() {
    let alone = || ScreenInput::WordAlone;
    let leaves = [ScreenEffect::Leave(LeaveReason::Quit)];
    for word in ["exit", "quit ", "/exit", "/quit"] {
        let (mut screen, sent) = enters(word);
        assert!(sent.is_empty() && screen.word_waits(), "{word}");
        assert_eq!(screen.update(alone()), leaves, "{word}");
        assert_eq!(screen.unsent(), "", "it is no draft");
        // A line of a paste.
        let (mut screen, _) = enters(word);
        screen.update(ScreenInput::Key(KeyPress::Enter));
        assert_eq!(types(&mut screen, "rm x"), []);
        assert_eq!(screen.update(alone()), []);
        assert_eq!(screen.draft(), format!("{word}\n\nrm x"));
        // It is taken back.
        let (mut screen, _) = enters(word);
        screen.update(ScreenInput::Key(KeyPress::Erase(Distance::Word, Direction::Start)));
        assert_eq!(screen.update(alone()), [], "{word}");
    }
    for words in ["exit code", "Exit", "/exit now", " exit"] {
        let (_, sent) = enters(words);
        assert!(matches!(says(&sent)[..], [FromClient::Prompt { .. }]), "{words}");
    }
}

#[test]
fn a_terminal_of_lines_is_left_by_no_line_that_may_be_pasted() {
    for (line, leaves) in [
        ("exit", false),
        ("quit", false),
        ("  /exit", false),
        ("/exit", true),
        ("/quit ", true),
        (":q", true),
    ] {
        let effects = screen().update(ScreenInput::Line(line.to_owned()));
        let left = effects == [ScreenEffect::Leave(LeaveReason::Quit)];
        assert_eq!(left, leaves, "{line}");
        assert_eq!(matches!(says(&effects)[..], [FromClient::Prompt { .. }]), !leaves, "{line}");
    }
}

#[test]
fn memories_are_listed_by_any_terminal_and_removed_by_one_with_rights() {
    for (rights, may) in [(ClientRights::Full, true), (ClientRights::ReadOnly, false)] {
        let mut screen = screen_with(rights);
        let mut enters = |line: &str| {
            screen.update(ScreenInput::Edited(line.to_owned()));
            screen.update(ScreenInput::Key(KeyPress::Enter))
        };
        assert_eq!(enters(":memory"), [ScreenEffect::ShowMemories(session())]);
        let removes = ScreenEffect::RemoveMemories(session(), vec!["p1".to_owned()]);
        assert_eq!(enters(":memory rm p1").contains(&removes), may);
    }
}

#[test]
fn ctrl_b_sends_a_running_sub_agent_to_the_background_and_is_else_a_key_of_the_line() {
    for (tool, is_sent) in [("task", true), ("read", false)] {
        let mut screen = screen();
        let (origin, input) = (CallOrigin::model("toolu_1"), "{}".to_owned());
        let call = Call { id: call_id(1), origin, tool: tool.to_owned(), input };
        screen.update(event(1, ClientEvent::Proposed { call }));
        let effects = screen.update(ScreenInput::Key(KeyPress::Control('b')));
        let wish = FromClient::Wish { session: session(), wish: SessionWish::Background };
        assert_eq!(effects.contains(&ScreenEffect::Send(wish)), is_sent, "{tool}: {effects:?}");
    }
}

#[test]
fn a_command_in_the_background_that_is_cut_short_does_not_vanish_in_silence() {
    for (is_detached, outcome, is_said) in [
        (true, Outcome::Interrupted, true),
        (true, Outcome::Done, false),
        (false, Outcome::Interrupted, false),
    ] {
        let mut screen = screen();
        let (origin, tool) = (CallOrigin::model("toolu_1"), "bash".to_owned());
        let input = r#"{"command": "serve it"}"#.to_owned();
        let call = Call { id: call_id(1), origin, tool, input };
        screen.update(event(1, ClientEvent::Proposed { call }));
        if is_detached {
            let text = String::new();
            screen.update(event(2, ClientEvent::InBackground { call: call_id(1), text }));
        }
        let result = ToolResult {
            outcome,
            text: String::new(),
            summary: String::new(),
            is_error: false,
            code: None,
            images: Vec::new(),
        };
        let (call, refused) = (call_id(1), Vec::new());
        let effects =
            screen.update(event(3, ClientEvent::CallEnded { call, result, refused, spent: None }));
        let said = effects.iter().any(|effect| {
            matches!(effect, ScreenEffect::Show(ScreenItem::Error(text))
                if text.contains("does not run any more: serve it"))
        });
        assert_eq!(said, is_said, "{effects:?}");
    }
}

fn screen_with(rights: ClientRights) -> Screen {
    let mut screen = Screen::new(entrance(rights));
    screen.update(opened(session()));
    screen.update(ScreenInput::Message(ToClient::Attached {
        session: session(),
        name: "terminal 1".to_owned(),
    }));
    screen
}

fn screen() -> Screen {
    screen_with(ClientRights::Full)
}

fn event(seq: u64, event: ClientEvent) -> ScreenInput {
    ScreenInput::Message(ToClient::Event { session: session(), seq, event })
}

fn question(number: u32, offers: &[&str]) -> ClientEvent {
    ClientEvent::Asked {
        question: Question {
            call: call_id(number),
            tool: "bash".to_owned(),
            input: "{}".to_owned(),
            preview: "cargo test".to_owned(),
            confinement: "may write: this project; network: off".to_owned(),
            reason: "mode ask".to_owned(),
            widens: Vec::new(),
            ask: Ask::Call {
                rules: offers.iter().map(|offer| (*offer).to_owned()).collect(),
                modes: Vec::new(),
            },
            deadline: 0,
            digest: "d".to_owned(),
        },
    }
}

/// Types this.
fn types(screen: &mut Screen, text: &str) -> Vec<ScreenEffect> {
    text.chars().flat_map(|key| screen.update(ScreenInput::Key(KeyPress::Char(key)))).collect()
}

fn says(effects: &[ScreenEffect]) -> Vec<&FromClient> {
    let mut words = Vec::new();
    for effect in effects {
        if let ScreenEffect::Send(word) = effect {
            words.push(word);
        }
    }
    words
}

fn answered(effects: &[ScreenEffect]) -> PersonAnswer {
    match says(effects)[..] {
        [FromClient::Answer { call, digest, answer }] => {
            assert_eq!((call, digest.as_str()), (&call_id(1), "d"));
            answer.clone()
        }
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn an_opened_session_is_attached_to_and_its_first_prompt_said_once() {
    let mut screen = Screen::new(AttachOptions {
        prompt: Some("hi".to_owned()),
        ..entrance(ClientRights::Full)
    });
    let effects = screen.update(opened(session()));
    assert!(
        matches!(says(&effects)[..], [FromClient::Attach { from: BacklogFrom::Newest(_), .. }]),
        "{effects:?}"
    );
    let attached = || {
        ScreenInput::Message(ToClient::Attached {
            session: session(),
            name: "terminal 1".to_owned(),
        })
    };
    let effects = screen.update(attached());
    assert!(matches!(says(&effects)[..], [FromClient::Prompt { text, .. }] if text == "hi"));
    assert_eq!(screen.update(attached()), []);
}

#[test]
fn the_end_of_a_turn_leaves_the_hint_about_the_next_key() {
    let mut screen = screen();
    screen.update(event(1, ClientEvent::Prompt { text: "one".to_owned(), of: PromptUse::Prompt }));
    screen.update(ScreenInput::Key(KeyPress::Leader));
    screen.update(event(2, ClientEvent::TurnEnded { end: TurnEnd::Done }));
    assert_eq!(screen.hint(), Some(AFTER_LEADER));
    let left = types(&mut screen, "d");
    assert_eq!(left, [ScreenEffect::Leave(LeaveReason::Detached(None))]);
}

#[test]
fn another_session_starts_with_an_empty_screen_and_line() {
    let mut screen = screen();
    screen.update(event(1, ClientEvent::Prompt { text: "one".to_owned(), of: PromptUse::Prompt }));
    screen.update(ScreenInput::Draft("unsent".to_owned()));
    assert_eq!(screen.draft(), "unsent");
    assert_eq!(screen.update(ScreenInput::SwitchTo(session())), [], "it is here");
    let other = SessionId("aaaaaaaaaaaa".to_owned());
    screen.update(ScreenInput::Key(KeyPress::Control('s')));
    screen.update(ScreenInput::Edited("more".to_owned()));
    assert_eq!(screen.unsent(), "unsent\nmore");
    let effects = screen.update(ScreenInput::SwitchTo(other.clone()));
    assert_eq!(effects, [ScreenEffect::Switch(other.clone())]);
    let effects = screen.update(opened(other.clone()));
    assert!(effects.contains(&ScreenEffect::StartOver), "{effects:?}");
    assert!(says(&effects).contains(&&FromClient::Detach { session: session() }), "{effects:?}");
    assert_eq!((&*screen.unsent(), screen.session()), ("", Some(&other)));
    assert_eq!(screen.turn(), TurnState::Idle);
    for key in [KeyPress::Control('s'), KeyPress::Edit(EditKey::Undo)] {
        screen.update(ScreenInput::Key(key));
        assert_eq!(screen.draft(), "", "{key:?} brings nothing of the first session");
    }
    screen.update(ScreenInput::Key(KeyPress::Up));
    assert_eq!(screen.draft(), "one", "but its prompts");
}

#[test]
fn a_hook_between_turns_leaves_the_session_idle_and_one_within_a_turn_at_work() {
    let mut screen = screen();
    let call = |origin: CallOrigin, event: &str| protocol::call::Call {
        id: call_id(1),
        origin,
        tool: "guard_hook".to_owned(),
        input: format!(r#"{{"event":"{event}","command":"x"}}"#),
    };
    let ended = |number| ClientEvent::CallEnded {
        call: call_id(number),
        result: ToolResult::error(Outcome::Failed, "exit", "guard_hook", "", ""),
        refused: Vec::new(),
        spent: None,
    };
    let hook = call(CallOrigin::EventHook, "Notification");
    screen.update(event(1, ClientEvent::Proposed { call: hook.clone() }));
    let basis = "hooks.Notification".to_owned();
    screen.update(event(2, ClientEvent::Decided { call: call_id(1), allowed: true, basis }));
    assert_eq!(screen.turn(), TurnState::Idle);
    screen.update(event(
        3,
        ClientEvent::Proposed { call: call(CallOrigin::EventHook, "PreCompact") },
    ));
    assert_eq!(screen.turn(), TurnState::Working, "it can be stopped");
    screen.update(event(4, ended(1)));
    assert_eq!(screen.turn(), TurnState::Idle);
    screen.update(event(
        5,
        ClientEvent::Proposed { call: call(CallOrigin::model("toolu_1"), "Stop") },
    ));
    assert_eq!(screen.turn(), TurnState::Working, "a call of the model");
    screen.update(event(6, ClientEvent::Proposed { call: hook }));
    screen.update(event(7, ended(1)));
    assert_eq!(screen.turn(), TurnState::Working);
}

#[test]
fn who_answered_elsewhere_is_shown_and_the_question_is_gone() {
    let mut screen = screen();
    screen.update(event(1, question(1, &[])));
    let basis = "answered by terminal 2".to_owned();
    let decided = ClientEvent::Decided { call: call_id(1), allowed: true, basis: basis.clone() };
    let effects = screen.update(event(2, decided));
    let shown = ScreenItem::Decided { tool: "bash".to_owned(), allowed: true, basis };
    assert_eq!(effects, [ScreenEffect::Show(shown)]);
    assert_eq!(screen.answer_rows(), None);
    assert_eq!(types(&mut screen, "y"), []);
    assert_eq!(screen.editor.text(), "y", "the key is for the line again");
}

#[test]
fn what_protects_the_person_is_the_last_to_leave_the_status_row() {
    let mut screen = screen();
    screen.facts.as_mut().unwrap().mode = PermissionMode::AcceptEdits;
    let status = |columns| {
        let rows = live_rows(&screen, None, (columns, 24)).rows;
        rows.into_iter().map(|row| row.text).find(|text| text.contains("net")).unwrap()
    };
    let all =
        "ready · mode accept-edits · net off · sandbox: full · model-1 · session 3f2a91c0d4e5";
    for (columns, shown) in [
        (120, all),
        (80, "ready · mode accept-edits · net off · sandbox: full · model-1"),
        (60, "ready · accept-edits · net off · sandbox: full · model-1"),
        (46, "ready · accept-edits · net off · sandbox: full"),
        (40, "accept-edits · net off · sandbox: full"),
        (30, "accept-edits · net off · sand…"),
    ] {
        assert_eq!(status(columns), shown, "{columns}");
    }
}

#[test]
fn a_question_without_a_preview_shows_arguments_in_lines() {
    use crate::colour::Colour;
    use crate::line_view::{LineView, LiveArea};
    let ClientEvent::Asked { question } = question(1, &[]) else { panic!() };
    let shown = |input: &str| {
        let asked = Question { preview: String::new(), input: input.into(), ..question.clone() };
        LineView::new(Colour::Off, LiveArea::Shown).lines(&ScreenItem::Asked(Box::new(asked)))
    };
    let lines = shown(r#"{"scope":"user","text":"two\nlines","all":true}"#);
    assert!(lines.contains("    scope: user\n    text:\n    two\n    lines\n"), "{lines}");
    assert!(lines.contains("    all: true\n"), "{lines}");
    assert!(shown("[1]").contains("    [1]\n"));
}

#[test]
fn a_refusal_is_shown_once_and_no_hint_for_the_model() {
    use crate::colour::Colour;
    use crate::line_view::{LineView, LiveArea};
    let mut items = ScreenItems::default();
    let call = Call {
        id: call_id(1),
        origin: CallOrigin::model("toolu_1"),
        tool: "bash".to_owned(),
        input: "{}".to_owned(),
    };
    items.take(&ClientEvent::Proposed { call });
    let notes = "[the sandbox refused connect 10.0.0.7:80: ENETUNREACH]\n[hint: ask]";
    let result = ToolResult {
        outcome: Outcome::Exited { code: 1 },
        text: format!("cat: x\n--- agentd ---\n{notes}\nexit code: 1"),
        summary: "exit 1 · 0.1 s".to_owned(),
        is_error: true,
        code: None,
        images: Vec::new(),
    };
    let refused = vec!["connect 10.0.0.7:80 (Network is unreachable)".to_owned()];
    let shown =
        items.take(&ClientEvent::CallEnded { call: call_id(1), result, refused, spent: None });
    let shown = LineView::new(Colour::Off, LiveArea::Shown).lines(&shown[0]);
    assert_eq!(shown.matches("10.0.0.7:80").count(), 1, "{shown}");
    assert!(shown.contains("  refused: connect") && shown.contains("  cat: x"), "{shown}");
    assert!(!shown.contains("hint") && !shown.contains("agentd ---"), "{shown}");
}

#[test]
fn what_the_own_terminal_did_is_said_of_you_and_records_keep_their_names() {
    let decided = |number| ClientEvent::Decided {
        call: call_id(number),
        allowed: true,
        basis: "answered by terminal 1".into(),
    };
    let changed = || ClientEvent::Changed {
        change: SettingChange::Network(Network::On),
        by: "terminal 1".to_owned(),
    };
    let shown = |effects: Vec<ScreenEffect>| format!("{effects:?}");
    let mut live = screen();
    live.update(event(1, question(1, &[])));
    assert!(shown(live.update(event(2, decided(1)))).contains("\"answered by you\""));
    assert!(shown(live.update(event(3, changed()))).contains("\"you\""));
    // An earlier terminal may have had the same name.
    let mut replayed = ScreenItems::default();
    replayed.take(&question(1, &[]));
    assert!(format!("{:?}", replayed.take(&decided(1))).contains("answered by terminal 1"));
}

#[test]
fn lines_that_do_not_unfold_say_who_or_what_allowed_a_call() {
    for (allowed, outcome, basis, line) in [
        (true, Outcome::Done, "rule bash:ls", "✓ ls (rule bash:ls)\n"),
        (true, Outcome::Done, "answered by pts/7", "✓ ls (answered by pts/7)\n"),
        (
            false,
            Outcome::Denied,
            "answered by pts/7",
            "⊘ ls · not run · denied: answered by pts/7\n",
        ),
    ] {
        let mut items = ScreenItems::default();
        let input = r#"{"command":"ls"}"#.to_owned();
        let (id, origin) = (call_id(1), CallOrigin::model("toolu_1"));
        items.take(&ClientEvent::Proposed {
            call: Call { id, origin, tool: "bash".to_owned(), input },
        });
        items.take(&ClientEvent::Decided { call: call_id(1), allowed, basis: basis.to_owned() });
        let result = ToolResult {
            outcome,
            text: String::new(),
            summary: String::new(),
            is_error: !allowed,
            code: None,
            images: Vec::new(),
        };
        let (refused, spent) = (Vec::new(), None);
        let shown =
            items.take(&ClientEvent::CallEnded { call: call_id(1), result, refused, spent });
        let view = LineView::new(Colour::Off, LiveArea::Absent);
        assert_eq!(view.lines(&shown[0]), line);
    }
}

#[test]
fn a_watching_terminal_says_so_and_sends_nothing() {
    let mut screen = screen_with(ClientRights::ReadOnly);
    screen.update(event(1, question(1, &["bash:ls"])));
    for key in ["y", "a", "n", "x", "hello"] {
        assert_eq!(types(&mut screen, key), [], "{key}");
        assert!(screen.hint.as_ref().unwrap().contains("-r"), "{key}");
    }
    assert_eq!(screen.update(ScreenInput::Key(KeyPress::Escape)), []);
    assert_eq!(screen.update(ScreenInput::Key(KeyPress::Interrupt)), []);
    types(&mut screen, ":net on");
    assert_eq!(screen.update(ScreenInput::Key(KeyPress::Enter)), []);
    types(&mut screen, ":q");
    let effects = screen.update(ScreenInput::Key(KeyPress::Enter));
    assert!(matches!(effects[..], [ScreenEffect::Leave(_)]), "the positive control: {effects:?}");
}

#[test]
fn the_turn_is_stopped_and_the_session_stays() {
    let mut screen = screen();
    let interrupt = |screen: &mut Screen| screen.update(ScreenInput::Key(KeyPress::Interrupt));
    assert_eq!(interrupt(&mut screen), []);
    assert_eq!(screen.hint.as_deref(), Some("no turn is running; :q leaves, Ctrl-\\ d detaches"));
    assert_eq!(interrupt(&mut screen), []);
    assert!(screen.hint.as_ref().unwrap().contains("Ctrl-\\ d"), "{:?}", screen.hint);
    screen.update(event(1, ClientEvent::Prompt { text: "go".to_owned(), of: PromptUse::Prompt }));
    let stop = FromClient::Interrupt { session: session() };
    assert_eq!(interrupt(&mut screen), [ScreenEffect::Send(stop.clone())]);
    assert_eq!(screen.update(ScreenInput::Key(KeyPress::Escape)), [ScreenEffect::Send(stop)]);
    screen.update(event(2, ClientEvent::TurnEnded { end: TurnEnd::Interrupted }));
    assert_eq!(screen.update(ScreenInput::Key(KeyPress::Escape)), []);
}

#[test]
fn the_queue_is_taken_back_before_what_was_typed() {
    let mut screen = screen();
    screen.update(event(1, queued(&["one", "two"])));
    let effects = screen.update(ScreenInput::Key(KeyPress::Up));
    assert_eq!(
        effects,
        [ScreenEffect::Send(FromClient::TakeBack { session: session(), only: None })]
    );
    types(&mut screen, "x");
    let texts = vec!["one".to_owned(), "two".to_owned()];
    screen.update(ScreenInput::Message(ToClient::TakenBack { session: session(), texts }));
    assert_eq!(screen.editor.text(), "one\ntwo\nx");
}

#[test]
fn leaving_has_three_ways_and_says_whether_something_runs() {
    let leave = |screen: &mut Screen, keys: &[KeyPress]| {
        keys.iter().flat_map(|key| screen.update(ScreenInput::Key(*key))).collect::<Vec<_>>()
    };
    let detach = [ScreenEffect::Leave(LeaveReason::Detached(None))];
    assert_eq!(leave(&mut screen(), &[KeyPress::Leader, KeyPress::Char('d')]), detach);
    assert_eq!(
        leave(&mut screen(), &[KeyPress::Leader, KeyPress::Char('x'), KeyPress::Char('d')]),
        []
    );
    assert_eq!(
        leave(&mut screen(), &[KeyPress::EndOfInput]),
        [ScreenEffect::Leave(LeaveReason::Quit)]
    );
    let mut working = screen();
    working.update(event(1, ClientEvent::Prompt { text: "go".to_owned(), of: PromptUse::Prompt }));
    assert_eq!(leave(&mut working, &[KeyPress::EndOfInput]), detach);
    let mut typing = screen();
    types(&mut typing, "x");
    assert_eq!(leave(&mut typing, &[KeyPress::EndOfInput]), []);
}

#[test]
fn commands_change_settings_and_everybody_sees_it() {
    let mut screen = screen();
    types(&mut screen, ":net on");
    let change = SettingChange::Network(Network::On);
    let want = FromClient::Change { session: session(), change: change.clone() };
    assert_eq!(screen.update(ScreenInput::Key(KeyPress::Enter)), [ScreenEffect::Send(want)]);
    let network = |screen: &Screen| screen.facts().unwrap().network;
    assert_eq!(network(&screen), Network::Off, "until the supervisor says so");
    screen.update(event(1, ClientEvent::Changed { change, by: "terminal 1".to_owned() }));
    assert_eq!(network(&screen), Network::On);
    types(&mut screen, ":frok");
    let effects = screen.update(ScreenInput::Key(KeyPress::Enter));
    assert!(
        matches!(&effects[..], [ScreenEffect::Show(ScreenItem::Error(said))] if said.contains("no command")),
        "{effects:?}"
    );
}

#[test]
fn undoing_is_said_as_words_are_and_comes_back_like_them_where_nobody_took_it() {
    let mut screen = screen();
    types(&mut screen, ":undo");
    let want = FromClient::Prompt {
        session: session(),
        text: ":undo".to_owned(),
        form: None,
        busy: WhileBusy::Queue,
    };
    assert_eq!(screen.update(ScreenInput::Key(KeyPress::Enter)), [ScreenEffect::Send(want)]);
    assert_eq!(screen.unconfirmed(), [":undo"]);
    screen
        .update(event(1, ClientEvent::Prompt { text: ":undo".to_owned(), of: PromptUse::Prompt }));
    assert!(screen.unconfirmed().is_empty());
    types(&mut screen, ":undo all src/a  b.rs");
    let want = FromClient::Prompt {
        session: session(),
        text: ":undo all src/a  b.rs".to_owned(),
        form: None,
        busy: WhileBusy::Queue,
    };
    assert_eq!(screen.update(ScreenInput::Key(KeyPress::Enter)), [ScreenEffect::Send(want)]);
}

#[test]
fn enter_and_tab_send_a_prompt_each_its_own_way_while_a_turn_runs() {
    for busy in [WhileBusy::Queue, WhileBusy::Steer] {
        let mut screen = screen();
        screen.options.busy = busy;
        screen
            .update(event(1, ClientEvent::Prompt { text: "go".to_owned(), of: PromptUse::Prompt }));
        for (key, want) in [(KeyPress::Enter, busy), (KeyPress::Tab, busy.other())] {
            types(&mut screen, "only three");
            let sent = screen.update(ScreenInput::Key(key));
            let [FromClient::Prompt { busy, .. }] = says(&sent)[..] else { panic!("{sent:?}") };
            assert_eq!(*busy, want, "{key:?}");
        }
        // Without a turn, Tab sends nothing.
        screen.update(event(2, ClientEvent::TurnEnded { end: TurnEnd::Done }));
        types(&mut screen, "only three");
        assert_eq!(screen.update(ScreenInput::Key(KeyPress::Tab)), []);
    }
}

#[test]
fn changed_files_carry_the_command_that_takes_them_back() {
    let mut screen = screen();
    let file = |path: &str, calls: &[u32]| FileDiff {
        path: path.to_owned(),
        calls: calls.to_vec(),
        diff: "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n".to_owned(),
    };
    screen.update(event(1, ClientEvent::Prompt { text: "go".to_owned(), of: PromptUse::Prompt }));
    let id = CallId { session: session(), number: 4 };
    let (origin, tool, input) = (CallOrigin::model("a"), "bash".to_owned(), "{}".to_owned());
    let call = Call { id, origin, tool, input };
    screen.update(event(2, ClientEvent::Proposed { call }));
    let files = vec![file("a.rs", &[4]), file("old", &[2, 4]), file("all x", &[4])];
    let changes = Ok(ChangeSet { files, notes: vec!["Call 5 is not covered.".to_owned()] });
    let message = ScreenInput::Message(ToClient::Changes { session: session(), changes });
    let effects = screen.update(message);
    let [ScreenEffect::OpenText(LongText { title, parts })] = effects.as_slice() else {
        panic!("{effects:?}")
    };
    assert_eq!(title, "3 files differ");
    let commands: Vec<_> = parts.iter().map(|part| part.command.as_deref()).collect();
    assert_eq!(
        commands,
        [Some(":undo a.rs"), Some(":undo all old"), Some(":undo all all x"), None]
    );
    assert!(parts[1].text.starts_with("# old (calls 2, 4)\n--- a/x\n"), "{parts:?}");
    assert_eq!(parts[3].text, "# Call 5 is not covered.\n");
}

#[test]
fn the_summary_comes_into_the_line_and_goes_back_with_its_number() {
    let mut screen = screen();
    let typed = |screen: &mut Screen, text: &str| {
        screen.update(ScreenInput::Paste(text.to_owned()));
        screen.update(ScreenInput::Key(KeyPress::Enter))
    };
    let report = |summary| {
        let report = ContextReport {
            model: "m".to_owned(),
            window: Some(1000),
            parts: Vec::new(),
            counted: None,
            estimated: 10,
            answer: 100,
            summary,
            unread: Vec::new(),
        };
        ScreenInput::Message(ToClient::Context { session: session(), report: Ok(report) })
    };
    let query = SessionQuery::Context;
    let asks = [ScreenEffect::Send(FromClient::Query { session: session(), query })];
    assert_eq!(typed(&mut screen, ":context"), asks);
    let effects = screen.update(report(None));
    assert!(
        matches!(&effects[..], [ScreenEffect::Show(ScreenItem::Note(text))] if text.contains("free"))
    );
    assert_eq!(typed(&mut screen, ":context summary"), asks);
    let effects = screen.update(report(None));
    assert!(
        matches!(&effects[..], [ScreenEffect::Show(ScreenItem::Error(text))] if text.contains(":compact"))
    );
    assert_eq!(typed(&mut screen, ":context summary"), asks);
    let text = format!("GOAL: one\n\nNEXT: two{}", "\nthen".repeat(20));
    screen.update(report(Some(NumberedSummary { number: 3, text: text.clone() })));
    assert_eq!(screen.draft(), format!(":context summary {text}"));
    assert_eq!(screen.input().0.layout(2, 80).rows.len(), 23, "it is here to be changed");
    screen.update(ScreenInput::Paste(" and three".to_owned()));
    let text = format!("{text} and three");
    let wish = SessionWish::EditSummary(NumberedSummary { number: 3, text });
    let sent = [ScreenEffect::Send(FromClient::Wish { session: session(), wish })];
    assert_eq!(screen.update(ScreenInput::Key(KeyPress::Enter)), sent);
    // A text that no summary was shown for replaces none.
    assert_eq!(typed(&mut screen, ":context summary mine"), []);
}

#[test]
fn a_summary_between_turns_is_work_that_can_be_stopped() {
    let mut screen = screen();
    let step = |seq, step| event(seq, ClientEvent::Compacted(step));
    let (dropped, prompt_bytes, focus) = (4, 100, String::new());
    let cause = CompactionCause::Person;
    screen.update(step(
        1,
        Compaction::Summary(SummaryStep::Asked { dropped, prompt_bytes, focus, cause }),
    ));
    let stop = FromClient::Interrupt { session: session() };
    assert_eq!(screen.update(ScreenInput::Key(KeyPress::Escape)), [ScreenEffect::Send(stop)]);
    let (usage, cost) = (Usage { output: Some(5), ..Usage::default() }, None);
    screen.update(step(
        2,
        Compaction::Summary(SummaryStep::Written { round: 1, text: "x".into(), usage, cost }),
    ));
    assert_eq!(screen.turn, TurnState::Idle);
    assert_eq!(screen.tokens.all.output, Some(5));
}

#[test]
fn streamed_lines_are_shown_once_and_the_rest_with_the_answer() {
    let mut screen = screen();
    let delta =
        |text: &str| event(1, ClientEvent::Delta { part: AnswerPart::Text, text: text.to_owned() });
    let answer = |text: &str| ClientEvent::Answer {
        blocks: vec![ContentBlock::Text { text: text.to_owned() }],
        usage: Usage::default(),
    };
    assert_eq!(
        screen.update(delta("one\ntw")),
        [ScreenEffect::Show(ScreenItem::Text("one\n".to_owned()))]
    );
    assert_eq!(screen.items.streaming(), "tw");
    let effects = screen.update(event(2, answer("one\ntwo")));
    assert_eq!(effects, [ScreenEffect::Show(ScreenItem::Text("two".to_owned()))]);
    // Pieces were left out: the answer is shown whole.
    screen.update(delta("x\n"));
    let effects = screen.update(event(3, answer("one\ntwo")));
    assert_eq!(effects, [ScreenEffect::Show(ScreenItem::Text("one\ntwo".to_owned()))]);
    // The turn was stopped: what came after it is shown already, and not recorded.
    screen.update(delta("one\ntwo\nthree\n"));
    assert_eq!(screen.update(event(3, answer("one\ntwo"))), []);
    screen.update(delta("half\n"));
    let struck = || event(3, ClientEvent::Struck { reason: "again".to_owned(), next: None });
    assert_eq!(
        screen.update(struck()),
        [ScreenEffect::Show(ScreenItem::Struck("again".to_owned()))]
    );
    // The live area counts the wait down, and nothing was shown that would be void.
    let next = Some(NextTry { attempt: 2, of: 5, wait_ms: 500 });
    let again = || event(3, ClientEvent::Struck { reason: "busy".to_owned(), next });
    let retrying = ScreenItem::Retrying("busy; retrying 2/5 in 0.5 s".to_owned());
    assert_eq!(screen.update(again()), [ScreenEffect::Show(retrying.clone())]);
    let lines = |live_area| LineView::new(Colour::Off, live_area).lines(&retrying);
    assert_eq!(lines(LiveArea::Shown), "");
    assert_eq!(lines(LiveArea::Absent), "busy; retrying 2/5 in 0.5 s\n");
    // Nothing of this answer was shown, so nothing is void.
    assert_eq!(screen.update(struck()), [ScreenEffect::Show(ScreenItem::Note("again".to_owned()))]);
}

#[test]
fn of_an_undo_the_tries_that_found_no_change_are_not_shown() {
    let ends = |origin: CallOrigin, tool: &str, code: &str| {
        let mut items = ScreenItems::default();
        let call = Call { id: call_id(1), origin, tool: tool.to_owned(), input: "{}".to_owned() };
        items.take(&ClientEvent::Proposed { call });
        let result = ToolResult::error(Outcome::Failed, code, tool, "no change", "");
        let (call, refused, spent) = (call_id(1), Vec::new(), None);
        let ended = items.take(&ClientEvent::CallEnded { call, result, refused, spent });
        assert!(items.open().is_empty());
        ended.len()
    };
    assert_eq!(ends(CallOrigin::Undo, "undo_restore", "not_found"), 0);
    for (origin, tool, code) in [
        (CallOrigin::Undo, "undo_restore", "stale"),
        (CallOrigin::model("u"), "undo_restore", "not_found"),
        (CallOrigin::PromptPart, "read", "not_found"),
    ] {
        assert_eq!(ends(origin.clone(), tool, code), 1, "{origin:?} {tool} {code}");
    }
}

#[test]
fn who_answered_is_shown_from_the_record_as_it_was_at_the_question() {
    let items = |events: Vec<ClientEvent>| -> Vec<ScreenItem> {
        let mut items = ScreenItems::default();
        let all = events.iter().flat_map(|event| items.take(event)).collect::<Vec<_>>();
        all.into_iter().filter(|item| matches!(item, ScreenItem::Decided { .. })).collect()
    };
    let ClientEvent::Asked { question } = question(1, &[]) else { panic!() };
    let call = Call {
        id: question.call.clone(),
        origin: CallOrigin::model("u"),
        tool: question.tool.clone(),
        input: question.input.clone(),
    };
    let decided = |basis: &str| ClientEvent::Decided {
        call: question.call.clone(),
        allowed: true,
        basis: basis.to_owned(),
    };
    let proposed = || ClientEvent::Proposed { call: call.clone() };
    let asked = ClientEvent::Asked { question: question.clone() };
    let live = items(vec![proposed(), asked, decided("answered by pts/7")]);
    assert_eq!(live.len(), 1);
    assert_eq!(items(vec![proposed(), decided("answered by pts/7")]), live);
    // Rules and modes decided without a question, and say nothing here.
    assert_eq!(items(vec![proposed(), decided("mode auto")]), []);
    // The answer to a server's question behind it does not decide the call.
    let behind = vec![proposed(), decided("mode auto"), decided("answered by pts/7")];
    assert_eq!(items(behind), []);
}

#[test]
fn thinking_is_shown_once_before_what_followed_it() {
    let shown = |effects: Vec<ScreenEffect>| -> Vec<ScreenItem> {
        let item = |effect| {
            let ScreenEffect::Show(item) = effect else { panic!("{effect:?}") };
            item
        };
        effects.into_iter().map(item).collect()
    };
    let delta = |part, text: &str| event(1, ClientEvent::Delta { part, text: text.to_owned() });
    let thought = |text: &str| ContentBlock::Thinking { text: text.to_owned(), raw: "{}".into() };
    let answer = |blocks: Vec<ContentBlock>| {
        event(2, ClientEvent::Answer { blocks, usage: Usage::default() })
    };
    let text = |text: &str| ContentBlock::Text { text: text.to_owned() };
    let [thinking, words] = [ScreenItem::Thinking, ScreenItem::Text]
        .map(|item| move |text: &str| item(text.to_owned()));
    let mut screen = screen();
    assert_eq!(screen.update(delta(AnswerPart::Thinking, "Hm.\nSo")), []);
    assert!(screen.items.thinking().ends_with("So"));
    assert_eq!(shown(screen.update(delta(AnswerPart::Text, "It"))), [thinking("Hm.\nSo")]);
    assert_eq!(screen.items.thinking(), "");
    let whole = vec![thought("Hm.\nSo"), text("It is.")];
    assert_eq!(shown(screen.update(answer(whole.clone()))), [words("It is.")]);
    // From the journal, and for one who came in its middle.
    let both = [thinking("Hm.\nSo"), words("It is.")];
    assert_eq!(shown(screen.update(answer(whole.clone()))), both);
    screen.items.stream_started_earlier();
    assert_eq!(screen.update(delta(AnswerPart::Thinking, "o")), []);
    assert_eq!(screen.update(delta(AnswerPart::Text, "It")), []);
    assert_eq!(shown(screen.update(answer(whole))), both);
    // Pieces were left out: it is shown whole.
    screen.update(delta(AnswerPart::Thinking, "Hm."));
    assert_eq!(shown(screen.update(delta(AnswerPart::Text, "It"))), [thinking("Hm.")]);
    assert_eq!(shown(screen.update(answer(vec![thought("Hm.\nSo"), text("It is.")]))), both);
    // A vendor that keeps it to itself, and an answer that is void.
    assert_eq!(shown(screen.update(answer(vec![thought(" "), text("x")]))), [words("x")]);
    screen.update(delta(AnswerPart::Thinking, "void"));
    screen.update(event(3, ClientEvent::Struck { reason: "again".to_owned(), next: None }));
    assert_eq!(screen.items.thinking(), "");
}

#[test]
fn who_comes_in_the_middle_of_an_answer_sees_it_whole_and_once() {
    let mut screen = Screen::new(entrance(ClientRights::Full));
    screen.update(opened(session()));
    screen.update(event(1, ClientEvent::Prompt { text: "go".to_owned(), of: PromptUse::Prompt }));
    screen.update(ScreenInput::Message(ToClient::Attached {
        session: session(),
        name: "terminal 1".to_owned(),
    }));
    let delta = ClientEvent::Delta { part: AnswerPart::Text, text: "iddle\nend".to_owned() };
    assert_eq!(screen.update(event(1, delta)), []);
    assert!(live_rows(&screen, None, (80, 24)).rows.iter().any(|row| row.text == "end"));
    let blocks = vec![ContentBlock::Text { text: "middle\nend".to_owned() }];
    let effects = screen.update(event(2, ClientEvent::Answer { blocks, usage: Usage::default() }));
    assert_eq!(effects, [ScreenEffect::Show(ScreenItem::Text("middle\nend".to_owned()))]);
}

#[test]
fn a_call_is_a_live_block_until_it_ends() {
    let mut screen = screen();
    let call = Call {
        id: call_id(1),
        origin: CallOrigin::model("u"),
        tool: "bash".to_owned(),
        input: r#"{"command":"make\u001b[2J x\u200b\u202ey\u00a0z"}"#.to_owned(),
    };
    screen.update(event(1, ClientEvent::Proposed { call }));
    screen.update(event(
        1,
        ClientEvent::Output { call: call_id(1), text: "a\nb\nc\nd\n".to_owned(), begun: None },
    ));
    let rows: Vec<_> =
        live_rows(&screen, None, (80, 24)).rows.into_iter().map(|row| row.text).collect();
    assert!(rows[0].starts_with(r"● make\u{1b}[2J "), "{rows:?}");
    // Invisible, blank and bidirectional characters, as the question shows them.
    assert!(rows[0].contains(r" x\u{200b}\u{202e}y\u{a0}z (waits)"), "{rows:?}");
    assert_eq!(rows[1..4], ["  b", "  c", "  d"]);
    let result = ToolResult {
        outcome: Outcome::Exited { code: 0 },
        text: "d".to_owned(),
        summary: "exited 0".to_owned(),
        is_error: false,
        code: None,
        images: Vec::new(),
    };
    let refused = vec!["x".to_owned()];
    let ended = ClientEvent::CallEnded { call: call_id(1), result, refused, spent: None };
    let effects = screen.update(event(2, ended));
    assert!(
        matches!(&effects[..], [ScreenEffect::Show(ScreenItem::Ended(block))] if block.refused == ["x"])
    );
    assert!(screen.items.open().is_empty());
}

#[test]
fn a_lost_supervisor_is_followed_by_another_from_the_last_event_seen() {
    let mut screen = screen();
    screen.update(event(7, ClientEvent::Prompt { text: "go".to_owned(), of: PromptUse::Prompt }));
    screen.update(event(8, question(1, &[])));
    types(&mut screen, "\u{0}");
    let effects = screen.update(ScreenInput::Lost("closed".to_owned()));
    assert!(matches!(
        effects[..],
        [ScreenEffect::Show(ScreenItem::Note(_)), ScreenEffect::Reconnect(_)]
    ));
    assert_eq!(screen.answer_rows(), None, "nobody is there to hear an answer");
    let effects = screen.update(opened(session()));
    let again = ScreenEffect::Show(ScreenItem::Note("connected again".to_owned()));
    assert!(effects.contains(&again), "{effects:?}");
    assert!(matches!(says(&effects)[..], [FromClient::Attach { from: BacklogFrom::Seq(9), .. }]));
    let behind = screen.update(ScreenInput::Message(ToClient::Behind { session: session() }));
    assert!(matches!(says(&behind)[..], [FromClient::Attach { from: BacklogFrom::Seq(9), .. }]));
}

#[test]
fn a_supervisor_that_was_asked_to_end_is_not_brought_up_again() {
    let mut screen = screen();
    let message = "agentd-supervisor was asked to end".to_owned();
    let failed = |kind| ToClient::Failed { kind, message: message.clone() };
    // Other failures are not the reason of a later loss.
    screen.update(ScreenInput::Message(failed(RequestFailure::Usage)));
    let effects = screen.update(ScreenInput::Lost("closed".to_owned()));
    assert!(matches!(effects[..], [_, ScreenEffect::Reconnect(_)]), "{effects:?}");
    screen.update(opened(session()));
    screen.update(ScreenInput::Message(ToClient::Attached {
        session: session(),
        name: "terminal 1".to_owned(),
    }));
    screen.update(ScreenInput::Message(failed(RequestFailure::Ending)));
    let effects = screen.update(ScreenInput::Lost("closed".to_owned()));
    assert_eq!(effects, [ScreenEffect::Leave(LeaveReason::Lost(message))]);
}

#[test]
fn a_fork_is_another_session_and_the_first_is_let_go() {
    let mut screen = screen();
    screen.update(event(7, ClientEvent::Prompt { text: "go".to_owned(), of: PromptUse::Prompt }));
    types(&mut screen, ":fork");
    let effects = screen.update(ScreenInput::Key(KeyPress::Enter));
    assert_eq!(effects, [ScreenEffect::Open(SessionStart::Fork { of: session(), at: None })]);
    let copy = SessionId("0123456789ab".to_owned());
    let effects = screen.update(opened(copy.clone()));
    assert!(
        matches!(
            says(&effects)[..],
            [FromClient::Detach { session: old }, FromClient::Attach { session: new, from: BacklogFrom::Newest(_), .. }]
                if *old == session() && *new == copy
        ),
        "{effects:?}"
    );
    let late = screen
        .update(event(9, ClientEvent::Prompt { text: "old".to_owned(), of: PromptUse::Prompt }));
    assert_eq!(late, [], "words of the first session are not shown in the second");
}

#[test]
fn earlier_events_are_asked_for_before_the_first_one_seen() {
    let mut screen = screen();
    screen.update(event(70, ClientEvent::Prompt { text: "go".to_owned(), of: PromptUse::Prompt }));
    types(&mut screen, ":earlier");
    let effects = screen.update(ScreenInput::Key(KeyPress::Enter));
    assert!(matches!(says(&effects)[..], [FromClient::Page { before: 70, .. }]), "{effects:?}");
    // A preview that comes when one has gone to that session already.
    let late = |seq| NumberedEvent {
        seq,
        event: ClientEvent::Prompt { text: "go".to_owned(), of: PromptUse::Prompt },
    };
    let events = vec![late(60), late(70)];
    let message = ToClient::Page { session: session(), events };
    assert_eq!(screen.update(ScreenInput::Message(message)), []);
    let events = vec![NumberedEvent {
        seq: 60,
        event: ClientEvent::Prompt { text: "first".to_owned(), of: PromptUse::Prompt },
    }];
    let effects =
        screen.update(ScreenInput::Message(ToClient::Page { session: session(), events }));
    assert_eq!(effects, [ScreenEffect::ShowEarlier(vec![ScreenItem::Prompt("first".to_owned())])]);
    let effects =
        screen.update(ScreenInput::Message(ToClient::Page { session: session(), events: vec![] }));
    assert_eq!(
        (effects, screen.hint.as_deref()),
        (vec![], Some("this is the start of the session"))
    );
}

#[test]
fn rows_fit_the_terminal_whatever_its_size() {
    let mut screen = screen();
    screen.update(event(1, question(1, &["bash:日本語日本語日本語日本語 *"])));
    screen.update(event(1, queued(&[&*"日本語".repeat(50); 9])));
    screen.update(ScreenInput::Paste("long ".repeat(400)));
    for (columns, height) in [(1, 1), (2, 3), (7, 4), (80, 24), (200, 5)] {
        let live = live_rows(&screen, None, (columns, height));
        assert!(live.rows.len() <= height.max(2), "{columns}x{height}: {}", live.rows.len());
        assert!(live.cursor.0 < live.rows.len(), "{columns}x{height}");
        if columns >= 7 {
            assert!(live.rows.iter().all(|row| row.columns() <= columns), "{columns}x{height}");
        }
    }
}

#[test]
fn the_prompt_of_a_turn_that_failed_stays_in_the_conversation_alone() {
    let mut screen = screen();
    screen.update(ScreenInput::Edited("mend it".to_owned()));
    screen.update(ScreenInput::Key(KeyPress::Enter));
    screen.update(event(
        1,
        ClientEvent::Prompt { text: "mend it".to_owned(), of: PromptUse::Prompt },
    ));
    screen.update(ScreenInput::Paste("more".to_owned()));
    let message = "the server answered 529; gave up after 10 tries".to_owned();
    let end = TurnEnd::ProviderFailed { kind: ProviderFailure::Overloaded, message };
    screen.update(event(2, ClientEvent::TurnEnded { end }));
    assert_eq!(screen.draft(), "more");
}

#[test]
fn the_end_of_a_turn_has_the_cost_of_that_turn_alone() {
    let mut screen = screen();
    let prices = protocol::client::Prices {
        input: 1_000_000,
        output: 1_000_000,
        cache_read: None,
        cache_write: None,
    };
    let turn = |screen: &mut Screen, prices, tokens: u64| {
        let facts = ModelFacts { prices, ..ModelFacts::default() };
        screen.update(event(
            1,
            ClientEvent::Model { name: "model-1".to_owned(), facts, models: Vec::new() },
        ));
        screen
            .update(event(1, ClientEvent::Prompt { text: "go".to_owned(), of: PromptUse::Prompt }));
        let usage = Usage { input: Some(tokens), output: Some(0), ..Usage::default() };
        screen.update(event(2, ClientEvent::Answer { blocks: Vec::new(), usage }));
        let effects = screen.update(event(3, ClientEvent::TurnEnded { end: TurnEnd::Done }));
        let ScreenEffect::Show(ScreenItem::TurnTotals(totals)) = &effects[0] else {
            panic!("{effects:?}")
        };
        totals.in_words()
    };
    assert_eq!(turn(&mut screen, Some(prices), 20_000), "✓ 20.0k in · 0 out · $0.02");
    assert_eq!(turn(&mut screen, None, 50_000), "✓ 50.0k in · 0 out");
    // One turn of unknown cost leaves the next ones known.
    assert_eq!(turn(&mut screen, Some(prices), 50_000), "✓ 50.0k in · 0 out · $0.05");
    // The sum of the session stays in view.
    let row = crate::live_rows::status_row(&screen, 200);
    assert!(row.contains("at least $0.07"), "{row}");
}

#[test]
fn a_turn_whose_beginning_was_not_seen_here_has_no_totals() {
    let has_totals = |effects: &[ScreenEffect]| {
        effects.iter().any(|it| matches!(it, ScreenEffect::Show(ScreenItem::TurnTotals(_))))
    };
    let ends = |screen: &mut Screen| {
        let (blocks, usage) = (Vec::new(), Usage { input: Some(9), ..Usage::default() });
        screen.update(event(2, ClientEvent::Answer { blocks, usage }));
        let effects = screen.update(event(3, ClientEvent::TurnEnded { end: TurnEnd::Done }));
        has_totals(&effects)
    };
    let prompt = || event(1, ClientEvent::Prompt { text: "go".to_owned(), of: PromptUse::Prompt });
    let mut seen = screen();
    seen.update(prompt());
    assert!(ends(&mut seen));
    assert!(!ends(&mut seen), "a turn without its prompt");
    // The connection is lost within a turn, and comes back within it.
    seen.update(prompt());
    seen.update(ScreenInput::Lost("gone".to_owned()));
    seen.connection = ConnectionState::Replaying;
    seen.update(prompt());
    seen.update(ScreenInput::Message(ToClient::Attached {
        session: seen.session().unwrap().clone(),
        name: "terminal 1".to_owned(),
    }));
    // A prompt within the turn begins none.
    seen.update(prompt());
    assert!(!ends(&mut seen));
    seen.update(prompt());
    assert!(ends(&mut seen));
}

#[test]
fn words_that_were_not_taken_come_back_to_the_line_and_those_on_disk_do_not() {
    let said = || {
        let mut screen = screen();
        for text in ["first", "second"] {
            types(&mut screen, text);
            screen.update(ScreenInput::Key(KeyPress::Enter));
        }
        screen.update(event(
            1,
            ClientEvent::Prompt { text: "first".to_owned(), of: PromptUse::Prompt },
        ));
        assert_eq!(screen.unconfirmed(), ["second"]);
        screen
    };
    let back = |screen: &mut Screen, before: Option<ScreenInput>| {
        screen.update(ScreenInput::Lost("gone".to_owned()));
        screen.update(opened(session()));
        types(screen, "typed");
        before.into_iter().for_each(|input| drop(screen.update(input)));
        screen.update(ScreenInput::Message(ToClient::Attached {
            session: session(),
            name: "terminal 1".to_owned(),
        }));
        screen.editor.text().into_owned()
    };
    let mut lost = said();
    assert_eq!(back(&mut lost, None), "second\ntyped");
    assert!(lost.hint.is_some_and(|hint| hint.contains("press Enter to send it")));
    let kept = ClientEvent::Prompt { text: "second".to_owned(), of: PromptUse::Prompt };
    let queued = queued(&["second"]);
    for on_disk in [event(2, kept), event(1, queued)] {
        let mut screen = said();
        assert_eq!(back(&mut screen, Some(on_disk)), "typed");
        assert!(screen.unconfirmed().is_empty());
    }
    let mut degraded = said();
    degraded.update(event(2, ClientEvent::Degraded { reason: "the disk is full".to_owned() }));
    assert_eq!(degraded.editor.text(), "second");
}

#[test]
fn who_is_sent_away_is_told_whether_the_session_goes_on() {
    let reason = || "why".to_owned();
    for (parting, leaving) in [
        (DetachReason::TakenOver, LeaveReason::Detached(Some(reason()))),
        (DetachReason::Ended, LeaveReason::Ended(reason())),
        (DetachReason::Failed, LeaveReason::Failed(RequestFailure::Internal, reason())),
    ] {
        let word = ToClient::Detached { session: session(), parting, reason: reason() };
        assert_eq!(screen().update(ScreenInput::Message(word)), [ScreenEffect::Leave(leaving)]);
    }
}

/// A session of two turns, of which the first made a call.
fn two_turns() -> Screen {
    let mut screen = screen();
    let prompt = |text: &str| ClientEvent::Prompt { text: text.to_owned(), of: PromptUse::Prompt };
    let answer = |text: &str| ClientEvent::Answer {
        blocks: vec![ContentBlock::Text { text: text.to_owned() }],
        usage: Usage::default(),
    };
    let call = Call {
        id: call_id(1),
        origin: CallOrigin::model("u"),
        tool: "bash".to_owned(),
        input: "{}".to_owned(),
    };
    let events = [
        (5, prompt("first")),
        (6, answer("Look.")),
        (7, ClientEvent::Proposed { call }),
        (10, answer("Done.")),
        (11, ClientEvent::TurnEnded { end: TurnEnd::Done }),
        (12, prompt("second")),
        (13, answer("Words.")),
        (14, ClientEvent::TurnEnded { end: TurnEnd::Done }),
    ];
    for (seq, happened) in events {
        screen.update(event(seq, happened));
    }
    screen
}

fn command(screen: &mut Screen, text: &str) -> Vec<ScreenEffect> {
    screen.update(ScreenInput::Command(text.to_owned()))
}

fn fork_at(seq: u64) -> ScreenEffect {
    ScreenEffect::Open(SessionStart::Fork { of: session(), at: Some(seq) })
}

#[test]
fn places_to_rewind_to_are_prompts_and_later_rounds_with_the_first_call_behind() {
    let screen = two_turns();
    let places: Vec<_> = screen
        .rewind_points()
        .into_iter()
        .map(|point| (point.seq, point.title(), point.first_call))
        .collect();
    assert_eq!(
        places,
        [
            (12, "second".to_owned(), None),
            (10, "  round: Done.".to_owned(), None),
            (5, "first".to_owned(), Some(1)),
        ]
    );
    let mut screen = two_turns();
    let earlier = NumberedEvent {
        seq: 3,
        event: ClientEvent::Prompt { text: "old".to_owned(), of: PromptUse::Prompt },
    };
    let page = ToClient::Page { session: session(), events: vec![earlier] };
    screen.update(ScreenInput::Message(page));
    let oldest = screen.rewind_points().pop().unwrap();
    assert_eq!((oldest.seq, oldest.first_call), (3, Some(1)), "earlier events come first");
}

/// The page ends between an answer and its calls: those are behind the places of the earlier page.
#[test]
fn a_page_that_begins_with_a_call_gives_it_to_the_places_before() {
    let mut screen = screen();
    let proposed = |number| {
        let (id, origin) = (call_id(number), CallOrigin::PromptPart);
        let (tool, input) = ("bash".to_owned(), "{}".to_owned());
        ClientEvent::Proposed { call: Call { id, origin, tool, input } }
    };
    let prompt = |text: &str| ClientEvent::Prompt { text: text.to_owned(), of: PromptUse::Prompt };
    for (seq, happened) in [(20, proposed(5)), (25, prompt("late")), (26, proposed(6))] {
        screen.update(event(seq, happened));
    }
    let mut page = |events: Vec<(u64, ClientEvent)>| {
        let events = events.into_iter().map(|(seq, event)| NumberedEvent { seq, event }).collect();
        screen.update(ScreenInput::Message(ToClient::Page { session: session(), events }));
    };
    page(vec![(15, proposed(4))]);
    page(vec![(12, proposed(3)), (13, prompt("middle"))]);
    page(vec![(10, prompt("early"))]);
    let places: Vec<_> =
        screen.rewind_points().into_iter().map(|point| (point.seq, point.first_call)).collect();
    assert_eq!(places, [(25, Some(6)), (13, Some(4)), (10, Some(3))]);
}

#[test]
fn both_go_back_one_after_the_other_and_the_prompt_is_in_the_line_of_the_copy() {
    let mut screen = two_turns();
    let effects = command(&mut screen, ":rewind 5 both");
    let words = ":rewind files 1".to_owned();
    assert!(
        matches!(says(&effects)[..], [FromClient::Prompt { text, .. }] if *text == words),
        "{effects:?}"
    );
    // Another turn that ends meanwhile is not that of the files.
    screen.update(event(15, ClientEvent::TurnEnded { end: TurnEnd::Done }));
    screen.update(event(16, ClientEvent::Prompt { text: words, of: PromptUse::Prompt }));
    let effects = screen.update(event(17, ClientEvent::TurnEnded { end: TurnEnd::Done }));
    assert!(effects.contains(&fork_at(4)), "{effects:?}");
    let copy = SessionId("0123456789ab".to_owned());
    let effects = screen.update(opened(copy));
    assert!(format!("{effects:?}").contains("returns to the whole conversation"));
    assert_eq!(screen.draft(), "first");
}

#[test]
fn files_that_did_not_go_back_leave_the_conversation_where_it_is() {
    let mut screen = two_turns();
    command(&mut screen, ":rewind 5");
    screen.update(event(
        16,
        ClientEvent::Prompt { text: ":rewind files 1".to_owned(), of: PromptUse::Prompt },
    ));
    let end = TurnEnd::Interrupted;
    let effects = screen.update(event(17, ClientEvent::TurnEnded { end }));
    assert!(!effects.contains(&fork_at(4)), "{effects:?}");
    assert!(format!("{effects:?}").contains("`:rewind 5 conversation`"), "{effects:?}");
    assert_eq!(command(&mut screen, ":rewind 5 conversation"), [fork_at(4)]);
    // The supervisor goes away before the copy is there.
    screen.update(ScreenInput::Lost("closed".to_owned()));
    screen.update(opened(session()));
    let attached = ToClient::Attached { session: session(), name: "terminal 1".to_owned() };
    let effects = screen.update(ScreenInput::Message(attached));
    assert!(format!("{effects:?}").contains("the copy was not made"), "{effects:?}");
}

#[test]
fn a_rewind_without_calls_since_needs_no_files_and_one_of_nothing_says_so() {
    let mut screen = two_turns();
    assert_eq!(command(&mut screen, ":rewind 12 both"), [fork_at(11)]);
    for (text, said) in
        [(":rewind 12 files", "no files to rewind"), (":rewind 99", ":rewind lists them")]
    {
        assert_eq!(command(&mut screen, text), [], "{text}");
        assert!(screen.hint().unwrap().contains(said), "{text}: {:?}", screen.hint());
    }
    screen
        .update(event(20, ClientEvent::Prompt { text: "third".to_owned(), of: PromptUse::Prompt }));
    assert_eq!(command(&mut screen, ":rewind 5 files"), []);
    assert!(screen.hint().unwrap().contains("stop it first"));
}

#[test]
fn escape_twice_on_an_empty_line_lists_the_places_and_never_while_a_line_is_typed() {
    let escape = || ScreenInput::Key(KeyPress::Escape);
    let mut screen = two_turns();
    assert_eq!(screen.update(escape()), []);
    assert_eq!(screen.hint(), Some("Esc again to rewind"));
    let listed = format!("{:?}", screen.update(escape()));
    assert!(listed.contains("first") && listed.contains("second"), "{listed}");
    types(&mut screen, "x");
    for (hint, text) in [("Esc again to clear", "x"), ("cleared; Up", "")] {
        assert_eq!(screen.update(escape()), [], "there is text");
        assert!(screen.hint().unwrap().contains(hint), "{:?}", screen.hint());
        assert_eq!(screen.draft(), text);
    }
    screen.update(ScreenInput::Key(KeyPress::Up));
    assert_eq!(screen.draft(), "x");
    // What was pasted between the two is not cleared.
    screen.update(escape());
    screen.update(ScreenInput::Paste(" and more".to_owned()));
    screen.update(escape());
    assert_eq!(screen.draft(), "x and more");
    screen.update(ScreenInput::Edited("/rewind".to_owned()));
    let listed = format!("{:?}", screen.update(ScreenInput::Key(KeyPress::Enter)));
    assert!(listed.contains("second"), "{listed}");
    let mut watching = screen_with(ClientRights::ReadOnly);
    watching.update(escape());
    assert_eq!(watching.update(escape()), []);
    command(&mut watching, ":rewind");
    assert!(watching.hint().unwrap().contains("read-only"));
}

#[test]
fn with_the_keys_of_vim_a_first_esc_stops_nothing_and_letters_of_the_normal_mode_are_no_text() {
    let options = AttachOptions { keys: crate::LineKeys::Vim, ..entrance(ClientRights::Full) };
    let mut screen = Screen::new(options);
    screen.update(opened(session()));
    let press = |screen: &mut Screen, key| screen.update(ScreenInput::Key(key));
    types(&mut screen, "one two");
    press(&mut screen, KeyPress::Escape);
    assert_eq!(screen.input().1, "N ");
    // No number of them clears the line.
    for _ in 0..3 {
        assert_eq!(press(&mut screen, KeyPress::Escape), []);
    }
    types(&mut screen, "0dw");
    assert_eq!(screen.draft(), "two");
    types(&mut screen, "i");
    assert_eq!(screen.input().1, "> ");
    screen.update(event(1, ClientEvent::Prompt { text: "go".to_owned(), of: PromptUse::Prompt }));
    assert_eq!(screen.turn(), TurnState::Working);
    assert_eq!(press(&mut screen, KeyPress::Escape), []);
    let stop = FromClient::Interrupt { session: session() };
    assert_eq!(press(&mut screen, KeyPress::Escape), [ScreenEffect::Send(stop)]);
    // At a question they answer nothing either, and Enter answers with the marked row.
    screen.update(event(2, question(1, &["bash:ls"])));
    screen.question_painted(QuestionShown::Whole);
    types(&mut screen, "yyddp1x");
    assert!(screen.question().is_some());
    press(&mut screen, KeyPress::Down);
    // What `x` left of the text goes along.
    let noted = PersonAnswer::Noted(protocol::judgement::Consent::Once, "wo".to_owned());
    assert_eq!(answered(&press(&mut screen, KeyPress::Enter)), noted);
}
