//! The right to start one runner, and to send it `Go`. Its fields are private. A call's actor makes one
//! from the broker's verdict, or for a probe; a repair process, the certificate of a session's proxies,
//! git for a sub-agent's worktree and the session's reserve have one, too. Nothing else can start a runner.
//! A test of the repository has the list of constructors, each with the file that may use it.

use protocol::call::Call;
use protocol::confinement::{Confinement, GitSettings, Network, Profile};
use protocol::hosts::HostPort;
use protocol::ids::CallId;
use protocol::judgement::{Basis, Verdict};
use protocol::tool::{CageOrder, RunnerJob, ToTool};

/// The right to start one runner: for which call, in which cage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    confinement: Confinement,
    purpose: RunnerPurpose,
    /// Absent for processes that execute no call.
    call: Option<CallId>,
}

/// The work of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunnerPurpose {
    /// To run a call.
    Call,
    /// To inspect the paths of a call.
    Probe,
    /// To be the proxy of a command's allow-list.
    Proxy,
    /// To make the certificate of a session's proxies.
    Certificate,
    /// To build its cage and wait for a call that takes it by a grant of its own.
    Reserve,
    /// To restore the protected files that a call changed.
    Repair,
}

/// A verdict that does not let a call run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the verdict does not allow the call")]
pub struct NotAllowed;

/// A refused `Go`: the grant was made for another call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("its grant was made for {}, not for call {call}", made_for(.granted.as_ref()))]
pub struct OtherCall {
    granted: Option<CallId>,
    call: CallId,
}

impl Grant {
    /// For the probe of a call: the call's directories, nothing writable, nothing executable.
    pub fn probe(call: &Call, of: &Confinement) -> Self {
        let confinement =
            Confinement { profile: Profile::Probe, joins: None, cgroup: None, ..of.clone() };
        Self { confinement, purpose: RunnerPurpose::Probe, call: Some(call.id.clone()) }
    }

    /// For a call that was allowed.
    ///
    /// # Errors
    /// [`NotAllowed`] for every other verdict.
    pub fn of(
        call: &Call,
        verdict: &Verdict,
        confinement: Confinement,
    ) -> Result<(Self, Basis), NotAllowed> {
        match verdict {
            Verdict::Allow(basis) => {
                let call = Some(call.id.clone());
                let confinement = bounded(confinement, basis);
                Ok((Self { confinement, purpose: RunnerPurpose::Call, call }, basis.clone()))
            }
            Verdict::Deny(..) | Verdict::Ask(_) => Err(NotAllowed),
        }
    }

    /// For the proxy of the command that this grant is for: it has the network and none of the
    /// command's other rights.
    pub fn proxy(&self) -> Self {
        Self::web(&self.confinement, RunnerPurpose::Proxy, self.call.clone())
    }

    /// For the process that makes the certificate of a session's proxies.
    pub(crate) fn certificate(of: &Confinement) -> Self {
        Self::web(of, RunnerPurpose::Certificate, None)
    }

    fn web(of: &Confinement, purpose: RunnerPurpose, call: Option<CallId>) -> Self {
        let confinement = Confinement {
            profile: Profile::Web,
            network: Network::On,
            added: Vec::new(),
            home: None,
            repository: None,
            joins: None,
            cgroup: None,
            ..of.clone()
        };
        Self { confinement, purpose, call }
    }

    /// For the repair after a call with this confinement whose runner died. The process has the
    /// runner's confinement and starts nothing.
    pub(crate) fn repair(of: &Confinement) -> Self {
        let confinement = Confinement { joins: None, cgroup: None, ..of.clone() };
        Self { confinement, purpose: RunnerPurpose::Repair, call: None }
    }

    /// For git, which makes or removes the worktree of a call's sub-agent: the cage of a command without
    /// network.
    pub(crate) fn worktree(call: &CallId, of: &Confinement) -> Self {
        let confinement = Confinement {
            profile: Profile::Command,
            network: Network::Off,
            hosts: Vec::new(),
            joins: None,
            ..of.clone()
        };
        Self { confinement, purpose: RunnerPurpose::Call, call: Some(call.clone()) }
    }

    /// For the session's next command, which is not known yet. The call that takes the runner has a
    /// grant of its own, with this confinement.
    pub fn reserve(confinement: Confinement) -> Self {
        Self { confinement, purpose: RunnerPurpose::Reserve, call: None }
    }

    /// The message that has the process lock itself in.
    pub(crate) fn begin(&self) -> ToTool {
        let confinement = self.confinement.clone();
        ToTool::Begin(Box::new(match self.purpose {
            RunnerPurpose::Call
            | RunnerPurpose::Probe
            | RunnerPurpose::Proxy
            | RunnerPurpose::Certificate => CageOrder::Confine(confinement),
            RunnerPurpose::Reserve => CageOrder::Reserve(confinement),
            RunnerPurpose::Repair => CageOrder::Repair(confinement),
        }))
    }

