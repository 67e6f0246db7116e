//! The list of answers below an open question: its rows, its cursor, and what Enter does with them. Pure.
//!
//! Only Enter answers. It answers with the row that the cursor marks, and the cursor marks the first row only as long
//! as nothing was typed: from the first character on, an arrow has to mark a row again. So no Enter behind a typed
//! text allows anything that the person has not chosen.

use super::answering::{Answered, Answering};
use super::editor::Editor;
use super::entry_line::{EntryLine, EntryUse};
use super::given_answers::GivenAnswers;
use super::{Focus, QuestionShown, RulePlace};
use protocol::hidden::on_screen;
use protocol::ids::CallId;
use protocol::judgement::{
    Ask, AskedOption, AskedQuestion, PermissionMode, PersonAnswer, Picks, Question,
};

/// An answer of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Allow the call this once.
    Once,
    /// Allow all that this rule matches, until the session ends.
    Session(String),
    /// Shows the rule that would be written, and its place.
    Always,
    /// Approve the plan or allow the call, with this mode from then on.
    Mode(PermissionMode),
    /// Opens the form of a server.
    Fill,
    /// The page of a server was visited.
    Visited,
    /// An option of a question of the model, by its place.
    Pick(usize, PickRow),
    /// The marked options, or the text of the input line, are the answer to the model.
    Finish,
    /// No.
    Deny,
    /// No, and the turn ends.
    Stop,
}

/// How the row of an option looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PickRow {
    /// Enter chooses it.
    Only(String),
    /// Enter marks it.
    Unmarked(String),
    /// It is marked.
    Marked(String),
}

impl Choice {
    /// Those of a question, in the order of the list.
    pub(super) fn of(question: &Question, answering: &Answering) -> Vec<Self> {
        let mut choices = match &question.ask {
            Ask::Call { rules, .. } => {
                let lasting = |rule: &String| [Self::Session(rule.clone()), Self::Always];
                let lasting = rules.first().map(lasting).into_iter().flatten();
                std::iter::once(Self::Once).chain(lasting).collect()
            }
            Ask::Plan { modes } => {
                modes.iter().filter(|mode| asks_people(**mode)).copied().map(Self::Mode).collect()
            }
            Ask::Form { .. } => vec![Self::Fill],
            Ask::Visit => vec![Self::Visited],
            Ask::Choose { questions } => {
                answering.at(questions).map(|asked| picks(asked, answering)).unwrap_or_default()
            }
        };
        choices.extend([Self::Deny, Self::Stop]);
        // The others keep their numbers where a mode is offered.
        match &question.ask {
            Ask::Call { modes, .. } => choices.extend(modes.iter().copied().map(Self::Mode)),
            Ask::Plan { modes } => {
                let silent = modes.iter().filter(|mode| !asks_people(**mode));
                choices.extend(silent.copied().map(Self::Mode));
            }
            Ask::Form { .. } | Ask::Visit | Ask::Choose { .. } => {}
        }
        choices
    }

    /// True if the call, the plan or the server gets its yes by it.
    pub(crate) fn allows(&self) -> bool {
        match self {
            Self::Once
            | Self::Session(_)
            | Self::Always
            | Self::Mode(_)
            | Self::Fill
            | Self::Visited => true,
            Self::Pick(..) | Self::Finish | Self::Deny | Self::Stop => false,
        }
    }

    /// The answer that Enter gives on its row. None where a line is filled in first. A reason is part of its answer.
    pub(crate) fn answer(&self, note: &str) -> Option<PersonAnswer> {
        match self {
            Self::Once | Self::Visited => Some(PersonAnswer::Once),
            Self::Session(rule) => Some(PersonAnswer::Session(rule.clone())),
            Self::Mode(mode) => Some(PersonAnswer::Mode(*mode)),
            Self::Deny => Some(PersonAnswer::Deny(note.to_owned())),
            Self::Stop => Some(PersonAnswer::Stop),
            Self::Always | Self::Fill | Self::Pick(..) | Self::Finish => None,
        }
    }

    /// The row of the list.
    pub(crate) fn label(&self, question: &Question) -> String {
        match self {
            Self::Once => "Allow once".to_owned(),
            Self::Session(rule) => format!("Allow `{}` for this session", on_screen(rule)),
            Self::Always => "Always allow…".to_owned(),
            Self::Mode(mode) if question.is_plan() => {
                format!("Approve, then mode {}{}", mode.name(), of_mode(*mode))
            }
            Self::Mode(mode) => {
                format!("Allow, then ask only about effects (mode {})", mode.name())
            }
            Self::Fill => "Fill in the form".to_owned(),
            Self::Visited => "I have finished on that page".to_owned(),
            Self::Pick(_, PickRow::Only(text)) => text.clone(),
            Self::Pick(_, PickRow::Unmarked(text)) => format!("[ ] {text}"),
            Self::Pick(_, PickRow::Marked(text)) => format!("[x] {text}"),
            Self::Finish => "Answer with what is marked or typed".to_owned(),
            Self::Deny if !question.of_model().is_empty() => "Do not answer".to_owned(),
            Self::Deny if question.is_plan() => "Plan on".to_owned(),
            Self::Deny if question.is_of_server() => "Decline".to_owned(),
            Self::Deny => "Deny".to_owned(),
            Self::Stop => "Stop the turn".to_owned(),
        }
    }

