//! Runs a program in its cage and builds the result for the model. For the tools `bash`, `run`,
//! `powershell` and those of git.

mod capture;
mod command_loop;
mod command_view;
mod environment;
pub(crate) mod git;
mod home_changes;
mod job_control;
pub(crate) mod job_place;
pub(crate) mod live_output;
mod missing_path;
mod missing_program;
mod output_file;
mod package_caches;
pub(crate) mod package_copy;
mod proxy_variables;
mod refusal_lines;
mod result;
pub(crate) mod setup;
mod shared_dir;

use crate::command::capture::HeadTail;
use crate::command::command_loop::{CommandRun, TimeLimit, run_to_end};
use crate::command::command_view::CommandView;
use crate::command::environment::environment;
pub use crate::command::job_control::{InputError, JobControl};
use crate::command::job_place::JobPlace;
use crate::command::live_output::{LiveOffer, LiveOutput, LiveSink};
use crate::command::output_file::REDIRECT;
use crate::command::result::answer;
use crate::command::setup::CommandSetup;
use crate::engine::server::{ServerEngine, ServerLink, ServerPipes, ServerSpeech};
use crate::failure::{FailureCode, ToolFailure};
use crate::refusal_hints;
use crate::tool_context::ToolContext;
use nix::errno::Errno;
use protocol::call::Outcome;
use protocol::hidden::line_for_model as visible;
use protocol::mcp::ServerFault;
use protocol::tool::OutputStream;
use sandbox::{CageError, CageStep, Program, ProgramInput};
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;
use tool_specs::ToolAnswer;
use tool_specs::closed_temp;
use tool_specs::longest::BACKGROUND_MS;
use tool_specs::longest::LONGEST_MS;

/// The kernel takes no longer argument.
pub(crate) const ARGUMENT_BYTES: usize = 128 * 1024 - 1;

/// Most characters of the reason why a server ended.
const SERVER_END: usize = 400;

/// The command to run.
pub(crate) struct CommandSpec {
    /// Name or path, then the arguments.
    pub argv: Vec<String>,
    /// As rules and the record know it.
    pub text: String,
    /// Variables in addition to the standard ones; they take precedence.
    pub env: Vec<(String, String)>,
    /// Variables that begin so are not given.
    pub without: Option<&'static str>,
    /// Longest time. In the foreground no more than ten minutes are given, and the configured time
    /// where it is left out; in the background a day.
    pub timeout_ms: Option<u64>,
    /// Whether the conversation waits for its end.
    pub place: JobPlace,
}

impl CommandSpec {
    /// A server, which runs as long as a command in the background may.
    pub(crate) fn server(argv: Vec<String>, text: String) -> Self {
        let (env, without, timeout_ms) = (Vec::new(), None, None);
        Self { argv, text, env, without, timeout_ms, place: JobPlace::Background }
    }

    /// The client of a server, which has no project.
    pub(crate) fn client(argv: Vec<String>, text: String) -> Self {
        Self { place: JobPlace::Apart, ..Self::server(argv, text) }
    }
}

/// The note about a `timeout_ms` above the longest time.
fn cut_time(wanted: &CommandSpec) -> Option<String> {
    let (most, instead) = match wanted.place {
        JobPlace::Foreground | JobPlace::Fed(_) | JobPlace::Over(_) => {
            (LONGEST_MS, "split longer work into parts, or use background")
        }
        JobPlace::Background | JobPlace::Apart => (BACKGROUND_MS, "start it again after that"),
    };
    let asked = wanted.timeout_ms.filter(|asked| *asked > most)?;
    Some(format!("[timeout_ms {asked} was reduced to {most}, the maximum; {instead}]"))
}

/// Runs a program in the project directory.
///
/// # Errors
/// Where no cage stands around it, where it cannot be executed, or where its end is not known.
pub(crate) fn run(
    wanted: CommandSpec,
    ctx: &mut ToolContext<'_>,
) -> Result<ToolAnswer, ToolFailure> {
    let mut side = take_setup(ctx)?;
    let mut show = std::mem::replace(&mut side.show, Box::new(NoLiveOutput));
    let cut_time = cut_time(&wanted);
    let view = CommandView::of(&side);
    let before = home_changes::list(ctx.scope);
    let name = wanted.argv.first().cloned().unwrap_or_default();
    let side = (side, capture::SPILLED);
    let (text, time, course) = start_and_wait(wanted, side, &mut *show, ctx, None)
        .map_err(|failure| view.explain(failure, &name))?;
    let way_on = output_file::way_on(&course.out, &course.err, ctx);
    let said = course.said().unwrap_or_default();
    let mut answer = answer(text.clone(), (time, &view), (course, None, way_on), ctx);
    let kept = home_changes::line(&before, &home_changes::list(ctx.scope));
    answer.footer.splice(0..0, kept.map(|line| visible(&line).into_owned()));
    answer.footer.splice(0..0, cut_time);
    let is_met = match answer.outcome == (Outcome::Exited { code: 0 }) {
        true => refusal_hints::names_closed_temp(&said, ctx.scope),
        false => {
            let refusals = &ctx.extras.refusals;
            refusal_hints::met_closed_temp([&text, &said], refusals, ctx.scope)
        }
    };
    if view.is_locked && is_met {
        let note = format!("[{}]", closed_temp(&ctx.scope.temp));
        answer.footer.insert(0, note);
    }
    Ok(answer)
}

