//! The supervisor's side of one runner, as far as a test needs it.

use ipc::{HELLO_BYTES, Hello, MessageJoiner, codec, descriptor_frame, frames};
use protocol::Link;
use protocol::call::{ProbeReport, RunReport};
use protocol::confinement::{Confinement, Enforced, Profile, Tier};
use protocol::ids::Generation;
use protocol::tool::{
    CageOrder, FromCage, FromCall, FromTool, Keeper, OutputStream, RunnerJob, ToTool, ToolLink,
};
use serde_json::Value;
use std::cell::Cell;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Nothing in these tests takes longer; a hang is a failure.
const PATIENCE: Duration = Duration::from_secs(30);

thread_local! {
    /// No test asks for more than this.
    pub static HIGHEST_TIER: Cell<Tier> = const { Cell::new(Tier::A) };
    /// Whether the tools' own path check is on; only builds with hooks can switch it off.
    pub static SCOPE: Cell<&'static str> = const { Cell::new("on") };
}

/// A temporary project with its neighbours.
pub struct Project {
    _dir: tempfile::TempDir,
    pub base: PathBuf,
}

impl Project {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        for name in ["proj", "proj-evil", "temp"] {
            std::fs::create_dir(base.join(name)).unwrap();
        }
        std::fs::write(base.join("secret"), "the secret\n").unwrap();
        Self { _dir: dir, base }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.base.join("proj").join(name)
    }

    pub fn confinement(&self, profile: Profile) -> Confinement {
        Confinement {
            highest_tier: HIGHEST_TIER.get(),
            ..Confinement::closed(profile, self.base.join("proj"), self.base.join("temp"))
        }
    }

    /// A call from its beginning to its report, in the cage that its tool needs.
    pub fn run(&self, tool: &str, input: Value) -> RunReport {
        let mut runner = self.started(tool, input);
        runner.done()
    }

    /// A call that has just been let go.
    pub fn started(&self, tool: &str, input: Value) -> Runner {
        let input = input.to_string();
        let spec = tool_specs::interpret(tool, &input).unwrap().spec;
        let mut runner = Runner::start_as(spec.runner);
        runner.enforced(&self.confinement(spec.profile));
        runner.say(&ToTool::Go(run(tool, &input)));
        runner
    }

    pub fn probe(&self, tool: &str, input: Value) -> ProbeReport {
        let mut runner = Runner::caged(&self.confinement(Profile::Probe));
        runner
            .say(&ToTool::Go(RunnerJob::Probe { tool: tool.to_owned(), input: input.to_string() }));
        match runner.hear() {
            Some(FromTool::Probed(Ok(probe))) => probe,
            other => panic!("{other:?}"),
        }
    }
}

pub fn run(tool: &str, input: &str) -> RunnerJob {
    RunnerJob::Run {
        tool: tool.to_owned(),
        input: input.to_owned(),
        judged: Vec::new(),
        env: vec![
            ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
            ("GIVEN".to_owned(), "yes".to_owned()),
        ],
        timeout_ms: 20_000,
        max_result_chars: 30_000,
        denied_reads: protocol::judgement::RuleSet::empty(),
    }
}

/// A runner and the channel to it.
pub struct Runner {
    pub child: Child,
    socket: UnixStream,
    joiner: MessageJoiner,
    /// The process that ends its cage's processes, as the runner reported it.
    pub keeper: Option<Keeper>,
    /// The live output so far.
    pub live: Vec<(OutputStream, String)>,
}

impl Runner {
    /// An inert runner that has said Hello.
    pub fn start() -> Self {
        Self::start_as(tool_specs::RunnerProgram::Tool)
    }

