//! Repairs a journal that ends in the middle of a call or turn: each open call and the open turn
//! get an end. Pure; used where a session is opened.

use crate::{
    CallProgress, CallStart, ChainHead, JournalRecord, OpenCall, OpenTurn, Outcome, Past,
    RefusedCall, RestoredSession, ResumeState, TASK, TurnEnd, WorkerDeaths,
};
use std::collections::{BTreeMap, BTreeSet};

/// The records to append, and the state after them.
#[derive(Debug, Clone, PartialEq)]
pub struct JournalRepair {
    /// The calls that were lost.
    pub lost: Vec<OpenCall>,
    /// Calls of sub-agents in the background. They have no end, and are waited for again.
    pub left_tasks: Vec<OpenCall>,
    /// Records to append before any client sees the session: an end for each lost call, in the same
    /// order, and one for the turn.
    pub records: Vec<JournalRecord>,
    /// Number of turns.
    pub turns: u32,
    /// The round that proposed the lost calls.
    pub round: u32,
    /// The last turn: waiting, or open and continuing.
    pub open_turn: OpenTurn,
    /// How the last turn was cut short, if it was and does not continue.
    pub cut_short: Option<WorkerDeaths>,
    /// The lost calls that began on another host, which is lost.
    pub elsewhere: BTreeSet<u32>,
}

/// Why a call has no end that is its own.
pub const LOST: &str = "was lost when agentd ended";

/// The result of a question that was not answered in time.
pub const EXPIRED: &str = "Not run: this call needs a person's approval, and no one answered \
                                  in time. Do what needs no approval, or say what is left to \
                                  approve.";

/// Ends every open call, and the open turn unless it continues. A call that got `Go` may have run
/// and is never run again. A call that did not ends with its turn, or stays pending if the turn
/// continues.
pub fn repair_journal(
    (past, said): (&ResumeState, &Past),
    wanted: OpenTurn,
    restored: Option<RestoredSession>,
) -> JournalRepair {
    let in_turn = past.turn.is_open();
    let last = if in_turn { wanted } else { OpenTurn::Waits };
    let mut lost = said.open_calls();
    let begun = restored.map(|restored| begun_elsewhere(said, restored)).unwrap_or_default();
    // Its sub-agent works on. The conversation has a result of this call and does not repeat it.
    let is_left = |open: &mut OpenCall| {
        let is_task = open.tool == TASK && open.refused.is_none();
        // A sub-agent of a lost host is lost with it.
        let is_task = is_task && !begun.contains_key(&open.number);
        wanted == OpenTurn::GoesOn && is_task && said.background.contains(&open.number)
    };
    let left_tasks = lost.extract_if(.., is_left).collect();
    if last == OpenTurn::GoesOn {
        // The conversation proposes calls that never started again, under the same number: their
        // questions are still pending. It does not propose refused calls again.
        // The call of a sub-agent is repeated, too: it finds the session that works for it.
        lost.retain(|open| {
            let here = open.tool != TASK || begun.contains_key(&open.number);
            let began = open.progress == CallProgress::MayHaveRun && here;
            began || open.refused.is_some()
        });
    }
    let close = |open: &OpenCall| match begun.get(&open.number) {
        Some(Elsewhere::NotHere) if open.refused.is_none() => not_here(open),
        _ => closing_record(open),
    };
    let mut records: Vec<_> = lost.iter().map(close).collect();
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
        records.push(JournalRecord::TurnEnded { end });
    }
    JournalRepair {
        lost,
        left_tasks,
        records,
        turns: past.turns,
        round: past.round,
        open_turn: last,
        cut_short,
        elsewhere: begun.into_keys().collect(),
    }
}

/// Where the effects of a call of a lost host are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Elsewhere {
    /// In the workspace of that host alone, of which the snapshot here is older.
    NotHere,
    /// Not known.
    Unknown,
}

/// The calls that a lost host began, by their number.
fn begun_elsewhere(said: &Past, restored: RestoredSession) -> BTreeMap<u32, Elsewhere> {
    let there = said.starts.iter().filter(|start| start.seq <= restored.last_seq);
    let effects = |start: &CallStart| {
        let is_known = start.contained && restored.lacks(start.seq);
        (start.call, if is_known { Elsewhere::NotHere } else { Elsewhere::Unknown })
    };
    there.map(effects).collect()
}

