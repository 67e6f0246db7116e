//! Encodes decisions and ends of calls as entries of the audit log. Used by the call actor, and by the
//! session opener for calls that were lost with their supervisor.

use super::TurnRound;
use super::encode::basis;
use crate::unix_time::now_ms;
use call::{CallConclusion, ProxyDecisions};
use journal::{OpenCall, StoredPath};
use protocol::call::{Call, FileEffect, TamperedFile};
use protocol::confinement::{Confinement, GitSettings, Network, Profile};
use protocol::ids::SessionId;
use protocol::judgement::{Basis, ExtraRight, Rule, ToolKind, Verdict};

/// The audit entry of a decision.
pub(crate) fn decision(
    (call, script): (&Call, Option<&str>),
    kind: ToolKind,
    place: TurnRound,
    verdict: &Verdict,
    requested: &Confinement,
    rights: &[ExtraRight],
) -> Option<journal::DecidedRecord> {
    let (decision, why) = match verdict {
        Verdict::Allow(why) => (journal::DecisionRecord::Allowed, why),
        Verdict::Deny(why, _) => (journal::DecisionRecord::Denied, why),
        Verdict::Ask(_) => return None,
    };
    Some(journal::DecidedRecord {
        session: call.id.session.0.clone(),
        turn: place.turn,
        round: place.round,
        call: call.id.number,
        tool: call.tool.clone(),
        tool_kind: kind,
        input: call.input.clone(),
        script: script.map(|text| journal::Digest::of(text.as_bytes())),
        script_text: script.map(str::to_owned),
        decision,
        basis: basis(why),
        requested: Some(policy(requested)),
        rights: approval::split_rights(rights)
            .iter()
            .enumerate()
            .map(|(at, asked)| right(asked, by_rule(why, at)))
            .collect(),
    })
}

/// The entry of the decision on a call whose question expired after this time, in milliseconds.
pub(crate) fn expired(denied: journal::DecidedRecord, question_ms: u64) -> journal::DecidedRecord {
    let why = format!("nobody answered within {}", config::written_duration(question_ms));
    journal::DecidedRecord {
        decision: journal::DecisionRecord::Expired,
        basis: journal::BasisRecord::NobodyToAsk { why },
        ..denied
    }
}

/// The rule that granted the requested right at this position.
fn by_rule(basis: &Basis, at: usize) -> Option<&Rule> {
    match basis {
        Basis::Rights(rules) => rules.get(at),
        Basis::Rule(_)
        | Basis::Mode(_)
        | Basis::Query
        | Basis::Person(_)
        | Basis::NotedByPerson { .. }
        | Basis::Answered { .. }
        | Basis::NobodyToAsk(_)
        | Basis::Unjudgeable(_)
        | Basis::Sandboxed(_)
        | Basis::Typed(_)
        | Basis::Opaque(_) => None,
    }
}

/// Describes a right beyond the session's, for the record.
fn right(widening: &ExtraRight, by: Option<&Rule>) -> String {
    let name = match widening {
        ExtraRight::Network => "network".to_owned(),
        ExtraRight::Hosts(hosts) => {
            let hosts: Vec<_> = hosts.iter().map(ToString::to_string).collect();
            format!("network to {}", hosts.join(", "))
        }
        ExtraRight::Directory(dir) => format!("directory {}", dir.to_path().display()),
        ExtraRight::GitAdmin => "git-admin (git's settings and hooks)".to_owned(),
        ExtraRight::GitSign => "git-sign (signatures of commits and tags)".to_owned(),
    };
    match by {
        Some(rule) if rule.line > 0 => {
            format!("{name} by the rule {} in {}, line {}", rule.text, rule.file, rule.line)
        }
        Some(rule) => format!("{name} by the rule {} ({})", rule.text, rule.file),
        None => name,
    }
}

/// Times, pid and proxy decisions of a call that ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunFacts {
    pub(crate) runner_pid: Option<u32>,
    /// When it began, in milliseconds of Unix time.
    pub(crate) started: Option<u64>,
    /// When its processes were known to be dead.
    pub(crate) ended: u64,
    /// Decisions of its allow-list's proxy.
    pub(crate) decided: ProxyDecisions,
    /// What the store wrote or removed for it.
    pub(crate) stored: Option<journal::StoredRecord>,
}

