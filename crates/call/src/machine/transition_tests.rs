//! Each input in each phase, compared with the table of transitions in the README of this crate.
// An effect without more to show is shown by its name.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use super::CallMachine;
use crate::call_tests::{
    allow, asked, asks, by_server, caged, ended, facts, found, kept_file, lost, of_server,
    probe_of, question, replied, report,
};
use crate::effect::{CallConclusion, CallEffect, CallRecord, Cut};
use crate::facts::{CachePolicy, CallFacts, Contained, Executor, NeedsProbe, Protects, UndoBy};
use crate::file_versions::FileVersions;
use crate::input::{CallInput, Heard, WillRestart};
use crate::server_ask::{ServerDemand, ServerInput};
use protocol::judgement::{Basis, Bounded, EffectReach, ExtraRight, ToolKind, Verdict};
use protocol::mcp::ServerReply;
use protocol::store::{CachedResult, UndoCover};
use std::collections::BTreeSet;
use tool_specs::{JobAsk, JobRequest, TaskRequest};

const README: &str = include_str!("../../README.md");

/// A row of the table. A pair is decided by the first row that fits it.
#[derive(Debug)]
struct Row {
    phases: Vec<&'static str>,
    when: Vec<&'static str>,
    inputs: Vec<&'static str>,
    effects: &'static str,
    next: &'static str,
}

impl Row {
    fn fits(&self, (phase, when, input): (&str, &[&str], &str)) -> bool {
        let is_phase = self.phases == ["any"] || self.phases.contains(&phase);
        // `Verdict` stands for each verdict.
        let is_input = |row: &&str| input == *row || input.starts_with(&format!("{row} "));
        is_phase
            && self.when.iter().all(|flag| when.contains(flag))
            && self.inputs.iter().any(is_input)
    }
}

fn list(cell: &'static str) -> Vec<&'static str> {
    cell.split(", ").filter(|part| !part.is_empty()).collect()
}

fn rows() -> Vec<Row> {
    let (_, table) = README.split_once("| Phase | When | Input | Effects | Next |\n").unwrap();
    let table = table.split("\n\n").next().unwrap();
    let row = |line: &'static str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [phases, when, inputs, effects, next] = cells[..] else { panic!("{line}") };
        Row { phases: list(phases), when: list(when), inputs: list(inputs), effects, next }
    };
    table.lines().skip(1).map(row).collect()
}

/// A call in a phase, with what else counts there.
struct Situation {
    when: &'static [&'static str],
    machine: CallMachine,
}

/// Steps as the call actor does: it says when it has sent the request of an effect.
fn after(facts: CallFacts, inputs: impl IntoIterator<Item = CallInput>) -> CallMachine {
    let mut machine = CallMachine::new(facts);
    for input in inputs {
        let effects = machine.step(input);
        if matches!(
            effects.last(),
            Some(
                CallEffect::Go(_)
                    | CallEffect::AskStore(_)
                    | CallEffect::AskJob(_)
                    | CallEffect::AskServer(_)
                    | CallEffect::StartTask(_)
            )
        ) {
            machine.sent();
        }
    }
    machine
}

/// The same, with the request of the last effect not sent.
fn before_it_is_sent(
    facts: CallFacts,
    inputs: impl IntoIterator<Item = CallInput>,
    last: CallInput,
) -> CallMachine {
    let mut machine = after(facts, inputs);
    machine.step(last);
    machine
}

fn executed_by(executor: Executor, kind: ToolKind) -> CallFacts {
    CallFacts { executor, ..facts(kind, NeedsProbe::No) }
}

fn command() -> CallFacts {
    let cache = CachePolicy::InvalidatesAll;
    CallFacts { undo: UndoBy::Snapshot, cache, ..facts(ToolKind::Mutation, NeedsProbe::No) }
}

fn cached_result() -> Option<Box<CachedResult>> {
    Some(Box::new(CachedResult { by: 7, probe: probe_of("/p/a", "d"), report: report("cached") }))
}

