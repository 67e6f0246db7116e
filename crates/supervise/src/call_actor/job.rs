//! A command that the conversation does not wait for: its unread output, and the calls that read it, write to it or
//! end it; or an MCP server, with the calls of its tools. The call actor carries the steps out. Pure but for the
//! descriptors of its network; `A` is the address of a call.

use super::server::ServerAsks;
use crate::messages::{CallMsg, ServerSays};
use crate::unread_output::UnreadOutput;
use call::{CallFacts, CallInput, Executor};
use protocol::call::{Call, CallOrigin, Outcome, ToolResult};
use protocol::tool::ToCall;
use ractor::{ActorRef, ActorStatus};
use regex::{Regex, RegexBuilder};
use sandbox::NetworkNamespace;
use setup::session_spec::session_of;
use std::time::Duration;
use tool_specs::{JobAsk, longest::BACKGROUND_MS};

/// Why a command takes no input.
pub(crate) const ENDED: &str = "the command has ended and was not given the text";
/// Most characters of a pattern, and most bytes of its program. The supervisor has one thread.
const PATTERN_CHARS: usize = 1000;
const PATTERN_BYTES: usize = 256 * 1024;

/// How long a call waits for the command to read its input.
const INPUT: Duration = Duration::from_secs(5);
/// A runner ends a command in the background after [`BACKGROUND_MS`]. A call that has not ended then is
/// killed.
pub(super) const OVERDUE: Duration = Duration::from_millis(BACKGROUND_MS + 30_000);

/// The address of a call that waits for an answer.
pub(super) trait Waiter: Clone {
    /// It takes no answer any more.
    fn has_ended(&self) -> bool;
    fn is_same(&self, other: &Self) -> bool;
}

impl Waiter for ActorRef<CallMsg> {
    fn has_ended(&self) -> bool {
        matches!(self.get_status(), ActorStatus::Stopping | ActorStatus::Stopped)
    }

    fn is_same(&self, other: &Self) -> bool {
        self.get_id() == other.get_id()
    }
}

/// A step of the call actor; carried out in order.
#[derive(Debug)]
pub(super) enum JobStep<A> {
    /// An input of another call: its answer, or something on the way there.
    Input(A, Box<CallInput>),
    ToRunner(ToCall),
    /// The session gets this from the server.
    Says(ServerSays),
    /// The read of this number has waited long enough after this time.
    ReadOver(Duration, u64),
    /// The write likewise.
    WriteOver(Duration, u64),
    /// The command is ended.
    Stop,
}

/// A command that goes on without the conversation's wait.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Detached {
    /// The result of its call for the model.
    pub(super) text: String,
    /// For the person, where its network is not the host's.
    pub(super) notice: Option<String>,
}

/// The network of a command, as people reach it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reached {
    /// The host's, or none.
    AsUsual,
    /// One that only calls of the session reach.
    BySession,
}

/// The output of a command, and the calls about it that wait.
pub(super) struct Job<A> {
    /// Its call.
    call: u32,
    /// Most characters of a result.
    max: u32,
    kind: JobKind,
    output: UnreadOutput,
    /// The network of the command, as its runner passes it on.
    pub(super) namespace: NetworkNamespace,
    /// The session knows that the command goes on.
    detached: bool,
    /// Calls that wait for output.
    reads: Vec<WaitingRead<A>>,
    /// The number of the next wait.
    next: u64,
    /// The write that the runner has not answered.
    write: Option<PendingWrite<A>>,
    /// The calls that wait for the server that it is.
    pub(super) asks: ServerAsks<A>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JobKind {
    Command,
    SubAgent,
    Server,
}

/// Input that the command has not read yet.
struct PendingWrite<A> {
    number: u64,
    /// The call to answer; none once it has its answer, that the command does not read.
    from: Option<A>,
}

/// A call that waits for output.
struct WaitingRead<A> {
    number: u64,
    from: A,
    until: ReadUntil,
}

/// The event that ends a wait before its time.
enum ReadUntil {
    /// Any output.
    Output,
    /// A line that fits.
    Line(Regex),
    /// The end of the command only.
    End,
}

impl ReadUntil {
    fn is_due(&self, output: &UnreadOutput) -> bool {
        match self {
            Self::Output => !output.is_empty(),
            Self::Line(pattern) => output.has_line(pattern),
            Self::End => false,
        }
    }
}

impl<A: Waiter> Job<A> {
    /// Of this call, which has printed nothing yet.
    pub(super) fn of(facts: &CallFacts) -> Self {
        let kind = if matches!(facts.executor, Executor::SubAgent(_)) {
            JobKind::SubAgent
        } else if facts.call.origin == CallOrigin::ServerStart {
            JobKind::Server
        } else {
            JobKind::Command
        };
        Self::new(facts.call.id.number, facts.max_result_chars, kind)
    }

