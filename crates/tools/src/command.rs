//! A program in its cage, seen through to its end, and what the model is told of it. For the tools
//! that run one: `bash`, `run` and those of git.

use crate::answer::{BodyFrom, ToolAnswer};
use crate::barriers::{self, Restriction};
use crate::caches;
use crate::capture::{self, CommandOutput, HeadTail};
use crate::control::visible;
use crate::drive::{CommandEnd, CommandRun, LeftoverProcesses, run_to_end};
use crate::failure::{FailureCode, ToolFailure};
use crate::hidden::{self, SandboxView};
use crate::home_names;
use crate::lines::cut_line;
use crate::live::{LiveOffer, LiveOutput, LiveSink};
use crate::noise::{self, is_harmless, is_ipv6_probe};
use crate::not_started::ProgramLookup;
use crate::run::CommandSetup;
use crate::signing::Signer;
use crate::site::ToolContext;
use crate::to_proxy;
use nix::errno::Errno;
use nix::sys::signal::Signal;
use protocol::call::{Effect, Outcome, Remedy, Tampered};
use protocol::confinement::{Refusal, RefusalKind};
use protocol::tool::Stream;
use sandbox::{Cage, CageError, CageStep, CommandExit, LimitExceeded, LimitKind, Program};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The kernel takes no longer argument.
pub(crate) const ARGUMENT_BYTES: usize = 128 * 1024 - 1;
/// Longest time that a call can ask for, in milliseconds.
const LONGEST_MS: u64 = 600_000;
/// Most kinds of refusals that the text names; the record has more.
const REFUSALS: usize = 10;
/// Most names of processes that a command left running.
const LEFT_NAMED: usize = 8;
/// Most characters of a refusal's detail in the text.
const DETAIL_CHARS: usize = 200;

const SIGXFSZ: i32 = Signal::SIGXFSZ as i32;
/// What a shell says of a program that the kernel ended for the size of a file.
const ENDED_BY_SIZE: i32 = 128 + SIGXFSZ;

/// What a shell ends with that did not find a program.
const NOT_FOUND: i32 = 127;

/// What to run.
pub(crate) struct CommandSpec {
    /// Name or path, then the arguments.
    pub argv: Vec<String>,
    /// As rules and the record know it.
    pub text: String,
    /// Variables beside those that every command is given; they win.
    pub env: Vec<(String, String)>,
    /// Variables that begin so are not given.
    pub without: Option<&'static str>,
    /// Longest time, of which no more than ten minutes are given; the configured one where it is left out.
    pub timeout_ms: Option<u64>,
}

/// The note about a `timeout_ms` above the longest time.
fn cut_time(asked: Option<u64>) -> Option<String> {
    let asked = asked.filter(|asked| *asked > LONGEST_MS)?;
    Some(format!(
        "[timeout_ms {asked} was cut to {LONGEST_MS}, the longest that a call may take; run longer work \
         in parts]"
    ))
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
    let cut_time = cut_time(wanted.timeout_ms);
    let sight = CommandView::of(&side);
    let before = home_names::list(ctx.scope);
    let name = wanted.argv.first().cloned().unwrap_or_default();
    let (text, time, course) = start_and_wait(wanted, (side, capture::KEPT), &mut *show, ctx)
        .map_err(|failure| sight.explain(failure, &name))?;
    let mut answer = answer(text.clone(), (time, &sight), course, ctx);
    let kept = home_names::line(&before, &home_names::list(ctx.scope));
    answer.footer.splice(0..0, kept.map(|line| visible(&line).into_owned()));
    answer.footer.splice(0..0, cut_time);
    let failed = answer.outcome != Outcome::Exited { code: 0 };
    let refusals = not_harmless(&ctx.extras.refusals, sight.home.as_deref());
    let command = (failed || !refusals.is_empty()).then_some(text.as_str());
    if sight.is_locked
        && barriers::names_closed_temp_path(command, &answer.body, &refusals, ctx.scope)
    {
        let note = format!("[{}]", barriers::closed_temp(&ctx.scope.temp));
        answer.footer.insert(0, note);
    }
    Ok(answer)
}

/// What came of a program whose output is not for a model.
pub(crate) struct FilterRun {
    /// What it printed; absent where it is more than was to be held.
    pub printed: Option<Vec<u8>>,
    /// What it said beside that.
    pub said: String,
    /// The rest, as of any command.
    pub answer: ToolAnswer,
}