fn allowed() -> [CallInput; 2] {
    [CallInput::Begin, allow()]
}

fn to_go() -> impl Iterator<Item = CallInput> {
    allowed().into_iter().chain([caged(), CallInput::GoPrepared])
}

fn to_began() -> impl Iterator<Item = CallInput> {
    to_go().chain([CallInput::Began])
}

fn no_broker() -> CallInput {
    CallInput::BrokerFailed("it ended".into())
}

fn ask() -> CallInput {
    CallInput::Verdict(Verdict::Ask(question()))
}

fn gone() -> CallInput {
    CallInput::RunnerGone(Heard::All)
}

fn situations() -> Vec<Situation> {
    let plain = || facts(ToolKind::Mutation, NeedsProbe::No);
    let query = || facts(ToolKind::Query, NeedsProbe::No);
    let probed = || {
        let mut file_versions = FileVersions::default();
        let digest = journal::Digest::of(b"1");
        let files = vec![journal::FileVersionRecord { path: "/p/read".into(), digest }];
        file_versions.apply(&journal::JournalRecord::Seen { files });
        CallFacts { file_versions, ..facts(ToolKind::Mutation, NeedsProbe::Yes) }
    };
    let snapshot = |facts| CallFacts { undo: UndoBy::Snapshot, ..facts };
    let copy = || CallFacts { undo: UndoBy::Copy, ..probed() };
    let restore = || CallFacts { undo: UndoBy::Restore, ..probed() };
    let cacheable = |facts| CallFacts { cache: CachePolicy::Lookup, ..facts };
    let bounded = |facts| CallFacts { reach: EffectReach::Undoable, ..facts };
    let sandboxed = || CallInput::Verdict(Verdict::Allow(Basis::Sandboxed(Bounded::Command)));
    let contained = || CallFacts { contained: Contained::Yes, ..plain() };
    let protects = || CallFacts { protects: Protects::Files, ..plain() };
    let widened = || CallFacts { extra_rights: vec![ExtraRight::Network], ..plain() };
    let answered = || executed_by(Executor::Conversation(report("own").result), ToolKind::Query);
    let by_job =
        || executed_by(Executor::Job(JobRequest { call: 7, asks: JobAsk::Stop }), ToolKind::Query);
    let by_store = |kind| executed_by(Executor::Store, kind);
    let by_agent = || executed_by(Executor::SubAgent(TaskRequest::default()), ToolKind::Query);
    let at_server = || executed_by(by_server(), ToolKind::Mutation);
    let no_store = || lost(WillRestart::No);
    let new = |facts| after(facts, []);
    let begun = |facts| after(facts, [CallInput::Begin]);
    let started = |facts, more: Vec<CallInput>| after(facts, allowed().into_iter().chain(more));
    let released = |more: Vec<CallInput>| after(plain(), to_go().chain(more));
    let running = |facts, more: Vec<CallInput>| after(facts, to_began().chain(more));
    let server = |more: Vec<CallInput>| started(at_server(), more);
    let is = |when, machine| Situation { when, machine };
    vec![
        // New.
        is(&[], new(plain())),
        is(&["needs a probe"], new(probed())),
        is(&["undo by snapshot"], new(snapshot(plain()))),
        is(&["undo by snapshot", "needs a probe"], new(snapshot(probed()))),
        is(&["undo by snapshot", "no broker"], after(snapshot(plain()), [no_broker()])),
        is(&["undo by restore"], new(restore())),
        is(&["undo by restore", "no store"], after(restore(), [no_store()])),
        is(&["may be cached"], new(cacheable(query()))),
        is(&["no store"], after(cacheable(query()), [no_store()])),
        is(&["no broker"], after(plain(), [no_broker()])),
        is(&["undo by snapshot", "undo decides"], new(bounded(snapshot(plain())))),
        is(
            &["undo by snapshot", "undo decides", "no store"],
            after(bounded(snapshot(plain())), [no_store()]),
        ),
        // AskingUndo.
        is(&[], begun(bounded(snapshot(plain())))),
        is(&[], after(bounded(copy()), [CallInput::Begin, CallInput::Probed(Ok(found()))])),
        is(&["no broker"], after(bounded(snapshot(plain())), [no_broker(), CallInput::Begin])),
        // CacheLookup.
        is(&[], begun(cacheable(query()))),
        is(&["needs a probe"], begun(cacheable(probed()))),
        is(&["no broker"], after(cacheable(query()), [no_broker(), CallInput::Begin])),
        // FetchingRestore.
        is(&[], begun(restore())),
        is(&["store lost before"], after(restore(), [CallInput::Begin, lost(WillRestart::Yes)])),
        // Probing.
        is(&[], begun(probed())),
        is(&["retried"], after(probed(), [CallInput::Begin, ended()])),
        is(&["cancelled"], after(probed(), [CallInput::Begin, CallInput::Cancel])),
        is(&["no broker"], after(probed(), [no_broker(), CallInput::Begin])),
        is(&["undo decides"], begun(bounded(copy()))),
        // Judging.
        is(&["runner"], begun(plain())),
        is(
            &["runner", "undo by copy"],
            after(copy(), [CallInput::Begin, CallInput::Probed(Ok(found()))]),
        ),
        is(&["runner", "undo by snapshot"], begun(snapshot(plain()))),
        is(&["runner", "asks for more rights"], begun(widened())),
        is(&["runner", "asked before"], after(plain(), [CallInput::Begin, ask()])),
        is(
            &["runner", "result cached"],
            after(cacheable(query()), [CallInput::Begin, CallInput::CacheAnswer(cached_result())]),
        ),
        is(
            &["runner", "result cached", "needs a probe"],
            after(cacheable(probed()), [CallInput::Begin, CallInput::CacheAnswer(cached_result())]),
        ),
        is(&["conversation"], begun(answered())),
        is(&["store"], begun(by_store(ToolKind::Mutation))),
        is(
            &["store", "no store"],
            after(by_store(ToolKind::Mutation), [no_store(), CallInput::Begin]),
        ),
        is(&["other call"], begun(by_job())),
        is(&["server"], begun(at_server())),
        is(&["sub-agent"], begun(by_agent())),
        // Recording.
        is(
            &["store"],
            before_it_is_sent(by_store(ToolKind::Mutation), [CallInput::Begin], allow()),
        ),
        is(&["other call"], before_it_is_sent(by_job(), [CallInput::Begin], allow())),
        is(&["server"], before_it_is_sent(at_server(), [CallInput::Begin], allow())),
        is(&["sub-agent"], before_it_is_sent(by_agent(), [CallInput::Begin], allow())),
        // Starting.
        is(&["building"], started(plain(), vec![])),
        is(&["caged"], started(plain(), vec![caged()])),
        is(&["building", "prepared"], started(plain(), vec![CallInput::GoPrepared])),
        is(
            &["caged", "prepared"],
            before_it_is_sent(
                plain(),
                allowed().into_iter().chain([caged()]),
                CallInput::GoPrepared,
            ),
        ),
        is(&["building", "contained"], started(contained(), vec![])),
        is(&["building", "passed by the sandbox"], after(plain(), [CallInput::Begin, sandboxed()])),
        is(&["building", "retried"], started(plain(), vec![ended()])),
        is(&["building", "cancelled"], started(plain(), vec![CallInput::Cancel])),
        is(&["cancelled", "caged"], started(plain(), vec![caged(), CallInput::Cancel])),
        is(
            &["building", "cancelled", "prepared"],
            started(plain(), vec![CallInput::GoPrepared, CallInput::Cancel]),
        ),
        // The gap: the runner is gone, and processes of its cage are not.
        is(&["runner gone"], started(plain(), vec![caged(), gone()])),
        is(&["runner gone", "prepared"], started(plain(), vec![CallInput::GoPrepared, gone()])),
        is(&["runner gone", "prepared"], released(vec![gone()])),
        is(
            &["runner gone", "prepared"],
            released(vec![CallInput::CageLost { why: "killed".into() }]),
        ),
        is(&["runner gone", "cancelled"], started(plain(), vec![CallInput::Cancel, gone()])),
        // Released.
        is(&[], released(vec![])),
        is(
            &["retried"],
            after(plain(), allowed().into_iter().chain([ended(), caged(), CallInput::GoPrepared])),
        ),
        is(&["cancelled"], released(vec![CallInput::Cancel])),
        // Running.
        is(&[], running(plain(), vec![])),
        is(&["query"], running(query(), vec![])),
        is(&["query", "cancelled"], running(query(), vec![CallInput::Cancel])),
        is(&["query", "retried"], running(query(), vec![ended(), caged(), CallInput::Began])),
        is(&["protects files"], running(protects(), vec![])),
        is(&["command"], running(command(), vec![])),
        is(&["command", "in background"], running(command(), vec![CallInput::Detach])),
        is(&["command", "cancelled"], running(command(), vec![CallInput::Cancel])),
        // Reported and Repairing.
        is(&[], running(plain(), vec![CallInput::Done(report("done"))])),
        is(&[], running(protects(), vec![ended()])),
        // AtStore.
        is(&["mutation"], started(by_store(ToolKind::Mutation), vec![])),
        is(
            &["mutation", "cancelled"],
            started(by_store(ToolKind::Mutation), vec![CallInput::Cancel]),
        ),
        is(
            &["mutation", "store lost before"],
            started(by_store(ToolKind::Mutation), vec![lost(WillRestart::Yes)]),
        ),
        is(&["query"], started(by_store(ToolKind::Query), vec![])),
        is(
            &["query", "store lost before"],
            started(by_store(ToolKind::Query), vec![lost(WillRestart::Yes)]),
        ),
        // AtOtherCall.
        is(&["other call"], started(by_job(), vec![])),
        is(&["server"], server(vec![])),
        is(&["server", "no broker"], server(vec![no_broker()])),
        is(&["server", "asks"], server(vec![asks(1)])),
        is(&["server", "asks", "people asked"], server(vec![asks(1), asked("d1")])),
        is(&["server", "asks", "another waits"], server(vec![asks(1), asks(2)])),
        is(
            &["server", "asks", "people asked", "another waits"],
            server(vec![asks(1), asks(2), asked("d1")]),
        ),
        is(
            &["server", "asks", "another waits", "too many wait"],
            server((1..=8).map(asks).collect()),
        ),
        is(&["server", "asked since"], server(vec![asks(1), replied(ServerReply::Decline)])),
        // AtSubAgent.
        is(&[], started(by_agent(), vec![])),
        is(&["in background"], started(by_agent(), vec![CallInput::Detach])),
        is(&["cancelled"], started(by_agent(), vec![CallInput::Cancel])),
        // Over.
        is(&[], after(plain(), [CallInput::Begin, CallInput::Cancel])),
    ]
}

