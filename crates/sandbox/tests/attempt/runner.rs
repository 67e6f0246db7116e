//! A small runner: what `agentd-tool` does, told in lines.

use crate::acts;
use crate::options::parse;
use protocol::confinement::{Confinement, FilePath, GitSettings, Network, Tier};
use protocol::tool::ProtectedOrder;
use sandbox::{
    AttackOutcome, AttackResult, Cage, CommandExit, CommandOutcome, LimitExceeded, Program,
    ProgramInput, ProtectedReport, RunningCommand,
};
use std::io::{BufRead, Read};
use std::os::fd::AsRawFd;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Runs a command in a cage and tells about it.
pub fn cage(words: &[&str]) -> ExitCode {
    let asked = parse(words);
    sandbox::harden().expect("harden");
    let (cage, enforced) = match Cage::prepare(&asked.confinement, sandbox::Inherited::default()) {
        Ok(made) => made,
        Err(error) => {
            println!("uncaged: {}\nreason: {error}", error.step);
            return ExitCode::from(11);
        }
    };
    println!("tier: {:?}", enforced.tier);
    println!("abi: {}", enforced.landlock_abi);
    println!("network: {}", enforced.network);
    println!("namespaces: {}", enforced.namespaces.join(" "));
    println!("observable: {}", enforced.refusals_observable);
    for limit in &enforced.limits {
        println!("limit: {limit}");
    }
    for left_out in &enforced.left_out {
        println!("left_out: {left_out}");
    }
    for missing in &enforced.missing {
        println!("missing: {missing}");
    }
    let path = std::env::var_os("ATTEMPT_PATH");
    let program = Program {
        argv: asked.rest.iter().map(Into::into).collect(),
        env: vec![
            ("PATH".into(), path.unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into())),
            ("HOME".into(), "/nonexistent".into()),
        ],
        cwd: asked.confinement.project.to_path(),
        input: ProgramInput::Nothing,
    };
    let mut caged = match cage.spawn(program) {
        Ok(caged) => caged,
        Err(error) => {
            println!("unstarted: {}\nreason: {error}", error.step);
            return ExitCode::from(12);
        }
    };
    println!("runner: {}\ncommand: {}", std::process::id(), caged.pid());
    let out = read_all(caged.stdout().expect("stdout once"));
    let err = read_all(caged.stderr().expect("stderr once"));
    if asked.guards {
        caged.guard_while_running(ProtectedReport {
            file: None,
            say: Box::new(|found| found.iter().for_each(|name| println!("meanwhile: {name}"))),
        });
    }
    let orders = asked.orders.map(read_orders);
    if let Some(wait) = asked.die_after_ms {
        thread::sleep(Duration::from_millis(wait));
        let me = nix::unistd::getpid();
        let _ = nix::sys::signal::kill(me, nix::sys::signal::Signal::SIGKILL);
    }
    watch(&mut caged, asked.kill_after_ms, orders.as_ref());
    match caged.finish() {
        Ok(ending) => tell(&ending),
        Err(error) => println!("unfinished: {error}"),
    }
    for (name, reader) in [("out", out), ("err", err)] {
        for line in reader.join().expect("reader").lines() {
            println!("{name}: {line}");
        }
    }
    ExitCode::SUCCESS
}

/// Reads what a test says of another call.
fn read_orders(pipe: String) -> Receiver<ProtectedOrder> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let pipe = std::fs::File::open(pipe).expect("a pipe");
        for line in std::io::BufReader::new(pipe).lines().map_while(Result::ok) {
            let git = match line.as_str() {
                "writable" => GitSettings::Writable,
                _ => GitSettings::Kept,
            };
            let _ = sender.send(ProtectedOrder::OtherCall { call: 1, git });
        }
    });
    receiver
}

