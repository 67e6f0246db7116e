//! The result of a command: output, end, and notes about the sandbox.

use crate::command::capture::{self, CommandOutput};
use crate::command::command_loop::{CommandEnd, CommandRun, LeftoverProcesses};
use crate::command::command_view::{CommandView, hint_lines, missing_path_note};
use crate::command::refusal_lines::{OF_FAILURE, OF_SUCCESS, nameable, refusal_lines};
use crate::failure::FailureCode;
use crate::signing::Signer;
use crate::tool_context::ToolContext;
use nix::sys::signal::Signal;
use protocol::call::{FileEffect, Outcome, TamperRemedy, TamperedFile};
use protocol::hidden::line_for_model as visible;
use sandbox::{CommandExit, LimitExceeded, LimitKind};
use std::borrow::Cow;
use std::time::Duration;
use tool_specs::longest::LONGEST_MS;
use tool_specs::{BodyFrom, ToolAnswer};

/// Most names of processes that a command left running.
const LEFT_NAMED: usize = 8;
const SIGXFSZ: i32 = Signal::SIGXFSZ as i32;
/// The exit code of a shell whose program was killed for exceeding the file size limit.
const ENDED_BY_SIZE: i32 = 128 + SIGXFSZ;
/// The exit code of a shell that did not find a program.
const NOT_FOUND: i32 = 127;

/// Builds the result. `fault` is why a server was of no use.
pub(super) fn answer(
    command: String,
    (time, view): (Duration, &CommandView<'_>),
    (course, fault, way_on): (CommandRun, Option<FailureCode>, Cow<'static, str>),
    ctx: &mut ToolContext<'_>,
) -> ToolAnswer {
    let said = course.said();
    let CommandRun { out, err, over, limit: _, left_behind, took, ending } = course;
    let CommandOutput { text, notes } = capture::join(out, err, &way_on);
    let mut footer = notes;
    footer.extend(leftover_note(&left_behind));
    if ending.survivors > 0 {
        footer.push(format!("[{} of its processes could not be killed]", ending.survivors));
    }
    let ended = verdict(over, ending.exit, time);
    let (outcome, code, exit) = of_use(untampered(ended, &ending.tampered), fault);
    let refusals = nameable(&ending.refusals);
    if let Some(most) = most_named(&outcome, said.as_deref()) {
        footer.extend(refusal_lines(&refusals, ending.refusals_uncounted, most));
    }
    let has_failed = outcome != Outcome::Exited { code: 0 };
    // Who did the work needs no more rights for it.
    let obstacles = if has_failed { refusals } else { Vec::new() };
    footer.extend(ending.tampered.iter().map(|name| {
        let said = name.to_string();
        match name.remedy {
            TamperRemedy::Granted => format!("[git-admin: {}]", visible(&said)),
            TamperRemedy::Stays { .. } => format!("[run later: {}]", visible(&said)),
            TamperRemedy::Restored { .. }
            | TamperRemedy::Quarantined { .. }
            | TamperRemedy::Left { .. } => {
                format!("[protected file: {}]", visible(&said))
            }
        }
    }));
    if matches!(ending.exit, CommandExit::Code(ENDED_BY_SIZE) | CommandExit::Signal(SIGXFSZ)) {
        footer.push(
            "[no file may grow beyond `sandbox.limits.file_bytes`; a program that exceeds it is \
            killed with this code]"
                .to_owned(),
        );
    }
    footer.extend(view.signer.into_iter().flat_map(Signer::lines));
    footer.extend(hint_lines((&obstacles, &ending.tampered), &ctx.scope.project, view));
    if has_failed {
        let said = said.as_deref().unwrap_or_default();
        footer.extend(missing_path_note(said, &obstacles, view, ctx));
        let is_missing = matches!(ending.exit, CommandExit::Code(NOT_FOUND)) && view.is_locked;
        footer.extend(is_missing.then(|| view.search().line(&text)).flatten());
    }
    if outcome == Outcome::TimedOut && time < Duration::from_millis(LONGEST_MS) {
        footer.push(format!("[timeout_ms may be up to {LONGEST_MS}]"));
    }
    let place = ctx.scope.private_note_of(&command).filter(|_| view.shows_private);
    let place = place.map(|place| format!("; {place}")).unwrap_or_default();
    let end = exit.replacen("exit code: ", "exit ", 1);
    let summary = format!("{end} · {:.1} s{place}", took.as_secs_f64());
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
        how_to_get_more: way_on,
        effects: vec![FileEffect::Ran(command)],
        outcome,
        code,
    }
}

/// The note about background processes, which are killed when the command ends.
pub(super) fn leftover_note(
    LeftoverProcesses { names, held_output }: &LeftoverProcesses,
) -> Option<String> {
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
        "[background processes were killed when the command ended{list}; start and use a \
            server in one command]"
    ))
}