/// The inputs by name; without an input: the actor has sent the request of the last effect.
fn inputs() -> Vec<(&'static str, Option<CallInput>)> {
    let stopped = CallInput::StoppedByAnswer(Basis::Person("terminal 1".into()), "stop".into());
    let deny = Verdict::Deny(Basis::Person("terminal 1".into()), "no".into());
    let failed = |step: &str| CallInput::CageFailed { step: step.into(), reason: "no".into() };
    let cause = || "was ended by signal 9".to_owned();
    let left = Err(report("none").result);
    let named: Vec<(&str, CallInput)> = vec![
        ("Begin", CallInput::Begin),
        ("CacheAnswer Found", CallInput::CacheAnswer(cached_result())),
        ("CacheAnswer None", CallInput::CacheAnswer(None)),
        ("UndoCovers", CallInput::UndoCovers(UndoCover::Covers)),
        ("RestoreFetched Files", CallInput::RestoreFetched(Ok(vec![kept_file()]))),
        ("RestoreFetched Result", CallInput::RestoreFetched(left)),
        ("Probed Paths", CallInput::Probed(Ok(found()))),
        ("Probed Changed", CallInput::Probed(Ok(probe_of("/p/read", "other")))),
        ("Probed Failed", CallInput::Probed(Err("no".into()))),
        ("Verdict Allow", allow()),
        ("Verdict Deny", CallInput::Verdict(deny)),
        ("Verdict Ask", ask()),
        ("StoppedByAnswer", stopped),
        ("Expired", CallInput::Expired),
        ("BrokerBack", CallInput::BrokerBack),
        ("BrokerFailed", no_broker()),
        ("ReserveLost", CallInput::ReserveLost),
        ("Caged", caged()),
        ("CageFailed Grants", failed("grants")),
        ("CageFailed Other", failed("landlock")),
        ("CageLost", CallInput::CageLost { why: "killed".into() }),
        ("GoPrepared", CallInput::GoPrepared),
        ("GoWithoutCopies", CallInput::GoWithoutCopies("it is late".into())),
        ("Began", CallInput::Began),
        ("Output", CallInput::Output("text".into())),
        ("Detach", CallInput::Detach),
        ("Done", CallInput::Done(report("done"))),
        ("RunnerGone All", gone()),
        ("RunnerGone Cut", CallInput::RunnerGone(Heard::Cut)),
        ("RunnerEnded", ended()),
        ("Repaired", CallInput::Repaired(Vec::new())),
        ("Stored", CallInput::Stored(report("stored").result)),
        ("StoreLost Restarts", lost(WillRestart::Yes)),
        ("StoreLost Stays", lost(WillRestart::No)),
        ("StoreBack", CallInput::StoreBack),
        ("OtherAnswered", CallInput::OtherAnswered(report("other").result)),
        ("OfServer Asks", asks(9)),
        ("OfServer Unasked", of_server(ServerInput::Unasked(1))),
        ("OfServer Replied", replied(ServerReply::Decline)),
        ("OfServer Late", of_server(ServerInput::Late)),
        ("ServerAnswered", CallInput::ServerAnswered(Box::new((report("server"), None)))),
        ("ServerLost", CallInput::ServerLost { cause: cause() }),
        ("TaskEnded", CallInput::TaskEnded(report("task").result)),
        ("Cancel", CallInput::Cancel),
        ("Overdue", CallInput::Overdue),
        ("WrongGrant", CallInput::WrongGrant("of call 7".into())),
        ("DiskFailed", CallInput::DiskFailed("no space".into())),
        ("LeaseLost", CallInput::LeaseLost("it ran out".into())),
    ];
    let inputs = named.into_iter().map(|(name, input)| {
        assert!(name.split(' ').next() == Some(&variant(&input)), "{name} is {input:?}");
        (name, Some(input))
    });
    inputs.chain([("sent", None)]).collect()
}

