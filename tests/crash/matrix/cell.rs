//! One cell: a run of two calls, one fault in the middle of it, and the checks at the end.

use super::hooks::Hooks;
use super::table::{Cell, Fault, Loss, Target};
use crate::support::anthropic::{Answer, Server, call, text};
use crate::support::{Desk, needs, processes};
use journal::{CallProgress, JournalRecord, Outcome};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// From the harm to the end of the turn.
const TURN: Duration = Duration::from_secs(20);
/// The same where a proxy goes silent before it has a cage, which it has ten seconds for.
const LONG_TURN: Duration = Duration::from_secs(40);
/// The same where the supervisor answers nothing more: its client looks at it before it starts another, for 14
/// seconds where a signal stopped it and for 30 where it waits.
const SILENT_TURN: Duration = Duration::from_secs(45);
/// Limit for steps that take milliseconds.
const SOON: Duration = Duration::from_secs(20);
/// How long a stopped client stays stopped.
const STOPPED: Duration = Duration::from_secs(1);

/// Exit code and output of a finished `agentd`.
struct Ended {
    code: Option<i32>,
    out: String,
    err: String,
}

/// Runs the cell. An error names the check that failed.
pub fn run(cell: &Cell) -> Result<(), String> {
    let scene = Scene::new(cell);
    let hooks = Hooks::listen(&scene.hooks(), cell.step.name, cell.step.nth);
    let agentd = scene.agentd(&["-p", "do it"]);
    let leader = agentd.id();
    let harmed = harm(cell, &scene, &hooks, leader);
    let begun = Instant::now();
    let turn = match (cell.fault, cell.of_proxy()) {
        (Fault::Stop | Fault::Half, Some(Loss::Either)) => LONG_TURN,
        (Fault::Stop, _) if cell.target == Target::Supervisor => SILENT_TURN,
        (Fault::Half, _) if cell.target == Target::Client => SILENT_TURN,
        _ => TURN,
    };
    let ended = end_within(agentd, if harmed.is_ok() { turn } else { Duration::ZERO });
    let tell = |what: String| match &ended {
        Ok(ended) => format!("{what}\n--- stderr ---\n{}", ended.err),
        Err(_) => what,
    };
    harmed.map_err(&tell)?;
    let took = begun.elapsed();
    let ended = ended.as_ref().map_err(|why| format!("{why}; {}", scene.last_words()))?;
    nothing_left(leader, &hooks, &scene)?;
    if cell.ends_the_client() {
        go_on(&scene).map_err(&tell)?;
    } else if (ended.code, ended.out.as_str()) != (Some(0), "Done.\n") {
        return Err(tell(format!(
            "ended with {:?} and {:?} after {took:?}",
            ended.code, ended.out
        )));
    }
    scene.holds(cell, &hooks).map_err(|why| tell(format!("{why}; {}", scene.last_words())))
}

/// Kills the target while the supervisor waits for its disk. The disk stays slow until the next
/// process of the target runs. Returns the number of its processes, or the check that failed.
pub fn killed_in_a_sync(cell: &Cell) -> Result<usize, String> {
    let scene = Scene::new(cell);
    let hooks = Hooks::listen(&scene.hooks(), cell.step.name, cell.step.nth);
    let agentd = scene.agentd(&["-p", "do it"]);
    let (leader, name) = (agentd.id(), cell.target.executable());
    let killed = hooks.held(SOON).and_then(|_| hooks.newest(name, SOON));
    let replaced = killed.ok_or("the step was not reached".to_owned()).and_then(|killed| {
        send(killed, Signal::SIGKILL)?;
        until("another process", || {
            hooks.newest(name, Duration::ZERO).is_some_and(|pid| pid != killed)
        })
    });
    hooks.release();
    let ended = end_within(agentd, TURN)?;
    replaced.map_err(|why| format!("{why}: {}", ended.err))?;
    nothing_left(leader, &hooks, &scene)?;
    ensure((ended.code, ended.out.as_str()) == (Some(0), "Done.\n"), || ended.err)?;
    scene.holds(cell, &hooks).map_err(|why| format!("{why}; {}", scene.last_words()))?;
    Ok(hooks.count(name))
}

