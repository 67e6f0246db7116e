//! What a runner may say when: the table of [`super::life`], driven message by message.

#![allow(clippy::unwrap_used)]
use super::life::{Concerns, RunnerLife, RunnerStep};
use crate::grant::RunnerPurpose;
use protocol::call::{Outcome, ProcessUsage, RunReport, ToolResult};
use protocol::confinement::{Enforced, Tier};
use protocol::log::{LogLevel, LogLine};
use protocol::tool::{
    FromCage, FromCall, FromTool, Keeper, KeeperKind, NamespaceKind, OutputStream,
};

const PURPOSES: [RunnerPurpose; 6] = [
    RunnerPurpose::Call,
    RunnerPurpose::Probe,
    RunnerPurpose::Proxy,
    RunnerPurpose::Certificate,
    RunnerPurpose::Reserve,
    RunnerPurpose::Repair,
];

fn enforced() -> Enforced {
    Enforced { tier: Tier::A, ..Enforced::nothing("command") }
}

fn done() -> FromTool {
    let result = ToolResult {
        outcome: Outcome::Done,
        text: String::new(),
        summary: String::new(),
        is_error: false,
        code: None,
        images: Vec::new(),
    };
    FromTool::Call(FromCall::Done(Box::new(RunReport {
        result,
        images: Vec::new(),
        full: None,
        effects: Vec::new(),
        evidence: None,
        refusals: Vec::new(),
        refusals_uncounted: 0,
        command_pid: None,
        seen: Vec::new(),
        instructions: Vec::new(),
        tampered: Vec::new(),
        usage: ProcessUsage::default(),
    })))
}

fn cage(news: FromCage) -> FromTool {
    FromTool::Cage(news)
}

fn call(said: FromCall) -> FromTool {
    FromTool::Call(said)
}

/// Every message, by its name in the table of `life`.
fn messages() -> Vec<(&'static str, FromTool)> {
    let keeper = Keeper { pid: 2, kind: KeeperKind::Guard, command: 3 };
    vec![
        ("Log", FromTool::Log(LogLine { level: LogLevel::Info, text: String::new() })),
        ("Pong", FromTool::Pong(0)),
        ("Keeper", cage(FromCage::Keeper(keeper))),
        ("Mounted", cage(FromCage::Mounted)),
        ("ProxyListener", cage(FromCage::ProxyListener)),
        ("Resting", cage(FromCage::Resting { tier: Tier::A, opened: String::new() })),
        ("Caged", cage(FromCage::Caged(enforced()))),
        ("Uncaged", cage(FromCage::Uncaged { step: String::new(), reason: String::new() })),
        ("Lost", cage(FromCage::Lost(String::new()))),
        ("Began", call(FromCall::Began)),
        ("Output", call(FromCall::Output { stream: OutputStream::Out, text: String::new() })),
        ("PutRight", call(FromCall::PutRight(Vec::new()))),
        ("Namespace", call(FromCall::Namespace(NamespaceKind::Network))),
        ("InBackground", call(FromCall::InBackground)),
        ("InputTaken", call(FromCall::InputTaken(Ok(())))),
        ("Server", call(FromCall::Server(protocol::mcp::FromServer::Note(String::new())))),
        ("Done", done()),
        ("Probed", FromTool::Probed(Err(String::new()))),
        ("Proxied", FromTool::Proxied { connections: Vec::new(), uncounted: 0 }),
        ("Repaired", FromTool::Repaired(Ok(Vec::new()))),
        ("Certified", FromTool::Certified(Err(String::new()))),
    ]
}

fn message(name: &str) -> FromTool {
    messages().into_iter().find(|(known, _)| *known == name).unwrap().1
}

/// A runner that has said these, each in its turn; `go`, `renew`, `fits` and `cancel` are its owner's.
fn life(purpose: RunnerPurpose, said: &[&str]) -> RunnerLife {
    let mut life = RunnerLife::new(purpose);
    for name in said {
        match *name {
            "go" => life.released(),
            "renew" => life.renewed(RunnerPurpose::Call),
            "fits" => life.fits(),
            "cancel" => life.cancelled(),
            name => assert_ne!(life.hear(&message(name)), Concerns::OutOfTurn, "{said:?}: {name}"),
        }
    }
    life
}

