//! Decides how a task goes on after its host was lost. Pure.

use crate::HostLoss;

/// A mutation that began on the lost host and has no end on record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenWork {
    /// Its tool.
    pub tool: String,
    /// Sequence number of its START.
    pub start_seq: u64,
    /// True if its START says that its cage let nothing out of the workspace: a cage with namespaces,
    /// without network, that could write to the workspace alone.
    pub contained: bool,
}

/// What the database has of a session whose host was lost.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LostSession {
    /// The mutations without an end.
    pub open: Vec<OpenWork>,
    /// The last record that the restored workspace includes the effects of; 0 for the base commit.
    pub snapshot_seq: u64,
    /// True if the database failed over to a standby since, and may have lost records.
    pub failed_over: bool,
}

/// How the task goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Onward {
    /// In its session.
    GoOn,
    /// Not without a person, for this reason.
    Hold(String),
    /// From the beginning, in a new session.
    StartOver,
}

impl OpenWork {
    /// True if the restored workspace provably has nothing of it: all its effects were in the workspace
    /// of the lost host, and the newest snapshot is older than its beginning.
    #[must_use]
    pub fn did_not_happen_here(&self, snapshot_seq: u64) -> bool {
        self.contained && snapshot_seq < self.start_seq
    }
}

/// Decides how a task goes on.
#[must_use]
pub fn go_on(lost: &LostSession, on_host_loss: HostLoss) -> Onward {
    let unknown = lost.open.iter().find(|work| !work.did_not_happen_here(lost.snapshot_seq));
    let why = match (unknown, lost.failed_over) {
        (None, false) => return Onward::GoOn,
        (Some(work), _) => {
            format!("its host was lost while `{}` ran, which may have run to its end", work.tool)
        }
        (None, true) => "the database failed over: calls of the last seconds before that may have \
                         run without a record"
            .to_owned(),
    };
    match on_host_loss {
        HostLoss::Report => Onward::Hold(why),
        HostLoss::Retry => Onward::StartOver,
        HostLoss::Resume => Onward::GoOn,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(start_seq: u64, contained: bool) -> OpenWork {
        OpenWork { tool: "bash".to_owned(), start_seq, contained }
    }

    fn lost(open: Vec<OpenWork>, snapshot_seq: u64) -> LostSession {
        LostSession { open, snapshot_seq, failed_over: false }
    }

    #[test]
    fn without_an_open_mutation_every_task_goes_on() {
        for policy in [HostLoss::Report, HostLoss::Retry, HostLoss::Resume] {
            assert_eq!(go_on(&lost(vec![], 7), policy), Onward::GoOn);
        }
    }

    #[test]
    fn a_contained_call_behind_the_snapshot_did_not_happen_here() {
        let session = lost(vec![work(9, true)], 8);
        assert_eq!(go_on(&session, HostLoss::Report), Onward::GoOn);
        assert_eq!(go_on(&session, HostLoss::Retry), Onward::GoOn);
    }

    #[test]
    fn unknown_effects_are_for_the_policy() {
        // Not contained; contained, and a snapshot was taken while it ran; one of two.
        for session in [
            lost(vec![work(9, false)], 8),
            lost(vec![work(9, true)], 9),
            lost(vec![work(9, true), work(10, false)], 8),
        ] {
            assert!(matches!(go_on(&session, HostLoss::Report), Onward::Hold(_)));
            assert_eq!(go_on(&session, HostLoss::Retry), Onward::StartOver);
            assert_eq!(go_on(&session, HostLoss::Resume), Onward::GoOn);
        }
    }

    #[test]
    fn a_failover_leaves_everything_unknown() {
        let session = LostSession { failed_over: true, ..lost(vec![], 0) };
        assert!(matches!(go_on(&session, HostLoss::Report), Onward::Hold(_)));
        assert_eq!(go_on(&session, HostLoss::Resume), Onward::GoOn);
    }
}
