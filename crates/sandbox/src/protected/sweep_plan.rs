//! Decides when protected paths are looked at while a command runs, and which remedies are told.
//! Pure: times come from the caller.

use protocol::call::{TamperRemedy, TamperedFile};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Time from the first event to the search. Programs make several names at once.
const SETTLE: Duration = Duration::from_millis(20);
/// Time between two searches where events do not tell of everything, and between two comparisons.
pub(super) const PERIOD: Duration = Duration::from_secs(2);
/// A search rests at least this many times as long as the last one took, where an event asks for it
/// and where only the time does.
const REST_OF_EVENTS: u32 = 4;
const REST_OF_TIME: u32 = 50;
/// Each path is told as often, then with each tenfold number.
const TOLD_EACH: u64 = 3;
/// Most paths of a command that are told while it runs, and most versions beyond those times.
const TOLD_PATHS: usize = 200;
const TOLD_VERSIONS: usize = 200;

/// Directories whose events are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coverage {
    All,
    /// Too many, unreadable, or on a file system that other machines change.
    Some,
}

/// Protected files that stay by their content, which a write through a mapping or another name
/// changes without an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeptByContent {
    None,
    Some,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SweepScope {
    /// Search all directories.
    Search,
    /// Look at the known paths again.
    Compare,
}

#[derive(Debug)]
pub(super) struct SweepPlan {
    coverage: Coverage,
    kept: KeptByContent,
    /// Since when something is to be looked for.
    seen: Option<Instant>,
    /// The supervisor asked for it.
    asked: Option<Instant>,
    ended: Instant,
    took: Duration,
}

impl SweepPlan {
    /// The first search is due at once.
    pub(super) fn new(now: Instant) -> Self {
        let (coverage, kept) = (Coverage::Some, KeptByContent::None);
        Self { coverage, kept, seen: None, asked: Some(now), ended: now, took: Duration::ZERO }
    }

    /// An event named a protected path, or events were lost.
    pub(super) fn seen(&mut self, now: Instant) {
        self.seen.get_or_insert(now);
    }

    /// The supervisor wants the present state looked at.
    pub(super) fn asked(&mut self, now: Instant) {
        self.asked.get_or_insert(now);
    }

    /// When there is something to do next; `None` if only an event or the supervisor can tell.
    pub(super) fn next(&self) -> Option<Instant> {
        let rest = |times: u32| self.ended + self.took.saturating_mul(times);
        let seen = self.seen.map(|since| (since + SETTLE).max(rest(REST_OF_EVENTS)));
        let asked = self.asked.map(|since| since.max(rest(1)));
        let by_time = match (self.coverage, self.kept) {
            (Coverage::Some, _) => Some((self.ended + PERIOD).max(rest(REST_OF_TIME))),
            (Coverage::All, KeptByContent::Some) => Some(self.ended + PERIOD),
            (Coverage::All, KeptByContent::None) => None,
        };
        [seen, asked, by_time].into_iter().flatten().min()
    }

    /// What is due now.
    pub(super) fn due(&self, now: Instant) -> Option<SweepScope> {
        self.next().filter(|next| *next <= now)?;
        Some(match (self.seen, self.coverage) {
            (Some(_), _) | (_, Coverage::Some) => SweepScope::Search,
            (None, Coverage::All) => SweepScope::Compare,
        })
    }

    /// It was done, in this time. Events that came meanwhile are told by `seen` again.
    pub(super) fn done(&mut self, scope: SweepScope, now: Instant, took: Duration) {
        (self.asked, self.ended) = (None, now);
        match scope {
            SweepScope::Search => (self.seen, self.took) = (None, took),
            SweepScope::Compare => {}
        }
    }

    /// New directories came, which may be unwatched: until the next search, too.
    pub(super) fn covers(&mut self, coverage: Coverage) {
        self.coverage = coverage;
    }

