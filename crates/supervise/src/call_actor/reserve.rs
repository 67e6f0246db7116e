//! The call takes the runner of the session's reserve, if its confinement is the same and its cage
//! still fits. Else it starts a runner of its own.

use super::not_started;
use super::state::{CallState, Renewal, ReserveRequest};
use crate::messages::{CallMsg, ReserveMsg, RestingRunner, TakeRequest};
use call::CallInput;
use launch::grant::Grant;
use launch::project_overlays::ProjectOverlays;
use protocol::confinement::{Confinement, Enforced, FilePath, GitSettings, Network, Profile, Tier};
use protocol::judgement::Verdict;
use protocol::tool::Handover;
use ractor::ActorRef;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// How long the reserve may take to answer.
const ANSWER: Duration = Duration::from_secs(10);
/// A runner from the reserve may take at least this long, and this many times as long as it took to
/// build its cage, to look at it again. A stopped runner is given up then.
const RENEW: Duration = Duration::from_secs(1);
const RENEW_FACTOR: u32 = 4;

impl CallState {
    /// Asks the session's reserve for its runner, once; else starts a runner.
    pub(super) async fn start_runner(
        &mut self,
        myself: &ActorRef<CallMsg>,
        verdict: Verdict,
    ) -> Result<(), CallInput> {
        self.note_written_dirs().map_err(|error| not_started(&error))?;
        bound(&mut self.args.confinement, &verdict);
        self.changes_git(GitSettings::Writable);
        let reserve = self.args.reserve.take();
        let Some(reserve) = reserve.filter(|_| self.can_use_reserve()) else {
            return self.start_new(myself, verdict).await;
        };
        self.generation = self.generation.next();
        let request = TakeRequest {
            confinement: self.args.confinement.clone(),
            call: myself.clone(),
            generation: self.generation,
        };
        // START, the next effect, says that the call has this file; without it the call's protected files
        // would count as damaged.
        let mut cage = self.args.confinement.clone();
        let overlays = self.args.overlays.as_ref();
        let overlays = overlays.filter(|_| ProjectOverlays::are_mounted_in(&cage));
        cage.overlays = overlays.map(|overlays| FilePath::from(overlays.directory()));
        let copies = self.protected_file_copies(&cage).await?;
        self.reserved_for = Some(ReserveRequest { verdict, copies });
        let generation = self.generation;
        let overdue = move || CallMsg::ReserveOverdue(generation);
        self.timers.others.push(myself.send_after(ANSWER, overdue));
        match reserve.send_message(ReserveMsg::Take(Box::new(request))) {
            Ok(()) => Ok(()),
            Err(_) => self.on_reserve(myself, None).await,
        }
    }

    /// Listening sockets of a proxy and a connection for signatures belong to one call.
    fn can_use_reserve(&self) -> bool {
        let wanted = &self.args.confinement;
        wanted.profile == Profile::Command
            && wanted.network != Network::Listed
            && self.args.signing.is_none()
            && self.args.runner == tool_specs::RunnerProgram::Tool
    }

    /// The reserve's answer.
    pub(super) async fn on_reserve(
        &mut self,
        myself: &ActorRef<CallMsg>,
        runner: Option<Box<RestingRunner>>,
    ) -> Result<(), CallInput> {
        // Without it the call was cancelled; the runner ends when it is dropped.
        let Some(request) = self.reserved_for.take() else { return Ok(()) };
        let ReserveRequest { verdict, copies } = request;
        let Some(runner) = runner else { return self.start_new(myself, verdict).await };
        let built = runner.runner.confinement().clone();
        let wanted =
            Confinement { overlays: built.overlays.clone(), ..self.args.confinement.clone() };
        if wanted != built {
            return self.start_new(myself, verdict).await;
        }
        let grant = self.grant(&verdict, wanted).map_err(|error| not_started(&error))?;
        self.renew(myself, grant, *runner, copies);
        Ok(())
    }

