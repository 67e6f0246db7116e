//! User input survives while processes of the session are killed at random: a denial, an answer to
//! a question, a queued prompt and a stopped turn. The journal reads as without a kill.
//! `WISHES_SEED` repeats the choices, not the moments.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::daemon::Wire;
use crate::support::dice::Dice;
use crate::support::{Desk, child_of, until};
use journal::{ContentBlock, JournalRecord};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use protocol::client::{ClientEvent, FromClient, ToClient};
use protocol::ids::SessionId;
use protocol::judgement;
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;

const WORKERS: [&str; 4] = ["agentd-session", "agentd-provider", "agentd-broker", "agentd-store"];

/// Answers by the content of the conversation, so that a repeated request gets the same answer.
fn answer(body: &Value) -> Answer {
    let messages = body["messages"].to_string();
    let prompts = ["refused-1", "asked-2", "slow-3", "waiting-4", "stopped-5", "last-6"];
    let at = |prompt: &&str| messages.rfind(*prompt);
    let newest = prompts.into_iter().rev().find(|prompt| at(prompt).is_some()).unwrap();
    let has_result = messages[at(&newest).unwrap()..].contains("tool_result");
    let bash = |command: &str| {
        let input = json!({ "command": command }).to_string();
        Answer::says([call(&format!("toolu_{newest}"), "bash", &input)])
    };
    match (newest, has_result) {
        ("refused-1", false) => bash("touch refused"),
        ("asked-2", false) => bash("echo x >> effects"),
        ("slow-3", _) => {
            Answer::text("Said slow-3.").stalled_after(300, Duration::from_millis(700))
        }
        ("stopped-5", _) => Answer::text("never whole").stalled_after(100, Duration::from_secs(60)),
        _ => Answer::text(&format!("Said {newest}.")),
    }
}

/// Runs a session of six prompts and returns a summary of its journal. One process is killed in
/// each turn, if any.
fn told(mut dice: Option<Dice>) -> (Vec<String>, usize) {
    let desk = Desk::new();
    fs::create_dir_all(desk.home().join(".config/agentd")).unwrap();
    let config = "[permissions]\ndeny = [\"bash:touch *\"]\n";
    fs::write(desk.home().join(".config/agentd/config.toml"), config).unwrap();
    let server = Server::answering(|_, body| answer(body));
    let daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&desk.opening(&server));
    let mut kills = 0;
    for prompt in ["refused-1", "asked-2", "slow-3", "stopped-5", "last-6"] {
        let before = server.requests().len();
        wire.prompt(&session, prompt);
        if let Some(dice) = &mut dice {
            std::thread::sleep(Duration::from_millis(dice.below(120) as u64));
            let worker = WORKERS[dice.below(WORKERS.len())];
            let pid = child_of(daemon.pid, worker).unwrap();
            kills += usize::from(kill(Pid::from_raw(pid as i32), Signal::SIGKILL).is_ok());
        }
        match prompt {
            "slow-3" => {
                wire.prompt(&session, "waiting-4");
                ends(&mut wire);
            }
            "stopped-5" => {
                until("the model is asked", || server.requests().len() > before);
                wire.say(FromClient::Interrupt { session: session.clone() });
            }
            _ => {}
        }
        ends(&mut wire);
    }
    assert_eq!(desk.read("effects"), "x\n");
    assert!(!desk.project().join("refused").exists());
    assert_eq!(crate::support::run(desk.agentd(&["audit", "verify"])).code, 0);
    (transcript(&desk, &session), kills)
}

/// Waits for the end of a turn, and answers each question on the way, also a repeated one.
fn ends(wire: &mut Wire) {
    loop {
        let ToClient::Event { event, .. } = wire.hear() else { continue };
        match event {
            ClientEvent::Asked { question } => {
                let (call, digest) = (question.call, question.digest);
                wire.say(FromClient::Answer {
                    call,
                    digest,
                    answer: judgement::PersonAnswer::Once,
                });
            }
            ClientEvent::TurnEnded { .. } => return,
            _ => {}
        }
    }
}

fn transcript(desk: &Desk, session: &SessionId) -> Vec<String> {
    let entries = journal::read(&desk.state().join("sessions").join(&session.0)).unwrap();
    let told = |record: JournalRecord| match record {
        JournalRecord::Prompt { text, .. } => Some(format!("prompt {text}")),
        JournalRecord::Answer { blocks, .. } => {
            let texts = blocks.into_iter().filter_map(|block| match block {
                ContentBlock::Text { text } => Some(text),
                _ => None,
            });
            Some(format!("answer {}", texts.collect::<String>()))
        }
        JournalRecord::Result { outcome, text, .. } => Some(format!("result {outcome:?} {text}")),
        JournalRecord::Interrupted { cause, .. } => Some(format!("interrupted {cause}")),
        JournalRecord::TurnEnded { end } => Some(format!("end {end:?}")),
        _ => None,
    };
    let own = desk.outside().display().to_string();
    let lines = entries.filter_map(|entry| told(entry.unwrap().record));
    lines.map(|line| line.replace(&own, "")).collect()
}

#[test]
fn what_people_wish_outlives_the_processes_that_carry_it_out() {
    disturbed(3);
}

#[test]
#[ignore = "takes some minutes"]
fn a_hundred_sessions() {
    disturbed(100);
}

fn disturbed(sessions: usize) {
    let mut dice = Dice::seeded("WISHES_SEED");
    let (undisturbed, _) = told(None);
    assert!(undisturbed.iter().any(|line| line.starts_with("result Refused")), "{undisturbed:#?}");
    assert!(undisturbed.iter().any(|line| line == "end Interrupted"), "{undisturbed:#?}");
    let mut kills = 0;
    for _ in 0..sessions {
        let (disturbed, killed) = told(Some(Dice::of(dice.roll())));
        assert_eq!(disturbed, undisturbed, "{dice}");
        kills += killed;
    }
    assert!(kills > 3 * sessions, "the positive control: {kills}");
    println!("sessions {sessions}, kills {kills}, all as without");
}
