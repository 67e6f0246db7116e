//! A command that the conversation does not wait for: its unread output, and the calls that read it,
//! write to it or end it. Used by the call actor.

use super::server::ServerAsks;
use super::state::CallState;
use crate::messages::{CallMsg, CallToSession, DetachedCall};
use crate::unread_output::UnreadOutput;
use call::{CallInput, Executor};
use launch::session_network::SessionNetwork;
use protocol::call::{CallOrigin, Outcome, ToolResult};
use protocol::tool::ToCall;
use ractor::{ActorRef, ActorStatus};
use regex::{Regex, RegexBuilder};
use sandbox::NetworkNamespace;
use setup::session_spec::session_of;
use std::sync::Arc;
use std::time::Duration;
use tool_specs::{JobAsk, JobRequest, RunsIn, longest::BACKGROUND_MS};

/// Why a command takes no input.
pub(crate) const ENDED: &str = "the command has ended and was not given the text";
/// Most characters of a pattern, and most bytes of its program. The supervisor has one thread.
const PATTERN_CHARS: usize = 1000;
const PATTERN_BYTES: usize = 256 * 1024;

/// A command that ends within this time gives its result at once, although it was to run in the
/// background: most of those are servers that could not start.
const AT_ONCE: Duration = Duration::from_secs(1);
/// How long a call waits for the command to read its input.
const INPUT: Duration = Duration::from_secs(5);
/// A runner ends a command in the background after [`BACKGROUND_MS`]. A call that has not ended then is
/// killed.
pub(super) const OVERDUE: Duration = Duration::from_millis(BACKGROUND_MS + 30_000);

/// The output of a command, and the calls about it that wait.
#[derive(Default)]
pub(super) struct Job {
    pub(super) output: UnreadOutput,
    /// The network of the command, as its runner passes it on.
    pub(super) namespace: NetworkNamespace,
    /// The session was told that the command goes on.
    detached: bool,
    /// Calls that wait for output.
    reads: Vec<WaitingRead>,
    /// The number of the next wait.
    next: u64,
    /// The write that the runner has not answered.
    write: Option<PendingWrite>,
    /// The calls that wait for the server that it is.
    pub(super) asks: ServerAsks,
}

/// Input that the command has not read yet.
struct PendingWrite {
    number: u64,
    /// The call to answer; none once it was told that the command does not read.
    from: Option<ActorRef<CallMsg>>,
}

/// A call that waits for output.
struct WaitingRead {
    number: u64,
    from: ActorRef<CallMsg>,
    until: ReadUntil,
}

/// What ends a wait before its time.
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

impl CallState {
    /// Starts the time after which the conversation goes on while the command runs, if there is one.
    pub(super) fn start_background_timer(&mut self, myself: &ActorRef<CallMsg>) {
        match (self.args.facts.runs_in, self.args.background_after_ms) {
            (RunsIn::Background, after) => {
                let is_server = self.args.facts.call.origin == CallOrigin::ServerStart;
                let after = if is_server { Duration::from_millis(after) } else { AT_ONCE };
                let detach = || CallMsg::Input(CallInput::Detach);
                self.timers.others.push(myself.send_after(after, detach));
            }
            (RunsIn::Foreground, after @ 1..) => {
                let call = self.args.facts.call.id.clone();
                let slow = move || CallToSession::Slow(call).into();
                let timer = self.args.session.send_after(Duration::from_millis(after), slow);
                if let Some(earlier) = self.timers.slow.replace(timer) {
                    earlier.abort();
                }
            }
            (RunsIn::Foreground, 0) => {}
        }
    }

