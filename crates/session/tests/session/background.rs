//! What a conversation tells the model of commands in the background.

use super::talk::{Talk, call_id, done, setup};
use protocol::call::{Outcome, ToolResult};
use protocol::content::{ContentBlock, Message};
use protocol::session::{OpenTurn, SessionEvent, ToSession};

fn ended(number: u32) -> ToSession {
    let (call, tool) = (call_id(number), "bash".to_owned());
    ToSession::BackgroundEnded { call, tool, result: done("up\nexit code: 0") }
}

fn texts(message: &Message) -> Vec<&str> {
    let blocks = message.blocks.iter();
    blocks
        .filter_map(|block| match block {
            ContentBlock::Text { text } => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

#[test]
fn an_end_between_turns_is_told_once_before_the_next_prompt() {
    let mut talk = Talk::ready(setup());
    talk.tell(ended(3));
    talk.prompt("go on");
    let news = "[Call 3 (bash), which ran in the background, has ended: done]\nup\nexit code: 0\n\
                [end of call 3]";
    let messages = talk.request().messages.clone();
    assert_eq!(texts(messages.last().unwrap()), [news, "go on"]);
    talk.end(protocol::content::StopReason::EndTurn);
    talk.prompt("and now");
    let all = format!("{:?}", talk.request().messages);
    assert_eq!(all.matches("which ran in the background").count(), 1, "{all}");
}

#[test]
fn the_whole_answer_of_a_sub_agent_is_told() {
    let mut talk = Talk::ready(setup());
    let long = "x".repeat(9_000);
    for (number, tool) in [(3, "task"), (4, "bash")] {
        let (call, tool) = (call_id(number), tool.to_owned());
        talk.tell(ToSession::BackgroundEnded { call, tool, result: done(&long) });
    }
    talk.prompt("go on");
    let messages = talk.request().messages.clone();
    let news = texts(messages.last().unwrap())[0];
    assert_eq!(news.matches(&long).count(), 1, "{news}");
    assert_eq!(news.matches("characters left out").count(), 1, "the control: a command has a rest");
}

#[test]
fn an_end_during_the_replay_follows_what_the_journal_has() {
    let mut talk = Talk::before_replay(setup());
    talk.tell(ended(3));
    for event in [
        SessionEvent::Prompt { text: "first".to_owned(), expanded: None },
        SessionEvent::TurnEnded { end: protocol::session::TurnEnd::Done },
    ] {
        talk.tell(ToSession::Replay(event));
    }
    talk.tell(ToSession::ReplayDone { then: OpenTurn::Waits, compact: None });
    talk.prompt("second");
    let all = format!("{:?}", talk.request().messages);
    let place = |words: &str| all.find(words).unwrap_or_else(|| panic!("{words}: {all}"));
    assert!(place("first") < place("which ran in the background"), "{all}");
    assert!(place("which ran in the background") < place("second"), "{all}");
}

#[test]
fn of_a_command_that_was_cut_short_it_is_said_that_it_runs_no_more() {
    for (tool, outcome, is_said) in [
        ("bash", Outcome::Interrupted, true),
        ("bash", Outcome::Done, false),
        ("task", Outcome::Interrupted, false),
    ] {
        let mut talk = Talk::ready(setup());
        let result = ToolResult { outcome, ..done("up") };
        let (call, tool) = (call_id(3), tool.to_owned());
        talk.tell(ToSession::BackgroundEnded { call, tool, result });
        talk.prompt("go on");
        let all = format!("{:?}", talk.request().messages);
        assert_eq!(all.contains("does not run any more"), is_said, "{all}");
    }
}
