//! The view over a terminal in memory: inputs in, cells out.
#![allow(clippy::unwrap_used)]
mod kept;
mod lists;
mod running;
mod search;
mod svg;
mod themes;

use super::*;
use client::{AttachOptions, Distance, LineView, LiveArea, MouseInput, ScreenEffect, SlashRow};
use proptest::prelude::*;
use protocol::call::{Call, CallOrigin, Outcome, ToolResult};
use protocol::client::PromptUse;
use protocol::client::{
    AnswerPart, ClientEvent, ClientRights, KnownModel, ModelFacts, OtherClients, ToClient,
    WhileBusy,
};
use protocol::confinement::Network;
use protocol::content::{ContentBlock, Usage};
use protocol::ids::{CallId, SessionId};
use protocol::judgement::{Ask, PermissionMode, Question};
use protocol::session::TurnEnd;
use ratatui_core::buffer::Cell;
use ratatui_core::style::{Color, Modifier};
use std::cell::RefCell;
use std::rc::Rc;

/// What a terminal was sent.
#[derive(Clone, Default)]
struct Sent(Rc<RefCell<Vec<u8>>>);

impl io::Write for Sent {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A model, the view, and the terminal that shows it.
struct Desk {
    screen: Screen,
    view: FullScreen,
    sent: Sent,
    terminal: vt100::Parser,
    items: Vec<ScreenItem>,
    seq: u64,
}

fn session() -> SessionId {
    SessionId("0123456789ab".to_owned())
}

impl Desk {
    fn new(columns: u16, rows: u16) -> Self {
        let options = AttachOptions {
            rights: ClientRights::Full,
            others: OtherClients::Stay,
            prompt: None,
            leader: "Ctrl-\\".to_owned(),
            keys: client::LineKeys::Emacs,
            busy: WhileBusy::Queue,
            first_words: None,
        };
        let sent = Sent::default();
        let tty = Tty::over(Box::new(sent.clone()), Some((columns, rows)));
        let options_of_view = FullScreenOptions {
            colour: Colour::On,
            depth: ColourDepth::True,
            theme: ThemeName::Ansi,
            mouse: Mouse::LeftAlone,
            notify: Notify::Bell,
            title: Title::LeftAlone,
            guard: None,
            project: PathBuf::from("/"),
            prompt_places: PromptPlaces::default(),
        };
        let (inputs, _) = std::sync::mpsc::sync_channel(8);
        let mut desk = Self {
            screen: Screen::new(options),
            view: FullScreen::over(tty, options_of_view, inputs),
            sent,
            terminal: vt100::Parser::new(rows.try_into().unwrap(), columns.try_into().unwrap(), 0),
            items: Vec::new(),
            seq: 0,
        };
        desk.message(ToClient::Opened {
            session: session(),
            name: String::new(),
            model: "model-1".to_owned(),
            facts: ModelFacts::default(),
            tools: Vec::new(),
            mode: PermissionMode::Ask,
            network: Network::Off,
            hosts: Vec::new(),
            sandbox: "sandbox: full (namespaces)".to_owned(),
            last_seq: 0,
            warnings: Vec::new(),
            temp: protocol::confinement::FilePath::from(std::path::PathBuf::from("/t/tmp")),
        });
        let model = |name: &str, context| KnownModel {
            name: name.to_owned(),
            facts: ModelFacts { context, ..ModelFacts::default() },
        };
        let event = ClientEvent::Model {
            name: "model-1".to_owned(),
            facts: ModelFacts::default(),
            models: vec![model("local", None), model("model-2", Some(200_000))],
        };
        desk.message(ToClient::Event { session: session(), seq: 0, event });
        desk.message(ToClient::Attached { session: session(), name: "terminal 1".to_owned() });
        desk
    }

    fn message(&mut self, message: ToClient) {
        self.input(ScreenInput::Message(message));
    }

    fn event(&mut self, event: ClientEvent) {
        self.seq += 1;
        self.message(ToClient::Event { session: session(), seq: self.seq, event });
    }