    /// What Enter does, behind the word itself.
    pub(crate) fn does(&self, question: &Question) -> String {
        match self {
            Self::Once => "allows it once".to_owned(),
            Self::Session(rule) => {
                format!("allows `{}` until the session ends", on_screen(rule))
            }
            Self::Always => "shows the rule first, and where it is written".to_owned(),
            Self::Mode(mode) if question.is_plan() => {
                format!("approves the plan; the mode is {} then", mode.name())
            }
            Self::Mode(_) => {
                "allows it; later calls run unasked in the sandbox where undo covers them"
                    .to_owned()
            }
            Self::Fill => "opens the form".to_owned(),
            Self::Visited => "tells the server that you have finished".to_owned(),
            Self::Pick(_, PickRow::Only(_)) => "answers with this".to_owned(),
            Self::Pick(_, PickRow::Unmarked(_)) => "marks it".to_owned(),
            Self::Pick(_, PickRow::Marked(_)) => "takes the mark off".to_owned(),
            Self::Finish => "gives this answer".to_owned(),
            Self::Deny if !question.of_model().is_empty() => {
                "leaves the decision to the model".to_owned()
            }
            Self::Deny if question.is_plan() => "has the model plan on".to_owned(),
            Self::Deny if question.is_of_server() => "declines".to_owned(),
            Self::Deny => "denies it".to_owned(),
            Self::Stop => "denies it and stops the turn".to_owned(),
        }
    }

    /// How a typed text goes with it. None where it stays in the line.
    pub(crate) fn note(&self, question: &Question) -> Option<&'static str> {
        match self {
            Self::Deny if question.is_of_server() => None,
            Self::Deny => Some("for this reason"),
            Self::Once | Self::Session(_) | Self::Mode(_) => Some("with this note"),
            Self::Pick(_, PickRow::Only(_)) | Self::Finish => Some("with these words"),
            // It goes with the answer behind that.
            Self::Pick(_, PickRow::Unmarked(_) | PickRow::Marked(_))
            | Self::Always
            | Self::Fill
            | Self::Visited
            | Self::Stop => None,
        }
    }
}

/// The rows of a question of the model. One without options takes words alone.
fn picks(asked: &AskedQuestion, answering: &Answering) -> Vec<Choice> {
    let row = |(at, option): (usize, &AskedOption)| {
        let text = match option.description.as_str() {
            "" => on_screen(&option.label),
            words => format!("{}: {}", on_screen(&option.label), on_screen(words)),
        };
        let row = match asked.picks {
            Picks::One => PickRow::Only(text),
            Picks::Several if answering.is_marked(at) => PickRow::Marked(text),
            Picks::Several => PickRow::Unmarked(text),
        };
        Choice::Pick(at, row)
    };
    let mut rows: Vec<Choice> = asked.options.iter().enumerate().map(row).collect();
    if rows.is_empty() || asked.picks == Picks::Several {
        rows.push(Choice::Finish);
    }
    rows
}

/// The lines of a server's form.
fn form_lines(question: &Question) -> String {
    match &question.ask {
        Ask::Form { lines } => lines.join("\n"),
        Ask::Call { .. } | Ask::Plan { .. } | Ask::Visit | Ask::Choose { .. } => String::new(),
    }
}

fn asks_people(mode: PermissionMode) -> bool {
    !matches!(mode, PermissionMode::Auto | PermissionMode::DontAsk)
}

fn of_mode(mode: PermissionMode) -> &'static str {
    if asks_people(mode) { "" } else { ", which asks nobody" }
}

/// The row that Enter answers with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cursor {
    /// This one, until a character is typed: the first, or the one of an answer that may not count.
    Offered(usize),
    /// The one that the person moved to.
    At(usize),
    /// None: something was typed since.
    Off,
}

/// A row of the list as a view shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerRow {
    /// The number in front, and the words.
    pub text: String,
    /// True for the row that Enter answers with.
    pub is_marked: bool,
}

/// The list below a question as a view shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerRows {
    /// One row above them, where the model has several questions: which one they answer.
    pub head: Option<String>,
    /// From the top.
    pub rows: Vec<AnswerRow>,
    /// One row below them: what Enter does now.
    pub enter: String,
}