/// The end of a call that provably left nothing in this workspace.
fn not_here(open: &OpenCall) -> JournalRecord {
    let text = "This call did not happen here. It ran when its host was lost. Its sandbox had no \
                network and could write to that host's copy of the project only. This is another \
                copy, from before the call. Run it again if it is still wanted.";
    JournalRecord::Result {
        full: None,
        call: open.number,
        use_id: open.use_id.clone(),
        outcome: Outcome::Interrupted,
        text: text.to_owned(),
        summary: "its host was lost; it did not happen here".to_owned(),
        is_error: true,
        code: Some("not_here".to_owned()),
        images: Vec::new(),
        refused: Vec::new(),
        recalled: None,
        audit: None,
    }
}

/// A decision counts once it is on disk, even if a process died before the result was.
fn closing_record(open: &OpenCall) -> JournalRecord {
    let refused = |code: &str, text: &str| JournalRecord::Result {
        full: None,
        call: open.number,
        use_id: open.use_id.clone(),
        outcome: Outcome::Denied,
        text: text.to_owned(),
        summary: text.lines().next().unwrap_or_default().to_owned(),
        is_error: true,
        code: Some(code.to_owned()),
        images: Vec::new(),
        refused: Vec::new(),
        recalled: None,
        audit: None,
    };
    match &open.refused {
        Some(RefusedCall::Denied { message }) => refused("denied", message),
        Some(RefusedCall::Expired) => refused("expired", EXPIRED),
        None => JournalRecord::Interrupted {
            call: open.number,
            progress: open.progress,
            cause: LOST.to_owned(),
            tampered: Vec::new(),
            audit: None,
        },
    }
}

