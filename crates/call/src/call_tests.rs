//! The machine of a call, case by case.

use super::*;
use crate::machine::requests::MAX_CACHED_BYTES;
use crate::results::failed;
use protocol::call::{Call, Outcome, ProbeReport, RunReport, TamperedFile, ToolResult};
use protocol::call::{CallOrigin, ProcessUsage};
use protocol::client::ClientEvent;
use protocol::confinement::Enforced;
use protocol::confinement::Tier;
use protocol::ids::{CallId, SessionId};
use protocol::judgement::{
    Ask, Basis, Bounded, Effect, EffectReach, ExtraRight, Question, ToolKind, Verdict,
};
use protocol::judgement::{PermissionMode, Rule, RuleEffect};
use protocol::mcp::ServerReply;
use protocol::store::{CachedResult, FileBackup, MayHaveChanged, UndoCover, UndoScope};
use protocol::tool::{JudgedPath, RunnerJob};
use tool_specs::{JobAsk, JobRequest, RunsIn, ServerToolCall};

fn machine(kind: ToolKind, probed: NeedsProbe) -> CallMachine {
    CallMachine::new(facts(kind, probed))
}

pub(crate) fn facts(kind: ToolKind, probed: NeedsProbe) -> CallFacts {
    let id = CallId { session: SessionId("0123456789ab".into()), number: 1 };
    CallFacts {
        executor: Executor::Runner,
        runs_in: RunsIn::Foreground,
        contained: Contained::No,
        undo: UndoBy::Nothing,
        reach: EffectReach::Unknown,
        protects: Protects::Nothing,
        cache: CachePolicy::Unused,
        call: Call {
            id,
            origin: CallOrigin::model("toolu_1"),
            tool: "bash".into(),
            input: "{}".into(),
        },
        kind,
        kind_for_verdict: kind,
        page: None,
        web: None,
        denied_reads: protocol::judgement::RuleSet::empty(),
        command: Some("true".into()),
        stored_bytes: 0,
        needs_probe: probed,
        confinement: "may write: this project; network: off".into(),
        extra_rights: Vec::new(),
        env: Vec::new(),
        timeout_ms: 1000,
        max_result_chars: 30_000,
        pending_question: None,
        file_versions: FileVersions::default(),
        configured: None,
        typed_by: None,
        tampered: Vec::new(),
        remarks: CallRemarks::default(),
        hint: None,
    }
}