/// A question with its digest: what it asks may change.
#[derive(Debug, Clone, PartialEq, Eq)]
struct QuestionKey {
    call: CallId,
    digest: String,
}

impl QuestionKey {
    fn of(question: &Question) -> Self {
        Self { call: question.call.clone(), digest: question.digest.clone() }
    }

    fn is_of(&self, question: &Question) -> bool {
        (&self.call, &self.digest) == (&question.call, &question.digest)
    }
}

/// What a number in the input line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TypedNumber {
    /// It was typed at this question, so it is an answer to it.
    Answer,
    /// It was there before, or came from elsewhere.
    Text,
}

/// The state of the list at the question that the keys reach.
#[derive(Debug)]
pub(crate) struct AnswerList {
    of: Option<QuestionKey>,
    cursor: Cursor,
    number: TypedNumber,
    /// How much of the question was painted.
    shown: QuestionShown,
    given: GivenAnswers,
    /// The line of a form, or of a rule.
    pub(super) entry: EntryLine,
    /// Those of the other questions.
    entries: Vec<(QuestionKey, EntryLine)>,
    /// The answers so far to questions of the model.
    answering: Vec<(QuestionKey, Answering)>,
}

impl Default for AnswerList {
    fn default() -> Self {
        Self {
            of: None,
            cursor: Cursor::Offered(0),
            number: TypedNumber::Text,
            shown: QuestionShown::InPart,
            given: GivenAnswers::default(),
            entry: EntryLine::default(),
            entries: Vec::new(),
            answering: Vec::new(),
        }
    }
}

