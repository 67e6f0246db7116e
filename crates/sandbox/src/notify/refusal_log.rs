//! The list of refused calls. Equal entries in a row are merged, over those of the other kind in [`alike`]. After a maximum number of entries
//! only a count is kept, so that a loop cannot flood the record.

use protocol::confinement::Refusal;
use protocol::hidden::on_one_line;

/// Maximum number of entries.
pub(super) const MAX_LINES: usize = 200;

/// Maximum bytes of a path or name, which come from the confined process.
const MAX_TEXT: usize = 512;

/// The refused calls of one command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RefusalLog {
    /// The first refusals, in order.
    pub(crate) refusals: Vec<Refusal>,
    /// Number of refusals after those.
    pub(crate) uncounted: u64,
}

impl RefusalLog {
    /// Adds a refusal. A new entry keeps its `count`.
    pub(super) fn add(&mut self, mut refusal: Refusal) {
        refusal.subject = refusal.subject.cleaned(cleaned);
        let last = self.refusals.iter_mut().rev().find(|other| alike(other, &refusal));
        if let Some(last) = last
            && (Refusal { count: last.count, ..refusal.clone() }) == *last
        {
            last.count += refusal.count;
        } else if self.refusals.iter().filter(|other| alike(other, &refusal)).count() < MAX_LINES {
            self.refusals.push(refusal);
        } else if refusal.errno != libc::ESRCH {
            self.uncounted += refusal.count;
        }
    }

    /// Removes a refusal that was added by mistake.
    pub(super) fn take_back(&mut self, mut refusal: Refusal) {
        refusal.subject = refusal.subject.cleaned(cleaned);
        let same = |line: &Refusal| Refusal { count: line.count, ..refusal.clone() } == *line;
        match self.refusals.iter().rposition(same) {
            Some(at) if self.refusals[at].count > 1 => self.refusals[at].count -= 1,
            Some(at) => drop(self.refusals.remove(at)),
            None => self.uncounted = self.uncounted.saturating_sub(1),
        }
    }
}

/// True if both count to the same maximum. Calls on numbers that are processes of the host alone have
/// one of their own: the command must not learn of them by what else finds room, or is counted.
fn alike(one: &Refusal, other: &Refusal) -> bool {
    (one.errno == libc::ESRCH) == (other.errno == libc::ESRCH)
}

/// The text on one line without hidden characters, truncated: they could move a terminal's cursor, break a line or
/// deceive its reader.
fn cleaned(text: &str) -> String {
    let shown = on_one_line(text);
    match shown.char_indices().find(|(at, _)| *at >= MAX_TEXT) {
        Some((at, _)) => format!("{}…", &shown[..at]),
        None => shown,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;
    use protocol::confinement::{RefusalKind, Subject};

    fn refusal(path: &str) -> Refusal {
        Refusal {
            kind: RefusalKind::Refused,
            syscall: "mount".to_owned(),
            subject: Subject::UnixSocket(path.to_owned()),
            errno: 1,
            pid: 7,
            count: 1,
        }
    }

    #[test]
    fn equal_lines_in_a_row_are_one() {
        let mut record = RefusalLog::default();
        for detail in ["a", "a", "b", "a"] {
            record.add(refusal(detail));
        }
        let seen: Vec<_> =
            record.refusals.iter().map(|r| (r.subject.to_string(), r.count)).collect();
        assert_eq!(
            seen,
            [("a", 2), ("b", 1), ("a", 1)].map(|(path, count)| (path.to_owned(), count))
        );
        assert_eq!(record.uncounted, 0);
    }

    #[test]
    fn a_process_of_the_host_changes_nothing_else() {
        let outside = Refusal { errno: libc::ESRCH, ..refusal("kill") };
        let (mut with, mut without) = (RefusalLog::default(), RefusalLog::default());
        for at in 0..MAX_LINES {
            for detail in [at.to_string(), at.to_string()] {
                without.add(refusal(&detail));
                with.add(refusal(&detail));
                with.add(outside.clone());
            }
        }
        with.refusals.retain(|refusal| refusal.errno != libc::ESRCH);
        assert_eq!(with, without);
        assert_eq!(without.refusals.len(), MAX_LINES);
    }

    #[test]
    fn what_is_taken_back_was_never_there() {
        let mut record = RefusalLog::default();
        let before = RefusalLog { refusals: vec![refusal("a")], uncounted: 0 };
        for detail in ["a", "b\n", "a"] {
            record.add(refusal(detail));
        }
        record.take_back(refusal("b\n"));
        record.take_back(refusal("a"));
        assert_eq!(record, before);
        record.add(refusal("a"));
        assert_eq!(record.refusals[0].count, 2);
        record.take_back(refusal("a"));
        assert_eq!(record, before);
        for at in 0..2 * MAX_LINES {
            record.add(refusal(&at.to_string()));
        }
        let uncounted = record.uncounted;
        record.take_back(refusal(&(2 * MAX_LINES - 1).to_string()));
        assert_eq!((record.refusals.len(), record.uncounted), (MAX_LINES, uncounted - 1));
    }

    #[test]
    fn a_long_path_is_cut_at_a_character() {
        let mut record = RefusalLog::default();
        record.add(refusal(&"ä".repeat(600)));
        assert_eq!(record.refusals[0].subject.to_string(), format!("{}…", "ä".repeat(256)));
    }

    #[test]
    fn a_name_cannot_drive_the_terminal_of_a_reader() {
        let mut record = RefusalLog::default();
        record.add(refusal("/tmp/\u{1b}[2J\nallowed\u{9b}\u{202e}"));
        assert_eq!(
            record.refusals[0].subject.to_string(),
            "/tmp/\\u{1b}[2J\\nallowed\\u{9b}\\u{202e}"
        );
    }

    #[test]
    fn calls_on_processes_of_the_host_take_no_room_from_others() {
        let mut record = RefusalLog::default();
        for at in 0..2 * MAX_LINES {
            record.add(Refusal { errno: libc::ESRCH, ..refusal(&at.to_string()) });
        }
        assert_eq!((record.refusals.len(), record.uncounted), (MAX_LINES, 0));
        (0..=MAX_LINES).for_each(|at| record.add(refusal(&at.to_string())));
        assert_eq!((record.refusals.len(), record.uncounted), (2 * MAX_LINES, 1));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_from_the_count(details in proptest::collection::vec(0_u8..3, 0..600)) {
            let mut record = RefusalLog::default();
            for detail in &details {
                record.add(refusal(&detail.to_string()));
            }
            let kept: u64 = record.refusals.iter().map(|r| r.count).sum();
            prop_assert!(record.refusals.len() <= MAX_LINES);
            prop_assert_eq!(kept + record.uncounted, details.len() as u64);
        }
    }
}