impl JournalRecord {
    /// Adds to the end of a lost call what became of protected files, in words, and where the audit log stood.
    pub fn complete(&mut self, names: Vec<String>, head: ChainHead) {
        if let Self::Interrupted { tampered, .. } = self {
            *tampered = names;
        }
        if let Self::Interrupted { audit, .. } | Self::Result { audit, .. } = self {
            *audit = Some(head);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{JournalEntry, LastTurn, ToolKind};

    fn past(records: Vec<JournalRecord>, turns: u32, turn: LastTurn) -> ResumeState {
        let entries = (1..).zip(records);
        let entries = entries.map(|(seq, record)| JournalEntry { seq, time: 0, record }).collect();
        ResumeState { entries, turns, prompted: 0, turn, prompt: None, round: 0 }
    }

    fn repaired(
        past: &ResumeState,
        wanted: OpenTurn,
        restored: Option<RestoredSession>,
    ) -> JournalRepair {
        repair_journal((past, &Past::fold(&past.entries)), wanted, restored)
    }

    fn proposed(call: u32) -> JournalRecord {
        JournalRecord::Proposed {
            call,
            use_id: format!("toolu_{call}"),
            own: None,
            tool: "bash".into(),
            tool_kind: ToolKind::Mutation,
            input: "{}".into(),
        }
    }

    #[test]
    fn a_session_that_ended_well_needs_nothing() {
        let mended = repaired(&past(Vec::new(), 2, LastTurn::Ended), OpenTurn::GoesOn, None);
        let (lost, records) = (Vec::new(), Vec::new());
        let (last, cut_short) = (OpenTurn::Waits, None);
        assert_eq!(
            mended,
            JournalRepair {
                lost,
                left_tasks: Vec::new(),
                records,
                turns: 2,
                round: 0,
                open_turn: last,
                cut_short,
                elsewhere: BTreeSet::new(),
            }
        );
    }

    #[test]
    fn what_was_refused_stays_refused_and_is_not_asked_again() {
        let basis = crate::BasisRecord::Person { who: "pts/1".into(), note: None };
        let denied = JournalRecord::Denied { call: 1, basis, message: "not that one".into() };
        let records = vec![proposed(1), denied, proposed(2), JournalRecord::Expired { call: 2 }];
        let mended = repaired(&past(records, 1, LastTurn::Open), OpenTurn::GoesOn, None);
        let [
            JournalRecord::Result { call: 1, text, outcome: Outcome::Denied, .. },
            JournalRecord::Result { call: 2, outcome: Outcome::Denied, .. },
        ] = &mended.records[..]
        else {
            panic!("{mended:?}")
        };
        assert_eq!((text.as_str(), mended.open_turn), ("not that one", OpenTurn::GoesOn));
    }

    #[test]
    fn a_turn_of_a_session_that_was_ended_in_order_is_no_death() {
        let mended = repaired(&past(vec![], 1, LastTurn::Left), OpenTurn::Waits, None);
        assert_eq!(mended.records, [JournalRecord::TurnEnded { end: TurnEnd::Interrupted }]);
        assert_eq!(mended.cut_short, None);
    }

    #[test]
    fn the_call_of_a_sub_agent_is_repeated_if_the_turn_goes_on() {
        let JournalRecord::Proposed { call, use_id, own, tool_kind, input, .. } = proposed(1)
        else {
            panic!("it is none")
        };
        let task =
            JournalRecord::Proposed { call, use_id, own, tool: TASK.into(), tool_kind, input };
        let start = JournalRecord::Start { call: 1, tool_kind: ToolKind::Query, contained: false };
        let past = past(vec![task, start], 1, LastTurn::Open);
        assert_eq!(repaired(&past, OpenTurn::GoesOn, None).lost, []);
        assert_eq!(repaired(&past, OpenTurn::Waits, None).lost.len(), 1);
    }

    #[test]
    fn a_sub_agent_in_the_background_is_left_to_work_if_the_session_goes_on() {
        let records = |tool: &str| {
            let JournalRecord::Proposed { call, use_id, own, tool_kind, input, .. } = proposed(1)
            else {
                panic!("it is none")
            };
            let begun = JournalRecord::Proposed {
                call,
                use_id: use_id.clone(),
                own,
                tool: tool.into(),
                tool_kind,
                input,
            };
            let start =
                JournalRecord::Start { call: 1, tool_kind: ToolKind::Query, contained: false };
            let text = "[call 1 runs in the background]".to_owned();
            vec![begun, start, JournalRecord::Background { call: 1, use_id, text }]
        };
        // Also between turns.
        for turn in [LastTurn::Open, LastTurn::Ended] {
            let task = past(records(TASK), 1, turn.clone());
            let on = repaired(&task, OpenTurn::GoesOn, None);
            assert_eq!((on.lost.len(), on.left_tasks.len(), on.records.len()), (0, 1, 0));
            let waits = repaired(&task, OpenTurn::Waits, None);
            assert_eq!((waits.lost.len(), waits.left_tasks.len()), (1, 0));
            // A command may have run, and is not run again.
            let command = repaired(&past(records("bash"), 1, turn), OpenTurn::GoesOn, None);
            assert_eq!((command.lost.len(), command.left_tasks.len()), (1, 0));
        }
    }

    #[test]
    fn open_calls_and_the_open_turn_are_ended_and_told_apart() {
        let start =
            JournalRecord::Start { call: 1, tool_kind: ToolKind::Mutation, contained: false };
        let past = past(vec![proposed(1), start, proposed(2)], 1, LastTurn::Open);
        let mended = repaired(&past, OpenTurn::Waits, None);
        let [
            JournalRecord::Interrupted { call: 1, progress: CallProgress::MayHaveRun, .. },
            JournalRecord::Interrupted { call: 2, progress: CallProgress::NeverStarted, .. },
            JournalRecord::TurnEnded { end: TurnEnd::ProcessDied(died) },
        ] = &mended.records[..]
        else {
            panic!("{mended:?}")
        };
        assert_eq!((mended.turns, died.process.as_str()), (1, "agentd-supervisor"));
        let on = repaired(&past, OpenTurn::GoesOn, None);
        let left = (on.records.len(), on.open_turn);
        assert_eq!(left, (1, OpenTurn::GoesOn), "the turn and the call that never began are left");
    }

    /// A call that a lost host began ends by what its START says and by the newest snapshot.
    #[test]
    fn a_call_of_a_lost_host_did_not_happen_here_or_may_have_run() {
        let call = |contained| {
            let proposed = JournalRecord::Proposed {
                call: 1,
                use_id: "u".to_owned(),
                own: None,
                tool: "bash".to_owned(),
                tool_kind: ToolKind::Mutation,
                input: "{}".to_owned(),
            };
            let start = JournalRecord::Start { call: 1, tool_kind: ToolKind::Mutation, contained };
            past(vec![proposed, start], 1, LastTurn::Open)
        };
        let end = |contained, restored| {
            let mut mended = repaired(&call(contained), OpenTurn::GoesOn, restored);
            assert_eq!(mended.elsewhere.len(), usize::from(restored.is_some()));
            mended.records.remove(0)
        };
        let start = call(true).entries.iter().map(|entry| entry.seq).max().unwrap_or_default();
        let restored = |last_seq, snapshot_seq| Some(RestoredSession { last_seq, snapshot_seq });
        let is_not_here = |record: &JournalRecord| matches!(record, JournalRecord::Result { code: Some(code), .. } if code == "not_here");
        assert!(is_not_here(&end(true, restored(start, start - 1))));
        for unknown in [end(false, restored(start, start - 1)), end(true, restored(start, start))] {
            assert!(matches!(unknown, JournalRecord::Interrupted { .. }), "{unknown:?}");
        }
        // It began on this host.
        assert!(matches!(end(true, None), JournalRecord::Interrupted { .. }));
    }
}