impl AnswerList {
    /// The question that the keys reach, of those that are open.
    pub(super) fn question<'a>(&self, open: &'a [Question]) -> Option<&'a Question> {
        open.iter().find(|asked| self.is_at(asked))
    }

    fn is_at(&self, question: &Question) -> bool {
        self.of.as_ref().is_some_and(|key| key.is_of(question))
    }

    /// Goes to the oldest question where the present one is open no more. True if it went.
    pub(super) fn follow(&mut self, open: &[Question]) -> bool {
        if self.question(open).is_some() || (self.of.is_none() && open.is_empty()) {
            return false;
        }
        let was_chosen = matches!(self.cursor, Cursor::At(_) | Cursor::Offered(1..));
        self.go_to(open.first());
        if was_chosen {
            // The person is about to press Enter, for the question of before.
            self.cursor = Cursor::Off;
        }
        true
    }

    fn go_to(&mut self, question: Option<&Question>) {
        let left = std::mem::take(&mut self.entry);
        if let Some(key) = self.of.take() {
            self.entries.push((key, left));
        }
        self.of = question.map(QuestionKey::of);
        let at = self.entries.iter().position(|(key, _)| Some(key) == self.of.as_ref());
        self.entry = at.map(|at| self.entries.remove(at).1).unwrap_or_default();
        (self.cursor, self.shown) = (Cursor::Offered(0), QuestionShown::InPart);
        self.number = TypedNumber::Text;
    }

    /// Opens the line that is filled in for this answer.
    pub(super) fn open_entry(&mut self, choice: &Choice, question: &Question) -> Focus {
        if *choice == Choice::Always {
            let rule = question.rules().first().map_or("", String::as_str);
            self.entry.begin(EntryUse::Rule, rule);
            return Focus::Rule(RulePlace::Project);
        }
        self.entry.begin(EntryUse::Form, &form_lines(question));
        Focus::Form
    }

    /// How far the person is with a question of the model.
    pub(super) fn answering(&self, question: &Question) -> Answering {
        let own = self.answering.iter().find(|(key, _)| key.is_of(question));
        own.map(|(_, answering)| answering.clone()).unwrap_or_default()
    }

    /// Answers the next question of the model by this row.
    pub(super) fn answer_model(
        &mut self,
        question: &Question,
        choice: &Choice,
        words: &str,
    ) -> Answered {
        let mut answering = self.answering(question);
        let questions = question.of_model();
        let answered = match choice {
            Choice::Pick(option, _) => answering.choose(questions, *option, words),
            Choice::Once
            | Choice::Session(_)
            | Choice::Always
            | Choice::Mode(_)
            | Choice::Fill
            | Choice::Visited
            | Choice::Finish
            | Choice::Deny
            | Choice::Stop => answering.finish(questions, words),
        };
        if answered == Answered::Next {
            self.cursor = Cursor::Offered(0);
        }
        self.answering.retain(|(key, _)| !key.is_of(question));
        self.answering.push((QuestionKey::of(question), answering));
        answered
    }

    /// Drops the lines of questions that are open no more. Returns those with a text that was not sent.
    pub(super) fn drop_closed(&mut self, open: &[Question]) -> Vec<EntryLine> {
        let is_closed = |(key, _): &mut (QuestionKey, EntryLine)| {
            !open.iter().any(|question| key.is_of(question))
        };
        self.answering.retain(|(key, _)| open.iter().any(|question| key.is_of(question)));
        let closed = self.entries.extract_if(.., is_closed).map(|(_, entry)| entry);
        closed.filter(|entry| entry.own_text().is_some()).collect()
    }

    /// Goes round the open questions by so many. False where there is no other.
    pub(super) fn go_round(&mut self, open: &[Question], by: usize) -> bool {
        let at = open.iter().position(|asked| self.is_at(asked)).unwrap_or(0);
        let next = open.get((at + by) % open.len().max(1)).filter(|_| open.len() > 1);
        if next.is_some() {
            self.go_to(next);
        }
        next.is_some()
    }

    /// Something stands in the input line: the first row is offered no more.
    pub(super) fn typed(&mut self) {
        if let Cursor::Offered(_) = self.cursor {
            self.cursor = Cursor::Off;
        }
    }

    /// The input line is empty: what is typed from now on is typed at this question.
    pub(super) fn line_is_empty(&mut self) {
        self.number = TypedNumber::Answer;
    }

    /// Text came into the input line that was not typed there.
    pub(super) fn text_came(&mut self) {
        self.number = TypedNumber::Text;
    }

    pub(super) fn number(&self) -> TypedNumber {
        self.number
    }

    pub(super) fn unmark(&mut self) {
        self.cursor = Cursor::Off;
    }

    /// Enter gives the answer of this row.
    pub(super) fn chose(&mut self, row: usize) {
        if self.cursor != Cursor::At(row) {
            self.cursor = Cursor::Offered(row);
        }
    }

    /// True for a row that the person marked, of a question that waits for them.
    pub(super) fn is_chosen(&self) -> bool {
        let is_given = self.of.as_ref().is_some_and(|key| self.is_given(&key.call));
        matches!(self.cursor, Cursor::At(_)) && !is_given
    }

    /// The row that Enter answers with.
    pub(super) fn marked(&self) -> Option<usize> {
        match self.cursor {
            Cursor::Offered(row) | Cursor::At(row) => Some(row),
            Cursor::Off => None,
        }
    }

    pub(super) fn up(&mut self) {
        self.cursor = Cursor::At(self.marked().map_or(0, |row| row.saturating_sub(1)));
    }

    pub(super) fn down(&mut self, rows: usize) {
        let below = self.marked().map_or(0, |row| row + 1);
        self.cursor = Cursor::At(below.min(rows.saturating_sub(1)));
    }

    /// True if that is news.
    pub(super) fn painted(&mut self, shown: QuestionShown) -> bool {
        std::mem::replace(&mut self.shown, shown) != shown
    }

    pub(super) fn shown(&self) -> QuestionShown {
        self.shown
    }

    pub(super) fn give(&mut self, call: CallId, note: String) {
        self.given.give(call, note);
    }

    /// True if the question was answered here, and the supervisor has not confirmed it.
    pub(super) fn is_given(&self, call: &CallId) -> bool {
        self.given.is_sent(call)
    }

    /// The call is decided.
    pub(super) fn decided(&mut self, call: &CallId) {
        if !self.given.decided(call) {
            return;
        }
        self.entries.retain(|(key, _)| key.call != *call);
        if self.of.as_ref().is_some_and(|key| key.call == *call) {
            (self.cursor, self.entry) = (Cursor::Offered(0), EntryLine::default());
        }
    }

    /// The call has ended.
    pub(super) fn ended(&mut self, call: &CallId) {
        self.decided(call);
        self.given.ended(call);
    }

    /// The place of the question among the open ones, counted from 1, and their number.
    pub(super) fn place(&self, open: &[Question]) -> Option<(usize, usize)> {
        let at = open.iter().position(|asked| self.is_at(asked))?;
        Some((at + 1, open.len()))
    }

    /// The answer did not count. Returns the note that went with it.
    pub(super) fn rejected(&mut self, call: &CallId, input: &Editor) -> Option<String> {
        // The row was marked for this note, not for a text that was typed since.
        if !input.is_empty() || self.of.as_ref().is_none_or(|key| key.call != *call) {
            self.unmark();
        }
        self.given.rejected(call)
    }

    /// The connection is lost. The questions may come back.
    pub(super) fn lost(&mut self) {
        self.given.lost();
    }

    /// Notes that the model may not get.
    pub(super) fn unsure_notes(&self) -> impl Iterator<Item = &String> {
        self.given.unsure().filter(|note| !note.is_empty())
    }

    /// The whole backlog was received. Returns the notes that did not arrive.
    pub(super) fn take_unsure_notes(&mut self) -> Vec<String> {
        self.given.take_unsure()
    }
}
