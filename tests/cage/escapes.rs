//! Commands that try to outlive their call, in both cages, however the call ends: none does.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::{Desk, child_of, processes, run, send, until};
use nix::sys::signal::Signal;
use serde_json::json;
use std::fs;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const TIERS: [&str; 2] = ["A", "B"];

/// A time to sleep that no other process of this machine sleeps, by which ours are known.
fn mark() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("300.{}{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The living processes that know the mark.
fn survivors(mark: &str) -> Vec<String> {
    let known = |pid: u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.contains(mark).then(|| format!("{pid}: {line}"))
    };
    processes().into_iter().filter_map(|process| known(process.pid)).collect()
}

/// Leaves its session, forks twice, ignores TERM, holds the pipe and forks as fast as it can. Each
/// generation ends at once, so a list of processes never has the next one.
fn everything(mark: &str) -> String {
    crate::support::needs("python3");
    format!(
        "trap '' TERM HUP INT\n\
         setsid sleep {mark} &\n\
         setsid sh -c 'trap \"\" TERM; (sleep {mark} &) ; sleep {mark}' &\n\
         (sh -c 'sleep {mark} & exec sleep {mark}' &)\n\
         python3 -c 'import os\nwhile True:\n if os.fork(): os._exit(0)' {mark} &\n\
         sleep 0.3"
    )
}

/// A run whose command has left processes behind and is still running.
struct Under {
    desk: Desk,
    server: Server,
    child: Child,
    /// The process of `agentd`.
    client: u32,
    mark: String,
}

fn under(tier: &str) -> Under {
    let mut run = under_with(tier, |command| command);
    run.client = run.child.id();
    run
}

/// As in a container whose first process waits only for children that it started.
fn under_one_who_reaps_nothing(tier: &str) -> Under {
    let program = "import ctypes, subprocess, sys\n\
         assert ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0\n\
         sys.exit(subprocess.call(sys.argv[1:]))";
    let mut run = under_with(tier, |command| {
        let mut under = Command::new("python3");
        under.args(["-c", program]).arg(command.get_program()).args(command.get_args());
        under.env_clear().current_dir(command.get_current_dir().unwrap());
        under.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        under
    });
    run.client = child_of(run.child.id(), "agentd").expect("agentd");
    run
}

fn under_with(tier: &str, around: impl Fn(Command) -> Command) -> Under {
    let (desk, mark) = (Desk::new(), mark());
    let (known, left) = (mark.clone(), desk.outside().join("left"));
    let script = format!("{}; touch begun; sleep {mark}", everything(&mark));
    let input = json!({ "command": script }).to_string();
    let server = Server::answering(move |n, _| match n {
        1 => Answer::says([call("toolu_1", "bash", &input)]),
        _ => {
            // The next command could begin now.
            fs::write(&left, survivors(&known).join("\n")).unwrap();
            Answer::text("done")
        }
    });
    let arguments = ["-p", "x", "--permission-mode", "auto", "--timeout", "40"];
    let mut command = desk.with_server(&server, &arguments);
    command.env("AGENTD_SANDBOX_TIER", tier);
    let child = around(command).spawn().unwrap();
    until("the command has left others behind", || desk.project().join("begun").exists());
    assert!(survivors(&mark).len() > 4, "the positive control: {:?}", survivors(&mark));
    Under { desk, server, child, client: 0, mark }
}

impl Under {
    fn supervisor(&self) -> u32 {
        child_of(self.client, "agentd-supervisor").expect("a supervisor")
    }

    fn runner(&self) -> u32 {
        child_of(self.supervisor(), "agentd-tool").expect("a runner")
    }

    /// The process that ends the cage when the runner dies: in tier A the first process of its PID
    /// namespace, in tier B the guard.
    fn keeper(&self) -> u32 {
        child_of(self.runner(), "agentd-tool").expect("a keeper")
    }

    /// Processes of the command that were alive when the model was asked again.
    fn left(&self) -> String {
        fs::read_to_string(self.desk.outside().join("left")).unwrap()
    }

    /// Waits for the run's end and checks that no process of it is left.
    fn ended(&mut self) -> i32 {
        let status = self.child.wait().unwrap();
        let mark = &self.mark;
        until("nothing of the command lives", || survivors(mark).is_empty());
        let session = self.client;
        until("nothing of the run lives", || {
            !processes().iter().any(|process| process.session == session)
        });
        status.code().unwrap_or(-1)
    }

