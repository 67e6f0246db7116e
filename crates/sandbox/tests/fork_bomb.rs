//! A fork bomb is ended in both tiers, on a busy machine too. In a test executable of its own: cargo runs it beside
//! no other test, whose processes it would hold up.

#![allow(clippy::unwrap_used)]

#[path = "sandbox/yard/mod.rs"]
mod yard;

use std::process::{Child, Command};
use yard::{TIERS, Told, Yard, ended_for, mark, processes_with, python};

/// A process that takes all the time it gets, in a session of its own: with autogroups each such session gets
/// the same share of a CPU.
struct BusyLoop(Child);

impl BusyLoop {
    fn new() -> Self {
        Self(Command::new("setsid").args(["sh", "-c", "while :; do :; done"]).spawn().unwrap())
    }
}

impl Drop for BusyLoop {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn a_fork_bomb_is_ended_and_its_smaller_twin_is_not() {
    let _busy: Vec<BusyLoop> = (0..8).map(|_| BusyLoop::new()).collect();
    for tier in TIERS {
        let (yard, mark) = (Yard::new(), mark());
        // Each begets two, which leave its session, and so on.
        let bomb = format!(
            "import os, sys\nwhile True:\n    try:\n        if os.fork() == 0: os.setsid()\n    except OSError: pass\n# {mark}"
        );
        let told = python(&yard, tier, &["processes", "200"], &bomb);
        assert_eq!(ended_for(told.in_tier(tier)), "Processes", "{told:?}");
        assert_eq!(processes_with(&mark).len(), 0, "{tier}");
        let few = "n=0; while [ $n -lt 180 ]; do sleep 1 & n=$((n+1)); done; wait; echo all";
        let told = yard.cage(tier, &["processes", "200"], &["sh", "-c", few]);
        assert_eq!(told.printed(), "all", "{told:?}");
    }
}

#[test]
fn a_command_has_the_priority_that_agentd_was_given() {
    let said = "nice; python3 -c 'import os; print(os.sched_getscheduler(0))'";
    // The tests may run with a niceness themselves, to which `nice` adds.
    let own = Command::new("nice").output().unwrap().stdout;
    let own: i32 = String::from_utf8(own).unwrap().trim().parse().unwrap();
    for tier in TIERS {
        for nice in [0, 5] {
            let yard = Yard::new();
            let runner = yard.runner(tier, &["processes", "200"], &["sh", "-c", said]);
            let out = Command::new("nice")
                .args(["-n", &nice.to_string()])
                .arg(runner.get_program())
                .args(runner.get_args())
                .output();
            let told = Told::from(&out.unwrap());
            let niceness = (own + nice).min(19).to_string();
            assert_eq!(told.in_tier(tier).all("out"), [&*niceness, "0"], "{told:?}");
        }
    }
}
