//! When a daemon ends by itself: nobody is attached, and nothing runs or waits for an answer. One
//! timer while nobody is there, and none while somebody is.

use super::RootState;
use crate::messages::RootMsg;
use protocol::client::SessionState;
use ractor::ActorRef;

impl RootState {
    /// Begins to wait, if nobody is there.
    pub(super) fn start_idle_timer(&mut self, myself: &ActorRef<RootMsg>) {
        self.stop_idle_timer();
        let (Some(time), true) = (self.settings.idle_exit, self.clients.is_empty()) else { return };
        let wait = self.wait;
        let timer = myself.send_after(time, move || RootMsg::IdleTimer(wait));
        self.waiting = Some(timer.abort_handle());
    }

    /// Somebody came, or a newer wait begins.
    pub(super) fn stop_idle_timer(&mut self) {
        self.wait += 1;
        if let Some(timer) = self.waiting.take() {
            timer.abort();
        }
    }

    /// Nobody came. While work is not finished, the wait begins again.
    pub(super) fn on_idle_timer(&mut self, myself: &ActorRef<RootMsg>, wait: u64) {
        if wait != self.wait || !self.clients.is_empty() {
            return;
        }
        self.start_idle_timer(myself);
        let (wait, glances, myself) = (self.wait, self.request_glances(), myself.clone());
        tokio::spawn(async move {
            for (_, glance) in glances {
                match glance.await.map(|glance| glance.state) {
                    Ok(SessionState::Working | SessionState::Asking(_)) => return,
                    Ok(
                        SessionState::Ended
                        | SessionState::Idle
                        | SessionState::Degraded(_)
                        | SessionState::Unreadable(_)
                        | SessionState::CutShort(_)
                        | SessionState::IdleCutShort(_),
                    )
                    | Err(_) => {}
                }
            }
            let _ = myself.send_message(RootMsg::IdleConfirmed(wait));
        });
    }
}