    /// As `attach` handles an input, without a supervisor.
    fn input(&mut self, input: ScreenInput) {
        for input in self.view.take(input, &self.screen) {
            for effect in self.screen.update(input) {
                match effect {
                    ScreenEffect::Show(item) => {
                        self.items.push(item.clone());
                        self.view.show(item);
                    }
                    ScreenEffect::ShowEarlier(items) => self.view.show_earlier(items),
                    ScreenEffect::StartOver => self.view.start_over(),
                    ScreenEffect::Bell => self.view.bell(),
                    ScreenEffect::Repaint => self.view.repaint(),
                    ScreenEffect::OpenText(text) => self.view.open(text),
                    ScreenEffect::Theme(theme) => self.view.set_theme(theme),
                    ScreenEffect::Send(_)
                    | ScreenEffect::Reconnect(_)
                    | ScreenEffect::Open(_)
                    | ScreenEffect::Switch(_)
                    | ScreenEffect::AddDirectory(_)
                    | ScreenEffect::PasteImage(_)
                    | ScreenEffect::ShowAudit(_)
                    | ScreenEffect::ShowMemories(_)
                    | ScreenEffect::RemoveMemories(..)
                    | ScreenEffect::WriteNote(..)
                    | ScreenEffect::Leave(_) => {}
                }
            }
        }
    }

    /// Paints, and returns how many bytes that took.
    fn paint(&mut self) -> usize {
        self.view.paint(&self.screen).unwrap();
        if let Some(shown) = self.shown_of_question()
            && self.screen.question_painted(shown)
        {
            self.view.paint(&self.screen).unwrap();
        }
        let bytes = std::mem::take(&mut *self.sent.0.borrow_mut());
        self.terminal.process(&bytes);
        let text = String::from_utf8_lossy(&bytes);
        for clear in ["\u{1b}[2J", "\u{1b}[3J"] {
            if let Some(at) = text.find(clear) {
                let begun = text.find("\u{1b}[?2026h").is_some_and(|begun| begun < at);
                assert!(begun && text.ends_with("\u{1b}[?2026l"), "{clear} outside a frame");
            }
        }
        bytes.len()
    }

    fn shown_of_question(&self) -> Option<QuestionShown> {
        self.screen.question().map(|asked| self.view.question_shown(asked))
    }

    /// Panics unless a terminal that gets this frame whole shows the same cells, attributes too.
    fn equals_a_redraw(&mut self) {
        // A hint may go with the frame that showed what it spoke of.
        self.paint();
        let size = self.terminal.screen().size();
        let mut fresh = vt100::Parser::new(size.0, size.1, 0);
        self.view.repaint();
        self.view.paint(&self.screen).unwrap();
        fresh.process(&std::mem::take(&mut *self.sent.0.borrow_mut()));
        let (shown, fresh) = (self.terminal.screen(), fresh.screen());
        let places = (0..size.0.get()).flat_map(|y| (0..size.1.get()).map(move |x| (y, x)));
        for (y, x) in places {
            let cells = [shown, fresh].map(|screen| cell(screen, (x, y)));
            assert_eq!(cells[0], cells[1], "row {y}, column {x}");
        }
    }

    fn resize(&mut self, columns: u16, rows: u16) {
        self.view.tty = Tty::over(Box::new(self.sent.clone()), Some((columns, rows)));
        self.terminal.screen_mut().set_size(rows.try_into().unwrap(), columns.try_into().unwrap());
        self.input(ScreenInput::Resized(columns, rows));
    }

    fn types(&mut self, text: &str) {
        text.chars().for_each(|c| self.input(ScreenInput::Key(KeyPress::Char(c))));
    }

