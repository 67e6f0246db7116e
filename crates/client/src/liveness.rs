//! Decides if a supervisor that does not answer is lost. Killing it interrupts its calls, so silence
//! alone is not enough: a busy machine makes each one silent. `/proc` shows if its event loop still
//! runs. A daemon is also asked over a second connection.
//!
//! Time is counted in checks, which the client makes while it waits. A client that was stopped or
//! suspended makes none.

use crate::silence::{PING_AFTER, SilenceAction};
use crate::supervisor_connection::{ConnectError, SupervisorConnection};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

/// Looks in a row at a process that a signal stopped.
const STOPPED: u32 = 4;
/// Looks in a row at an event loop that did not run in between: it is blocked for good.
const STILL: u32 = 12;
/// Checks of an event loop that runs or waits for a disk, without an answer.
const SLOW: u32 = 60;
/// Looks in a row at a daemon that answers over a new connection: the client's own is broken.
const ANSWERED: u32 = 2;
/// Longest wait for an answer over the second connection: the time of all checks.
const PATIENCE: Duration = PING_AFTER.saturating_mul(SLOW + STOPPED);

/// Result of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LivenessSign {
    /// It answered over the second connection, or that one was closed.
    Answered,
    /// A signal stopped it.
    Stopped,
    /// Its event loop ran since the last check, or waits for a disk.
    Runs,
    /// Its event loop did not run since the last check, or its state is unknown.
    Still,
}

/// The checks so far.
#[derive(Debug, Default)]
struct SignCount {
    all: u32,
    last: Option<LivenessSign>,
    in_a_row: u32,
}

impl SignCount {
    fn take(&mut self, sign: LivenessSign) -> SilenceAction {
        self.all += 1;
        self.in_a_row = if self.last.replace(sign) == Some(sign) { self.in_a_row + 1 } else { 1 };
        match sign {
            LivenessSign::Answered if self.in_a_row >= ANSWERED => SilenceAction::Reconnect,
            LivenessSign::Stopped if self.in_a_row >= STOPPED => SilenceAction::Kill,
            LivenessSign::Still if self.in_a_row >= STILL => SilenceAction::Kill,
            LivenessSign::Stopped | LivenessSign::Still | LivenessSign::Runs
                if self.all >= SLOW =>
            {
                SilenceAction::Kill
            }
            LivenessSign::Answered
            | LivenessSign::Stopped
            | LivenessSign::Still
            | LivenessSign::Runs => SilenceAction::Wait,
        }
    }
}

/// A supervisor in doubt.
#[derive(Debug)]
pub(crate) struct LivenessCheck {
    /// Its process ID.
    pid: Option<u32>,
    signs: SignCount,
    /// Context switches of its event loop's thread at the last check.
    switches: Option<u64>,
    second: Receiver<Result<(), ConnectError>>,
    answered: bool,
}

impl LivenessCheck {
    /// Asks the daemon over a second connection. `connect` gets the time limit of its handshake.
    pub(crate) fn of(
        pid: Option<u32>,
        connect: impl FnOnce(Duration) -> Result<SupervisorConnection, ConnectError> + Send + 'static,
    ) -> Self {
        let (answer, second) = mpsc::channel();
        std::thread::spawn(move || answer.send(connect(PATIENCE).map(drop)));
        Self { second, ..Self::new(pid) }
    }

    /// Looks only at the process. It serves no other client that could ask it.
    pub(crate) fn of_process(pid: u32) -> Self {
        Self::new(Some(pid))
    }

    fn new(pid: Option<u32>) -> Self {
        let (_, second) = mpsc::channel();
        Self { pid, signs: SignCount::default(), switches: None, second, answered: false }
    }

    pub(crate) fn check(&mut self) -> SilenceAction {
        match self.second.try_recv() {
            // It is silent over the second connection too.
            Ok(Err(ConnectError::Silent { .. })) | Err(_) => {}
            Ok(_) => self.answered = true,
        }
        let sign = match self.answered {
            true => LivenessSign::Answered,
            false => self.read_process(),
        };
        self.signs.take(sign)
    }