    /// The same, of the program that runs the tool.
    fn start_as(runner: tool_specs::RunnerProgram) -> Self {
        let as_runner = match runner {
            tool_specs::RunnerProgram::Tool => "--as-runner",
            tool_specs::RunnerProgram::Code => "--as-code-runner",
            tool_specs::RunnerProgram::Web => {
                panic!("no tool of this program is run by agentd-web")
            }
            tool_specs::RunnerProgram::Mcp => {
                panic!("no tool of this program is run by agentd-mcp")
            }
        };
        let (ours, theirs) = UnixStream::pair().unwrap();
        let child = Command::new(std::env::current_exe().unwrap())
            .arg(as_runner)
            .env("PLANTED_KEY", "must not be seen")
            .env("AGENTD_HOOK_SCOPE", SCOPE.get())
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .spawn()
            .unwrap();
        ours.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut hello = [0; HELLO_BYTES];
        (&ours).read_exact(&mut hello).unwrap();
        Hello::from_bytes(&hello).unwrap().check().unwrap();
        let joiner = MessageJoiner::new(ToolLink::MESSAGE_CAP);
        Self { child, socket: ours, joiner, keeper: None, live: Vec::new() }
    }

    /// A runner whose cage stands.
    pub fn caged(confinement: &Confinement) -> Self {
        let mut runner = Self::start();
        runner.enforced(confinement);
        runner
    }

    pub fn enforced(&mut self, confinement: &Confinement) -> Enforced {
        self.say(&ToTool::Begin(Box::new(CageOrder::Confine(confinement.clone()))));
        match self.hear() {
            Some(FromTool::Cage(FromCage::Caged(enforced))) => enforced,
            other => panic!("no cage: {other:?}"),
        }
    }

    pub fn say(&mut self, word: &ToTool) {
        self.socket.write_all(&frames(Generation(1), 0, &codec::encode(word).unwrap())).unwrap();
    }

    /// A word behind which this descriptor rides.
    pub fn say_with(&mut self, word: &ToTool, descriptor: &impl AsFd) {
        self.say(word);
        let frame = descriptor_frame(Generation(1));
        let sent = ipc::fd::send(self.socket.as_fd(), &frame, descriptor.as_fd()).unwrap();
        assert_eq!(sent, frame.len());
    }

    /// The next message but a keeper's name and log lines, or the channel's end.
    #[allow(clippy::wildcard_enum_match_arm)]
    pub fn hear(&mut self) -> Option<FromTool> {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            if let Some(message) = self.joiner.next_message().unwrap() {
                let word = codec::decode(&message.body.unwrap()).unwrap();
                match word {
                    FromTool::Cage(FromCage::Keeper(keeper)) => self.keeper = Some(keeper),
                    FromTool::Log(_) | FromTool::Call(FromCall::Began) => {}
                    word => return Some(word),
                }
                continue;
            }
            match self.socket.read(&mut buffer).expect("the runner was silent too long") {
                0 => return None,
                n => self.joiner.push(&buffer[..n]),
            }
        }
    }

    /// Live output until it contains `text`.
    pub fn hear_until(&mut self, text: &str) {
        while !self.live.iter().any(|(_, piece)| piece.contains(text)) {
            match self.hear() {
                Some(FromTool::Call(FromCall::Output { stream, text })) => {
                    self.live.push((stream, text))
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// The report; the process has ended well after it.
    pub fn done(&mut self) -> RunReport {
        let report = loop {
            match self.hear() {
                Some(FromTool::Call(FromCall::Output { stream, text })) => {
                    self.live.push((stream, text))
                }
                Some(FromTool::Call(FromCall::Done(report))) => break *report,
                other => panic!("{other:?}"),
            }
        };
        assert!(self.hear().is_none(), "Done is the last word");
        assert!(self.ended().success());
        report
    }

    /// The process's own end, which must come by itself.
    pub fn ended(&mut self) -> std::process::ExitStatus {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(begin.elapsed() < PATIENCE, "the runner does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Closes the channel, as a supervisor that dies does.
    pub fn hang_up(&mut self) {
        self.socket.shutdown(std::net::Shutdown::Both).unwrap();
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        // Only the leftovers of a failed test; an ended runner is not killed twice.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until there is a file, or not.
pub fn appears(path: &std::path::Path) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(10) {
        if path.exists() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}
