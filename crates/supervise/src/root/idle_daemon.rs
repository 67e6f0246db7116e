//! Ends an idle daemon: no client is connected, and no session has work or a pending question. The
//! timer runs only while no client is connected.

use super::state::RootState;
use crate::messages::{IdleMsg, RootMsg};
use protocol::client::SessionStatus;
use ractor::ActorRef;

impl RootState {
    /// Starts the idle timer if no client is connected.
    pub(super) fn start_idle_timer(&mut self, myself: &ActorRef<RootMsg>) {
        self.stop_idle_timer();
        let (Some(time), true) = (self.settings.idle_exit, self.clients.is_empty()) else { return };
        let wait = self.idle.number;
        let timer = myself.send_after(time, move || RootMsg::Idle(IdleMsg::Over(wait)));
        self.idle.handle = Some(timer.abort_handle());
    }

    /// Stops the idle timer: a client connected, or a newer timer starts.
    pub(super) fn stop_idle_timer(&mut self) {
        self.idle.number += 1;
        if let Some(timer) = self.idle.handle.take() {
            timer.abort();
        }
    }

    /// The timer expired. It starts again while a session has unfinished work.
    pub(super) fn on_idle_timer(&mut self, myself: &ActorRef<RootMsg>, wait: u64) {
        if wait != self.idle.number || !self.clients.is_empty() {
            return;
        }
        self.start_idle_timer(myself);
        let (wait, glances, myself) = (self.idle.number, self.request_glances(), myself.clone());
        tokio::spawn(async move {
            for (_, glance) in glances {
                match glance.await.map(|glance| glance.state) {
                    Ok(
                        SessionStatus::Working
                        | SessionStatus::Background(_)
                        | SessionStatus::Asking(_),
                    ) => return,
                    Ok(
                        SessionStatus::Ended
                        | SessionStatus::Idle
                        | SessionStatus::Degraded(_)
                        | SessionStatus::Unreadable(_)
                        | SessionStatus::CutShort(_)
                        | SessionStatus::IdleCutShort(_),
                    )
                    | Err(_) => {}
                }
            }
            let _ = myself.send_message(RootMsg::Idle(IdleMsg::Confirmed(wait)));
        });
    }
}