impl RunFacts {
    /// How long it has run until now, in milliseconds.
    pub(crate) fn time_ms(&self) -> u64 {
        self.started.map_or(0, |at| now_ms().saturating_sub(at))
    }
}

/// The audit entry of a call's end.
pub(crate) fn end(
    call: &Call,
    conclusion: &CallConclusion,
    ran: &RunFacts,
) -> journal::EndedRecord {
    let report = conclusion.report.as_ref();
    let usage = report.map(|report| report.usage).unwrap_or_default();
    journal::EndedRecord {
        session: call.id.session.0.clone(),
        call: call.id.number,
        tool: call.tool.clone(),
        outcome: conclusion.result.outcome.clone(),
        code: conclusion.result.code.clone(),
        enforced: conclusion.enforced.clone(),
        runner_pid: ran.runner_pid,
        command_pid: report.and_then(|report| report.command_pid),
        started: ran.started,
        ended: ran.ended,
        usage,
        refusals: report.map(|report| report.refusals.clone()).unwrap_or_default(),
        refusals_uncounted: report.map_or(0, |report| report.refusals_uncounted),
        tampered: names_of(conclusion.tampered(), |name| !name.remedy.is_permitted()),
        granted: names_of(conclusion.tampered(), |name| name.remedy.is_permitted()),
        signed: report.map(|report| report.effects.as_slice()).map(signed).unwrap_or_default(),
        ran: match conclusion.enforced.as_ref().filter(|it| it.profile == Profile::Document.name())
        {
            Some(_) => report.map(|report| ran_programs(&report.effects)).unwrap_or_default(),
            None => Vec::new(),
        },
        connections: ran.decided.connections.clone(),
        connections_uncounted: ran.decided.uncounted,
        connections_cut: ran.decided.cut.clone(),
        recalled: conclusion.cached_from,
        stored: ran.stored.clone(),
        output: Some(journal::Digest::of(conclusion.result.text.as_bytes())),
    }
}

/// Describes the signatures that a call made.
fn signed(effects: &[FileEffect]) -> Vec<String> {
    let in_words = |effect: &FileEffect| match effect {
        FileEffect::Signed { key, count: 1 } => Some(format!("signed once, by key {key}")),
        FileEffect::Signed { key, count } => Some(format!("signed {count} times, by key {key}")),
        FileEffect::Read(_)
        | FileEffect::Written(_)
        | FileEffect::Created(_)
        | FileEffect::Deleted(_)
        | FileEffect::Ran(_) => None,
    };
    effects.iter().filter_map(in_words).collect()
}

/// The programs that a call started.
fn ran_programs(effects: &[FileEffect]) -> Vec<String> {
    let program = |effect: &FileEffect| match effect {
        FileEffect::Ran(text) => Some(text.clone()),
        FileEffect::Read(_)
        | FileEffect::Written(_)
        | FileEffect::Created(_)
        | FileEffect::Deleted(_)
        | FileEffect::Signed { .. } => None,
    };
    effects.iter().filter_map(program).collect()
}

/// Describes the protected files that a call changed and that match.
fn names_of(names: &[TamperedFile], wanted: fn(&&TamperedFile) -> bool) -> Vec<String> {
    names.iter().filter(wanted).map(ToString::to_string).collect()
}

