//! Runs one call. For `agentd-tool` and `agentd-code`, after their cage stands.

use crate::cancel::Cancel;
use crate::command::setup::CommandSetup;
use crate::engine::Engine;
use crate::failure::{FailureCode, ToolFailure, failed};
use crate::files::path_trace::trace_path;
use crate::files::protected::ProtectedSearch;
use crate::nested_instructions;
use crate::signing::Signer;
use crate::tool::tool_impl;
use crate::tool_context::{ReportExtras, ToolContext};
use nix::sys::resource::{UsageWho, getrusage};
use prompts::DeniedReads;
use protocol::call::{FileEffect, Outcome, ProcessUsage, RunReport, ToolResult};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use protocol::tool::JudgedPath;
use sandbox::CallScope;
use std::path::{Path, PathBuf};
use tool_specs::{ToolAnswer, interpret, specs};

/// A call that was judged and may run.
#[derive(Debug, Clone, Copy)]
pub struct ToolRunRequest<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// Its arguments as JSON.
    pub input: &'a str,
    /// The files that the verdict is bound to; empty if the call was not probed. A mutation of a
    /// file that has changed since answers `stale` and changes nothing; for a query only the real
    /// paths must be the same.
    pub judged: &'a [JudgedPath],
    /// Most characters of the result for the model.
    pub max_result_chars: u32,
    /// The policy of this process's cage. Tools that need another policy do not run.
    pub profile: Profile,
    /// Files whose text no result shows, and that instructions do not import.
    pub denied: DeniedReads<'a>,
}

/// A process of the cage died before the program began: nothing was run. Another try may succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CageLost(pub String);

/// Runs a tool that works in this process. Every failure is a coded result.
#[must_use]
pub fn run(
    order: &ToolRunRequest<'_>,
    scope: &CallScope,
    cancel: &Cancel,
    engine: Engine<'_>,
) -> RunReport {
    run_at(order, &mut context(order, scope, cancel, None, engine))
}

/// Runs a tool that runs a command. Every failure of the command is a coded result; on return none
/// of the command's processes is left.
///
/// # Errors
/// [`CageLost`], which is not a failure of the command.
pub fn run_command(
    order: &ToolRunRequest<'_>,
    scope: &CallScope,
    cancel: &Cancel,
    (side, engine): (CommandSetup<'_>, Engine<'_>),
) -> Result<RunReport, CageLost> {
    let signer = side.signer;
    let mut ctx = context(order, scope, cancel, Some(side), engine);
    let mut report = run_at(order, &mut ctx);
    report.effects.extend(signer.into_iter().flat_map(Signer::signed));
    ctx.extras.lost.map_or(Ok(report), |why| Err(CageLost(why)))
}

fn context<'a>(
    order: &ToolRunRequest<'a>,
    scope: &'a CallScope,
    cancel: &'a Cancel,
    command: Option<CommandSetup<'a>>,
    engine: Engine<'a>,
) -> ToolContext<'a> {
    let max_chars = order.max_result_chars as usize;
    ToolContext {
        scope,
        judged: order.judged,
        cancel,
        command,
        max_chars,
        engine,
        denied: order.denied,
        protected: ProtectedSearch::default(),
        extras: ReportExtras::default(),
    }
}

fn run_at(order: &ToolRunRequest<'_>, ctx: &mut ToolContext<'_>) -> RunReport {
    let (result, full, mut effects) = attempt(order, ctx);
    let extras = std::mem::take(&mut ctx.extras);
    ctx.extras.lost = extras.lost;
    let lasts = specs().iter().any(|spec| spec.name == order.tool && spec.cacheable);
    // An error may have other causes than the files. The cache keeps no images.
    let lasts = lasts && result.outcome == Outcome::Done && !result.is_error;
    // A program's answer depends on the program, too.
    let lasts = lasts && extras.images.is_empty() && extras.ran.is_none();
    effects.extend(extras.ran.map(FileEffect::Ran));
    let instructions = nested_instructions::of(&effects, ctx.scope, order.denied);
    RunReport {
        result,
        full,
        images: extras.images,
        effects,
        seen: extras.seen,
        instructions,
        evidence: lasts.then(|| extras.read_set.evidence()).flatten(),
        refusals: extras.refusals,
        refusals_uncounted: extras.refusals_uncounted,
        tampered: extras.tampered,
        usage: extras.usage.unwrap_or_else(own_usage),
        command_pid: extras.command_pid,
    }
}