    fn shown(&mut self) -> String {
        self.paint();
        let text = self.terminal.screen().contents();
        text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    }
}

fn call(number: u32, tool: &str, input: &str) -> Call {
    Call {
        id: CallId { session: session(), number },
        origin: CallOrigin::model(format!("use_{number}")),
        tool: tool.to_owned(),
        input: input.to_owned(),
    }
}

fn ended(number: u32, text: &str) -> ClientEvent {
    let result = ToolResult {
        outcome: Outcome::Exited { code: 0 },
        text: text.to_owned(),
        summary: "exit 0 · 0.1 s".to_owned(),
        is_error: false,
        code: None,
        images: Vec::new(),
    };
    let id = CallId { session: session(), number };
    ClientEvent::CallEnded {
        call: id,
        result,
        refused: vec!["open /etc/shadow: EACCES".to_owned()],
        spent: None,
    }
}

fn answer(text: &str) -> ClientEvent {
    let blocks = vec![ContentBlock::Text { text: text.to_owned() }];
    ClientEvent::Answer { blocks, usage: Usage::default() }
}

fn question(number: u32) -> ClientEvent {
    let question = Question {
        call: CallId { session: session(), number },
        tool: "bash".to_owned(),
        input: r#"{"command":"cargo publish"}"#.to_owned(),
        preview: "cargo publish".to_owned(),
        confinement: "may write: this project; network: off".to_owned(),
        reason: "no rule allows this call of `bash`".to_owned(),
        widens: Vec::new(),
        ask: Ask::Call { rules: vec!["bash:cargo publish".to_owned()], modes: Vec::new() },
        deadline: 0,
        digest: format!("digest {number}"),
    };
    ClientEvent::Asked { question }
}

#[test]
fn a_second_of_the_living_line_costs_few_bytes_and_none_while_nothing_runs() {
    let mut desk = Desk::new(120, 40);
    assert_eq!(desk.view.tick(&desk.screen), None);
    desk.event(ClientEvent::Prompt { text: "go".to_owned(), of: PromptUse::Prompt });
    let text = "one two three four five six seven eight nine ten ".repeat(40);
    desk.event(ClientEvent::Delta { part: AnswerPart::Thinking, text });
    desk.paint();
    let mut bytes = Vec::new();
    let began = Instant::now();
    while bytes.len() < 2 && began.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(desk.view.tick(&desk.screen).unwrap());
        bytes.push(desk.paint());
    }
    // Moving the cursor and the marks of a frame take some 30.
    assert!(bytes.iter().all(|bytes| (1..=60).contains(bytes)), "{bytes:?}");
    // None while a person is asked, either.
    desk.event(ClientEvent::Proposed { call: call(1, "bash", "{}") });
    desk.event(question(1));
    desk.paint();
    assert_eq!(desk.view.tick(&desk.screen), None);
    desk.event(ClientEvent::TurnEnded { end: TurnEnd::Done });
    desk.paint();
    assert_eq!(desk.view.tick(&desk.screen), None);
}