/// Another client resumes the session whose client is gone.
fn go_on(scene: &Scene) -> Result<(), String> {
    let arguments = match scene.session() {
        Some(session) => vec!["-p".into(), "go on".into(), "--resume".into(), session],
        None => vec!["-p".to_owned(), "do it".to_owned()],
    };
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let agentd = scene.agentd(&arguments);
    let ended = end_within(agentd, TURN)?;
    match (ended.code, ended.out.as_str()) {
        (Some(0), "Done.\n") => Ok(()),
        other => Err(format!("the next client ended with {other:?}: {}", ended.err)),
    }
}

/// Waits until a process is held at the step, injects the fault, and releases the held process.
fn harm(cell: &Cell, scene: &Scene, hooks: &Hooks, leader: u32) -> Result<(), String> {
    hooks.held(SOON).ok_or("the step was not reached")?;
    let mut its_end = None;
    let target = match (cell.target, cell.target.keeper()) {
        (_, Some((_, mark))) => scene.kept(mark).map(|(keeper, command)| {
            // A first process stays until its runner has waited for the command.
            its_end = (cell.target == Target::FirstProcess).then_some(command);
            keeper
        }),
        (Target::Command, _) => scene.command(),
        (Target::Client, _) => Some(leader),
        _ => hooks.newest(cell.target.executable(), SOON),
    };
    let target = target.ok_or("the process to be harmed is not there")?;
    let signal = match cell.fault {
        Fault::Kill => Some(Signal::SIGKILL),
        Fault::Abort => Some(Signal::SIGABRT),
        Fault::Stop => Some(Signal::SIGSTOP),
        _ => None,
    };
    if let Some(signal) = signal {
        send(target, signal)?;
        match signal {
            Signal::SIGSTOP if cell.target == Target::Client => {
                hooks.release();
                std::thread::sleep(STOPPED);
                send(target, Signal::SIGCONT)?;
            }
            Signal::SIGSTOP => {}
            _ => gone(its_end.unwrap_or(target))?,
        }
    } else if let Some(order) = cell.fault.order() {
        let deadline = Instant::now() + SOON;
        let mut answer = hooks.order(target, order);
        // A process that is still starting has sent no message that it could send again.
        while answer.as_deref() == Some("cannot") && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
            answer = hooks.order(target, order);
        }
        match answer.as_deref() {
            Some("done") => {}
            // It may be ended for its breach before it has said that it did it.
            None => gone(target)?,
            Some(other) => {
                return Err(format!("process {target} answered the order {order} with {other}"));
            }
        }
    }
    hooks.release();
    Ok(())
}

fn send(pid: u32, signal: Signal) -> Result<(), String> {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap());
    kill(pid, signal).map_err(|error| format!("{signal} to {pid}: {error}"))
}

fn gone(pid: u32) -> Result<(), String> {
    until(&format!("process {pid} ends"), || !processes().iter().any(|it| it.pid == pid))
}

