//! What runs and daemons leave to a parent that waits for its own child alone, as the first process of a container
//! without init does: nothing, in no state. A supervisor that is killed is the exception: its processes end, but
//! nobody waits for them. The first process of a cage's namespace then stays too, as it waits for that.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::{Desk, needs, processes, send, until, wrote};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const SCRIPT: &str = "AGENTD_TEST_SCRIPT";
/// What the model says follows from the prompt.
const THINK: &str = "prompt-think";
const CALL: &str = "prompt-call";
const ECHO: &str = "prompt-echo";
const STOPPED: &str = "prompt-stopped";
const ENDED_THINKING: &str = "prompt-ended-thinking";
const ENDED_CALLING: &str = "prompt-ended-calling";

/// A process that is left: its name, and whether it has ended, or waits at its end for others.
type Left = (String, bool);

/// The flag of a process that runs no code any more.
const EXITING: u64 = 0x4;

/// A desk, a server that acts by the prompt, and how often it has done so with a runner in reserve.
struct Stage {
    desk: Arc<Desk>,
    server: Server,
    reserves: Arc<AtomicUsize>,
}

impl Stage {
    /// A supervisor is sent `signal` in the run of a prompt that says so.
    fn new(signal: Signal) -> Self {
        for program in ["python3", "setsid"] {
            needs(program);
        }
        let desk = Arc::new(Desk::new());
        desk.write("server.py", include_str!("../data/mcp_server.py"));
        let config = desk.outside().join("with-server/agentd");
        fs::create_dir_all(&config).unwrap();
        let lines = "[mcp.test]\ncommand = [\"python3\", \"server.py\"]\n";
        fs::write(config.join("config.toml"), lines).unwrap();
        let reserves = Arc::new(AtomicUsize::new(0));
        let (place, seen, mut is_ended) = (Arc::clone(&desk), Arc::clone(&reserves), false);
        let server = Server::answering(move |number, request| {
            let said = request["messages"].to_string();
            let id = format!("toolu_{number}");
            let bash =
                |command: &str| call(&id, "bash", &json!({ "command": command }).to_string());
            let has = |prompt: &str| said.contains(prompt) && !said.contains("tool_result");
            let project = place.project();
            if has(THINK) || (has(ENDED_THINKING) && !is_ended) {
                until("a runner in reserve", || of(&project, "agentd-reserve").is_some());
                seen.fetch_add(1, Ordering::Relaxed);
                if has(ENDED_THINKING) {
                    is_ended = true;
                    send(of(&project, "agentd-supervisor").unwrap(), signal);
                }
            } else if has(CALL) {
                return Answer::says([bash("(sleep 100 &) ; true")]);
            } else if has(STOPPED) {
                return Answer::says([bash("echo x > began; sleep 100")]);
            } else if has(ECHO) {
                let text = json!({ "text": "x" }).to_string();
                return Answer::says([call(&id, "mcp__test__echo", &text)]);
            } else if has(ENDED_CALLING) {
                std::thread::spawn(move || {
                    until("the call runs", || wrote(&project.join("began")));
                    send(of(&project, "agentd-supervisor").unwrap(), signal);
                });
                return Answer::says([bash("echo x > began; sleep 100")]);
            }
            Answer::text("Done.")
        });
        Self { desk, server, reserves }
    }

    /// Runs this script of a shell in the project, and returns what it left at its end, and 5 s later
    /// at most.
    fn left_by(&self, script: &str, variables: &[(&str, &str)]) -> (Vec<Left>, Vec<Left>) {
        let inner = self.desk.with_server(&self.server, &[]);
        let mut parent = Command::new(std::env::current_exe().unwrap());
        let test = concat!(module_path!(), "::in_a_parent_that_waits_for_its_own_child_alone");
        let test = test.split_once("::").unwrap().1;
        parent
            .args(["--exact", test, "--ignored", "--nocapture"])
            .current_dir(self.desk.project())
            .env_clear()
            .envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .env("AGENTD", env!("CARGO_BIN_EXE_agentd"))
            .env("WITH_SERVER", self.desk.outside().join("with-server"))
            .env(SCRIPT, script)
            .envs(variables.iter().copied());
        let ran = parent.output().unwrap();
        let out = String::from_utf8(ran.stdout).unwrap();
        assert!(ran.status.success(), "{out}{}", String::from_utf8_lossy(&ran.stderr));
        let lists = |word: &str| -> Vec<Left> {
            let line = out.lines().find_map(|line| line.strip_prefix(word)).unwrap();
            serde_json::from_str(line).unwrap()
        };
        (lists("at once "), lists("later "))
    }
}

/// The process of that name in the session of a shell that runs in this project.
fn of(project: &Path, name: &str) -> Option<u32> {
    let is_here = |session: u32| {
        fs::read_link(format!("/proc/{session}/cwd")).is_ok_and(|cwd| cwd == project)
    };
    let short = &name[..name.len().min(15)];
    let found = processes().into_iter().find(|it| it.name == short && is_here(it.session));
    found.map(|it| it.pid)
}

