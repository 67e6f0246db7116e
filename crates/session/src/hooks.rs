//! All hooks of a conversation, at events and after edits: which are due, which run, and what follows from their
//! answers. The table of events is in `protocol::hook`. Each run is a call that no model requested. A hook that
//! decides about a call runs before it: a hook that fails, hangs or cannot be understood lets the call not run. The
//! state follows from the events of the conversation alone, so that a replayed session runs no hook twice. Pure.
//!
//! One walk finds the next step of every event: the first hook without an answer runs, and answers are joined until one
//! of them refuses. `occasion` is one event, `asides` holds those of the supervisor, `edit_runs` formatters and verifiers, `run` tells runs apart,
//! `hook_answer` reads answers, `passed` joins those about a call.

mod asides;
mod edit_runs;
mod hook_answer;
mod occasion;
mod passed;
mod run;
#[cfg(test)]
mod tests;

use asides::Asides;
pub(crate) use edit_runs::FORMAT;
use edit_runs::RoundEdits;
use hook_answer::EndedRun;
use occasion::{Occasion, Told};
pub(crate) use passed::Passed;
pub(crate) use run::DueRun;
use run::{HookRun, due_run, files, input_of, of_event};

use crate::pending_prompt;
use crate::tool_lookup::Reader;
use crate::undo_request::UndoRequest;
use protocol::call::{Call, Outcome, ToolResult};
use protocol::context::{Compaction, CompactionCause, SummaryStep};
use protocol::hook::{BlockEffect, HookEvent, HookOccasion, HookRefusal};
use protocol::ids::CallId;
use protocol::session::{SessionEvent, SessionSetup};
use serde_json::json;

/// Most files of one call that a hook is run for, one after another.
const FILES: usize = 20;
/// So often hooks may make a turn go on that would have ended.
const CONTINUED: u32 = 5;

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
}

/// The next step of a guarded call or compaction.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HookStep {
    /// This run comes first.
    Run(DueRun),
    /// All hooks let it pass.
    Open(Passed),
    /// It does not happen, and why. No later hook runs.
    Blocked(String),
}

/// The next step of an event that the supervisor saw.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AsideStep {
    /// This run comes first.
    Run(DueRun),
    /// All have ended, or one has blocked the step.
    Ended { event: HookEvent, call: Option<u32>, refusal: Option<HookRefusal> },
}

/// The compaction that hooks are run for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Compacting {
    pub cause: CompactionCause,
    /// What a person wants the summary to be about.
    pub focus: String,
}

/// The hooks of a conversation.
#[derive(Debug, Default)]
pub(crate) struct Hooks {
    /// Files of the running round to format and to verify.
    edits: RoundEdits,
    open: Vec<(Call, HookRun)>,
    ended: Vec<EndedRun>,
    calls: Vec<RoundCall>,
    /// The prompt that the model has not answered yet.
    prompt: Option<String>,
    /// The model has answered; the turn ends unless a hook makes it go on.
    is_ending: bool,
    /// How often hooks made the turn go on.
    continued: u32,
    /// The session's first turn has begun.
    started: bool,
    /// Hooks learned of a full context since the model's newest answer.
    told_full: bool,
    /// For the person.
    notices: Vec<String>,
    /// Events whose hooks run beside the round.
    asides: Asides,
}

impl Hooks {
    /// Takes in one thing that happened; returns texts for the model.
    pub(crate) fn apply(
        &mut self,
        happened: &SessionEvent,
        setup: &SessionSetup,
        reader: Reader,
    ) -> Vec<HookText> {
        let finding = self.edits.apply(happened, &setup.tools, reader);
        let mut texts: Vec<HookText> = finding.into_iter().collect();
        match happened {
            SessionEvent::Prompt { text, expanded } => {
                self.next_round();
                // The conversation answers these itself.
                // Their output goes with the next prompt.
                let is_typed = expanded.as_ref().is_some_and(|it| it.typed_by.is_some());
                let is_sent =
                    UndoRequest::of(text).is_none() && !text.trim().is_empty() && !is_typed;
                self.prompt =
                    is_sent.then(|| pending_prompt::whole_prompt(text, expanded.as_deref()));
                (self.continued, self.told_full) = (0, false);
            }
            SessionEvent::Answer { .. } => {
                let goes_on = self.makes_go_on();
                self.next_round();
                (self.started, self.told_full) = (true, false);
                self.continued += u32::from(goes_on);
            }
            SessionEvent::TurnEnded { .. } => self.next_round(),
            SessionEvent::Called { call } => {
                if let Some(run) = HookRun::of_call(call) {
                    self.is_ending |= run.block() == Some(BlockEffect::TurnGoesOn);
                    self.asides.called(&call.id, &run.command);
                    self.open.push((call.clone(), run));
                } else if call.origin.has_hooks() {
                    self.calls.push(RoundCall { call: call.clone(), result: None });
                }
            }
            SessionEvent::Result { call, result, .. } => {
                self.asides.ended(call);
                texts.extend(self.result(call, result, setup, reader));
            }
            SessionEvent::Compacted(
                Compaction::Cut { .. }
                | Compaction::Summary(SummaryStep::Written { .. } | SummaryStep::Failed { .. }),
            ) => self.compaction_over(),
            SessionEvent::BackgroundEnded { .. }
            | SessionEvent::Joined { .. }
            | SessionEvent::Compacted(_) => {}
        }
        texts
    }

