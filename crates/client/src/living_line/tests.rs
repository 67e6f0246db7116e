//! The living line at given times, and its fit into a terminal.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::screen::AttachOptions;
use protocol::call::{Call, CallOrigin};
use protocol::client::{ModelFacts, OtherClients, PromptUse};
use protocol::confinement::{FilePath, Network};
use protocol::content::{ContentBlock, Usage};
use protocol::ids::SessionId;
use protocol::judgement::{Ask, PermissionMode, Question};
use protocol::session::TurnEnd;

/// A screen, its clock, and the moment.
struct Desk {
    screen: Screen,
    clock: TurnClock,
    now: Instant,
}

fn session() -> SessionId {
    SessionId("0123456789ab".to_owned())
}

impl Desk {
    fn new() -> Self {
        let options = AttachOptions {
            rights: ClientRights::Full,
            others: OtherClients::Stay,
            prompt: None,
            leader: "Ctrl-\\".to_owned(),
            keys: crate::LineKeys::Emacs,
            busy: protocol::client::WhileBusy::Queue,
            first_words: None,
        };
        let screen = Screen::new(options);
        let mut desk = Self { screen, clock: TurnClock::default(), now: Instant::now() };
        desk.hears(ToClient::Opened {
            session: session(),
            name: String::new(),
            model: "model-1".to_owned(),
            facts: ModelFacts::default(),
            tools: Vec::new(),
            mode: PermissionMode::Ask,
            network: Network::Off,
            hosts: Vec::new(),
            sandbox: String::new(),
            last_seq: 0,
            warnings: Vec::new(),
            temp: FilePath::from(std::path::PathBuf::from("/t/tmp")),
        });
        desk.hears(ToClient::Attached { session: session(), name: "terminal 1".to_owned() });
        desk
    }

    fn hears(&mut self, message: ToClient) {
        self.screen.update(ScreenInput::Message(message));
    }

    fn event(&mut self, event: ClientEvent) {
        self.hears(ToClient::Event { session: session(), seq: 1, event });
    }

    fn delta(&mut self, part: AnswerPart, text: &str) {
        self.event(ClientEvent::Delta { part, text: text.to_owned() });
    }

    /// The line after so many more milliseconds.
    fn line(&mut self, ms: u64) -> String {
        self.now += Duration::from_millis(ms);
        self.clock.line(&self.screen, 100, self.now).map(|line| line.text()).unwrap_or_default()
    }
}

fn bash(number: u32) -> ClientEvent {
    let id = CallId { session: session(), number };
    let input = r#"{"command":"make test"}"#.to_owned();
    let call = Call { id, origin: CallOrigin::model("u"), tool: "bash".to_owned(), input };
    ClientEvent::Proposed { call }
}

