//! Words for a running turn, and a death at each step of their way into it: they join it once.

use super::hooks::Hooks;
use crate::support::anthropic::{Answer, Server, call};
use crate::support::daemon::Wire;
use crate::support::{Desk, send, until};
use journal::JournalRecord;
use nix::sys::signal::Signal;
use protocol::client::{BacklogFrom, ClientRights, FromClient, WhileBusy};
use protocol::ids::SessionId;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);
const WORDS: &str = "only three";

/// Each step, and the executable that dies while another is held there.
const CELLS: &[(&str, &str)] = &[
    ("supervisor: words wait", "agentd-session"),
    ("supervisor: words wait", "agentd-supervisor"),
    ("session: before words join", "agentd-session"),
    ("session: before words join", "agentd-supervisor"),
    ("session: before words join", "agentd-provider"),
    ("session: words join", "agentd-session"),
    ("session: words join", "agentd-supervisor"),
    ("session: words join", "agentd-provider"),
];

#[test]
#[cfg_attr(not(agentd_hooks), ignore = "needs executables with hooks; see the file's head")]
fn words_join_a_turn_once_whoever_dies_on_their_way() {
    for (step, target) in CELLS {
        words_join(step, target);
    }
}

fn answer(body: &Value) -> Answer {
    let waits = r#"{"command":"touch begun; until test -e go; do sleep 0.05; done"}"#;
    match body["messages"].to_string().contains("tool_result") {
        true => Answer::text("Done."),
        false => Answer::says([call("toolu_1", "bash", waits)]),
    }
}

/// The only entry of a directory.
fn only(directory: &Path) -> PathBuf {
    fs::read_dir(directory).unwrap().next().unwrap().unwrap().path()
}

fn words_join(step: &str, target: &str) {
    let desk = Desk::new();
    let server = Server::answering(|_, body| answer(body));
    let hooks = Hooks::listen(&desk.outside().join("hooks"), step, 1);
    let arguments = ["-p", "do it", "--permission-mode", "auto", "--timeout", "60"];
    let mut agentd = desk.with_server(&server, &arguments);
    agentd.env("AGENTD_HOOKS", desk.outside().join("hooks"));
    let agentd = agentd.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("the call runs", || desk.project().join("begun").exists());
    let directory = only(&desk.state().join("sessions"));
    let session = SessionId(directory.file_name().unwrap().to_str().unwrap().to_owned());
    let mut wire = Wire::to(&only(&desk.door()));
    wire.attach(&session, BacklogFrom::Newest(1), ClientRights::Full);
    let (text, busy) = (WORDS.to_owned(), WhileBusy::Steer);
    wire.say(FromClient::Prompt { session, text, form: None, busy });
    if step.starts_with("session") {
        wire.until("they wait", |word| format!("{word:?}").contains(WORDS).then_some(()));
        desk.write("go", "");
    }
    let cell = format!("{step}, {target}");
    hooks.held(SOON).unwrap_or_else(|| panic!("{cell}: the step was not reached"));
    send(hooks.newest(target, SOON).unwrap(), Signal::SIGKILL);
    hooks.release();
    desk.write("go", "");
    let ended = agentd.wait_with_output().unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert_eq!((ended.status.code(), &*out), (Some(0), "Done.\n"), "{cell}: {err}");
    let last = server.requests().last().unwrap().body["messages"].to_string();
    assert_eq!(last.matches(WORDS).count(), 1, "{cell}: {last}");
    let records = journal::read(&directory).unwrap().map(|entry| entry.unwrap().record);
    let joined = records.filter(|it| matches!(it, JournalRecord::Joined { text } if text == WORDS));
    assert_eq!(joined.count(), 1, "{cell}");
    println!("passed  {cell}");
}