    /// The runner looks at its cage again, and this process at the paths that the runner, in its cage,
    /// cannot see. The call goes on once both agree.
    fn renew(
        &mut self,
        myself: &ActorRef<CallMsg>,
        grant: Grant,
        runner: RestingRunner,
        copies: Option<OwnedFd>,
    ) {
        let RestingRunner { mut runner, tier, opened, built_in } = runner;
        // Beside the other steps. The answer is handled after this function.
        let (call, generation) = (myself.clone(), self.generation);
        let confinement = runner.confinement().clone();
        tokio::task::spawn_blocking(move || {
            let same = compare(&confinement, tier, &opened);
            let _ = call.send_message(CallMsg::ReserveChecked(generation, same));
        });
        let handed = copies.into_iter().map(|file| (Handover::Protected, file)).collect();
        runner.renew((&self.args.facts.call.id, grant), handed, RENEW.max(built_in * RENEW_FACTOR));
        ipc::step!("supervisor: renew sent");
        runner.ping_every(self.args.ping);
        self.ran.runner_pid = Some(runner.pid());
        self.renewal = Some(Renewal::default());
        self.runner = Some(runner);
        self.proxy = None;
    }

    /// The runner has looked at its cage again.
    pub(super) fn on_renewed(&mut self, enforced: Enforced) -> Option<CallInput> {
        self.renewal.as_mut()?.enforced = Some(enforced);
        self.use_if_renewed()
    }

    /// The paths that the runner's cage has opened are the same, or not.
    pub(super) fn on_reserve_checked(&mut self, same: Result<(), String>) -> Option<CallInput> {
        match same {
            Ok(()) => {
                self.renewal.as_mut()?.same_paths = true;
                self.use_if_renewed()
            }
            Err(why) => self.give_reserve_up(&why),
        }
    }

    fn use_if_renewed(&mut self) -> Option<CallInput> {
        let Renewal { enforced: Some(enforced), same_paths: true } = self.renewal.as_ref()? else {
            return None;
        };
        let input = CallInput::Caged(enforced.clone());
        self.runner.as_mut()?.fits();
        self.renewal = None;
        Some(input)
    }

    /// The runner gets no `Go` and ends; the call starts its own.
    pub(super) fn give_reserve_up(&mut self, why: &str) -> Option<CallInput> {
        self.renewal.take()?;
        tracing::info!(call = %self.args.facts.call.id, why, "a runner in reserve no longer fits");
        if let Some(runner) = self.runner.take() {
            runner.abandon();
        }
        self.generation = self.generation.next();
        Some(CallInput::ReserveLost)
    }

    /// Ends the wait for the reserve, if the call waits for it.
    pub(super) fn leave_reserve(&mut self, myself: &ActorRef<CallMsg>) {
        if self.reserved_for.take().is_some() {
            let cause = "was not started".to_owned();
            let _ = myself.send_message(CallMsg::Input(CallInput::RunnerEnded { cause }));
        }
    }
}

/// The call runs in the cage that its verdict allows, and a runner of the reserve has to fit that.
fn bound(confinement: &mut Confinement, verdict: &Verdict) {
    if let Verdict::Allow(basis) = verdict {
        *confinement = launch::grant::bounded(confinement.clone(), basis);
    }
}

/// Compares the identities of the paths that a cage has opened with the present ones. Blocks on their
/// disks.
fn compare(confinement: &Confinement, tier: Tier, opened: &str) -> Result<(), String> {
    let now = sandbox::opened_paths(confinement, tier).map_err(|error| error.to_string())?;
    if now == opened {
        return Ok(());
    }
    let mut changed = opened.lines().filter(|line| !now.lines().any(|other| other == *line));
    let place = changed.next().map_or("a new path".to_owned(), str::to_owned);
    Err(format!("a path of its cage was replaced: {place}"))
}
