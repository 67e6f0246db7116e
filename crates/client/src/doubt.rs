//! Whether a daemon that does not answer is lost. Its end cuts short the work of every session, so that one
//! client's silence is not enough: the daemon is asked again over a connection of its own, and the
//! kernel says whether its event loop still runs.
//!
//! Time is counted in looks, which the client takes while it waits itself: a client that was stopped
//! or slept has not waited.

use crate::connection::{ConnectError, Connection};
use crate::ear::QUIET;
use crate::supervisors::Silence;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

/// Looks in a row at a process that a signal stopped.
const STOPPED: u32 = 4;
/// Looks in a row at an event loop that did not run in between: it is blocked for good.
const STILL: u32 = 12;
/// Looks at an event loop that runs, or waits for a disk, and answers nothing.
const SLOW: u32 = 60;
/// Looks in a row at a daemon that answers over a new connection: the client's own is broken.
const ANSWERED: u32 = 2;
/// How long the answer over the second connection is waited for: as long as there are looks.
const PATIENCE: Duration = QUIET.saturating_mul(SLOW + STOPPED);

/// What a look at the daemon finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// It answered over the second connection, or that one was closed.
    Answered,
    /// A signal stopped it.
    Stopped,
    /// Its event loop ran since the look before, or waits for a disk.
    Runs,
    /// Its event loop did not run since the look before, or nothing is known of it.
    Still,
}

/// The looks so far.
#[derive(Debug, Default)]
struct Looks {
    all: u32,
    last: Option<Sign>,
    in_a_row: u32,
}

impl Looks {
    fn take(&mut self, sign: Sign) -> Silence {
        self.all += 1;
        self.in_a_row = if self.last.replace(sign) == Some(sign) { self.in_a_row + 1 } else { 1 };
        match sign {
            Sign::Answered if self.in_a_row >= ANSWERED => Silence::Deaf,
            Sign::Stopped if self.in_a_row >= STOPPED => Silence::Stuck,
            Sign::Still if self.in_a_row >= STILL => Silence::Stuck,
            Sign::Stopped | Sign::Still | Sign::Runs if self.all >= SLOW => Silence::Stuck,
            Sign::Answered | Sign::Stopped | Sign::Still | Sign::Runs => Silence::Slow,
        }
    }
}

/// A daemon in doubt.
#[derive(Debug)]
pub(crate) struct Doubt {
    /// Its process, as it said itself.
    pid: Option<u32>,
    looks: Looks,
    /// How often its event loop's thread had been run at the last look.
    switches: Option<u64>,
    second: Receiver<Result<(), ConnectError>>,
    answered: bool,
}

impl Doubt {
    /// Asks the daemon a second time; `connect` waits so long at most for its first words.
    pub(crate) fn of(
        pid: Option<u32>,
        connect: impl FnOnce(Duration) -> Result<Connection, ConnectError> + Send + 'static,
    ) -> Self {
        let (answer, second) = mpsc::channel();
        std::thread::spawn(move || answer.send(connect(PATIENCE).map(drop)));
        Self { pid, looks: Looks::default(), switches: None, second, answered: false }
    }

    pub(crate) fn look(&mut self) -> Silence {
        match self.second.try_recv() {
            // It is silent there too.
            Ok(Err(ConnectError::Silent { .. })) | Err(_) => {}
            Ok(_) => self.answered = true,
        }
        let sign = match self.answered {
            true => Sign::Answered,
            false => self.sign(),
        };
        self.looks.take(sign)
    }

    fn sign(&mut self) -> Sign {
        let status = self.pid.map(|pid| std::fs::read_to_string(format!("/proc/{pid}/status")));
        let (state, switches) = match status {
            Some(Ok(status)) => seen_in(&status),
            Some(Err(_)) | None => (None, None),
        };
        let before = std::mem::replace(&mut self.switches, switches);
        match state {
            Some('T') => Sign::Stopped,
            Some('D') => Sign::Runs,
            _ if switches.is_some() && before != switches => Sign::Runs,
            _ => Sign::Still,
        }
    }
}

/// The state of a process's first thread, which is a supervisor's event loop, and how often it gave the
/// processor up or lost it.
fn seen_in(status: &str) -> (Option<char>, Option<u64>) {
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

    /// The first of these looks after which something is done, counted from 1, and what.
    fn first(signs: impl Iterator<Item = Sign>) -> Option<(usize, Silence)> {
        let mut looks = Looks::default();
        let silences = (1..).zip(signs.map(|sign| looks.take(sign)));
        silences.into_iter().find(|(_, silence)| *silence != Silence::Slow)
    }

    fn always(sign: Sign) -> impl Iterator<Item = Sign> {
        std::iter::repeat_n(sign, 1000)
    }

    #[test]
    fn a_daemon_is_replaced_the_sooner_the_surer_it_is_that_it_is_lost() {
        assert_eq!(first(always(Sign::Stopped)), Some((4, Silence::Stuck)));
        assert_eq!(first(always(Sign::Still)), Some((12, Silence::Stuck)));
        assert_eq!(first(always(Sign::Runs)), Some((60, Silence::Stuck)));
    }

    #[test]
    fn a_daemon_that_answers_somebody_is_never_replaced() {
        assert_eq!(first(always(Sign::Answered)), Some((2, Silence::Deaf)));
        let late = always(Sign::Runs).take(58).chain(always(Sign::Answered));
        assert_eq!(first(late), Some((60, Silence::Deaf)));
    }

    #[test]
    fn a_sign_of_life_in_between_begins_the_count_anew() {
        let pauses = |sign, count| {
            let one = move || std::iter::repeat_n(sign, count).chain([Sign::Runs]);
            std::iter::repeat_with(one).flatten().take(59)
        };
        assert_eq!(first(pauses(Sign::Stopped, 3)), None);
        assert_eq!(first(pauses(Sign::Still, 11)), None);
        assert_eq!(first(pauses(Sign::Stopped, 4)), Some((4, Silence::Stuck)), "the control");
    }

    #[test]
    fn the_state_of_a_process_and_the_runs_of_its_first_thread_are_read() {
        let status = "Name:\tx\nState:\tT (stopped)\nvoluntary_ctxt_switches:\t7\n\
                      nonvoluntary_ctxt_switches:\t5\n";
        assert_eq!(seen_in(status), (Some('T'), Some(12)));
        assert_eq!(seen_in("State:\tS (sleeping)\n"), (Some('S'), None));
        let own = std::fs::read_to_string("/proc/self/status").unwrap();
        assert!(matches!(seen_in(&own), (Some(_), Some(_))), "{own}");
    }
}
