//! One cgroup for each command: its limits in the kernel, attempts to leave it, and its removal.
//! The tests need a machine with the controllers memory and pids in version 2, and a directory
//! there for this user, in which this process runs: `tests/vm/run` starts one.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::unit::Unit;
use crate::support::{Desk, Run, child_of, processes, run_within, send, until};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const TIERS: [&str; 2] = ["A", "B"];
/// The machine that has such a directory may be an emulated one.
const LONG: Duration = Duration::from_secs(240);

/// Outcome of one command in a cgroup.
struct Held {
    ended: Value,
    /// The result that the model got.
    words: String,
    shown: String,
}

impl Held {
    fn outcome(&self) -> &Value {
        &self.ended["outcome"]
    }

    fn explain(&self) -> String {
        format!("{:#}\n{}\n{}", self.ended, self.words, self.shown)
    }
}

fn script(command: &str) -> Server {
    Server::scripted([
        Answer::says([call("toolu_1", "bash", &json!({ "command": command }).to_string())]),
        Answer::text("done"),
    ])
}

fn prompt(desk: &Desk, server: &Server, tier: &str, settings: &str) -> Command {
    let file = desk.home().join(".config/agentd/config.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, settings).unwrap();
    let mut agentd = desk.with_server(server, &["-p", "do it", "--permission-mode", "auto"]);
    agentd.env("AGENTD_SANDBOX_TIER", tier);
    agentd
}

fn held_in(unit: &Unit, tier: &str, settings: &str, command: &str) -> Held {
    let mut tries = 0..3;
    let (desk, server) = loop {
        let (desk, server) = (Desk::new(), script(command));
        let ran = run_within(unit.inside(&prompt(&desk, &server, tier, settings)), LONG);
        // An emulated machine may stall for longer than a client waits for a pong.
        if ran.code == 15 && ran.err.contains("timed out") && tries.next().is_some() {
            println!("once more: {}", ran.err);
            continue;
        }
        assert_eq!(ran.code, 0, "{}", ran.err);
        break (desk, server);
    };
    let ended = desk.ended(1);
    assert_eq!(ended["enforced"]["tier"], tier, "{ended:#}");
    let request = &server.requests()[1];
    let last = request.body["messages"].as_array().unwrap().last().unwrap().clone();
    let words = last["content"][0]["content"].to_string();
    let name = format!("{}.1", ended["session"].as_str().unwrap());
    let shown = run_within(desk.agentd(&["audit", "show", &name]), LONG).out;
    println!(
        "tier {tier}, {settings}: {}, cgroup {}",
        ended["outcome"], ended["enforced"]["cgroup"]
    );
    Held { ended, words, shown }
}

/// In a unit of its own, of which nothing is left but the leaf.
fn held(tier: &str, settings: &str, command: &str) -> Held {
    let unit = Unit::delegated();
    let held = held_in(&unit, tier, settings, command);
    assert_eq!(
        held.ended["enforced"]["cgroup"],
        json!(["memory", "processes"]),
        "{}",
        held.explain()
    );
    assert!(
        held.shown.contains("memory and processes enforced by its own cgroup"),
        "{}",
        held.shown
    );
    assert_eq!(unit.below(), ["agentd-own"], "calls leave none behind");
    held
}

/// Holds so much at once, in one process.
fn hog(mib: u32) -> String {
    format!("dd if=/dev/zero of=/dev/null bs={mib}M count=1 && echo kept")
}

/// So many processes that wait for the last.
fn crowd(count: u32) -> String {
    format!(
        "mkfifo hold; n=0; while [ $n -lt {count} ]; do (: < hold) & n=$((n+1)); done; sleep 1; : > hold; wait; echo all"
    )
}

/// The same, far too many; it stops by itself.
fn bomb() -> String {
    format!("({}); sleep 60", crowd(300))
}

const MEMORY: &str = "sandbox.limits.memory_bytes = 67108864";
const PROCESSES: &str = "sandbox.limits.processes = 60";

#[test]
#[ignore = "takes a delegated cgroup: tests/vm/run"]
fn a_memory_hog_is_ended_by_the_kernel() {
    for tier in TIERS {
        // Under a shell that would go on.
        let over = held(tier, MEMORY, &format!("{}; echo went on", hog(100)));
        assert_eq!(over.outcome()["how"], "out_of_memory", "{}", over.explain());
        assert!(
            over.words.contains("all 64 MiB of memory that `sandbox.limits.memory_bytes` allows"),
            "{}",
            over.words
        );
        assert!(!over.words.contains("went on"), "{}", over.words);
        let watched = "Memory is measured";
        assert!(!over.shown.contains(watched), "the kernel holds it: {}", over.shown);
        let below = held(tier, MEMORY, &hog(40));
        assert_eq!(below.outcome(), &json!({"how": "exited", "code": 0}), "{}", below.explain());
        assert!(below.words.contains("kept"), "{}", below.words);
    }
}

#[test]
#[ignore = "takes a delegated cgroup: tests/vm/run"]
fn files_in_memory_count_too() {
    let hog = format!("/dev/shm/agentd-hog-{}", std::process::id());
    for tier in TIERS {
        let fill = |mib: u32| {
            format!("dd if=/dev/zero of={hog} bs=1M count={mib}; s=$?; rm -f {hog}; exit $s")
        };
        let over = held(tier, MEMORY, &fill(100));
        assert_eq!(over.outcome()["how"], "out_of_memory", "{}", over.explain());
        let below = held(tier, MEMORY, &fill(40));
        assert_eq!(below.outcome(), &json!({"how": "exited", "code": 0}), "{}", below.explain());
    }
    // The killed command leaves its file in tier B, where /dev/shm is the machine's.
    let _ = fs::remove_file(&hog);
}

#[test]
#[ignore = "takes a delegated cgroup: tests/vm/run"]
fn a_fork_bomb_is_held_at_its_bound() {
    for tier in TIERS {
        let over = held(tier, PROCESSES, &bomb());
        assert_eq!(over.outcome()["what"], "the process limit", "{}", over.explain());
        assert!(over.words.contains("all 60 processes and threads"), "{}", over.words);
        assert!(
            !over.shown.contains("processes is counted"),
            "the kernel holds it: {}",
            over.shown
        );
        let below = held(tier, PROCESSES, &crowd(50));
        assert_eq!(below.outcome(), &json!({"how": "exited", "code": 0}), "{}", below.explain());
    }
}

#[test]
#[ignore = "takes a delegated cgroup: tests/vm/run"]
fn processor_time_is_read_from_it() {
    for tier in TIERS {
        // No parent waits for its children, so a count of processes does not find their time.
        let spin = "trap '' CHLD; while :; do sh -c 'i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done'; done";
        let over = held(tier, "sandbox.limits.cpu_seconds = 2", spin);
        assert_eq!(over.outcome()["what"], "the CPU time limit", "{}", over.explain());
        let below = held(tier, "sandbox.limits.cpu_seconds = 20", "sleep 1; echo slept");
        assert_eq!(below.outcome(), &json!({"how": "exited", "code": 0}), "{}", below.explain());
    }
}

#[test]
#[ignore = "takes a delegated cgroup: tests/vm/run"]
fn a_command_does_not_leave_its_cgroup() {
    let leave = "before=$(grep ^0:: /proc/self/cgroup)\n\
        for d in $(find /sys/fs/cgroup -type d); do\n\
          (echo 0 > $d/cgroup.procs) 2>/dev/null && echo left to $d\n\
          (echo max > $d/memory.max) 2>/dev/null && echo unbound $d\n\
          (echo 1 > $d/cgroup.kill) 2>/dev/null && echo killed $d\n\
          mkdir $d/mine 2>/dev/null && echo made $d/mine\n\
        done\n\
        [ \"$before\" = \"$(grep ^0:: /proc/self/cgroup)\" ] && echo stayed in $before";
    for tier in TIERS {
        let tried = held(tier, MEMORY, leave);
        assert_eq!(tried.outcome(), &json!({"how": "exited", "code": 0}), "{}", tried.explain());
        assert!(tried.words.contains("stayed in 0::"), "{}", tried.words);
        assert!(tried.words.contains("agentd-call-"), "it was in one: {}", tried.words);
        for escape in ["left to", "unbound", "killed /", "made /"] {
            assert!(!tried.words.contains(escape), "{escape}: {}", tried.words);
        }
    }
    // The control: the same without a cage, in a unit that is this user's.
    let unit = Unit::delegated();
    let mut free = Command::new("sh");
    let here = unit.0.display();
    let free = free.arg("-c").arg(format!(
        "mkdir {here}/x && echo $$ > {here}/x/cgroup.procs && grep ^0:: /proc/self/cgroup"
    ));
    let said = free.output().unwrap();
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.contains("/x\n"), "{said}");
}