    /// The result of the call that the model got.
    fn told(&self) -> String {
        self.server.requests()[1].body["messages"].to_string()
    }
}

#[test]
fn failure_40_a_grandchild_holds_the_pipe() {
    for tier in TIERS {
        let (desk, mark) = (Desk::new(), mark());
        let script = format!("sleep {mark} & echo the last words");
        let server = Server::scripted([
            Answer::says([call("toolu_1", "bash", &json!({ "command": script }).to_string())]),
            Answer::text("done"),
        ]);
        let arguments = ["-p", "x", "--permission-mode", "auto"];
        let mut command = desk.with_server(&server, &arguments);
        command.env("AGENTD_SANDBOX_TIER", tier);
        let ran = run(command);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.took < Duration::from_secs(30), "the call waited for the pipe: {ran:?}");
        let body = server.requests()[1].body["messages"].to_string();
        assert!(body.contains("the last words"), "{body}");
        assert_eq!(survivors(&mark), Vec::<String>::new());
    }
}

#[test]
fn failure_41_a_setsid_child_survives_the_end_of_its_call() {
    for tier in TIERS {
        let (desk, mark) = (Desk::new(), mark());
        let left = desk.outside().join("left");
        let (script, known, seen) = (everything(&mark), mark.clone(), left.clone());
        let server = Server::answering(move |n, _| match n {
            1 => Answer::says([call("toolu_1", "bash", &json!({ "command": script }).to_string())]),
            _ => {
                // Before the model gets the end of the call.
                fs::write(&seen, survivors(&known).join("\n")).unwrap();
                Answer::text("done")
            }
        });
        let arguments = ["-p", "x", "--permission-mode", "auto"];
        let mut command = desk.with_server(&server, &arguments);
        command.env("AGENTD_SANDBOX_TIER", tier);
        let ran = run(command);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert_eq!(fs::read_to_string(&left).unwrap(), "", "tier {tier}");
    }
}

#[test]
fn failure_42_only_the_direct_child_of_a_killed_runner_ends() {
    for tier in TIERS {
        let mut run = under(tier);
        send(run.runner(), Signal::SIGKILL);
        assert_eq!(run.ended(), 0, "tier {tier}");
        assert!(run.told().contains("interrupted: may have run"), "{}", run.told());
    }
}

#[test]
fn failure_42_only_the_workers_of_a_killed_supervisor_end() {
    for tier in TIERS {
        let mut run = under(tier);
        send(run.supervisor(), Signal::SIGKILL);
        assert_eq!(run.ended(), 0, "tier {tier}");
        assert!(run.told().contains("interrupted: may have run"), "{}", run.told());
    }
}

/// Only the namespace of tier A and the guard of tier B can end the rest. A machine whose kernel
/// lacks the signal scope has no guard; the record of a call names that.
#[test]
fn failure_42_a_supervisor_and_its_runner_are_killed_in_the_same_instant() {
    for tier in TIERS {
        let mut run = under(tier);
        let (supervisor, runner) = (run.supervisor(), run.runner());
        send(supervisor, Signal::SIGSTOP);
        send(runner, Signal::SIGKILL);
        send(supervisor, Signal::SIGKILL);
        assert_eq!(run.ended(), 0, "tier {tier}");
        assert!(run.told().contains("interrupted: may have run"), "{}", run.told());
    }
}

/// A runner that is stopped ends by no signal but one, and holds its session's lock.
#[test]
fn failure_42_a_stopped_runner_outlives_its_supervisor() {
    for tier in TIERS {
        let mut run = under(tier);
        let (supervisor, runner) = (run.supervisor(), run.runner());
        send(runner, Signal::SIGSTOP);
        send(supervisor, Signal::SIGKILL);
        assert_eq!(run.ended(), 0, "tier {tier}");
        assert!(run.told().contains("interrupted: may have run"), "{}", run.told());
    }
}