/// Runs a program for what it prints, of which `kept` bytes are held. It is shown to nobody.
///
/// # Errors
/// As [`run`].
pub(crate) fn filter(
    wanted: CommandSpec,
    kept: usize,
    ctx: &mut ToolContext<'_>,
) -> Result<FilterRun, ToolFailure> {
    let side = take_setup(ctx)?;
    let sight = CommandView::of(&side);
    let (text, time, mut course) = start_and_wait(wanted, (side, kept), &mut NoLiveOutput, ctx)?;
    let printed = course.out.whole();
    let err = std::mem::take(&mut course.err);
    let said = capture::join(err, HeadTail::default()).text;
    Ok(FilterRun { printed, said, answer: answer(text, (time, &sight), course, ctx) })
}

/// What the command can see, to tell what it missed.
struct CommandView<'a> {
    is_locked: bool,
    granted: Vec<PathBuf>,
    home: Option<String>,
    /// The person's search path.
    path: String,
    /// What a connection meets that goes no way that is open.
    way_out: Restriction,
    signer: Option<&'a Signer>,
    /// Whether there is such a connection.
    bars_hosts: bool,
    /// The directory of a copy of the person's git settings.
    git_settings: Option<PathBuf>,
}

impl<'a> CommandView<'a> {
    fn of(side: &CommandSetup<'a>) -> Self {
        let value = |wanted: &str| side.env.iter().find(|(name, _)| name == wanted);
        let (home, path) = (value("HOME"), value("PATH"));
        let copy = value("GIT_CONFIG_GLOBAL").and_then(|(_, file)| Path::new(file).parent());
        Self {
            is_locked: side.cage.is_locked(),
            granted: side.cage.readable().to_vec(),
            home: home.map(|(_, home)| home.clone()),
            path: path.map(|(_, path)| path.clone()).unwrap_or_default(),
            way_out: match side.proxy {
                Some(_) => Restriction::Direct,
                None => Restriction::Network,
            },
            signer: side.signer,
            bars_hosts: side.cage.blocks_hosts(),
            git_settings: copy.filter(|copy| copy.is_absolute()).map(Path::to_owned),
        }
    }

    /// What it finds of the person's programs.
    fn search(&self) -> ProgramLookup<'_> {
        let home = self.home.as_deref().map(Path::new);
        ProgramLookup { path: &self.path, granted: &self.granted, home }
    }

    /// Why a program was not found, where it is known.
    fn explain(&self, failure: ToolFailure, name: &str) -> ToolFailure {
        let is_missing =
            matches!(failure.code, FailureCode::NotFound | FailureCode::PermissionDenied);
        let is_searched = self.is_locked && is_missing && !name.contains('/');
        match is_searched.then(|| self.search().reason(name)).flatten() {
            Some(reason) => ToolFailure { hint: format!("{reason}."), ..failure },
            None => failure,
        }
    }
}

/// Shows nothing.
struct NoLiveOutput;

impl LiveSink for NoLiveOutput {
    fn offer(&mut self, _: Stream, _: String) -> LiveOffer {
        LiveOffer::Taken
    }

    fn last(&mut self, _: Stream, _: String) {}
}

/// The shell for scripts: the command's `SHELL`, which the supervisor has found startable in the cage.
pub(crate) fn shell(ctx: &ToolContext<'_>) -> String {
    let given = ctx.command.as_ref().map(|side| side.env).unwrap_or_default();
    let shell = given.iter().find(|(name, value)| name == "SHELL" && value.starts_with('/'));
    shell.map_or("/bin/sh", |(_, shell)| shell).to_owned()
}

fn take_setup<'a>(ctx: &mut ToolContext<'a>) -> Result<CommandSetup<'a>, ToolFailure> {
    ctx.command.take().ok_or_else(|| {
        confined("no cage", "a command needs a cage of its own, and this process has none")
    })
}

