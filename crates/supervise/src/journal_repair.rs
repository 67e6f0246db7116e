//! Repairs a journal that ends in the middle of a call or turn: each open call and the open turn
//! get an end. Pure; used by the root when it opens a session.

use crate::call::EXPIRED;
use journal::{Deaths, OpenCall, Outcome, Past, Progress, Record, Refused, TurnEnd};
use protocol::session::OpenTurn;

/// The records to append, and the state after them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JournalRepair {
    /// The calls that were lost.
    pub(crate) lost: Vec<OpenCall>,
    /// Records to append before any client sees the session: an end for each lost call, in the same
    /// order, and one for the turn.
    pub(crate) records: Vec<Record>,
    /// Number of turns.
    pub(crate) turns: u32,
    /// The round that proposed the lost calls.
    pub(crate) round: u32,
    /// The last turn: waiting, or open and continuing.
    pub(crate) open_turn: OpenTurn,
    /// How the last turn was cut short, if it was and does not continue.
    pub(crate) cut_short: Option<Deaths>,
}

/// Ends every open call, and the open turn unless it continues. A call that got `Go` may have run
/// and is never run again. A call that did not ends with its turn, or stays pending if the turn
/// continues.
pub(crate) fn repair_journal(past: &Past, wanted: OpenTurn) -> JournalRepair {
    let in_turn = past.turn.is_open();
    let last = if in_turn { wanted } else { OpenTurn::Waits };
    let mut lost = journal::open_calls(past.entries.iter().map(|entry| &entry.record));
    if last == OpenTurn::GoesOn {
        // The conversation proposes calls that never started again, under the same number: their
        // questions are still pending. It does not propose refused calls again.
        lost.retain(|open| open.progress == Progress::MayHaveRun || open.refused.is_some());
    }
    let mut records: Vec<_> = lost.iter().map(closing_record).collect();
    let cut_short = match last {
        OpenTurn::Waits => past.turn.cut_short(past.turns),
        OpenTurn::GoesOn => None,
    };
    if in_turn && last == OpenTurn::Waits {
        let end = match &cut_short {
            // No record shows that a person stopped it.
            Some(deaths) => TurnEnd::ProcessDied(deaths.clone()),
            // The session was ended in order: by `agentd stop`, or with its daemon.
            None => TurnEnd::Interrupted,
        };
        records.push(Record::TurnEnded { end });
    }
    JournalRepair {
        lost,
        records,
        turns: past.turns,
        round: past.round,
        open_turn: last,
        cut_short,
    }
}

/// A decision counts once it is on disk, even if a process died before the result was.
fn closing_record(open: &OpenCall) -> Record {
    let refused = |code: &str, text: &str| Record::Result {
        full: None,
        call: open.number,
        use_id: open.use_id.clone(),
        outcome: Outcome::Denied,
        text: text.to_owned(),
        summary: text.lines().next().unwrap_or_default().to_owned(),
        is_error: true,
        code: Some(code.to_owned()),
        recalled: None,
        audit: None,
    };
    match &open.refused {
        Some(Refused::Denied { message }) => refused("denied", message),
        Some(Refused::Expired) => refused("expired", EXPIRED),
        None => Record::Interrupted {
            call: open.number,
            progress: open.progress,
            cause: "was lost when agentd ended".to_owned(),
            tampered: Vec::new(),
            audit: None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use journal::{Entry, ToolKind, Turn};

    fn past(records: Vec<Record>, turns: u32, turn: Turn) -> Past {
        let entries = (1..).zip(records);
        let entries = entries.map(|(seq, record)| Entry { seq, time: 0, record }).collect();
        Past { entries, turns, turn, round: 0 }
    }

    fn proposed(call: u32) -> Record {
        Record::Proposed {
            call,
            use_id: format!("toolu_{call}"),
            tool: "bash".into(),
            tool_kind: ToolKind::Mutation,
            input: "{}".into(),
        }
    }

    #[test]
    fn a_session_that_ended_well_needs_nothing() {
        let mended = repair_journal(&past(Vec::new(), 2, Turn::Ended), OpenTurn::GoesOn);
        let (lost, records) = (Vec::new(), Vec::new());
        let (last, cut_short) = (OpenTurn::Waits, None);
        assert_eq!(
            mended,
            JournalRepair { lost, records, turns: 2, round: 0, open_turn: last, cut_short }
        );
    }

    #[test]
    fn what_was_refused_stays_refused_and_is_not_asked_again() {
        let basis = journal::Basis::Person { who: "pts/1".into() };
        let denied = Record::Denied { call: 1, basis, message: "not that one".into() };
        let records = vec![proposed(1), denied, proposed(2), Record::Expired { call: 2 }];
        let mended = repair_journal(&past(records, 1, Turn::Open), OpenTurn::GoesOn);
        let [
            Record::Result { call: 1, text, outcome: Outcome::Denied, .. },
            Record::Result { call: 2, outcome: Outcome::Denied, .. },
        ] = &mended.records[..]
        else {
            panic!("{mended:?}")
        };
        assert_eq!((text.as_str(), mended.open_turn), ("not that one", OpenTurn::GoesOn));
    }

    #[test]
    fn a_turn_of_a_session_that_was_ended_in_order_is_no_death() {
        let mended = repair_journal(&past(vec![], 1, Turn::Left), OpenTurn::Waits);
        assert_eq!(mended.records, [Record::TurnEnded { end: TurnEnd::Interrupted }]);
        assert_eq!(mended.cut_short, None);
    }

    #[test]
    fn open_calls_and_the_open_turn_are_ended_and_told_apart() {
        let start = Record::Start { call: 1, tool_kind: ToolKind::Mutation };
        let past = past(vec![proposed(1), start, proposed(2)], 1, Turn::Open);
        let mended = repair_journal(&past, OpenTurn::Waits);
        let [
            Record::Interrupted { call: 1, progress: Progress::MayHaveRun, .. },
            Record::Interrupted { call: 2, progress: Progress::NeverStarted, .. },
            Record::TurnEnded { end: TurnEnd::ProcessDied(died) },
        ] = &mended.records[..]
        else {
            panic!("{mended:?}")
        };
        assert_eq!((mended.turns, died.process.as_str()), (1, "agentd-supervisor"));
        let on = repair_journal(&past, OpenTurn::GoesOn);
        let left = (on.records.len(), on.open_turn);
        assert_eq!(left, (1, OpenTurn::GoesOn), "the turn and the call that never began are left");
    }
}
