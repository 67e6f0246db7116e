//! Runs a hook: its standard input is a pipe, which no other process can write, and its answer is the
//! call's result, which only the conversation reads.

use super::answer::{HookAnswer, HookEnd, answer};
use super::payload::{HookSession, payload};
use crate::command::job_place::JobPlace;
use crate::command::{self, CommandSpec, FilterRun};
use crate::failure::{FailureCode, ToolFailure};
use crate::tool_context::ToolContext;
use protocol::call::Outcome;
use protocol::hidden::line_for_model;
use protocol::hook::HookEvent;
use tool_specs::ToolAnswer;
use tool_specs::hook_input::Input;

/// Most bytes that a hook may print.
const LARGEST: usize = 1 << 20;
/// The variables by which the supervisor passes facts of the session, and how their names begin.
const MODE: &str = "AGENTD_HOOK_MODE";
const AGENT: &str = "AGENTD_HOOK_AGENT";
const FACTS: &str = "AGENTD_HOOK_";

pub(crate) fn run(input: Input, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
    let Input { event: name, command, broken, timeout_ms, session, about } = input;
    let unreadable = |why: String| ToolFailure::new(FailureCode::InvalidArguments, why, "");
    if let Some(why) = broken {
        return Err(unreadable(format!("it cannot be run as it is written: {why}")));
    }
    let event =
        HookEvent::parse(&name).ok_or_else(|| unreadable(format!("there is no event {name:?}")))?;
    let env = ctx.command.as_ref().map(|side| side.env).unwrap_or_default();
    let fact =
        |wanted: &str| env.iter().find(|(name, _)| name == wanted).map(|(_, it)| it.as_str());
    let (mode, agent) = (fact(MODE).unwrap_or("ask"), fact(AGENT));
    let project = ctx.scope.project.clone();
    let shown = HookSession { id: &session, project: &project, mode, agent };
    let words = payload(event, &about, &shown).to_string() + "\n";
    let argv = ["/bin/sh", "-c", &command];
    let dir = project.to_string_lossy().into_owned();
    let wanted = CommandSpec {
        argv: argv.map(str::to_owned).to_vec(),
        text: command.clone(),
        env: vec![("CLAUDE_PROJECT_DIR".to_owned(), dir)],
        without: Some(FACTS),
        timeout_ms: Some(timeout_ms),
        place: JobPlace::Fed(words.into_bytes()),
    };
    let ran = command::filter(wanted, LARGEST, ctx);
    result(&format!("hook {name} `{}`", line_for_model(&command)), event, ran?)
}

/// The result that the conversation reads.
///
/// # Errors
/// It did not come to its end, or its answer cannot be read.
fn result(label: &str, event: HookEvent, ran: FilterRun) -> Result<ToolAnswer, ToolFailure> {
    let FilterRun { printed, said, answer: ended } = ran;
    let Outcome::Exited { code } = ended.outcome else {
        let why = ended.summary.clone();
        let failure = ToolFailure::new(ended.code.unwrap_or(FailureCode::Io), why, "");
        return Err(ToolFailure { outcome: ended.outcome, ..failure });
    };
    let no = |why: String| Err(ToolFailure::new(FailureCode::InvalidArguments, why, ""));
    let Some(stdout) = printed else {
        return no(format!("it printed more than {LARGEST} bytes"));
    };
    let stdout = String::from_utf8_lossy(&stdout);
    match answer(event, &HookEnd { code, stdout: &stdout, stderr: &said }) {
        Err(why) => no(line_for_model(&why).into_owned()),
        Ok(answer) => Ok(recorded(label, &answer, ended)),
    }
}

fn recorded(label: &str, answer: &HookAnswer, ended: ToolAnswer) -> ToolAnswer {
    let body = serde_json::to_string(answer).unwrap_or_default();
    let summary = format!("{label}: {}", line_for_model(&answer.summary()));
    ToolAnswer { effects: ended.effects, ..ToolAnswer::done(body, summary, Vec::new()) }
}
