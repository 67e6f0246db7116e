//! Rewinding: the places that a person may go back to, and the step after the files are restored.
//! The conversation goes back as a fork, so that the old session keeps everything. Pure.

use super::{ConnectionState, Focus, Pending, Screen, ScreenEffect, SwitchTo, TurnState};
use crate::lines::one_line;
use crate::screen_items::ScreenItem;
use protocol::client::{ClientEvent, NumberedEvent, SessionStart, WhileBusy};
use protocol::content::ContentBlock;
use protocol::ids::SessionId;
use protocol::session::TurnEnd;

/// Characters of a place in the list.
const TEXT: usize = 100;

/// What goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RewindScope {
    /// The conversation.
    Conversation,
    /// The files that calls changed since.
    Files,
    /// First the files, then the conversation.
    Both,
}

impl RewindScope {
    /// All of them, by name.
    pub const ALL: [(&'static str, Self); 3] =
        [("both", Self::Both), ("conversation", Self::Conversation), ("files", Self::Files)];

    /// The scope of that name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, scope)| scope)
    }
}

/// A place in the conversation. Going back to it is going back to the moment before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewindPoint {
    /// The number of its record.
    pub seq: u64,
    /// What stands there.
    pub kind: RewindKind,
    /// The first call behind it.
    pub first_call: Option<u32>,
}

/// What stands at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RewindKind {
    /// A prompt, as it was typed.
    Prompt(String),
    /// A round: the beginning of its answer, or its tools.
    Round(String),
}

impl RewindPoint {
    /// One line about it.
    #[must_use]
    pub fn title(&self) -> String {
        match &self.kind {
            RewindKind::Prompt(text) => one_line(text, TEXT),
            RewindKind::Round(text) => format!("  round: {}", one_line(text, TEXT)),
        }
    }
}

/// Places that this terminal has received, and a rewind that is on its way.
#[derive(Debug, Default)]
pub(crate) struct RewindState {
    places: Places,
    /// The files are being restored; the conversation follows from this record on.
    awaited: Option<AwaitedFork>,
    /// A copy was asked for, before this place.
    asked: Option<RewindPoint>,
}

/// The places of a part of the conversation without gaps.
#[derive(Debug, Default)]
struct Places {
    points: Vec<RewindPoint>,
    /// The first call before all of them: it belongs to a place of an earlier part.
    lead: Option<u32>,
}

/// The fork that follows once the files are restored.
#[derive(Debug)]
struct AwaitedFork {
    point: RewindPoint,
    /// The words that restore the files, as the supervisor repeats them.
    words: String,
    /// Their turn has begun.
    begun: bool,
}

impl RewindState {
    /// Takes in one recorded event.
    pub(crate) fn take(&mut self, seq: u64, event: &ClientEvent) {
        self.places.add(seq, event);
    }

    /// These prompts were not taken: no copy follows the restoring of files that did not begin.
    pub(crate) fn given_back(&mut self, texts: &[String]) {
        self.awaited.take_if(|awaited| !awaited.begun && texts.contains(&awaited.words));
    }

    /// Takes in events that are older than all before.
    pub(crate) fn take_earlier(&mut self, events: &[NumberedEvent]) {
        let mut earlier = Places::default();
        events.iter().for_each(|it| earlier.add(it.seq, &it.event));
        self.places = earlier.before(std::mem::take(&mut self.places));
    }
}

impl Places {
    fn add(&mut self, seq: u64, event: &ClientEvent) {
        let mut place = |kind| self.points.push(RewindPoint { seq, kind, first_call: None });
        if let ClientEvent::Prompt { text, .. } = event {
            place(RewindKind::Prompt(text.clone()));
        } else if let ClientEvent::Answer { blocks, .. } = event {
            place(RewindKind::Round(gist(blocks)));
        } else if let ClientEvent::Proposed { call } = event {
            self.precede(call.id.number);
        }
    }

    /// This call comes behind all these places.
    fn precede(&mut self, call: u32) {
        if self.points.is_empty() {
            self.lead.get_or_insert(call);
        }
        let open = self.points.iter_mut().rev().take_while(|point| point.first_call.is_none());
        open.for_each(|point| point.first_call = Some(call));
    }

    /// Both parts, this one first.
    fn before(mut self, mut later: Self) -> Self {
        let first = later.points.iter().find_map(|point| point.first_call);
        if let Some(call) = later.lead.or(first) {
            self.precede(call);
        }
        self.points.append(&mut later.points);
        self
    }
}

/// The beginning of an answer's text, else its tools.
fn gist(blocks: &[ContentBlock]) -> String {
    let mut tools = Vec::new();
    for block in blocks {
        match block {
            ContentBlock::Text { text } if !text.trim().is_empty() => return text.clone(),
            ContentBlock::ToolUse { name, .. } => tools.push(name.as_str()),
            ContentBlock::Text { .. }
            | ContentBlock::Image { .. }
            | ContentBlock::Thinking { .. }
            | ContentBlock::ToolResult { .. } => {}
        }
    }
    tools.join(", ")
}

impl Screen {
    /// The places to go back to that this terminal has received, the newest first. An answer right
    /// behind its prompt is no place of its own.
    #[must_use]
    pub fn rewind_points(&self) -> Vec<RewindPoint> {
        let points = &self.seqs.rewind.places.points;
        let is_place = |at: usize| {
            let before = at.checked_sub(1).and_then(|before| points.get(before));
            let follows_prompt =
                before.is_some_and(|before| matches!(before.kind, RewindKind::Prompt(_)));
            matches!(points[at].kind, RewindKind::Prompt(_)) || !follows_prompt
        };
        (0..points.len()).rev().filter(|at| is_place(*at)).map(|at| points[at].clone()).collect()
    }

