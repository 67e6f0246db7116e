//! The line that says what a running turn does: its phase, for how long, how much, the last words. Pure: the view
//! gives the time, and paints the line again when a second is over.

use crate::call_gist::call_title;
use crate::call_line::calls_in_words;
use crate::cost::count;
use crate::lines::{display_width, in_time, last_lines, one_line, truncate};
use crate::screen::{ConnectionState, Screen, ScreenInput, TurnState};
use crate::screen_items::ScreenItem;
use protocol::client::{AnswerPart, ClientEvent, ClientRights, NextTry, ToClient};
use protocol::hidden::on_screen;
use protocol::ids::CallId;
use std::time::{Duration, Instant};
use unicode_width::UnicodeWidthChar;

/// A model's server that sends nothing for so long is reported.
const SILENCE: Duration = Duration::from_secs(20);
/// The fewest characters of a call's name, which may have a third of the columns.
const TITLE: usize = 20;
/// Most characters of the reason for another try.
const REASON: usize = 80;
/// The fewest columns in which last words are worth showing.
const LAST_WORDS: usize = 12;
/// Beyond a full second, so that a timer which is early by a little does not wake twice.
const SLACK: Duration = Duration::from_millis(5);

/// What the turn does.
#[derive(Debug, Clone, PartialEq, Eq)]
enum TurnPhase {
    /// The prompt is not confirmed to be on disk.
    Sent,
    /// For the first byte of the answer.
    Awaits,
    /// For this try of the request, or for its first byte.
    Retries(NextTry),
    Thinks,
    Writes,
    /// The arguments of a call of this tool come.
    WritesCall(String),
    /// A call is proposed, and does not run yet.
    CallWaits(CallId),
    Runs(CallId),
    /// So many calls run at once.
    RunsSeveral(usize),
    Asks(CallId),
}

impl TurnPhase {
    fn asks(&self) -> bool {
        matches!(self, Self::Asks(_))
    }

    /// The wait before the next try, in whole seconds.
    fn announced_wait(&self) -> Duration {
        match self {
            Self::Retries(next) => Duration::from_secs(next.wait_ms.div_ceil(1000)),
            Self::Sent
            | Self::Awaits
            | Self::Thinks
            | Self::Writes
            | Self::WritesCall(_)
            | Self::CallWaits(_)
            | Self::Runs(_)
            | Self::RunsSeveral(_)
            | Self::Asks(_) => Duration::ZERO,
        }
    }
}

/// Since when a turn is in its phase, and the line that was made last.
#[derive(Debug, Clone, Default)]
pub struct TurnClock {
    phase: Option<(TurnPhase, Instant)>,
    /// The signs of life so far, and when the last one came.
    signs: Option<(u64, Instant)>,
    made: Option<MadeLine>,
    /// When the turn began, if this terminal saw it.
    began: Option<Instant>,
}

#[derive(Debug, Clone)]
struct MadeLine {
    second: u64,
    columns: usize,
    line: LivingLine,
}

/// The line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LivingLine {
    /// One character that says if the turn works or asks.
    pub mark: &'static str,
    /// The phase with its time.
    pub phase: String,
    /// The rest.
    pub rest: String,
}

impl LivingLine {
    /// All of it.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{} {}{}", self.mark, self.phase, self.rest)
    }
}

impl TurnClock {
    /// The line of this moment; none while no turn runs. Within a second it stays as it is, unless the phase changes.
    pub fn line(&mut self, screen: &Screen, columns: usize, now: Instant) -> Option<LivingLine> {
        let Some(phase) = phase(screen) else {
            *self = Self { began: self.began, ..Self::default() };
            return None;
        };
        let signs = screen.items().progress().signs();
        if self.signs.is_none_or(|(known, _)| known != signs) {
            self.signs = Some((signs, now));
        }
        let since = match &self.phase {
            Some((known, since)) if *known == phase => *since,
            Some(_) | None => {
                self.made = None;
                now
            }
        };
        let second = now.saturating_duration_since(since).as_secs();
        // A wait that was announced is no silence.
        let silence = self.silence(since + phase.announced_wait(), now);
        let is_made = |made: &&MadeLine| (made.second, made.columns) == (second, columns);
        let line = match self.made.as_ref().filter(is_made) {
            Some(made) => made.line.clone(),
            None => line(screen, &phase, (second, silence), columns).fit(columns),
        };
        self.phase = Some((phase, since));
        self.made = Some(MadeLine { second, columns, line: line.clone() });
        Some(line)
    }