#[test]
fn failure_42_a_stopped_keeper_outlives_its_runner() {
    for tier in TIERS {
        let mut run = under(tier);
        let (runner, keeper) = (run.runner(), run.keeper());
        send(keeper, Signal::SIGSTOP);
        send(runner, Signal::SIGKILL);
        assert_eq!(run.ended(), 0, "tier {tier}");
        assert!(run.told().contains("interrupted: may have run"), "{}", run.told());
        assert_eq!(run.left(), "", "tier {tier}");
    }
}

/// The next supervisor waits for the processes of the cage, and ends them if nothing else does. A
/// stopped runner neither ends when its channel closes nor releases its keeper.
#[test]
fn failure_42_a_stopped_keeper_outlives_its_runner_and_its_supervisor() {
    for tier in TIERS {
        for to_the_runner in [Signal::SIGKILL, Signal::SIGSTOP] {
            let mut run = under(tier);
            let (supervisor, runner, keeper) = (run.supervisor(), run.runner(), run.keeper());
            send(supervisor, Signal::SIGSTOP);
            send(keeper, Signal::SIGSTOP);
            send(runner, to_the_runner);
            send(supervisor, Signal::SIGKILL);
            assert_eq!(run.ended(), 0, "tier {tier} {to_the_runner}");
            assert!(run.told().contains("interrupted: may have run"), "{}", run.told());
            assert_eq!(run.left(), "", "tier {tier} {to_the_runner}");
        }
    }
}

/// No process waits for the command's own process there, and the first process of its PID namespace
/// stays until then. The test requires that no other process is alive.
#[test]
fn failure_42_a_killed_runner_in_a_container_whose_first_process_reaps_nothing() {
    for tier in TIERS {
        for and_supervisor in [false, true] {
            let mut run = under_one_who_reaps_nothing(tier);
            let (supervisor, runner) = (run.supervisor(), run.runner());
            send(supervisor, Signal::SIGSTOP);
            send(runner, Signal::SIGKILL);
            let ends = if and_supervisor { Signal::SIGKILL } else { Signal::SIGCONT };
            send(supervisor, ends);
            let status = run.child.wait().unwrap();
            assert_eq!(status.code(), Some(0), "tier {tier} {ends}");
            assert!(run.told().contains("interrupted: may have run"), "{}", run.told());
            assert_eq!(run.left(), "", "tier {tier} {ends}");
        }
    }
}

/// A person's `stop` ends it as ever.
#[test]
fn failure_42_a_stopped_keeper_outlives_an_orderly_end() {
    for tier in TIERS {
        let mut run = under(tier);
        let supervisor = run.supervisor();
        send(run.keeper(), Signal::SIGSTOP);
        send(supervisor, Signal::SIGTERM);
        assert_ne!(run.ended(), 0, "a supervisor that was asked to end has no successor");
        assert_eq!(run.desk.ended(1)["outcome"]["how"], "interrupted");
    }
}

#[test]
fn failure_09_term_leaves_the_tree_of_a_command_alive() {
    for tier in TIERS {
        for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
            let mut run = under(tier);
            let began = Instant::now();
            send(run.supervisor(), signal);
            assert_ne!(run.ended(), 0, "a supervisor that was asked to end has no successor");
            assert!(began.elapsed() < Duration::from_secs(10), "{signal}: {:?}", began.elapsed());
            assert_eq!(run.desk.ended(1)["outcome"]["how"], "interrupted");
        }
    }
}

#[test]
fn failure_22_a_cancelled_command_goes_on_writing() {
    for tier in TIERS {
        let desk = Desk::new();
        let ticks = desk.project().join("ticks");
        let script = "trap '' TERM INT\n\
             setsid sh -c 'trap \"\" TERM; while :; do echo x >> ticks; sleep 0.01; done' &\n\
             sleep 300";
        let server = Server::scripted([Answer::says([call(
            "toolu_1",
            "bash",
            &json!({ "command": script }).to_string(),
        )])]);
        let arguments = ["-p", "x", "--permission-mode", "auto"];
        let mut command = desk.with_server(&server, &arguments);
        command.env("AGENTD_SANDBOX_TIER", tier);
        let mut child = command.spawn().unwrap();
        until("it writes", || ticks.exists());
        send(child.id(), Signal::SIGINT);
        assert_eq!(child.wait().unwrap().code(), Some(130), "tier {tier}");
        let length = || fs::metadata(&ticks).unwrap().len();
        let before = length();
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(length(), before, "it writes on after the run has ended");
    }
}
