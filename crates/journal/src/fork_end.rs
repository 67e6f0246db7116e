//! The end of a copy of a session that was cut in the middle of a turn, or while calls ran: the calls belong
//! to the other session, and the copy says so.

use crate::{
    CallProgress, ForkError, JournalEntry, JournalRecord, OpenCall, Outcome, Past, ResumeState,
    TurnEnd, fork, header, read,
};
use std::path::Path;

/// Makes session `id` as a copy of session `of`, up to this record or else up to the last record without an
/// open turn.
///
/// # Errors
/// As of [`fork`].
pub fn fork_at(sessions: &Path, (of, id): (&str, &str), at: Option<u64>) -> Result<(), ForkError> {
    let entries = read(&sessions.join(of))?.without_texts();
    let entries: Vec<_> = entries.map_while(Result::ok).collect();
    let at = at.unwrap_or_else(|| last_closed_turn(&entries));
    fork(sessions, (of, id), at, |copy| {
        let mut records = records(copy, of);
        // Queued prompts stay with the session in which they were sent.
        records.push(JournalRecord::TakenBack { waiting: Vec::new() });
        records.extend(still_valid(&entries, at));
        records
    })
}

/// The session that the one in this directory is a copy of, and the last call that both have.
pub fn forked_from(session_dir: &Path) -> Option<(String, u32)> {
    let parent = header(session_dir).ok()?.parent?;
    let entries = read(session_dir).ok()?.without_texts().map_while(Result::ok);
    let shared = entries.take_while(|entry| entry.seq <= parent.seq);
    let calls = shared.filter_map(|entry| {
        let JournalRecord::Proposed { call, .. } = entry.record else { return None };
        Some(call)
    });
    Some((parent.session, calls.max().unwrap_or(0)))
}

/// The last record without an open turn: the end of a turn, or a setting changed after it.
fn last_closed_turn(entries: &[JournalEntry]) -> u64 {
    let (mut rest, mut resting) = (1, true);
    for JournalEntry { seq, record, .. } in entries {
        let ends = matches!(record, JournalRecord::TurnEnded { .. });
        resting = ends || resting && !matches!(record, JournalRecord::Prompt { .. });
        if ends || resting && matches!(record, JournalRecord::Changed { .. }) {
            rest = *seq;
        }
    }
    rest
}

/// The records that end the open calls and the open turn of a copy of this session.
fn records(copy: &ResumeState, of: &str) -> Vec<JournalRecord> {
    let open = Past::fold(&copy.entries).open_calls();
    let mut records: Vec<_> = open.iter().map(|call| left_behind(call, of)).collect();
    if copy.turn.is_open() {
        records.push(JournalRecord::TurnEnded { end: TurnEnd::Interrupted });
    }
    records
}

/// Records behind the cut that hold for the copy too, since going back in the conversation undoes neither
/// what the disk holds nor what a person decided: protected files that are not restored, and the mode,
/// the network and the limit of costs.
fn still_valid(entries: &[JournalEntry], cut: u64) -> Vec<JournalRecord> {
    let behind = entries.iter().filter(|entry| entry.seq > cut).map(|entry| &entry.record);
    let is_tampered = |record: &&JournalRecord| matches!(record, JournalRecord::Tampered { .. });
    let tampered = behind.clone().rfind(is_tampered);
    let is_right = |record: &&JournalRecord| {
        let JournalRecord::Changed { network, mode, cost_limit, .. } = record else { return false };
        network.is_some() || mode.is_some() || cost_limit.is_some()
    };
    tampered.into_iter().chain(behind.filter(is_right)).cloned().collect()
}

/// A call that has its end in the other session, if it has one.
fn left_behind(call: &OpenCall, of: &str) -> JournalRecord {
    let (outcome, text, summary) = match call.progress {
        CallProgress::MayHaveRun => (
            Outcome::Interrupted,
            format!(
                "This conversation is a copy of session {of}, made while this call ran. The call belongs \
                 to session {of} and may still run there. Check its work before you rely on it."
            ),
            format!("it belongs to session {of}, not to this copy"),
        ),
        CallProgress::NeverStarted => (
            Outcome::NeverStarted,
            format!("This conversation is a copy of session {of}, made before this call started."),
            "it was not started before this copy was made".to_owned(),
        ),
    };
    JournalRecord::Result {
        full: None,
        call: call.number,
        use_id: call.use_id.clone(),
        outcome,
        text,
        summary,
        is_error: true,
        code: Some("interrupted".to_owned()),
        images: Vec::new(),
        refused: Vec::new(),
        recalled: None,
        audit: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LastTurn, ToolKind};

    #[test]
    fn a_copy_ends_its_turn_and_leaves_running_calls_to_the_other_session() {
        let proposed = |call| JournalRecord::Proposed {
            call,
            use_id: String::new(),
            own: None,
            tool: "bash".into(),
            tool_kind: ToolKind::Mutation,
            input: "{}".into(),
        };
        let start =
            JournalRecord::Start { call: 1, tool_kind: ToolKind::Mutation, contained: false };
        let entries = (1..).zip([proposed(1), start, proposed(2)]);
        let entries = entries.map(|(seq, record)| JournalEntry { seq, time: 0, record }).collect();
        let mut copy = ResumeState {
            entries,
            turns: 1,
            prompted: 0,
            turn: LastTurn::Open,
            prompt: None,
            round: 1,
        };
        let [
            JournalRecord::Result { call: 1, text: ran, .. },
            JournalRecord::Result { call: 2, text: not, .. },
            JournalRecord::TurnEnded { end: TurnEnd::Interrupted },
        ] = &records(&copy, "s")[..]
        else {
            panic!("{:?}", records(&copy, "s"))
        };
        assert!(ran.contains("may still run there") && not.contains("before this call started"));
        copy.turn = LastTurn::Ended;
        assert_eq!(records(&copy, "s").len(), 2, "a turn that ended has its end");
    }

    #[test]
    fn a_copy_keeps_tampered_files_and_the_rights_that_a_person_set_behind_the_cut() {
        let changed = |mode: Option<&str>, network: Option<&str>, pinned: Option<&str>| {
            JournalRecord::Changed {
                network: network.map(str::to_owned),
                mode: mode.map(str::to_owned),
                added: None,
                model: None,
                pinned: pinned.map(str::to_owned),
                unpinned: None,
                appended_system: None,
                cost_limit: None,
                by: "a person".to_owned(),
                flag: None,
                name: None,
            }
        };
        let tampered = |name: &str| JournalRecord::Tampered { names: vec![name.to_owned()] };
        let (plan, off) = (changed(Some("plan"), None, None), changed(None, Some("off"), None));
        let records = [
            changed(Some("auto"), None, None),
            tampered("old"),
            tampered("between"),
            plan.clone(),
            changed(None, None, Some("a.md")),
            tampered("new"),
            off.clone(),
        ];
        let entries = (1..).zip(records);
        let entries: Vec<_> =
            entries.map(|(seq, record)| JournalEntry { seq, time: 0, record }).collect();
        assert_eq!(still_valid(&entries, 2), [tampered("new"), plan, off]);
        assert_eq!(still_valid(&entries, 7), []);
    }
}
