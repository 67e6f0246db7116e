//! The test's side of the fault injection. Processes report the steps that they reach; one is held
//! at a step; the test can order any of them to cause a fault in itself.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A process that has hooks.
#[derive(Default)]
struct Process {
    pid: u32,
    name: String,
    steps: Option<UnixStream>,
    orders: Option<UnixStream>,
    held: bool,
    /// Answers to orders that are not read yet.
    answers: Vec<String>,
    /// It has closed a connection, which it does only by its end.
    gone: bool,
}

#[derive(Default)]
struct State {
    processes: Vec<Process>,
    /// The step to hold at, and how often it is reached until then.
    awaited: Option<(String, usize)>,
    /// Who is held.
    held: Option<u32>,
    /// Every step in order, and whether a process was held there.
    trace: Vec<(String, bool)>,
}

/// The hooks of one run.
#[derive(Clone)]
pub struct Hooks {
    shared: Arc<(Mutex<State>, Condvar)>,
}

impl Hooks {
    /// Listens at this path; the first process that reaches the step for the nth time is held.
    pub fn listen(path: &Path, step: &str, nth: usize) -> Self {
        let listener = UnixListener::bind(path).unwrap();
        let state = State { awaited: Some((step.to_owned(), nth)), ..State::default() };
        let hooks = Self { shared: Arc::new((Mutex::new(state), Condvar::new())) };
        let taken = hooks.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let hooks = taken.clone();
                std::thread::spawn(move || hooks.hear(stream));
            }
        });
        hooks
    }

    /// The process that is held at the step.
    pub fn held(&self, patience: Duration) -> Option<u32> {
        self.wait(patience, |state| state.held)
    }

    /// The newest process of that name that has hooks.
    pub fn newest(&self, name: &str, patience: Duration) -> Option<u32> {
        self.wait(patience, |state| {
            let both = |process: &&Process| process.steps.is_some() && process.orders.is_some();
            let found = state.processes.iter().rev().filter(both).find(|it| it.name == name);
            found.map(|process| process.pid)
        })
    }

    /// How many processes of that name there were, and are.
    pub fn count(&self, name: &str) -> usize {
        self.locked().processes.iter().filter(|process| process.name == name).count()
    }

    /// True if a runner began before the first result was on disk. One that was held there counts if the
    /// harm was not its own: it went on.
    pub fn began(&self, held_counts: bool) -> bool {
        let state = self.locked();
        let mut before =
            state.trace.iter().take_while(|(step, _)| step != "supervisor: result durable");
        before.any(|(step, held)| step == "tool: begins" && (held_counts || !held))
    }

    pub fn pids(&self) -> Vec<u32> {
        self.locked().processes.iter().map(|process| process.pid).collect()
    }

    /// Orders a process to cause a fault in itself. Returns its answer, if it survives.
    pub fn order(&self, pid: u32, order: &str) -> Option<String> {
        let mut state = self.locked();
        let process = state.processes.iter_mut().find(|process| process.pid == pid)?;
        // A held process reads orders on the connection of its steps only.
        let line = if process.held { &process.steps } else { &process.orders };
        writeln!(line.as_ref()?, "{order}").ok()?;
        drop(state);
        if order == "exit" {
            return None;
        }
        let answer = self.wait(Duration::from_secs(5), |state| {
            let process = state.processes.iter_mut().find(|process| process.pid == pid)?;
            let answer = process.answers.pop();
            answer.map(Some).or(process.gone.then_some(None))
        });
        answer.flatten()
    }

    /// Lets the held process go on.
    pub fn release(&self) {
        let mut state = self.locked();
        let Some(pid) = state.held else { return };
        if let Some(process) = state.processes.iter_mut().find(|process| process.pid == pid) {
            process.held = false;
            if let Some(steps) = &process.steps {
                let _ = writeln!(&*steps, "go");
            }
        }
    }

    fn wait<T>(
        &self,
        patience: Duration,
        mut found: impl FnMut(&mut State) -> Option<T>,
    ) -> Option<T> {
        let until = Instant::now() + patience;
        let mut state = self.locked();
        loop {
            if let Some(it) = found(&mut state) {
                return Some(it);
            }
            let left = until.checked_duration_since(Instant::now())?;
            let waited = self.shared.1.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn hear(&self, stream: UnixStream) {
        let Ok(copy) = stream.try_clone() else { return };
        let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
        let hello = lines.next().unwrap_or_default();
        let mut words = hello.split(' ').skip(1);
        let (Some(kind), Some(Ok(pid)), Some(name)) =
            (words.next(), words.next().map(str::parse), words.next())
        else {
            return;
        };
        self.greeted(kind, pid, name, copy);
        for line in lines {
            let word = line.strip_prefix("agentd_hook: ").unwrap_or(&line);
            match word.strip_prefix("at ") {
                Some(step) => self.reached(pid, step),
                None => self.answered(pid, word),
            }
        }
        self.left(pid);
    }

    fn greeted(&self, kind: &str, pid: u32, name: &str, stream: UnixStream) {
        let mut state = self.locked();
        let at = match state.processes.iter().position(|process| process.pid == pid) {
            Some(at) => at,
            None => {
                let name = name.to_owned();
                state.processes.push(Process { pid, name, ..Process::default() });
                state.processes.len() - 1
            }
        };
        match kind {
            "steps" => state.processes[at].steps = Some(stream),
            _ => state.processes[at].orders = Some(stream),
        }
        self.shared.1.notify_all();
    }

    fn reached(&self, pid: u32, step: &str) {
        let mut state = self.locked();
        let holds = match &mut state.awaited {
            Some((awaited, left)) if awaited == step => {
                *left -= 1;
                *left == 0
            }
            _ => false,
        };
        state.trace.push((step.to_owned(), holds));
        let Some(at) = state.processes.iter().position(|process| process.pid == pid) else {
            return;
        };
        if holds {
            state.awaited = None;
            state.held = Some(pid);
            state.processes[at].held = true;
            self.shared.1.notify_all();
        } else if let Some(steps) = &state.processes[at].steps {
            let _ = writeln!(&*steps, "go");
        }
    }

    fn answered(&self, pid: u32, word: &str) {
        let mut state = self.locked();
        if let Some(process) = state.processes.iter_mut().find(|process| process.pid == pid) {
            process.answers.push(word.to_owned());
        }
        self.shared.1.notify_all();
    }

    fn left(&self, pid: u32) {
        let mut state = self.locked();
        if let Some(process) = state.processes.iter_mut().find(|process| process.pid == pid) {
            process.gone = true;
            (process.steps, process.orders) = (None, None);
        }
        self.shared.1.notify_all();
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
