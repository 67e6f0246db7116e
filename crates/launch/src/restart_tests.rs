//! Restarts with a test clock: the meaning of each exit, and the edges of the limits.
#![allow(clippy::unwrap_used)]

use super::*;
use proptest::prelude::*;

fn at(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn restarts(decision: &RestartDecision) -> bool {
    matches!(decision, RestartDecision::Restart(_))
}

/// Ends one process after another, each after its own time, and returns the number of the one after
/// which the worker failed, counted from 1.
fn fails_at(
    limits: RestartLimits,
    ends: impl IntoIterator<Item = (u64, ExitKind)>,
) -> Option<usize> {
    let mut history = RestartHistory::new(limits);
    let mut now = at(1_000_000);
    let failed = ends.into_iter().position(|(after, exit)| {
        now += at(after);
        !restarts(&history.on_exit(exit, now, 0.5))
    });
    failed.map(|index| index + 1)
}

#[test]
fn what_each_end_means() {
    use WorkerProgress::{NoProgress, Progressed};
    let table = [
        (ExitCause::Exited(0), ExitKind::NoProgress, ExitKind::Progressed),
        (ExitCause::Exited(1), ExitKind::NoProgress, ExitKind::Progressed),
        (ExitCause::Exited(NO_CAGE), ExitKind::Unrecoverable, ExitKind::Unrecoverable),
        (ExitCause::Signalled(9), ExitKind::NoProgress, ExitKind::Progressed),
        (ExitCause::ProtocolBreach("x".into()), ExitKind::NoProgress, ExitKind::Progressed),
        (ExitCause::BuildMismatch("x".into()), ExitKind::Unrecoverable, ExitKind::Unrecoverable),
        (ExitCause::NoHello, ExitKind::HelloTimeout, ExitKind::HelloTimeout),
        (ExitCause::SendStalled, ExitKind::NoProgress, ExitKind::Progressed),
        (ExitCause::NoPong, ExitKind::NoProgress, ExitKind::Progressed),
        (ExitCause::Unsendable("x".into()), ExitKind::NoProgress, ExitKind::Progressed),
        (ExitCause::Killed, ExitKind::NoProgress, ExitKind::Progressed),
    ];
    for (cause, silent, spoken) in table {
        assert_eq!(ExitKind::of(&cause, NoProgress), silent, "{cause:?}");
        let untold = if silent == ExitKind::NoProgress { ExitKind::NoInput } else { silent };
        assert_eq!(ExitKind::of(&cause, WorkerProgress::NoInput), untold, "{cause:?}");
        assert_eq!(ExitKind::of(&cause, Progressed), spoken, "{cause:?}");
    }
}

#[test]
fn each_edge_of_each_limit() {
    use ExitKind::{HelloTimeout, NoInput, NoProgress, Progressed, Unrecoverable};
    let usual = RestartLimits::default();
    let replaying = RestartLimits { replay: Some((3, at(60_000))), ..usual };
    let one = RestartLimits { no_progress: 1, total: 1, ..usual };
    let in_a_row = |exit, count, apart| (0..count).map(|_| (apart, exit)).collect::<Vec<_>>();
    let table = [
        ("four are borne", usual, in_a_row(NoProgress, 4, 0), None),
        ("the fifth is not", usual, in_a_row(NoProgress, 6, 0), Some(5)),
        ("the fifth just within the window", usual, in_a_row(NoProgress, 5, 2_499), Some(5)),
        ("the fifth as the window closes", usual, in_a_row(NoProgress, 50, 2_500), None),
        ("thirty of use are borne", usual, in_a_row(Progressed, 30, 0), None),
        ("the thirty-first is not", usual, in_a_row(Progressed, 40, 0), Some(31)),
        ("the thirty-first just within", usual, in_a_row(Progressed, 31, 1_999), Some(31)),
        ("the thirty-first as it closes", usual, in_a_row(Progressed, 90, 2_000), None),
        ("hanging starts, however far apart", usual, in_a_row(HelloTimeout, 9, 15_000), Some(5)),
        ("three on a journal", replaying, in_a_row(NoProgress, 3, 20_000), Some(3)),
        ("three that were told nothing", replaying, in_a_row(NoInput, 20, 2_500), None),
        ("five that were told nothing", replaying, in_a_row(NoInput, 6, 0), Some(5)),
        ("one that cannot run", usual, vec![(0, Unrecoverable)], Some(1)),
        ("one crash and one is the most", one, in_a_row(NoProgress, 1, 0), Some(1)),
        ("one of use and one is the most", one, in_a_row(Progressed, 2, 59_999), Some(2)),
        ("one of use, then long nothing", one, in_a_row(Progressed, 2, 60_000), None),
    ];
    for (name, limits, ends, failed) in table {
        assert_eq!(fails_at(limits, ends), failed, "{name}");
    }
}

#[test]
fn kinds_count_together_for_the_one_limit_and_apart_for_the_other() {
    use ExitKind::{HelloTimeout, NoProgress, Progressed};
    let usual = RestartLimits::default();
    let mixed = (0..40).map(|n| (300, if n % 10 == 0 { NoProgress } else { Progressed }));
    assert_eq!(fails_at(usual, mixed), Some(31), "crashes of any kind");
    let hung = [
        HelloTimeout,
        HelloTimeout,
        HelloTimeout,
        HelloTimeout,
        Progressed,
        HelloTimeout,
        HelloTimeout,
        HelloTimeout,
        HelloTimeout,
    ];
    assert_eq!(fails_at(usual, hung.map(|exit| (15_000, exit))), None, "not in a row");
    let late =
        [(0, NoProgress), (0, NoProgress), (0, NoProgress), (0, NoProgress), (10_000, Progressed)];
    assert_eq!(fails_at(usual, late), None, "what is over is over");
}

#[test]
fn the_first_restart_is_at_once_and_the_waits_double_to_ten_seconds() {
    let mut history = RestartHistory::new(RestartLimits {
        no_progress: 100,
        total: 100,
        ..RestartLimits::default()
    });
    let waits: Vec<_> =
        (0..10).map(|n| history.on_exit(ExitKind::NoProgress, at(n), 1.0)).collect();
    let millis = [0, 100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000];
    assert_eq!(waits, millis.map(|ms| RestartDecision::Restart(at(ms))));
    let decision = history.on_exit(ExitKind::Progressed, at(11), 1.0);
    assert_eq!(decision, RestartDecision::Restart(Duration::ZERO), "progress starts over");
}

#[test]
fn jitter_takes_away_at_most_half() {
    for (jitter, millis) in [(0.0, 50), (0.5, 75), (1.0, 100), (-3.0, 50), (7.0, 100)] {
        let mut history = RestartHistory::new(RestartLimits::default());
        history.on_exit(ExitKind::NoProgress, at(0), 0.0);
        assert_eq!(
            history.on_exit(ExitKind::NoProgress, at(1), jitter),
            RestartDecision::Restart(at(millis))
        );
    }
}

/// A failed start counts like any other exit: a worker that cannot be started is retried for 0.7 s.
#[test]
fn a_failure_during_the_restart_is_waited_out_and_then_given_up() {
    let mut history = RestartHistory::new(RestartLimits::default());
    let (mut now, mut starts) = (at(0), 0);
    while let RestartDecision::Restart(wait) = history.on_exit(ExitKind::NoProgress, now, 1.0) {
        now += wait;
        starts += 1;
    }
    assert_eq!((starts, now), (4, at(700)));
}

#[test]
fn each_failure_says_what_there_was_too_much_of() {
    let said = |ends: Vec<ExitKind>| {
        let mut history = RestartHistory::new(RestartLimits::default());
        let mut last = RestartDecision::Restart(Duration::ZERO);
        ends.into_iter().for_each(|exit| last = history.on_exit(exit, at(1), 0.0));
        let RestartDecision::Fail(why) = last else { panic!("{last:?}") };
        why
    };
    assert_eq!(said(vec![ExitKind::NoProgress; 5]), "5 crashes without progress within 10s");
    assert_eq!(said(vec![ExitKind::Progressed; 31]), "31 crashes within 60s");
    assert_eq!(said(vec![ExitKind::HelloTimeout; 5]), "5 starts in a row timed out");
    assert!(said(vec![ExitKind::Unrecoverable]).contains("would not help"));
}

/// A machine that sleeps stops the clock or makes it jump; neither makes a slot fail.
#[test]
fn a_jump_of_the_clock_fails_nothing() {
    let mut history = RestartHistory::new(RestartLimits::default());
    for n in 0..4 {
        assert!(restarts(&history.on_exit(ExitKind::NoProgress, at(n), 0.0)));
    }
    let tomorrow = Duration::from_secs(86_400);
    for n in 0..4 {
        assert!(restarts(&history.on_exit(ExitKind::NoProgress, tomorrow + at(n), 0.0)));
    }
    let mut history = RestartHistory::new(RestartLimits::default());
    assert!(restarts(&history.on_exit(ExitKind::NoProgress, tomorrow, 0.0)));
    assert!(restarts(&history.on_exit(ExitKind::NoProgress, at(0), 0.0)), "back again");
}

fn exits() -> impl Strategy<Value = Vec<(u64, ExitKind)>> {
    let exit = prop_oneof![
        4 => Just(ExitKind::Progressed),
        4 => Just(ExitKind::NoProgress),
        1 => Just(ExitKind::HelloTimeout),
    ];
    prop::collection::vec((0_u64..4_000, exit), 0..120)
}

proptest! {
    /// The same decision as from the whole history, counted anew each time.
    #[test]
    fn it_remembers_exactly_what_its_limits_speak_of(
        ends in exits(), fruitless in 1_usize..8, any in 1_usize..40,
    ) {
        let limits = RestartLimits { no_progress: fruitless, total: any, ..RestartLimits::default() };
        let mut history = RestartHistory::new(limits);
        let (mut now, mut past) = (at(0), Vec::new());
        for (after, exit) in ends {
            now += at(after);
            past.push((now, exit));
            let within = |window, counts: fn(ExitKind) -> bool| {
                past.iter().filter(|(time, exit)| now - *time < window && counts(*exit)).count()
            };
            let vain = within(limits.no_progress_window, |exit| exit != ExitKind::Progressed);
            let all = within(limits.total_window, |_| true);
            let hung = past.iter().rev().take_while(|(_, exit)| *exit == ExitKind::HelloTimeout).count();
            let expected = vain < fruitless && all <= any && hung < fruitless;
            prop_assert_eq!(restarts(&history.on_exit(exit, now, 0.3)), expected);
            if !expected {
                break;
            }
        }
    }

    /// However a worker dies, it is started at most so often in a minute, and waits never exceed
    /// the longest.
    #[test]
    fn no_worker_loops(ends in exits(), jitter in -1.0_f64..2.0) {
        let limits = RestartLimits::default();
        let mut history = RestartHistory::new(limits);
        let (mut now, mut starts) = (at(0), Vec::new());
        for (lived, exit) in ends {
            now += at(lived);
            let RestartDecision::Restart(wait) = history.on_exit(exit, now, jitter) else { break };
            prop_assert!(wait <= limits.longest_wait);
            now += wait;
            starts.push(now);
            let lately = starts.iter().filter(|start| now - **start < limits.total_window).count();
            prop_assert!(lately <= limits.total + 1);
        }
    }

    /// Forgiven is as good as new.
    #[test]
    fn forgiveness_forgets_everything(before in exits(), after in exits()) {
        let mut forgiven = RestartHistory::new(RestartLimits::default());
        for (time, exit) in before {
            forgiven.on_exit(exit, at(time), 0.5);
        }
        forgiven.reset();
        let mut new = RestartHistory::new(RestartLimits::default());
        let mut now = at(0);
        for (lived, exit) in after {
            now += at(lived);
            prop_assert_eq!(forgiven.on_exit(exit, now, 0.5), new.on_exit(exit, now, 0.5));
        }
    }
}