/// Waits for the end, or kills when it is time or a bound was passed.
fn watch(
    caged: &mut RunningCommand,
    kill_after_ms: Option<u64>,
    orders: Option<&Receiver<ProtectedOrder>>,
) {
    let deadline = kill_after_ms.map(|after| Instant::now() + Duration::from_millis(after));
    let look = || orders.map(|_| Instant::now() + Duration::from_millis(20));
    while let Some(next) = [deadline, caged.next_check(), look()].into_iter().flatten().min() {
        for order in orders.into_iter().flat_map(Receiver::try_iter) {
            caged.order(order);
            println!("order: {order:?}");
        }
        let wait = next.saturating_duration_since(Instant::now()).as_millis() + 1;
        let mut end =
            libc::pollfd { fd: caged.exit_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one structure, which outlives the call.
        #[allow(unsafe_code)]
        let ended = unsafe { libc::poll(&raw mut end, 1, i32::try_from(wait).expect("small")) };
        if ended != 0 {
            return;
        }
        if let Some(LimitExceeded { bound, used, most }) = caged.exceeded() {
            println!("exceeded: {bound:?} {used} {most}");
            return caged.kill_now();
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return caged.kill();
        }
    }
}

fn tell(ending: &CommandOutcome) {
    match ending.exit {
        CommandExit::Code(code) => println!("exit: {code}"),
        CommandExit::Signal(signal) => println!("signal: {signal}"),
    }
    println!("survivors: {}", ending.survivors);
    println!("peak_kib: {}", ending.usage.peak_kib);
    println!("cpu_ms: {}", ending.usage.cpu_ms);
    println!("uncounted: {}", ending.refusals_uncounted);
    for name in &ending.tampered {
        println!("tampered: {name}");
    }
    for refusal in &ending.refusals {
        println!(
            "refusal: {:?} {} {} {}",
            refusal.kind, refusal.syscall, refusal.errno, refusal.subject
        );
    }
}

fn read_all(mut from: std::fs::File) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Locks itself by a profile, then tries something.
pub fn enter(words: &[&str]) -> ExitCode {
    let asked = parse(words);
    sandbox::harden().expect("harden");
    match Cage::enter(&asked.confinement) {
        Ok(enforced) => {
            println!("network: {}", enforced.network);
            enforced.limits.iter().for_each(|limit| println!("limit: {limit}"));
        }
        Err(error) => {
            println!("uncaged: {}\nreason: {error}", error.step);
            return ExitCode::from(11);
        }
    }
    for attempt in asked.rest.split(|word| *word == ",") {
        if let [act, rest @ ..] = attempt {
            acts::attempt(act, rest);
        }
    }
    ExitCode::SUCCESS
}

/// What this host allows.
pub fn host() -> ExitCode {
    let root = std::env::temp_dir();
    let host = sandbox::probe_host(&root).expect("a directory to try in");
    assert_eq!(sandbox::probe_tier(&root).expect("a directory to try in"), host.tier);
    println!("tier: {:?}\nabi: {}", host.tier, host.landlock_abi);
    for step in &host.steps {
        println!("step: {:?} {} {:?}", step.tier, step.step, step.outcome);
    }
    ExitCode::SUCCESS
}

/// Every row, claimed and tried.
pub fn attempts(tier: &str, alter: fn(&mut Confinement)) -> ExitCode {
    let tier = if tier == "a" { Tier::A } else { Tier::B };
    let me = std::env::current_exe().expect("this program");
    let tried = match sandbox::self_test(&me, &["act"], &[tier], alter) {
        Ok(tried) => tried,
        Err(error) => {
            println!("failed: {error}");
            return ExitCode::FAILURE;
        }
    };
    for attempt in tried {
        let kind = match (attempt.matches_claim(), attempt.found) {
            (_, AttackOutcome::NotTested) => "untried",
            (true, _) => "agrees",
            (false, _) => "differs",
        };
        let AttackResult { row, name, claimed, found, why, .. } = attempt;
        println!("{kind}: {row} {name}, claimed {claimed:?}, found {found:?} {why}");
    }
    ExitCode::SUCCESS
}

/// A cage without one of its rules.
pub fn without(rule: &str) -> fn(&mut Confinement) {
    match rule {
        // The folder beside the project, where all that is outside lies.
        "outside" => |wanted| {
            let project = wanted.project.to_path();
            wanted.added.push(FilePath::from(project.with_file_name("outside")));
        },
        // The person's own, for writing.
        "home" => |wanted| {
            wanted.private.clear();
            wanted.overlays = None;
            wanted.added.extend(wanted.home.take());
        },
        "network" => |wanted| wanted.network = Network::On,
        "withheld" => |wanted| wanted.withheld.clear(),
        other => panic!("no such rule: {other}"),
    }
}