/// What a runner that has said `said` may say next, beside `Log` and `Pong`.
fn may_say(purpose: RunnerPurpose, said: &[&str]) -> Vec<&'static str> {
    let may = |(name, message): (&'static str, FromTool)| {
        let heard = life(purpose, said).hear(&message);
        (heard != Concerns::OutOfTurn).then_some(name)
    };
    let mut all: Vec<_> = messages().into_iter().filter_map(may).collect();
    assert_eq!(all.drain(..2).collect::<Vec<_>>(), ["Log", "Pong"]);
    all
}

#[test]
fn a_runner_may_say_what_its_step_allows_and_nothing_else() {
    use RunnerPurpose as For;
    let late = ["Namespace", "InBackground", "InputTaken", "Server"];
    let running =
        ["Lost", "Output", "PutRight", "Namespace", "InBackground", "InputTaken", "Server", "Done"];
    let building = ["Keeper", "Mounted", "ProxyListener", "Caged", "Uncaged", "Lost"];
    for (purpose, said, may) in [
        (For::Call, &[][..], &building[..]),
        (For::Call, &["Keeper"], &building[1..]),
        (For::Call, &["Mounted", "ProxyListener", "Keeper", "Caged"], &["Lost"]),
        (For::Call, &["Caged", "go"], &["Lost", "Began"]),
        (For::Call, &["Caged", "go", "Began"], &running),
        (For::Call, &["Caged", "go", "Began", "cancel"], &running),
        (For::Call, &["Caged", "go", "cancel"], &["Lost", "Began"]),
        (For::Call, &["Caged", "go", "Began", "Done"], &late),
        (For::Call, &["Caged", "go", "Began", "Lost"], &late),
        (For::Call, &["Uncaged"], &[]),
        (For::Probe, &[], &["Caged", "Uncaged"]),
        (For::Probe, &["Caged"], &[]),
        (For::Probe, &["Caged", "go"], &["Began", "Probed"]),
        (For::Probe, &["Caged", "go", "Began"], &["Probed"]),
        (For::Probe, &["Caged", "go", "Began", "Probed"], &[]),
        (For::Proxy, &[], &["Caged", "Uncaged"]),
        (For::Proxy, &["Caged"], &[]),
        (For::Proxy, &["Caged", "go", "Proxied"], &["Proxied"]),
        (For::Certificate, &[], &["Caged", "Uncaged"]),
        (For::Certificate, &["Caged", "go"], &["Certified"]),
        (For::Certificate, &["Caged", "go", "Certified"], &[]),
        (For::Repair, &[], &["Uncaged", "Repaired"]),
        (For::Repair, &["Repaired"], &[]),
        (For::Reserve, &[], &["Keeper", "Mounted", "Resting", "Uncaged", "Lost"]),
        (For::Reserve, &["Keeper", "Mounted", "Resting"], &[]),
        (For::Reserve, &["Resting", "renew"], &["Caged", "Lost"]),
        (For::Reserve, &["Resting", "renew", "Caged", "fits"], &["Lost"]),
        (For::Reserve, &["Resting", "renew", "Caged", "fits", "go", "Began"], &running),
    ] {
        assert_eq!(may_say(purpose, said), may, "{purpose:?} {said:?}");
    }
}

/// It is killed, and heard to the end: the rest tells what it did.
#[test]
fn a_message_out_of_turn_changes_nothing() {
    for purpose in PURPOSES {
        let fresh = may_say(purpose, &[]);
        for (name, message) in messages().split_off(2) {
            if fresh.contains(&name) {
                continue;
            }
            let after = messages().split_off(2).into_iter().filter(|(_, next)| {
                let mut life = RunnerLife::new(purpose);
                life.hear(&message);
                life.hear(next) != Concerns::OutOfTurn
            });
            let after: Vec<_> = after.map(|(name, _)| name).collect();
            assert_eq!(after, fresh, "{purpose:?} {name}");
        }
    }
}

