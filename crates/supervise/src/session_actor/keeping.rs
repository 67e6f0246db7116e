//! What a session keeps: records on disk before anything they tell of, and their replay.

use super::{SessionMsg, SessionState};
use crate::book::chain;
use crate::from_disk;
use crate::route::Watched;
use crate::slot::SlotMsg;
use journal::{Entry, Record};
use protocol::client::Event;
use protocol::session::{OpenTurn, ToSession};
use ractor::ActorRef;
use std::path::Path;

impl SessionState {
    /// Keeps the records, then shows them. After a failure the session is read-only, and says so.
    pub(super) async fn record(&mut self, records: Vec<Record>) -> Result<(), String> {
        let event = |record: &Record| from_disk::event(&self.plan.id, record);
        let events: Vec<_> = records.iter().map(event).collect();
        self.record_as(records, events).await
    }

    /// The same, with what to show of each record.
    pub(super) async fn record_as(
        &mut self,
        records: Vec<Record>,
        events: Vec<Option<Event>>,
    ) -> Result<(), String> {
        if let Some(why) = &self.troubles.disk {
            return Err(why.clone());
        }
        match self.book.append(records).await {
            Ok(last) => {
                let first = last + 1 - events.len() as u64;
                for (seq, event) in (first..).zip(events) {
                    self.last_seq = seq;
                    self.tell_if(event);
                }
                Ok(())
            }
            Err(why) => {
                self.close_book(format!(
                    "it could not be written to disk: {why}. Free space or mend the disk"
                ));
                Err(why)
            }
        }
    }

    /// From now on the session is read-only, and says so.
    pub(super) fn close_book(&mut self, why: String) {
        self.troubles.disk = Some(why);
        self.degraded_if(self.degraded());
    }

    /// Tells a new conversation everything, once no call of the earlier one runs: their results
    /// belong to what it is told.
    pub(super) async fn replay_if_quiet(&mut self, myself: &ActorRef<SessionMsg>) {
        if !self.replay_due || !self.calls.is_empty() {
            return;
        }
        self.replay_due = false;
        let opener = std::mem::replace(&mut self.opener, Watched::ByNobody);
        let watched = if self.watchers.is_empty() { opener } else { Watched::BySomebody };
        let then = self.router.open_turn(watched);
        if then == OpenTurn::Waits {
            let steps = self.router.close_turn();
            self.carry_out(myself, steps).await;
        }
        let directory = self.directory.clone();
        let read = tokio::task::spawn_blocking(move || read_all(&directory)).await;
        let entries = match read {
            Ok(Ok(entries)) => entries,
            Ok(Err(error)) => return self.close_book(unread(&chain(&error))),
            Err(error) => return self.close_book(unread(&error.to_string())),
        };
        let begin = ToSession::Begin(self.plan.setup.clone());
        let replay = from_disk::replay(&self.plan.id, &entries).into_iter().map(ToSession::Replay);
        if then == OpenTurn::GoesOn {
            self.look_later(myself);
        }
        let done = ToSession::ReplayDone { then };
        let words = std::iter::once(begin).chain(replay).chain([done]);
        let _ = self.conversation.send_message(SlotMsg::SendAll(words.collect()));
    }
}

/// A conversation that is told nothing takes nothing.
fn unread(why: &str) -> String {
    format!("its records could not be read: {why}")
}

fn read_all(directory: &Path) -> Result<Vec<Entry>, journal::ReadError> {
    journal::read(directory)?.collect()
}