    /// What events tell of, and what they do not, from now on.
    pub(super) fn knows(&mut self, coverage: Coverage, kept: KeptByContent) {
        (self.coverage, self.kept) = (coverage, kept);
    }
}

/// The remedies of a command, which may make a name again and again.
#[derive(Debug, Default)]
pub(super) struct ToldRemedies {
    times: BTreeMap<String, u64>,
    /// Where versions are kept: a new one may be the person's.
    versions: BTreeSet<String>,
    list: Vec<TamperedFile>,
    untold: u64,
}

impl ToldRemedies {
    /// Takes in what was done, and returns what is to be told now.
    pub(super) fn news(&mut self, found: Vec<TamperedFile>) -> Vec<TamperedFile> {
        let mut news = Vec::new();
        for TamperedFile { path, remedy } in found {
            let is_known = self.times.contains_key(&path);
            if !is_known && self.times.len() >= TOLD_PATHS {
                self.untold += 1;
                continue;
            }
            let times = self.times.entry(path.clone()).or_default();
            *times += 1;
            let is_new_version = match &remedy {
                TamperRemedy::Quarantined { kept }
                | TamperRemedy::Restored { kept: Some(kept) } => {
                    self.versions.len() < TOLD_VERSIONS && self.versions.insert(kept.clone())
                }
                TamperRemedy::Restored { kept: None }
                | TamperRemedy::Left { .. }
                | TamperRemedy::Granted
                | TamperRemedy::Stays { .. } => false,
            };
            let is_left = matches!(remedy, TamperRemedy::Left { .. });
            let is_told = match is_left {
                true => *times == 1,
                false => *times <= TOLD_EACH || is_power_of_ten(*times) || is_new_version,
            };
            if !is_told {
                continue;
            }
            let path = match *times <= TOLD_EACH {
                true => path,
                false => format!("{path} (the {times}th time)"),
            };
            news.push(TamperedFile { path, remedy });
        }
        // What stayed is looked at again in the end.
        let stays = |one: &&TamperedFile| !matches!(one.remedy, TamperRemedy::Left { .. });
        self.list.extend(news.iter().filter(stays).cloned());
        news
    }

    /// All of the command, with those that were found after its end.
    pub(super) fn with_last(mut self, last: Vec<TamperedFile>) -> Vec<TamperedFile> {
        if self.untold > 0 {
            let path = format!("{} more protected names", self.untold);
            let kept = "names beside their places".to_owned();
            self.list.push(TamperedFile { path, remedy: TamperRemedy::Quarantined { kept } });
        }
        self.list.extend(last);
        self.list
    }
}

