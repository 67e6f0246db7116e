//! Has hooks run beside the calls of a round, for events that the supervisor sees: part of
//! [`Session`]. Called by [`Session::step`].

use super::{Outputs, Session};
use crate::event_hooks::AsideStep;
use protocol::call::{CallOrigin, ToolResult};
use protocol::hook::HookOccasion;
use protocol::ids::CallId;
use protocol::session::{FromSession, SessionEvent};

impl Session {
    /// Runs the hooks of an event.
    pub(super) fn hooks_due(&mut self, occasion: HookOccasion, out: &mut Outputs) {
        self.event_hooks.occurred(occasion);
        // The journal tells which of them have run, so they begin behind its end.
        if !self.is_replaying() {
            self.go_on_aside(out);
        }
    }

    /// Starts servers that are due and the next hook of each event, and reports the events whose hooks
    /// have ended.
    pub(super) fn go_on_aside(&mut self, out: &mut Outputs) {
        self.start_servers(out);
        while let Some(step) = self.event_hooks.next_aside(&self.setup) {
            match step {
                AsideStep::Run(tool, input) => {
                    let call = self.name_own(CallOrigin::EventHook, tool, input, out);
                    self.event_hooks.aside_runs(&call.id);
                    out.words.push(FromSession::Run { call, note: None, asked: None });
                }
                AsideStep::Ended { event, call, refusal } => {
                    out.words.push(FromSession::HooksEnded { event, call, refusal });
                }
            }
        }
    }

    /// A hook beside the round ended; its result is durable.
    pub(super) fn aside_ended(&mut self, call: CallId, result: ToolResult, out: &mut Outputs) {
        self.take_in(&SessionEvent::ended(call, CallOrigin::EventHook, result));
        for text in self.event_hooks.take_notices() {
            out.words.push(FromSession::Notice { text });
        }
        self.go_on_aside(out);
    }

    /// A person stops the turn: no question is put any more.
    pub(super) fn cancel_asides(&self, out: &mut Outputs) {
        out.words
            .extend(self.event_hooks.open_about_calls().into_iter().map(FromSession::CancelCall));
    }
}