/// Sees it through; its text and its longest time beside what came of it.
fn start_and_wait(
    wanted: CommandSpec,
    (side, kept): (CommandSetup<'_>, usize),
    show: &mut dyn LiveSink,
    ctx: &mut ToolContext<'_>,
) -> Result<(String, Duration, CommandRun), ToolFailure> {
    let CommandSpec { argv, text, env, without, timeout_ms } = wanted;
    let time = timeout_ms.map_or(side.time, |ms| Duration::from_millis(ms.min(LONGEST_MS)));
    let program = Program {
        argv: argv.into_iter().map(OsString::from).collect(),
        env: environment(&side, without, &env, ctx),
        cwd: ctx.scope.project.clone(),
    };
    let caged = side.cage.spawn(program).map_err(|error| {
        if error.step == CageStep::Lost {
            ctx.extras.lost = Some(error.reason.clone());
        }
        of_cage(&error)
    })?;
    let course = run_to_end(caged, (time, kept), ctx.cancel, LiveOutput::new(show))
        .map_err(|error| unknown_end(&error))?;
    Ok((text, time, course))
}

/// These words as a shell would have to be given them: what rules are matched against.
pub(crate) fn shell_words(argv: &[String]) -> String {
    let words: Vec<String> = argv.iter().map(|word| quoted(word)).collect();
    words.join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:,+@%".contains(c);
    // `name=value` in front of a command is no argument to a shell.
    let option = word.starts_with('-');
    if !word.is_empty() && word.chars().all(|c| plain(c) || (option && c == '=')) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// The command's environment: what it was given, where temporary files go, and the session's
/// package caches in place of the person's.
fn environment(
    side: &CommandSetup<'_>,
    without: Option<&'static str>,
    more: &[(String, String)],
    ctx: &ToolContext<'_>,
) -> Vec<(OsString, OsString)> {
    let CommandSetup { cage, proxy, signer, env: given, .. } = side;
    let added = |name: &String| more.iter().any(|(other, _)| other == name);
    let mut env: Vec<(OsString, OsString)> = given
        .iter()
        .filter(|(name, _)| !added(name))
        .filter(|(name, _)| !without.is_some_and(|prefix| name.starts_with(prefix)))
        .chain(more)
        .map(|(name, value)| match name.as_str() {
            "PATH" => (name.into(), startable(value, cage)),
            _ => (name.into(), value.into()),
        })
        .collect();
    if let Some(proxy) = proxy {
        let ways = to_proxy::variables(*proxy);
        env.retain(|(name, _)| !ways.iter().any(|(way, _)| way == name));
        env.extend(ways);
    }
    let temp = ctx.scope.seen_in(cage, &ctx.scope.temp);
    let led = |caches| {
        let found = caches::CacheDirs::of(caches, ctx.scope, cage);
        caches::variables(given, &found, ctx.scope)
    };
    let caches = ctx.scope.caches.as_deref().map(led).unwrap_or_default().into_iter();
    // What screen uses otherwise lies in /run, which belongs to the machine.
    let screens = temp.join(".screen");
    let temporary = [("TMPDIR".into(), temp.into()), ("SCREENDIR".into(), screens.into())];
    let agent = signer.map(|signer| ctx.scope.seen_in(cage, signer.path()).into());
    let agent = agent.map(|path: OsString| ("SSH_AUTH_SOCK".into(), path));
    let own: Vec<_> = caches.chain(temporary).chain(agent).collect();
    env.retain(|(name, _)| !own.iter().any(|(other, _)| other == name));
    env.extend(own);
    env
}

/// A search path without the folders whose programs the cage refuses.
fn startable(path: &str, cage: &Cage) -> OsString {
    // An empty or relative folder lies in the project.
    let kept = |folder: &&str| {
        let folder = Path::new(folder);
        !(folder.is_absolute() && cage.refuses_programs_in(folder))
    };
    let folders: Vec<&str> = path.split(':').filter(kept).collect();
    match folders.as_slice() {
        // An empty search path would be the project itself.
        [] => path.into(),
        folders => folders.join(":").into(),
    }
}

fn confined(step: &str, reason: &str) -> ToolFailure {
    ToolFailure {
        outcome: Outcome::Confined { what: step.to_owned() },
        ..ToolFailure::new(
            FailureCode::Confined,
            format!("nothing was run: {reason}"),
            "agentd doctor says what this host allows.",
        )
    }
}

fn of_cage(error: &CageError) -> ToolFailure {
    let number = error.source.as_ref().and_then(std::io::Error::raw_os_error);
    // Errno is the system's list, not ours: what is not named here is the cage's own failure.
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

/// The command was let go, and what became of it cannot be said.
fn unknown_end(error: &CageError) -> ToolFailure {
    ToolFailure {
        outcome: Outcome::Interrupted,
        ..ToolFailure::new(
            FailureCode::Interrupted,
            format!("the command may have run: {}", error.reason),
            "Look at what it changed before you run it again.",
        )
    }
}

fn answer(
    command: String,
    (time, sight): (Duration, &CommandView<'_>),
    course: CommandRun,
    ctx: &mut ToolContext<'_>,
) -> ToolAnswer {
    let CommandRun { out, err, over, left_behind, took, ending } = course;
    let CommandOutput { text, notes } = capture::join(out, err);
    let mut footer = notes;
    footer.extend(leftover_note(&left_behind));
    if ending.survivors > 0 {
        footer.push(format!("[{} of its processes could not be ended]", ending.survivors));
    }
    let (outcome, code, exit) = untampered(verdict(over, ending.exit, time), &ending.tampered);
    let matters = not_harmless(&ending.refusals, sight.home.as_deref());
    let has_failed = outcome != Outcome::Exited { code: 0 };
    footer.extend(match has_failed {
        true => refusal_lines(&matters, ending.refusals_uncounted),
        false => {
            let is_quiet = noise::checks_for_updates(&command) && !hidden::reached_no_host(&text);
            let is_told =
                |one: &&Refusal| !(is_ipv6_probe(one) || is_quiet && barriers::is_name_lookup(one));
            let told: Vec<Refusal> = matters.iter().filter(is_told).cloned().collect();
            refusal_line_of_success(&told, ending.refusals_uncounted).into_iter().collect()
        }
    });
    footer.extend(ending.tampered.iter().map(|name| {
        let said = name.to_string();
        match name.remedy {
            Remedy::Granted => format!("[git-admin: {}]", visible(&said)),
            Remedy::Restored { .. } | Remedy::Quarantined { .. } | Remedy::Left { .. } => {
                format!("[a protected name: {}]", visible(&said))
            }
        }
    }));
    if matches!(ending.exit, CommandExit::Code(ENDED_BY_SIZE) | CommandExit::Signal(SIGXFSZ)) {
        footer.push("[a file may not grow above `sandbox.limits.file_bytes`; a program that tries is ended with this code]".to_owned());
    }
    footer.extend(sight.signer.into_iter().flat_map(Signer::lines));
    if has_failed {
        let mut ways = hint_lines((&matters, &ending.tampered), &ctx.scope.project, sight);
        for way in
            restrictions_in_output(&text, sight).into_iter().filter_map(Restriction::hint_line)
        {
            if !ways.contains(&way) {
                ways.push(way);
            }
        }
        footer.extend(ways);
        footer.extend(missing_path_note(&text, &matters, sight, ctx));
        let is_missing = matches!(ending.exit, CommandExit::Code(NOT_FOUND)) && sight.is_locked;
        footer.extend(is_missing.then(|| sight.search().line(&text)).flatten());
    } else {
        footer.extend(hint_lines((&[], &ending.tampered), &ctx.scope.project, sight));
    }
    if outcome == Outcome::TimedOut && time < Duration::from_millis(LONGEST_MS) {
        footer.push(format!("[timeout_ms may be up to {LONGEST_MS}]"));
    }
    let summary = format!("{exit}, {:.1} s", took.as_secs_f64());
    footer.push(exit);
    ctx.extras.refusals = ending.refusals;
    ctx.extras.refusals_uncounted = ending.refusals_uncounted;
    ctx.extras.tampered = ending.tampered;
    ctx.extras.usage = Some(ending.usage);
    ctx.extras.command_pid = Some(ending.pid);
    ToolAnswer {
        body: text,
        by: BodyFrom::Program,
        footer,
        summary,
        how_to_get_more: "redirect the output into a file and read parts of that",
        effects: vec![Effect::Ran(command)],
        outcome,
        code,
    }
}

/// The note about background processes, which are killed when the command ends.
fn leftover_note(LeftoverProcesses { names, held_output }: &LeftoverProcesses) -> Option<String> {
    if names.is_empty() && !held_output {
        return None;
    }
    let mut kinds: Vec<(&str, usize)> = Vec::new();
    for name in names {
        match kinds.iter_mut().find(|(kind, _)| kind == name) {
            Some((_, count)) => *count += 1,
            None => kinds.push((name, 1)),
        }
    }
    let named = |(name, count): &(&str, usize)| match count {
        1 => visible(name).into_owned(),
        count => format!("{} ({count})", visible(name)),
    };
    let mut list: Vec<String> = kinds.iter().take(LEFT_NAMED).map(named).collect();
    if kinds.len() > LEFT_NAMED {
        list.push("…".to_owned());
    }
    let list = if list.is_empty() { String::new() } else { format!(": {}", list.join(", ")) };
    Some(format!(
        "[processes that it left running were ended with it{list}; start a server and use it in one command]"
    ))
}

/// How it ended: for the record, as a code, and as the last line.
fn verdict(
    over: CommandEnd,
    exit: CommandExit,
    time: Duration,
) -> (Outcome, Option<FailureCode>, String) {
    match (over, exit) {
        (CommandEnd::TimedOut, _) => (
            Outcome::TimedOut,
            Some(FailureCode::TimedOut),
            format!(
                "exit code: 124 (timed out after {} ms; all its processes were ended)",
                time.as_millis()
            ),
        ),
        (CommandEnd::Cancelled, _) => (
            Outcome::Interrupted,
            Some(FailureCode::Interrupted),
            "exit code: 130 (ended on request; all its processes were ended)".to_owned(),
        ),
        (CommandEnd::Exceeded(exceeded), _) => exceeded_limit(exceeded),
        (CommandEnd::ByItself, CommandExit::Code(code)) => {
            (Outcome::Exited { code }, None, format!("exit code: {code}"))
        }
        (CommandEnd::ByItself, CommandExit::Signal(signal)) => {
            let name = Signal::try_from(signal).map_or("unknown", Signal::as_str);
            let line = format!("exit code: {} (killed by signal {signal}, {name})", 128 + signal);
            if signal == SIGXFSZ {
                let what = "the bound of a file's size".to_owned();
                (Outcome::Confined { what }, Some(FailureCode::Confined), line)
            } else if signal == Signal::SIGSYS as i32 {
                let what = "a system call that the filter answers with SIGSYS".to_owned();
                (Outcome::Confined { what }, Some(FailureCode::Confined), line)
            } else {
                (Outcome::Signalled { signal }, None, line)
            }
        }
    }
}

/// The same, but for a command that ended well and left a protected name otherwise than it was: that
/// is no success.
fn untampered(
    (outcome, code, exit): (Outcome, Option<FailureCode>, String),
    tampered: &[Tampered],
) -> (Outcome, Option<FailureCode>, String) {
    let left = tampered.iter().find(|name| matches!(name.remedy, Remedy::Left { .. }));
    match (left, outcome) {
        (Some(left), Outcome::Exited { code: 0 }) => {
            let what = "a protected name that could not be put right".to_owned();
            let said = visible(&left.path).into_owned();
            let exit = format!(
                "{exit}, but {said} could not be put right; a person is asked before the next command"
            );
            (Outcome::Confined { what }, Some(FailureCode::Confined), exit)
        }
        (Some(_) | None, outcome) => (outcome, code, exit),
    }
}

/// How a call ended that used more than it may, with the setting that bounds it.
fn exceeded_limit(
    LimitExceeded { bound, used, most }: LimitExceeded,
) -> (Outcome, Option<FailureCode>, String) {
    // The kernel held it at the bound.
    let held = used <= most;
    let confined = |what: &str| Outcome::Confined { what: what.to_owned() };
    let (outcome, code, what) = match bound {
        LimitKind::Memory => {
            let mib = |bytes: u64| bytes.div_ceil(1 << 20);
            let (used, most) = (mib(used), mib(most));
            let what = match held {
                true => format!(
                    "all {most} MiB of memory of `sandbox.limits.memory_bytes`, and needed more"
                ),
                false => format!(
                    "{used} MiB of memory, above the {most} of `sandbox.limits.memory_bytes`"
                ),
            };
            (Outcome::OutOfMemory, FailureCode::OutOfMemory, what)
        }
        LimitKind::Processes => {
            let what = match held {
                true => format!(
                    "all {most} processes and threads of `sandbox.limits.processes`, and wanted more"
                ),
                false => format!(
                    "{used} processes and threads, above the {most} of `sandbox.limits.processes`"
                ),
            };
            (confined("the bound of processes"), FailureCode::Confined, what)
        }
        LimitKind::CpuTime => {
            let what = format!(
                "{used} s of processor time, above the {most} of `sandbox.limits.cpu_seconds`"
            );
            (confined("the bound of processor time"), FailureCode::Confined, what)
        }
    };
    (outcome, Some(code), format!("exit code: 137 (ended with all its processes: it used {what})"))
}

/// How more is given than this call had, where it tried to do more: each way once.
fn hint_lines(
    (refusals, tampered): (&[Refusal], &[Tampered]),
    project: &Path,
    sight: &CommandView,
) -> Vec<String> {
    let settings = sight.git_settings.as_deref();
    let of = |refusal: &Refusal| match barriers::restriction_of(refusal, project, settings) {
        // A hook of another place is a program like others.
        Some(Restriction::Program) => Some(Restriction::Program),
        Some(Restriction::Network) => Some(sight.way_out),
        Some(Restriction::Settings) => Some(Restriction::Settings),
        _ if is_git_settings(&refusal.detail) => Some(Restriction::Git),
        other => other,
    };
    let held = tampered.iter().filter(|name| name.remedy != Remedy::Granted);
    let names = held.map(|name| match is_git_settings(&name.path) {
        true => Restriction::Git,
        false => Restriction::Protected,
    });
    let mut met: Vec<Restriction> = Vec::new();
    for barrier in refusals.iter().filter_map(of).chain(names) {
        if !met.contains(&barrier) {
            met.push(barrier);
        }
    }
    met.into_iter().filter_map(Restriction::hint_line).collect()
}

/// What the program's own words say that it met; no refusal needs to be known for them.
fn restrictions_in_output(printed: &str, sight: &CommandView) -> Vec<Restriction> {
    let no_host = sight.bars_hosts && hidden::reached_no_host(printed);
    let no_sandbox = sight.is_locked && hidden::has_no_sandbox(printed);
    let met = [(no_host, sight.way_out), (no_sandbox, Restriction::Namespaces)];
    met.into_iter().filter_map(|(is_met, barrier)| is_met.then_some(barrier)).collect()
}

/// Whether this names settings or hooks of git, its submodules' and worktrees' too.
fn is_git_settings(text: &str) -> bool {
    let Some((_, below)) = text.split_once(".git/") else { return false };
    below.contains("info/attributes")
        || below.split(['/', ' ', ',', '"']).any(|name| {
            let name = name.trim_end_matches(".lock");
            matches!(name, "hooks" | "config" | "config.worktree")
        })
}

/// The line about what it did not see, where something says so.
fn missing_path_note(
    printed: &str,
    refusals: &[Refusal],
    sight: &CommandView<'_>,
    ctx: &ToolContext<'_>,
) -> Option<String> {
    let view = SandboxView {
        granted: &sight.granted,
        withheld: &ctx.scope.withheld,
        home: sight.home.as_deref().map(Path::new),
    };
    let details = refusals.iter().map(|refusal| refusal.detail.as_str());
    sight.is_locked.then(|| hidden::line(printed, details, &view)).flatten()
}

/// The refusals that are not known to be harmless.
fn not_harmless(refusals: &[Refusal], home: Option<&str>) -> Vec<Refusal> {
    refusals.iter().filter(|refusal| !is_harmless(refusal, home)).cloned().collect()
}

/// The one line beside a success: the command did what it was to do, or says otherwise itself.
fn refusal_line_of_success(refusals: &[Refusal], uncounted: u64) -> Option<String> {
    let kinds = kinds(refusals);
    let (refusal, count) = kinds.first()?;
    let first = line(refusal, *count);
    match kinds.len() as u64 - 1 + uncounted {
        0 => Some(first),
        more => {
            let first = first.trim_end_matches(']');
            Some(format!("{first}; {more} more in agentd audit show]"))
        }
    }
}

fn kinds(refusals: &[Refusal]) -> Vec<(&Refusal, u64)> {
    let mut kinds: Vec<(&Refusal, u64)> = Vec::new();
    for refusal in refusals {
        let same = |other: &&mut (&Refusal, u64)| {
            (&other.0.syscall, &other.0.detail, other.0.errno)
                == (&refusal.syscall, &refusal.detail, refusal.errno)
        };
        match kinds.iter_mut().find(same) {
            Some((_, count)) => *count += refusal.count,
            None => kinds.push((refusal, refusal.count)),
        }
    }
    kinds
}

/// What the cage refused, each kind of thing once with how often it happened.
fn refusal_lines(refusals: &[Refusal], uncounted: u64) -> Vec<String> {
    let kinds = kinds(refusals);
    let mut lines: Vec<String> =
        kinds.iter().take(REFUSALS).map(|(refusal, count)| line(refusal, *count)).collect();
    let more = kinds.len().saturating_sub(REFUSALS) as u64 + uncounted;
    if more > 0 {
        lines.push(format!("[the cage refused {more} more; agentd audit show has the record]"));
    }
    lines
}

fn line(refusal: &Refusal, count: u64) -> String {
    let Refusal { kind, syscall, detail, errno, .. } = refusal;
    let times = if count > 1 { format!(", {count} times") } else { String::new() };
    let how = match kind {
        RefusalKind::Refused => "the cage refused",
        // The kernel decided; we saw the call on its way there.
        RefusalKind::Predicted => "by its grants the cage refuses",
    };
    let detail = cut_line(detail, DETAIL_CHARS, 0);
    format!("[{how} {} {detail}: {:?}{times}]", visible(syscall), Errno::from_raw(*errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(detail: &str, count: u64) -> Refusal {
        Refusal {
            kind: RefusalKind::Refused,
            syscall: "connect".to_owned(),
            detail: detail.to_owned(),
            errno: Errno::EACCES as i32,
            pid: 1,
            count,
        }
    }

    #[test]
    fn words_are_quoted_where_a_shell_would_read_them_otherwise() {
        let words = |argv: &[&str]| {
            shell_words(&argv.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
        };
        for (argv, expected) in [
            (&["cargo", "test", "-p", "x"][..], "cargo test -p x"),
            (&["git", "log", "--format=%H"], "git log --format=%H"),
            (&["a=b", "c d", ""], "'a=b' 'c d' ''"),
            (
                &["echo", "it's", "$(id)", "x\ny", "~", "*"],
                "echo 'it'\\''s' '$(id)' 'x\ny' '~' '*'",
            ),
        ] {
            assert_eq!(words(argv), expected);
        }
    }

    #[test]
    fn refusals_are_named_once_and_counted() {
        let lines = refusal_lines(
            &[refusal("127.0.0.1:80", 1), refusal("/x\u{1b}", 2), refusal("127.0.0.1:80", 4)],
            0,
        );
        assert_eq!(
            lines,
            [
                "[the cage refused connect 127.0.0.1:80: EACCES, 5 times]",
                "[the cage refused connect /x\u{241b}: EACCES, 2 times]"
            ]
        );
        let passing =
            |refusals: &[Refusal], uncounted| refusal_line_of_success(refusals, uncounted);
        assert_eq!(passing(&[], 0), None);
        let one = "[the cage refused connect /a: EACCES, 2 times]";
        assert_eq!(passing(&[refusal("/a", 2)], 0).as_deref(), Some(one));
        let more = "[the cage refused connect /a: EACCES; 4 more in agentd audit show]";
        assert_eq!(passing(&[refusal("/a", 1), refusal("/b", 2)], 3).as_deref(), Some(more));
        let many: Vec<Refusal> = (0..30).map(|i| refusal(&format!("/{i}"), 1)).collect();
        let lines = refusal_lines(&many, 7);
        assert_eq!(lines.len(), REFUSALS + 1);
        assert!(lines[REFUSALS].contains("refused 27 more"));
    }

    #[test]
    fn the_exit_code_says_how_it_ended() {
        let time = Duration::from_secs(2);
        for (over, exit, expected, line) in [
            (
                CommandEnd::ByItself,
                CommandExit::Code(3),
                Outcome::Exited { code: 3 },
                "exit code: 3",
            ),
            (
                CommandEnd::ByItself,
                CommandExit::Signal(9),
                Outcome::Signalled { signal: 9 },
                "exit code: 137 (killed by signal 9, SIGKILL)",
            ),
            (
                CommandEnd::TimedOut,
                CommandExit::Signal(15),
                Outcome::TimedOut,
                "exit code: 124 (timed out after 2000 ms; all its processes were ended)",
            ),
            (
                CommandEnd::Cancelled,
                CommandExit::Code(0),
                Outcome::Interrupted,
                "exit code: 130 (ended on request; all its processes were ended)",
            ),
        ] {
            let (outcome, _, text) = verdict(over, exit, time);
            assert_eq!((outcome, text.as_str()), (expected, line));
        }
        assert!(matches!(
            verdict(CommandEnd::ByItself, CommandExit::Signal(31), time).0,
            Outcome::Confined { .. }
        ));
    }
}