    fn read_process(&mut self) -> LivenessSign {
        let status = self.pid.map(|pid| std::fs::read_to_string(format!("/proc/{pid}/status")));
        let (state, switches) = match status {
            Some(Ok(status)) => parse_status(&status),
            Some(Err(_)) | None => (None, None),
        };
        let before = std::mem::replace(&mut self.switches, switches);
        match state {
            Some('T') => LivenessSign::Stopped,
            Some('D') => LivenessSign::Runs,
            _ if switches.is_some() && before != switches => LivenessSign::Runs,
            _ => LivenessSign::Still,
        }
    }
}

/// The state of a process's first thread, which is a supervisor's event loop, and how often it gave the
/// processor up or lost it.
fn parse_status(status: &str) -> (Option<char>, Option<u64>) {
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.map(|value| value.trim_start_matches(':').trim())
    };
    let count = |name: &str| field(name).and_then(|value| value.parse::<u64>().ok());
    let switches = count("voluntary_ctxt_switches")
        .zip(count("nonvoluntary_ctxt_switches"))
        .map(|(given, taken)| given + taken);
    (field("State").and_then(|value| value.chars().next()), switches)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The first check, counted from 1, that ends the wait, and its action.
    fn first(signs: impl Iterator<Item = LivenessSign>) -> Option<(usize, SilenceAction)> {
        let mut looks = SignCount::default();
        let silences = (1..).zip(signs.map(|sign| looks.take(sign)));
        silences.into_iter().find(|(_, silence)| *silence != SilenceAction::Wait)
    }

    fn always(sign: LivenessSign) -> impl Iterator<Item = LivenessSign> {
        std::iter::repeat_n(sign, 1000)
    }

    #[test]
    fn a_daemon_is_replaced_the_sooner_the_surer_it_is_that_it_is_lost() {
        assert_eq!(first(always(LivenessSign::Stopped)), Some((4, SilenceAction::Kill)));
        assert_eq!(first(always(LivenessSign::Still)), Some((12, SilenceAction::Kill)));
        assert_eq!(first(always(LivenessSign::Runs)), Some((60, SilenceAction::Kill)));
    }

    #[test]
    fn a_daemon_that_answers_somebody_is_never_replaced() {
        assert_eq!(first(always(LivenessSign::Answered)), Some((2, SilenceAction::Reconnect)));
        let late = always(LivenessSign::Runs).take(58).chain(always(LivenessSign::Answered));
        assert_eq!(first(late), Some((60, SilenceAction::Reconnect)));
    }

    #[test]
    fn a_sign_of_life_in_between_begins_the_count_anew() {
        let pauses = |sign, count| {
            let one = move || std::iter::repeat_n(sign, count).chain([LivenessSign::Runs]);
            std::iter::repeat_with(one).flatten().take(59)
        };
        assert_eq!(first(pauses(LivenessSign::Stopped, 3)), None);
        assert_eq!(first(pauses(LivenessSign::Still, 11)), None);
        assert_eq!(
            first(pauses(LivenessSign::Stopped, 4)),
            Some((4, SilenceAction::Kill)),
            "the control"
        );
    }

    #[test]
    fn the_state_of_a_process_and_the_runs_of_its_first_thread_are_read() {
        let status = "Name:\tx\nState:\tT (stopped)\nvoluntary_ctxt_switches:\t7\n\
                      nonvoluntary_ctxt_switches:\t5\n";
        assert_eq!(parse_status(status), (Some('T'), Some(12)));
        assert_eq!(parse_status("State:\tS (sleeping)\n"), (Some('S'), None));
        let own = std::fs::read_to_string("/proc/self/status").unwrap();
        assert!(matches!(parse_status(&own), (Some(_), Some(_))), "{own}");
    }
}