    /// The conversation goes on. The runner of a command answers with the command's network; a sub-agent
    /// has none.
    pub(super) fn detach(&self) {
        let Executor::SubAgent(_) = self.args.facts.executor else {
            return self.tell_runner(ToCall::Background);
        };
        let call = self.args.facts.call.clone();
        let (number, child) = (call.id.number, session_of(&call.id.session, call.id.number));
        let text = format!(
            "[call {number} runs in the background: its sub-agent works in session {child}. You get its \
             answer with a message after its end; bash_output waits for it, bash_stop ends it. It ends with \
             this session.]"
        );
        let cage = self.args.facts.confinement.clone();
        let detached =
            DetachedCall { call, text, rights: Vec::new(), cage, network: None, notice: None };
        let _ = self.args.session.send_message(CallToSession::Detached(detached).into());
    }

    /// The runner lets the command go on without the conversation's wait.
    pub(super) fn on_in_background(&mut self, myself: &ActorRef<CallMsg>) {
        let made = std::mem::take(&mut self.job.namespace);
        let is_apart = self.args.network.is_some() || made.descriptors().next().is_some();
        let made = SessionNetwork::of(&self.args.facts, &self.args.confinement, made).map(Arc::new);
        let network = self.args.network.clone().or(made);
        if std::mem::replace(&mut self.job.detached, true) {
            // Its runner lost the cage, and this is the next one, with a network of its own.
            let call = self.args.facts.call.id.number;
            let moved = CallToSession::NetworkMoved { call, network };
            let _ = self.args.session.send_message(moved.into());
            return;
        }
        let overdue = myself.send_after(OVERDUE, || CallMsg::Input(CallInput::Overdue));
        if let Some(earlier) = self.timers.overdue.replace(overdue) {
            earlier.abort();
        }
        let call = self.args.facts.call.clone();
        let number = call.id.number;
        let line = format!(
            "[call {number} runs in the background; bash_output, bash_input and bash_stop take this \
             number; it ends with the session]"
        );
        let is_apart = is_apart && call.origin != CallOrigin::ServerStart;
        let notice = is_apart.then(|| {
            format!(
                "only calls of this session reach servers of call {number}, your browser does not. \
                 `:net on` lets commands that start afterwards use this machine's network"
            )
        });
        let line = match is_apart {
            true => format!(
                "{line}\n[only calls of this session reach its servers; the user's browser does not]"
            ),
            false => line,
        };
        let max = self.args.facts.max_result_chars;
        let text = self.job.output.page(line, max).text;
        let (rights, cage) =
            (self.args.facts.extra_rights.clone(), self.args.facts.confinement.clone());
        let detached = DetachedCall { call, text, rights, cage, network, notice };
        let _ = self.args.session.send_message(CallToSession::Detached(detached).into());
    }

    /// The command printed something.
    pub(super) fn on_printed(&mut self, text: &str) {
        self.job.output.push(text);
        let output = &self.job.output;
        let due = |read: &mut WaitingRead| read.until.is_due(output);
        let due: Vec<_> = self.job.reads.extract_if(.., due).collect();
        for read in due {
            self.answer_read(&read.from);
        }
    }

    pub(super) fn on_job_request(
        &mut self,
        myself: &ActorRef<CallMsg>,
        request: JobRequest,
        from: ActorRef<CallMsg>,
    ) {
        match request.asks {
            JobAsk::Output { wait_ms, pattern } => {
                // It was checked before.
                let pattern = pattern.and_then(|pattern| line_pattern(&pattern).ok());
                let until = pattern.map_or(ReadUntil::Output, ReadUntil::Line);
                if until.is_due(&self.job.output) || wait_ms == 0 {
                    return self.answer_read(&from);
                }
                let number = self.wait(from, until);
                let over = move || CallMsg::JobWaitOver(number);
                self.timers.others.push(myself.send_after(Duration::from_millis(wait_ms), over));
            }
            JobAsk::Input { .. } if matches!(self.args.facts.executor, Executor::SubAgent(_)) => {
                answer(&from, refused("bash_input", "a sub-agent takes no input"));
            }
            JobAsk::Input { text, then } => {
                if self.job.write.is_some() {
                    let why = "the command has not read the earlier input yet";
                    return answer(&from, refused("bash_input", why));
                }
                let number = self.job.next;
                self.job.next += 1;
                self.job.write = Some(PendingWrite { number, from: Some(from) });
                self.tell_runner(ToCall::Input { text, then });
                let over = move || CallMsg::InputWaitOver(number);
                self.timers.others.push(myself.send_after(INPUT, over));
            }
            JobAsk::Stop => {
                // Its answer is the command's end.
                self.wait(from, ReadUntil::End);
                let _ = myself.send_message(CallMsg::Input(CallInput::Cancel));
            }
        }
    }

