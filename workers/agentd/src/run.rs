//! `agentd -p` and `agentd run`: one prompt, one answer, by the daemon where it runs and else by a
//! supervisor of its own.

use crate::cli::{Format, InputFormat, RunFlags};
use crate::daemon;
use crate::exit::Exit;
use crate::failure::{Failure, chain};
use crate::opening::{KeyNeed, opening};
use crate::place::{KEY_VARIABLES, Place};
use crate::prompt;
use crate::sessions;
use crate::signals::HeldSignals;
use client::{
    Colour, Finished, JsonView, Launch, OwnSupervisors, Prompts, RunError, RunFailure,
    StreamJsonView, Task, Terminal, TextView, View, beside_self, failure_line, resume_hint,
};
use protocol::client::{FailedKind, Start};
use protocol::judgement::Audience;
use protocol::session::OpenTurn;
use std::io::{self, IsTerminal, Write};

/// Runs it, and says how it ended.
pub(crate) fn main(given: Option<&str>, flags: &RunFlags) -> Result<Exit, Failure> {
    match one_shot(given, flags) {
        Ok(finished) => Ok(Exit::of_run(&finished)),
        Err(failure) => {
            // A program that reads results gets one for this too.
            if flags.output_format != Format::Text {
                let line = failure_line(failure.session(), failure.message());
                let _ = io::stdout().write_all(line.as_bytes());
            }
            Err(failure)
        }
    }
}

fn one_shot(given: Option<&str>, flags: &RunFlags) -> Result<Finished, Failure> {
    let prompt = match flags.input_format {
        InputFormat::Text => Some(prompt::read(given)?),
        InputFormat::StreamJson => prompt::none(given).map(|()| None)?,
    };
    let place = Place::of_process()?;
    place.writable_state()?;
    let task = task(&place, flags, prompt)?;
    let mut view = view(flags.output_format);
    let executable = beside_self("agentd-supervisor")?;
    let mut daemon = daemon::of(&place, &executable)?;
    if daemon.find()?.is_some() {
        let signals = held_signals()?;
        let ran = client::run(&mut daemon, task, view.as_mut(), |inputs| signals.deliver(inputs));
        return ran.map_err(|failed| failure(&failed));
    }
    drive(task, view.as_mut())
}

fn held_signals() -> Result<HeldSignals, Failure> {
    HeldSignals::hold()
        .map_err(|error| Failure::internal(format!("cannot hold signals back: {error}")))
}

/// Brings a supervisor up, runs the task on it, and takes it down again whatever came of it.
pub(crate) fn drive(task: Task, view: &mut dyn View) -> Result<Finished, Failure> {
    let signals = held_signals()?;
    let executable = beside_self("agentd-supervisor")?;
    let launch = Launch { executable: &executable, without: KEY_VARIABLES, with: &[] };
    let mut supervisors = OwnSupervisors::start(launch)?;
    let ran = client::run(&mut supervisors, task, view, |inputs| signals.deliver(inputs));
    let ended = supervisors.end();
    let finished = ran.map_err(|failed| failure(&failed))?;
    ended.map_err(|error| {
        Failure::internal(format!("cannot tell how agentd-supervisor ended: {error}"))
    })?;
    Ok(finished)
}

pub(crate) fn failure(failed: &RunFailure) -> Failure {
    let RunFailure { session, error } = failed;
    let exit = Exit::of_error(error);
    let message = chain(error);
    let failure = match error {
        RunError::Failed { kind, message: _ } => match kind {
            FailedKind::Configuration | FailedKind::SandboxUnavailable => Failure::config(message),
            FailedKind::Usage
            | FailedKind::NotFound
            | FailedKind::Held
            | FailedKind::Disk
            | FailedKind::Ending => Failure::user(message),
            FailedKind::Internal => Failure::internal(message),
        },
        RunError::Lost(_) | RunError::LostAgain { .. } | RunError::NoSupervisor(_) => {
            let message = match session {
                Some(session) => format!("{message}; {}", resume_hint(session)),
                None => message,
            };
            Failure::internal(message).hint("`agentd logs` says how the supervisors ended")
        }
        RunError::Stopped(_) => Failure::user(message),
    };
    failure.exit(exit).of_session(session.clone())
}

fn view(format: Format) -> Box<dyn View> {
    match format {
        Format::Text => {
            let is = |terminal| if terminal { Terminal::Yes } else { Terminal::No };
            let variable = |name: &str| std::env::var(name).ok();
            let colour = Colour::decide(is(io::stderr().is_terminal()), variable);
            Box::new(TextView::new(colour, is(io::stdout().is_terminal())))
        }
        Format::Json => Box::new(JsonView),
        Format::StreamJson => Box::new(StreamJsonView),
    }
}

/// What the flags, the environment and the configuration add up to.
fn task(place: &Place, flags: &RunFlags, prompt: Option<String>) -> Result<Task, Failure> {
    let start = start(place, flags)?;
    let (opening, papers) =
        opening(place, &flags.session, start, Audience::Nobody, KeyNeed::Always)?;
    let (prompt, more) = match prompt {
        Some(prompt) => (prompt, Prompts::One),
        None => prompt::first_of_stream()?,
    };
    Ok(Task { opening, papers, prompt, more, time_limit: flags.timeout })
}

/// A new session, or which earlier one.
fn start(place: &Place, flags: &RunFlags) -> Result<Start, Failure> {
    let earlier = match (&flags.resume, flags.go_on) {
        (Some(id), _) => Some(sessions::named(place, id)?),
        (None, true) => Some(sessions::newest_here(place, &flags.session)?),
        (None, false) => None,
    };
    Ok(match (earlier, flags.fork) {
        (Some(of), true) => Start::Fork { of, at: None },
        (Some(session), false) => Start::Resume { session, open_turn: OpenTurn::Waits },
        (None, _) => Start::New,
    })
}
