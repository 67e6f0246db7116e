//! The soak: processes of running sessions are killed at random, supervisor and client included. In
//! the end no data is lost, no effect is repeated and no process is left.
//!
//! ```sh
//! cargo test --test crash a_thousand_kills -- --ignored --nocapture
//! ```
//!
//! Several projects at once, each with one session after another, each session of three turns with
//! two commands a turn. Each kind of process is killed as often as the others, however often a turn
//! has lost it. A run goes on until it is done, unless its client was killed or three deaths without
//! progress ended it; then the session is resumed by its id. Each run says which of these it was. The limits on
//! restarts are raised by configuration; the broker's, which no configuration reaches, are not met
//! since it ends with its supervisor. `SOAK_SEED` repeats the choices, not the moments. With
//! `SOAK_SLOW_SYNC` each sync of a supervisor takes so many milliseconds longer, as on a disk that
//! spins: strace holds it back.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::dice::Dice;
use crate::support::{Desk, Process, needs, processes};
use journal::{CallProgress, JournalEntry, JournalRecord, Outcome};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Projects at once.
const LANES: usize = 3;
const TURNS: usize = 3;
const CALLS_A_TURN: usize = 2;
/// Longest pause between two kills in one project, in milliseconds: a turn takes longer, and most
/// restarts take less.
const PAUSE: usize = 300;
/// For a turn that is not disturbed any more, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn forty_kills() {
    soak(40);
}

#[test]
#[ignore = "takes some minutes"]
fn a_thousand_kills() {
    soak(1000);
}

/// How long strace may take to end after the processes that it holds back.
const TRACER_ALONE: Duration = Duration::from_secs(1);

/// Figures over all projects.
#[derive(Default)]
struct Tally {
    /// Kills still to come.
    left: AtomicUsize,
    sessions: AtomicUsize,
    interrupted: AtomicUsize,
    lost: Mutex<Vec<String>>,
    repeated: Mutex<Vec<String>>,
    running: Mutex<Vec<String>>,
    /// Runs that ended without saying how.
    unfinished: Mutex<Vec<String>>,
    runs: AtomicUsize,
    /// Runs that deaths without progress ended.
    given_up: AtomicUsize,
    /// Kills by the name of the process.
    killed: Mutex<BTreeMap<String, usize>>,
}

fn soak(kills: usize) {
    let mut dice = Dice::seeded("SOAK_SEED");
    let tally = Tally { left: AtomicUsize::new(kills), ..Tally::default() };
    std::thread::scope(|scope| {
        for number in 0..LANES {
            let (seed, tally) = (dice.roll(), &tally);
            scope.spawn(move || Lane::new(number).run(Dice::of(seed), tally));
        }
    });
    let Tally { left, sessions, interrupted, lost, repeated, running, .. } = tally;
    let (runs, given_up) = (tally.runs.into_inner(), tally.given_up.into_inner());
    let unfinished = tally.unfinished.into_inner().unwrap();
    let (lost, repeated) = (lost.into_inner().unwrap(), repeated.into_inner().unwrap());
    let running = running.into_inner().unwrap();
    for what in lost.iter().chain(&repeated).chain(&running).chain(&unfinished) {
        println!("{what}");
    }
    println!("killed {:?}", tally.killed.into_inner().unwrap());
    println!("runs {runs}, of which {given_up} named the process whose deaths ended them");
    println!("sessions {}, calls interrupted {}", sessions.into_inner(), interrupted.into_inner());
    println!(
        "kills {}, lost {}, repeated {}, left running {}, unfinished {}",
        kills - left.into_inner(),
        lost.len(),
        repeated.len(),
        running.len(),
        unfinished.len()
    );
    let faults = [lost, repeated, running, unfinished].concat();
    assert!(faults.is_empty(), "{dice}");
}

/// A kill that was done.
#[derive(Debug, Clone)]
struct Kill {
    at: u64,
    name: String,
}

/// One project and its sessions.
struct Lane {
    desk: Desk,
    server: Server,
    /// In each command's text, so that it is found among all processes.
    mark: String,
    kills: Arc<Mutex<Vec<Kill>>>,
}

impl Lane {
    fn new(number: usize) -> Self {
        let desk = Desk::new().with_endless_restarts();
        let mark = format!("soak-{}-{number}", std::process::id());
        let marked = mark.clone();
        let server = Server::answering(move |_, body| answer(body, &marked));
        Self { desk, server, mark, kills: Arc::default() }
    }