/// The name of a variant.
fn variant(value: &impl std::fmt::Debug) -> String {
    let text = format!("{value:?}");
    text.chars().take_while(|letter| letter.is_alphanumeric()).collect()
}

/// The effects as the table names them. A change of cached results that the policy of the call demands before its end
/// is left out.
fn shown(effects: &[CallEffect], cache: CachePolicy) -> String {
    let names = effects.iter().map(|effect| {
        let of = match effect {
            CallEffect::Record(records) | CallEffect::PrepareGo(records) => {
                let upper = |record: &CallRecord| variant(record).to_uppercase();
                records.iter().map(upper).collect::<Vec<_>>().join(" ")
            }
            CallEffect::OfServer(effect) => variant(effect),
            CallEffect::AskServer(request) => match &request.demand {
                ServerDemand::Call(_) => "to call".to_owned(),
                ServerDemand::Withdraw => "to withdraw".to_owned(),
                ServerDemand::Reply(..) => "to reply".to_owned(),
            },
            CallEffect::Show(event) => variant(event),
            CallEffect::Conclude(conclusion) => ending(conclusion),
            _ => String::new(),
        };
        format!("{} {of}", variant(effect)).trim().to_owned()
    });
    let mut names: Vec<String> = names.collect();
    let is_of_cache = |name: &String| ["Invalidate", "CachePut"].contains(&name.as_str());
    let is_end = names.last().is_some_and(|name| name.starts_with("Conclude"));
    if is_end && cache != CachePolicy::Unused {
        names.retain(|name| !is_of_cache(name));
    }
    while let Some(at) = names.windows(4).position(|four| four[..2] == four[2..]) {
        names.drain(at..at + 2);
    }
    match names.is_empty() {
        true => "none".to_owned(),
        false => names.join(", "),
    }
}