/// What the store says of undo goes to the broker, and nothing that it did not say is taken for a yes.
#[test]
fn the_broker_judges_by_what_the_store_says_of_undo() {
    let bounded = || CallFacts {
        reach: EffectReach::Undoable,
        undo: UndoBy::Snapshot,
        ..facts(ToolKind::Mutation, NeedsProbe::No)
    };
    let judged = |input: CallInput| {
        let mut machine = CallMachine::new(bounded());
        let asked = machine.step(CallInput::Begin);
        assert!(
            matches!(
                &asked[..],
                [CallEffect::PrepareSnapshot, CallEffect::AskUndo(UndoScope::Project)]
            ),
            "{asked:?}"
        );
        match machine.step(input).as_slice() {
            [CallEffect::Judge(case)] => case.reach.clone(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(judged(CallInput::UndoCovers(UndoCover::Covers)), EffectReach::Undoable);
    let leaves = || UndoCover::Leaves("too large".into());
    let not_undone = EffectReach::Beyond(vec![Effect::NotUndone("too large".into())]);
    assert_eq!(judged(CallInput::UndoCovers(leaves())), not_undone);
    for will_restart in [WillRestart::Yes, WillRestart::No] {
        let reach = judged(CallInput::StoreLost { cause: "ended".into(), will_restart });
        assert!(matches!(reach, EffectReach::Beyond(_)), "{reach:?}");
    }
    // A late answer changes nothing, and no other reach asks the store.
    let mut machine = CallMachine::new(bounded());
    machine.step(CallInput::Begin);
    machine.step(CallInput::UndoCovers(leaves()));
    assert_eq!(machine.step(CallInput::UndoCovers(UndoCover::Covers)), []);
    for reach in [EffectReach::Unknown, EffectReach::Beyond(vec![Effect::Network])] {
        let mut machine = CallMachine::new(CallFacts { reach: reach.clone(), ..bounded() });
        match machine.step(CallInput::Begin).as_slice() {
            [CallEffect::PrepareSnapshot, CallEffect::Judge(case)] => assert_eq!(case.reach, reach),
            other => panic!("{other:?}"),
        }
    }
}

/// A call that was let pass since undo covers it, and its full cage.
fn promised(facts: CallFacts) -> (CallMachine, CallInput) {
    let mut machine = CallMachine::new(facts);
    machine.step(CallInput::Begin);
    machine.step(CallInput::UndoCovers(UndoCover::Covers));
    machine.step(CallInput::Verdict(Verdict::Allow(Basis::Sandboxed(Bounded::Command))));
    let caged = Enforced { tier: Tier::A, ..Enforced::nothing("command") };
    (machine, CallInput::Caged(caged))
}

#[test]
fn a_call_that_passes_since_undo_covers_it_gets_no_go_without_copies() {
    let facts = || CallFacts {
        undo: UndoBy::Snapshot,
        reach: EffectReach::Undoable,
        ..facts(ToolKind::Mutation, NeedsProbe::No)
    };
    let late = || CallInput::GoWithoutCopies("the store is away".to_owned());
    for cage_first in [true, false] {
        let (mut call, caged) = promised(facts());
        let [first, second] = if cage_first { [caged, late()] } else { [late(), caged] };
        assert_eq!(call.step(first), []);
        let effects = call.step(second);
        assert_eq!(effects[0], CallEffect::KillRunner, "{effects:?}");
        let result = &conclusion(&effects).result;
        assert_eq!(result.code.as_deref(), Some("not_covered"));
        assert!(result.text.contains("the store is away"), "{result:?}");
        assert!(result.text.contains("Try it again"), "{result:?}");
    }
    // With copies it runs, and a call that passed otherwise does without.
    let (mut call, caged) = promised(facts());
    call.step(caged);
    assert!(matches!(call.step(CallInput::GoPrepared)[..], [CallEffect::Go(_)]));
    let mut other = CallMachine::new(facts());
    other.step(CallInput::Begin);
    other.step(CallInput::UndoCovers(UndoCover::Covers));
    other.step(allow());
    let (_, caged) = promised(facts());
    other.step(caged);
    assert!(matches!(other.step(late())[..], [CallEffect::Go(_)]));
}

#[test]
fn a_call_that_passes_since_undo_covers_it_stays_in_the_foreground() {
    let command = || CallFacts {
        undo: UndoBy::Snapshot,
        reach: EffectReach::Undoable,
        command: Some("make".into()),
        ..facts(ToolKind::Mutation, NeedsProbe::No)
    };
    let run = |call: &mut CallMachine, caged: CallInput| {
        call.step(caged);
        assert!(matches!(call.step(CallInput::GoPrepared)[..], [CallEffect::Go(_)]));
        call.sent();
        call.step(CallInput::Began);
        call.step(CallInput::Detach)
    };
    let (mut call, caged) = promised(command());
    match run(&mut call, caged).as_slice() {
        [CallEffect::Show(ClientEvent::Notice { text })] => {
            assert!(text.contains("stays in the foreground"), "{text}");
        }
        other => panic!("{other:?}"),
    }
    assert!(!call.is_in_background());
    // The control: where a person or a rule let it pass.
    let mut call = CallMachine::new(command());
    call.step(CallInput::Begin);
    call.step(CallInput::UndoCovers(UndoCover::Covers));
    call.step(allow());
    let (_, caged) = promised(command());
    let effects = run(&mut call, caged);
    assert!(effects.contains(&CallEffect::Detach), "{effects:?}");
    assert!(call.is_in_background());
}

/// Its START says that nothing gets out; a weaker cage than tier A gets no `Go`.
#[test]
fn a_contained_call_runs_in_tier_a_only() {
    for (tier, goes) in [(Tier::A, true), (Tier::B, false)] {
        let contained = Contained::Yes;
        let facts = CallFacts { contained, ..facts(ToolKind::Mutation, NeedsProbe::No) };
        let mut call = CallMachine::new(facts);
        call.step(CallInput::Begin);
        call.step(allow());
        call.step(CallInput::GoPrepared);
        let CallInput::Caged(enforced) = caged() else { unreachable!() };
        let enforced = Enforced { tier, ..enforced };
        let effects = call.step(CallInput::Caged(enforced));
        let go = effects.iter().any(|effect| matches!(effect, CallEffect::Go(_)));
        assert_eq!(go, goes, "{effects:?}");
        assert_eq!(effects.contains(&CallEffect::KillRunner), !goes, "{effects:?}");
    }
}

pub(crate) fn allow() -> CallInput {
    CallInput::Verdict(Verdict::Allow(Basis::Mode(PermissionMode::Auto)))
}

pub(crate) fn caged() -> CallInput {
    CallInput::Caged(Enforced { tier: Tier::B, ..Enforced::nothing("command") })
}

/// Reports the cage first and the records before `Go` second. `Go` is sent, and the runner begins.
fn let_go(machine: &mut CallMachine) -> Vec<CallEffect> {
    let mut effects = release(machine);
    effects.extend(machine.step(CallInput::Began));
    effects
}

/// As `let_go`, and the runner says nothing.
fn release(machine: &mut CallMachine) -> Vec<CallEffect> {
    let mut effects = Vec::new();
    for input in [caged(), CallInput::GoPrepared] {
        let more = machine.step(input);
        if matches!(more[..], [CallEffect::Go(_)]) {
            machine.sent();
        }
        effects.extend(more);
    }
    effects
}

fn gone(heard: Heard) -> CallInput {
    CallInput::RunnerGone(heard)
}

pub(crate) fn report(text: &str) -> RunReport {
    RunReport {
        result: ToolResult {
            outcome: Outcome::Exited { code: 0 },
            text: text.into(),
            summary: text.into(),
            is_error: false,
            code: None,
            images: Vec::new(),
        },
        images: Vec::new(),
        full: None,
        effects: Vec::new(),
        seen: Vec::new(),
        instructions: Vec::new(),
        evidence: None,
        refusals: Vec::new(),
        refusals_uncounted: 0,
        tampered: Vec::new(),
        usage: ProcessUsage::default(),
        command_pid: None,
    }
}

pub(crate) fn ended() -> CallInput {
    CallInput::RunnerEnded { cause: "was ended by signal 9".into() }
}

fn conclusion(effects: &[CallEffect]) -> &CallConclusion {
    match effects.last() {
        Some(CallEffect::Conclude(conclusion)) => conclusion,
        other => panic!("expected an end, got {other:?}"),
    }
}

#[test]
fn a_call_that_goes_well_is_on_disk_before_it_is_let_go() {
    let mut machine = machine(ToolKind::Mutation, NeedsProbe::No);
    assert!(matches!(machine.step(CallInput::Begin)[..], [CallEffect::Judge(_)]));
    let effects = machine.step(allow());
    let [CallEffect::AuditDecision(_), CallEffect::StartRunner(_), CallEffect::PrepareGo(facts)] =
        &effects[..]
    else {
        panic!("{effects:?}")
    };
    assert!(matches!(facts[..], [CallRecord::Approved(_), CallRecord::Start]));
    assert!(matches!(let_go(&mut machine)[..], [CallEffect::Go(_), CallEffect::Show(_)]));
    assert!(machine.step(CallInput::Done(report("fine"))).is_empty(), "not final before its end");
    let effects = machine.step(CallInput::RunnerEnded { cause: "exited with code 0".into() });
    assert_eq!(conclusion(&effects).result.text, "fine");
    assert_eq!(conclusion(&effects).cut, Cut::No);
}

#[test]
fn go_waits_for_the_cage_and_the_records_in_either_order() {
    let started = || {
        let mut machine = machine(ToolKind::Mutation, NeedsProbe::No);
        machine.step(CallInput::Begin);
        machine.step(allow());
        machine
    };
    for inputs in [[caged(), CallInput::GoPrepared], [CallInput::GoPrepared, caged()]] {
        let mut machine = started();
        let [first, second] = inputs;
        assert_eq!(machine.step(first), [], "one of them is not enough");
        assert!(matches!(machine.step(second)[..], [CallEffect::Go(_)]));
    }
    // The cage of the runner that died is not that of the next one.
    let mut machine = started();
    machine.step(caged());
    assert!(matches!(machine.step(ended())[..], [CallEffect::StartRunner(_)]));
    assert_eq!(machine.step(CallInput::GoPrepared), []);
    assert!(matches!(machine.step(caged())[..], [CallEffect::Go(_)]));
}

/// The audit log or the copies may take seconds. A stop in that time finds no `Go` sent.
#[test]
fn a_lost_reserve_is_replaced_and_leaves_the_retry_of_a_runner_that_dies() {
    let mut machine = machine(ToolKind::Mutation, NeedsProbe::No);
    machine.step(CallInput::Begin);
    machine.step(allow());
    assert!(matches!(machine.step(CallInput::ReserveLost)[..], [CallEffect::StartRunner(_)]));
    assert!(matches!(machine.step(ended())[..], [CallEffect::StartRunner(_)]));
    assert!(matches!(let_go(&mut machine)[..], [CallEffect::Go(_), CallEffect::Show(_)]));
    assert_eq!(machine.step(CallInput::ReserveLost), [], "a reserve cannot be lost after Go");
}

#[test]
fn a_call_that_is_stopped_while_its_reserve_is_lost_never_starts() {
    let mut machine = machine(ToolKind::Mutation, NeedsProbe::No);
    machine.step(CallInput::Begin);
    machine.step(allow());
    assert_eq!(machine.step(CallInput::Cancel), [CallEffect::KillRunner]);
    let effects = machine.step(CallInput::ReserveLost);
    assert!(conclusion(&effects).result.text.contains("never started"), "{effects:?}");
    assert_eq!(machine.step(CallInput::ReserveLost), [], "it is over");
}

#[test]
fn a_stop_while_go_is_prepared_is_a_stop_before_go() {
    let mut machine = machine(ToolKind::Mutation, NeedsProbe::No);
    machine.step(CallInput::Begin);
    machine.step(allow());
    machine.step(caged());
    assert_eq!(machine.step(CallInput::Cancel), [CallEffect::KillRunner]);
    assert_eq!(machine.step(CallInput::GoPrepared), []);
    let effects = machine.step(ended());
    let end = conclusion(&effects);
    assert!(matches!(end.cut, Cut::BeforeGo { .. }), "{end:?}");
    assert_eq!(end.enforced, None, "nothing ran in that cage");
}

#[test]
fn a_command_lost_after_go_is_concluded_only_when_its_names_were_put_right() {
    let facts = facts(ToolKind::Mutation, NeedsProbe::No);
    let mut machine = CallMachine::new(CallFacts { protects: Protects::Files, ..facts });
    machine.step(CallInput::Begin);
    machine.step(allow());
    let_go(&mut machine);
    assert_eq!(machine.step(ended()), [CallEffect::Repair]);
    for meanwhile in [CallInput::Cancel, CallInput::Overdue, ended()] {
        assert_eq!(machine.step(meanwhile), [], "the process for it goes on");
    }
    let why = "no room".to_owned();
    let left =
        TamperedFile { path: ".envrc".into(), remedy: protocol::call::TamperRemedy::Left { why } };
    let effects = machine.step(CallInput::Repaired(vec![left.clone()]));
    let found = conclusion(&effects);
    assert_eq!(found.tampered(), [left]);
    assert!(
        found.result.text.contains(".envrc was changed and not restored: no room"),
        "{:?}",
        found.result
    );
    assert!(matches!(found.cut, Cut::AfterGo { .. }) && found.result.is_error);
}

/// A process of its cage may live for seconds, and its end comes after that.
#[test]
fn a_runner_that_is_gone_gets_no_go_and_its_call_is_tried_once_more() {
    let mut machine = machine(ToolKind::Mutation, NeedsProbe::No);
    machine.step(CallInput::Begin);
    machine.step(allow());
    machine.step(caged());
    assert_eq!(machine.step(gone(Heard::All)), []);
    assert_eq!(machine.step(CallInput::GoPrepared), [], "there is no runner to send it to");
    assert!(matches!(machine.step(ended())[..], [CallEffect::StartRunner(_)]));
    assert!(matches!(machine.step(caged())[..], [CallEffect::Go(_)]));
    // Without a runner `Go` is not sent, and the call actor says that the runner is gone.
    machine.step(gone(Heard::All));
    let effects = machine.step(ended());
    let end = conclusion(&effects);
    assert_eq!((end.result.code.as_deref(), &end.cut), (Some("runner_lost"), &Cut::No));
    assert!(end.result.text.contains("not run"), "{}", end.result.text);
}

#[test]
fn a_runner_that_ended_without_a_word_of_its_beginning_has_run_nothing() {
    for kind in [ToolKind::Mutation, ToolKind::Query] {
        let protects = Protects::Files;
        let facts = CallFacts { protects, ..facts(kind, NeedsProbe::No) };
        let mut machine = CallMachine::new(facts);
        machine.step(CallInput::Begin);
        machine.step(allow());
        assert!(matches!(release(&mut machine)[..], [CallEffect::Go(_)]), "nobody says it started");
        machine.step(gone(Heard::All));
        assert!(matches!(machine.step(ended())[..], [CallEffect::StartRunner(_)]), "silently");
        release(&mut machine);
        let effects = machine.step(ended());
        let end = conclusion(&effects);
        assert_eq!((end.result.code.as_deref(), &end.cut), (Some("runner_lost"), &Cut::No));
        assert_eq!(end.enforced, None, "nothing ran in that cage");
    }
    // What it said cannot be read: it may have begun.
    let mut machine = machine(ToolKind::Mutation, NeedsProbe::No);
    machine.step(CallInput::Begin);
    machine.step(allow());
    release(&mut machine);
    machine.step(gone(Heard::Cut));
    let effects = machine.step(ended());
    assert!(conclusion(&effects).result.text.contains("may have run"), "{effects:?}");
}

#[test]
fn a_call_that_is_stopped_between_go_and_its_beginning_never_started() {
    for (began, cut) in [(false, "never started"), (true, "may have run")] {
        let mut machine = machine(ToolKind::Mutation, NeedsProbe::No);
        machine.step(CallInput::Begin);
        machine.step(allow());
        release(&mut machine);
        assert_eq!(machine.step(CallInput::Cancel), [CallEffect::CancelRunner]);
        if began {
            assert!(matches!(machine.step(CallInput::Began)[..], [CallEffect::Show(_)]));
        }
        machine.step(gone(Heard::All));
        let effects = machine.step(ended());
        assert!(conclusion(&effects).result.text.contains(cut), "{effects:?}");
    }
}

#[test]
fn a_runner_with_the_grant_of_another_call_is_killed_and_nothing_has_run() {
    let mut machine = machine(ToolKind::Mutation, NeedsProbe::No);
    machine.step(CallInput::Begin);
    machine.step(allow());
    machine.step(caged());
    assert!(matches!(machine.step(CallInput::GoPrepared)[..], [CallEffect::Go(_)]));
    let effects = machine.step(CallInput::WrongGrant("its grant was made for call 7".into()));
    assert_eq!(effects.first(), Some(&CallEffect::KillRunner));
    let CallConclusion { result, cut, enforced, .. } = conclusion(&effects);
    assert_eq!((result.code.as_deref(), cut, enforced), (Some("wrong_grant"), &Cut::No, &None));
    assert!(result.text.contains("made for call 7"), "{result:?}");
    assert!(machine.step(ended()).is_empty());
}

#[test]
fn a_command_that_was_never_let_go_has_nothing_to_put_right() {
    let facts = facts(ToolKind::Mutation, NeedsProbe::No);
    let mut machine = CallMachine::new(CallFacts { protects: Protects::Files, ..facts });
    machine.step(CallInput::Begin);
    machine.step(allow());
    assert!(
        matches!(machine.step(ended())[..], [CallEffect::StartRunner(_)]),
        "it is started again"
    );
    machine.step(CallInput::Cancel);
    assert!(matches!(conclusion(&machine.step(ended())).cut, Cut::BeforeGo { .. }));
}

#[test]
fn a_mutation_lost_after_go_is_interrupted_and_never_started_again() {
    let mut machine = machine(ToolKind::Mutation, NeedsProbe::No);
    machine.step(CallInput::Begin);
    machine.step(allow());
    let_go(&mut machine);
    let effects = machine.step(ended());
    assert_eq!(effects.len(), 1);
    assert!(conclusion(&effects).result.text.contains("interrupted: may have run"));
    assert!(matches!(conclusion(&effects).cut, Cut::AfterGo { .. }));
    assert!(machine.step(allow()).is_empty() && let_go(&mut machine).is_empty());
}

#[test]
fn a_query_lost_after_go_runs_once_more_and_no_more() {
    let mut machine = machine(ToolKind::Query, NeedsProbe::No);
    machine.step(CallInput::Begin);
    machine.step(allow());
    let_go(&mut machine);
    assert!(matches!(machine.step(ended())[..], [CallEffect::StartRunner(_)]));
    assert!(matches!(let_go(&mut machine)[..], [CallEffect::Go(_), _]));
    assert!(matches!(machine.step(ended())[..], [CallEffect::Conclude(_)]));
}

#[test]
fn a_runner_lost_before_go_is_tried_once_more_silently() {
    let mut machine = machine(ToolKind::Mutation, NeedsProbe::No);
    machine.step(CallInput::Begin);
    machine.step(allow());
    assert!(matches!(machine.step(ended())[..], [CallEffect::StartRunner(_)]));
    let effects = machine.step(ended());
    assert_eq!(conclusion(&effects).result.outcome, Outcome::Crashed);
    assert_eq!(conclusion(&effects).cut, Cut::No, "it never ran, and nobody is told it may have");
}

#[test]
fn a_cage_lost_before_the_program_is_tried_once_more_silently_though_it_was_let_go() {
    let lost = || CallInput::CageLost { why: "killed".into() };
    for kind in [ToolKind::Mutation, ToolKind::Query] {
        let mut machine = machine(kind, NeedsProbe::No);
        machine.step(CallInput::Begin);
        machine.step(allow());
        let_go(&mut machine);
        assert!(machine.step(lost()).is_empty(), "its runner has not ended");
        assert!(matches!(machine.step(ended())[..], [CallEffect::StartRunner(_)]));
        assert!(matches!(let_go(&mut machine)[..], [CallEffect::Go(_), _]));
        machine.step(lost());
        let effects = machine.step(ended());
        let CallConclusion { result, cut, enforced, .. } = conclusion(&effects);
        assert_eq!((result.outcome.clone(), cut), (Outcome::Crashed, &Cut::No));
        assert_eq!(result.code.as_deref(), Some("runner_lost"));
        assert!(result.text.contains("lost a process of its cage (killed) before"), "{result:?}");
        assert_eq!(*enforced, None, "nothing ran in it");
    }
    // The same before it was let go; and what a person stopped is not tried again.
    let mut machine = machine(ToolKind::Mutation, NeedsProbe::No);
    machine.step(CallInput::Begin);
    machine.step(allow());
    machine.step(lost());
    assert!(matches!(machine.step(ended())[..], [CallEffect::StartRunner(_)]));
    let_go(&mut machine);
    machine.step(CallInput::Cancel);
    machine.step(lost());
    let effects = machine.step(ended());
    assert!(matches!(conclusion(&effects).cut, Cut::BeforeGo { .. }), "{effects:?}");
}

#[test]
fn a_denied_call_starts_nothing() {
    let mut machine = machine(ToolKind::Mutation, NeedsProbe::No);
    machine.step(CallInput::Begin);
    let deny = Verdict::Deny(Basis::NobodyToAsk("mode ask".into()), "not now".into());
    let effects = machine.step(CallInput::Verdict(deny));
    assert!(!effects.iter().any(|effect| matches!(effect, CallEffect::StartRunner(_))));
    let conclusion = conclusion(&effects);
    assert_eq!(conclusion.result.code.as_deref(), Some("nobody_to_ask"));
    assert_eq!(conclusion.result.text, "Error [nobody_to_ask] bash: not now");
}

#[test]
fn a_call_with_paths_is_judged_by_what_was_found_there() {
    let mut machine = machine(ToolKind::Mutation, NeedsProbe::Yes);
    assert!(matches!(
        machine.step(CallInput::Begin)[..],
        [CallEffect::Probe(RunnerJob::Probe { .. })]
    ));
    assert!(machine.step(allow()).is_empty(), "no verdict counts before the look");
    let path = protocol::call::ProbedPath {
        named: "a".into(),
        real: "/p/a".into(),
        in_scope: true,
        digest: Some("d".into()),
    };
    let probe = ProbeReport { paths: vec![path], diff: String::new() };
    let effects = machine.step(CallInput::Probed(Ok(probe.clone())));
    let [CallEffect::Judge(case)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(case.probe, Some(probe));
    machine.step(allow());
    let effects = let_go(&mut machine);
    let [CallEffect::Go(RunnerJob::Run { judged, .. }), _] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!(judged[..], [JudgedPath { real: "/p/a".into(), digest: Some("d".into()) }]);
}

#[test]
fn an_edit_of_what_is_not_as_it_was_read_is_refused_before_anybody_is_asked() {
    let [then, now] = [b"1", b"2"].map(|bytes| journal::Digest::of(bytes));
    for (digest, refused) in [(now, true), (then, false)] {
        let mut facts = facts(ToolKind::Mutation, NeedsProbe::Yes);
        let files = vec![journal::FileVersionRecord { path: "/p/a".into(), digest: then }];
        facts.file_versions.apply(&journal::JournalRecord::Seen { files });
        let mut machine = CallMachine::new(facts);
        machine.step(CallInput::Begin);
        let path = protocol::call::ProbedPath {
            named: "a".into(),
            real: "/p/a".into(),
            in_scope: true,
            digest: Some(digest.to_string()),
        };
        let probe = ProbeReport { paths: vec![path], diff: String::new() };
        let effects = machine.step(CallInput::Probed(Ok(probe)));
        if refused {
            assert_eq!(conclusion(&effects).result.code.as_deref(), Some("stale"));
        } else {
            assert!(matches!(effects[..], [CallEffect::Judge(_)]), "{effects:?}");
        }
    }
}

#[test]
fn a_cage_that_cannot_be_made_refuses_the_call() {
    let mut machine = machine(ToolKind::Mutation, NeedsProbe::No);
    machine.step(CallInput::Begin);
    machine.step(allow());
    let effects =
        machine.step(CallInput::CageFailed { step: "landlock".into(), reason: "off".into() });
    let conclusion = conclusion(&effects);
    assert_eq!(conclusion.result.outcome, Outcome::Confined { what: "landlock".into() });
    assert_eq!(conclusion.result.code.as_deref(), Some("sandbox_unavailable"));
    assert!(machine.step(ended()).is_empty(), "one end only");
}

/// A run ends with 11 for the one above, and goes on after this one.
#[test]
fn what_cannot_be_granted_refuses_the_call_and_not_the_machine() {
    let mut machine = machine(ToolKind::Mutation, NeedsProbe::No);
    machine.step(CallInput::Begin);
    machine.step(allow());
    let (step, reason) =
        (protocol::confinement::UNGRANTED_STEP.to_owned(), "/p reaches /p/state; move it");
    let effects = machine.step(CallInput::CageFailed { step, reason: reason.into() });
    let result = &conclusion(&effects).result;
    assert_eq!(result.outcome, Outcome::Confined { what: "grants".into() });
    assert_eq!((result.code.as_deref(), result.is_error), (Some("not_granted"), true));
    assert!(result.text.contains(reason), "{}", result.text);
}

#[test]
fn a_broker_that_comes_back_is_asked_again_only_while_it_matters() {
    let mut machine = machine(ToolKind::Mutation, NeedsProbe::No);
    machine.step(CallInput::Begin);
    assert!(matches!(machine.step(CallInput::BrokerBack)[..], [CallEffect::Judge(_)]));
    machine.step(allow());
    assert!(machine.step(CallInput::BrokerBack).is_empty());
}

#[test]
fn cancelling_before_go_never_runs_it_and_after_go_asks_the_runner() {
    let mut early = machine(ToolKind::Mutation, NeedsProbe::No);
    early.step(CallInput::Begin);
    let effects = early.step(CallInput::Cancel);
    assert!(matches!(effects[..], [CallEffect::ForgetQuestion, CallEffect::Conclude(_)]));
    assert!(conclusion(&effects).result.text.contains("never started"));

    let mut starting = machine(ToolKind::Mutation, NeedsProbe::No);
    starting.step(CallInput::Begin);
    starting.step(allow());
    assert_eq!(starting.step(CallInput::Cancel), [CallEffect::KillRunner]);
    assert!(matches!(conclusion(&starting.step(ended())).cut, Cut::BeforeGo { .. }));

    // What the runner said before it could be ended is heard after the cancel.
    let mut caged_already = machine(ToolKind::Mutation, NeedsProbe::No);
    caged_already.step(CallInput::Begin);
    caged_already.step(allow());
    assert_eq!(caged_already.step(CallInput::Cancel), [CallEffect::KillRunner]);
    assert_eq!(let_go(&mut caged_already), [], "it is let go all the same");
    assert!(matches!(conclusion(&caged_already.step(ended())).cut, Cut::BeforeGo { .. }));

    let mut looked_already = machine(ToolKind::Mutation, NeedsProbe::Yes);
    looked_already.step(CallInput::Begin);
    assert_eq!(looked_already.step(CallInput::Cancel), [CallEffect::KillRunner]);
    let probe = ProbeReport { paths: Vec::new(), diff: String::new() };
    let effects = looked_already.step(CallInput::Probed(Ok(probe)));
    assert!(matches!(conclusion(&effects).cut, Cut::BeforeGo { .. }));
    assert!(looked_already.step(allow()).is_empty(), "it runs after it was stopped");

    let mut late = machine(ToolKind::Mutation, NeedsProbe::No);
    late.step(CallInput::Begin);
    late.step(allow());
    let_go(&mut late);
    assert_eq!(late.step(CallInput::Cancel), [CallEffect::CancelRunner]);
    late.step(CallInput::Done(report("partial")));
    assert_eq!(conclusion(&late.step(ended())).result.text, "partial");
}

#[test]
fn a_journal_that_fails_and_a_lease_that_is_lost_let_nothing_start() {
    let disk = (CallInput::DiskFailed("no space".into()), "disk", "write to disk");
    let lease = (CallInput::LeaseLost("it ran out".into()), "lease", "the session no longer");
    for (input, code, words) in [disk, lease] {
        let mut machine = machine(ToolKind::Mutation, NeedsProbe::No);
        machine.step(CallInput::Begin);
        machine.step(allow());
        let effects = machine.step(input);
        assert_eq!(effects[0], CallEffect::KillRunner);
        let result = &conclusion(&effects).result;
        assert_eq!(result.code.as_deref(), Some(code));
        assert!(result.text.contains(words), "{}", result.text);
        assert!(let_go(&mut machine).is_empty());
    }
}

#[test]
fn a_record_that_fails_once_something_works_on_the_call_does_not_say_that_it_was_not_run() {
    let (tool, demand) = ("mcp__t__ask".into(), ServerDemand::Withdraw);
    let withdraw = ServerRequest { tool, demand };
    let task = Executor::SubAgent(tool_specs::TaskRequest::default());
    let mut at_task =
        CallMachine::new(CallFacts { executor: task, ..facts(ToolKind::Mutation, NeedsProbe::No) });
    at_task.step(CallInput::Begin);
    at_task.step(allow());
    at_task.sent();
    let mut released = machine(ToolKind::Mutation, NeedsProbe::No);
    released.step(CallInput::Begin);
    released.step(allow());
    release(&mut released);
    for (mut machine, stop) in [
        (at_server(), CallEffect::AskServer(withdraw)),
        (at_task, CallEffect::StopTask),
        (asked_of_store(ToolKind::Mutation), CallEffect::KillRunner),
        (released, CallEffect::KillRunner),
        (running_command(), CallEffect::KillRunner),
    ] {
        let effects = machine.step(CallInput::DiskFailed("no space".into()));
        assert_eq!(effects[0], stop);
        let text = &conclusion(&effects).result.text;
        assert!(text.contains("may have run") && text.contains("no space"), "{text}");
        assert!(!text.contains("was not run"), "{text}");
    }
    // The record of START fails: nobody was asked.
    let plain = facts(ToolKind::Mutation, NeedsProbe::No);
    let mut at_record = CallMachine::new(CallFacts { executor: by_server(), ..plain });
    at_record.step(CallInput::Begin);
    at_record.step(allow());
    let mut to_store = at_store(ToolKind::Mutation);
    to_store.step(allow());
    for mut machine in [at_record, to_store] {
        let effects = machine.step(CallInput::LeaseLost("it ran out".into()));
        let text = &conclusion(&effects).result.text;
        assert!(text.contains("was not run") && !text.contains("may have"), "{text}");
    }
}

#[test]
fn where_nothing_can_judge_a_call_is_denied_however_far_it_is() {
    let failed = || CallInput::BrokerFailed("agentd-broker exited with code 3".into());
    let mut waiting = machine(ToolKind::Mutation, NeedsProbe::No);
    waiting.step(CallInput::Begin);
    let effects = waiting.step(failed());
    assert!(matches!(effects[..], [_, CallEffect::Record(_), CallEffect::Conclude(_)]));
    let mut looking = machine(ToolKind::Mutation, NeedsProbe::Yes);
    looking.step(CallInput::Begin);
    assert!(looking.step(failed()).is_empty(), "its turn to be judged has not come");
    let probe = ProbeReport { paths: Vec::new(), diff: String::new() };
    let effects = looking.step(CallInput::Probed(Ok(probe)));
    assert!(conclusion(&effects).result.text.contains("the broker, which judges calls, is not"));
    let mut running = machine(ToolKind::Mutation, NeedsProbe::No);
    running.step(CallInput::Begin);
    running.step(allow());
    let_go(&mut running);
    assert!(running.step(failed()).is_empty(), "what was allowed goes on");
}

/// A right beyond the session's is a person's to give, even where the broker lets the call pass.
#[test]
fn a_person_gives_more_than_the_session_has_or_a_rule_for_each_right() {
    let widened = |basis| {
        let widens = vec![ExtraRight::Network];
        let mut machine = CallMachine::new(CallFacts {
            extra_rights: widens,
            ..facts(ToolKind::Mutation, NeedsProbe::No)
        });
        let put = machine.step(CallInput::Begin);
        assert!(
            matches!(&put[..], [CallEffect::Judge(case)] if case.extra_rights == [ExtraRight::Network]),
            "{put:?}"
        );
        let effects = machine.step(CallInput::Verdict(Verdict::Allow(basis)));
        effects.iter().any(|effect| matches!(effect, CallEffect::StartRunner(_)))
    };
    assert!(widened(Basis::Person("pts/1".into())));
    assert!(!widened(Basis::Mode(PermissionMode::Auto)));
    assert!(!widened(Basis::Query));
    let rule = |text: &str| Rule {
        effect: RuleEffect::Allow,
        text: text.to_owned(),
        file: "config.toml".to_owned(),
        line: 1,
    };
    let by = |rules: &[&str]| widened(Basis::Rights(rules.iter().copied().map(rule).collect()));
    assert!(by(&["network:cargo *"]));
    assert!(!by(&["bash:cargo *"]) && !by(&["git-admin:cargo *"]) && !by(&[]));
    assert!(!by(&["network:cargo *", "git-admin:cargo *"]), "one rule for one right");
    assert!(!widened(Basis::Rule(rule("network:cargo *"))));
}

/// What the conversation answers itself goes the same way, without a process.
#[test]
fn the_conversation_s_own_answer_waits_for_its_verdict_and_its_record() {
    let answer = failed("read", Outcome::Done, "x", "the answer".into());
    let own = || {
        let executor = Executor::Conversation(answer.clone());
        CallMachine::new(CallFacts { executor, ..facts(ToolKind::Query, NeedsProbe::No) })
    };
    let mut machine = own();
    assert!(matches!(machine.step(CallInput::Begin)[..], [CallEffect::Judge(_)]));
    let effects = machine.step(allow());
    assert!(
        matches!(
            &effects[..],
            [CallEffect::AuditDecision(_), CallEffect::Record(facts), CallEffect::Conclude(_)]
                if matches!(facts[..], [CallRecord::Approved(_), CallRecord::Start])
        ),
        "{effects:?}"
    );
    assert_eq!(conclusion(&effects).result, answer);
    let mut machine = own();
    machine.step(CallInput::Begin);
    let deny = Verdict::Deny(Basis::NobodyToAsk("no".into()), "no".into());
    assert_ne!(conclusion(&machine.step(CallInput::Verdict(deny))).result, answer);
}

fn at_store(kind: ToolKind) -> CallMachine {
    let facts = CallFacts {
        executor: Executor::Store,
        kind_for_verdict: ToolKind::Query,
        ..facts(kind, NeedsProbe::No)
    };
    let mut machine = CallMachine::new(facts);
    let effects = machine.step(CallInput::Begin);
    let [CallEffect::Judge(case)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(case.kind, ToolKind::Query, "nobody is asked about it");
    machine
}

fn asked_of_store(kind: ToolKind) -> CallMachine {
    let mut machine = at_store(kind);
    machine.step(allow());
    machine.sent();
    machine
}

pub(crate) fn lost(will_restart: WillRestart) -> CallInput {
    CallInput::StoreLost { cause: "was ended by signal 9".into(), will_restart }
}

#[test]
fn a_call_of_the_store_is_on_disk_before_it_is_asked_for() {
    let mut machine = at_store(ToolKind::Mutation);
    let effects = machine.step(allow());
    let [CallEffect::AuditDecision(_), CallEffect::Record(facts), CallEffect::AskStore(_)] =
        &effects[..]
    else {
        panic!("{effects:?}")
    };
    assert!(matches!(facts[..], [CallRecord::Approved(_), CallRecord::Start]));
    machine.sent();
    let effects = machine.step(CallInput::Stored(report("kept").result));
    assert_eq!(conclusion(&effects).result.text, "kept");
}

#[test]
fn a_store_that_dies_is_asked_once_more_and_then_nobody_knows() {
    let mut machine = asked_of_store(ToolKind::Mutation);
    assert!(machine.step(lost(WillRestart::Yes)).is_empty());
    assert!(matches!(machine.step(CallInput::StoreBack)[..], [CallEffect::AskStore(_)]));
    machine.sent();
    let effects = machine.step(lost(WillRestart::Yes));
    assert!(conclusion(&effects).result.text.contains("interrupted: may have run"));
    let mut machine = asked_of_store(ToolKind::Query);
    let effects = machine.step(lost(WillRestart::No));
    assert_eq!(conclusion(&effects).result.code.as_deref(), Some("store_unavailable"));
}

#[test]
fn a_call_that_finds_no_store_is_not_begun() {
    for kind in [ToolKind::Query, ToolKind::Mutation] {
        let mut machine = at_store(kind);
        assert!(machine.step(lost(WillRestart::No)).is_empty());
        let effects = machine.step(allow());
        assert_eq!(conclusion(&effects).result.code.as_deref(), Some("store_unavailable"));
        let started = |effect: &CallEffect| match effect {
            CallEffect::Record(facts) => facts.contains(&CallRecord::Start),
            CallEffect::Probe(_)
            | CallEffect::Judge(_)
            | CallEffect::ForgetQuestion
            | CallEffect::Ask(_)
            | CallEffect::AuditDecision(_)
            | CallEffect::AuditExpired
            | CallEffect::StartRunner(_)
            | CallEffect::BackUp(_)
            | CallEffect::PrepareSnapshot
            | CallEffect::AskUndo(_)
            | CallEffect::TakeSnapshot(_)
            | CallEffect::FetchRestore(_)
            | CallEffect::AskStore(_)
            | CallEffect::Go(_)
            | CallEffect::CancelRunner
            | CallEffect::KillRunner
            | CallEffect::Detach
            | CallEffect::AskJob(_)
            | CallEffect::AskServer(_)
            | CallEffect::OfServer(_)
            | CallEffect::StartTask(_)
            | CallEffect::StopTask
            | CallEffect::Repair
            | CallEffect::Show(_)
            | CallEffect::CacheGet(_)
            | CallEffect::CachePut(_)
            | CallEffect::Invalidate(_)
            | CallEffect::PrepareGo(_)
            | CallEffect::Conclude(_) => false,
        };
        assert!(!effects.iter().any(started), "{effects:?}");
    }
}

#[test]
fn a_call_of_the_store_can_be_stopped_only_while_its_store_is_away() {
    let mut machine = asked_of_store(ToolKind::Mutation);
    assert!(machine.step(CallInput::Cancel).is_empty(), "it is a matter of moments");
    let effects = machine.step(lost(WillRestart::Yes));
    assert!(conclusion(&effects).result.text.contains("interrupted: may have run"));
}

fn restoring() -> CallMachine {
    let facts = CallFacts {
        undo: UndoBy::Restore,
        command: None,
        ..facts(ToolKind::Mutation, NeedsProbe::Yes)
    };
    CallMachine::new(facts)
}

pub(crate) fn kept_file() -> FileBackup {
    let before = protocol::store::PriorContent::File { bytes: b"old".to_vec(), mode: 0o644 };
    FileBackup { path: "/p/a".into(), before, after: Some("ab".into()) }
}

pub(crate) fn found() -> ProbeReport {
    ProbeReport { diff: "-new\n+old\n".into(), ..probe_of("/p/a", "ab") }
}

/// A probe that found this file with this content.
pub(crate) fn probe_of(path: &str, digest: &str) -> ProbeReport {
    let (named, real, digest) = (path.into(), path.into(), Some(digest.into()));
    let path = protocol::call::ProbedPath { named, real, in_scope: true, digest };
    ProbeReport { paths: vec![path], diff: String::new() }
}

#[test]
fn what_is_put_back_is_looked_at_judged_and_kept_itself() {
    let mut machine = restoring();
    assert!(matches!(machine.step(CallInput::Begin)[..], [CallEffect::FetchRestore(_)]));
    let effects = machine.step(CallInput::RestoreFetched(Ok(vec![kept_file()])));
    let [CallEffect::Probe(RunnerJob::ProbeRestore(files))] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!(files, &[kept_file()]);
    let effects = machine.step(CallInput::Probed(Ok(found())));
    let [CallEffect::Judge(case)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(case.kind, ToolKind::Mutation, "it is judged as a change");
    let effects = machine.step(allow());
    let [
        CallEffect::AuditDecision(_),
        CallEffect::BackUp(paths),
        CallEffect::StartRunner(_),
        CallEffect::PrepareGo(_),
    ] = &effects[..]
    else {
        panic!("{effects:?}")
    };
    assert_eq!(paths, &["/p/a"]);
    let effects = let_go(&mut machine);
    let [CallEffect::Go(RunnerJob::Restore { files, judged, .. }), _] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!((files.len(), judged[0].digest.as_deref()), (1, Some("ab")));
    let effects = machine.step(ended());
    assert!(conclusion(&effects).result.text.contains("interrupted: may have run"));
}

#[test]
fn a_store_that_cannot_say_what_is_to_be_put_back_ends_the_call_before_it_began() {
    let mut machine = restoring();
    machine.step(CallInput::Begin);
    assert!(machine.step(lost(WillRestart::Yes)).is_empty());
    assert!(matches!(machine.step(CallInput::StoreBack)[..], [CallEffect::FetchRestore(_)]));
    let effects = machine.step(lost(WillRestart::Yes));
    assert_eq!(effects.len(), 1, "nothing was decided: {effects:?}");
    assert_eq!(conclusion(&effects).result.code.as_deref(), Some("store_unavailable"));
    assert_eq!(conclusion(&effects).cut, Cut::No);
}

#[test]
fn what_a_call_changes_is_kept_and_what_it_only_reads_is_not() {
    for (undo, kept) in [(UndoBy::Copy, true), (UndoBy::Nothing, false)] {
        let facts = CallFacts { undo, ..facts(ToolKind::Mutation, NeedsProbe::Yes) };
        let mut machine = CallMachine::new(facts);
        machine.step(CallInput::Begin);
        machine.step(CallInput::Probed(Ok(found())));
        let effects = machine.step(allow());
        assert_eq!(matches!(effects[1], CallEffect::BackUp(_)), kept, "{effects:?}");
    }
}

#[test]
fn the_project_is_looked_at_before_a_command_runs_and_made_ready_while_it_is_judged() {
    let facts = CallFacts { undo: UndoBy::Snapshot, ..facts(ToolKind::Mutation, NeedsProbe::No) };
    let mut machine = CallMachine::new(facts);
    let effects = machine.step(CallInput::Begin);
    assert!(
        matches!(effects[..], [CallEffect::PrepareSnapshot, CallEffect::Judge(_)]),
        "{effects:?}"
    );
    let effects = machine.step(allow());
    let [
        CallEffect::AuditDecision(_),
        CallEffect::TakeSnapshot(command),
        CallEffect::StartRunner(_),
        CallEffect::PrepareGo(_),
    ] = &effects[..]
    else {
        panic!("{effects:?}")
    };
    assert_eq!(command, "true");
}

fn asked_before(probed: NeedsProbe) -> CallMachine {
    let facts = facts(ToolKind::Query, probed);
    CallMachine::new(CallFacts { cache: CachePolicy::Lookup, command: None, ..facts })
}

pub(crate) fn question() -> Question {
    Question {
        call: facts(ToolKind::Query, NeedsProbe::No).call.id,
        tool: "read".into(),
        input: "{}".into(),
        preview: String::new(),
        confinement: String::new(),
        reason: String::new(),
        widens: Vec::new(),
        ask: Ask::Call { rules: Vec::new(), modes: Vec::new() },
        deadline: 0,
        digest: "d".into(),
    }
}

fn known() -> CallInput {
    let path = protocol::call::ProbedPath {
        named: "a".into(),
        real: "/p/a".into(),
        in_scope: true,
        digest: None,
    };
    let probe = ProbeReport { paths: vec![path], diff: String::new() };
    CallInput::CacheAnswer(Some(Box::new(CachedResult { probe, by: 1, report: report("known") })))
}

#[test]
fn a_known_answer_is_judged_and_then_given_without_a_process() {
    let mut machine = asked_before(NeedsProbe::Yes);
    assert!(matches!(machine.step(CallInput::Begin)[..], [CallEffect::CacheGet(_)]));
    let effects = machine.step(known());
    let [CallEffect::Judge(case)] = &effects[..] else { panic!("{effects:?}") };
    let looked = case.probe.as_ref().map(|probe| probe.paths[0].real.as_str());
    assert_eq!(looked, Some("/p/a"), "judged by where it leads");
    let effects = machine.step(allow());
    let [CallEffect::AuditDecision(_), CallEffect::Record(facts), CallEffect::Conclude(_)] =
        &effects[..]
    else {
        panic!("{effects:?}")
    };
    assert!(matches!(facts[..], [CallRecord::Approved(_)]), "nothing was started");
    assert_eq!(conclusion(&effects).result.text, "known");
    assert_eq!(conclusion(&effects).cached_from, Some(1));
}

#[test]
fn a_known_answer_is_denied_as_any_other() {
    let mut machine = asked_before(NeedsProbe::Yes);
    machine.step(CallInput::Begin);
    machine.step(known());
    let deny = Verdict::Deny(Basis::NobodyToAsk("a rule".into()), "no".into());
    let effects = machine.step(CallInput::Verdict(deny));
    assert_eq!(conclusion(&effects).result.text, "Error [nobody_to_ask] bash: no");
    assert_eq!(conclusion(&effects).cached_from, None);
}

#[test]
fn what_is_not_known_or_not_in_time_is_looked_up() {
    let lost = || CallInput::StoreLost { cause: "died".into(), will_restart: WillRestart::Yes };
    for nothing in [CallInput::CacheAnswer(None), lost()] {
        let mut machine = asked_before(NeedsProbe::Yes);
        machine.step(CallInput::Begin);
        assert!(matches!(machine.step(nothing)[..], [CallEffect::Probe(_)]));
        // The store's word comes too late.
        assert!(machine.step(known()).is_empty());
    }
    // Nobody is asked who is not there.
    let mut machine = asked_before(NeedsProbe::No);
    machine.step(CallInput::StoreLost { cause: "failed".into(), will_restart: WillRestart::No });
    assert!(matches!(machine.step(CallInput::Begin)[..], [CallEffect::Judge(_)]));
}

#[test]
fn a_known_answer_does_not_outlive_a_wait() {
    // While the broker is away, or a person thinks, the files may change.
    let mut machine = asked_before(NeedsProbe::No);
    machine.step(CallInput::Begin);
    machine.step(known());
    let effects = machine.step(CallInput::BrokerBack);
    let [CallEffect::Judge(case)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(case.probe, None);
    assert!(
        machine.step(allow()).iter().any(|effect| matches!(effect, CallEffect::StartRunner(_)))
    );

    let mut machine = asked_before(NeedsProbe::Yes);
    machine.step(CallInput::Begin);
    machine.step(known());
    let effects = machine.step(CallInput::Verdict(Verdict::Ask(question())));
    assert!(
        matches!(effects[..], [CallEffect::ForgetQuestion, CallEffect::Probe(_)]),
        "{effects:?}"
    );
}

#[test]
fn a_call_that_is_stopped_at_its_question_never_started_whoever_stops_it_how() {
    let by = || Basis::Person("pts/1".into());
    let stops = || [CallInput::Cancel, CallInput::StoppedByAnswer(by(), "stopped".into())];
    let [cancelled, answered] = stops().map(|stop| {
        let mut machine = machine(ToolKind::Mutation, NeedsProbe::No);
        machine.step(CallInput::Begin);
        machine.step(CallInput::Verdict(Verdict::Ask(question())));
        machine.step(stop)
    });
    let (first, second) = (conclusion(&cancelled), conclusion(&answered));
    assert_eq!((&first.result, &first.cut), (&second.result, &second.cut));
    assert_eq!(first.result.outcome, Outcome::NeverStarted);
    let who = vec![CallRecord::Denied(by(), "stopped".into())];
    assert!(answered.contains(&CallEffect::Record(who)), "{answered:?}");
    // A call that was allowed meanwhile takes no such answer.
    let mut machine = machine(ToolKind::Mutation, NeedsProbe::No);
    machine.step(CallInput::Begin);
    machine.step(allow());
    let [_, answer] = stops();
    assert_eq!(machine.step(answer), []);
}

#[test]
fn a_question_that_expires_is_not_audited_as_a_denial() {
    let mut machine = machine(ToolKind::Mutation, NeedsProbe::No);
    machine.step(CallInput::Begin);
    assert_eq!(machine.step(CallInput::Expired), [], "no question is open");
    machine.step(CallInput::Verdict(Verdict::Ask(question())));
    let effects = machine.step(CallInput::Expired);
    let [
        CallEffect::ForgetQuestion,
        CallEffect::AuditExpired,
        CallEffect::Record(facts),
        CallEffect::Conclude(_),
    ] = &effects[..]
    else {
        panic!("{effects:?}")
    };
    assert_eq!(facts[..], [CallRecord::Expired]);
    assert_eq!(conclusion(&effects).result.code.as_deref(), Some("expired"));
}

#[test]
fn an_answer_with_evidence_is_kept_and_one_that_is_large_is_not() {
    let evidence = protocol::call::ReadEvidence { began: 1, parts: Vec::new() };
    let ends = |cache, report: RunReport| {
        let facts = facts(ToolKind::Query, NeedsProbe::No);
        let mut machine = CallMachine::new(CallFacts { cache, ..facts });
        machine.step(CallInput::Begin);
        machine.step(CallInput::CacheAnswer(None));
        machine.step(allow());
        let_go(&mut machine);
        machine.step(CallInput::Done(report));
        machine.step(ended())
    };
    let proven = RunReport { evidence: Some(evidence), ..report("fine") };
    let effects = ends(CachePolicy::Lookup, proven.clone());
    assert!(matches!(effects[..], [CallEffect::CachePut(_), CallEffect::Conclude(_)]));
    let large = RunReport { full: Some("x".repeat(MAX_CACHED_BYTES)), ..proven.clone() };
    for (cache, report) in [
        (CachePolicy::Lookup, report("fine")),
        (CachePolicy::Lookup, large),
        (CachePolicy::Unused, proven),
    ] {
        assert!(matches!(ends(cache, report)[..], [CallEffect::Conclude(_)]));
    }
}

#[test]
fn who_may_have_written_outdates_before_anybody_hears_of_its_end() {
    let outdates = |cache, last: Vec<CallInput>| {
        let facts = facts(ToolKind::Mutation, NeedsProbe::Yes);
        let mut machine = CallMachine::new(CallFacts { cache, ..facts });
        machine.step(CallInput::Begin);
        let path = protocol::call::ProbedPath {
            named: "a".into(),
            real: "/p/a".into(),
            in_scope: true,
            digest: None,
        };
        machine.step(CallInput::Probed(Ok(ProbeReport { paths: vec![path], diff: String::new() })));
        let mut effects = Vec::new();
        for input in last {
            effects = machine.step(input);
            if matches!(effects[..], [CallEffect::Go(_)]) {
                machine.sent();
            }
        }
        assert!(matches!(effects.last(), Some(CallEffect::Conclude(_))), "{effects:?}");
        let mut outdated = None;
        for effect in effects {
            if let CallEffect::Invalidate(changed) = effect {
                outdated = Some(changed);
            }
        }
        outdated
    };
    let mut failed = report("it failed");
    failed.result.is_error = true;
    let go = || vec![allow(), CallInput::GoPrepared, caged(), CallInput::Began];
    let whole = || go().into_iter().chain([CallInput::Done(failed.clone()), ended()]).collect();
    let cut_short = || go().into_iter().chain([ended()]).collect();
    let denied = Verdict::Deny(Basis::NobodyToAsk("x".into()), "no".into());
    let denied = vec![CallInput::Verdict(denied)];
    let paths = Some(MayHaveChanged::Paths(vec!["/p/a".into()]));
    assert_eq!(outdates(CachePolicy::InvalidatesPaths, whole()), paths);
    assert_eq!(outdates(CachePolicy::InvalidatesPaths, cut_short()), paths);
    assert_eq!(outdates(CachePolicy::InvalidatesAll, cut_short()), Some(MayHaveChanged::Anything));
    assert_eq!(outdates(CachePolicy::InvalidatesAll, denied), None, "it never ran");
    assert_eq!(outdates(CachePolicy::Unused, whole()), None);
}

/// A command's machine whose runner has `Go`.
fn running_command() -> CallMachine {
    let call = CallFacts { undo: UndoBy::Snapshot, ..facts(ToolKind::Mutation, NeedsProbe::No) };
    let mut machine = CallMachine::new(call);
    machine.step(CallInput::Begin);
    machine.step(allow());
    let_go(&mut machine);
    machine
}

#[test]
fn a_command_goes_on_in_the_background_once_and_keeps_its_one_result() {
    let mut machine = running_command();
    assert_eq!(machine.step(CallInput::Detach), [CallEffect::Detach]);
    assert_eq!(machine.step(CallInput::Detach), [], "once");
    machine.step(CallInput::Done(report("done")));
    let effects = machine.step(CallInput::RunnerEnded { cause: "ended".into() });
    assert_eq!(conclusion(&effects).result.text, "done");
    // A person or bash_stop ends it as any call.
    let mut machine = running_command();
    machine.step(CallInput::Detach);
    assert_eq!(machine.step(CallInput::Cancel), [CallEffect::CancelRunner]);
}

#[test]
fn a_sub_agent_goes_on_in_the_background_and_keeps_its_one_result() {
    let task = || CallFacts {
        executor: Executor::SubAgent(tool_specs::TaskRequest::default()),
        ..facts(ToolKind::Query, NeedsProbe::No)
    };
    let mut machine = CallMachine::new(task());
    machine.step(CallInput::Begin);
    assert_eq!(machine.step(CallInput::Detach), [], "before it works");
    machine.step(allow());
    machine.sent();
    assert_eq!(machine.step(CallInput::Detach), [CallEffect::Detach]);
    assert_eq!(machine.step(CallInput::Detach), [], "once");
    assert_eq!(machine.step(CallInput::Cancel), [CallEffect::StopTask]);
    let effects = machine.step(CallInput::TaskEnded(report("found").result));
    assert_eq!(conclusion(&effects).result.text, "found");
}

#[test]
fn only_a_running_command_of_the_model_goes_to_the_background() {
    // Before `Go`.
    let call = CallFacts { undo: UndoBy::Snapshot, ..facts(ToolKind::Mutation, NeedsProbe::No) };
    let mut machine = CallMachine::new(call);
    machine.step(CallInput::Begin);
    assert_eq!(machine.step(CallInput::Detach), []);
    // Once it is being stopped.
    let mut machine = running_command();
    machine.step(CallInput::Cancel);
    assert_eq!(machine.step(CallInput::Detach), []);
    // A file tool, and a command that the conversation runs by itself.
    let model = CallOrigin::model("toolu_1");
    for (undo, origin) in [(UndoBy::Copy, model), (UndoBy::Snapshot, CallOrigin::PromptPart)] {
        let plain = facts(ToolKind::Mutation, NeedsProbe::No);
        let call = Call { origin: origin.clone(), ..plain.call.clone() };
        let mut machine = CallMachine::new(CallFacts { undo, call, ..plain });
        machine.step(CallInput::Begin);
        machine.step(allow());
        let_go(&mut machine);
        assert_eq!(machine.step(CallInput::Detach), [], "{undo:?} {origin:?}");
    }
}

#[test]
fn a_call_about_another_one_is_started_on_disk_and_answered_by_it_once() {
    let stop = JobRequest { call: 7, asks: JobAsk::Stop };
    let about = || {
        let plain = facts(ToolKind::Query, NeedsProbe::No);
        let mut machine =
            CallMachine::new(CallFacts { executor: Executor::Job(stop.clone()), ..plain });
        machine.step(CallInput::Begin);
        machine
    };
    let mut machine = about();
    let effects = machine.step(allow());
    let [CallEffect::AuditDecision(_), CallEffect::Record(records), CallEffect::AskJob(asked)] =
        &effects[..]
    else {
        panic!("{effects:?}")
    };
    assert!(matches!(records[..], [CallRecord::Approved(_), CallRecord::Start]));
    assert_eq!(*asked, stop);
    machine.sent();
    let effects = machine.step(CallInput::OtherAnswered(report("ended").result));
    assert_eq!(conclusion(&effects).result.text, "ended");
    assert_eq!(machine.step(CallInput::OtherAnswered(report("again").result)), []);
    // A denied one reaches nobody, and one that a person stops waits no longer.
    let mut machine = about();
    let denied = Verdict::Deny(Basis::Mode(PermissionMode::Plan), "no".into());
    assert!(!machine.step(CallInput::Verdict(denied)).contains(&CallEffect::AskJob(stop.clone())));
    let mut machine = about();
    machine.step(allow());
    machine.sent();
    let effects = machine.step(CallInput::Cancel);
    assert_eq!(conclusion(&effects).result.outcome, Outcome::Interrupted);
}

/// The server that answers a call of its tool.
pub(crate) fn by_server() -> Executor {
    let (tool, arguments) = ("mcp__t__ask".into(), "{}".into());
    Executor::Server(ServerToolCall { tool, arguments })
}

/// A call that its server works on.
fn at_server() -> CallMachine {
    let plain = facts(ToolKind::Mutation, NeedsProbe::No);
    let mut machine = CallMachine::new(CallFacts { executor: by_server(), ..plain });
    machine.step(CallInput::Begin);
    machine.step(allow());
    machine.sent();
    machine
}

pub(crate) fn of_server(input: ServerInput) -> CallInput {
    CallInput::OfServer(input)
}

pub(crate) fn asks(ask: u64) -> CallInput {
    let wants = protocol::mcp::ServerWants::Form("{}".into());
    let (server, message) = ("t".to_owned(), "Which?".to_owned());
    let question = Box::new(protocol::mcp::ServerQuestion { server, message, wants });
    of_server(ServerInput::Asks(ServerAsk { ask, question }))
}

pub(crate) fn asked(digest: &str) -> CallInput {
    let id = CallId { session: SessionId("0123456789ab".into()), number: 1 };
    CallInput::Verdict(Verdict::Ask(Question {
        call: id,
        tool: protocol::judgement::SERVER_QUESTION.into(),
        input: String::new(),
        preview: String::new(),
        confinement: String::new(),
        reason: String::new(),
        widens: Vec::new(),
        ask: Ask::Visit,
        deadline: 5,
        digest: digest.into(),
    }))
}

pub(crate) fn replied(reply: ServerReply) -> CallInput {
    let by = Some("terminal 1".to_owned());
    of_server(ServerInput::Replied(QuestionReply { reply, by, note: None }))
}

/// The numbers of the questions that the broker is asked, and those that are replied to.
fn server_steps(effects: &[CallEffect]) -> (Vec<u64>, Vec<(u64, ServerReply)>) {
    let (mut put, mut replies) = (Vec::new(), Vec::new());
    for effect in effects {
        if let CallEffect::OfServer(ServerEffect::Ask(ask, _)) = effect {
            put.push(*ask);
        }
        if let CallEffect::AskServer(request) = effect
            && let ServerDemand::Reply(ask, reply) = &request.demand
        {
            replies.push((*ask, reply.clone()));
        }
    }
    (put, replies)
}

#[test]
fn questions_of_a_server_are_put_one_after_the_other_and_recorded_before_their_answer() {
    let mut machine = at_server();
    assert_eq!(server_steps(&machine.step(asks(1))), (vec![1], vec![]));
    assert_eq!(machine.step(asks(2)), [], "it waits");
    let effects = machine.step(asked("d1"));
    assert!(matches!(&effects[..], [CallEffect::Record(_), CallEffect::Ask(_)]), "{effects:?}");
    let again = machine.step(CallInput::BrokerBack);
    assert_eq!(server_steps(&again).0, [1], "a new broker gets the open one");
    let effects = machine.step(asked("d1"));
    assert!(matches!(&effects[..], [CallEffect::Ask(_)]), "recorded once: {effects:?}");
    let effects = machine.step(replied(ServerReply::Accept("{}".into())));
    assert_eq!(
        effects[0],
        CallEffect::Record(vec![CallRecord::Answered(
            protocol::mcp::ReplyAction::Accept,
            Some("terminal 1".to_owned()),
        )])
    );
    let replies = vec![(1, ServerReply::Accept("{}".into()))];
    assert_eq!(server_steps(&effects), (vec![2], replies));
    machine.step(asked("d2"));
    let effects = machine.step(CallInput::Expired);
    assert_eq!(effects[0], CallEffect::ForgetQuestion);
    assert_eq!(server_steps(&effects), (vec![], vec![(2, ServerReply::Cancel)]));
    assert_eq!(machine.step(replied(ServerReply::Decline)), [], "none is open");
}

#[test]
fn the_end_of_a_call_closes_its_open_question() {
    for end in [
        CallInput::ServerLost { cause: "ended".into() },
        CallInput::ServerAnswered(Box::new((report("done"), None))),
        CallInput::Cancel,
    ] {
        let mut machine = at_server();
        machine.step(asks(1));
        machine.step(asked("d1"));
        let effects = machine.step(end);
        assert!(effects.contains(&CallEffect::ForgetQuestion), "{effects:?}");
        conclusion(&effects);
        assert_eq!(machine.step(asks(2)), [], "it is over");
    }
    // The control: without a question, nothing is forgotten.
    let effects = at_server().step(CallInput::ServerLost { cause: "ended".into() });
    assert!(!effects.contains(&CallEffect::ForgetQuestion), "{effects:?}");
}

#[test]
fn a_server_that_asks_without_end_or_without_a_broker_is_told_no() {
    let mut machine = at_server();
    let all: Vec<_> = (1..=9).flat_map(|ask| machine.step(asks(ask))).collect();
    assert_eq!(server_steps(&all), (vec![1], vec![(9, ServerReply::Cancel)]));
    let effects = machine.step(CallInput::BrokerFailed("gone".into()));
    let (put, replies) = server_steps(&effects);
    assert!(put.is_empty() && replies.len() == 8, "{effects:?}");
    let effects = machine.step(asks(10));
    assert_eq!(server_steps(&effects), (vec![], vec![(10, ServerReply::Cancel)]));
}

#[test]
fn a_server_that_withdraws_a_question_gets_no_answer_to_it() {
    let mut machine = at_server();
    machine.step(asks(1));
    machine.step(asks(2));
    machine.step(asked("d1"));
    let effects = machine.step(of_server(ServerInput::Unasked(1)));
    assert_eq!(effects[0], CallEffect::ForgetQuestion);
    assert_eq!(server_steps(&effects), (vec![2], vec![]));
    assert_eq!(machine.step(of_server(ServerInput::Unasked(1))), []);
}

#[test]
fn a_late_server_gets_more_time_only_for_a_question() {
    let mut machine = at_server();
    machine.step(asks(1));
    machine.step(asked("d1"));
    let more = [CallEffect::OfServer(ServerEffect::Await)];
    assert_eq!(machine.step(of_server(ServerInput::Late)), more, "it is open");
    machine.step(replied(ServerReply::Decline));
    assert_eq!(machine.step(of_server(ServerInput::Late)), more, "it was open");
    let effects = machine.step(of_server(ServerInput::Late));
    assert_eq!(conclusion(&effects).result.outcome, Outcome::Interrupted);
}