    /// Notes the beginning of a turn. `screen` has not seen the input yet.
    pub fn note(&mut self, input: &ScreenInput, screen: &Screen, now: Instant) {
        if let ScreenInput::Message(ToClient::Event { event, .. }) = input
            && let ClientEvent::Prompt { .. } = event
            && screen.connection() == ConnectionState::Live
            && screen.turn() == TurnState::Idle
        {
            self.began = Some(now);
        }
    }

    /// The item as it is shown: the end of a turn gets its time.
    #[must_use]
    pub fn timed(&mut self, item: ScreenItem, now: Instant) -> ScreenItem {
        let ScreenItem::TurnTotals(totals) = item else { return item };
        let took = self.began.take().map(|began| now.saturating_duration_since(began));
        ScreenItem::TurnTotals(Box::new(totals.lasting(took)))
    }

    /// When the line changes by itself; never while no turn runs, or while it waits for a person.
    #[must_use]
    pub fn until_next(&self, now: Instant) -> Option<Duration> {
        let (_, since) = self.phase.as_ref().filter(|(phase, _)| !phase.asks())?;
        let part = now.saturating_duration_since(*since).subsec_nanos();
        Some(Duration::from_secs(1).saturating_sub(Duration::from_nanos(u64::from(part))) + SLACK)
    }

    /// How long the model's server has sent nothing since this moment, if that is long.
    fn silence(&self, from: Instant, now: Instant) -> Option<Duration> {
        let (_, since) = self.signs?;
        Some(now.saturating_duration_since(since.max(from))).filter(|silence| *silence >= SILENCE)
    }
}

fn phase(screen: &Screen) -> Option<TurnPhase> {
    if screen.connection() != ConnectionState::Live {
        return None;
    }
    if screen.turn() == TurnState::Idle {
        return screen.has_unconfirmed().then_some(TurnPhase::Sent);
    }
    let items = screen.items();
    if let Some(question) = items.questions().first() {
        return Some(TurnPhase::Asks(question.call.clone()));
    }
    let mut open = items.open().iter().filter(|call| !call.is_in_background());
    if let Some(call) = items.only_call() {
        let id = call.call.id.clone();
        return Some(if call.runs() { TurnPhase::Runs(id) } else { TurnPhase::CallWaits(id) });
    }
    if open.next().is_some() {
        return Some(TurnPhase::RunsSeveral(open.count() + 1));
    }
    if let Some((next, _)) = items.progress().retry() {
        return Some(TurnPhase::Retries(next));
    }
    Some(match items.progress().part() {
        None => TurnPhase::Awaits,
        Some(AnswerPart::Thinking) => TurnPhase::Thinks,
        Some(AnswerPart::Text) => TurnPhase::Writes,
        Some(AnswerPart::Tool | AnswerPart::Arguments) => {
            TurnPhase::WritesCall(items.progress().tool().to_owned())
        }
    })
}

/// The parts of a line, before they are fitted into the terminal.
struct Parts {
    mark: &'static str,
    phase: String,
    /// The most important first.
    facts: Vec<String>,
    /// Why there is another try.
    reason: String,
    last: String,
    end: &'static str,
}

