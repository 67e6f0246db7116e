//! The matrix as a table: who is harmed, how, at which step, and which cells are void and why.

/// Who is harmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Target {
    Provider,
    Session,
    Broker,
    Store,
    Tool,
    /// A runner that was started before its call came.
    Reserve,
    /// The proxy of the command's allow-list, a process beside its runner.
    Proxy,
    /// The first process of the cage's PID namespace, in tier A.
    FirstProcess,
    /// The process that ends the cage's Landlock domain when the runner dies, in tier B.
    Guard,
    Command,
    Supervisor,
    Client,
}

/// How.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    Kill,
    Stop,
    Abort,
    Exit,
    Close,
    Garbage,
    OverLong,
    Old,
    Half,
}

/// A step of one call's path at which a process is held while the harm is done.
#[derive(Debug, PartialEq, Eq)]
pub struct Step {
    /// As the process says it.
    pub name: &'static str,
    /// How often it is reached before it counts.
    pub nth: usize,
    /// The processes of the call that run at this step.
    pub lives: Lives,
}

/// The processes of a call at a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lives {
    Nothing,
    /// A runner that was not let go.
    Waiting,
    /// A runner that was, or is about to be; its command has not begun for certain.
    LetGo,
    /// A runner and its command.
    Command,
    /// A runner that is about to leave.
    Leaving,
}

/// Effect of a lost proxy on its command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Nothing has happened: both are started again, once and silently.
    Replaced,
    /// Either, depending on which event the supervisor sees first.
    Either,
    /// The command continues without it, and its record marks the gap.
    Told,
}

pub const TARGETS: [Target; 11] = [
    Target::Provider,
    Target::Session,
    Target::Broker,
    Target::Store,
    Target::Tool,
    Target::Proxy,
    Target::FirstProcess,
    Target::Guard,
    Target::Command,
    Target::Supervisor,
    Target::Client,
];

pub const FAULTS: [Fault; 9] = [
    Fault::Kill,
    Fault::Stop,
    Fault::Abort,
    Fault::Exit,
    Fault::Close,
    Fault::Garbage,
    Fault::OverLong,
    Fault::Old,
    Fault::Half,
];

const fn step(name: &'static str, nth: usize, lives: Lives) -> Step {
    Step { name, nth, lives }
}

/// In the order in which a call comes by.
pub const STEPS: &[Step] = &[
    step("client: prompt sent", 1, Lives::Nothing),
    step("client: event seen", 1, Lives::Nothing),
    step("provider: mid-stream", 1, Lives::Nothing),
    step("supervisor: route", 1, Lives::Nothing),
    step("provider: before ended", 1, Lives::Nothing),
    // The first one is the prompt, the second the answer.
    step("session: before commit", 2, Lives::Nothing),
    step("session: before run", 1, Lives::Nothing),
    step("supervisor: proposed", 1, Lives::Nothing),
    step("supervisor: judge sent", 1, Lives::Nothing),
    step("broker: judge in", 1, Lives::Nothing),
    step("broker: before verdict", 1, Lives::Nothing),
    step("supervisor: verdict in", 1, Lives::Nothing),
    step("tool: hello said", 1, Lives::Waiting),
    step("tool: cage built", 1, Lives::Waiting),
    step("supervisor: start durable", 1, Lives::LetGo),
    step("supervisor: go sent", 1, Lives::LetGo),
    step("tool: go received", 1, Lives::LetGo),
    step("tool: begins", 1, Lives::LetGo),
    step("tool: command runs", 1, Lives::Command),
    step("supervisor: first output", 1, Lives::Command),
    step("tool: before done", 1, Lives::LetGo),
    step("tool: done said", 1, Lives::Leaving),
    step("supervisor: done in", 1, Lives::Nothing),
    step("supervisor: process ended", 1, Lives::Nothing),
    step("supervisor: result durable", 1, Lives::Nothing),
    // Of the second call, which names a path.
    step("supervisor: probe spawned", 1, Lives::Waiting),
];

/// Where a runner of the session's reserve is, until the call has it.
pub const RESERVE_STEPS: &[Step] = &[
    step("supervisor: reserve spawned", 1, Lives::Waiting),
    step("tool: hello said", 1, Lives::Waiting),
    step("tool: cage built", 1, Lives::Waiting),
    step("tool: rests", 1, Lives::Waiting),
    step("supervisor: reserve taken", 1, Lives::Waiting),
    step("supervisor: renew sent", 1, Lives::Waiting),
    step("tool: cage renewed", 1, Lives::Waiting),
];