    fn new(call: u32, max: u32, kind: JobKind) -> Self {
        Self {
            call,
            max,
            kind,
            output: UnreadOutput::default(),
            namespace: NetworkNamespace::default(),
            detached: false,
            reads: Vec::new(),
            next: 0,
            write: None,
            asks: ServerAsks::none_yet(max),
        }
    }

    /// The runner lets the command go on without the conversation's wait. None if that is known: its runner lost
    /// the cage, and this is the next one.
    pub(super) fn goes_on(&mut self, reached: Reached) -> Option<Detached> {
        if std::mem::replace(&mut self.detached, true) {
            return None;
        }
        let number = self.call;
        let line = format!(
            "[call {number} runs in the background; bash_output, bash_input and bash_stop take this \
             number; it ends with the session]"
        );
        let is_apart = reached == Reached::BySession && self.kind != JobKind::Server;
        let notice = is_apart.then(|| {
            format!(
                "only calls of this session reach servers of call {number}, your browser does not. \
                 `agentd open ID PORT` opens a port to this machine"
            )
        });
        let line = match is_apart {
            true => format!(
                "{line}\n[only calls of this session reach its servers; the user's browser does not]"
            ),
            false => line,
        };
        Some(Detached { text: self.output.page(line, self.max).text, notice })
    }

    /// The command printed something, and runs for so many milliseconds.
    pub(super) fn printed(&mut self, text: &str, ran_ms: u64) -> Vec<JobStep<A>> {
        self.output.push(text);
        let output = &self.output;
        let due = |read: &mut WaitingRead<A>| read.until.is_due(output);
        let due: Vec<_> = self.reads.extract_if(.., due).collect();
        due.into_iter().filter_map(|read| self.answer_read(read.from, ran_ms)).collect()
    }

