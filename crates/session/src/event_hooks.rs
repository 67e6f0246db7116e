//! Hooks at events of the session. Each run is a call that no model requested. A hook that decides
//! about a call runs before it: a hook that fails, hangs or cannot be understood lets the call not
//! run. The state follows from the events alone, so that a replayed session runs no hook twice. Pure.

mod aside;
mod compaction;
mod guard;
mod subject;

use aside::Aside;
pub(crate) use aside::AsideStep;
pub(crate) use compaction::{BeforeCompaction, Compacting};
pub(crate) use guard::Guarded;
use subject::{input_of, subject};

use crate::hook_answer::{self, HookAnswer, HookDecision};
use crate::pending_prompt;
use crate::tool_lookup::Reader;
use crate::undo::UndoRequest;
use protocol::call::{Call, CallOrigin, Outcome, ToolResult};
use protocol::context::Compaction;
use protocol::hook::{BlockEffect, EventHook, HookEvent};
use protocol::ids::CallId;
use protocol::session::{SessionEvent, SessionSetup};
use serde::Deserialize;
use serde_json::{Value, json};

/// Most files of one call that a hook is run for, one after another.
const FILES: usize = 20;
/// Most characters of a result that a hook is given.
const RESULT: usize = 100_000;
/// So often hooks may make a turn go on that would have ended.
const CONTINUED: u32 = 5;

/// The arguments of a hook's run that identify it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct HookRun {
    event: String,
    command: String,
    #[serde(default)]
    broken: Option<String>,
    about: RunSubject,
}

/// The subject of the run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct RunSubject {
    call: Option<u32>,
    file: Option<String>,
}

impl HookRun {
    fn of(call: &Call) -> Option<Self> {
        let of_hook = call.origin == CallOrigin::EventHook;
        of_hook.then(|| serde_json::from_str(&call.input).ok()).flatten()
    }

    fn event(&self) -> Option<HookEvent> {
        HookEvent::parse(&self.event)
    }

    /// The effect of an answer that blocks.
    fn block(&self) -> Option<BlockEffect> {
        self.event().map(|event| event.row().block)
    }

    fn label(&self) -> String {
        format!("the {} hook `{}`", self.event, self.command)
    }
}

/// A call of the running round, and its result.
#[derive(Debug)]
struct RoundCall {
    call: Call,
    result: Option<ToolResult>,
}

/// Text of hooks for the model.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HookText {
    /// In the result of the call with this id.
    Result { use_id: String, text: String },
    /// With the prompt, or behind the answer.
    Note(String),
    /// This call has other arguments than the model named: what follows it is about these.
    Rewritten(Call),
}

/// The hook runs of the running round.
#[derive(Debug, Default)]
pub(crate) struct EventHooks {
    open: Vec<(Call, HookRun)>,
    ended: Vec<(HookRun, Result<HookAnswer, String>)>,
    calls: Vec<RoundCall>,
    /// The prompt that the model has not answered yet.
    prompt: Option<String>,
    /// The model has answered; the turn ends unless a hook makes it go on.
    is_ending: bool,
    /// How often hooks made the turn go on.
    continued: u32,
    /// The session's first turn has begun.
    started: bool,
    /// A hook ended the turn, for this reason.
    stopped: Option<String>,
    /// For the person.
    notices: Vec<String>,
    /// Events whose hooks run beside the round.
    asides: Vec<Aside>,
}

impl EventHooks {
    /// Takes in one thing that happened; returns texts for results that are there.
    pub(crate) fn apply(&mut self, happened: &SessionEvent) -> Vec<HookText> {
        match happened {
            SessionEvent::Prompt { text, expanded } => {
                self.next_round();
                // The conversation answers these itself.
                let is_sent = UndoRequest::of(text).is_none() && !text.trim().is_empty();
                self.prompt =
                    is_sent.then(|| pending_prompt::whole_prompt(text, expanded.as_deref()));
                self.continued = 0;
                Vec::new()
            }
            SessionEvent::Answer { .. } => {
                let goes_on = self.makes_go_on();
                self.next_round();
                self.started = true;
                if goes_on {
                    self.continued += 1;
                }
                Vec::new()
            }
            SessionEvent::TurnEnded { .. } => {
                self.next_round();
                Vec::new()
            }
            SessionEvent::Called { call } => {
                if let Some(run) = HookRun::of(call) {
                    self.is_ending |= run.block() == Some(BlockEffect::TurnGoesOn);
                    self.open.push((call.clone(), run));
                } else if call.origin.is_model() {
                    self.calls.push(RoundCall { call: call.clone(), result: None });
                }
                Vec::new()
            }
            SessionEvent::Result { call, result, .. } => self.result(call, result),
            SessionEvent::Compacted(
                Compaction::Cut { .. }
                | Compaction::Summarized { .. }
                | Compaction::SummaryFailed { .. },
            ) => {
                self.compaction_over();
                Vec::new()
            }
            SessionEvent::BackgroundEnded { .. } | SessionEvent::Compacted(_) => Vec::new(),
        }
    }