    fn run(&self, mut dice: Dice, tally: &Tally) {
        while tally.left.load(Ordering::Relaxed) > 0 {
            let _ = fs::remove_file(self.desk.project().join("effects"));
            self.kills.lock().unwrap().clear();
            let session = self.session(&mut dice, tally);
            tally.sessions.fetch_add(1, Ordering::Relaxed);
            match session {
                Ok(session) => self.judge(&session, tally),
                Err(why) => tally.lost.lock().unwrap().push(why),
            }
        }
        let verified = crate::support::run(self.desk.agentd(&["audit", "verify"]));
        if verified.code != 0 {
            let what = format!("audit verify: {}{}", verified.out, verified.err);
            tally.lost.lock().unwrap().push(what);
        }
    }

    /// All turns of one session, each asked for until it is done; the session's id.
    fn session(&self, dice: &mut Dice, tally: &Tally) -> Result<String, String> {
        let before = self.sessions();
        // One whose supervisor died while it was made is not there to be resumed.
        let began = |id: &String| !before.contains(id) && self.entries(id).is_ok();
        let own = || self.sessions().into_iter().find(began);
        for turn in 1..=TURNS {
            let mut prompt = format!("turn {turn}");
            let until = Instant::now() + PATIENCE * 3;
            loop {
                let session = own();
                let mut arguments = vec!["-p", &prompt, "--permission-mode", "auto"];
                arguments.extend(session.iter().flat_map(|id| ["--resume", id]));
                let (out, err) = self.one(&arguments, dice, tally)?;
                if out.contains(&format!("Done {turn}.")) {
                    break;
                }
                if Instant::now() > until {
                    return Err(format!("turn {turn} did not end: {err}"));
                }
                // Where the words are on disk they need not be said again.
                let said = own().is_some_and(|id| self.says(&id, &format!("turn {turn}")));
                prompt = if said { "go on".to_owned() } else { format!("turn {turn}") };
            }
        }
        own().ok_or_else(|| "the session is not on disk".to_owned())
    }

