//! The end of a session: its hooks (`hook_events`), its calls, then its workers, then its actor.

use super::state::{ClosingPhase, SessionActorState};
use crate::messages::{CallMsg, SessionMsg};
use crate::worker::actor::WorkerMsg;
use crate::worker_ref::WorkerRef;
use call::CallInput;
use protocol::client::{DetachReason, SessionEnding};
use ractor::ActorRef;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How long the end of a session waits for the repair of protected files whose runners were killed.
const REPAIR: Duration = Duration::from_secs(3);
/// How long runners may take to end when a person kills the session; they need a third of it.
const KILL_GRACE: Duration = Duration::from_secs(1);

impl SessionActorState {
    /// Ends the calls, then the workers, then this actor. Calls that began and do not end in time are
    /// recorded as `may have run` when the session is opened again.
    pub(super) fn close(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        ending: SessionEnding,
        done: oneshot::Sender<()>,
    ) {
        let first = !self.closing.has_begun();
        self.closing.asked.push(done);
        if !first {
            if ending == SessionEnding::Kill && self.closing.phase == ClosingPhase::Hooks {
                self.end_processes(myself, ending);
            }
            return;
        }
        self.clients.dismiss(DetachReason::Ended, "the session was ended; it is on disk");
        self.calls.services.servers.close();
        self.tasks.sub_agents.close(ending);
        self.send_calls(|| CallMsg::Input(CallInput::Cancel));
        match ending {
            SessionEnding::Stop if self.run_end_hooks(myself) => {}
            SessionEnding::Stop | SessionEnding::Kill => self.end_processes(myself, ending),
        }
    }

    /// Ends what is left of the session.
    pub(super) fn end_processes(&mut self, myself: &ActorRef<SessionMsg>, ending: SessionEnding) {
        self.closing.phase = ClosingPhase::Processes;
        self.send_calls(|| CallMsg::Input(CallInput::Cancel));
        let calls: Vec<_> = self.calls.running.values().cloned().collect();
        let (conversation, provider) =
            (self.workers.conversation.clone(), self.workers.provider.clone());
        let store = self.workers.store.clone();
        let reserve = self.stop_reserve();
        let (myself, patience) = (myself.clone(), self.resources.times.shutdown);
        let for_runners = match ending {
            SessionEnding::Stop => patience,
            SessionEnding::Kill => patience.min(KILL_GRACE),
        };
        tokio::spawn(async move {
            // Commands end at once. All runners together have this time to restore protected files.
            wait_for(&calls, for_runners).await;
            for call in &calls {
                let _ = call.send_message(CallMsg::Input(CallInput::Overdue));
            }
            // Repair processes restore the rest; files that they do not reach are restored when the
            // session is opened again.
            wait_for(&calls, REPAIR).await;
            calls.iter().for_each(|call| call.stop(None));
            if let Some(reserve) = reserve {
                let _ = reserve.wait(Some(REPAIR)).await;
            }
            for stopped in [stop(&conversation), stop(&provider), stop(&store)] {
                let _ = tokio::time::timeout(patience + Duration::from_secs(1), stopped).await;
            }
            myself.stop(None);
        });
    }
}

/// Waits until all of these calls have ended, for at most this time.
async fn wait_for(calls: &[ActorRef<CallMsg>], time: Duration) {
    let until = Instant::now() + time;
    for call in calls {
        let left = until.saturating_duration_since(Instant::now());
        let _ = call.wait(Some(left)).await;
    }
}

fn stop<L: protocol::Link + 'static>(worker: &WorkerRef<L>) -> oneshot::Receiver<()> {
    let (done, stopped) = oneshot::channel();
    let _ = worker.actor().send_message(WorkerMsg::Stop(done));
    stopped
}