fn is_power_of_ten(number: u64) -> bool {
    number >= 10 && 10_u64.checked_pow(number.ilog10()) == Some(number)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// A plan whose first search took a time, with the instant of its end.
    fn begun(coverage: Coverage, kept: KeptByContent, took: Duration) -> (SweepPlan, Instant) {
        let now = Instant::now();
        let mut plan = SweepPlan::new(now);
        assert_eq!(plan.due(now), Some(SweepScope::Search), "at once");
        plan.done(SweepScope::Search, now + took, took);
        plan.knows(coverage, kept);
        (plan, now + took)
    }

    #[test]
    fn an_idle_command_that_is_watched_as_a_whole_costs_nothing() {
        let (mut plan, now) = begun(Coverage::All, KeptByContent::None, MS);
        assert_eq!(plan.next(), None);
        plan.asked(now + 5 * MS);
        assert_eq!(plan.due(now + 5 * MS), Some(SweepScope::Compare), "no search without an event");
        plan.done(SweepScope::Compare, now + 6 * MS, MS);
        assert_eq!(plan.next(), None);
    }

    #[test]
    fn an_event_brings_a_search_once_names_have_settled_and_the_last_one_has_rested() {
        let (mut plan, now) = begun(Coverage::All, KeptByContent::None, MS);
        plan.seen(now);
        plan.seen(now + 15 * MS);
        assert_eq!(plan.due(now + 19 * MS), None);
        assert_eq!(
            plan.due(now + SETTLE),
            Some(SweepScope::Search),
            "later events put it off no more"
        );
        let (mut plan, now) = begun(Coverage::All, KeptByContent::None, 100 * MS);
        plan.seen(now);
        assert_eq!(plan.due(now + 399 * MS), None);
        assert_eq!(plan.due(now + 400 * MS), Some(SweepScope::Search));
    }

    #[test]
    fn what_events_do_not_tell_is_looked_for_by_time() {
        let (plan, now) = begun(Coverage::Some, KeptByContent::None, MS);
        assert_eq!(plan.due(now + PERIOD), Some(SweepScope::Search));
        let (plan, now) = begun(Coverage::Some, KeptByContent::None, 1000 * MS);
        assert_eq!(plan.due(now + 49_999 * MS), None, "a large project rests longer");
        assert_eq!(plan.due(now + 50_000 * MS), Some(SweepScope::Search));
        let (plan, now) = begun(Coverage::All, KeptByContent::Some, 1000 * MS);
        assert_eq!(plan.due(now + PERIOD), Some(SweepScope::Compare));
        // A new directory is closed to its owner: no event may ever come.
        let (mut plan, now) = begun(Coverage::All, KeptByContent::None, MS);
        assert_eq!(plan.next(), None, "the control");
        plan.covers(Coverage::Some);
        assert_eq!(plan.due(now + PERIOD), Some(SweepScope::Search));
    }

    #[test]
    fn a_name_that_is_made_again_is_told_again_and_no_flood_is() {
        let mut told = ToldRemedies::default();
        let made = |path: &str| {
            let remedy = TamperRemedy::Quarantined { kept: format!("{path}.quarantined") };
            vec![TamperedFile { path: path.to_owned(), remedy }]
        };
        let each: Vec<usize> = (0..1000).map(|_| told.news(made(".envrc")).len()).collect();
        assert_eq!(&each[..4], &[1, 1, 1, 0]);
        assert_eq!(each.iter().sum::<usize>(), 6, "3, and the 10th, 100th and 1000th");
        for number in 0..1000 {
            told.news(made(&format!("{number}/.envrc")));
        }
        let all = told.with_last(made("last"));
        assert_eq!(all.len(), 6 + TOLD_PATHS - 1 + 2);
        assert_eq!(all[5].path, ".envrc (the 1000th time)");
        assert!(all[all.len() - 2].path.starts_with("801 more"), "{all:?}");
    }

    /// The person's own file may be among those that the command makes.
    #[test]
    fn a_version_that_is_kept_anew_is_told() {
        let mut told = ToldRemedies::default();
        let made = |kept: &str| {
            let remedy = TamperRemedy::Quarantined { kept: kept.to_owned() };
            vec![TamperedFile { path: ".envrc".to_owned(), remedy }]
        };
        for _ in 0..25 {
            told.news(made(".envrc.quarantined"));
        }
        assert!(told.news(made(".envrc.quarantined")).is_empty(), "the control");
        assert_eq!(told.news(made(".envrc.quarantined-2")).len(), 1);
        let each = (0..1000).map(|number| told.news(made(&format!("{number}"))).len());
        assert_eq!(each.sum::<usize>(), TOLD_VERSIONS - 2 + 1, "no flood; also the 1000th");
    }

    #[test]
    fn what_could_not_be_put_right_is_told_once_and_judged_in_the_end() {
        let mut told = ToldRemedies::default();
        let left = || {
            let remedy = TamperRemedy::Left { why: "a full disk".to_owned() };
            vec![TamperedFile { path: ".envrc".to_owned(), remedy }]
        };
        assert_eq!([told.news(left()).len(), told.news(left()).len()], [1, 0]);
        assert!(told.with_last(Vec::new()).is_empty());
    }
}
