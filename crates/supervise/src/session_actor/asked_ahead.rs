//! Questions about commands that wait behind other calls of their answer: the person who reads the first question is
//! asked about all of them. Nothing runs by the answer: the broker keeps it, and judges the call anew at its turn.

use super::hook_events;
use super::questions::{AnswersLost, TurnThen};
use super::session_calls::CallSurroundings;
use super::state::SessionActorState;
use crate::records::{decode, encode};
use crate::route::Router;
use crate::unix_time::now_ms;
use protocol::broker::ToBroker;
use protocol::call::Call;
use protocol::client::ClientEvent;
use protocol::ids::CallId;
use protocol::judgement::{Question, Verdict};

/// Asks about a call, if it is a command that a person would be asked about.
pub(super) async fn ask(state: &mut SessionActorState, call: Call) {
    if !state.closing.may_start(&call) || !state.calls.unjudged.is_proposed(&call) {
        return;
    }
    let around = CallSurroundings {
        spec: &state.spec,
        resources: &state.resources,
        journal: state.events.directory(),
        workers: &state.workers,
        failures: &state.events.failures,
        session: &state.own,
    };
    let Some(case) = state.calls.case_ahead(call, &around).await else { return };
    state.questions.hold_ahead(case);
    // The call before it may be asked about already.
    if state.questions.waiting() > 0 {
        put(state);
    }
}

/// People see the question of a call, or it has a verdict: those behind it follow.
pub(super) fn put(state: &mut SessionActorState) {
    for case in state.questions.put_ahead() {
        state.workers.broker.send(ToBroker::JudgeAhead(Box::new(case)));
    }
}

/// A question about a call that waits, or what was said about it. Its turn may have come meanwhile: it is judged then.
pub(super) async fn on_verdict(state: &mut SessionActorState, call: CallId, verdict: Verdict) {
    let then = state.follow(&call, &verdict).await;
    let waits = state.questions.is_ahead(&call);
    match verdict {
        Verdict::Ask(_) if !waits => {}
        Verdict::Ask(question) if hook_events::has_request_hooks(&state.spec, &question) => {
            // Its hooks run at its turn, before a person is asked.
            state.workers.broker.send(ToBroker::Forget(call));
        }
        Verdict::Ask(question) => {
            let wait = state.spec.config().daemon.question_deadline_ms;
            let deadline = now_ms().saturating_add(wait);
            state.put_question(Question { deadline, ..question });
        }
        Verdict::Allow(_) | Verdict::Deny(..) if !waits => {}
        Verdict::Allow(ref basis) | Verdict::Deny(ref basis, _) => {
            state.questions.answered_ahead(&call);
            let basis = decode::describe_basis(&encode::basis(basis));
            let allowed = matches!(verdict, Verdict::Allow(_));
            state.events.show(&ClientEvent::Decided { call, allowed, basis });
        }
    }
    if then == TurnThen::Stops {
        state.route(Router::interrupt).await;
    }
}

/// A new broker knows neither the questions nor the answers.
pub(super) fn put_again(state: &mut SessionActorState) {
    if state.questions.hold_ahead_again() == AnswersLost::Some {
        let text = "the broker was restarted: what you answered before its turn is asked again";
        state.events.show_notice(text.to_owned());
    }
    put(state);
}

/// The turn has ended: no call waits any more.
pub(super) fn close(state: &mut SessionActorState) {
    for call in state.questions.take_ahead() {
        state.questions.close(&call);
        state.workers.broker.send(ToBroker::Forget(call));
    }
}