/// A session with each kind of block, and an open question.
fn busy(columns: u16, rows: u16) -> Desk {
    let mut desk = Desk::new(columns, rows);
    desk.event(ClientEvent::Prompt {
        text: "publish 日本語 👩‍👩‍👧‍👦 it".to_owned(),
        of: PromptUse::Prompt,
    });
    desk.event(answer("I **check** first:\n\n```rust\nlet a = 1;\n```\n"));
    desk.event(ClientEvent::Proposed { call: call(1, "bash", r#"{"command":"cargo test"}"#) });
    desk.event(ended(1, "one\ntwo\nthree"));
    desk.event(ClientEvent::Proposed { call: call(2, "bash", r#"{"command":"cargo publish"}"#) });
    desk.event(question(2));
    desk
}

#[test]
fn what_protects_the_person_is_in_view_at_every_size() {
    for (columns, rows) in [(40, 30), (80, 24), (120, 30), (200, 50)] {
        let mut desk = busy(columns, rows);
        let shown = desk.shown();
        for words in [
            "bash: may it run?",
            "cargo publish",
            "network:",
            "❯ 1 Allow once",
            "Enter allows it once",
            "net off",
            "sandbox: full",
        ] {
            assert!(shown.contains(words), "{columns} x {rows}, {words}:\n{shown}");
        }
        assert!(!shown.contains("**") && !shown.contains("```"), "{shown}");
    }
}

#[test]
fn panels_come_with_something_to_say_and_go_with_a_key() {
    let mut desk = busy(120, 40);
    desk.event(ended(2, "published"));
    desk.event(ClientEvent::TurnEnded { end: TurnEnd::Done });
    assert!(!desk.shown().contains('│'), "{}", desk.shown());
    desk.event(ClientEvent::Proposed { call: call(3, "bash", r#"{"command":"serve"}"#) });
    assert!(!desk.shown().contains('│'), "a call that the turn waits for is in the living line");
    desk.event(ClientEvent::InBackground { call: call(3, "bash", "{}").id, text: String::new() });
    let shown = desk.shown();
    assert!(
        shown.contains('│') && shown.contains("background") && shown.contains("Session"),
        "{shown}"
    );
    for in_view in [false, true] {
        desk.input(ScreenInput::Key(KeyPress::Tab));
        assert_eq!(desk.shown().contains("Calls"), in_view, "{}", desk.shown());
    }
    desk.input(ScreenInput::Key(KeyPress::Tab));
    desk.event(ended(3, "served"));
    desk.resize(60, 30);
    assert!(!desk.shown().contains("Session"));
    desk.input(ScreenInput::Key(KeyPress::Tab));
    assert!(desk.shown().contains("Session"), "in front of the conversation: {}", desk.shown());
}

#[test]
fn a_frame_after_any_resize_shows_no_cell_of_an_older_one() {
    let mut desk = busy(120, 40);
    desk.paint();
    for (columns, rows) in
        [(40, 12), (100, 30), (99, 30), (63, 20), (200, 50), (12, 5), (2, 1), (80, 24)]
    {
        desk.resize(columns, rows);
        let shown = desk.shown();
        let mut fresh = busy(columns, rows);
        assert_eq!(shown, fresh.shown(), "{columns} x {rows}");
    }
}

#[test]
fn one_typed_character_writes_few_bytes_and_nothing_writes_none() {
    let mut desk = busy(200, 50);
    desk.event(ClientEvent::TurnEnded { end: TurnEnd::Done });
    desk.types("hell");
    desk.paint();
    assert_eq!(desk.paint(), 0, "a frame without a change");
    desk.types("o");
    let bytes = desk.paint();
    assert!((1..=200).contains(&bytes), "{bytes}");
    assert!(desk.shown().contains("> hello"));
}

#[test]
fn a_long_call_folds_opens_and_is_searched() {
    let mut desk = Desk::new(80, 24);
    let lines: Vec<String> = (1..=100).map(|line| format!("row {line} of output")).collect();
    desk.event(ClientEvent::Proposed { call: call(1, "bash", r#"{"command":"seq"}"#) });
    desk.event(ended(1, &lines.join("\n")));
    desk.event(ClientEvent::TurnEnded { end: TurnEnd::Done });
    let shown = desk.shown();
    assert!(shown.contains("… 94 more lines") && shown.contains("row 100 of"), "{shown}");
    assert!(shown.contains("⊘ refused: open /etc/shadow"), "{shown}");
    desk.input(ScreenInput::Key(KeyPress::Control('o')));
    desk.types("o/row 42");
    desk.input(ScreenInput::Key(KeyPress::Enter));
    let shown = desk.shown();
    assert!(shown.contains("row 42 of output") && !shown.contains("row 41 of output"), "{shown}");
    desk.types("q");
    assert!(desk.shown().contains("94 more lines"));
}

#[test]
fn a_worker_that_failed_is_named_in_the_panels() {
    let mut desk = busy(120, 30);
    assert!(!desk.shown().contains("Trouble"));
    // Trouble opens also those that the person has hidden.
    for in_view in [true, false] {
        desk.input(ScreenInput::Key(KeyPress::Tab));
        assert_eq!(desk.shown().contains("Session"), in_view, "{}", desk.shown());
    }
    let reason = "the conversation has failed: it accepts no input".to_owned();
    desk.event(ClientEvent::Degraded { reason });
    desk.types("x");
    let shown = desk.shown();
    assert!(shown.contains("│ Trouble"), "{shown}");
}

#[test]
fn thinking_is_shown_while_it_comes_and_folded_behind_that() {
    let mut desk = Desk::new(80, 24);
    desk.event(ClientEvent::Prompt { text: "go".to_owned(), of: PromptUse::Prompt });
    let thought = |text: &str| {
        let (part, text) = (AnswerPart::Thinking, text.to_owned());
        ClientEvent::Delta { part, text }
    };
    desk.event(thought("First I look.\nThen I wri"));
    let shown = desk.shown();
    assert!(shown.contains("● thinks · 0 s · ~6 tokens · First I look. Then I wri"), "{shown}");
    assert!(!shown.contains("thinking: "), "{shown}");
    desk.event(thought("te."));
    desk.event(ClientEvent::Delta { part: AnswerPart::Text, text: "Here ".to_owned() });
    let shown = desk.shown();
    assert!(shown.contains("thinking: First I look. … 1 more lines"), "{shown}");
    assert!(!shown.contains("Then I write"), "{shown}");
    desk.event(answer("Here it is."));
    let shown = desk.shown();
    let place = |words: &str| shown.find(words).unwrap_or_else(|| panic!("{words}: {shown}"));
    assert!(place("thinking: First") < place("Here it is."), "{shown}");
    desk.input(ScreenInput::Key(KeyPress::Control('o')));
    desk.types("k");
    desk.input(ScreenInput::Key(KeyPress::Enter));
    assert!(desk.shown().contains("Then I write."), "{}", desk.shown());
}

#[test]
fn a_view_that_is_scrolled_up_stays_while_new_events_come() {
    let mut desk = Desk::new(80, 20);
    for number in 1..=30 {
        desk.event(ClientEvent::Prompt { text: format!("prompt {number}"), of: PromptUse::Prompt });
        desk.event(answer(&format!("answer {number}")));
        desk.event(ClientEvent::TurnEnded { end: TurnEnd::Done });
    }
    desk.paint();
    desk.input(ScreenInput::Key(KeyPress::Page(Direction::Start)));
    let before = desk.shown();
    assert!(!before.contains("answer 30"), "{before}");
    desk.event(ClientEvent::Prompt { text: "one more".to_owned(), of: PromptUse::Prompt });
    let after = desk.shown();
    let text = |shown: &str| shown.lines().take(10).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(text(&before), text(&after));
    assert!(after.contains("new below"), "{after}");
    for _ in 0..3 {
        desk.input(ScreenInput::Key(KeyPress::Page(Direction::End)));
        desk.paint();
    }
    assert!(desk.shown().contains("one more"));
}

#[test]
fn a_turn_that_ends_in_a_terminal_without_focus_calls_the_person() {
    let ways = [
        (Notify::Bell, "\u{7}"),
        (Notify::Osc9, "\u{1b}]9;agentd: the turn has ended"),
        (Notify::Osc777, "\u{1b}]777;notify;agentd;the turn has ended"),
    ];
    for (way, bytes) in ways {
        for focused in [false, true] {
            let mut desk = Desk::new(80, 20);
            desk.view.options.notify = way;
            desk.event(ClientEvent::Prompt { text: "go".to_owned(), of: PromptUse::Prompt });
            desk.paint();
            desk.input(ScreenInput::Focused(focused));
            desk.event(ClientEvent::TurnEnded { end: TurnEnd::Done });
            desk.view.paint(&desk.screen).unwrap();
            let sent = String::from_utf8_lossy(&desk.sent.0.borrow()).into_owned();
            assert_eq!(sent.contains(bytes), !focused, "{way:?}: {sent:?}");
        }
    }
}

#[test]
fn a_key_goes_to_the_next_mode_and_a_wrong_command_is_named() {
    let mut desk = Desk::new(80, 20);
    let sent = desk.view.take(ScreenInput::Key(KeyPress::BackTab), &desk.screen);
    let mode = |sent: &[ScreenInput]| format!("{sent:?}").contains(":mode sandboxed");
    assert!(mode(&sent), "{sent:?}");
    desk.types(":claer");
    desk.input(ScreenInput::Key(KeyPress::Enter));
    let shown = desk.shown();
    assert!(shown.contains("there is no command :claer. Did you mean :clear?"), "{shown}");
    assert!(!shown.contains("> :claer"), "{shown}");
    // What other agents have is said in one line.
    desk.types("/cost");
    desk.input(ScreenInput::SlashCommands(Vec::new()));
    desk.input(ScreenInput::Key(KeyPress::Enter));
    let shown = desk.shown();
    assert!(shown.contains("input line has tokens and cost"), "{shown}");
    assert_eq!(shown.matches('✗').count(), 1, "that of the wrong command: {shown}");
}

#[test]
fn an_enter_behind_an_answer_keeps_the_next_question_in_front() {
    let mut desk = busy(80, 24);
    desk.input(ScreenInput::EnterAhead);
    assert!(desk.shown().contains("Enter allows it once"));
    desk.types("y");
    assert!(desk.shown().contains("> y") && desk.shown().contains("a letter answers nothing"));
}

#[test]
fn a_question_shows_its_head_and_its_tail_until_its_reader_has_seen_the_rest() {
    let mut desk = Desk::new(80, 24);
    let long = |number| {
        let ClientEvent::Asked { mut question } = question(number) else { panic!() };
        let rows: Vec<String> = (1..=40).map(|row| format!("row {row};")).collect();
        question.preview = format!("first of all\n{}\nrm -rf build/", rows.join("\n"));
        ClientEvent::Asked { question }
    };
    desk.event(ClientEvent::Proposed { call: call(1, "bash", "{}") });
    desk.event(long(1));
    let shown = desk.shown();
    assert!(shown.contains("first of all") && shown.contains("rm -rf build/"), "{shown}");
    assert!(!shown.contains("row 20;") && shown.contains("are hidden; PgDn"), "{shown}");
    assert_eq!(desk.shown_of_question().unwrap(), QuestionShown::InPart);
    desk.input(ScreenInput::Key(KeyPress::Page(Direction::Start)));
    desk.paint();
    assert_eq!(desk.shown_of_question().unwrap(), QuestionShown::InPart, "nothing new was shown");
    let mut seen = shown + &desk.shown();
    for _ in 0..8 {
        desk.input(ScreenInput::Key(KeyPress::Page(Direction::End)));
        seen.push_str(&desk.shown());
    }
    assert!((1..=40).all(|row| seen.contains(&format!("row {row};"))), "{seen}");
    assert!(desk.shown().contains("rm -rf build/"));
    assert_eq!(desk.shown_of_question().unwrap(), QuestionShown::Whole);
    // The next question has been scrolled by nobody.
    desk.event(ClientEvent::Decided {
        call: CallId { session: session(), number: 1 },
        allowed: true,
        basis: "x".to_owned(),
    });
    desk.event(long(2));
    assert!(desk.shown().contains("first of all"));
    assert_eq!(desk.shown_of_question().unwrap(), QuestionShown::InPart);
    // Rights that a call asks for are rows of its question, too.
    let mut desk = Desk::new(80, 24);
    let ClientEvent::Asked { mut question } = question(3) else { panic!() };
    question.reason = "a host, ".repeat(300);
    desk.event(ClientEvent::Asked { question });
    desk.paint();
    assert_eq!(desk.shown_of_question().unwrap(), QuestionShown::InPart);
    assert!(desk.shown().contains("cargo publish"));
    // The control: a short one is seen at once.
    let mut desk = busy(80, 24);
    desk.paint();
    assert_eq!(desk.shown_of_question().unwrap(), QuestionShown::Whole);
}

#[test]
fn a_diff_in_a_question_is_highlighted_once() {
    let highlighted = || crate::highlight::HIGHLIGHTED.get();
    let before = highlighted();
    let asked = |name: &str| {
        let ClientEvent::Asked { mut question } = question(1) else { panic!() };
        question.preview =
            format!("--- a.rs\n+++ a.rs\n@@ -1,1 +1,1 @@\n-let a = 1;\n+let {name} = 1;");
        ClientEvent::Asked { question }
    };
    let mut desk = Desk::new(80, 24);
    desk.event(asked("b"));
    for _ in 0..5 {
        assert!(desk.shown().contains("let b = 1;"), "{}", desk.shown());
    }
    assert_eq!(highlighted() - before, 2);
    // Again for other columns, and for another text of the same call.
    desk.resize(60, 24);
    desk.paint();
    assert_eq!(highlighted() - before, 4);
    desk.event(asked("c"));
    assert!(desk.shown().contains("let c = 1;"), "{}", desk.shown());
    assert_eq!(highlighted() - before, 6);
}

#[test]
fn a_failed_call_leaves_the_checklist_and_one_that_never_began_says_so() {
    let mut desk = Desk::new(160, 30);
    desk.event(ClientEvent::Proposed { call: call(1, "checklist_create", "{}") });
    desk.event(ended(1, "[ ] bake the bread"));
    desk.event(ClientEvent::Proposed { call: call(2, "checklist_update", "{}") });
    let result = ToolResult::error(Outcome::Failed, "not_found", "checklist_update", "no item", "");
    let (id, refused, spent) = (CallId { session: session(), number: 2 }, Vec::new(), None);
    desk.event(ClientEvent::CallEnded { call: id, result, refused, spent });
    assert!(desk.view.state.checklist.contains("bake the bread"), "{}", desk.view.state.checklist);
    for (outcome, said) in
        [(Outcome::NeverStarted, "never started"), (Outcome::Interrupted, "may have run")]
    {
        desk.event(ClientEvent::Proposed { call: call(3, "bash", r#"{"command":"ship it"}"#) });
        let result = ToolResult::error(outcome, "interrupted", "bash", "stopped", "");
        let (id, refused, spent) = (CallId { session: session(), number: 3 }, Vec::new(), None);
        desk.event(ClientEvent::CallEnded { call: id, result, refused, spent });
        let shown = desk.shown();
        let row = shown.lines().rfind(|row| row.contains("ship it")).unwrap();
        assert!(row.contains(said), "{shown}");
    }
}

fn colour(colour: vt100::Color) -> Color {
    const NAMED: [Color; 16] = [
        Color::Black,
        Color::Red,
        Color::Green,
        Color::Yellow,
        Color::Blue,
        Color::Magenta,
        Color::Cyan,
        Color::Gray,
        Color::DarkGray,
        Color::LightRed,
        Color::LightGreen,
        Color::LightYellow,
        Color::LightBlue,
        Color::LightMagenta,
        Color::LightCyan,
        Color::White,
    ];
    match colour {
        vt100::Color::Default => Color::Reset,
        vt100::Color::Idx(index) => {
            NAMED.get(usize::from(index)).copied().unwrap_or(Color::Indexed(index))
        }
        vt100::Color::Rgb(red, green, blue) => Color::Rgb(red, green, blue),
    }
}

/// A cell of a terminal with its attributes.
fn cell(screen: &vt100::Screen, place: (u16, u16)) -> Cell {
    let shown = screen.cell(place.1, place.0).unwrap();
    let mut cell = Cell::default();
    if shown.has_contents() {
        cell.set_symbol(shown.contents());
    }
    cell.fg = colour(shown.fgcolor());
    cell.bg = colour(shown.bgcolor());
    for (is_so, modifier) in [
        (shown.bold(), Modifier::BOLD),
        (shown.dim(), Modifier::DIM),
        (shown.italic(), Modifier::ITALIC),
        (shown.underline(), Modifier::UNDERLINED),
        (shown.inverse(), Modifier::REVERSED),
    ] {
        cell.modifier.set(modifier, is_so);
    }
    cell
}

/// Texts with all that text may have.
const ANY_TEXT: &str = "[a-z*#`\\n 日é👩‍👧\u{7}\u{1b}-]{0,40}";
/// Texts of characters of whose width all terminals think alike.
const PLAIN_TEXT: &str = "[a-z*#`\\n é-]{0,40}";

fn any_key() -> impl Strategy<Value = KeyPress> {
    prop_oneof![8 => proptest::char::any().prop_map(KeyPress::Char), 14 => own_key()]
}

/// Keys with a meaning.
fn own_key() -> impl Strategy<Value = KeyPress> {
    prop_oneof![
        8 => proptest::sample::select(vec!['y', 'n', 'x', 'r', 'a', 's', ':', '/', '@', '?', 'o', 'q', 'j', 'k', 'v', 'G', 'g', 'i'])
            .prop_map(KeyPress::Char),
        6 => proptest::sample::select(vec![
            KeyPress::Enter, KeyPress::NewLine, KeyPress::Escape, KeyPress::Interrupt, KeyPress::Tab,
            KeyPress::BackTab, KeyPress::Up, KeyPress::Down, KeyPress::Redraw, KeyPress::Leader,
            KeyPress::Page(Direction::Start), KeyPress::Page(Direction::End),
            KeyPress::Control('o'), KeyPress::Control('p'), KeyPress::Control('r'), KeyPress::Control('t'),
            KeyPress::Move(Distance::Word, Direction::Start), KeyPress::Erase(Distance::Character, Direction::Start),
        ]),
    ]
}

#[derive(Debug, Clone)]
enum Step {
    Key(KeyPress),
    Event(Box<ClientEvent>),
    Resize(u16, u16),
    Mouse(MouseInput),
    Lost,
}

fn any_part() -> impl Strategy<Value = AnswerPart> {
    prop_oneof![3 => Just(AnswerPart::Text), 1 => Just(AnswerPart::Thinking)]
}

fn any_step(
    text: &'static str,
    key: impl Strategy<Value = KeyPress> + 'static,
) -> impl Strategy<Value = Step> {
    let event = prop_oneof![
        text.prop_map(|text| ClientEvent::Prompt { text, of: PromptUse::Prompt }),
        (any_part(), text).prop_map(|(part, text)| ClientEvent::Delta { part, text }),
        text.prop_map(|text| answer(&text)),
        (1..6u32, text).prop_map(|(number, words)| {
            ClientEvent::Proposed {
                call: call(number, "bash", &format!("{{\"command\":{words:?}}}")),
            }
        }),
        (1..6u32, text).prop_map(|(number, text)| ended(number, &text)),
        (1..6u32).prop_map(question),
        Just(ClientEvent::TurnEnded { end: TurnEnd::Done }),
        text.prop_map(|text| ClientEvent::Notice { text }),
        text.prop_map(|reason| ClientEvent::Struck { reason, next: None }),
    ];
    prop_oneof![
        6 => key.prop_map(Step::Key),
        6 => event.prop_map(|event| Step::Event(Box::new(event))),
        1 => (1..130u16, 1..50u16).prop_map(|(columns, rows)| Step::Resize(columns, rows)),
        1 => (-3..3i32).prop_map(|notches| Step::Mouse(MouseInput::Wheel(notches))),
        1 => (0..130u16, 0..50u16).prop_map(|(x, y)| Step::Mouse(MouseInput::Pressed(x, y))),
        1 => (0..130u16, 0..50u16).prop_map(|(x, y)| Step::Mouse(MouseInput::Dragged(x, y))),
        1 => (0..130u16, 0..50u16).prop_map(|(x, y)| Step::Mouse(MouseInput::Released(x, y))),
        1 => Just(Step::Lost),
    ]
}

impl Desk {
    fn step(&mut self, step: Step) {
        match step {
            Step::Key(key) => self.input(ScreenInput::Key(key)),
            Step::Event(event) => self.event(*event),
            Step::Resize(columns, rows) => self.resize(columns, rows),
            Step::Mouse(mouse) => self.input(ScreenInput::Mouse(mouse)),
            Step::Lost => {
                self.input(ScreenInput::Lost("gone".to_owned()));
                let name = "terminal 1".to_owned();
                self.message(ToClient::Attached { session: session(), name });
            }
        }
        self.paint();
    }
}

/// Words of an item that a view has to show.
fn words(item: &ScreenItem) -> Option<String> {
    match item {
        ScreenItem::Prompt(text)
        | ScreenItem::Text(text)
        | ScreenItem::Thinking(text)
        | ScreenItem::Note(text)
        | ScreenItem::Error(text)
        | ScreenItem::Struck(text) => Some(text.clone()),
        ScreenItem::Ended(call) => Some(client::call_title(&call.call)),
        // The line of the call shows the decision, others show these, and an end without a fault is nothing to see.
        ScreenItem::Decided { .. }
        | ScreenItem::Proposed(_)
        | ScreenItem::Asked(_)
        | ScreenItem::Retrying(_)
        | ScreenItem::TurnTotals(_)
        | ScreenItem::TurnEnded(_)
        | ScreenItem::Changed(..) => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Whatever comes, nothing panics, and no item that the inline view prints is missing here.
    #[test]
    fn any_sequence_of_inputs_is_survived_and_no_item_lost(
        steps in proptest::collection::vec(any_step(ANY_TEXT, any_key()), 1..60),
    ) {
        let mut desk = Desk::new(80, 24);
        steps.into_iter().for_each(|step| desk.step(step));
        let all = desk.view.state.conversation.text();
        // The other view has the same words, in lines.
        let lines = LineView::new(Colour::Off, LiveArea::Shown).in_columns(80);
        let inline: String = desk.items.iter().map(|item| lines.lines(item)).collect();
        let bare = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>();
        let inline = bare(&inline);
        for item in &desk.items {
            let shown = words(item).is_none_or(|words| all.contains(&words));
            prop_assert!(shown, "{item:?} is not in {all:?}");
            // There the line of a call is cut to the terminal's width.
            let most = if matches!(item, ScreenItem::Ended(_)) { 20 } else { usize::MAX };
            let begun = |words: String| bare(&words.chars().take(most).collect::<String>());
            let printed = words(item).is_none_or(|words| inline.contains(&begun(words)));
            prop_assert!(printed, "{item:?} is not in {inline:?}");
        }
    }
}

proptest! {
    // Two paints a step, and a whole one.
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Whatever comes, each frame is that of a full redraw: no cell keeps a character or an attribute of an older frame.
    #[test]
    fn each_frame_equals_a_full_redraw(
        steps in proptest::collection::vec(any_step(PLAIN_TEXT, own_key()), 1..40),
    ) {
        let mut desk = Desk::new(80, 24);
        for step in steps {
            desk.step(step);
            desk.equals_a_redraw();
        }
    }
}