/// A run whose command has left its session, ignores TERM, and stays.
fn staying(unit: &Unit, desk: &Desk, tier: &str, mark: &str) -> (Child, Server) {
    let command = format!(
        "setsid sh -c 'trap \"\" TERM HUP INT; (sleep {mark} &); sleep {mark}' & sleep 0.3; touch begun; sleep {mark}"
    );
    let server = script(&command);
    let mut agentd = unit.inside(&prompt(desk, &server, tier, ""));
    let child = agentd.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = desk.project().join("begun");
    for _ in 0..1800 {
        if begun.exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(begun.exists(), "the command began");
    assert!(knowing(mark).len() >= 3, "the control: {:?}", knowing(mark));
    assert_eq!(unit.calls().len(), 1);
    (child, server)
}

/// The living processes with this in their command line.
fn knowing(mark: &str) -> Vec<u32> {
    let known = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(mark)
    };
    processes().into_iter().map(|process| process.pid).filter(known).collect()
}

#[test]
#[ignore = "takes a delegated cgroup: tests/vm/run"]
fn nothing_survives_the_runner_nor_runner_and_supervisor_together() {
    for (number, tier) in TIERS.into_iter().enumerate() {
        let (unit, desk) = (Unit::delegated(), Desk::new());
        let mark = format!("3601.{}{number}", std::process::id());
        let (mut child, _server) = staying(&unit, &desk, tier, &mark);
        let supervisor = child_of(child.id(), "agentd-supervisor").unwrap();
        let runner = child_of(supervisor, "agentd-tool").unwrap();
        send(runner, Signal::SIGKILL);
        until("nothing of the command lives", || knowing(&mark).is_empty());
        child.wait().unwrap();
        assert_eq!(unit.calls(), Vec::<String>::new(), "tier {tier}: the supervisor removed it");
        println!("the runner killed, tier {tier}: 0 left");

        let (desk, mark) = (Desk::new(), format!("3602.{}{number}", std::process::id()));
        let (mut child, _server) = staying(&unit, &desk, tier, &mark);
        let supervisor = child_of(child.id(), "agentd-supervisor").unwrap();
        let runner = child_of(supervisor, "agentd-tool").unwrap();
        send(child.id(), Signal::SIGKILL);
        send(supervisor, Signal::SIGSTOP);
        send(runner, Signal::SIGKILL);
        send(supervisor, Signal::SIGKILL);
        child.wait().unwrap();
        until("nothing of the command lives", || knowing(&mark).is_empty());
        assert_eq!(unit.calls().len(), 1, "no process was left to remove it");
        held_in(&unit, tier, "", "true");
        assert_eq!(unit.below(), ["agentd-own"], "the next one did");
        println!("both killed, tier {tier}: 0 left");
    }
}