/// Who has something sent to it right behind such a record.
pub const IN_A_SYNC: &[(Target, Step)] = &[
    (Target::Provider, step("supervisor: sync of a prompt", 1, Lives::Nothing)),
    (Target::Session, step("supervisor: sync of a result", 1, Lives::Nothing)),
];

/// One harm, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    pub target: Target,
    pub fault: Fault,
    pub step: &'static Step,
}

pub fn cells() -> Vec<Cell> {
    let of = |target, fault| STEPS.iter().map(move |step| Cell { target, fault, step });
    let targets = TARGETS.into_iter();
    let of_reserve = [Target::Reserve, Target::Supervisor].into_iter();
    let reserve = of_reserve.flat_map(|target| {
        let at = move |fault| RESERVE_STEPS.iter().map(move |step| Cell { target, fault, step });
        FAULTS.into_iter().flat_map(at).filter(Cell::has_reserve)
    });
    let calls =
        targets.flat_map(|target| FAULTS.into_iter().flat_map(move |fault| of(target, fault)));
    calls.chain(reserve).collect()
}

impl Cell {
    /// True if its session has a reserve, with whose runner its call comes by other steps.
    pub fn has_reserve(&self) -> bool {
        let is_of_call = || STEPS.iter().any(|step| step.name == self.step.name);
        self.target == Target::Reserve || !is_of_call() && self.is_of_reserve()
    }

    fn is_of_reserve(&self) -> bool {
        RESERVE_STEPS.iter().any(|step| step.name == self.step.name)
    }