/// How it ended: for the record, as a code, and as the last line.
pub(super) fn verdict(
    over: CommandEnd,
    exit: CommandExit,
    time: Duration,
) -> (Outcome, Option<FailureCode>, String) {
    match (over, exit) {
        (CommandEnd::TimedOut, _) => (
            Outcome::TimedOut,
            Some(FailureCode::TimedOut),
            format!(
                "exit code: 124 (timed out after {} ms; all its processes were killed)",
                time.as_millis()
            ),
        ),
        (CommandEnd::Cancelled, _) => (
            Outcome::Interrupted,
            Some(FailureCode::Interrupted),
            "exit code: 130 (cancelled; all its processes were killed)".to_owned(),
        ),
        (CommandEnd::Exceeded(exceeded), _) => exceeded_limit(exceeded),
        (CommandEnd::ByItself, CommandExit::Code(code)) => {
            (Outcome::Exited { code }, None, format!("exit code: {code}"))
        }
        (CommandEnd::ByItself, CommandExit::Signal(signal)) => {
            let name = Signal::try_from(signal).map_or("unknown", Signal::as_str);
            let line = format!("exit code: {} (killed by signal {signal}, {name})", 128 + signal);
            if signal == SIGXFSZ {
                let what = "the file size limit".to_owned();
                (Outcome::Confined { what }, Some(FailureCode::Confined), line)
            } else if signal == Signal::SIGSYS as i32 {
                let what = "a system call that the seccomp filter ends with SIGSYS".to_owned();
                (Outcome::Confined { what }, Some(FailureCode::Confined), line)
            } else {
                (Outcome::Signalled { signal }, None, line)
            }
        }
    }
}

/// The same, but for a command that ended well and left a protected name otherwise than it was: that
/// is no success.
pub(super) fn untampered(
    (outcome, code, exit): (Outcome, Option<FailureCode>, String),
    tampered: &[TamperedFile],
) -> (Outcome, Option<FailureCode>, String) {
    let left = tampered.iter().find(|name| matches!(name.remedy, TamperRemedy::Left { .. }));
    match (left, outcome) {
        (Some(left), Outcome::Exited { code: 0 }) => {
            let what = "a protected file could not be restored".to_owned();
            let said = visible(&left.path).into_owned();
            let exit = format!(
                "{exit}, but {said} could not be restored; the user is asked before the \
                    next command"
            );
            (Outcome::Confined { what }, Some(FailureCode::Confined), exit)
        }
        (Some(_) | None, outcome) => (outcome, code, exit),
    }
}

/// The same, but for a server that was of no use, however its process ended.
fn of_use(
    (outcome, code, exit): (Outcome, Option<FailureCode>, String),
    fault: Option<FailureCode>,
) -> (Outcome, Option<FailureCode>, String) {
    match fault {
        Some(fault) => (Outcome::Failed, Some(fault), exit),
        None => (outcome, code, exit),
    }
}

/// Most kinds of refusals that the result names, if any. A success that writes nothing to standard
/// error did its work; the record has its refusals.
fn most_named(outcome: &Outcome, said: Option<&str>) -> Option<usize> {
    match (outcome, said) {
        (Outcome::Exited { code: 0 }, said) => said.map(|_| OF_SUCCESS),
        (_, _) => Some(OF_FAILURE),
    }
}

/// How a call ended that used more than it may, with the setting that bounds it.
pub(super) fn exceeded_limit(
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
                    "all {most} MiB of memory that `sandbox.limits.memory_bytes` allows, \
                        and needed more"
                ),
                false => format!(
                    "{used} MiB of memory, more than the {most} that \
                        `sandbox.limits.memory_bytes` allows"
                ),
            };
            (Outcome::OutOfMemory, FailureCode::OutOfMemory, what)
        }
        LimitKind::Processes => {
            let what = match held {
                true => format!(
                    "all {most} processes and threads that `sandbox.limits.processes` \
                        allows, and needed more"
                ),
                false => format!(
                    "{used} processes and threads, more than the {most} that \
                        `sandbox.limits.processes` allows"
                ),
            };
            (confined("the process limit"), FailureCode::Confined, what)
        }
        LimitKind::CpuTime => {
            let what = format!(
                "{used} s of CPU time, more than the {most} that \
                    `sandbox.limits.cpu_seconds` allows"
            );
            (confined("the CPU time limit"), FailureCode::Confined, what)
        }
    };
    (outcome, Some(code), format!("exit code: 137 (killed with all its processes: it used {what})"))
}

#[cfg(test)]
mod tests {
    use super::*;

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
                "exit code: 124 (timed out after 2000 ms; all its processes were killed)",
            ),
            (
                CommandEnd::Cancelled,
                CommandExit::Code(0),
                Outcome::Interrupted,
                "exit code: 130 (cancelled; all its processes were killed)",
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

    #[test]
    fn refusals_are_named_by_the_last_word_on_how_it_ended() {
        let ended = |code| verdict(CommandEnd::ByItself, CommandExit::Code(code), Duration::ZERO);
        for (code, fault, said, most) in [
            (0, None, None, None),
            (0, None, Some("warning"), Some(OF_SUCCESS)),
            (3, None, None, Some(OF_FAILURE)),
            (3, None, Some("error"), Some(OF_FAILURE)),
            // A server that ends before it has begun to serve.
            (0, Some(FailureCode::Io), None, Some(OF_FAILURE)),
        ] {
            let (outcome, ..) = of_use(ended(code), fault);
            assert_eq!(most_named(&outcome, said), most, "{code} {fault:?} {said:?}");
        }
    }
}