#[test]
#[ignore = "takes a delegated cgroup: tests/vm/run"]
fn what_a_killed_supervisor_left_is_ended_and_nothing_else() {
    let unit = Unit::delegated();
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let start = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().to_owned();
    let me = std::process::id();
    // A runner that is gone: our process ID with another start time. A live one: this process. And
    // a foreign line.
    let names =
        [format!("agentd-call-{me}-1"), format!("agentd-call-{me}-{start}"), "mine".to_owned()];
    let mut sleepers = names.clone().map(|name| {
        let place = unit.0.join(name);
        fs::create_dir(&place).unwrap();
        let born = "echo $$ > \"$0/cgroup.procs\" && exec sleep 300";
        Command::new("sh").args(["-c", born]).arg(&place).spawn().unwrap()
    });
    for (name, sleeper) in names.iter().zip(&sleepers) {
        let inside = || fs::read_to_string(unit.0.join(name).join("cgroup.procs")).unwrap();
        until("it is inside", || inside().contains(&sleeper.id().to_string()));
    }
    held_in(&unit, "B", "", "true");
    let ended = |child: &mut Child| child.try_wait().unwrap().is_some();
    assert!(ended(&mut sleepers[0]), "what a dead runner left");
    assert!(!unit.0.join(&names[0]).exists());
    for at in [1, 2] {
        assert!(!ended(&mut sleepers[at]), "{} belongs to another process", names[at]);
        sleepers[at].kill().unwrap();
        sleepers[at].wait().unwrap();
    }
}

