//! A small session and a small audit log, one record of each kind.

#![allow(dead_code, reason = "each test target uses its part")]
#![allow(clippy::unwrap_used)]

use journal::{
    AuditRecord, BasisRecord, CallProgress, ChainHead, ContentBlock, DecidedRecord, DecisionRecord,
    Digest, EndedRecord, Enforced, FORMAT, FileVersionRecord, Journal, JournalRecord, Level,
    Limits, Outcome, PolicyRecord, Refusal, RefusalKind, Rule, RuleEffect, SessionHeader, Tier,
    ToolKind, TurnEnd, Usage,
};
use std::path::{Path, PathBuf};

pub fn header(id: &str) -> SessionHeader {
    SessionHeader {
        format: FORMAT,
        id: id.to_owned(),
        project: "/project".into(),
        model: "model-1".to_owned(),
        agentd: "0.1.0".to_owned(),
        parent: None,
        task: None,
        fleet_task: None,
    }
}

pub fn prompt(text: &str) -> JournalRecord {
    JournalRecord::Prompt { text: text.to_owned(), expanded: None }
}

pub fn proposed(call: u32, tool_kind: ToolKind) -> JournalRecord {
    JournalRecord::Proposed {
        call,
        use_id: format!("use_{call}"),
        own: None,
        tool: "bash".to_owned(),
        tool_kind,
        input: r#"{"command":"echo \"hi\""}"#.to_owned(),
    }
}

pub fn result(call: u32, text: &str) -> JournalRecord {
    JournalRecord::Result {
        call,
        use_id: format!("use_{call}"),
        outcome: Outcome::Exited { code: 3 },
        text: text.to_owned(),
        full: None,
        summary: "exit 3".to_owned(),
        is_error: true,
        code: Some("exit".to_owned()),
        images: Vec::new(),
        refused: Vec::new(),
        recalled: Some(1),
        audit: Some(ChainHead { seq: 2, hash: Digest::of(b"x") }),
    }
}

pub fn interrupted(call: u32, progress: CallProgress) -> JournalRecord {
    JournalRecord::Interrupted {
        call,
        progress,
        cause: "power".to_owned(),
        tampered: vec![],
        audit: None,
    }
}

pub fn start(call: u32, tool_kind: ToolKind) -> JournalRecord {
    JournalRecord::Start { call, tool_kind, contained: false }
}

