//! Restarting under a clock that the tests hold: what each end means, and each edge of the limits.
#![allow(clippy::unwrap_used)]

use super::*;
use proptest::prelude::*;

fn at(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn restarts(decision: &Decision) -> bool {
    matches!(decision, Decision::Restart(_))
}

/// Ends one life after another, each so long after the one before, and says which of them the slot
/// did not survive, counted from 1.
fn fails_at(limits: RestartLimits, ends: impl IntoIterator<Item = (u64, Life)>) -> Option<usize> {
    let mut slot = Restarts::new(limits);
    let mut now = at(1_000_000);
    let failed = ends.into_iter().position(|(after, life)| {
        now += at(after);
        !restarts(&slot.ended(life, now, 0.5))
    });
    failed.map(|index| index + 1)
}

#[test]
fn what_each_end_means() {
    use Said::{Nothing, Something};
    let table = [
        (Cause::Exited(0), Life::Fruitless, Life::Progressed),
        (Cause::Exited(1), Life::Fruitless, Life::Progressed),
        (Cause::Exited(NO_CAGE), Life::Permanent, Life::Permanent),
        (Cause::Signalled(9), Life::Fruitless, Life::Progressed),
        (Cause::Breach("x".into()), Life::Fruitless, Life::Progressed),
        (Cause::OtherBuild("x".into()), Life::Permanent, Life::Permanent),
        (Cause::Silent, Life::Hung, Life::Hung),
        (Cause::Stuck, Life::Fruitless, Life::Progressed),
        (Cause::NoAnswer, Life::Fruitless, Life::Progressed),
        (Cause::Unsayable("x".into()), Life::Fruitless, Life::Progressed),
        (Cause::Ended, Life::Fruitless, Life::Progressed),
    ];
    for (cause, silent, spoken) in table {
        assert_eq!(Life::of(&cause, Nothing), silent, "{cause:?}");
        let untold = if silent == Life::Fruitless { Life::Untold } else { silent };
        assert_eq!(Life::of(&cause, Said::Untold), untold, "{cause:?}");
        assert_eq!(Life::of(&cause, Something), spoken, "{cause:?}");
    }
}

#[test]
fn each_edge_of_each_limit() {
    use Life::{Fruitless, Hung, Permanent, Progressed, Untold};
    let usual = RestartLimits::default();
    let replaying = RestartLimits { replay: Some((3, at(60_000))), ..usual };
    let one = RestartLimits { fruitless: 1, any: 1, ..usual };
    let in_a_row = |life, count, apart| (0..count).map(|_| (apart, life)).collect::<Vec<_>>();
    let table = [
        ("four are borne", usual, in_a_row(Fruitless, 4, 0), None),
        ("the fifth is not", usual, in_a_row(Fruitless, 6, 0), Some(5)),
        ("the fifth just within the window", usual, in_a_row(Fruitless, 5, 2_499), Some(5)),
        ("the fifth as the window closes", usual, in_a_row(Fruitless, 50, 2_500), None),
        ("thirty of use are borne", usual, in_a_row(Progressed, 30, 0), None),
        ("the thirty-first is not", usual, in_a_row(Progressed, 40, 0), Some(31)),
        ("the thirty-first just within", usual, in_a_row(Progressed, 31, 1_999), Some(31)),
        ("the thirty-first as it closes", usual, in_a_row(Progressed, 90, 2_000), None),
        ("hanging starts, however far apart", usual, in_a_row(Hung, 9, 15_000), Some(5)),
        ("three on a journal", replaying, in_a_row(Fruitless, 3, 20_000), Some(3)),
        ("three that were told nothing", replaying, in_a_row(Untold, 20, 2_500), None),
        ("five that were told nothing", replaying, in_a_row(Untold, 6, 0), Some(5)),
        ("one that cannot run", usual, vec![(0, Permanent)], Some(1)),
        ("one crash and one is the most", one, in_a_row(Fruitless, 1, 0), Some(1)),
        ("one of use and one is the most", one, in_a_row(Progressed, 2, 59_999), Some(2)),
        ("one of use, then long nothing", one, in_a_row(Progressed, 2, 60_000), None),
    ];
    for (name, limits, ends, failed) in table {
        assert_eq!(fails_at(limits, ends), failed, "{name}");
    }
}

#[test]
fn kinds_count_together_for_the_one_limit_and_apart_for_the_other() {
    use Life::{Fruitless, Hung, Progressed};
    let usual = RestartLimits::default();
    let mixed = (0..40).map(|n| (300, if n % 10 == 0 { Fruitless } else { Progressed }));
    assert_eq!(fails_at(usual, mixed), Some(31), "crashes of any kind");
    let hung = [Hung, Hung, Hung, Hung, Progressed, Hung, Hung, Hung, Hung];
    assert_eq!(fails_at(usual, hung.map(|life| (15_000, life))), None, "not in a row");
    let late =
        [(0, Fruitless), (0, Fruitless), (0, Fruitless), (0, Fruitless), (10_000, Progressed)];
    assert_eq!(fails_at(usual, late), None, "what is over is over");
}

#[test]
fn the_first_restart_is_at_once_and_the_waits_double_to_ten_seconds() {
    let mut slot =
        Restarts::new(RestartLimits { fruitless: 100, any: 100, ..RestartLimits::default() });
    let waits: Vec<_> = (0..10).map(|n| slot.ended(Life::Fruitless, at(n), 1.0)).collect();
    let millis = [0, 100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000];
    assert_eq!(waits, millis.map(|ms| Decision::Restart(at(ms))));
    let decision = slot.ended(Life::Progressed, at(11), 1.0);
    assert_eq!(decision, Decision::Restart(Duration::ZERO), "progress starts over");
}

#[test]
fn jitter_takes_away_at_most_half() {
    for (jitter, millis) in [(0.0, 50), (0.5, 75), (1.0, 100), (-3.0, 50), (7.0, 100)] {
        let mut slot = Restarts::new(RestartLimits::default());
        slot.ended(Life::Fruitless, at(0), 0.0);
        assert_eq!(slot.ended(Life::Fruitless, at(1), jitter), Decision::Restart(at(millis)));
    }
}

/// A start that fails is an end as any other: what cannot be started at all is tried for 0.7 s.
#[test]
fn a_failure_during_the_restart_is_waited_out_and_then_given_up() {
    let mut slot = Restarts::new(RestartLimits::default());
    let (mut now, mut starts) = (at(0), 0);
    while let Decision::Restart(wait) = slot.ended(Life::Fruitless, now, 1.0) {
        now += wait;
        starts += 1;
    }
    assert_eq!((starts, now), (4, at(700)));
}

#[test]
fn each_failure_says_what_there_was_too_much_of() {
    let said = |ends: Vec<Life>| {
        let mut slot = Restarts::new(RestartLimits::default());
        let mut last = Decision::Restart(Duration::ZERO);
        ends.into_iter().for_each(|life| last = slot.ended(life, at(1), 0.0));
        let Decision::Fail(why) = last else { panic!("{last:?}") };
        why
    };
    assert_eq!(said(vec![Life::Fruitless; 5]), "5 crashes without doing anything within 10s");
    assert_eq!(said(vec![Life::Progressed; 31]), "31 crashes within 60s");
    assert_eq!(said(vec![Life::Hung; 5]), "5 starts in a row that hung");
    assert!(said(vec![Life::Permanent]).contains("would not help"));
}

/// A machine that sleeps stops the clock or makes it jump; neither makes a slot fail.
#[test]
fn a_jump_of_the_clock_fails_nothing() {
    let mut slot = Restarts::new(RestartLimits::default());
    for n in 0..4 {
        assert!(restarts(&slot.ended(Life::Fruitless, at(n), 0.0)));
    }
    let tomorrow = Duration::from_secs(86_400);
    for n in 0..4 {
        assert!(restarts(&slot.ended(Life::Fruitless, tomorrow + at(n), 0.0)));
    }
    let mut slot = Restarts::new(RestartLimits::default());
    assert!(restarts(&slot.ended(Life::Fruitless, tomorrow, 0.0)));
    assert!(restarts(&slot.ended(Life::Fruitless, at(0), 0.0)), "back again");
}

fn lives() -> impl Strategy<Value = Vec<(u64, Life)>> {
    let life = prop_oneof![
        4 => Just(Life::Progressed),
        4 => Just(Life::Fruitless),
        1 => Just(Life::Hung),
    ];
    prop::collection::vec((0_u64..4_000, life), 0..120)
}

proptest! {
    /// The same decision as from the whole history, counted anew each time.
    #[test]
    fn it_remembers_exactly_what_its_limits_speak_of(
        ends in lives(), fruitless in 1_usize..8, any in 1_usize..40,
    ) {
        let limits = RestartLimits { fruitless, any, ..RestartLimits::default() };
        let mut slot = Restarts::new(limits);
        let (mut now, mut past) = (at(0), Vec::new());
        for (after, life) in ends {
            now += at(after);
            past.push((now, life));
            let within = |window, counts: fn(Life) -> bool| {
                past.iter().filter(|(time, life)| now - *time < window && counts(*life)).count()
            };
            let vain = within(limits.fruitless_window, |life| life != Life::Progressed);
            let all = within(limits.any_window, |_| true);
            let hung = past.iter().rev().take_while(|(_, life)| *life == Life::Hung).count();
            let expected = vain < fruitless && all <= any && hung < fruitless;
            prop_assert_eq!(restarts(&slot.ended(life, now, 0.3)), expected);
            if !expected {
                break;
            }
        }
    }

    /// However a worker dies, it is started at most so often in a minute, and waits never exceed
    /// the longest.
    #[test]
    fn no_worker_loops(ends in lives(), jitter in -1.0_f64..2.0) {
        let limits = RestartLimits::default();
        let mut slot = Restarts::new(limits);
        let (mut now, mut starts) = (at(0), Vec::new());
        for (lived, life) in ends {
            now += at(lived);
            let Decision::Restart(wait) = slot.ended(life, now, jitter) else { break };
            prop_assert!(wait <= limits.longest_wait);
            now += wait;
            starts.push(now);
            let lately = starts.iter().filter(|start| now - **start < limits.any_window).count();
            prop_assert!(lately <= limits.any + 1);
        }
    }

    /// Forgiven is as good as new.
    #[test]
    fn forgiveness_forgets_everything(before in lives(), after in lives()) {
        let mut forgiven = Restarts::new(RestartLimits::default());
        for (time, life) in before {
            forgiven.ended(life, at(time), 0.5);
        }
        forgiven.forgive();
        let mut new = Restarts::new(RestartLimits::default());
        let mut now = at(0);
        for (lived, life) in after {
            now += at(lived);
            prop_assert_eq!(forgiven.ended(life, now, 0.5), new.ended(life, now, 0.5));
        }
    }
}