    /// One run of the client, disturbed while kills are left.
    fn one(
        &self,
        arguments: &[&str],
        dice: &mut Dice,
        tally: &Tally,
    ) -> Result<(String, String), String> {
        let mut command = slowed(self.desk.with_server(&self.server, arguments));
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let leader = child.id();
        let over = AtomicBool::new(false);
        let ended = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let pause = 10 + dice.below(PAUSE);
                    std::thread::sleep(Duration::from_millis(pause.try_into().unwrap()));
                    self.strike(leader, dice, tally, &over);
                }
            });
            let ended = within(child, PATIENCE * 2);
            over.store(true, Ordering::Relaxed);
            ended
        });
        if let Ok((code, out, err)) = &ended {
            tally.runs.fetch_add(1, Ordering::Relaxed);
            match code {
                // Done; the client was killed; a supervisor of the run before it still ends.
                Some(0) | None | Some(75) => {}
                // Three deaths without progress, or a supervisor that died before it had a session.
                Some(15 | 17) => {
                    tally.given_up.fetch_add(1, Ordering::Relaxed);
                }
                Some(code) => {
                    let what = format!("a run ended with {code}: {out}{err}");
                    tally.unfinished.lock().unwrap().push(what);
                }
            }
        }
        let left = self.left(leader);
        if !left.is_empty() {
            tally.running.lock().unwrap().push(format!("left running: {left:?}"));
        }
        ended.map(|(_, out, err)| (out, err))
    }

    /// Kills one process of that run, of a kind chosen among all, once there is one.
    fn strike(&self, leader: u32, dice: &mut Dice, tally: &Tally, over: &AtomicBool) {
        let kind = KINDS[dice.below(KINDS.len())];
        let chosen = loop {
            if over.load(Ordering::Relaxed) {
                return;
            }
            let mut alive = self.alive(leader);
            alive.retain(|process| kind.contains(&process.name.as_str()));
            match alive.is_empty() {
                false => break alive.swap_remove(dice.below(alive.len())),
                true => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        let one = |left: usize| left.checked_sub(1);
        if tally.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one).is_err() {
            return;
        }
        let at = now();
        match kill(Pid::from_raw(chosen.pid.try_into().unwrap()), Signal::SIGKILL) {
            Ok(()) => {
                *tally.killed.lock().unwrap().entry(chosen.name.clone()).or_default() += 1;
                self.kills.lock().unwrap().push(Kill { at, name: chosen.name.clone() });
            }
            // It had just ended.
            Err(_) => drop(tally.left.fetch_add(1, Ordering::Relaxed)),
        }
    }

    /// The processes of that run: its own by their terminal session, commands by their text.
    fn alive(&self, leader: u32) -> Vec<Process> {
        let ours = |process: &Process| {
            let line = fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
            process.session == leader && process.name.starts_with("agentd")
                || String::from_utf8_lossy(&line).contains(&self.mark)
        };
        processes().into_iter().filter(ours).collect()
    }

    /// Processes that are still alive a moment after the end of a run.
    fn left(&self, leader: u32) -> Vec<Process> {
        let until = Instant::now() + Duration::from_secs(15);
        loop {
            let left = self.alive(leader);
            if left.is_empty() || Instant::now() > until {
                return left;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn sessions(&self) -> Vec<String> {
        let found = fs::read_dir(self.desk.state().join("sessions")).into_iter().flatten();
        found.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }

    fn entries(&self, session: &str) -> Result<Vec<JournalEntry>, String> {
        let entries = journal::read(&self.desk.state().join("sessions").join(session));
        entries.and_then(Iterator::collect).map_err(|error| format!("session {session}: {error}"))
    }

    fn says(&self, session: &str, prompt: &str) -> bool {
        let entries = self.entries(session).unwrap_or_default();
        let said = |entry: &JournalEntry| matches!(&entry.record, JournalRecord::Prompt { text, .. } if text == prompt);
        entries.iter().any(said)
    }

    /// Holds the session's journal and its effects against each other, and against the kills.
    fn judge(&self, session: &str, tally: &Tally) {
        let (mut lost, mut repeated, mut interrupted) = (Vec::new(), Vec::new(), 0);
        let entries = self.entries(session).unwrap_or_else(|why| {
            lost.push(why);
            Vec::new()
        });
        let effects = fs::read_to_string(self.desk.project().join("effects")).unwrap_or_default();
        let done = |word: String| effects.lines().filter(|line| *line == word).count();
        for turn in 1..=TURNS {
            let words = format!("turn {turn}");
            let said = entries.iter().filter(
                |entry| matches!(&entry.record, JournalRecord::Prompt { text, .. } if *text == words),
            );
            match said.count() {
                0 => lost.push(format!("{session}: the prompt \"{words}\"")),
                1 => {}
                count => repeated.push(format!("{session}: \"{words}\" {count} times")),
            }
        }
        for number in 0..TURNS * CALLS_A_TURN {
            let (began, ended) = (done(format!("began {number}")), done(format!("ended {number}")));
            if began > 1 || ended > 1 {
                repeated.push(format!("{session}: command {number} ran {began} times"));
            }
            match self.course(number, &entries) {
                Ok(End::Well) if began == 1 && ended == 1 => {}
                Ok(End::Cut) if ended <= began => interrupted += 1,
                Ok(End::Never) if began == 0 => interrupted += 1,
                Ok(end) => lost.push(format!(
                    "{session}: command {number} ended {end:?}, began {began}, ended {ended}"
                )),
                Err(why) => lost.push(format!("{session}: command {number} {why}")),
            }
        }
        tally.interrupted.fetch_add(interrupted, Ordering::Relaxed);
        tally.lost.lock().unwrap().extend(lost);
        tally.repeated.lock().unwrap().extend(repeated);
    }

    /// How a command ended, by the journal: once, as the undisturbed one would have or by a kill
    /// that was done meanwhile.
    fn course(&self, number: usize, entries: &[JournalEntry]) -> Result<End, String> {
        // Calls are numbered from 1 in the order of the model's words.
        let own = u32::try_from(number + 1).unwrap();
        let (mut proposed, mut ends) = (Vec::new(), Vec::new());
        for entry in entries {
            match &entry.record {
                JournalRecord::Proposed { call, input, .. } if *call == own => {
                    if !input.contains(&format!("began {number} ")) {
                        return Err(format!("is not what was asked for: {input}"));
                    }
                    proposed.push(entry.time);
                }
                JournalRecord::Result { call, outcome, .. } if *call == own => {
                    let (end, by): (_, &[&str]) = match outcome {
                        Outcome::Exited { code: 0 } => (End::Well, &[]),
                        Outcome::Interrupted => (End::Cut, ENDERS),
                        Outcome::Signalled { .. } => (End::Cut, COMMAND_ENDERS),
                        // The runner died twice, or one of its helpers died while it built the
                        // cage.
                        Outcome::Crashed | Outcome::Confined { .. } => {
                            (End::Never, &["agentd-tool"])
                        }
                        other => return Err(format!("came to {other:?}")),
                    };
                    ends.push((entry.time, end, by));
                }
                JournalRecord::Interrupted { call, progress, .. } if *call == own => {
                    let end = match progress {
                        CallProgress::MayHaveRun => End::Cut,
                        CallProgress::NeverStarted => End::Never,
                    };
                    ends.push((entry.time, end, ENDERS));
                }
                _ => {}
            }
        }
        let (&[began], Some((over, end, by)), []) =
            (proposed.as_slice(), ends.pop(), ends.as_slice())
        else {
            return Err(format!(
                "was proposed {} times and has other than one end",
                proposed.len()
            ));
        };
        let kills = self.kills.lock().unwrap();
        // A call may be proposed while processes that were killed before it still end.
        let matched = kills.iter().any(|kill| {
            (began.saturating_sub(ENDING_MS)..=over + 1).contains(&kill.at)
                && by.iter().any(|name| kill.name == *name)
        });
        match by.is_empty() || matched {
            true => Ok(end),
            false => Err(format!("ended {end:?} and none of {by:?} was killed: {kills:?}")),
        }
    }
}

/// The processes of a run, by the names that the kernel gives them, each as likely to be killed as the
/// others.
const KINDS: [&[&str]; 8] = [
    &["agentd"],
    &["agentd-supervis"],
    &["agentd-session"],
    &["agentd-provider"],
    &["agentd-broker"],
    &["agentd-store"],
    &["agentd-tool"],
    &["bash", "sh"],
];

/// Whose deaths cut a call short. The kernel keeps 15 characters of a name.
const ENDERS: &[&str] = &["agentd-tool", "agentd-supervis", "agentd", "agentd-session"];

/// Whose deaths end a command by a signal: its own, that of the first process of its namespace,
/// which has the runner's name, and of the client, with which all ends in order.
const COMMAND_ENDERS: &[&str] = &["sh", "bash", "agentd-tool", "agentd"];
/// How long an end in order may take, in milliseconds.
const ENDING_MS: u64 = 3000;

#[derive(Debug)]
enum End {
    Well,
    /// It may have run.
    Cut,
    Never,
}

/// Answers with the next command of the newest turn, or with the end. The content of the
/// conversation decides, so a repeated request gets the same answer.
fn answer(body: &Value, mark: &str) -> Answer {
    let messages = body["messages"].to_string();
    let number = messages.matches("\"tool_result\"").count();
    let turn = (1..=TURNS).rev().find(|turn| messages.contains(&format!("turn {turn}")));
    let turn = turn.unwrap_or(1);
    if number >= turn * CALLS_A_TURN {
        return Answer::text(&format!("Done {turn}."));
    }
    let command = format!(
        "echo began {number} >> effects; sleep 0.1; echo ended {number} >> effects; true {mark}"
    );
    // In pieces, so that a kill meets it in the middle.
    let said = call(&format!("toolu_{number}"), "bash", &json!({ "command": command }).to_string());
    Answer::says([said]).in_pieces_of(200).paced(Duration::from_millis(5))
}

/// The same run with slower syncs, where they are wanted.
fn slowed(command: Command) -> Command {
    let Some(longer) = std::env::var_os("SOAK_SLOW_SYNC") else { return command };
    let longer: u32 = longer.to_str().unwrap().parse().expect("SOAK_SLOW_SYNC in milliseconds");
    needs("strace");
    let inject = format!("inject=fsync,fdatasync:delay_exit={}", longer * 1000);
    // Its processes have its terminal session, by which they are found.
    let mut slowed = Command::new(command.get_program());
    slowed
        .args(["strace", "-f", "--seccomp-bpf", "-qqq", "-o", "/dev/null"])
        .args(["-e", "trace=fsync,fdatasync", "-e", &inject, "-e", "signal=none"])
        .args(command.get_args())
        .current_dir(command.get_current_dir().unwrap())
        .env_clear()
        .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .stdin(Stdio::null());
    slowed
}

/// A client's end: its exit code, unless a signal ended it, and its output.
type Ended = (Option<i32>, String, String);

fn within(mut child: Child, limit: Duration) -> Result<Ended, String> {
    let until = Instant::now() + limit;
    let mut next_look = Instant::now() + TRACER_ALONE;
    while matches!(child.try_wait(), Ok(None)) {
        let now = Instant::now();
        if now > until {
            let alive = of_run(child.id());
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("a client did not end within {limit:?}: {alive:?}"));
        }
        // strace can miss the end of a process that is killed while it is held back, and then waits for
        // it for ever. The run itself has ended.
        if now > next_look {
            let is_alone = || {
                let alive = of_run(child.id());
                !alive.is_empty() && alive.iter().all(|process| process.name == "strace")
            };
            if is_alone() {
                std::thread::sleep(TRACER_ALONE);
                if is_alone() {
                    let _ = child.kill();
                }
            }
            next_look = Instant::now() + TRACER_ALONE;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((output.status.code(), text(&output.stdout), text(&output.stderr)))
}

/// The processes of a run, strace among them.
fn of_run(leader: u32) -> Vec<Process> {
    let all = processes().into_iter();
    all.filter(|process| process.session == leader || process.pid == leader).collect()
}

/// Milliseconds of Unix time, as the journal has them.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis().try_into().unwrap()
}