    fn next_round(&mut self) {
        let start = |ended: &EndedRun| ended.is_of(HookEvent::SessionStart);
        let started = self.started || self.ended.iter().any(start);
        let old = std::mem::take(self);
        let (edits, notices, asides) = (old.edits, old.notices, old.asides);
        let (continued, told_full) = (old.continued, old.told_full);
        let mut open = old.open;
        open.retain(|(_, run)| run.event().is_some_and(HookEvent::is_aside));
        *self =
            Self { edits, open, notices, asides, continued, started, told_full, ..Self::default() };
    }

    fn result(
        &mut self,
        id: &CallId,
        result: &ToolResult,
        setup: &SessionSetup,
        reader: Reader,
    ) -> Vec<HookText> {
        if let Some(at) = self.open.iter().position(|(open, _)| open.id == *id) {
            let (_, run) = self.open.remove(at);
            let ended = EndedRun::new(run, result);
            self.notices.extend(ended.notice());
            if let Some(call) = self.rewritten(&ended) {
                self.edits.rewritten(&call, setup, reader);
            }
            let use_id = self.answered(ended.run.about.call).map(str::to_owned);
            let text = match (ended.run.about.call, use_id) {
                (None, _) => ended.text().map(HookText::Note),
                (Some(_), Some(use_id)) => {
                    ended.text().map(|text| HookText::Result { use_id, text })
                }
                // The result comes later.
                (Some(_), None) => None,
            };
            self.ended.push(ended);
            if self.makes_go_on() && self.continued + 1 == CONTINUED {
                self.notices.push(format!(
                    "hooks made this turn go on {CONTINUED} times; they are not asked again in it"
                ));
            }
            return text.into_iter().collect();
        }
        let Some(of) = self.calls.iter_mut().find(|of| of.call.id == *id) else {
            return Vec::new();
        };
        of.result = Some(result.clone());
        // The hooks before it had no result to write to.
        let Some(use_id) = of.call.origin.use_id().map(str::to_owned) else { return Vec::new() };
        let before = self.ended.iter().filter(|ended| ended.run.about.call == Some(id.number));
        let texts = before.filter_map(EndedRun::text);
        texts.map(|text| HookText::Result { use_id: use_id.clone(), text }).collect()
    }