/// The children of this process, the dead ones too.
fn children() -> Vec<(Pid, Left)> {
    let own = Pid::this().to_string();
    let stats = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let path = entry.ok()?.path();
        let pid = path.file_name()?.to_str()?.parse().ok()?;
        let stat = fs::read_to_string(path.join("stat")).ok()?;
        let (head, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let has_ended = fields[6].parse::<u64>().ok()? & EXITING != 0;
        let name = head.split_once('(')?.1.to_owned();
        (fields[1] == own).then_some((Pid::from_raw(pid), (name, has_ended)))
    });
    stats.collect()
}

#[test]
#[ignore = "a part of the tests below"]
fn in_a_parent_that_waits_for_its_own_child_alone() {
    // `--ignored` alone asks for it too.
    let Ok(script) = std::env::var(SCRIPT) else { return };
    nix::sys::prctl::set_child_subreaper(true).unwrap();
    // A session of its own, by which the server finds the processes of the run.
    let ran = Command::new("setsid").args(["sh", "-c", &script]).status().unwrap();
    let left = || -> Vec<Left> { children().into_iter().map(|(_, left)| left).collect() };
    let at_once = left();
    let deadline = Instant::now() + Duration::from_secs(5);
    while left().iter().any(|(_, has_ended)| !has_ended) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    println!("\nat once {}\nlater {}", json!(at_once), json!(left()));
    for (child, _) in children() {
        let _ = kill(child, Signal::SIGKILL);
    }
    while waitpid(None, None).is_ok() {}
    assert!(ran.success(), "{ran}");
}

/// 21 runs: one ends with a runner in reserve, one has a call, one a server.
const RUNS: &str = r#"
for run in 1 2 3 4 5 6 7; do
    "$AGENTD" -p prompt-think --permission-mode auto || exit 1
    "$AGENTD" -p prompt-call --permission-mode auto || exit 1
    XDG_CONFIG_HOME="$WITH_SERVER" "$AGENTD" -p prompt-echo --permission-mode auto || exit 1
done"#;

fn no_run_leaves_a_process(variables: &[(&str, &str)]) {
    let stage = Stage::new(Signal::SIGTERM);
    let (at_once, _) = stage.left_by(RUNS, variables);
    assert_eq!(at_once, [], "21 runs left them");
    assert_eq!(stage.reserves.load(Ordering::Relaxed), 7);
    let tools = stage.desk.audit().into_iter().filter(|it| it["event"] == "ended");
    let tools: Vec<Value> = tools.map(|it| it["tool"].clone()).collect();
    let count = |tool: &str| tools.iter().filter(|it| *it == tool).count();
    assert_eq!((count("bash"), count("mcp"), count("mcp_server")), (7, 7, 7), "{tools:?}");
}

#[test]
fn a_run_leaves_no_process_to_a_parent_that_waits_for_none() {
    no_run_leaves_a_process(&[]);
}

#[test]
fn in_tier_b_a_run_leaves_no_process_either() {
    no_run_leaves_a_process(&[("AGENTD_SANDBOX_TIER", "B")]);
}

#[test]
fn a_supervisor_that_is_asked_to_end_leaves_no_process() {
    let stage = Stage::new(Signal::SIGTERM);
    let script = "for run in 1 2 3; do rm -f began
        \"$AGENTD\" -p prompt-ended-calling --permission-mode auto && exit 1
    done
    \"$AGENTD\" -p prompt-ended-thinking --permission-mode auto && exit 1
    true";
    let (at_once, _) = stage.left_by(script, &[]);
    assert_eq!(at_once, []);
    assert_eq!(stage.reserves.load(Ordering::Relaxed), 1);
}

/// A daemon's starter ends before it, so the daemon itself is its parent's to wait for, and nothing else is.
#[test]
fn a_daemon_leaves_itself_alone() {
    let stage = Stage::new(Signal::SIGTERM);
    let script = "set -e
    \"$AGENTD\" daemon start
    daemon=$(\"$AGENTD\" daemon status --json | sed 's/.*\"pid\": *\\([0-9]*\\).*/\\1/')
    XDG_CONFIG_HOME=\"$WITH_SERVER\" \"$AGENTD\" -p prompt-echo --permission-mode auto
    \"$AGENTD\" -p 'prompt-stopped' --permission-mode auto & client=$!
    until [ -s began ]; do sleep 0.01; done
    for session in $(ls \"$XDG_STATE_HOME/agentd/sessions\"); do \"$AGENTD\" stop \"$session\" || true; done
    ! wait $client
    for child in $(cat /proc/$daemon/task/*/children); do
        case $(cat /proc/$child/comm) in agentd-broker) ;; *) echo \"left: $child\" >&2; exit 1 ;; esac
    done
    \"$AGENTD\" daemon stop --force";
    let (_, later) = stage.left_by(script, &[]);
    assert_eq!(later, [("agentd-supervis".to_owned(), true)]);
}

#[test]
fn of_a_killed_supervisor_no_process_lives() {
    let stage = Stage::new(Signal::SIGKILL);
    let script = "\"$AGENTD\" -p prompt-ended-thinking --permission-mode auto";
    let (_, later) = stage.left_by(script, &[]);
    assert!(!later.is_empty() && later.iter().all(|(_, has_ended)| *has_ended), "{later:?}");
    assert_eq!(stage.reserves.load(Ordering::Relaxed), 1);
}
