//! `agentd-broker`: judges calls in a process that has nothing but its channel.
//!
//! The thinking is [`Broker::step`]; this file locks the process and carries words to and fro.

mod broker;
mod server_questions;

pub use broker::{Broker, OPEN_CAP};

use ipc::ChannelError;
#[cfg(agentd_hooks)]
use protocol::broker::ToBroker;
use protocol::broker::{BrokerLink, FromBroker};
use protocol::confinement::{Confinement, Enforced, Profile, Tier};
use protocol::error_chain::chain;
use protocol::judgement::Verdict;
use sandbox::{Cage, CageError};
use std::error::Error;
use std::process::ExitCode;

/// The exit code for a cage that cannot be made, as everywhere in agentd.
const NO_CAGE: u8 = 11;

/// The program.
pub fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            // Standard error is the only output left: the channel itself may have failed.
            eprintln!("agentd-broker: {}", chain(&*error));
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode, Box<dyn Error>> {
    sandbox::harden()
        .map_err(|error| format!("this process cannot be hardened: {}", chain(&error)))?;
    ipc::step!("broker: up");
    let caged = enter_cage();
    let (mut messages, outbox) = ipc::worker::<BrokerLink>()?;
    let log = outbox.clone();
    ipc::log::start("broker", move |line| drop(log.send(&FromBroker::Log(line))));
    let enforced = match caged {
        Ok(enforced) => enforced,
        Err(error) => {
            tracing::error!("the broker cannot be confined, so it judges nothing: {error}");
            return Ok(ExitCode::from(NO_CAGE));
        }
    };
    let (profile, landlock) = (&enforced.profile, enforced.landlock_abi);
    match enforced.tier {
        Tier::C => tracing::warn!(%profile, landlock, "runs without a cage"),
        Tier::A | Tier::B => tracing::debug!(%profile, landlock, "confined"),
    }
    outbox.send(&FromBroker::Ready { cage: enforced.tier })?;
    let mut broker = Broker::default();
    loop {
        let about = match messages.recv_about() {
            Ok(about) => about,
            Err(ChannelError::Closed) => return Ok(ExitCode::SUCCESS),
            Err(error) => return Err(error.into()),
        };
        ipc::step!("broker: judge in", if matches!(about.word, ToBroker::Judge(_)));
        for out in broker.step(about.word) {
            ipc::step!("broker: before verdict", if matches!(out, FromBroker::Verdict { .. }));
            note(&out);
            outbox.send_about(about.correlation, &out)?;
        }
    }
}

/// The broker gets no path of the user, so none is named.
fn enter_cage() -> Result<Enforced, CageError> {
    // The rules of many sessions use memory, not files; the supervisor bounds the messages it sends. So there is
    // no cgroup.
    Cage::enter(&sandbox::worker_confinement(Confinement::closed(Profile::Broker, "/", "/")))
}

/// Logs a verdict.
fn note(out: &FromBroker) {
    match out {
        FromBroker::Verdict { call, verdict } | FromBroker::Ahead { call, verdict } => {
            let verdict = match verdict {
                Verdict::Allow(_) => "allow",
                Verdict::Ask(_) => "ask",
                Verdict::Deny(..) => "deny",
            };
            tracing::info!(%call, verdict, "judged");
        }
        FromBroker::Replied { call, reply, .. } => {
            tracing::info!(%call, action = reply.action().name(), "a server's question is closed");
        }
        FromBroker::Rejected { call, reason } => tracing::info!(%call, reason, "answer refused"),
        FromBroker::Ready { .. } | FromBroker::Pong(_) | FromBroker::Log(_) => {}
    }
}