fn attempt(
    order: &ToolRunRequest<'_>,
    ctx: &mut ToolContext<'_>,
) -> (ToolResult, Option<String>, Vec<FileEffect>) {
    let max = order.max_result_chars as usize;
    let call = match interpret(order.tool, order.input) {
        Ok(call) => call,
        Err(invalid) => return (invalid.result(), None, Vec::new()),
    };
    let name = call.spec.name;
    let Some(works) = tool_impl(name) else {
        let failure =
            ToolFailure::new(FailureCode::UnknownTool, "this build does not include it", "");
        return (failed(name, failure, max), None, Vec::new());
    };
    if call.spec.runner != ctx.engine.runner() {
        let text = format!("{} does not run it", ctx.engine.runner().executable());
        let failure = ToolFailure::new(FailureCode::UnknownTool, text, "");
        return (failed(name, failure, max), None, Vec::new());
    }
    if call.profile != order.profile {
        let text = format!(
            "nothing was run: the sandbox was built for {}, but the tool needs {}",
            order.profile.name(),
            call.profile.name()
        );
        let failure = ToolFailure {
            outcome: Outcome::Confined { what: "profile".to_owned() },
            ..ToolFailure::new(FailureCode::Confined, text, "")
        };
        return (failed(name, failure, max), None, Vec::new());
    }
    // A query of such a file is not allowed to begin with.
    let unread = match call.spec.judged_as() {
        ToolKind::Query => None,
        ToolKind::Mutation => unread(order, &call.paths, ctx.scope),
    };
    match ((works.run)(&call.typed, ctx), unread) {
        (Ok(answer), None) => placed(answer, ctx.scope).into_result(max),
        (Ok(answer), Some(why)) => without_text(placed(answer, ctx.scope), &why).into_result(max),
        (Err(failure), None) => (failed(name, failure, max), None, Vec::new()),
        (Err(failure), Some(why)) => {
            (failed(name, without_quotes(failure, &why), max), None, Vec::new())
        }
    }
}

/// The rule that keeps one of a call's files from being read, by its name or by its real path.
fn unread(order: &ToolRunRequest<'_>, named: &[String], scope: &CallScope) -> Option<String> {
    let named = named.iter().map(|name| (scope.project.join(name), trace_path(scope, name).real));
    let judged =
        order.judged.iter().map(|file| (PathBuf::from(&file.real), file.real.clone().into()));
    named.chain(judged).find_map(|(named, real)| order.denied.why(&named, &real))
}

/// The answer of a change to a file that a rule keeps from being read: its diff would show the file's text.
pub(crate) fn without_text(answer: ToolAnswer, why: &str) -> ToolAnswer {
    let mut footer = answer.footer;
    footer.push(format!("[the file's text is not shown: {why}]"));
    ToolAnswer { body: format!("{}\n", answer.summary), footer, ..answer }
}

/// The same of a failure that quotes the file.
fn without_quotes(failure: ToolFailure, why: &str) -> ToolFailure {
    let quotes = matches!(failure.code, FailureCode::NoMatch | FailureCode::Ambiguous);
    let message = "the text to replace is not in the file exactly once";
    let hint = format!("The file's text is not shown: {why}. Ask the user to make this change.");
    if quotes { ToolFailure { message: message.to_owned(), hint, ..failure } } else { failure }
}

/// The answer with the place where a person finds files that it changed in the session's `/tmp`.
fn placed(mut answer: ToolAnswer, scope: &CallScope) -> ToolAnswer {
    let changed = answer.effects.iter().filter_map(|effect| match effect {
        FileEffect::Written(path) | FileEffect::Created(path) => Some(Path::new(path)),
        FileEffect::Read(_)
        | FileEffect::Deleted(_)
        | FileEffect::Ran(_)
        | FileEffect::Signed { .. } => None,
    });
    if let Some(note) = scope.private_note(changed) {
        answer.summary.push_str(&format!("; {note}"));
        answer.footer.push(format!("[{note}]"));
    }
    answer
}

/// The resources that this process has used.
fn own_usage() -> ProcessUsage {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else {
        return ProcessUsage::default();
    };
    let ms = |time: nix::sys::time::TimeVal| time.tv_sec() * 1000 + time.tv_usec() / 1000;
    let positive = |number: i64| u64::try_from(number).unwrap_or_default();
    ProcessUsage {
        cpu_ms: positive(ms(usage.user_time()) + ms(usage.system_time())),
        peak_kib: positive(usage.max_rss()),
        written_bytes: positive(usage.block_writes()) * 512,
    }
}