    /// The call with the arguments that a hook gave it.
    fn rewritten(&mut self, ended: &EndedRun) -> Option<Call> {
        let input = ended.answer.as_ref().ok()?.updated_input.as_ref()?;
        let number = ended.run.about.call.filter(|_| ended.is_of(HookEvent::PreToolUse));
        let of = self.calls.iter_mut().find(|of| Some(of.call.id.number) == number)?;
        if of.result.is_some() || ended.run.about.file.is_some() {
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

    /// The next step of an event: the first run that has not begun, or the joined answers of all.
    fn walk(&self, of: &Occasion<'_>, setup: &SessionSetup, reader: Reader) -> HookStep {
        let (call, begun) = match of.told {
            Told::Call(call, _) => (Some(call), &[][..]),
            Told::Aside(_, begun) => (None, begun),
            Told::Other(..) => (None, &[][..]),
        };
        let block = of.event.row().block;
        let guarded = call.filter(|_| block == BlockEffect::CallRefused);
        // A notification and the end of a session are about no call, and happen anew each time.
        let is_known = |run: &HookRun| !(of.event.is_aside() && run.about.call.is_none());
        // No step that hooks guard passes one that has not ended.
        let waits = matches!(block, BlockEffect::CallRefused | BlockEffect::CompactionRefused);
        let mut passed = Passed::new(call);
        let shown = of.subject();
        for hook in of_event(setup, of.event, &shown) {
            if begun.contains(&hook.command) {
                continue;
            }
            let files = match call {
                Some(call) => files(call, &passed.input, setup, reader),
                None => vec![None],
            };
            if guarded.is_some() && files.len() > FILES {
                return HookStep::Blocked(format!(
                    "the call names {} files, and hooks are run for at most {FILES}; split it",
                    files.len()
                ));
            }
            // A guard is asked about each.
            let most = guarded.map_or(FILES, |_| files.len());
            for file in files.iter().take(most) {
                let run = HookRun::of_hook(hook, of.number(), file.as_deref());
                let mut ended =
                    self.ended.iter().filter(|ended| is_known(&run) && ended.run == run);
                let Some(ended) = ended.next() else {
                    let is_open = is_known(&run) && self.open.iter().any(|(_, open)| *open == run);
                    if is_open && !waits {
                        continue;
                    }
                    let about = of.about(&passed.input, file.as_deref());
                    return HookStep::Run(due_run(hook, setup, &about));
                };
                let from = format!("{} ({})", run.label(), hook.file);
                if let Some(why) = ended.refusal(&from) {
                    return HookStep::Blocked(why);
                }
                if let Some(call) = guarded
                    && let Err(why) =
                        passed.join(ended, (&from, files.len()), (call, &shown), (setup, reader))
                {
                    return HookStep::Blocked(why);
                }
            }
        }
        HookStep::Open(passed)
    }

    /// The next step of a call that is about to be judged.
    pub(crate) fn before_call(
        &self,
        call: &Call,
        setup: &SessionSetup,
        reader: Reader,
    ) -> HookStep {
        if !call.origin.has_hooks() {
            return HookStep::Open(Passed::new(Some(call)));
        }
        let of = Occasion { event: HookEvent::PreToolUse, told: Told::Call(call, None) };
        self.walk(&of, setup, reader)
    }

    /// The runs that no call waits for, once the calls of the round have ended: hooks one by one, then
    /// formatters together, then verifiers.
    pub(crate) fn due(&self, setup: &SessionSetup, reader: Reader) -> Vec<DueRun> {
        let next = |of: Occasion<'_>| match self.walk(&of, setup, reader) {
            HookStep::Run(run) => Some(run),
            HookStep::Open(_) | HookStep::Blocked(_) => None,
        };
        match self.occasions().into_iter().find_map(next) {
            Some(run) => vec![run],
            None => self.edits.due(&setup.hooks),
        }
    }

    /// The events between calls.
    fn occasions(&self) -> Vec<Occasion<'_>> {
        let other = |event, word, about| Occasion { event, told: Told::Other(word, about) };
        if let Some(prompt) = &self.prompt {
            if self.stopped().is_some() {
                return Vec::new();
            }
            let word = "startup";
            let start = || other(HookEvent::SessionStart, word, json!({ "word": word }));
            let sent = other(HookEvent::UserPromptSubmit, "", json!({ "prompt": prompt }));
            return (!self.started).then(start).into_iter().chain([sent]).collect();
        }
        if self.is_ending && self.continued < CONTINUED {
            let about = || json!({ "continued": self.continued });
            return [HookEvent::Stop, HookEvent::SubagentStop]
                .map(|event| other(event, "", about()))
                .into();
        }
        let ended = self.calls.iter().filter_map(|RoundCall { call, result }| {
            let result = result.as_ref()?;
            Some(Occasion { event: after(result)?, told: Told::Call(call, Some(result)) })
        });
        ended.collect()
    }

    /// The first step of a compaction. The automatic ones behind one answer run their hooks once.
    pub(crate) fn begin_compaction(
        &mut self,
        of: &Compacting,
        setup: &SessionSetup,
        reader: Reader,
    ) -> HookStep {
        if of.cause == CompactionCause::Full && std::mem::replace(&mut self.told_full, true) {
            return HookStep::Open(Passed::default());
        }
        self.before_compaction(of, setup, reader)
    }

    /// The next step of a compaction. A hook that failed blocks nothing.
    pub(crate) fn before_compaction(
        &self,
        of: &Compacting,
        setup: &SessionSetup,
        reader: Reader,
    ) -> HookStep {
        let word = match of.cause {
            CompactionCause::Person => "manual",
            CompactionCause::Full => "auto",
        };
        let about = json!({ "word": word, "message": of.focus });
        let of = Occasion { event: HookEvent::PreCompact, told: Told::Other(word, about) };
        self.walk(&of, setup, reader)
    }

