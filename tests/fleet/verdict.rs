//! After the faults: each task has one result, no call ran twice, and none that `did not happen` did.
#![allow(clippy::wildcard_enum_match_arm)]

use crate::counter::Counter;
use crate::fault::Fleet;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What the journals, the audit logs, the patches and the counter say together.
#[derive(Debug, Default)]
pub struct Verdict {
    pub tasks: usize,
    pub calls: usize,
    pub not_here: usize,
    pub may_have_run: usize,
    /// Each with its reason.
    pub lost: Vec<String>,
    pub repeated: Vec<String>,
    pub untrue: Vec<String>,
}

/// How a call ended, as its session's journal has it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum End {
    Answered(String),
    NotHere,
    Interrupted,
}

/// Calls of one session: their mark, `a` or `b`, and their ends.
type Calls = BTreeMap<u64, (String, Vec<End>)>;

impl Verdict {
    pub fn of(fleet: &Fleet, counter: &Counter) -> Self {
        let mut verdict = Self::default();
        let sessions = sessions(fleet, &mut verdict);
        for (path, hits) in counter.all() {
            if hits > 1 {
                verdict.repeated.push(format!("{path} was asked for {hits} times"));
            }
        }
        let mut started = BTreeSet::new();
        for host in &fleet.hosts {
            for (session, call) in host.started_calls() {
                if !started.insert((session.clone(), call)) {
                    verdict.repeated.push(format!("call {call} of {session} was let go twice"));
                }
            }
        }
        let patches = results(fleet, &mut verdict);
        for (session, calls) in &sessions {
            for (mark, ends) in calls.values() {
                verdict.calls += 1;
                verdict.call(session, mark, ends, (patches.get(session), counter));
            }
        }
        verdict
    }

    fn call(
        &mut self,
        session: &str,
        mark: &str,
        ends: &[End],
        (patch, counter): (Option<&(String, bool)>, &Counter),
    ) {
        let name = format!("call {mark} of {session}");
        let hits = counter.hits(&format!("/{session}/{mark}"));
        if ends.len() > 1 {
            self.repeated.push(format!("{name} ended {} times", ends.len()));
        }
        match ends.first() {
            None => {}
            Some(End::NotHere) => {
                self.not_here += 1;
                if hits > 0 {
                    self.untrue.push(format!("{name} did not happen and was counted"));
                }
            }
            Some(End::Interrupted) => self.may_have_run += 1,
            Some(End::Answered(text)) if text.contains("counted") && hits != 1 => {
                self.lost.push(format!("{name} was counted {hits} times: {text}"));
            }
            Some(End::Answered(_)) => {}
        }
        let Some((patch, open)) = patch else { return };
        let marks = patch.lines().filter(|line| *line == format!("+{mark}")).count();
        if marks > 1 {
            self.repeated.push(format!("{name} made {marks} marks"));
        }
        match ends.first() {
            Some(End::NotHere) if marks > 0 => {
                self.untrue.push(format!("{name} did not happen and left a mark"));
            }
            Some(End::Answered(text)) if text.contains("ended") && marks == 0 => {
                self.lost.push(format!("{name} left no mark ({open}): {text}"));
            }
            _ => {}
        }
    }
}

/// The calls of each session in the database, whose records must be whole.
fn sessions(fleet: &Fleet, verdict: &mut Verdict) -> BTreeMap<String, Calls> {
    let rows = fleet.postgres.sql(
        "select json_build_object('session', session, 'seq', seq, 'record', line::json)
         from agentd.journal order by session, seq",
    );
    let mut sessions: BTreeMap<String, Calls> = BTreeMap::new();
    let mut last = (String::new(), 0);
    for row in rows.lines() {
        let row: Value = serde_json::from_str(row).unwrap();
        let session = row["session"].as_str().unwrap().to_owned();
        let seq = row["seq"].as_u64().unwrap();
        let expected = if last.0 == session { last.1 + 1 } else { 1 };
        if seq != expected {
            verdict.lost.push(format!("record {expected} of {session}: the next is {seq}"));
        }
        last = (session.clone(), seq);
        let record = &row["record"];
        let calls = sessions.entry(session).or_default();
        let Some(call) = record["call"].as_u64() else { continue };
        let (mark, ends) = calls.entry(call).or_default();
        match record["kind"].as_str().unwrap_or_default() {
            "PROPOSED" => *mark = mark_of(&record.to_string()),
            "RESULT" if record["code"] == "not_here" => ends.push(End::NotHere),
            "RESULT" => ends.push(End::Answered(record.to_string())),
            "INTERRUPTED" => ends.push(End::Interrupted),
            _ => {}
        }
    }
    sessions
}

fn mark_of(record: &str) -> String {
    let mark = record.split("echo ").nth(1).and_then(|rest| rest.chars().next());
    mark.map(String::from).unwrap_or_default()
}

/// The patch of each session that ended its task, and whether its calls had a network.
fn results(fleet: &Fleet, verdict: &mut Verdict) -> BTreeMap<String, (String, bool)> {
    let rows = fleet.postgres.sql(
        "select json_build_object('id', t.id, 'session', t.session, 'state', t.state, 'reason', t.reason,
             'open', 'net=on' = any (t.labels), 'error', t.result ->> 'patch_error',
             'answer', t.result ->> 'answer', 'patch', convert_from(b.bytes, 'UTF8'))
         from agentd.task t left join agentd.blob b on encode(b.sha256, 'hex') = t.result ->> 'patch'
         order by t.id",
    );
    let mut patches = BTreeMap::new();
    for row in rows.lines() {
        let row: Value = serde_json::from_str(row).unwrap();
        verdict.tasks += 1;
        if row["state"] != "done" || row["answer"] != "done" || !row["error"].is_null() {
            verdict.lost.push(format!("task without a result: {row}"));
        }
        let session = row["session"].as_str().unwrap().to_owned();
        let patch = row["patch"].as_str().unwrap_or_default().to_owned();
        patches.insert(session, (patch, row["open"] == true));
    }
    patches
}
