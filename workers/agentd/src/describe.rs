//! The words of each record for a person, chosen in one place for `show` and for `export` to Markdown, which lay
//! them out. The page of `export` adds up the times of a session instead. It takes the words for summaries and for
//! the ends of turns from here.

use client::{in_dollars, one_line};
use journal::{
    BasisRecord, CallProgress, CallSpan, CompactionCause, ContentBlock, JournalEntry,
    JournalRecord, Outcome, SessionHeader, SummaryStep, TurnEnd,
};
use std::collections::BTreeMap;

/// Longest line about a call, in characters.
pub(crate) const LINE: usize = 120;

/// A record in words, or the parts of it that a view lays out.
pub(crate) enum Description<'a> {
    /// The session began.
    Began(&'a SessionHeader),
    /// A person asked.
    Prompt(&'a str),
    /// A person's words joined the running turn.
    Joined(&'a str),
    /// The text of an answer.
    Answer(String),
    /// The model, or something else, asked for a call.
    Proposed {
        call: u32,
        tool: &'a str,
        input: &'a str,
    },
    Allowed {
        call: u32,
        basis: &'a BasisRecord,
    },
    Denied {
        call: u32,
        basis: &'a BasisRecord,
        message: &'a str,
    },
    /// Another step of a call, to follow its number.
    OfCall {
        call: u32,
        step: String,
    },
    Ended(EndedCall<'a>),
    CutShort {
        call: u32,
        cause: &'a str,
        ran: &'static str,
        tampered: &'a [String],
    },
    /// All changed protected files that no person has accepted.
    Tampered(&'a [String]),
    /// A step of the conversation.
    Turn(String),
    /// A person changed a setting.
    Setting(String),
    /// A kind of record that this build does not know.
    Unknown(&'a str),
}

/// The end of a call.
pub(crate) struct EndedCall<'a> {
    pub(crate) call: u32,
    pub(crate) outcome: &'a Outcome,
    pub(crate) summary: &'a str,
    /// For the model.
    pub(crate) text: &'a str,
    /// The whole text: the model got only a part of a long one.
    pub(crate) whole: &'a str,
    /// The call that produced a cached result.
    pub(crate) cached_from: Option<u32>,
}

/// Describes the records of a session, which are given in order.
#[derive(Default)]
pub(crate) struct Describer {
    /// When the question of each call was first asked, in milliseconds of Unix time.
    asked: BTreeMap<u32, u64>,
}

impl Describer {
    /// Describes the next record; `None` for one that people do not see.
    pub(crate) fn describe<'a>(&mut self, entry: &'a JournalEntry) -> Option<Description<'a>> {
        Some(match &entry.record {
            JournalRecord::Session(header) => Description::Began(header),
            JournalRecord::Prompt { text, .. } => Description::Prompt(text),
            JournalRecord::Joined { text } => Description::Joined(text),
            JournalRecord::Answer { blocks, .. } => {
                let text = texts(blocks);
                if text.trim().is_empty() {
                    return None;
                }
                Description::Answer(text)
            }
            JournalRecord::Proposed { call, tool, input, .. } => {
                Description::Proposed { call: *call, tool, input }
            }
            JournalRecord::Asked { call, .. } => {
                self.asked.entry(*call).or_insert(entry.time);
                return None;
            }
            JournalRecord::Approved { call, basis, .. } => {
                Description::Allowed { call: *call, basis }
            }
            JournalRecord::Denied { call, basis, message } => {
                Description::Denied { call: *call, basis, message }
            }
            JournalRecord::Expired { call } => {
                let step = format!("was not answered in time{}", self.waited(*call, entry.time));
                Description::OfCall { call: *call, step }
            }
            JournalRecord::Answered { call, action, by } => {
                let step = server_question(action, by.as_deref());
                Description::OfCall { call: *call, step }
            }
            JournalRecord::Background { call, .. } => {
                let step = "goes on in the background".to_owned();
                Description::OfCall { call: *call, step }
            }
            JournalRecord::Result { call, outcome, summary, text, full, recalled, .. } => {
                let (whole, cached_from) = (full.as_ref().unwrap_or(text), *recalled);
                Description::Ended(EndedCall {
                    call: *call,
                    outcome,
                    summary,
                    text,
                    whole,
                    cached_from,
                })
            }
            JournalRecord::Interrupted { call, cause, progress, tampered, .. } => {
                Description::CutShort { call: *call, cause, ran: ran(*progress), tampered }
            }
            JournalRecord::Tampered { names } => Description::Tampered(names),
            JournalRecord::TurnEnded { end } => Description::Turn(ending(end)),
            JournalRecord::Summary(step) => Description::Turn(summary(step)),
            JournalRecord::Changed {
                network,
                mode,
                added,
                model,
                pinned,
                unpinned,
                appended_system,
                cost_limit,
                flag,
                name,
                by,
            } => {
                let network = network.as_ref().map(|word| format!("network {word}"));
                let mode = mode.as_ref().map(|name| format!("mode {name}"));
                let added = added.as_ref().map(|path| format!("added {}", path.0.display()));
                let model = model.as_ref().map(|name| format!("model {name}"));
                let pinned = pinned.as_ref().map(|file| format!("pinned {file}"));
                let unpinned = unpinned.as_ref().map(|file| format!("{file} unpinned"));
                let appended = appended_system
                    .as_ref()
                    .map(|text| format!("system prompt ends with: {}", one_line(text, LINE)));
                let cost = cost_limit.map(|most| format!("cost limit {}", in_dollars(most)));
                let flag =
                    flag.as_ref().map(|(key, value)| format!("{key} {}", one_line(value, LINE)));
                let name = name.as_ref().map(|name| match one_line(name, LINE).as_str() {
                    "" => "no name".to_owned(),
                    name => format!("name {name}"),
                });
                let all =
                    [network, mode, added, model, pinned, unpinned, appended, cost, flag, name];
                // The name of a session does not go along into a copy.
                let what = all.into_iter().flatten().next()?;
                Description::Setting(format!("{what} (by {by})"))
            }
            JournalRecord::Learned { rule, by, unwritten: _ } => {
                Description::Setting(match rule.line {
                    0 => format!("{} allowed in {} (by {by})", rule.text, rule.file),
                    line => {
                        format!("{} allowed from now on (by {by}; {}:{line})", rule.text, rule.file)
                    }
                })
            }
            JournalRecord::Unknown { kind, fields: _ } => Description::Unknown(kind),
            // A queued prompt is recorded again when its turn begins, and a result names the sub-agent.
            JournalRecord::Queued { .. }
            | JournalRecord::TakenBack { .. }
            | JournalRecord::Spent { .. }
            | JournalRecord::Closed
            | JournalRecord::Compacted { .. }
            | JournalRecord::Seen { .. }
            | JournalRecord::Start { .. } => return None,
        })
    }

    /// The wait for an answer that ended at this time, to follow a sentence.
    fn waited(&mut self, call: u32, now: u64) -> String {
        let waited = self.asked.remove(&call).map(|asked| now.saturating_sub(asked));
        let rounded = waited.map(|ms| if ms < 1000 { ms } else { ms / 1000 * 1000 });
        rounded
            .map_or_else(String::new, |ms| format!(" (asked for {})", config::written_duration(ms)))
    }
}

/// The end of a server's question.
fn server_question(action: &str, by: Option<&str>) -> String {
    let by = by.map_or_else(|| "nobody".to_owned(), |by| one_line(by, LINE));
    format!("asked a question of its MCP server: {} by {by}", one_line(action, LINE))
}

/// How far a call came that was cut short.
pub(crate) fn ran(progress: CallProgress) -> &'static str {
    match progress {
        CallProgress::NeverStarted => "⊘ not run: it never started",
        CallProgress::MayHaveRun => "? unknown: it may have run",
    }
}

/// A step of a summary that replaces messages.
pub(crate) fn summary(record: &SummaryStep) -> String {
    match record {
        SummaryStep::Asked { dropped, cause, .. } => {
            let why = match cause {
                CompactionCause::Person => "you asked for it",
                CompactionCause::Full => "the context is nearly full",
            };
            format!("the model is asked for a summary of the first {dropped} messages: {why}")
        }
        SummaryStep::Written { text, .. } => {
            format!("this summary by the model replaces the messages before it:\n{text}")
        }
        SummaryStep::Failed { reason, .. } => format!("the model wrote no summary: {reason}"),
        SummaryStep::Edited { text } => format!("you changed the summary:\n{text}"),
    }
}

fn texts(blocks: &[ContentBlock]) -> String {
    let mut texts = Vec::new();
    for block in blocks {
        if let ContentBlock::Text { text } = block {
            texts.push(text.as_str());
        }
    }
    texts.join("\n\n")
}

/// How a turn ended, in words.
pub(crate) fn ending(end: &TurnEnd) -> String {
    match end {
        TurnEnd::Done => "the turn ended".to_owned(),
        TurnEnd::RoundsUsedUp { rounds } => format!("the turn used up its {rounds} rounds"),
        TurnEnd::CostReached { spent: Some(spent), most } => format!(
            "the session had cost {}, and its limit was {}",
            in_dollars(*spent),
            in_dollars(*most)
        ),
        TurnEnd::CostReached { spent: None, most } => {
            format!("an answer had no known cost, and the limit was {}", in_dollars(*most))
        }
        TurnEnd::CallsUsedUp { calls, of: CallSpan::Turn } => {
            format!("the turn used up its {calls} calls")
        }
        TurnEnd::CallsUsedUp { calls, of: CallSpan::Session } => {
            format!("the session used up its {calls} calls")
        }
        TurnEnd::Declined { explanation } => format!("the model declined: {explanation}"),
        TurnEnd::Truncated => "the answer was truncated at its token limit".to_owned(),
        TurnEnd::StoppedByHook { reason } => format!("a hook ended the turn: {reason}"),
        TurnEnd::Interrupted => "the turn was stopped".to_owned(),
        TurnEnd::ProviderFailed { kind: _, message } => message.clone(),
        TurnEnd::ProcessDied(died) => format!("the turn was cut short: {died}"),
    }
}