    /// Why there is nothing to try.
    pub fn void(&self) -> Option<&'static str> {
        let on_a_channel = match self.fault {
            Fault::Close | Fault::Garbage | Fault::OverLong | Fault::Old | Fault::Half => true,
            Fault::Kill | Fault::Stop | Fault::Abort | Fault::Exit => false,
        };
        match (self.target, self.fault, self.step.lives) {
            (Target::FirstProcess | Target::Guard, ..) if !self.has_a_keeper() => {
                Some("no cage stands around a command at this step")
            }
            (Target::FirstProcess | Target::Guard, Fault::Exit, _) => {
                Some("a first process and a guard take no orders")
            }
            (Target::FirstProcess | Target::Guard, ..) if on_a_channel => {
                Some("a first process and a guard have no channel")
            }
            (Target::FirstProcess, Fault::Abort, _) => {
                Some("the first process of a namespace ignores SIGABRT")
            }
            (Target::Command, ..) if on_a_channel => Some("a command has no channel"),
            (Target::Command, Fault::Exit, _) => Some("a command that exits with 0 has succeeded"),
            (Target::Command, _, Lives::Command) => None,
            (Target::Command, ..) => Some("no command runs at this step"),
            (Target::Supervisor | Target::Client, Fault::Old, _) => {
                Some("a client's connection is one life and has no generation")
            }
            (Target::Proxy, ..) if self.of_proxy().is_none() => Some("no proxy lives at this step"),
            (Target::Tool, _, Lives::Nothing) => Some("no runner lives at this step"),
            (Target::Reserve, Fault::Old, _) if self.step.name != "tool: cage renewed" => {
                Some("it has said nothing that could be said again")
            }
            (Target::Tool, Fault::Old, _) if self.step.name == "tool: hello said" => {
                Some("it has said nothing that could be said again")
            }
            (Target::Tool, Fault::Old, Lives::Waiting)
                if self.step.name == "supervisor: probe spawned" =>
            {
                Some("it has said nothing that could be said again")
            }
            (Target::Tool, Fault::Old, _) if self.step.name == "tool: cage built" => {
                Some("it has said nothing that could be said again")
            }
            _ => None,
        }
    }

    /// True if the command's cage exists, with its first process or guard.
    fn has_a_keeper(&self) -> bool {
        match self.step.lives {
            Lives::Command => true,
            Lives::LetGo => self.step.name != "tool: before done",
            Lives::Waiting => self.step.name == "tool: cage built",
            Lives::Nothing | Lives::Leaving => false,
        }
    }

    /// True if this fault may end the running command, or use up its time.
    pub fn harms_the_command(&self) -> bool {
        match (self.target, self.fault) {
            (Target::Command, _) => true,
            // The runner continues at once when `Go` is sent.
            (Target::FirstProcess, Fault::Kill) => {
                self.step.lives == Lives::Command || self.step.name == "supervisor: go sent"
            }
            _ => false,
        }
    }

    /// Effect of a lost proxy, if the proxy is the target.
    pub fn of_proxy(&self) -> Option<Loss> {
        if self.target != Target::Proxy {
            return None;
        }
        match (self.step.name, self.step.lives) {
            // The second call changes a file and has no network.
            ("supervisor: probe spawned", _) => None,
            ("supervisor: done in" | "supervisor: process ended", _) => Some(Loss::Told),
            (_, Lives::Nothing) => None,
            // It may have its cage, and the runner say the same before its end is seen.
            ("tool: cage built", _) => Some(Loss::Either),
            (_, Lives::Waiting) => match self.fault {
                Fault::Stop | Fault::Half => Some(Loss::Either),
                _ => Some(Loss::Replaced),
            },
            (_, Lives::LetGo | Lives::Command | Lives::Leaving) => Some(Loss::Told),
        }
    }

    /// True if this fault may interrupt the command, so that its result is `interrupted`.
    pub fn may_interrupt(&self) -> bool {
        match (self.target, self.fault) {
            (_, Fault::Old) => false,
            (Target::Provider | Target::Session | Target::Broker | Target::Store, _) => false,
            // The call goes on with a runner of its own.
            (Target::Reserve, _) => false,
            (Target::Command | Target::Proxy | Target::FirstProcess | Target::Guard, _) => false,
            (Target::Tool, _) if self.is_before_the_beginning() => self.hides_the_beginning(),
            (Target::Tool, _) => match self.step.lives {
                Lives::LetGo | Lives::Command | Lives::Leaving => true,
                Lives::Nothing | Lives::Waiting => false,
            },
            (Target::Client, Fault::Stop) => false,
            (Target::Supervisor | Target::Client, _) => true,
        }
    }

    /// True if the runner was let go, or is about to be, and has not said that it began.
    fn is_before_the_beginning(&self) -> bool {
        ["supervisor: start durable", "tool: go received", "tool: begins"].contains(&self.step.name)
    }

    /// True if no supervisor can know from its runner whether the call began: a dead one heard nothing, and
    /// what follows garbage cannot be read.
    pub fn hides_the_beginning(&self) -> bool {
        let garbles = matches!(self.fault, Fault::Garbage | Fault::OverLong | Fault::Half);
        self.target == Target::Supervisor || self.target == Target::Tool && garbles
    }

    /// True if the client that waits for the answer is gone, so that another must resume the
    /// session.
    pub fn ends_the_client(&self) -> bool {
        self.target == Target::Client
            && matches!(self.fault, Fault::Kill | Fault::Abort | Fault::Exit)
    }
}

impl Fault {
    /// The order to the process; none for a signal.
    pub fn order(self) -> Option<&'static str> {
        match self {
            Self::Kill | Self::Stop | Self::Abort => None,
            Self::Exit => Some("exit"),
            Self::Close => Some("close"),
            Self::Garbage => Some("garbage"),
            Self::OverLong => Some("over-long"),
            Self::Old => Some("old"),
            Self::Half => Some("half"),
        }
    }
}

impl Target {
    pub fn executable(self) -> &'static str {
        match self {
            Self::Provider => "agentd-provider",
            Self::Session => "agentd-session",
            Self::Broker => "agentd-broker",
            Self::Store => "agentd-store",
            Self::Tool | Self::Reserve | Self::FirstProcess | Self::Guard => "agentd-tool",
            Self::Proxy => "agentd-web",
            Self::Command => "sh",
            Self::Supervisor => "agentd-supervisor",
            Self::Client => "agentd",
        }
    }

    /// The tier in which it is, and how the session's list of runners marks it.
    pub fn keeper(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::FirstProcess => Some(("A", "first")),
            Self::Guard => Some(("B", "guard")),
            _ => None,
        }
    }
}

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} {:?} at \"{}\"", self.target, self.fault, self.step.name)
    }
}