#[test]
fn each_phase_has_its_words_and_its_own_time() {
    let mut desk = Desk::new();
    assert_eq!(desk.line(0), "");
    assert_eq!(desk.clock.until_next(desk.now), None, "an idle session wakes no one");
    desk.event(ClientEvent::Prompt { text: "go".to_owned(), of: PromptUse::Prompt });
    assert_eq!(desk.line(0), "● waits for the model · 0 s · Esc stops");
    assert_eq!(desk.line(2000), "● waits for the model · 2 s · Esc stops");
    desk.delta(AnswerPart::Thinking, &format!("{}leaves 2", "so it ".repeat(800)));
    let line = desk.line(500);
    assert!(line.starts_with("● thinks · 0 s · ~1.2k tokens · …"), "{line}");
    assert!(line.ends_with("so it leaves 2 · Esc stops"), "{line}");
    desk.delta(AnswerPart::Text, "It is.\n");
    assert_eq!(desk.line(0), "● writes · 0 s · ~1 tokens · Esc stops");
    desk.delta(AnswerPart::Tool, "write");
    desk.delta(AnswerPart::Arguments, r#"{"text":"a\nb\n"#);
    assert_eq!(desk.line(3000), "● writes a call of write · 0 s · 2 lines · Esc stops");
    desk.event(ClientEvent::Answer { blocks: Vec::<ContentBlock>::new(), usage: Usage::default() });
    desk.event(bash(1));
    assert_eq!(desk.line(0), "● make test (waits to start) · 0 s · Esc stops");
    let call = CallId { session: session(), number: 1 };
    let text = "one\ntwo\n".to_owned();
    desk.event(ClientEvent::Output { call, text, begun: None });
    assert_eq!(desk.line(1000), "● make test (waits to start) · 1 s · 2 lines · two · Esc stops");
    desk.event(bash(2));
    assert_eq!(desk.line(0), "● 2 calls run · 0 s · Esc stops");
    desk.event(ClientEvent::TurnEnded { end: TurnEnd::Done });
    assert_eq!(desk.line(0), "");
    assert_eq!(desk.clock.until_next(desk.now), None);
}

#[test]
fn a_question_stops_nothing_and_names_no_key_of_its_own() {
    let mut desk = Desk::new();
    desk.event(ClientEvent::Prompt { text: "go".to_owned(), of: PromptUse::Prompt });
    desk.event(bash(1));
    desk.event(ClientEvent::Asked {
        question: Question {
            call: CallId { session: session(), number: 1 },
            tool: "bash".to_owned(),
            input: "{}".to_owned(),
            preview: String::new(),
            confinement: String::new(),
            reason: String::new(),
            widens: Vec::new(),
            ask: Ask::Call { rules: Vec::new(), modes: Vec::new() },
            deadline: 0,
            digest: String::new(),
        },
    });
    desk.line(0);
    assert_eq!(desk.line(61_000), "? waits for your answer");
    assert_eq!(desk.clock.until_next(desk.now), None, "a question wakes no one");
}

#[test]
fn the_line_changes_once_a_second_however_many_pieces_come() {
    let mut desk = Desk::new();
    desk.event(ClientEvent::Prompt { text: "go".to_owned(), of: PromptUse::Prompt });
    desk.delta(AnswerPart::Thinking, "a ");
    let mut lines = vec![desk.line(0)];
    for _ in 0..40 {
        desk.delta(AnswerPart::Thinking, "word ");
        let line = desk.line(49);
        if lines.last() != Some(&line) {
            lines.push(line);
        }
    }
    assert_eq!(lines.len(), 2, "{lines:?}");
    let until = desk.clock.until_next(desk.now).unwrap();
    assert!(until <= Duration::from_millis(45), "{until:?}");
}

#[test]
fn a_silent_server_is_reported_and_a_silent_command_is_not() {
    let mut desk = Desk::new();
    desk.event(ClientEvent::Prompt { text: "go".to_owned(), of: PromptUse::Prompt });
    desk.delta(AnswerPart::Text, "It");
    assert!(!desk.line(0).contains("no byte"));
    assert!(!desk.line(19_900).contains("no byte"));
    let line = desk.line(1200);
    assert!(line.contains("writes · 21 s · no byte for 21 s"), "{line}");
    desk.delta(AnswerPart::Text, " is");
    assert!(!desk.line(1000).contains("no byte"));
    desk.event(bash(1));
    desk.line(0);
    assert!(!desk.line(60_000).contains("no byte"));
}

#[test]
fn a_narrow_terminal_keeps_the_phase_and_the_way_to_stop() {
    let parts = || Parts {
        mark: "●",
        phase: "thinks · 14 s".to_owned(),
        facts: vec!["no byte for 20 s".to_owned(), "~1.2k tokens".to_owned()],
        reason: String::new(),
        last: "it leaves a remainder of 2".to_owned(),
        end: " · Esc stops",
    };
    let whole = "● thinks · 14 s · no byte for 20 s · ~1.2k tokens · it leaves a remainder of 2 · Esc stops";
    for (columns, text) in [
        (100, whole),
        (76, "● thinks · 14 s · no byte for 20 s · ~1.2k tokens · …ainder of 2 · Esc stops"),
        (62, "● thinks · 14 s · no byte for 20 s · ~1.2k tokens · Esc stops"),
        (60, "● thinks · 14 s · no byte for 20 s · …inder of 2 · Esc stops"),
        (50, "● thinks · 14 s · no byte for 20 s · Esc stops"),
        (10, "● thinks · 14 s · Esc stops"),
    ] {
        assert_eq!(parts().fit(columns).text(), text, "{columns}");
    }
    let retry = || Parts {
        mark: "↻",
        phase: "retrying 2/10 in 3 s".to_owned(),
        facts: Vec::new(),
        reason: "the server answered 529: Overloaded".to_owned(),
        last: String::new(),
        end: " · Esc stops",
    };
    for (columns, text) in [
        (80, "↻ retrying 2/10 in 3 s · the server answered 529: Overloaded · Esc stops"),
        (60, "↻ retrying 2/10 in 3 s · the server answered 52… · Esc stops"),
        (40, "↻ retrying 2/10 in 3 s · Esc stops"),
    ] {
        assert_eq!(retry().fit(columns).text(), text, "{columns}");
    }
}

#[test]
fn ends_of_texts_and_times() {
    assert_eq!(end_of("日本語", 5), "…本語");
    assert_eq!(end_of("abc", 3), "abc");
    assert_eq!(words(&format!("{} a\n b", "x".repeat(5000))).len(), 1000);
    assert_eq!([119, 120, 7200].map(in_time), ["119 s", "2 min 0 s", "2 h 0 min"]);
}

#[test]
fn a_retry_is_counted_down_on_the_one_line_and_gone_with_the_first_byte() {
    let mut desk = Desk::new();
    desk.event(ClientEvent::Prompt { text: "go".to_owned(), of: PromptUse::Prompt });
    desk.line(0);
    let struck = |attempt, wait_ms| ClientEvent::Struck {
        reason: "the server answered 529: Overloaded".to_owned(),
        next: Some(NextTry { attempt, of: 10, wait_ms }),
    };
    desk.event(struck(2, 2500));
    let why = " · the server answered 529: Overloaded · Esc stops";
    assert_eq!(desk.line(0), format!("↻ retrying 2/10 in 3 s{why}"));
    assert_eq!(desk.line(1000), format!("↻ retrying 2/10 in 2 s{why}"));
    assert_eq!(desk.line(2000), format!("● waits for the model, try 2/10 · 0 s{why}"));
    desk.event(struck(3, 60_000));
    assert_eq!(desk.line(0), format!("↻ retrying 3/10 in 60 s{why}"));
    // The wait was announced: it is no silence of the server.
    assert_eq!(desk.line(30_000), format!("↻ retrying 3/10 in 30 s{why}"));
    assert_eq!(desk.line(40_000), format!("● waits for the model, try 3/10 · 10 s{why}"));
    let silent = desk.line(10_000);
    assert!(silent.contains("try 3/10 · 20 s · no byte for 20 s · the server"), "{silent}");
    desk.delta(AnswerPart::Text, "At last");
    assert_eq!(desk.line(0), "● writes · 0 s · ~1 tokens · Esc stops");
}

#[test]
fn the_end_of_a_turn_has_its_time_only_where_its_beginning_was_seen() {
    let mut desk = Desk::new();
    let prompt = ToClient::Event {
        session: session(),
        seq: 1,
        event: ClientEvent::Prompt { text: "go".to_owned(), of: PromptUse::Prompt },
    };
    let prompt = || ScreenInput::Message(prompt.clone());
    let ended = |desk: &mut Desk| {
        let totals = ScreenItem::TurnTotals(Box::default());
        let ScreenItem::TurnTotals(totals) = desk.clock.timed(totals, desk.now) else {
            panic!("another item")
        };
        totals.in_words()
    };
    desk.clock.note(&prompt(), &desk.screen, desk.now);
    desk.screen.update(prompt());
    desk.now += Duration::from_secs(31);
    // A prompt within the turn begins no other.
    desk.clock.note(&prompt(), &desk.screen, desk.now);
    desk.now += Duration::from_secs(17);
    desk.line(0);
    assert_eq!(ended(&mut desk), "48 s");
    assert_eq!(ended(&mut desk), "");
}