    fn next_round(&mut self) {
        let start = |(run, _): &(HookRun, _)| run.event() == Some(HookEvent::SessionStart);
        let started = self.started || self.ended.iter().any(start);
        let (notices, asides) =
            (std::mem::take(&mut self.notices), std::mem::take(&mut self.asides));
        let mut open = std::mem::take(&mut self.open);
        open.retain(|(_, run)| run.event().is_some_and(HookEvent::is_aside));
        *self =
            Self { open, notices, asides, continued: self.continued, started, ..Self::default() };
    }

    /// A hook has refused the prompt, or has not answered about it: the model must not get it.
    pub(crate) fn prompt_is_unjudged(&self, setup: &SessionSetup) -> bool {
        let event = HookEvent::UserPromptSubmit;
        let has_passed = |hook| self.ended.iter().any(|(run, _)| *run == run_of(hook, None, None));
        self.prompt.is_some()
            && (self.stopped.is_some()
                || self.open.iter().any(|(_, run)| run.event() == Some(event))
                || of_event(setup, event, "").any(|hook| !has_passed(hook)))
    }

    /// Context of the session's start, for a conversation whose first prompt is left out.
    pub(crate) fn texts_of_start(&self) -> Vec<String> {
        let of_start = |(run, _): &&(HookRun, _)| run.event() == Some(HookEvent::SessionStart);
        let all = self.ended.iter().filter(of_start);
        all.filter_map(|(run, answer)| text_of(run, answer)).collect()
    }

    /// The turn would end now: the hooks of that event are due.
    pub(crate) fn turn_ends(&mut self) {
        self.is_ending = true;
    }

    /// The turn is ending, and its hooks were asked.
    pub(crate) fn is_ending(&self) -> bool {
        self.is_ending
    }

    /// A hook makes the turn go on that would have ended.
    pub(crate) fn makes_go_on(&self) -> bool {
        self.ended.iter().any(|(run, answer)| {
            run.block() == Some(BlockEffect::TurnGoesOn)
                && answer.as_ref().is_ok_and(|answer| answer.verdict == HookDecision::Block)
        })
    }

    /// Why the hook's end ends the turn.
    fn end_of_turn(run: &HookRun, answer: &Result<HookAnswer, String>) -> Option<String> {
        let label = run.label();
        let refuses = run.event() == Some(HookEvent::UserPromptSubmit);
        match answer {
            // The turn ends by itself.
            _ if run.block() == Some(BlockEffect::TurnGoesOn) || ends_nothing(run) => None,
            Ok(HookAnswer { verdict: HookDecision::Stop, reason, .. }) => {
                Some(format!("{label}: {reason}"))
            }
            Ok(HookAnswer { verdict: HookDecision::Block, reason, .. }) if refuses => {
                Some(format!("{label} refuses the prompt: {reason}"))
            }
            Ok(_) => None,
            Err(why) if refuses => Some(format!(
                "{label} failed: {why}. A hook that decides about a prompt and fails lets it not \
                 be sent"
            )),
            Err(_) => None,
        }
    }

    fn result(&mut self, id: &CallId, result: &ToolResult) -> Vec<HookText> {
        if let Some(at) = self.open.iter().position(|(open, _)| open.id == *id) {
            let (_, run) = self.open.remove(at);
            let answer = hook_answer::read(result);
            self.notice(&run, &answer);
            self.stopped = self.stopped.take().or_else(|| Self::end_of_turn(&run, &answer));
            let rewritten = self.rewritten(&run, &answer).map(HookText::Rewritten);
            self.ended.push((run, answer));
            if self.makes_go_on() && self.continued + 1 == CONTINUED {
                self.notices.push(format!(
                    "hooks made this turn go on {CONTINUED} times; they are not asked again in it"
                ));
            }
            let (run, answer) = &self.ended[self.ended.len() - 1];
            if run.about.call.is_none() {
                return text_of(run, answer).map(HookText::Note).into_iter().collect();
            }
            let of_result = |use_id: &str| {
                let use_id = use_id.to_owned();
                text_of(run, answer).map(|text| HookText::Result { use_id, text })
            };
            let text = self.answered(run.about.call).and_then(of_result);
            return rewritten.into_iter().chain(text).collect();
        }
        let Some(of) = self.calls.iter_mut().find(|of| of.call.id == *id) else {
            return Vec::new();
        };
        of.result = Some(result.clone());
        // The hooks before it had no result to write to.
        let Some(use_id) = of.call.origin.use_id().map(str::to_owned) else { return Vec::new() };
        let number = Some(id.number);
        let before = self.ended.iter().filter(|(run, _)| run.about.call == number);
        let texts = before.filter_map(|(run, answer)| text_of(run, answer));
        texts.map(|text| HookText::Result { use_id: use_id.clone(), text }).collect()
    }