    /// Keeps a call until it is answered; returns the number of its wait.
    fn wait(&mut self, from: ActorRef<CallMsg>, until: ReadUntil) -> u64 {
        let number = self.job.next;
        self.job.next += 1;
        self.job.reads.push(WaitingRead { number, from, until });
        number
    }

    /// A wait for output took as long as it may.
    pub(super) fn on_read_wait_over(&mut self, number: u64) {
        let over: Vec<_> = self.job.reads.extract_if(.., |read| read.number == number).collect();
        for read in over {
            self.answer_read(&read.from);
        }
    }

    /// The runner wrote the input, or could not.
    pub(super) fn on_input_taken(&mut self, taken: Result<(), String>) {
        let Some(from) = self.job.write.take().and_then(|write| write.from) else { return };
        let number = self.args.facts.call.id.number;
        answer(
            &from,
            match taken {
                Ok(()) => done(format!("[call {number} was given the text]")),
                Err(why) => refused("bash_input", &why),
            },
        );
    }

    /// The input still waits. The runner goes on trying, and takes no other until then.
    pub(super) fn on_input_wait_over(&mut self, write: u64) {
        let pending = self.job.write.as_mut().filter(|pending| pending.number == write);
        let Some(from) = pending.and_then(|pending| pending.from.take()) else { return };
        let number = self.args.facts.call.id.number;
        let line =
            format!("[call {number} has not read all of the text yet; the rest waits for it]");
        answer(&from, done(line));
    }

    fn answer_read(&mut self, from: &ActorRef<CallMsg>) {
        if has_ended(from) {
            // A person stopped it: the output is for the next one.
            return;
        }
        let number = self.args.facts.call.id.number;
        let time = self.ran.started.map_or(0, |at| crate::unix_time::now_ms().saturating_sub(at));
        let line = format!("[call {number} runs, since {} s]", time / 1000);
        let max = self.args.facts.max_result_chars;
        answer(from, self.job.output.page(line, max));
    }

    /// The command has ended: all that wait are told. Returns the output that nobody has read.
    pub(super) fn end_job(&mut self, result: &ToolResult) -> String {
        let (number, max) = (self.args.facts.call.id.number, self.args.facts.max_result_chars);
        self.job.asks.end(&result.summary);
        for read in std::mem::take(&mut self.job.reads) {
            if has_ended(&read.from) {
                continue;
            }
            let (told, rest) = ended(number, self.job.output.take(), &result.summary, max);
            self.job.output.put_back(rest);
            answer(&read.from, told);
        }
        if let Some(from) = self.job.write.take().and_then(|write| write.from) {
            answer(&from, refused("bash_input", ENDED));
        }
        self.job.output.take()
    }
}

/// The result of reading a command that has ended, and the output that it had no room for.
pub(crate) fn ended(number: u32, output: String, summary: &str, max: u32) -> (ToolResult, String) {
    tool_specs::command_output(output, format!("[call {number} has ended: {summary}]"), max)
}

/// True for a call that takes no answer any more.
fn has_ended(call: &ActorRef<CallMsg>) -> bool {
    matches!(call.get_status(), ActorStatus::Stopping | ActorStatus::Stopped)
}

fn answer(from: &ActorRef<CallMsg>, result: ToolResult) {
    let _ = from.send_message(CallMsg::Input(CallInput::OtherAnswered(result)));
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
