//! A conversation that lies about who asked for a call. Its process has no rights, and its words are checked.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::Server;
use crate::support::daemon::Wire;
use crate::support::{Desk, place, replace};
use protocol::call::{Call, CallOrigin};
use protocol::client::ClientEvent;
use protocol::ids::{CallId, SessionId};
use protocol::judgement::PermissionMode;
use protocol::session::{FromSession, SessionEvent, SessionLink, ToSession, TurnEnd};

/// Who is on record for a call of `bash`, who is said to have asked when it is to run, and its code then.
fn lies() -> [(&'static str, CallOrigin, CallOrigin, Option<&'static str>); 5] {
    let model = || CallOrigin::model("toolu_1");
    let not_run = Some("not_run");
    [
        ("the-truth", model(), model(), None),
        ("another-tool", CallOrigin::PinnedRead, CallOrigin::PinnedRead, not_run),
        ("another-asker", CallOrigin::PromptPart, model(), not_run),
        ("hidden-result", model(), CallOrigin::PinnedRead, not_run),
        ("no-id", CallOrigin::model(""), CallOrigin::model(""), not_run),
    ]
}

/// The conversation of the test below. It answers each prompt with one call.
#[test]
#[ignore = "speaks on the channel of a conversation, as its parent has it"]
fn lying_conversation() {
    let Ok(lie) = std::env::var("LIE") else { return };
    let (_, proposed, run, _) = lies().into_iter().find(|(name, ..)| *name == lie).unwrap();
    let (mut words, say) = ipc::worker::<SessionLink>().unwrap();
    let mut session = SessionId(String::new());
    loop {
        let Ok(word) = words.recv() else { return };
        let said = match word {
            ToSession::Begin(setup) => {
                session = setup.id;
                continue;
            }
            ToSession::ReplayDone { .. } => vec![FromSession::Ready],
            ToSession::Ping(number) => vec![FromSession::Pong(number)],
            ToSession::Prompt { text, expanded } => {
                let id = CallId { session: session.clone(), number: 1 };
                let (tool, input) = ("bash".to_owned(), r#"{"command":"touch ran"}"#.to_owned());
                let call = |origin: &CallOrigin| {
                    let (origin, id) = (origin.clone(), id.clone());
                    Call { id, origin, tool: tool.clone(), input: input.clone() }
                };
                let (named, call) = (call(&proposed), call(&run));
                vec![
                    FromSession::Commit(SessionEvent::Prompt { text, expanded }),
                    FromSession::Commit(SessionEvent::Called { call: named }),
                    FromSession::Run { call, note: None, asked: None },
                ]
            }
            ToSession::CallEnded { .. } => {
                vec![FromSession::Commit(SessionEvent::TurnEnded { end: TurnEnd::Done })]
            }
            _ => continue,
        };
        said.iter().for_each(|word| say.send(word).unwrap());
    }
}

#[test]
fn a_call_runs_only_for_the_asker_on_record_whose_tool_it_is() {
    for (lie, proposed, _, code) in lies() {
        let desk = Desk::new();
        let place = place(&desk);
        let own = std::env::current_exe().unwrap();
        let script = format!(
            "LIE={lie} exec '{}' --exact lies::lying_conversation --ignored --nocapture >/dev/null",
            own.display()
        );
        replace(&place, "agentd-session", &script);
        let server = Server::scripted([]);
        let _daemon = desk.daemon_of(&place);
        let mut wire = Wire::to(&desk.door());
        let mut opening = desk.opening(&server);
        opening.mode = Some(PermissionMode::Auto);
        let session = wire.open(&opening);
        wire.prompt(&session, "go");
        let result = wire.event("the end of the call", |event| match event {
            ClientEvent::CallEnded { result, .. } => Some(result.clone()),
            _ => None,
        });
        assert_eq!(result.code.as_deref(), code, "{lie}: {result:?}");
        assert_eq!(desk.project().join("ran").exists(), code.is_none(), "{lie}");
        let journal = desk.state().join("sessions").join(&session.0).join("journal.jsonl");
        let records = std::fs::read_to_string(journal).unwrap();
        assert_eq!(records.contains("\"START\""), code.is_none(), "{lie}: {records}");
        // The result is for the asker on record.
        let use_id = proposed.use_id().unwrap_or_default();
        let result = records.lines().find(|line| line.contains(r#""kind":"RESULT""#)).unwrap();
        assert!(result.contains(&format!(r#""use_id":"{use_id}""#)), "{lie}: {records}");
    }
}