    /// The call with the arguments that a hook gave it.
    fn rewritten(&mut self, run: &HookRun, answer: &Result<HookAnswer, String>) -> Option<Call> {
        let input = answer.as_ref().ok()?.updated_input.as_ref()?;
        let number = run.about.call.filter(|_| run.event() == Some(HookEvent::PreToolUse));
        let of = self.calls.iter_mut().find(|of| Some(of.call.id.number) == number)?;
        if of.result.is_some() || run.about.file.is_some() {
            return None;
        }
        of.call.input = input_of(&of.call, input);
        Some(of.call.clone())
    }

    /// The model's id of a call with a result.
    fn answered(&self, number: Option<u32>) -> Option<&str> {
        let of = self.calls.iter().find(|of| Some(of.call.id.number) == number)?;
        of.call.origin.use_id().filter(|_| of.result.is_some())
    }

    fn notice(&mut self, run: &HookRun, answer: &Result<HookAnswer, String>) {
        let label = run.label();
        match answer {
            Ok(answer) if !answer.message.is_empty() => {
                self.notices.push(format!("{label} says: {}", answer.message));
            }
            Ok(answer) if !answer.failed.is_empty() => {
                self.notices.push(format!("{label} failed: {}", answer.failed));
            }
            // The compaction names its own.
            Ok(_) if run.event() == Some(HookEvent::PreCompact) => {}
            // The model does not learn of these events.
            Ok(answer) if !answer.reason.is_empty() && ends_nothing(run) => {
                self.notices.push(format!("{label} says: {}", answer.reason));
            }
            Ok(_) => {}
            Err(why) => self.notices.push(format!("{label} failed: {why}")),
        }
    }

    /// Notices for the person since the last time.
    pub(crate) fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    /// Why a hook ended the turn, if one did.
    pub(crate) fn stopped(&self) -> Option<&str> {
        self.stopped.as_deref()
    }

    /// Runs named so far without a result, those that decide about a call apart.
    pub(crate) fn unanswered(&self) -> Vec<Call> {
        self.open.iter().map(|(call, _)| call.clone()).collect()
    }

    /// The next run that no call waits for: a tool and its arguments.
    pub(crate) fn due(
        &self,
        setup: &SessionSetup,
        reader: Reader,
    ) -> Option<(&'static str, String)> {
        let of_turn = |event, word, about: Value| {
            let hook =
                of_event(setup, event, word).find(|hook| !self.has_begun(hook, None, None))?;
            Some((event.tool(), arguments(hook, setup, about)))
        };
        match (&self.prompt, self.stopped.is_some()) {
            (Some(_), true) => return None,
            (Some(prompt), false) => {
                let (event, word) = (HookEvent::SessionStart, "startup");
                let start = || of_turn(event, word, json!({ "word": word }));
                let first = if self.started { None } else { start() };
                let about = json!({ "prompt": prompt });
                return first.or_else(|| of_turn(HookEvent::UserPromptSubmit, "", about));
            }
            (None, _) => {}
        }
        if self.is_ending && self.continued < CONTINUED {
            let about = || json!({ "continued": self.continued });
            let stop = of_turn(HookEvent::Stop, "", about());
            return stop.or_else(|| of_turn(HookEvent::SubagentStop, "", about()));
        }
        self.due_after(setup, reader)
    }

    fn has_begun(&self, hook: &EventHook, call: Option<u32>, file: Option<&str>) -> bool {
        let key = run_of(hook, call, file);
        let ended = self.ended.iter().map(|(run, _)| run);
        ended.chain(self.open.iter().map(|(_, run)| run)).any(|run| *run == key)
    }