fn until(what: &str, mut holds: impl FnMut() -> bool) -> Result<(), String> {
    let deadline = Instant::now() + SOON;
    while !holds() {
        if Instant::now() > deadline {
            return Err(format!("timed out: {what}"));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// No process of that run is left: none that had hooks, none of its terminal session, no command, and
/// none of a cage whose runner is gone.
fn nothing_left(leader: u32, hooks: &Hooks, scene: &Scene) -> Result<(), String> {
    let pids = hooks.pids();
    let left = || {
        let all = processes();
        let mut left: Vec<_> =
            all.into_iter().filter(|it| it.session == leader || pids.contains(&it.pid)).collect();
        left.extend(scene.commands());
        left.extend(scene.orphans());
        left
    };
    until("nothing is left", || left().is_empty()).map_err(|why| format!("{why}: {:?}", left()))
}

fn end_within(mut child: Child, limit: Duration) -> Result<Ended, String> {
    let deadline = Instant::now() + limit;
    let late = loop {
        match child.try_wait() {
            Ok(Some(_)) => break false,
            Ok(None) if Instant::now() > deadline => break true,
            _ => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    if late {
        let leader = child.id();
        for process in processes().into_iter().filter(|it| it.session == leader) {
            let _ = send(process.pid, Signal::SIGKILL);
        }
    }
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let ended =
        Ended { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) };
    match late && !limit.is_zero() {
        true => Err(format!("the turn did not end within {limit:?}: {}", ended.err)),
        false => Ok(ended),
    }
}

/// A project, a home, and a model server that answers by the content of the request.
struct Scene {
    desk: Desk,
    server: Server,
    /// In the command's text, so that it is found among all processes.
    mark: String,
    /// Further arguments of `agentd`.
    flags: &'static [&'static str],
    /// The tier of its cages, where one is asked for.
    tier: Option<&'static str>,
    /// Orphans of other runs.
    others: Vec<u32>,
}

impl Scene {
    fn new(cell: &Cell) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let mark = format!("cell-{}-{count}", std::process::id());
        // A stopped process is found by its silence.
        let desk = Desk::new().with_ping_ms(1000);
        desk.write("notes", "one\n");
        let config = desk.home().join(".config/agentd");
        fs::create_dir_all(&config).unwrap();
        // Where the reserve is not the target, each runner builds its cage after the verdict.
        let idle_reserve = if cell.has_reserve() { "60s" } else { "0s" };
        let text =
            format!("[daemon]\nidle_reserve = \"{idle_reserve}\"\n[tools]\ntimeout_ms = 3000\n");
        fs::write(config.join("config.toml"), text).unwrap();
        // The proxy refuses a host that is not on the list before it resolves the name.
        let (asks, flags): (_, &[_]) = match cell.target {
            Target::Proxy => {
                needs("curl");
                ("curl -s -m 1 -o said http://refused.test/;", &["--allow-host", "allowed.test"])
            }
            _ => ("", &[]),
        };
        let script = format!(
            "echo ran >> effects; echo begun; {asks} sleep 0.3; echo end >> effects; true {mark}"
        );
        let server = Server::answering(move |_, body| answer(body, &script));
        let tier = cell.target.keeper().map(|(tier, _)| tier);
        let others = orphans().map(|it| it.pid).collect();
        Self { desk, server, mark, flags, tier, others }
    }

    fn hooks(&self) -> std::path::PathBuf {
        self.desk.outside().join("hooks")
    }

    fn agentd(&self, arguments: &[&str]) -> Child {
        // Longer than each turn may take, so that what ends the run is the product.
        let flags = ["--permission-mode", "auto", "--timeout", "60"];
        let more = self.flags.iter().copied();
        let arguments: Vec<_> = arguments.iter().copied().chain(flags).chain(more).collect();
        let mut command: Command = self.desk.with_server(&self.server, &arguments);
        command.env("AGENTD_HOOKS", self.hooks());
        command.envs(self.tier.map(|tier| ("AGENTD_SANDBOX_TIER", tier)));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// The shell that runs the command.
    fn command(&self) -> Option<u32> {
        let until = Instant::now() + SOON;
        while Instant::now() < until {
            if let Some(process) = self.commands().into_iter().next() {
                return Some(process.pid);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        None
    }

    /// The living first process or guard of the newest cage, and the command's process, as the
    /// session's list of runners names them.
    fn kept(&self, mark: &str) -> Option<(u32, u32)> {
        let until = Instant::now() + SOON;
        while Instant::now() < until {
            let list = self.session().map(|it| self.desk.state().join("sessions").join(it));
            let list = list.and_then(|place| fs::read_to_string(place.join("runners")).ok());
            let list = list.unwrap_or_default();
            let lines: Vec<Vec<_>> = list.lines().map(|it| it.split(' ').collect()).collect();
            let found = lines.windows(2).rev().find(|pair| pair[0].get(2) == Some(&mark));
            let pids = found.map(|pair| [pair[0][0], pair[1][0]].map(|pid| pid.parse().unwrap()));
            if let Some([keeper, command]) = pids
                && processes().iter().any(|it| it.pid == keeper && it.name == "agentd-tool")
            {
                return Some((keeper, command));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        None
    }

    /// Processes of a cage whose runner is gone, of this run or of one beside it.
    fn orphans(&self) -> Vec<crate::support::Process> {
        orphans().filter(|it| !self.others.contains(&it.pid)).collect()
    }

    fn commands(&self) -> Vec<crate::support::Process> {
        let marked = |pid: u32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(&self.mark)
        };
        processes().into_iter().filter(|process| marked(process.pid)).collect()
    }

    fn session(&self) -> Option<String> {
        let sessions = fs::read_dir(self.desk.state().join("sessions")).ok()?;
        let mut names: Vec<_> =
            sessions.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names.pop()
    }

    fn last_words(&self) -> String {
        let log = self.desk.state().join("log");
        let mut text = String::new();
        for entry in fs::read_dir(log).into_iter().flatten().flatten() {
            text.push_str(&fs::read_to_string(entry.path()).unwrap_or_default());
        }
        let lines: Vec<_> = text.lines().collect();
        format!("its log:\n{}", lines[lines.len().saturating_sub(15)..].join("\n"))
    }

    /// Checks disk and effects, which must be consistent after any fault.
    fn holds(&self, cell: &Cell, hooks: &Hooks) -> Result<(), String> {
        let session = self.session().ok_or("no session is on disk")?;
        let directory = self.desk.state().join("sessions").join(session);
        let records: Vec<JournalRecord> = journal::read(&directory)
            .and_then(|entries| entries.map(|entry| Ok(entry?.record)).collect())
            .map_err(|error| format!("the journal does not read whole: {error}"))?;
        let verified = crate::support::run(self.desk.agentd(&["audit", "verify"]));
        ensure(verified.code == 0, || format!("audit verify: {}{}", verified.out, verified.err))?;

        let prompts = records.iter().filter(
            |record| matches!(record, JournalRecord::Prompt { text, .. } if text == "do it"),
        );
        let prompts = prompts.count();
        let spoken = if cell.ends_the_client() { 0..=1 } else { 1..=1 };
        ensure(spoken.contains(&prompts), || {
            format!("the prompt is in the journal {prompts} times")
        })?;
        let (one, two) = (Course::of(1, &records)?, Course::of(2, &records)?);
        let effects = self.effects();
        ensure(one.fits(&effects, cell), || format!("{one:?} and the effects {effects:?}"))?;
        // What its runner did not begin has not run, and nobody is told that it may have.
        let begun = cell.hides_the_beginning() || hooks.began(cell.target != Target::Tool);
        ensure(begun || one.end != End::CutShort, || format!("never begun, and {one:?}"))?;
        if let Some(loss) = cell.of_proxy() {
            self.tells_of_the_proxy(loss, cell.fault)?;
        }
        let notes = self.desk.read("notes");
        ensure(two.fits_notes(&notes), || format!("{two:?} and the notes {notes:?}"))?;
        let interrupted = one.interrupted() || two.interrupted();
        ensure(!interrupted || cell.may_interrupt(), || format!("interrupted: {one:?} {two:?}"))
    }

    /// Checks the record of the command for its proxy: a refused connection, or the loss of the
    /// proxy.
    fn tells_of_the_proxy(&self, loss: Loss, fault: Fault) -> Result<(), String> {
        let ended = self.desk.ended(1);
        let connections: Vec<_> = ended["connections"].as_array().into_iter().flatten().collect();
        let refused = connections.iter().all(|one| {
            one["place"] == "refused.test:80" && one["count"] == 1 && one["decision"] == "refused"
        });
        let cut = ended["connections_cut"].as_str();
        let all = connections.len() == 1 && cut.is_none();
        let some = connections.len() <= 1 && cut.is_some();
        let told = match (loss, fault) {
            // A message of an earlier generation is dropped and changes nothing.
            (_, Fault::Old) => all,
            (Loss::Replaced, _) => all,
            (Loss::Either, _) => all || some,
            (Loss::Told, _) => some,
        };
        ensure(refused && told, || format!("of its proxy the record says {ended:#}"))
    }

    fn effects(&self) -> String {
        fs::read_to_string(self.desk.project().join("effects")).unwrap_or_default()
    }
}

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

/// Processes of a cage that has no runner. They have a terminal session and a name of their own, and
/// no variable of theirs can be read.
fn orphans() -> impl Iterator<Item = crate::support::Process> {
    let all = processes();
    let ours: Vec<_> =
        all.iter().filter(|it| it.name.starts_with("agentd-")).map(|it| it.pid).collect();
    all.into_iter().filter(move |it| it.name == "agentd-tool" && !ours.contains(&it.parent))
}

/// The journal's records of one call, in short.
#[derive(Debug)]
struct Course {
    started: bool,
    end: End,
}

/// How a call ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Well,
    Badly,
    /// Stopped in order, or found cut short after it was let go.
    CutShort,
    /// Cut short before it was let go.
    NeverStarted,
}

impl Course {
    /// Every call has one end, and none begins behind it.
    fn of(number: u32, records: &[JournalRecord]) -> Result<Self, String> {
        let (mut proposed, mut started, mut ends) = (0, false, Vec::new());
        for record in records {
            match record {
                JournalRecord::Proposed { call, .. } if *call == number => proposed += 1,
                JournalRecord::Start { call, .. } if *call == number => {
                    ensure(ends.is_empty(), || format!("call {number} began after its end"))?;
                    started = true;
                }
                JournalRecord::Result { call, outcome, .. } if *call == number => {
                    ends.push(match outcome {
                        Outcome::Done | Outcome::Exited { code: 0 } => End::Well,
                        Outcome::Interrupted => End::CutShort,
                        _ => End::Badly,
                    })
                }
                JournalRecord::Interrupted { call, progress, .. } if *call == number => {
                    ends.push(match progress {
                        CallProgress::MayHaveRun => End::CutShort,
                        CallProgress::NeverStarted => End::NeverStarted,
                    });
                }
                _ => {}
            }
        }
        match (proposed, ends.pop(), ends.as_slice()) {
            (1, Some(end), []) => Ok(Self { started, end }),
            _ => Err(format!(
                "call {number} was proposed {proposed} times, and ended more or less \
                              often than once"
            )),
        }
    }

    fn interrupted(&self) -> bool {
        matches!(self.end, End::CutShort | End::NeverStarted)
    }

    /// True if the command ran at most once: to its end if the result is a success, and not at all
    /// if the call was not started.
    fn fits(&self, effects: &str, cell: &Cell) -> bool {
        let harmed = cell.harms_the_command();
        match (effects, &self.end) {
            ("", End::NeverStarted) => true,
            ("", End::CutShort) => self.started,
            ("ran\n" | "ran\nend\n", End::CutShort) => self.started,
            // Its program may have begun and done nothing yet.
            ("" | "ran\n" | "ran\nend\n", End::Badly) => self.started && harmed,
            ("ran\nend\n", End::Well) => self.started,
            _ => false,
        }
    }

    fn fits_notes(&self, notes: &str) -> bool {
        match (notes, &self.end) {
            ("one\n", End::NeverStarted) => true,
            ("one\n" | "two\n", End::CutShort) => self.started,
            ("two\n", End::Well) => self.started,
            _ => false,
        }
    }
}

/// Answers by the results that the conversation holds, so that asking again changes nothing.
fn answer(body: &Value, script: &str) -> Answer {
    let messages = body["messages"].to_string();
    let results = messages.matches("\"tool_result\"").count();
    match results {
        0 => {
            let input = json!({ "command": script }).to_string();
            Answer::says([text("I will."), call("toolu_1", "bash", &input)])
        }
        1 => {
            let input = json!({ "path": "notes", "old_string": "one", "new_string": "two" });
            Answer::says([call("toolu_2", "edit", &input.to_string())])
        }
        _ => Answer::text("Done."),
    }
}