/// The result of a filter program, whose output is not for a model.
pub(crate) struct FilterRun {
    /// Its standard output; absent if it exceeds the limit.
    pub printed: Option<Vec<u8>>,
    /// Its standard error.
    pub said: String,
    /// The rest, as of any command.
    pub answer: ToolAnswer,
}

/// Runs a program and keeps up to `kept` bytes of its standard output. Clients do not see the
/// output live.
///
/// # Errors
/// As [`run`].
pub(crate) fn filter(
    wanted: CommandSpec,
    kept: usize,
    ctx: &mut ToolContext<'_>,
) -> Result<FilterRun, ToolFailure> {
    let side = take_setup(ctx)?;
    let view = CommandView::of(&side);
    let (text, time, mut course) =
        start_and_wait(wanted, (side, kept), &mut NoLiveOutput, ctx, None)?;
    let printed = std::mem::take(&mut course.out).whole();
    let err = std::mem::take(&mut course.err);
    let said = capture::join(err, HeadTail::default(), REDIRECT).text;
    let course = (course, None, REDIRECT.into());
    Ok(FilterRun { printed, said, answer: answer(text, (time, &view), course, ctx) })
}

/// Runs a server until it ends, or is of no use. Its standard error is the output.
///
/// # Errors
/// As [`run`].
pub(crate) fn serve(
    wanted: CommandSpec,
    (server, start, speech): (&str, Duration, ServerSpeech),
    ctx: &mut ToolContext<'_>,
) -> Result<ToolAnswer, ToolFailure> {
    let engine = ctx.server()?;
    let mut side = take_setup(ctx)?;
    let mut show = std::mem::replace(&mut side.show, Box::new(NoLiveOutput));
    let view = CommandView::of(&side);
    let name = wanted.argv.first().cloned().unwrap_or_default();
    let mut ended = Ok(());
    let server = Server { engine, name: server, start, speech, ended: &mut ended };
    let side = (side, capture::KEPT);
    let (text, time, course) = start_and_wait(wanted, side, &mut *show, ctx, Some(server))
        .map_err(|failure| view.explain(failure, &name))?;
    let fault = ended.as_ref().err().map(|fault| match fault {
        ServerFault::WantsLogIn(_) => FailureCode::LoginRequired,
        ServerFault::Other(_) => FailureCode::Io,
    });
    let answer = answer(text, (time, &view), (course, fault, REDIRECT.into()), ctx);
    Ok(match ended {
        Ok(()) => answer,
        Err(fault) => {
            let why = fault.into_words();
            let last = answer.body.lines().rfind(|line| {
                let line = line.trim();
                !line.is_empty() && line != capture::NOTHING
            });
            let last = last.map(|line| format!("; its last words: {line}")).unwrap_or_default();
            let why: String = visible(&(why + &last)).chars().take(SERVER_END).collect();
            let mut footer = answer.footer;
            footer.insert(0, format!("[{why}]"));
            ToolAnswer { footer, summary: why, ..answer }
        }
    })
}

/// A server that is started.
struct Server<'a> {
    engine: &'a dyn ServerEngine,
    /// Its name in the configuration.
    name: &'a str,
    start: Duration,
    speech: ServerSpeech,
    /// Why it was of no use.
    ended: &'a mut Result<(), ServerFault>,
}

/// Shows nothing.
struct NoLiveOutput;

impl LiveSink for NoLiveOutput {
    fn offer(&mut self, _: OutputStream, _: String) -> LiveOffer {
        LiveOffer::Taken
    }

    fn last(&mut self, _: OutputStream, _: String) {}
}

/// The shell for scripts: the command's `SHELL`, which the supervisor has found startable in the cage.
pub(crate) fn shell(ctx: &ToolContext<'_>) -> String {
    let given = ctx.command.as_ref().map(|side| side.env).unwrap_or_default();
    let shell = given.iter().find(|(name, value)| name == "SHELL" && value.starts_with('/'));
    shell.map_or("/bin/sh", |(_, shell)| shell).to_owned()
}

fn take_setup<'a>(ctx: &mut ToolContext<'a>) -> Result<CommandSetup<'a>, ToolFailure> {
    ctx.command.take().ok_or_else(|| {
        confined("no cage", "a command needs its own sandbox, and this process has none")
    })
}