/// What follows the header: one record of each kind.
pub fn each_kind() -> Vec<JournalRecord> {
    let rule = Rule {
        effect: RuleEffect::Deny,
        text: "bash:rm *".to_owned(),
        file: "config.toml".to_owned(),
        line: 7,
    };
    let usage = Usage { input: Some(10), output: Some(2), ..Usage::default() };
    let blocks = vec![
        ContentBlock::Text { text: "I look.\n\u{1f600}".to_owned() },
        ContentBlock::Thinking { text: "hm".to_owned(), raw: r#"{"signature":"s"}"#.to_owned() },
        ContentBlock::ToolUse {
            id: "use_1".to_owned(),
            name: "bash".to_owned(),
            input: r#"{"$blob":"no reference"}"#.to_owned(),
        },
    ];
    vec![
        prompt("say \"hi\"\n"),
        JournalRecord::Answer { round: 1, blocks, usage, cost: None },
        proposed(1, ToolKind::Mutation),
        JournalRecord::Asked {
            call: 1,
            digest: "d".to_owned(),
            preview: "echo hi".to_owned(),
            confinement: "no network".to_owned(),
            reason: "mode ask".to_owned(),
            deadline: 1_700_000_000_000,
        },
        JournalRecord::Seen {
            files: vec![FileVersionRecord { path: "/p/a".to_owned(), digest: Digest::of(b"x") }],
        },
        JournalRecord::Spent {
            call: 1,
            session: "s1-1".to_owned(),
            rounds: 2,
            calls: 3,
            usage: Usage::default(),
            cost: Some(7),
        },
        JournalRecord::Learned {
            rule: rule.clone(),
            by: "pts/0".to_owned(),
            unwritten: Some("no space left".to_owned()),
        },
        JournalRecord::Approved {
            call: 1,
            tool_kind: ToolKind::Mutation,
            basis: BasisRecord::Person {
                who: "pts/0".to_owned(),
                note: Some("keep the docs".to_owned()),
            },
        },
        start(1, ToolKind::Mutation),
        result(1, "hi"),
        proposed(2, ToolKind::Mutation),
        JournalRecord::Denied {
            call: 2,
            basis: BasisRecord::Rule(rule),
            message: "a rule".to_owned(),
        },
        proposed(3, ToolKind::Mutation),
        JournalRecord::Expired { call: 3 },
        proposed(4, ToolKind::Query),
        interrupted(4, CallProgress::NeverStarted),
        JournalRecord::Tampered { names: vec![".envrc is not as it was: no room".to_owned()] },
        JournalRecord::Closed,
        JournalRecord::TurnEnded { end: TurnEnd::RoundsUsedUp { rounds: 25 } },
    ]
}

/// A session with one record of each kind; returns its directory.
pub fn session(sessions: &Path, id: &str) -> PathBuf {
    let mut journal = Journal::create(sessions, header(id)).unwrap();
    journal.append_all(&each_kind()).unwrap();
    sessions.join(id)
}

/// A script in a file beside the log, as agentd 0.1 stored each.
pub fn keep_script(log: &Path, text: &str) -> Digest {
    let digest = Digest::of(text.as_bytes());
    let scripts = log.join("scripts");
    std::fs::create_dir_all(&scripts).unwrap();
    std::fs::write(scripts.join(digest.to_string()), text).unwrap();
    digest
}

pub fn records(dir: &Path) -> Vec<JournalRecord> {
    journal::read(dir).unwrap().map(|entry| entry.unwrap().record).collect()
}

pub fn decided(session: &str, call: u32, decision: DecisionRecord) -> AuditRecord {
    AuditRecord::Decided(DecidedRecord {
        session: session.to_owned(),
        turn: 1,
        round: 2,
        call,
        tool: "bash".to_owned(),
        tool_kind: ToolKind::Mutation,
        input: format!(r#"{{"command":"echo {call}"}}"#),
        script: None,
        script_text: None,
        decision,
        basis: BasisRecord::Mode { mode: "auto".to_owned() },
        requested: Some(PolicyRecord {
            profile: "command".to_owned(),
            project: "/project".into(),
            added: vec![],
            temp: "/tmp/s".into(),
            home: Some("/home/p".into()),
            tool_homes: vec![("RUSTUP_HOME".into(), journal::StoredPath("/opt/rust".into()))],
            withheld: vec!["/state".into()],
            network: "off".to_owned(),
            hosts: vec![],
            git_settings: false,
            highest_tier: Tier::A,
            level: Level::Required,
            limits: Limits { processes: 512, ..Limits::NONE },
        }),
        rights: vec![],
    })
}

pub fn ended(session: &str, call: u32, refusals: Vec<Refusal>) -> AuditRecord {
    AuditRecord::Ended(EndedRecord {
        session: session.to_owned(),
        call,
        tool: "bash".to_owned(),
        outcome: Outcome::Exited { code: 0 },
        code: None,
        enforced: Some(Enforced {
            tier: Tier::B,
            in_process: false,
            profile: "command".to_owned(),
            landlock_abi: 7,
            network: "off (no INET sockets)".to_owned(),
            namespaces: vec![],
            seccomp: true,
            refusals_observable: true,
            dropped: vec![],
            limits: vec!["a limit".to_owned()],
            missing: vec![],
            left_out: vec!["/h/.nvm is left out: it leads to keys".into()],
            cgroup: vec!["memory".into(), "processes".into()],
        }),
        runner_pid: Some(10),
        command_pid: Some(11),
        started: Some(1_700_000_000_000),
        ended: 1_700_000_000_100,
        usage: journal::ProcessUsage { cpu_ms: 1, peak_kib: 2, written_bytes: 3 },
        refusals,
        refusals_uncounted: 0,
        tampered: vec![],
        granted: vec![],
        signed: vec![],
        ran: vec![],
        connections: vec![],
        connections_uncounted: 0,
        connections_cut: None,
        recalled: Some(1),
        stored: Some(journal::StoredRecord { what: "u1 (user): text".to_owned(), bytes: 4 }),
        output: Some(Digest::of(b"output")),
    })
}

pub fn refusal() -> Refusal {
    Refusal {
        kind: RefusalKind::Refused,
        syscall: "socket".to_owned(),
        subject: journal::Subject::Address("192.0.2.1:9".parse().unwrap()),
        errno: 97,
        pid: 11,
        count: 1,
    }
}
