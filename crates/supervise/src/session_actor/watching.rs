//! Those who look on: what they are told, and what they missed.

use super::keeping::read_all;
use super::{Glance, SessionState as Session};
use crate::book::chain;
use crate::call_actor::CallMsg;
use crate::client_actor::ClientMsg;
use crate::from_disk;
use crate::slot::SlotMsg;
use protocol::client::{Event, FailedKind, ProcessRow, SessionState, ToClient};
use ractor::ActorRef;
use tokio::sync::oneshot;

impl Session {
    pub(super) fn tell(&self, event: &Event) {
        for watcher in &self.watchers {
            let word = ToClient::Event {
                session: self.plan.id.clone(),
                seq: self.last_seq,
                event: event.clone(),
            };
            let _ = watcher.send_message(ClientMsg::Say(word));
        }
    }

    pub(super) fn tell_if(&self, event: Option<Event>) {
        if let Some(event) = event {
            self.tell(&event);
        }
    }

    pub(super) fn degraded_if(&self, reason: Option<String>) {
        if let Some(reason) = reason {
            tracing::error!(session = %self.plan.id, %reason, "degraded");
            self.tell(&Event::Degraded { reason });
        }
    }

    pub(super) async fn attach(&mut self, client: ActorRef<ClientMsg>, from: u64) {
        let directory = self.directory.clone();
        let read = tokio::task::spawn_blocking(move || read_all(&directory)).await;
        let entries = match read {
            Ok(Ok(entries)) => entries,
            Ok(Err(error)) => return refuse(&client, chain(&error)),
            Err(error) => return refuse(&client, error.to_string()),
        };
        let missed = entries.iter().filter(|entry| entry.seq >= from).filter_map(|entry| {
            let (session, seq) = (self.plan.id.clone(), entry.seq);
            let event = from_disk::event(&session, &entry.record)?;
            Some(ToClient::Event { session, seq, event })
        });
        let attached = ToClient::Attached { session: self.plan.id.clone() };
        let words = missed.chain([attached]).collect();
        let _ = client.send_message(ClientMsg::SayAll(words));
        self.watchers.push(client);
        self.degraded_if(self.degraded());
    }

    pub(super) fn glance(&self) -> Glance {
        let state = match self.degraded() {
            Some(why) => SessionState::Degraded(why),
            None if self.router.awaited() => SessionState::Working,
            None => SessionState::Idle,
        };
        Glance { state }
    }

    /// Asks all who know, without waiting for them here.
    pub(super) fn describe(&self, reply: oneshot::Sender<Vec<ProcessRow>>) {
        let (mut asked, mut answers) = (Vec::new(), Vec::new());
        let mut ask = |answer| asked.push(answer);
        let (row, answer) = oneshot::channel();
        let _ = self.conversation.send_message(SlotMsg::Describe(row));
        ask(answer);
        let (row, answer) = oneshot::channel();
        let _ = self.provider.send_message(SlotMsg::Describe(row));
        ask(answer);
        for call in self.calls.values() {
            let (row, answer) = oneshot::channel();
            let _ = call.send_message(CallMsg::Describe(row));
            ask(answer);
        }
        tokio::spawn(async move {
            for answer in asked {
                answers.extend(answer.await);
            }
            let _ = reply.send(answers);
        });
    }
}

fn refuse(client: &ActorRef<ClientMsg>, message: String) {
    let kind = FailedKind::Internal;
    let _ = client.send_message(ClientMsg::Say(ToClient::Failed { kind, message }));
}