    /// True if there may be places that this terminal has not received.
    #[must_use]
    pub fn has_earlier_places(&self) -> bool {
        // Record 1 is the header, which no event shows.
        self.seqs.first.is_some_and(|first| first > 2)
    }

    /// True if Esc has nothing to stop: no turn runs.
    pub(super) fn is_at_rest(&self) -> bool {
        self.focus == Focus::Line && self.turn == TurnState::Idle && self.asked().is_none()
    }

    /// Esc twice clears the line, or rewinds where it is empty.
    pub(super) fn escape_at_rest(&mut self, pending: Pending) -> Vec<ScreenEffect> {
        match (pending == Pending::Escaped, self.editor.is_empty()) {
            (_, true) if !self.may_answer() => return Vec::new(),
            (true, true) => return self.list_rewind_points(),
            // Hands of vim press it often.
            (_, false) if self.editor.is_normal_mode() => return Vec::new(),
            (true, false) => {
                self.editor.clear();
                return self.say_hint("cleared; Up brings it back");
            }
            (false, _) => {}
        }
        self.pending = Pending::Escaped;
        self.say_hint(match self.editor.is_empty() {
            true => "Esc again to rewind",
            false => "Esc again to clear the line; Up brings it back",
        })
    }

    /// The list of places, for views without a picker.
    pub(super) fn list_rewind_points(&mut self) -> Vec<ScreenEffect> {
        let points = self.rewind_points();
        if points.is_empty() {
            return self.say_hint("there is nothing to rewind to");
        }
        let mut text = String::from(
            "rewind to the moment before: type :rewind NUMBER both, conversation or files\n",
        );
        for point in points.iter().rev() {
            text.push_str(&format!("{:>6}  {}\n", point.seq, point.title()));
        }
        if self.has_earlier_places() {
            text.push_str("        :earlier shows earlier events, then :rewind their places\n");
        }
        vec![ScreenEffect::Show(ScreenItem::Note(text))]
    }

    /// Goes back to the moment before this record.
    pub(super) fn rewind(&mut self, seq: u64, scope: RewindScope) -> Vec<ScreenEffect> {
        let found = self.seqs.rewind.places.points.iter().find(|point| point.seq == seq).cloned();
        let Some(point) = found else {
            return self
                .say_hint(&format!("no prompt or round has the number {seq}; :rewind lists them"));
        };
        if self.connection != ConnectionState::Live {
            return self.say_hint("not connected yet; try again in a moment");
        }
        if scope == RewindScope::Conversation {
            return self.fork_before(point);
        }
        if self.turn == TurnState::Working {
            return self.say_hint("a turn runs: stop it first, then rewind the files");
        }
        let Some(call) = point.first_call else {
            return match scope {
                RewindScope::Both => self.fork_before(point),
                RewindScope::Files | RewindScope::Conversation => {
                    self.say_hint("no call ran since then: there are no files to rewind")
                }
            };
        };
        let words = format!(":rewind files {call}");
        if scope == RewindScope::Both {
            let words = words.clone();
            self.seqs.rewind.awaited = Some(AwaitedFork { point, words, begun: false });
        }
        self.prompt(words, WhileBusy::Queue)
    }

    /// The files of a rewind are restored, or not: the conversation follows, or stays.
    pub(super) fn follow_rewind(&mut self, event: &ClientEvent) -> Vec<ScreenEffect> {
        let Some(awaited) = &mut self.seqs.rewind.awaited else { return Vec::new() };
        if let ClientEvent::Prompt { text, .. } = event {
            awaited.begun |= *text == awaited.words;
            return Vec::new();
        }
        let ClientEvent::TurnEnded { end } = event else { return Vec::new() };
        if !awaited.begun {
            return Vec::new();
        }
        let Some(AwaitedFork { point, .. }) = self.seqs.rewind.awaited.take() else {
            return Vec::new();
        };
        if *end == TurnEnd::Done {
            return self.fork_before(point);
        }
        let text = format!(
            "the files were not all restored, so the conversation stays where it is; \
             `:rewind {} conversation` takes it back without them",
            point.seq
        );
        vec![ScreenEffect::Show(ScreenItem::Error(text))]
    }

    fn fork_before(&mut self, point: RewindPoint) -> Vec<ScreenEffect> {
        let Some(of) = self.session().cloned() else { return Vec::new() };
        self.switch_to = SwitchTo::Rewound;
        let at = Some(point.seq.saturating_sub(1));
        self.seqs.rewind.asked = Some(point);
        vec![ScreenEffect::Open(SessionStart::Fork { of, at })]
    }

    /// The copy is open: the text of the prompt that it goes back before.
    pub(super) fn take_rewound(&mut self) -> Option<String> {
        match self.seqs.rewind.asked.take()?.kind {
            RewindKind::Prompt(text) => Some(text),
            RewindKind::Round(_) => None,
        }
    }

    /// The copy was asked for and did not come.
    pub(super) fn not_rewound(&mut self) -> Option<ScreenEffect> {
        let point = self.seqs.rewind.asked.take()?;
        let text = format!(
            "the copy was not made, so the conversation stays where it is; \
             `:rewind {} conversation` tries again",
            point.seq
        );
        Some(ScreenEffect::Show(ScreenItem::Error(text)))
    }
}

/// What is said in the session that a rewind opened.
pub(super) fn rewound_note(session: &SessionId, before: &SessionId) -> String {
    format!(
        "rewound: this is session {session}, a copy of {before} up to there; `agentd attach {before}` \
         returns to the whole conversation"
    )
}
