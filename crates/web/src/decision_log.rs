//! Log of a proxy's decisions, bounded in size. Equal decisions share one row with a count, and
//! decisions beyond the limit are only counted, so that a loop cannot flood the record. Connections
//! that were made have a limit of their own, so that many refusals cannot displace them.

use protocol::confinement::{ConnectionOutcome, ProxyConnection};
use protocol::hidden::{line, on_one_line};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Limit of rows for connections that were made, and the same again for all others.
const MAX_ROWS: usize = 200;
/// Limit in characters for a destination written by a command, or a reason from a server or resolver.
const MAX_TEXT: usize = 300;

/// Bytes transferred over the connections of one row.
#[derive(Debug, Default)]
pub(crate) struct ByteCounts {
    sent: AtomicU64,
    received: AtomicU64,
}

impl ByteCounts {
    pub(crate) fn sent(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn received(&self, bytes: usize) {
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// All decisions of one proxy. Clones share the log.
#[derive(Debug, Clone, Default)]
pub(crate) struct DecisionLog(Arc<Mutex<DecisionRows>>);

#[derive(Debug, Default)]
struct DecisionRows {
    lines: Vec<DecisionRow>,
    uncounted: u64,
}

#[derive(Debug)]
struct DecisionRow {
    place: String,
    decision: ConnectionOutcome,
    count: u64,
    carried: Arc<ByteCounts>,
}

/// Novelty of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Novelty {
    New,
    Repeated,
}

impl DecisionLog {
    /// Adds a decision. Its transferred bytes are counted in the returned counters.
    pub(crate) fn add(
        &self,
        place: &str,
        decision: ConnectionOutcome,
    ) -> (Novelty, Arc<ByteCounts>) {
        let (place, decision) = (cut(place), presentable(decision));
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |line: &&mut DecisionRow| line.place == place && line.decision == decision;
        if let Some(line) = lines.lines.iter_mut().find(same) {
            line.count += 1;
            return (Novelty::Repeated, Arc::clone(&line.carried));
        }
        let carried = Arc::<ByteCounts>::default();
        let reached = |decision: &ConnectionOutcome| {
            matches!(decision, ConnectionOutcome::Made(_) | ConnectionOutcome::SignedIn(_))
        };
        let alike = |line: &&DecisionRow| reached(&line.decision) == reached(&decision);
        if lines.lines.iter().filter(alike).count() < MAX_ROWS {
            let line = DecisionRow { place, decision, count: 1, carried: Arc::clone(&carried) };
            lines.lines.push(line);
            return (Novelty::New, carried);
        }
        lines.uncounted += 1;
        (Novelty::Repeated, carried)
    }

    /// All rows so far, and the number of further decisions.
    pub(crate) fn read(&self) -> (Vec<ProxyConnection>, u64) {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let connection = |line: &DecisionRow| ProxyConnection {
            place: line.place.clone(),
            decision: line.decision.clone(),
            count: line.count,
            sent: line.carried.sent.load(Ordering::Relaxed),
            received: line.carried.received.load(Ordering::Relaxed),
        };
        (lines.lines.iter().map(connection).collect(), lines.uncounted)
    }
}

fn presentable(decision: ConnectionOutcome) -> ConnectionOutcome {
    match decision {
        ConnectionOutcome::Made(address) => ConnectionOutcome::Made(address),
        ConnectionOutcome::Failed(why) => ConnectionOutcome::Failed(cut(&why)),
        ConnectionOutcome::Refused(why) => ConnectionOutcome::Refused(cut(&why)),
        ConnectionOutcome::SignedIn(address) => ConnectionOutcome::SignedIn(address),
    }
}

/// A text for the record, on one line and cut.
fn cut(text: &str) -> String {
    line(&on_one_line(text), MAX_TEXT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(why: &str) -> ConnectionOutcome {
        ConnectionOutcome::Refused(why.to_owned())
    }

    #[test]
    fn equal_decisions_are_one_line() {
        let ledger = DecisionLog::default();
        for (place, why, known) in [
            ("a:1", "x", Novelty::New),
            ("b:1", "x", Novelty::New),
            ("a:1", "x", Novelty::Repeated),
            ("a:1", "y", Novelty::New),
        ] {
            assert_eq!(ledger.add(place, refused(why)).0, known, "{place} {why}");
        }
        let made = ConnectionOutcome::Made("192.0.2.1:1".to_owned());
        for bytes in [5, 7] {
            let (_, carried) = ledger.add("c:1", made.clone());
            carried.sent(bytes);
            carried.received(1);
        }
        let (lines, uncounted) = ledger.read();
        let seen: Vec<_> = lines.iter().map(|line| (line.place.as_str(), line.count)).collect();
        assert_eq!(seen, [("a:1", 2), ("b:1", 1), ("a:1", 1), ("c:1", 2)]);
        assert_eq!((lines[3].sent, lines[3].received, uncounted), (12, 2, 0));
    }

    #[test]
    fn a_loop_does_not_flood_the_record() {
        let ledger = DecisionLog::default();
        for number in 0..1000 {
            ledger.add(&format!("{number}.example:443"), refused("x"));
        }
        let (lines, uncounted) = ledger.read();
        assert_eq!((lines.len(), uncounted), (MAX_ROWS, 1000 - MAX_ROWS as u64));
    }

    #[test]
    fn refusals_cannot_keep_out_what_was_reached() {
        let ledger = DecisionLog::default();
        for number in 0..1000 {
            ledger.add(&format!("{number}.example:443"), refused("x"));
        }
        let made = ConnectionOutcome::Made("192.0.2.1:443".to_owned());
        let (known, carried) = ledger.add("allowed.example:443", made.clone());
        carried.sent(9);
        let (lines, uncounted) = ledger.read();
        let last = lines.last().map(|line| (line.decision.clone(), line.sent));
        assert_eq!((known, last), (Novelty::New, Some((made, 9))));
        assert_eq!(uncounted, 1000 - MAX_ROWS as u64);
    }

    #[test]
    fn what_a_command_wrote_cannot_drive_a_terminal() {
        let ledger = DecisionLog::default();
        ledger.add(&format!("\u{1b}[2J{}", "ä".repeat(500)), refused("\n"));
        let (lines, _) = ledger.read();
        assert!(lines[0].place.starts_with("\\u{1b}[2J"), "{:?}", lines[0]);
        assert!(lines[0].place.chars().count() == MAX_TEXT + 1, "{:?}", lines[0]);
        assert_eq!(lines[0].decision, refused("\\n"));
    }
}
