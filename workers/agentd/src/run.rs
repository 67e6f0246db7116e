//! `agentd -p` and `agentd run`: one prompt, one answer. The daemon runs it; if no daemon runs, a
//! private supervisor does.

use crate::answer_schema::AnswerSchema;
use crate::cli::{InputFormat, OutputFormat, RunFlags};
use crate::cli_error::{CliError, chain};
use crate::cli_exit::CliExit;
use crate::context::CliContext;
use crate::daemon;
use crate::fleet_seat;
use crate::last_message::{AnswerView, LastMessageFile};
use crate::open_request::{KeyNeed, open_request};
use crate::prompt;
use crate::query;
use crate::sessions;
use crate::signals::BlockedSignals;
use client::{
    AnswerCheck, ClientError, Colour, Finished, JsonView, PrivateSource, Prompts, RunFailure,
    RunView, StreamJsonView, Task, Terminal, TextView, failure_line, resume_hint,
    sibling_executable,
};
use protocol::client::SessionStart;
use protocol::judgement::Audience;
use protocol::session::OpenTurn;
use protocol::undo_prompt::is_undo;
use std::io::{self, IsTerminal, Write};

/// Runs it and returns its exit code.
pub(crate) fn main(given: Option<&str>, flags: &RunFlags) -> Result<CliExit, CliError> {
    let mut view = AnswerView::around(view(flags.output_format));
    let file = flags.output_last_message.as_deref().map(LastMessageFile::open).transpose();
    let (ran, file) = match file {
        Ok(file) => (one_shot(given, flags, &mut view), file),
        Err(failure) => (Err(failure), None),
    };
    if let Err(failure) = &ran
        && flags.output_format != OutputFormat::Text
    {
        // A program that reads results gets one for this too.
        let line = failure_line(failure.session(), failure.message());
        let _ = io::stdout().write_all(line.as_bytes());
    }
    let saved = match (file, view.last) {
        (Some(file), Some(text)) => file.save(&text),
        (Some(file), None) => {
            // A closed standard error is not an error.
            let _ = writeln!(io::stderr(), "{}", file.unwritten());
            Ok(())
        }
        (None, _) => Ok(()),
    };
    match (ran.map(|finished| CliExit::of_run(&finished)), saved) {
        (Ok(CliExit::Done), saved) => saved.map(|()| CliExit::Done),
        (ran, Ok(())) => ran,
        // The exit code of the run says more.
        (ran, Err(unsaved)) => {
            let _ = writeln!(io::stderr(), "{unsaved}");
            ran
        }
    }
}

fn one_shot(
    given: Option<&str>,
    flags: &RunFlags,
    view: &mut dyn RunView,
) -> Result<Finished, CliError> {
    let prompt = match flags.input_format {
        InputFormat::Text => Some(prompt::read(given)?),
        InputFormat::StreamJson => prompt::none(given).map(|()| None)?,
    };
    let context = CliContext::of_process()?;
    context.writable_state()?;
    let task = task(&context, flags, prompt)?;
    carry_out(&context, task, view)
}

/// Runs a task at the daemon, or at a private supervisor if no daemon runs.
pub(crate) fn carry_out(
    context: &CliContext,
    task: Task,
    view: &mut dyn RunView,
) -> Result<Finished, CliError> {
    let executable = sibling_executable("agentd-supervisor")?;
    let mut daemon = daemon::of(context, &executable)?;
    if daemon.find()?.is_none() {
        return drive(task, view);
    }
    let signals = held_signals()?;
    let signals = match &task.opening.seat {
        // A cluster sends SIGTERM to every process of a host. The turn goes on elsewhere: it is the
        // worker that ends this run.
        Some(_) => signals.without_term(),
        None => signals,
    };
    let ran = client::run(&mut daemon, task, view, |inputs| signals.deliver(inputs));
    ran.map_err(|failed| failure(&failed))
}