/// The audit entry of the decision on a call that was lost with its supervisor, which may not have
/// written it; as complete as the journal is.
pub(crate) fn lost_decision(
    session: &SessionId,
    place: TurnRound,
    (call, script): (&OpenCall, Option<&str>),
) -> journal::DecidedRecord {
    let unsaid = |why: &str| journal::BasisRecord::Unjudgeable { why: why.to_owned() };
    let (decision, otherwise) = match (&call.refused, call.progress, &call.basis) {
        (Some(journal::RefusedCall::Expired), _, _) => (
            journal::DecisionRecord::Expired,
            journal::BasisRecord::NobodyToAsk { why: "nobody answered in time".to_owned() },
        ),
        (Some(journal::RefusedCall::Denied { .. }), _, _) => {
            (journal::DecisionRecord::Denied, unsaid("its record has no reason"))
        }
        (None, journal::CallProgress::NeverStarted, None) => (
            journal::DecisionRecord::Denied,
            unsaid("it was lost with the supervisor before it was decided"),
        ),
        (None, journal::CallProgress::MayHaveRun, _) | (None, _, Some(_)) => {
            (journal::DecisionRecord::Allowed, unsaid("its record has no reason"))
        }
    };
    journal::DecidedRecord {
        session: session.0.clone(),
        turn: place.turn,
        round: place.round,
        call: call.number,
        tool: call.tool.clone(),
        tool_kind: call.tool_kind,
        input: call.input.clone(),
        script: script.map(|text| journal::Digest::of(text.as_bytes())),
        script_text: script.map(str::to_owned),
        decision,
        basis: call.basis.clone().unwrap_or(otherwise),
        requested: None,
        rights: Vec::new(),
    }
}

/// The audit entry of the end of a call that was lost with its supervisor.
pub(crate) fn lost_end(
    session: &SessionId,
    call: &OpenCall,
    tampered: &[TamperedFile],
    now: u64,
) -> journal::EndedRecord {
    journal::EndedRecord {
        session: session.0.clone(),
        call: call.number,
        tool: call.tool.clone(),
        outcome: match (&call.refused, call.progress) {
            (Some(_), _) => journal::Outcome::Denied,
            (None, journal::CallProgress::NeverStarted) => journal::Outcome::NeverStarted,
            (None, journal::CallProgress::MayHaveRun) => journal::Outcome::Interrupted,
        },
        code: Some(
            match &call.refused {
                Some(journal::RefusedCall::Denied { .. }) => "denied",
                Some(journal::RefusedCall::Expired) => "expired",
                None => "interrupted",
            }
            .to_owned(),
        ),
        enforced: None,
        runner_pid: None,
        command_pid: None,
        started: None,
        ended: now,
        usage: journal::ProcessUsage::default(),
        refusals: Vec::new(),
        refusals_uncounted: 0,
        tampered: names_of(tampered, |name| !name.remedy.is_permitted()),
        granted: names_of(tampered, |name| name.remedy.is_permitted()),
        signed: Vec::new(),
        ran: Vec::new(),
        connections: Vec::new(),
        connections_uncounted: 0,
        // The reader omits it for calls without an allow-list.
        connections_cut: match call.progress {
            journal::CallProgress::NeverStarted => None,
            journal::CallProgress::MayHaveRun => Some(PROXY_DECISIONS_LOST.to_owned()),
        },
        recalled: None,
        stored: None,
        output: None,
    }
}

/// For a call whose supervisor died.
const PROXY_DECISIONS_LOST: &str =
    "the proxy's decisions were lost with the supervisor: its connections are not on record";

fn policy(confinement: &Confinement) -> journal::PolicyRecord {
    journal::PolicyRecord {
        profile: confinement.profile.name().to_owned(),
        project: StoredPath(confinement.project.to_path()),
        added: confinement.added.iter().map(|path| StoredPath(path.to_path())).collect(),
        temp: StoredPath(confinement.temp.to_path()),
        home: confinement.home.as_ref().map(|path| StoredPath(path.to_path())),
        tool_homes: confinement
            .tool_homes
            .iter()
            .map(|(name, path)| (name.clone(), StoredPath(path.to_path())))
            .collect(),
        withheld: confinement.withheld.iter().map(|path| StoredPath(path.to_path())).collect(),
        network: confinement.network.name().to_owned(),
        hosts: match confinement.network {
            Network::Off | Network::On => Vec::new(),
            Network::Listed => confinement.hosts.iter().map(ToString::to_string).collect(),
        },
        git_settings: match confinement.git {
            GitSettings::Kept | GitSettings::DirectoryKept => false,
            GitSettings::Writable => true,
        },
        highest_tier: confinement.highest_tier,
        level: confinement.level,
        limits: confinement.limits,
    }
}