#[test]
#[ignore = "takes a delegated cgroup: tests/vm/run"]
fn one_controller_alone_is_used_and_the_other_bound_is_watched() {
    let whole = Unit::delegated();
    fs::write(whole.0.join("cgroup.subtree_control"), "+pids").unwrap();
    let part = Unit(whole.0.join("part"));
    fs::create_dir(&part.0).unwrap();
    part.mark();
    let hog = "dd if=/dev/zero of=/dev/null bs=100M count=100000";
    let over = held_in(&part, "A", MEMORY, hog);
    assert_eq!(over.ended["enforced"]["cgroup"], json!(["processes"]), "{}", over.explain());
    assert_eq!(over.outcome()["how"], "out_of_memory", "{}", over.explain());
    assert!(over.words.contains("more than the 64"), "it was counted: {}", over.words);
    let doctor = doctor(&part, "exec \"$@\"");
    assert!(
        doctor
            .out
            .contains("the kernel enforces its processes; counted ten times a second: its memory"),
        "{}",
        doctor.out
    );
}

/// `agentd doctor` in a shell in that unit.
fn doctor(unit: &Unit, shell: &str) -> Run {
    let desk = Desk::new();
    let agentd = desk.agentd(&["doctor"]);
    let mut command = Command::new("sh");
    command.args(["-c", shell, "sh"]).arg(agentd.get_program()).args(agentd.get_args());
    command.env_clear().envs(agentd.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(desk.project());
    run_within(unit.inside(&command), LONG)
}

#[test]
#[ignore = "takes a delegated cgroup: tests/vm/run"]
fn doctor_and_the_record_say_what_is_held_and_what_is_not() {
    let unit = Unit::delegated();
    let said = doctor(&unit, "exec \"$@\"").out;
    assert!(said.contains("the kernel enforces its memory and processes"), "{said}");
    assert_eq!(unit.below(), Vec::<String>::new(), "a look changes nothing");
    println!("{}", said.lines().find(|line| line.contains("cgroup")).unwrap());

    let said = doctor(&unit, "\"$@\"; true").out;
    assert!(said.contains("other programs run in"), "{said}");
    assert!(said.contains("Delegate=yes"), "{said}");

    // It belongs to this user, but was not delegated: bounds are enforced by watching, as on other
    // machines.
    let unit = Unit::new();
    let said = doctor(&unit, "exec \"$@\"").out;
    assert!(said.contains("was not delegated; their memory and processes are counted"), "{said}");
    let over = held_in(&unit, "A", PROCESSES, &bomb());
    assert_eq!(over.ended["enforced"].get("cgroup"), None, "{}", over.explain());
    assert_eq!(over.outcome()["what"], "the process limit", "{}", over.explain());
    assert_eq!(unit.below(), Vec::<String>::new(), "nothing was made in it");
}

#[test]
#[ignore = "takes a delegated cgroup: tests/vm/run"]
fn a_daemon_and_its_client_go_into_the_leaf() {
    let (unit, desk) = (Unit::delegated(), Desk::new());
    let started = run_daemon(&unit, &desk, &["daemon", "start"]);
    assert!(started, "it starts");
    let own = fs::read_to_string(unit.0.join("agentd-own/cgroup.procs")).unwrap();
    assert!(own.lines().count() >= 1, "{own}");
    assert_eq!(fs::read_to_string(unit.0.join("cgroup.procs")).unwrap(), "");
    let status = run_within(desk.agentd(&["daemon", "status"]), LONG).out;
    assert!(status.contains("a cgroup for each command"), "{status}");
    assert!(desk.agentd(&["daemon", "stop"]).status().unwrap().success());
}

fn run_daemon(unit: &Unit, desk: &Desk, arguments: &[&str]) -> bool {
    unit.inside(&desk.agentd(arguments)).status().unwrap().success()
}