#[test]
fn each_step_has_its_limit_and_is_over_with_the_next() {
    use {RunnerPurpose as For, RunnerStep as Step};
    let steps = [Step::Cage, Step::Renew, Step::Probe, Step::Cancel, Step::Exit];
    for (purpose, said, limited, at) in [
        (For::Call, &[][..], Some(Step::Cage), &[Step::Cage][..]),
        (For::Call, &["Caged"], None, &[]),
        (For::Call, &["Caged", "go"], None, &[]),
        (For::Call, &["Caged", "go", "cancel"], Some(Step::Cancel), &[Step::Cancel]),
        (For::Call, &["Caged", "go", "cancel", "Began", "Done"], Some(Step::Exit), &[Step::Exit]),
        (For::Call, &["Caged", "go", "Lost"], Some(Step::Exit), &[Step::Exit]),
        // Its cage's limit ends it.
        (For::Call, &["cancel"], Some(Step::Cage), &[Step::Cage, Step::Cancel]),
        (For::Probe, &["Caged", "go"], Some(Step::Probe), &[Step::Probe]),
        (For::Probe, &["Caged", "go", "Began"], None, &[Step::Probe]),
        (For::Proxy, &["Caged", "go", "cancel"], Some(Step::Cancel), &[Step::Cancel]),
        (For::Reserve, &["Resting"], None, &[]),
        (For::Reserve, &["Resting", "renew"], None, &[Step::Renew]),
        (For::Reserve, &["Resting", "renew", "Caged"], None, &[Step::Renew]),
        (For::Reserve, &["Resting", "renew", "Caged", "fits"], None, &[]),
        (For::Repair, &[], None, &[Step::Cage]),
        (For::Call, &["Uncaged"], Some(Step::Exit), &[Step::Exit]),
    ] {
        let life = life(purpose, said);
        assert_eq!(life.limit().map(|(step, _)| step), limited, "{purpose:?} {said:?}");
        let found: Vec<_> = steps.into_iter().filter(|step| life.is_at(*step)).collect();
        assert_eq!(found, at, "{purpose:?} {said:?}");
    }
}

#[test]
fn a_command_goes_to_the_background_unless_it_is_being_ended() {
    let heard = |said: &[&str]| life(RunnerPurpose::Call, said).hear(&message("InBackground"));
    assert_eq!(heard(&["Caged", "go", "Began"]), Concerns::Owner);
    assert_eq!(heard(&["Caged", "go", "Began", "cancel"]), Concerns::Nobody);
    assert_eq!(heard(&["Caged", "go", "Began", "Done"]), Concerns::Nobody);
}

/// Everything else is for the runner itself, or announces a descriptor.
#[test]
fn an_owner_hears_all_but_log_lines_pongs_announcements_and_the_begin_of_a_probe() {
    let begun = ["Caged", "go", "Began"];
    for (name, message) in messages() {
        let said: &[&str] = match message {
            FromTool::Call(FromCall::Began) => &begun[..2],
            FromTool::Call(_) | FromTool::Cage(FromCage::Lost(_)) => &begun,
            FromTool::Log(_)
            | FromTool::Pong(_)
            | FromTool::Cage(_)
            | FromTool::Probed(_)
            | FromTool::Proxied { .. }
            | FromTool::Repaired(_)
            | FromTool::Certified(_) => &[],
        };
        let heard = life(RunnerPurpose::Call, said).hear(&message);
        let expected = match name {
            "Log" | "Pong" | "Mounted" | "ProxyListener" | "Namespace" => Concerns::Nobody,
            "Resting" | "Probed" | "Proxied" | "Repaired" | "Certified" => Concerns::OutOfTurn,
            _ => Concerns::Owner,
        };
        assert_eq!(heard, expected, "{name}");
    }
    let probe = life(RunnerPurpose::Probe, &["Caged", "go"]).hear(&message("Began"));
    assert_eq!(probe, Concerns::Nobody);
}
