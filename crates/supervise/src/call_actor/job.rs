//! A command that the conversation does not wait for: its unread output, and the calls that read it,
//! write to it or end it. Used by the call actor.

use super::state::CallState;
use crate::call::CallInput;
use crate::messages::{CallMsg, CallToSession};
use crate::unread_output::UnreadOutput;
use protocol::call::{Outcome, ToolResult};
use protocol::tool::ToTool;
use ractor::ActorRef;
use regex::Regex;
use std::time::Duration;
use tools::{BACKGROUND_MS, JobRequest};

/// A command that ends within this time gives its result at once, although it was to run in the
/// background: most of those are servers that could not start.
pub(super) const AT_ONCE: Duration = Duration::from_secs(1);
/// How long a call waits for the command to read its input.
const INPUT: Duration = Duration::from_secs(5);
/// A runner ends a command in the background after [`BACKGROUND_MS`]. A call that has not ended then is
/// killed.
const OVERDUE: Duration = Duration::from_millis(BACKGROUND_MS + 30_000);

/// The output of a command, and the calls about it that wait.
#[derive(Default)]
pub(super) struct Job {
    pub(super) output: UnreadOutput,
    /// Calls that wait for output.
    reads: Vec<WaitingRead>,
    /// The number of the next wait.
    next: u64,
    /// The call whose input the command has not read yet.
    write: Option<ActorRef<CallMsg>>,
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
    /// Lets the conversation go on.
    pub(super) fn detach(&mut self, myself: &ActorRef<CallMsg>) {
        self.send_runner(&ToTool::Background);
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
        let max = self.args.facts.max_result_chars;
        let text = tools::command_output(self.job.output.take(), line, max).text;
        let _ = self.args.session.send_message(CallToSession::Detached { call, text }.into());
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
        match request {
            JobRequest::Output { call: _, wait_ms, pattern } => {
                // It was checked before.
                let pattern = pattern.and_then(|pattern| Regex::new(&pattern).ok());
                let until = pattern.map_or(ReadUntil::Output, ReadUntil::Line);
                if until.is_due(&self.job.output) || wait_ms == 0 {
                    return self.answer_read(&from);
                }
                let number = self.wait(from, until);
                let over = move || CallMsg::JobWaitOver(number);
                self.timers.others.push(myself.send_after(Duration::from_millis(wait_ms), over));
            }
            JobRequest::Input { call: _, text, then } => {
                if self.job.write.is_some() {
                    let why = "the command has not read the earlier input yet";
                    return answer(&from, refused("bash_input", why));
                }
                self.job.write = Some(from);
                self.send_runner(&ToTool::Input { text, then });
                let over = || CallMsg::InputWaitOver;
                self.timers.others.push(myself.send_after(INPUT, over));
            }
            JobRequest::Stop { call: _ } => {
                // Its answer is the command's end.
                self.wait(from, ReadUntil::End);
                let _ = myself.send_message(CallMsg::Input(CallInput::Cancel));
            }
            JobRequest::Foreground | JobRequest::Background => {}
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
        let Some(from) = self.job.write.take() else { return };
        let number = self.args.facts.call.id.number;
        answer(
            &from,
            match taken {
                Ok(()) => done(format!("[call {number} was given the text]")),
                Err(why) => refused("bash_input", &why),
            },
        );
    }

    /// The input still waits. The runner goes on trying.
    pub(super) fn on_input_wait_over(&mut self) {
        let Some(from) = self.job.write.take() else { return };
        let number = self.args.facts.call.id.number;
        let line =
            format!("[call {number} has not read all of the text yet; the rest waits for it]");
        answer(&from, done(line));
    }

    fn answer_read(&mut self, from: &ActorRef<CallMsg>) {
        let number = self.args.facts.call.id.number;
        let time = self.ran.started.map_or(0, |at| crate::unix_time::now_ms().saturating_sub(at));
        let line = format!("[call {number} runs, since {} s]", time / 1000);
        let max = self.args.facts.max_result_chars;
        answer(from, tools::command_output(self.job.output.take(), line, max));
    }

    /// The command has ended: all that wait are told. Returns the output that nobody has read.
    pub(super) fn end_job(&mut self, result: &ToolResult) -> String {
        let (number, max) = (self.args.facts.call.id.number, self.args.facts.max_result_chars);
        for read in std::mem::take(&mut self.job.reads) {
            let output = self.job.output.take();
            answer(&read.from, ended(number, output, &result.summary, max));
        }
        if let Some(from) = self.job.write.take() {
            answer(&from, refused("bash_input", "the command has ended"));
        }
        self.job.output.take()
    }
}

/// The result of reading a command that has ended.
pub(crate) fn ended(number: u32, output: String, summary: &str, max: u32) -> ToolResult {
    tools::command_output(output, format!("[call {number} has ended: {summary}]"), max)
}

fn answer(from: &ActorRef<CallMsg>, result: ToolResult) {
    let _ = from.send_message(CallMsg::Input(CallInput::OtherAnswered(result)));
}

fn done(line: String) -> ToolResult {
    let summary = line.trim_matches(['[', ']']).to_owned();
    ToolResult { outcome: Outcome::Done, text: line, summary, is_error: false, code: None }
}

fn refused(tool: &str, why: &str) -> ToolResult {
    ToolResult::error(Outcome::Failed, "no_input", tool, why, "See bash_output.")
}