    /// A call asks for something, while the command runs for so many milliseconds.
    pub(super) fn ask(&mut self, asks: JobAsk, from: A, ran_ms: u64) -> Vec<JobStep<A>> {
        match asks {
            JobAsk::Output { wait_ms, pattern } => {
                // It was checked before.
                let pattern = pattern.and_then(|pattern| line_pattern(&pattern).ok());
                let until = pattern.map_or(ReadUntil::Output, ReadUntil::Line);
                if until.is_due(&self.output) || wait_ms == 0 {
                    return self.answer_read(from, ran_ms).into_iter().collect();
                }
                vec![JobStep::ReadOver(Duration::from_millis(wait_ms), self.wait(from, until))]
            }
            JobAsk::Input { .. } if self.kind == JobKind::SubAgent => {
                vec![answer(from, refused("bash_input", "a sub-agent takes no input"))]
            }
            JobAsk::Input { .. } if self.write.is_some() => {
                let why = "the command has not read the earlier input yet";
                vec![answer(from, refused("bash_input", why))]
            }
            JobAsk::Input { text, then } => {
                let number = self.number();
                self.write = Some(PendingWrite { number, from: Some(from) });
                let write = JobStep::ToRunner(ToCall::Input { text, then });
                vec![write, JobStep::WriteOver(INPUT, number)]
            }
            JobAsk::Stop => {
                // Its answer is the command's end.
                self.wait(from, ReadUntil::End);
                vec![JobStep::Stop]
            }
        }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Keeps a call until it is answered; returns the number of its wait.
    fn wait(&mut self, from: A, until: ReadUntil) -> u64 {
        let number = self.number();
        self.reads.push(WaitingRead { number, from, until });
        number
    }

    /// A wait for output took as long as it may.
    pub(super) fn read_over(&mut self, number: u64, ran_ms: u64) -> Vec<JobStep<A>> {
        let over: Vec<_> = self.reads.extract_if(.., |read| read.number == number).collect();
        over.into_iter().filter_map(|read| self.answer_read(read.from, ran_ms)).collect()
    }

    /// The runner wrote the input, or could not.
    pub(super) fn input_taken(&mut self, taken: Result<(), String>) -> Vec<JobStep<A>> {
        let Some(from) = self.write.take().and_then(|write| write.from) else { return Vec::new() };
        let result = match taken {
            Ok(()) => done(format!("[call {} was given the text]", self.call)),
            Err(why) => refused("bash_input", &why),
        };
        vec![answer(from, result)]
    }

    /// The input still waits. The runner goes on trying, and takes no other until then.
    pub(super) fn write_over(&mut self, write: u64) -> Vec<JobStep<A>> {
        let pending = self.write.as_mut().filter(|pending| pending.number == write);
        let Some(from) = pending.and_then(|pending| pending.from.take()) else {
            return Vec::new();
        };
        let number = self.call;
        let line =
            format!("[call {number} has not read all of the text yet; the rest waits for it]");
        vec![answer(from, done(line))]
    }

    /// None if a person stopped the call that reads: the output is for the next one.
    fn answer_read(&mut self, from: A, ran_ms: u64) -> Option<JobStep<A>> {
        if from.has_ended() {
            return None;
        }
        let line = format!("[call {} runs, since {} s]", self.call, ran_ms / 1000);
        Some(answer(from, self.output.page(line, self.max)))
    }

    /// The command has ended: all that wait get an answer. Returns the output that no call has read.
    pub(super) fn end(&mut self, summary: &str) -> (Vec<JobStep<A>>, String) {
        let mut steps = self.asks.end(summary);
        for read in std::mem::take(&mut self.reads) {
            if read.from.has_ended() {
                continue;
            }
            let (told, rest) = ended(self.call, self.output.take(), summary, self.max);
            self.output.put_back(rest);
            steps.push(answer(read.from, told));
        }
        if let Some(from) = self.write.take().and_then(|write| write.from) {
            steps.push(answer(from, refused("bash_input", ENDED)));
        }
        (steps, self.output.take())
    }
}

/// The result of the call whose sub-agent goes on without the conversation's wait.
pub(super) fn sub_agent_goes_on(call: &Call) -> String {
    let (number, child) = (call.id.number, session_of(&call.id.session, call.id.number));
    format!(
        "[call {number} runs in the background: its sub-agent works in session {child}. You get its \
         answer with a message after its end; bash_output waits for it, bash_stop ends it. It ends with \
         this session.]"
    )
}

/// The result of reading a command that has ended, and the output that it had no room for.
pub(crate) fn ended(number: u32, output: String, summary: &str, max: u32) -> (ToolResult, String) {
    tool_specs::command_output(output, format!("[call {number} has ended: {summary}]"), max)
}

fn answer<A>(from: A, result: ToolResult) -> JobStep<A> {
    JobStep::Input(from, Box::new(CallInput::OtherAnswered(result)))
}

fn done(line: String) -> ToolResult {
    let summary = line.trim_matches(['[', ']']).to_owned();
    ToolResult {
        outcome: Outcome::Done,
        text: line,
        summary,
        is_error: false,
        code: None,
        images: Vec::new(),
    }
}

/// A pattern for lines, bounded.
pub(crate) fn line_pattern(pattern: &str) -> Result<Regex, String> {
    if pattern.chars().count() > PATTERN_CHARS {
        return Err(format!("it has more than {PATTERN_CHARS} characters"));
    }
    let mut builder = RegexBuilder::new(pattern);
    builder.size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES);
    builder.build().map_err(|error| error.to_string())
}

pub(crate) fn refused(tool: &str, why: &str) -> ToolResult {
    ToolResult::error(Outcome::Failed, "no_input", tool, why, "See bash_output.")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use protocol::tool::AfterInput;

    /// A call by its number, which has ended if that is even.
    impl Waiter for u32 {
        fn has_ended(&self) -> bool {
            self.is_multiple_of(2)
        }

        fn is_same(&self, other: &Self) -> bool {
            self == other
        }
    }

    fn command() -> Job<u32> {
        Job::new(7, 1000, JobKind::Command)
    }

    fn output(wait_ms: u64, pattern: Option<&str>) -> JobAsk {
        JobAsk::Output { wait_ms, pattern: pattern.map(str::to_owned) }
    }

    fn input() -> JobAsk {
        JobAsk::Input { text: "y".to_owned(), then: AfterInput::KeepOpen }
    }

    /// The answers among the steps: each call with its text.
    fn answers(steps: Vec<JobStep<u32>>) -> Vec<(u32, String)> {
        let mut found = Vec::new();
        for step in steps {
            if let JobStep::Input(from, input) = step
                && let CallInput::OtherAnswered(result) = *input
            {
                found.push((from, result.text));
            }
        }
        found
    }

    #[test]
    fn a_read_is_answered_by_the_output_that_it_waits_for_or_when_its_time_is_over() {
        let mut job = command();
        let steps = job.ask(output(500, Some("ready")), 1, 0);
        assert!(matches!(steps[..], [JobStep::ReadOver(_, 0)]), "{steps:?}");
        assert!(job.printed("starts\n", 1000).is_empty());
        let told = answers(job.printed("ready\n", 2000));
        assert_eq!(told.len(), 1);
        let (from, text) = &told[0];
        assert_eq!(*from, 1);
        assert!(text.contains("starts\nready\n") && text.contains("[call 7 runs, since 2 s]"));
        assert!(job.read_over(0, 3000).is_empty(), "it was answered");
        job.ask(output(500, None), 3, 3000);
        assert_eq!(answers(job.read_over(1, 3500)).len(), 1);
        assert_eq!(answers(job.ask(output(0, None), 5, 4000)).len(), 1, "it does not wait");
    }

    #[test]
    fn a_stopped_read_leaves_the_output_to_the_next_one() {
        let mut job = command();
        job.ask(output(500, None), 2, 0);
        assert!(job.printed("for the next\n", 0).is_empty());
        assert!(answers(job.ask(output(0, None), 1, 0))[0].1.contains("for the next"));
    }

    #[test]
    fn one_write_is_passed_on_at_a_time_and_each_call_is_answered_once() {
        let mut job = command();
        let steps = job.ask(input(), 1, 0);
        let [JobStep::ToRunner(ToCall::Input { .. }), JobStep::WriteOver(_, number)] = steps[..]
        else {
            panic!("{steps:?}")
        };
        assert!(answers(job.ask(input(), 3, 0))[0].1.contains("has not read the earlier input"));
        assert!(answers(job.write_over(number))[0].1.contains("has not read all of the text yet"));
        assert!(job.input_taken(Ok(())).is_empty(), "its call was answered");
        job.ask(input(), 5, 0);
        assert!(job.write_over(number).is_empty(), "the time of the write before");
        assert_eq!(answers(job.input_taken(Ok(())))[0].0, 5);
        let mut agent = Job::new(7, 1000, JobKind::SubAgent);
        assert!(answers(agent.ask(input(), 1, 0))[0].1.contains("takes no input"));
    }

    #[test]
    fn the_end_answers_all_that_wait_and_returns_what_no_call_has_read() {
        let mut job = command();
        assert!(matches!(job.ask(JobAsk::Stop, 1, 0)[..], [JobStep::Stop]));
        job.ask(JobAsk::Stop, 2, 0);
        job.ask(input(), 3, 0);
        job.printed("last words\n", 0);
        let (steps, unread) = job.end("exited");
        let told = answers(steps);
        assert_eq!(told.iter().map(|(from, _)| *from).collect::<Vec<_>>(), [1, 3]);
        assert!(told[0].1.contains("last words") && told[0].1.contains("call 7 has ended: exited"));
        assert!(told[1].1.contains(ENDED));
        assert_eq!(unread, "");
    }

    #[test]
    fn a_command_goes_on_once_and_people_learn_of_a_network_of_its_own() {
        let mut job = command();
        let on = job.goes_on(Reached::BySession).unwrap();
        assert!(on.text.contains("[call 7 runs in the background"), "{}", on.text);
        assert!(on.text.contains("the user's browser does not"), "{}", on.text);
        assert!(on.notice.unwrap().contains("`agentd open"));
        assert_eq!(job.goes_on(Reached::BySession), None);
        assert_eq!(command().goes_on(Reached::AsUsual).unwrap().notice, None);
        let mut server = Job::<u32>::new(7, 1000, JobKind::Server);
        assert_eq!(server.goes_on(Reached::BySession).unwrap().notice, None);
    }
}