    /// The next run behind the calls of the round.
    fn due_after(&self, setup: &SessionSetup, reader: Reader) -> Option<(&'static str, String)> {
        self.calls.iter().find_map(|RoundCall { call, result }| {
            let result = result.as_ref()?;
            let event = after(result)?;
            of_event(setup, event, &subject(&call.tool, &call.input).0).find_map(|hook| {
                let files = files(call, &call.input, setup, reader);
                files.iter().take(FILES).find_map(|file| {
                    if self.has_begun(hook, Some(call.id.number), file.as_deref()) {
                        return None;
                    }
                    let mut about =
                        about_call((call.id.number, &call.tool), &call.input, file.as_deref());
                    about["result"] = result.text.chars().take(RESULT).collect::<String>().into();
                    Some((event.tool(), arguments(hook, setup, about)))
                })
            })
        })
    }
}

/// True if hooks of the event only learn of it.
fn ends_nothing(run: &HookRun) -> bool {
    matches!(run.block(), Some(BlockEffect::PersonLearns | BlockEffect::CompactionRefused))
}

/// The event behind a call that ran.
fn after(result: &ToolResult) -> Option<HookEvent> {
    match result.outcome {
        Outcome::Denied | Outcome::Refused { .. } | Outcome::Invalid | Outcome::NeverStarted => {
            None
        }
        Outcome::Done
        | Outcome::Exited { .. }
        | Outcome::Failed
        | Outcome::Signalled { .. }
        | Outcome::TimedOut
        | Outcome::Confined { .. }
        | Outcome::OutOfMemory
        | Outcome::Crashed
        | Outcome::Interrupted => Some(match result.is_error {
            true => HookEvent::PostToolUseFailure,
            false => HookEvent::PostToolUse,
        }),
    }
}

/// The hooks of an event of this subject. Of equal commands one runs.
fn of_event<'a>(
    setup: &'a SessionSetup,
    event: HookEvent,
    subject: &'a str,
) -> impl Iterator<Item = &'a EventHook> {
    let all = &setup.hooks.events;
    all.iter().enumerate().filter_map(move |(at, hook)| {
        let again = |other: &&EventHook| {
            other.is_for(event, subject)
                && (&other.command, &other.broken) == (&hook.command, &hook.broken)
        };
        let fits = hook.is_for(event, subject) && !all[..at].iter().any(|other| again(&other));
        fits.then_some(hook)
    })
}

fn run_of(hook: &EventHook, call: Option<u32>, file: Option<&str>) -> HookRun {
    HookRun {
        event: hook.event.name().to_owned(),
        command: hook.command.clone(),
        broken: hook.broken.clone(),
        about: RunSubject { call, file: file.map(str::to_owned) },
    }
}

/// A hook is run once for each file of a call that names several.
fn files(call: &Call, input: &str, setup: &SessionSetup, reader: Reader) -> Vec<Option<String>> {
    match reader(&call.tool, input, &setup.project) {
        Ok(read) if read.paths.len() > 1 => read.paths.into_iter().map(Some).collect(),
        Ok(_) | Err(_) => vec![None],
    }
}

fn about_call((number, tool): (u32, &str), input: &str, file: Option<&str>) -> Value {
    let (tool, input) = subject(tool, input);
    let mut about = json!({ "call": number, "tool": tool, "input": input });
    if let Some(file) = file {
        about["file"] = file.into();
    }
    about
}

fn arguments(hook: &EventHook, setup: &SessionSetup, about: Value) -> String {
    json!({
        "event": hook.event.name(),
        "command": hook.command,
        "broken": hook.broken,
        "timeout_ms": hook.timeout_ms,
        "session": setup.id.0,
        "about": about,
    })
    .to_string()
}

/// The part of an answer that goes into a call's result.
fn text_of(run: &HookRun, answer: &Result<HookAnswer, String>) -> Option<String> {
    let answer = answer.as_ref().ok()?;
    if run.event().is_some_and(HookEvent::is_aside) || ends_nothing(run) {
        return None;
    }
    let blocks = matches!(answer.verdict, HookDecision::Block | HookDecision::Stop);
    // Why a call did not run is its result.
    let is_for_model =
        matches!(run.block(), Some(BlockEffect::ModelLearns | BlockEffect::TurnGoesOn));
    let reason = if blocks && is_for_model { answer.reason.as_str() } else { "" };
    let parts: Vec<&str> =
        [reason, answer.context.as_str()].into_iter().filter(|part| !part.is_empty()).collect();
    (!parts.is_empty()).then(|| format!("{} says: {}", run.label(), parts.join("\n")))
}