/// Runs it to its end; returns its text, its time limit and the run.
fn start_and_wait(
    wanted: CommandSpec,
    (side, kept): (CommandSetup<'_>, usize),
    show: &mut dyn LiveSink,
    ctx: &mut ToolContext<'_>,
    server: Option<Server<'_>>,
) -> Result<(String, Duration, CommandRun), ToolFailure> {
    let CommandSpec { argv, text, env, without, timeout_ms, place } = wanted;
    let asked = |most: u64| timeout_ms.map(|ms| Duration::from_millis(ms.min(most)));
    let mut cwd = ctx.scope.project.clone();
    let mut fed = None;
    let (time, input) = match place {
        JobPlace::Foreground => {
            (TimeLimit::until_moved(asked(LONGEST_MS).unwrap_or(side.time)), ProgramInput::Nothing)
        }
        JobPlace::Fed(bytes) => {
            fed = Some(bytes);
            (TimeLimit::of(asked(LONGEST_MS).unwrap_or(side.time)), ProgramInput::Pipe)
        }
        JobPlace::Over(file) => {
            cwd = PathBuf::from("/");
            let time = TimeLimit::of(asked(LONGEST_MS).unwrap_or(side.time));
            (time, ProgramInput::File(file.into()))
        }
        place @ (JobPlace::Background | JobPlace::Apart) => {
            if matches!(place, JobPlace::Apart) {
                cwd = PathBuf::from("/");
            }
            let longest = Duration::from_millis(BACKGROUND_MS);
            (TimeLimit::of(asked(BACKGROUND_MS).unwrap_or(longest)), ProgramInput::Pipe)
        }
    };
    let env = environment(&side, without, &env, ctx);
    let (job, tell, protected) = (side.job, side.server, side.protected);
    let program = Program { input, argv: argv.into_iter().map(OsString::from).collect(), env, cwd };
    let mut caged = side.cage.spawn(program).map_err(|error| {
        if error.step == CageStep::Lost {
            ctx.extras.lost = Some(error.reason.clone());
        }
        of_cage(&error)
    })?;
    let live = LiveOutput::new(show);
    let course = match (server, caged.stdin(), fed) {
        (Some(server), Some(input), _) => {
            let output = caged.stdout().ok_or_else(|| confined("no output", "it has no output"))?;
            let pipes = ServerPipes { input, output, speech: server.speech };
            let (name, start) = (server.name, server.start);
            let project = Some(ctx.scope.project.as_path());
            let link = ServerLink { name, start, project, asks: job.serves(), tell };
            let (engine, cancel) = (server.engine, ctx.cancel);
            thread::scope(|scope| {
                let speaks = scope.spawn(move || {
                    let ended = engine.serve(pipes, link);
                    // A server that closes its output and goes on is of no use any more.
                    cancel.request();
                    ended
                });
                let course = run_to_end(caged, (&time, kept), (cancel, &job, protected), live);
                job.ended();
                let panicked = |_| {
                    Err(ServerFault::Other("agentd-mcp failed; this is a bug in agentd".to_owned()))
                };
                *server.ended = speaks.join().unwrap_or_else(panicked);
                course
            })
        }
        (_, input, fed) => {
            match (input, fed) {
                (Some(input), Some(bytes)) => feed(input, bytes)?,
                (Some(input), None) => job.takes_input(input),
                (None, _) => {}
            }
            run_to_end(caged, (&time, kept), (ctx.cancel, &job, protected), live)
        }
    };
    let course = course.map_err(|error| unknown_end(&error))?;
    job.ended();
    Ok((text, course.limit, course))
}

/// Writes a program's input while it runs; the program need not read it.
fn feed(mut input: File, bytes: Vec<u8>) -> Result<(), ToolFailure> {
    let writer = thread::Builder::new().spawn(move || drop(input.write_all(&bytes)));
    writer.map(drop).map_err(|error| {
        let why = format!("no thread can be started to write its standard input: {error}");
        ToolFailure::new(FailureCode::Io, why, "")
    })
}

fn confined(step: &str, reason: &str) -> ToolFailure {
    ToolFailure {
        outcome: Outcome::Confined { what: step.to_owned() },
        ..ToolFailure::new(
            FailureCode::Confined,
            format!("nothing was run: {reason}"),
            "Run `agentd doctor` to see what this host supports.",
        )
    }
}

fn of_cage(error: &CageError) -> ToolFailure {
    let number = error.source.as_ref().and_then(std::io::Error::raw_os_error);
    // Errno is the system's list: errors that are not named here are failures of the cage itself.
    #[allow(clippy::wildcard_enum_match_arm)]
    let code = match (error.step, number.map(Errno::from_raw)) {
        (CageStep::Program, Some(Errno::ENOENT | Errno::ENOTDIR)) => FailureCode::NotFound,
        (CageStep::Program, Some(Errno::EACCES | Errno::EPERM)) => FailureCode::PermissionDenied,
        (CageStep::Program, Some(Errno::ENOEXEC | Errno::E2BIG)) => FailureCode::InvalidArguments,
        _ => {
            return ToolFailure {
                hint: error.hint.clone(),
                ..confined(error.step.name(), &error.reason)
            };
        }
    };
    ToolFailure::new(code, format!("nothing was run: {}", error.reason), error.hint.clone())
}

/// The command was started, and its end is unknown.
fn unknown_end(error: &CageError) -> ToolFailure {
    ToolFailure {
        outcome: Outcome::Interrupted,
        ..ToolFailure::new(
            FailureCode::Interrupted,
            format!("the command may have run: {}", error.reason),
            "Check which files it changed before you run it again.",
        )
    }
}