fn held_signals() -> Result<BlockedSignals, CliError> {
    BlockedSignals::block()
        .map_err(|error| CliError::internal(format!("cannot block signals: {error}")))
}

/// Starts a private supervisor, runs the task on it, and ends the supervisor in any case.
pub(crate) fn drive(task: Task, view: &mut dyn RunView) -> Result<Finished, CliError> {
    let signals = held_signals()?;
    let executable = sibling_executable("agentd-supervisor")?;
    let mut supervisors = PrivateSource::start(query::launch(&executable))?;
    let ran = client::run(&mut supervisors, task, view, |inputs| signals.deliver(inputs));
    let ended = supervisors.end();
    let finished = ran.map_err(|failed| failure(&failed))?;
    ended.map_err(|error| {
        CliError::internal(format!("cannot determine how agentd-supervisor ended: {error}"))
    })?;
    Ok(finished)
}

pub(crate) fn failure(failed: &RunFailure) -> CliError {
    let RunFailure { session, error } = failed;
    let exit = CliExit::of_error(error);
    let message = chain(error);
    let failure = match error {
        ClientError::Failed { kind, message: _ } => query::failed(*kind, message),
        ClientError::Lost(_) | ClientError::LostAgain { .. } | ClientError::NoSupervisor(_) => {
            let message = match session {
                Some(session) => format!("{message}; {}", resume_hint(session)),
                None => message,
            };
            CliError::internal(message).hint("`agentd logs` shows how the supervisors ended")
        }
        ClientError::Stopped(_) => CliError::user(message),
    };
    failure.exit(exit).of_session(session.clone())
}

fn view(format: OutputFormat) -> Box<dyn RunView> {
    match format {
        OutputFormat::Text => {
            let is = |terminal| if terminal { Terminal::Yes } else { Terminal::No };
            let variable = |name: &str| std::env::var(name).ok();
            let colour = Colour::decide(is(io::stderr().is_terminal()), variable);
            Box::new(TextView::new(colour, is(io::stdout().is_terminal())))
        }
        OutputFormat::Json => Box::new(JsonView),
        OutputFormat::StreamJson => Box::new(StreamJsonView),
    }
}

/// The task, from flags, environment and configuration.
fn task(context: &CliContext, flags: &RunFlags, prompt: Option<String>) -> Result<Task, CliError> {
    let form = flags.json_schema.as_deref().map(AnswerSchema::read).transpose()?;
    let form = form.map(|schema| Box::new(schema) as Box<dyn AnswerCheck>);
    let start = start(context, flags)?;
    let need = match prompt.as_deref().is_some_and(is_undo) {
        true => KeyNeed::WhereSet,
        false => KeyNeed::Always,
    };
    let seat = flags.fleet_seat.as_deref().map(fleet_seat::read).transpose()?;
    let start = seat.as_ref().map_or(start, |seat| SessionStart::Seat { session: seat.session() });
    let audience = seat.as_ref().map_or(Audience::NonInteractive, fleet_seat::SeatFile::audience);
    let (mut opening, papers) = open_request(context, &flags.session, start, audience, need)?;
    opening.seat = seat.map(|seat| Box::new(seat.into_seat()));
    let (prompt, more) = match prompt {
        Some(prompt) => (prompt, Prompts::One),
        None => prompt::first_of_stream()?,
    };
    Ok(Task { opening, papers, prompt, more, form, time_limit: flags.timeout })
}

/// A new session, or which earlier one.
fn start(context: &CliContext, flags: &RunFlags) -> Result<SessionStart, CliError> {
    let earlier = match (&flags.resume, flags.continue_newest) {
        (Some(id), _) => Some(sessions::named(context, id)?),
        (None, true) => Some(sessions::newest_here(context, &flags.session)?),
        (None, false) => None,
    };
    Ok(match (earlier, flags.fork) {
        (Some(of), true) => SessionStart::Fork { of, at: None },
        (Some(session), false) => SessionStart::Resume { session, open_turn: OpenTurn::Waits },
        (None, _) => SessionStart::New,
    })
}
