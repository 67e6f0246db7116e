//! When the provider's process runs: it is started for a request, ended when it is not asked for a while, and
//! replaced when its server or a key has changed. [`ProviderUse`] is pure; `T` is a running timer.

use crate::messages::{SessionMsg, SessionTimer};
use crate::route::Router;
use crate::session_actor::models::Recording;
use crate::session_actor::request_images::fill_in_images;
use crate::worker_ref::WorkerRef;
use protocol::ids::Generation;
use protocol::provider::{PassedFd, ProviderLink, ToProvider};
use ractor::ActorRef;
use setup::session_spec::SessionSpec;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;
use tokio::task::AbortHandle;

/// The provider of a session.
pub(crate) struct ProviderSeat {
    process: WorkerRef<ProviderLink>,
    used: ProviderUse<AbortHandle>,
    /// Keys and recordings that clients passed as descriptors.
    passed_fds: Vec<(PassedFd, OwnedFd)>,
}

impl ProviderSeat {
    pub(crate) fn of(
        process: WorkerRef<ProviderLink>,
        passed_fds: Vec<(PassedFd, OwnedFd)>,
    ) -> Self {
        Self { process, used: ProviderUse::none_yet(), passed_fds }
    }

    pub(super) fn process(&self) -> &WorkerRef<ProviderLink> {
        &self.process
    }

    /// All of them: calls get those that are not for the provider.
    pub(crate) fn passed_fds(&self) -> &[(PassedFd, OwnedFd)] {
        &self.passed_fds
    }

    /// A client passed these, a newer key for example. Each replaces the one of its kind.
    pub(crate) fn pass(&mut self, passed_fds: Vec<(PassedFd, OwnedFd)>) {
        for (paper, descriptor) in passed_fds {
            self.passed_fds.retain(|(kind, _)| *kind != paper);
            let of_provider = !paper.is_for_calls();
            self.passed_fds.push((paper, descriptor));
            if of_provider && self.may_suspend() {
                self.used.outdate();
            }
        }
    }

    /// Where a recording is played or made, the process knows how far it is.
    pub(crate) fn may_suspend(&self) -> bool {
        Recording::of(&self.passed_fds) == Recording::Absent
    }

    /// A new process is told whom to speak to.
    pub(crate) fn came_up(&mut self, generation: Generation, spec: &SessionSpec) {
        self.process.up(generation);
        self.used.configured();
        // Keys of hosts are for proxies.
        let own = || self.passed_fds.iter().filter(|(paper, _)| !paper.is_for_calls());
        self.process.send(ToProvider::Configure {
            source: spec.model().source(),
            patience: spec.config().provider.patience,
            proxy: spec.config().provider.proxy.clone(),
            papers: own().map(|(paper, _)| paper.clone()).collect(),
        });
        for (_, descriptor) in own() {
            match descriptor.try_clone() {
                Ok(copy) => self.process.send_descriptor(copy),
                Err(error) => {
                    tracing::error!(%error, "a descriptor could not be sent to the provider")
                }
            }
        }
    }

    pub(crate) fn went_down(&mut self) {
        self.used.went_down();
    }

    /// The next request starts a new process, with the new server.
    pub(crate) fn outdate(&mut self) {
        self.used.outdate();
    }

    /// Sends a message. A request starts a suspended process, and gets its images from the journal. Returns
    /// notices for people.
    pub(crate) async fn send(&mut self, mut message: ToProvider, journal: &Path) -> Vec<String> {
        if let ToProvider::Ask(_) = &message {
            let before = self.used.begin_request();
            if let Some(timer) = before.timer {
                timer.abort();
            }
            if before.process == BeforeProcess::Replace {
                self.process.suspend();
            }
            self.process.resume();
        }
        if !self.used.is_up() {
            return Vec::new();
        }
        let mut notices = Vec::new();
        if let ToProvider::Ask(request) = &mut message {
            notices = fill_in_images(request, journal).await;
        }
        self.process.send(message);
        notices
    }

    /// It has answered: earlier crashes count no more.
    pub(crate) fn made_progress(&self) {
        self.process.made_progress();
    }

