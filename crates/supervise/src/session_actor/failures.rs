//! Failures of a session, each by itself. Those of its disk, its conversation and its provider make it read-only;
//! `agentd restart` starts the last two again. Pure.

use protocol::ids::SessionId;

/// Why something does not work any more, where that is so.
#[derive(Debug, Default)]
pub(super) struct Failures {
    /// The journal cannot be written.
    disk: Option<String>,
    /// The conversation's process is not started again.
    conversation: Option<String>,
    /// The provider's likewise.
    provider: Option<String>,
    /// The broker's likewise: calls fail.
    broker: Option<String>,
}

impl Failures {
    pub(super) fn disk_failed(&mut self, why: String) {
        self.disk = Some(why);
    }

    pub(super) fn disk(&self) -> Option<&str> {
        self.disk.as_deref()
    }

    pub(super) fn conversation_failed(&mut self, why: String) {
        self.conversation = Some(why);
    }

    pub(super) fn conversation(&self) -> Option<&str> {
        self.conversation.as_deref()
    }

    pub(super) fn provider_failed(&mut self, why: String) {
        self.provider = Some(why);
    }

    /// No request reaches a provider that has failed.
    pub(super) fn has_provider(&self) -> bool {
        self.provider.is_none()
    }

    /// A process has failed that `agentd restart` starts again.
    pub(super) fn is_without_worker(&self) -> bool {
        self.conversation.is_some() || self.provider.is_some()
    }

    pub(super) fn broker_failed(&mut self, why: String) {
        self.broker = Some(why);
    }

    pub(super) fn broker_is_back(&mut self) {
        self.broker = None;
    }

    pub(super) fn broker(&self) -> Option<&str> {
        self.broker.as_deref()
    }

    /// The processes that have failed are started again. False after a failure of the disk: the session's records
    /// end where the disk failed, and only opening the session reads them again.
    pub(super) fn restart(&mut self) -> bool {
        if self.disk.is_some() {
            return false;
        }
        (self.conversation, self.provider) = (None, None);
        true
    }

    /// The session is not read-only.
    pub(super) fn takes_input(&self) -> bool {
        self.disk.is_none() && !self.is_without_worker()
    }

    /// The message for people: the failure, and how to go on.
    pub(super) fn reason(&self, session: &SessionId) -> Option<String> {
        let read_only = "this session can be read but accepts no input:";
        match (&self.disk, &self.conversation, &self.provider) {
            (Some(why), _, _) => Some(format!(
                "{read_only} {why}. Free space or repair the disk, then open it again: `agentd stop \
                 {session}`, `agentd attach {session}`"
            )),
            (None, Some(why), _) => Some(format!(
                "{read_only} its conversation has failed: {why}. `agentd restart {session}` tries \
                 again"
            )),
            (None, None, Some(why)) => Some(format!(
                "{read_only} its provider has failed: {why}. `agentd restart {session}` tries again"
            )),
            (None, None, None) => None,
        }
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
        let said = |failures: Failures| failures.reason(&session);
        assert_eq!(said(Failures::default()), None);
        let disk = said(Failures { disk: why(), ..Failures::default() }).unwrap();
        assert!(
            disk.contains("it is gone. Free space") && disk.contains("open it again"),
            "{disk}"
        );
        assert!(disk.contains("`agentd stop 3f2a91c0d4e5`"), "{disk}");
        for failures in [
            Failures { conversation: why(), ..Failures::default() },
            Failures { provider: why(), ..Failures::default() },
        ] {
            let said = said(failures).unwrap();
            assert!(said.contains("can be read") && said.contains("it is gone"), "{said}");
            assert!(said.contains("`agentd restart 3f2a91c0d4e5`"), "{said}");
        }
    }

    #[test]
    fn a_restart_forgets_failed_workers_and_not_a_failed_disk() {
        let mut failures = Failures::default();
        failures.conversation_failed("it crashes".into());
        failures.provider_failed("it crashes".into());
        assert!(failures.is_without_worker() && !failures.has_provider());
        assert_eq!(failures.conversation(), Some("it crashes"));
        assert!(failures.restart());
        assert!(!failures.is_without_worker() && failures.has_provider());
        failures.provider_failed("it crashes".into());
        failures.disk_failed("it is full".into());
        assert!(!failures.restart(), "its records are read again when it is opened");
        assert!(!failures.has_provider());
        assert_eq!(failures.disk(), Some("it is full"));
    }

    #[test]
    fn a_failed_broker_stops_calls_and_not_the_session() {
        let mut failures = Failures::default();
        failures.broker_failed("it crashes".into());
        assert_eq!(failures.broker(), Some("it crashes"));
        assert_eq!(failures.reason(&SessionId("3f2a91c0d4e5".into())), None);
        failures.broker_is_back();
        assert_eq!(failures.broker(), None);
    }
}
