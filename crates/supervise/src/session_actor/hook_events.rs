//! Events that the supervisor sees and whose hooks the conversation has run: a question, a notification,
//! the end of the session. A hook may deny a call before a person is asked; the person is asked in any
//! other case, also where the hook or the conversation's process fails.

use super::state::{ClosingPhase, SessionActorState};
use crate::messages::{SessionMsg, SessionTimer};
use call::CallInput;
use protocol::broker::ToBroker;
use protocol::call::{Call, CallOrigin};
use protocol::client::SessionEnding;
use protocol::hook::{HookEvent, HookOccasion, HookRefusal};
use protocol::judgement::{Audience, Basis, Question, Rule, RuleEffect, Verdict};
use protocol::session::ToSession;
use ractor::ActorRef;
use setup::server_tools;
use std::time::Duration;

/// Notifications by Claude Code's words: a question waits, and a session waits for a prompt.
pub(super) const PERMISSION_PROMPT: &str = "permission_prompt";
const IDLE_PROMPT: &str = "idle_prompt";
/// All hooks of the end together have this time, of the ten seconds that a shutdown takes at most.
const END_HOOKS: Duration = Duration::from_secs(4);

impl SessionActorState {
    /// A call needs a person's answer. Its hooks come first; the run of a hook has none.
    pub(super) fn on_question(&mut self, question: Question) {
        // Hooks judge calls. A server's question is about none.
        if HookEvent::is_run_by(&question.tool) || question.is_of_server() {
            return self.put_question(question);
        }
        let occasion = HookOccasion {
            event: HookEvent::PermissionRequest,
            subject: server_tools::called(&question.tool, &question.input)
                .unwrap_or_else(|| question.tool.clone()),
            call: Some((question.call.number, question.input.clone())),
            message: String::new(),
        };
        match self.run_hooks_of(occasion) {
            true => self.questions.hold(question),
            false => self.put_question(question),
        }
    }

    /// Runs the hooks of a notification.
    pub(super) fn notify(&self, word: &str, message: String) {
        let (event, subject) = (HookEvent::Notification, word.to_owned());
        self.run_hooks_of(HookOccasion { event, subject, call: None, message });
    }

    /// A turn has ended: people are notified if they give no prompt for some time.
    pub(super) fn notify_if_idle_later(&self) {
        self.look_at_protected();
        let of_person = self.spec.rules.audience == Audience::Person && self.spec.task().is_none();
        if of_person && self.has_hooks(HookEvent::Notification, IDLE_PROMPT) {
            let time = Duration::from_millis(self.spec.config.hooks.idle_ms);
            let turns = self.turn.router.turns();
            self.own.send_after(time, move || SessionMsg::Timer(SessionTimer::Idle { turns }));
        }
    }

    pub(super) fn on_idle(&self, turns: u32) {
        if self.turn.router.turns() == turns && !self.turn.router.is_busy() {
            self.notify(IDLE_PROMPT, "agentd waits for your prompt".to_owned());
        }
    }

    /// Runs the hooks of the session's end; false if there are none. A session that ends in the middle
    /// of a turn is cut short, and its hooks do not run.
    pub(super) fn run_end_hooks(&mut self, myself: &ActorRef<SessionMsg>) -> bool {
        let occasion = HookOccasion {
            event: HookEvent::SessionEnd,
            subject: "other".to_owned(),
            call: None,
            message: String::new(),
        };
        let runs = !self.turn.router.is_busy() && self.run_hooks_of(occasion);
        if runs {
            self.closing.phase = ClosingPhase::Hooks;
            myself.send_after(END_HOOKS, || SessionMsg::Timer(SessionTimer::EndHooks));
        }
        runs
    }

    /// True if a call may begin: in a session that ends, only a hook of that end.
    pub(super) fn may_start(&self, call: &Call) -> bool {
        let of_end =
            call.origin == CallOrigin::EventHook && call.tool == HookEvent::SessionEnd.tool();
        !self.closing.has_begun() || (self.closing.phase == ClosingPhase::Hooks && of_end)
    }

    /// The hooks of the end have ended, or are not awaited any longer.
    pub(super) fn end_hooks_over(&mut self, myself: &ActorRef<SessionMsg>) {
        if self.closing.phase == ClosingPhase::Hooks {
            self.end_processes(myself, SessionEnding::Stop);
        }
    }

    pub(super) fn on_hooks_ended(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        event: HookEvent,
        call: Option<u32>,
        refusal: Option<HookRefusal>,
    ) {
        match event {
            HookEvent::PermissionRequest => {
                let question = call.and_then(|call| self.questions.released(call));
                match (question, refusal) {
                    (Some(question), Some(refusal)) => self.deny_for_hook(&question, &refusal),
                    (Some(question), None) => self.put_question(question),
                    (None, _) => {}
                }
            }
            HookEvent::SessionEnd => self.end_hooks_over(myself),
            HookEvent::PreToolUse
            | HookEvent::PostToolUse
            | HookEvent::PostToolUseFailure
            | HookEvent::UserPromptSubmit
            | HookEvent::SessionStart
            | HookEvent::Stop
            | HookEvent::SubagentStop
            | HookEvent::PreCompact
            | HookEvent::Notification => {}
        }
    }

    /// The conversation's process ended: it answers for no hooks any more. It is replayed once no call
    /// waits, so the calls whose hooks ran are asked about now.
    pub(super) fn hooks_lost(&mut self, myself: &ActorRef<SessionMsg>) {
        for question in self.questions.release_all() {
            self.put_question(question);
        }
        self.end_hooks_over(myself);
    }

    /// The hook's entry in the configuration is the rule that denies the call.
    fn deny_for_hook(&self, question: &Question, refusal: &HookRefusal) {
        let HookRefusal { command, reason } = refusal;
        let mut known = self.spec.config.hooks.commands.iter();
        let known = known
            .find(|known| known.event == HookEvent::PermissionRequest && known.command == *command);
        let basis = match known {
            Some(known) => Basis::Rule(Rule { effect: RuleEffect::Deny, ..known.by.clone() }),
            None => Basis::Unjudgeable("a hook denied it".to_owned()),
        };
        let text = format!(
            "The call was not run: the PermissionRequest hook `{command}` denied it: {reason}"
        );
        self.workers.broker.send(ToBroker::Forget(question.call.clone()));
        self.calls.send(&question.call, CallInput::Verdict(Verdict::Deny(basis, text)));
    }

    fn has_hooks(&self, event: HookEvent, subject: &str) -> bool {
        self.spec.setup.hooks.events.iter().any(|hook| hook.is_for(event, subject))
    }

    /// Has the conversation run the hooks of an event; false if none of them runs.
    fn run_hooks_of(&self, occasion: HookOccasion) -> bool {
        let runs = self.has_hooks(occasion.event, &occasion.subject)
            && self.degraded().is_none()
            && self.links.replay.has_started();
        if runs {
            self.send_conversation(ToSession::HooksDue(occasion));
        }
        runs
    }
}