    /// `Go` with a job of this call.
    ///
    /// # Errors
    /// [`OtherCall`] unless the grant was made for this call.
    pub(crate) fn go(&self, call: &CallId, job: RunnerJob) -> Result<ToTool, OtherCall> {
        match &self.call {
            Some(granted) if granted == call => Ok(ToTool::Go(job)),
            granted => Err(OtherCall { granted: granted.clone(), call: call.clone() }),
        }
    }

    /// `Go` for the certificate of these hosts, which belongs to no call; none by another grant.
    pub(crate) fn go_certify(&self, hosts: Vec<HostPort>) -> Option<ToTool> {
        (self.purpose == RunnerPurpose::Certificate)
            .then_some(ToTool::Go(RunnerJob::Certify(hosts)))
    }

    pub(crate) fn purpose(&self) -> RunnerPurpose {
        self.purpose
    }

    /// The cage that it allows.
    #[must_use]
    pub fn confinement(&self) -> &Confinement {
        &self.confinement
    }
}

/// The cage in which a call may run by this verdict: the mode `sandboxed` lets it pass for a cage that leaves the
/// git directory alone, which undo does not cover.
#[must_use]
pub fn bounded(confinement: Confinement, basis: &Basis) -> Confinement {
    match basis {
        Basis::Sandboxed(_) => Confinement { git: GitSettings::DirectoryKept, ..confinement },
        Basis::Rule(_)
        | Basis::Rights(_)
        | Basis::Mode(_)
        | Basis::Query
        | Basis::Person(_)
        | Basis::NotedByPerson { .. }
        | Basis::Answered { .. }
        | Basis::NobodyToAsk(_)
        | Basis::Unjudgeable(_)
        | Basis::Typed(_)
        | Basis::Opaque(_) => confinement,
    }
}

fn made_for(granted: Option<&CallId>) -> String {
    granted.map_or_else(|| "no call".to_owned(), |call| format!("call {call}"))
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use protocol::call::CallOrigin;
    use protocol::confinement::FilePath;
    use protocol::ids::SessionId;
    use protocol::judgement::PermissionMode;

    /// The confinement of a command.
    pub(crate) fn confinement() -> Confinement {
        let at = |path: &str| FilePath::from(std::path::Path::new(path));
        Confinement::closed(Profile::Command, at("/project"), at("/temp"))
    }

    fn call(number: u32) -> Call {
        let id = CallId { session: SessionId("0123456789ab".into()), number };
        Call { id, origin: CallOrigin::PromptPart, tool: "bash".into(), input: "{}".into() }
    }

    fn job() -> RunnerJob {
        RunnerJob::Probe { tool: "bash".into(), input: "{}".into() }
    }

    #[test]
    fn go_is_given_only_for_the_call_that_the_grant_was_made_for() {
        let [one, two] = [call(1), call(2)];
        let confinement = confinement();
        let allow = Verdict::Allow(Basis::Mode(PermissionMode::Auto));
        let (grant, _) = Grant::of(&one, &allow, confinement.clone()).unwrap();
        for grant in [grant.proxy(), grant, Grant::probe(&one, &confinement)] {
            assert_eq!(grant.go(&one.id, job()), Ok(ToTool::Go(job())));
            let error = grant.go(&two.id, job()).unwrap_err().to_string();
            assert!(error.contains("made for call") && error.contains("not for call"), "{error}");
        }
        let reserve = Grant::reserve(confinement.clone());
        for grant in [Grant::repair(&confinement), Grant::certificate(&confinement), reserve] {
            assert!(grant.go(&one.id, job()).unwrap_err().to_string().contains("for no call"));
        }
        let deny = Verdict::Deny(Basis::Mode(PermissionMode::Auto), String::new());
        assert_eq!(Grant::of(&one, &deny, confinement), Err(NotAllowed));
    }

    #[test]
    fn what_the_mode_sandboxed_lets_pass_gets_no_git_directory_to_write() {
        let git = |basis: Basis| {
            let allow = Verdict::Allow(basis);
            let (grant, _) = Grant::of(&call(1), &allow, confinement()).unwrap();
            grant.confinement().git
        };
        let sandboxed = Basis::Sandboxed(protocol::judgement::Bounded::Command);
        assert_eq!(git(sandboxed), GitSettings::DirectoryKept);
        assert_eq!(git(Basis::Person("terminal 1".into())), GitSettings::Kept);
        assert_eq!(git(Basis::Mode(PermissionMode::Auto)), GitSettings::Kept);
    }
}