    /// True if a compaction that a person wants has hooks.
    pub(crate) fn has_compact_hooks(&self, setup: &SessionSetup) -> bool {
        of_event(setup, HookEvent::PreCompact, "manual").next().is_some()
    }

    /// The next compaction runs its hooks again.
    pub(crate) fn compaction_over(&mut self) {
        self.ended.retain(|ended| !ended.is_of(HookEvent::PreCompact));
    }

    /// The journal is replayed. The compaction that a run was for may follow, and does not run it again.
    /// One that a hook blocked is over.
    pub(crate) fn compaction_replayed(&mut self) {
        self.ended.retain(|ended| !ended.is_of(HookEvent::PreCompact) || !ended.blocks());
    }

    /// The supervisor saw an event.
    pub(crate) fn occurred(&mut self, occasion: HookOccasion) {
        self.asides.occurred(occasion);
    }

    /// The next step of the supervisor's events without a running hook.
    pub(crate) fn next_aside(&mut self, setup: &SessionSetup, reader: Reader) -> Option<AsideStep> {
        let (occasion, begun) = self.asides.first_idle()?;
        let (event, call) = (occasion.event, occasion.call.as_ref().map(|(number, _)| *number));
        let refusal = call.and_then(|number| self.refusal(number));
        let of = Occasion { event, told: Told::Aside(occasion, begun) };
        if refusal.is_none()
            && let HookStep::Run(run) = self.walk(&of, setup, reader)
        {
            self.asides.begin();
            return Some(AsideStep::Run(run));
        }
        self.asides.end();
        Some(AsideStep::Ended { event, call, refusal })
    }

    /// The first hook that denied a call in place of the person.
    fn refusal(&self, number: u32) -> Option<HookRefusal> {
        let denies = |ended: &&EndedRun| {
            ended.is_of(HookEvent::PermissionRequest)
                && ended.run.about.call == Some(number)
                && ended.blocks()
        };
        let EndedRun { run, answer } = self.ended.iter().find(denies)?;
        let reason = answer.as_ref().ok()?.reason.clone();
        Some(HookRefusal { command: run.command.clone(), reason })
    }

    /// True if the call runs a hook beside the round.
    pub(crate) fn runs_aside(&self, call: &CallId) -> bool {
        self.asides.runs(call)
    }

    /// The running hooks of questions about calls.
    pub(crate) fn open_about_calls(&self) -> Vec<CallId> {
        self.asides.open_about_calls()
    }

    /// A hook has refused the prompt, or has not answered about it: the model must not get it.
    pub(crate) fn prompt_is_unjudged(&self, setup: &SessionSetup) -> bool {
        let event = HookEvent::UserPromptSubmit;
        let has_passed = |hook| {
            let run = HookRun::of_hook(hook, None, None);
            self.ended.iter().any(|ended| ended.run == run)
        };
        self.prompt.is_some()
            && (self.stopped().is_some()
                || self.open.iter().any(|(_, run)| run.event() == Some(event))
                || of_event(setup, event, "").any(|hook| !has_passed(hook)))
    }

    /// True if hooks decide about prompts.
    pub(crate) fn judge_prompts(&self, setup: &SessionSetup) -> bool {
        of_event(setup, HookEvent::UserPromptSubmit, "").next().is_some()
    }

    /// Context of the session's start, for a conversation whose first prompt is left out.
    pub(crate) fn texts_of_start(&self) -> Vec<String> {
        let of_start = self.ended.iter().filter(|ended| ended.is_of(HookEvent::SessionStart));
        of_start.filter_map(EndedRun::text).collect()
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
        self.ended.iter().any(EndedRun::makes_go_on)
    }

    /// Why a hook ended the turn, if one did.
    pub(crate) fn stopped(&self) -> Option<String> {
        self.ended.iter().find_map(EndedRun::end_of_turn)
    }

    /// Notices for the person since the last time.
    pub(crate) fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    /// Runs at events that are named and have no result.
    pub(crate) fn unanswered(&self) -> Vec<Call> {
        self.open.iter().map(|(call, _)| call.clone()).collect()
    }

    /// Runs after edits that are named and have no result.
    pub(crate) fn unanswered_after_edits(&self) -> Vec<Call> {
        self.edits.unanswered()
    }
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