    /// Suspends the process after a while, if it is not asked.
    pub(crate) fn suspend_later(
        &mut self,
        (router, spec): (&Router, &SessionSpec),
        session: &ActorRef<SessionMsg>,
    ) {
        let needs_timer = self.used.needs_timer() && !router.awaits_answer();
        if needs_timer && self.may_suspend() {
            let time = Duration::from_millis(spec.config().daemon.idle_provider_ms);
            let later = session.send_after(time, || SessionMsg::Timer(SessionTimer::ProviderIdle));
            self.used.timer_started(later.abort_handle());
        }
    }

    /// It was not asked for that time.
    pub(crate) fn is_idle(&mut self, router: &Router) {
        let _ = self.used.timer_over();
        if self.used.is_up() && !router.awaits_answer() {
            self.used.went_down();
            self.process.suspend();
        }
    }

    /// The timer of a process that runs, if there is one.
    pub(super) fn timer_over(&mut self) -> Option<AbortHandle> {
        self.used.timer_over()
    }
}

/// The use of the provider's process.
#[derive(Debug)]
struct ProviderUse<T> {
    process: Process,
    /// Ends the process when it is over.
    idle: Option<T>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Process {
    /// It runs and is configured.
    Ready,
    /// The same, but its server or a key has changed since: the next request starts another process.
    Stale,
    /// It does not run, or is not configured. An open request is sent once it is.
    Down,
}

/// The work before a request.
#[derive(Debug, PartialEq, Eq)]
struct BeforeRequest<T> {
    /// A timer to stop.
    timer: Option<T>,
    process: BeforeProcess,
}

/// The work on the process before a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BeforeProcess {
    /// It is resumed, if it does not run.
    Resume,
    /// It is outdated: it is suspended before.
    Replace,
}

impl<T> ProviderUse<T> {
    fn none_yet() -> Self {
        Self { process: Process::Down, idle: None }
    }

    /// A new process has its settings.
    fn configured(&mut self) {
        self.process = Process::Ready;
    }

    fn went_down(&mut self) {
        self.process = Process::Down;
    }

    /// The next request starts a new process, with the new server or key.
    fn outdate(&mut self) {
        if self.process == Process::Ready {
            self.process = Process::Stale;
        }
    }

    /// Messages reach it. What is sent to one that is away comes with the open request, or died with it.
    fn is_up(&self) -> bool {
        self.process != Process::Down
    }

    /// A request is about to be sent.
    fn begin_request(&mut self) -> BeforeRequest<T> {
        let process = match self.process {
            Process::Ready | Process::Down => BeforeProcess::Resume,
            Process::Stale => BeforeProcess::Replace,
        };
        if process == BeforeProcess::Replace {
            self.process = Process::Down;
        }
        BeforeRequest { timer: self.idle.take(), process }
    }

    /// It runs, and no timer does that would end it.
    fn needs_timer(&self) -> bool {
        self.is_up() && self.idle.is_none()
    }

    fn timer_started(&mut self, timer: T) {
        self.idle = Some(timer);
    }

    /// The timer of a process that runs, if there is one.
    fn timer_over(&mut self) -> Option<T> {
        self.idle.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_resumed_for_a_request_and_replaced_when_outdated() {
        let mut provider = ProviderUse::<u8>::none_yet();
        provider.outdate();
        let resume = BeforeRequest { timer: None, process: BeforeProcess::Resume };
        assert_eq!(provider.begin_request(), resume, "one that is away begins with the new key");
        assert!(!provider.is_up());
        provider.configured();
        assert_eq!(provider.begin_request(), resume);
        assert!(provider.is_up());
        provider.outdate();
        assert!(provider.is_up(), "a request that it has goes on");
        let replace = BeforeRequest { timer: None, process: BeforeProcess::Replace };
        assert_eq!(provider.begin_request(), replace);
        assert!(!provider.is_up(), "the request waits for the next one");
    }

    #[test]
    fn one_timer_at_a_time_ends_an_idle_process() {
        let mut provider = ProviderUse::none_yet();
        assert!(!provider.needs_timer(), "it does not run");
        provider.configured();
        assert!(provider.needs_timer());
        provider.timer_started(1);
        assert!(!provider.needs_timer());
        assert_eq!(provider.begin_request().timer, Some(1));
        assert!(provider.needs_timer());
        provider.timer_started(2);
        assert_eq!((provider.timer_over(), provider.timer_over()), (Some(2), None));
        provider.went_down();
        assert!(!provider.needs_timer());
    }
}