fn line(
    screen: &Screen,
    phase: &TurnPhase,
    (second, silence): (u64, Option<Duration>),
    columns: usize,
) -> Parts {
    let longest_title = (columns / 3).max(TITLE);
    let progress = screen.items().progress();
    let may_answer = screen.options().rights == ClientRights::Full;
    let mut facts = Vec::new();
    let mut last = String::new();
    let mut is_of_server = true;
    let mut countdown = None;
    let mut reason = String::new();
    let wait = phase.announced_wait().as_secs();
    let text = match phase {
        TurnPhase::Sent => "sent".to_owned(),
        TurnPhase::Awaits => "waits for the model".to_owned(),
        TurnPhase::Retries(NextTry { attempt, of, wait_ms: _ }) => {
            reason = progress.retry().map(|(_, why)| one_line(why, REASON)).unwrap_or_default();
            countdown = wait.checked_sub(second).filter(|left| *left > 0);
            match countdown {
                Some(_) => format!("retrying {attempt}/{of}"),
                None => format!("waits for the model, try {attempt}/{of}"),
            }
        }
        TurnPhase::Thinks => {
            facts.push(format!("~{} tokens", count(progress.tokens())));
            last = words(screen.items().thinking());
            "thinks".to_owned()
        }
        TurnPhase::Writes => {
            facts.push(format!("~{} tokens", count(progress.tokens())));
            "writes".to_owned()
        }
        TurnPhase::WritesCall(tool) => {
            facts.extend(lines_in_words(progress.lines()));
            format!("writes a call of {}", one_line(tool, longest_title))
        }
        TurnPhase::CallWaits(_) | TurnPhase::Runs(_) => {
            is_of_server = false;
            let call = screen.items().only_call();
            let works = call.and_then(|call| call.agent_works.clone());
            facts.extend(match works {
                Some(_) => call.and_then(|call| call.agent_calls).map(calls_in_words),
                None => call.and_then(|call| lines_in_words(call.lines)),
            });
            let printed = || call.and_then(|call| last_lines(&call.tail, 1).pop());
            last = works.or_else(printed).unwrap_or_default();
            let title = call.map(|call| call_title(&call.call)).unwrap_or_default();
            let waits = if matches!(phase, TurnPhase::Runs(_)) { "" } else { " (waits to start)" };
            format!("{}{waits}", one_line(&title, longest_title))
        }
        TurnPhase::RunsSeveral(calls) => {
            is_of_server = false;
            format!("{calls} calls run")
        }
        TurnPhase::Asks(_) if may_answer => "waits for your answer".to_owned(),
        TurnPhase::Asks(_) => "waits for an answer".to_owned(),
    };
    let asks = phase.asks();
    if let Some(silence) = silence.filter(|_| is_of_server && !asks) {
        facts.insert(0, format!("no byte for {} s", silence.as_secs()));
    }
    let may_stop = may_answer && !asks && *phase != TurnPhase::Sent;
    Parts {
        mark: match (asks, countdown) {
            (true, _) => "?",
            (false, Some(_)) => "↻",
            (false, None) => "●",
        },
        phase: match countdown {
            Some(left) => format!("{text} in {}", in_time(left)),
            // Nobody is woken up to count while a person thinks.
            None if asks => text,
            None => format!("{text} · {}", in_time(second.saturating_sub(wait))),
        },
        facts,
        reason,
        last: words(&last),
        end: if may_stop { " · Esc stops" } else { "" },
    }
}

impl Parts {
    /// In a narrow terminal the last facts are left out; the reason and the last words have the columns that remain.
    fn fit(mut self, columns: usize) -> LivingLine {
        let width = |text: &str| display_width(text);
        let fixed = width(self.mark) + 1 + width(&self.phase) + width(self.end);
        let mut room = columns.saturating_sub(fixed);
        let facts_width =
            |facts: &[String]| facts.iter().map(|fact| width(fact) + 3).sum::<usize>();
        while facts_width(&self.facts) > room {
            self.facts.pop();
        }
        room -= facts_width(&self.facts);
        let mut rest: String = self.facts.iter().map(|fact| format!(" · {fact}")).collect();
        if !self.reason.is_empty() && room >= LAST_WORDS {
            let reason = truncate(&self.reason, room - 3);
            room -= width(&reason) + 3;
            rest.push_str(&format!(" · {reason}"));
        }
        if !self.last.is_empty() && room >= LAST_WORDS {
            rest.push_str(&format!(" · {}", end_of(&self.last, room - 3)));
        }
        rest.push_str(self.end);
        LivingLine { mark: self.mark, phase: self.phase, rest }
    }
}

fn lines_in_words(lines: usize) -> Option<String> {
    match lines {
        0 => None,
        1 => Some("1 line".to_owned()),
        count => Some(format!("{count} lines")),
    }
}

/// A text on one line, its end.
fn words(text: &str) -> String {
    // Only the end is shown, and a model may think for long.
    let start = text.char_indices().rev().nth(1000).map_or(0, |(at, _)| at);
    on_screen(&text[start..]).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The end of a text that fits into so many columns.
fn end_of(text: &str, columns: usize) -> String {
    if display_width(text) <= columns {
        return text.to_owned();
    }
    let mut used = 1;
    let mut first = text.len();
    for (at, c) in text.char_indices().rev() {
        used += c.width().unwrap_or(1);
        if used > columns {
            break;
        }
        first = at;
    }
    format!("…{}", &text[first..])
}

#[cfg(test)]
mod tests;
