//! What a client knows of its session beside the conversation: how it was opened, what changed since, and which
//! events are progress. Pure. A terminal's [`crate::Screen`] and a run's [`crate::Transcript`] have it.

use crate::screen_items::CallBlock;
use protocol::call::CallOrigin;
use protocol::client::{ClientEvent, KnownModel, ModelFacts, SettingChange, ToClient};
use protocol::confinement::{FilePath, Network};
use protocol::context::{Compaction, SummaryStep};
use protocol::hosts::HostRule;
use protocol::ids::{CallId, SessionId};
use protocol::judgement::PermissionMode;

/// Facts about a session, from its opening and from later events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFacts {
    /// Its ID.
    pub session: SessionId,
    /// The name that a person gave it; empty where none did.
    pub name: String,
    /// The vendor's name of the model.
    pub model: String,
    /// Its known limits and prices.
    pub of_model: ModelFacts,
    /// The models to choose from.
    pub models: Vec<KnownModel>,
    /// The tools that the session offers.
    pub tools: Vec<String>,
    /// The permission mode.
    pub mode: PermissionMode,
    /// Network of commands.
    pub network: Network,
    /// The hosts of its allow-list.
    pub hosts: Vec<HostRule>,
    /// The directory that calls see as /tmp.
    pub temp: FilePath,
    /// The cage of its commands, as text.
    pub sandbox: String,
    /// Settings that were not followed, one sentence each.
    pub warnings: Vec<String>,
    /// Why the session accepts no input.
    pub trouble: Option<String>,
}

impl SessionFacts {
    /// The facts of an `Opened`, and the number of the session's last record. `None` for other messages.
    pub(crate) fn of_opening(message: ToClient) -> Option<(Self, u64)> {
        let ToClient::Opened {
            session,
            name,
            model,
            facts: of_model,
            tools,
            mode,
            network,
            hosts,
            temp,
            sandbox,
            warnings,
            last_seq,
        } = message
        else {
            return None;
        };
        let trouble = None;
        let facts = Self {
            session,
            name,
            model,
            of_model,
            models: Vec::new(),
            tools,
            mode,
            network,
            hosts,
            temp,
            sandbox,
            warnings,
            trouble,
        };
        Some((facts, last_seq))
    }

    /// Takes one event in.
    pub fn update(&mut self, event: &ClientEvent) {
        if let ClientEvent::Degraded { reason } = event {
            self.trouble = Some(reason.clone());
        } else if let ClientEvent::Prompt { .. } = event {
            self.trouble = None;
        } else if let ClientEvent::Model { name, facts, models } = event {
            (self.model, self.of_model) = (name.clone(), *facts);
            self.models.clone_from(models);
        } else if let ClientEvent::Changed { change, by: _ } = event {
            self.change(change);
        }
    }

    fn change(&mut self, change: &SettingChange) {
        match change {
            SettingChange::Network(network) => self.network = *network,
            SettingChange::Host(host) => {
                self.network = Network::Listed;
                if !self.hosts.contains(host) {
                    self.hosts.push(host.clone());
                }
            }
            SettingChange::Mode(mode) => self.mode = *mode,
            // The known facts are those of the other model; the next message describes this one.
            SettingChange::Model(name) => {
                (self.model, self.of_model) = (name.clone(), ModelFacts::default());
            }
            SettingChange::AddDirectory(_)
            | SettingChange::Pin(_)
            | SettingChange::Unpin(_)
            | SettingChange::AppendedSystem(_)
            | SettingChange::CostLimit(_)
            | SettingChange::Flag(..) => {}
            SettingChange::Name(name) => self.name.clone_from(name),
        }
    }
}

/// True if the session made progress, so that losses of supervisors before do not count as a crash loop.
/// Calls that each new supervisor or conversation process makes anew are none: reads of pinned files,
/// starts of servers, hooks. `find` knows the calls that were received; the end of another is none either, since
/// each new supervisor ends those that the last one left.
pub(crate) fn is_progress<'a>(
    event: &ClientEvent,
    find: impl Fn(&CallId) -> Option<&'a CallBlock>,
) -> bool {
    use ClientEvent::{Answer, CallEnded, Compacted, InBackground, Prompt, Proposed};
    if let Proposed { call } = event {
        return is_made_once(&call.origin);
    }
    if let CallEnded { call, .. } | InBackground { call, .. } = event {
        return find(call).is_some_and(|known| is_made_once(&known.call.origin));
    }
    let is_asked = matches!(event, Compacted(Compaction::Summary(SummaryStep::Asked { .. })));
    !is_asked && matches!(event, Prompt { .. } | Answer { .. } | Compacted(_))
}

fn is_made_once(origin: &CallOrigin) -> bool {
    match origin {
        CallOrigin::Model { .. }
        | CallOrigin::PromptPart
        | CallOrigin::Undo
        | CallOrigin::Person => true,
        CallOrigin::PinnedRead
        | CallOrigin::ServerStart
        | CallOrigin::EventHook
        | CallOrigin::EditHook => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::call::Call;

    #[test]
    fn what_each_new_supervisor_repeats_is_no_progress() {
        let session = SessionId("s".to_owned());
        for (origin, expected) in [
            (CallOrigin::model("toolu_1"), true),
            (CallOrigin::Undo, true),
            (CallOrigin::PromptPart, true),
            (CallOrigin::Person, true),
            (CallOrigin::PinnedRead, false),
            (CallOrigin::ServerStart, false),
            (CallOrigin::EventHook, false),
            (CallOrigin::EditHook, false),
        ] {
            let id = CallId { session: session.clone(), number: 1 };
            let (tool, input) = ("t".to_owned(), "{}".to_owned());
            let call = Call { id: id.clone(), origin: origin.clone(), tool, input };
            let known = CallBlock::new(call.clone());
            let proposed = ClientEvent::Proposed { call };
            // A server that is ready goes to the background each time.
            let moved = ClientEvent::InBackground { call: id, text: String::new() };
            assert_eq!(is_progress(&proposed, |_| None), expected, "{origin:?}");
            assert_eq!(is_progress(&moved, |_| Some(&known)), expected, "{origin:?}");
            assert!(!is_progress(&moved, |_| None), "one that an earlier supervisor left");
        }
        let asked = ClientEvent::TurnEnded { end: protocol::session::TurnEnd::Done };
        assert!(!is_progress(&asked, |_| None));
    }
}
