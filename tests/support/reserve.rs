//! A session with a runner in reserve, whose model answers when the test says so.
#![allow(dead_code, clippy::unwrap_used)]

use super::anthropic::{Answer, Server, call, text};
use super::daemon::Wire;
use super::{Daemon, Desk, processes, run, until};
use protocol::client::{ClientEvent, FromClient, SettingChange};
use protocol::ids::SessionId;
use protocol::judgement::PermissionMode;
use serde_json::{Value, json};
use std::fs;
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

const ROW: &str = "agentd-tool (reserve)";

/// A session whose model answers when the test says so.
pub struct Scene<'a> {
    desk: &'a Desk,
    _daemon: Daemon<'a>,
    pub server: Server,
    think: Sender<()>,
    wire: Wire,
    pub session: SessionId,
}

impl<'a> Scene<'a> {
    /// Each answer of the model but the last is this command. A prompt has been sent.
    pub fn new(desk: &'a Desk, settings: &str, commands: &[&str]) -> Self {
        let config = desk.home().join(".config/agentd");
        fs::create_dir_all(&config).unwrap();
        fs::write(config.join("config.toml"), format!("[daemon]\n{settings}")).unwrap();
        let daemon = desk.daemon();
        let (think, thought) = mpsc::channel();
        let commands: Vec<String> = commands.iter().map(|&command| command.to_owned()).collect();
        let server = Server::answering(move |number, _| {
            let _ = thought.recv_timeout(Duration::from_secs(30));
            match commands.get(number - 1) {
                Some(command) => {
                    let input = json!({ "command": command }).to_string();
                    Answer::says([
                        text("I will."),
                        call(&format!("toolu_{number}"), "bash", &input),
                    ])
                }
                None => Answer::text("Done."),
            }
        });
        let mut wire = Wire::to(&desk.door());
        let mut opening = desk.opening(&server);
        opening.mode = Some(PermissionMode::Auto);
        let session = wire.open(&opening);
        wire.prompt(&session, "do it");
        Self { desk, _daemon: daemon, server, think, wire, session }
    }

    /// The process of the reserve.
    pub fn reserve(&self) -> Option<u32> {
        let ran = run(self.desk.agentd(&["ps", "--json"]));
        let rows = ran.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let row = rows.into_iter().find(|row| row["worker"] == ROW)?;
        Some(u32::try_from(row["pid"].as_u64().unwrap()).unwrap())
    }

    /// Waits until the runner in reserve rests: its process sleeps in its cage.
    pub fn resting(&self) -> u32 {
        let mut found = None;
        until("a runner in reserve", || {
            found = self.reserve();
            found.is_some()
        });
        let pid = found.unwrap();
        let runners = self.desk.state().join("sessions").join(&self.session.0).join("runners");
        until("its cage stands", || {
            let list = fs::read_to_string(&runners).unwrap_or_default();
            let own = |line: &&str| line.starts_with(&format!("{pid} "));
            list.lines().skip_while(|line| !own(line)).count() > 1
        });
        // From the keeper's record to `Resting` nothing but messages is left.
        std::thread::sleep(Duration::from_millis(100));
        pid
    }

    /// Lets the model answer once.
    pub fn answer(&self) {
        self.think.send(()).unwrap();
    }

    pub fn call_ends(&mut self) {
        self.wire.event("the call's end", |event| {
            matches!(event, ClientEvent::CallEnded { .. }).then_some(())
        });
    }

    /// Lets the model end the turn.
    pub fn end(&mut self) {
        self.answer();
        self.wire.turn_ends();
    }

    /// The processes that ran the calls, by the audit log.
    pub fn runners(&self) -> Vec<u32> {
        let ended =
            self.desk.audit().into_iter().filter_map(|record| record["runner_pid"].as_u64());
        ended.map(|pid| u32::try_from(pid).unwrap()).collect()
    }

    pub fn change(&mut self, change: SettingChange) {
        let session = self.session.clone();
        self.wire.say(FromClient::Change { session, change });
        self.wire.event("the changed setting", |event| {
            matches!(event, ClientEvent::Changed { .. }).then_some(())
        });
    }
}

pub fn is_alive(pid: u32) -> bool {
    processes().iter().any(|process| process.pid == pid)
}
