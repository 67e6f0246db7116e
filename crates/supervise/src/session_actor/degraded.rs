//! What keeps a session from taking anything more: its disk, its conversation, its provider. It
//! can be read all the while; the last two are given another try by `agentd restart`.

use super::SessionState;
use crate::slot::SlotMsg;
use protocol::ids::SessionId;

/// Why a session takes nothing more, each cause by itself.
#[derive(Debug, Default)]
pub(super) struct Troubles {
    /// The journal takes no more, and why.
    pub(super) disk: Option<String>,
    /// The conversation's process will not come back by itself, and why.
    conversation: Option<String>,
    /// The provider's likewise.
    provider: Option<String>,
}

impl Troubles {
    /// The sentence for people: what is wrong, what still works, and the way on.
    fn reason(&self, session: &SessionId) -> Option<String> {
        let read_only = "this session can be read but takes nothing more, because";
        match (&self.disk, &self.conversation, &self.provider) {
            (Some(why), _, _) => Some(format!("{read_only} {why}; then open it again")),
            (None, Some(why), _) => Some(format!(
                "{read_only} its conversation cannot go on: {why}. `agentd restart {session}` tries \
                 again"
            )),
            (None, None, Some(why)) => Some(format!(
                "{read_only} nothing can ask the model: {why}. `agentd restart {session}` tries again"
            )),
            (None, None, None) => None,
        }
    }
}

impl SessionState {
    /// Why nothing more is taken, if so, with the way on.
    pub(super) fn degraded(&self) -> Option<String> {
        self.troubles.reason(&self.plan.id)
    }

    pub(super) fn conversation_failed(&mut self, why: String) {
        self.troubles.conversation = Some(why);
        self.degraded_if(self.degraded());
    }

    pub(super) fn provider_failed(&mut self, why: String) {
        self.troubles.provider = Some(why);
        self.degraded_if(self.degraded());
    }

    /// Starts what has failed again. A disk is mended outside, and the session opened anew.
    pub(super) fn restart(&mut self) {
        self.troubles.conversation = None;
        self.troubles.provider = None;
        let _ = self.conversation.send_message(SlotMsg::Forgive);
        let _ = self.provider.send_message(SlotMsg::Forgive);
        let _ = self.store.slot.send_message(SlotMsg::Forgive);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_trouble_has_its_sentence_and_its_way_on() {
        let session = SessionId("3f2a91c0d4e5".into());
        let why = || Some("it is gone".to_owned());
        let said = |troubles: Troubles| troubles.reason(&session);
        assert_eq!(said(Troubles::default()), None);
        let disk = said(Troubles { disk: why(), ..Troubles::default() }).unwrap();
        assert!(disk.contains("it is gone; then open it again"), "{disk}");
        for troubles in [
            Troubles { conversation: why(), ..Troubles::default() },
            Troubles { provider: why(), ..Troubles::default() },
        ] {
            let said = said(troubles).unwrap();
            assert!(said.contains("can be read") && said.contains("it is gone"), "{said}");
            assert!(said.contains("`agentd restart 3f2a91c0d4e5`"), "{said}");
        }
    }
}
