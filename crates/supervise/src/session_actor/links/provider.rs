//! When the provider's process runs: it is started for a request, ended when it is not asked for a while, and
//! replaced when its server or a key has changed. Pure; `T` is a running timer.

/// The use of the provider's process.
#[derive(Debug)]
pub(in crate::session_actor) struct ProviderUse<T> {
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
pub(in crate::session_actor) struct BeforeRequest<T> {
    /// A timer to stop.
    pub(in crate::session_actor) timer: Option<T>,
    pub(in crate::session_actor) process: BeforeProcess,
}

/// The work on the process before a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::session_actor) enum BeforeProcess {
    /// It is resumed, if it does not run.
    Resume,
    /// It is outdated: it is suspended before.
    Replace,
}

impl<T> ProviderUse<T> {
    pub(super) fn none_yet() -> Self {
        Self { process: Process::Down, idle: None }
    }

    /// A new process has its settings.
    pub(in crate::session_actor) fn configured(&mut self) {
        self.process = Process::Ready;
    }

    pub(in crate::session_actor) fn went_down(&mut self) {
        self.process = Process::Down;
    }

    /// The next request starts a new process, with the new server or key.
    pub(in crate::session_actor) fn outdate(&mut self) {
        if self.process == Process::Ready {
            self.process = Process::Stale;
        }
    }

    /// Messages reach it. What is sent to one that is away comes with the open request, or died with it.
    pub(in crate::session_actor) fn is_up(&self) -> bool {
        self.process != Process::Down
    }

    /// A request is about to be sent.
    pub(in crate::session_actor) fn begin_request(&mut self) -> BeforeRequest<T> {
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
    pub(in crate::session_actor) fn needs_timer(&self) -> bool {
        self.is_up() && self.idle.is_none()
    }

    pub(in crate::session_actor) fn timer_started(&mut self, timer: T) {
        self.idle = Some(timer);
    }

    /// The timer of a process that runs, if there is one.
    pub(in crate::session_actor) fn timer_over(&mut self) -> Option<T> {
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