fn ending(conclusion: &CallConclusion) -> String {
    match (&conclusion.cut, conclusion.cached_from, &conclusion.result.code) {
        (Cut::BeforeGo { .. }, _, _) => "`never started`".to_owned(),
        (Cut::AfterGo { .. }, _, _) => "`may have run`".to_owned(),
        (Cut::No, Some(_), _) => "the cached result".to_owned(),
        (Cut::No, None, Some(code)) => format!("`{code}`"),
        (Cut::No, None, None) => "its result".to_owned(),
    }
}

#[test]
fn the_machine_does_what_the_table_says_and_nothing_else() {
    let rows = rows();
    let mut used = vec![0_usize; rows.len()];
    let (mut wrong, mut pairs, mut phases) = (Vec::new(), 0, BTreeSet::new());
    for at in 0..inputs().len() {
        for Situation { when, mut machine } in situations() {
            let (name, input) = inputs().swap_remove(at);
            let phase = variant(&machine.phase);
            let effects = match input {
                Some(input) => machine.step(input),
                None => {
                    machine.sent();
                    Vec::new()
                }
            };
            let next = variant(&machine.phase);
            let row = rows.iter().position(|row| row.fits((&phase, when, name)));
            let (effects_due, next_due) = match row {
                Some(row) => {
                    used[row] += 1;
                    (rows[row].effects, rows[row].next)
                }
                None => ("none", "same"),
            };
            let next = if next == phase { "same".to_owned() } else { next };
            let next_due = if next_due == phase { "same" } else { next_due };
            let effects = shown(&effects, machine.facts.cache);
            if (effects.as_str(), next.as_str()) != (effects_due, next_due) {
                wrong.push(format!(
                    "| {phase} | {} | {name} | {effects} | {next} |   not {effects_due} | {next_due}",
                    when.join(", ")
                ));
            }
            phases.insert(phase);
            pairs += 1;
        }
    }
    assert!(wrong.is_empty(), "the machine does otherwise:\n{}", wrong.join("\n"));
    let idle: Vec<&Row> =
        rows.iter().zip(used).filter(|(_, used)| *used == 0).map(|(row, _)| row).collect();
    assert!(idle.is_empty(), "rows that no pair comes to: {idle:#?}");
    let told: BTreeSet<&str> = rows.iter().flat_map(|row| row.when.clone()).collect();
    let apart: BTreeSet<&str> =
        situations().iter().flat_map(|situation| situation.when).copied().collect();
    assert_eq!(apart, told, "what the situations differ in, and what the rows name");
    let driven: BTreeSet<String> =
        inputs().iter().filter_map(|(_, input)| Some(variant(input.as_ref()?))).collect();
    assert_eq!(driven, declared(include_str!("../input.rs"), "pub enum CallInput {"));
    assert_eq!(phases, declared(include_str!("../phase.rs"), "pub(crate) enum CallPhase {"));
    assert!(pairs > 3000, "{pairs} pairs");
}

/// The variants of an enum, as its file declares them.
fn declared(file: &str, head: &str) -> BTreeSet<String> {
    let body = file.split_once(head).unwrap().1.split("\n}").next().unwrap();
    let lines = body.lines().filter_map(|line| line.strip_prefix("    "));
    lines
        .filter(|line| line.starts_with(char::is_uppercase))
        .map(|line| line.chars().take_while(|letter| letter.is_alphanumeric()).collect())
        .collect()
}
