//! The keys while a question is pending. Printable keys write, as always; arrows mark a row of its list, Tab goes to
//! the next question, and Enter answers. A form of a server and a rule that is to be written have lines of their own.

use super::answer_list::{AnswerRows, Choice};
use super::answer_words::{
    Answers, AtEnter, HIDDEN_ROWS, LONG_NOTE, LineAnswer, WAITING, answer_of_line, fits_a_note,
};
use super::answering::Answered;
use super::editor::Editor;
use super::key_press::{Direction, KeyPress};
use super::{Focus, QuestionShown, RulePlace, Screen, ScreenEffect};
use crate::call_gist::call_title;
use crate::lines::one_line;
use crate::screen_items::{CallBlock, CallPlace};
use protocol::client::FromClient;
use protocol::judgement::{PersonAnswer, Question};

/// Hint where a question of the model has neither a marked option nor words.
const NO_ANSWER: &str = "mark an option or type your answer, then Enter";

/// How many calls that wait behind a question are named, and most columns of a name.
const NAMED: usize = 3;
const TITLE: usize = 40;

/// Where the note of an answer stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NoteFrom {
    /// In the input line.
    InputLine,
    /// Nowhere: a terminal of lines shows no input line, so its answers have no note.
    Nowhere,
}

impl NoteFrom {
    /// Takes the note out. None for one that is too long, which stays there.
    fn take(self, editor: &mut Editor) -> Option<String> {
        match self {
            Self::Nowhere => Some(String::new()),
            Self::InputLine if fits_a_note(&editor.text()) => Some(editor.take().trim().to_owned()),
            Self::InputLine => None,
        }
    }
}

impl Screen {
    /// The question that the keys reach, if this terminal may answer it.
    pub(super) fn asked(&self) -> Option<&Question> {
        self.question().filter(|_| self.may_answer())
    }

    /// The answers to it, with the input line.
    pub(crate) fn answers(&self) -> Option<Answers<'_>> {
        let (question, text) = (self.asked()?, self.editor.text());
        Some(Answers { list: &self.list, question, text })
    }

    /// The list below the question that the keys reach. None where there is none, or this terminal only reads.
    #[must_use]
    pub fn answer_rows(&self) -> Option<AnswerRows> {
        let rows = self.answers()?.rows(self.focus);
        Some(AnswerRows { head: rows.head.or_else(|| waits_behind(self)), ..rows })
    }

    fn say_answers(&mut self) -> Vec<ScreenEffect> {
        self.hint = self.answers().map(|answers| answers.in_words(self.focus));
        Vec::new()
    }

    /// The keys that mean something else while a question is open. None for those of the line.
    // They are all other keys.
    #[allow(clippy::wildcard_enum_match_arm)]
    pub(super) fn at_question(&mut self, key: KeyPress) -> Option<Vec<ScreenEffect>> {
        let rows = self.answers()?.choices().len();
        match key {
            KeyPress::Up => {
                if !self.editor.move_row(Direction::Start) {
                    self.list.up();
                }
                Some(Vec::new())
            }
            KeyPress::Down => {
                if !self.editor.move_row(Direction::End) {
                    self.list.down(rows);
                }
                Some(Vec::new())
            }
            // A text without a marked answer is a prompt, which Tab sends the other way than Enter.
            KeyPress::Tab if sends_beside(self) => None,
            KeyPress::Tab => Some(self.go_round(1)),
            KeyPress::BackTab => {
                Some(self.go_round(self.items.questions().len().saturating_sub(1)))
            }
            // The text goes with no answer then.
            KeyPress::Escape if self.list.is_chosen() && !self.editor.is_empty() => {
                self.list.unmark();
                Some(Vec::new())
            }
            KeyPress::Escape => Some(self.stop()),
            KeyPress::Enter if self.editor.continue_line() => Some(Vec::new()),
            KeyPress::Enter => self.answer_by_enter(),
            _ => None,
        }
    }

    fn go_round(&mut self, by: usize) -> Vec<ScreenEffect> {
        match self.list.go_round(self.items.questions(), by) {
            true => Vec::new(),
            false => self.say_hint("no other question is open"),
        }
    }

    /// None where Enter is for the line.
    fn answer_by_enter(&mut self) -> Option<Vec<ScreenEffect>> {
        let answers = self.answers()?;
        let (question, then) = (answers.question.clone(), answers.at_enter());
        let (choices, is_number) = (answers.choices(), answers.number().is_some());
        Some(match then {
            AtEnter::Line(_) => {
                // The next Enter allows nothing by itself.
                self.list.unmark();
                return None;
            }
            AtEnter::Nothing(why) => self.say_hint(&why),
            AtEnter::OwnWords => self.choose(&Choice::Finish, &question, NoteFrom::InputLine),
            AtEnter::Answer(row) => {
                if is_number {
                    self.editor.clear();
                }
                self.list.chose(row);
                match choices.get(row) {
                    Some(choice) => self.choose(choice, &question, NoteFrom::InputLine),
                    None => Vec::new(),
                }
            }
        })
    }

    /// Gives the answer of a row, if the reader could see all that it allows.
    fn choose(
        &mut self,
        choice: &Choice,
        question: &Question,
        from: NoteFrom,
    ) -> Vec<ScreenEffect> {
        if choice.allows() && self.list.shown() != QuestionShown::Whole {
            return self.say_hint(HIDDEN_ROWS);
        }
        let note = match choice.note(question) {
            Some(_) => from.take(&mut self.editor),
            None => Some(String::new()),
        };
        let Some(note) = note else { return self.say_hint(LONG_NOTE) };
        if let Choice::Pick(..) | Choice::Finish = choice {
            return answer_model(self, choice, question, (note, from));
        }
        if let Some(answer) = choice.answer(&note) {
            return self.answer_with(answer, note);
        }
        self.focus = self.list.open_entry(choice, question);
        Vec::new()
    }

    /// A line of a terminal without keys: a number or a letter of an older hand, and perhaps words behind it.
    pub(super) fn answer_by_line(&mut self, line: &str) -> Vec<ScreenEffect> {
        let Some(question) = self.asked().cloned() else { return Vec::new() };
        if self.list.is_given(&question.call) {
            return self.say_hint(WAITING);
        }
        let Some(answers) = self.answers() else { return Vec::new() };
        match answer_of_line(&answers, line) {
            LineAnswer::OwnWords(words) => {
                answer_model(self, &Choice::Finish, &question, (words, NoteFrom::Nowhere))
            }
            LineAnswer::Choose(choice) => self.choose(&choice, &question, NoteFrom::Nowhere),
            LineAnswer::Give(answer) => self.answer_with(answer, String::new()),
            LineAnswer::TooLong => self.say_hint(LONG_NOTE),
            LineAnswer::Unclear => self.say_answers(),
        }
    }

    /// A line below a rule: its place, and perhaps another rule.
    pub(super) fn rule_by_line(&mut self, line: &str) -> Vec<ScreenEffect> {
        let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        if let "3" | "n" = first {
            return self.back_to_question();
        }
        let Some(place) = RulePlace::of_word(first) else { return self.say_answers() };
        if !rest.trim().is_empty() {
            self.list.entry.line.set(rest.trim());
        }
        self.write_rule(place, NoteFrom::Nowhere)
    }

    /// A rule is written only after it was shown, and by Enter.
    // All other keys are the editor's, which lists them.
    #[allow(clippy::wildcard_enum_match_arm)]
    pub(super) fn at_rule(&mut self, key: KeyPress, place: RulePlace) -> Vec<ScreenEffect> {
        match key {
            KeyPress::Enter => return self.write_rule(place, NoteFrom::InputLine),
            KeyPress::Up => self.focus = Focus::Rule(RulePlace::Project),
            KeyPress::Down => self.focus = Focus::Rule(RulePlace::Everywhere),
            KeyPress::Tab => {
                let question = self.list.question(self.items.questions()).cloned();
                question.iter().for_each(|asked| self.list.entry.suggest_next(asked.rules()));
            }
            KeyPress::Escape => return self.back_to_question(),
            KeyPress::NewLine | KeyPress::EndOfInput => {}
            key => self.list.entry.line.key(key),
        }
        Vec::new()
    }

    /// Allows the call, and has this rule written.
    fn write_rule(&mut self, place: RulePlace, from: NoteFrom) -> Vec<ScreenEffect> {
        let rule = self.list.entry.line.text().trim().to_owned();
        if rule.is_empty() {
            return self.say_hint("a rule has a tool and a pattern, as in edit:src/**");
        }
        if self.list.shown() != QuestionShown::Whole {
            return self.say_hint(HIDDEN_ROWS);
        }
        let Some(note) = from.take(&mut self.editor) else { return self.say_hint(LONG_NOTE) };
        let answer = match place {
            RulePlace::Project => PersonAnswer::Always(rule),
            RulePlace::Everywhere => PersonAnswer::Everywhere(rule),
        };
        self.answer_with(answer, note)
    }

    // All other keys are the editor's, which lists them.
    #[allow(clippy::wildcard_enum_match_arm)]
    pub(super) fn at_form(&mut self, key: KeyPress) -> Vec<ScreenEffect> {
        match key {
            KeyPress::Enter => {
                let answers = self.list.entry.line.text().into_owned();
                return self.answer_with(PersonAnswer::Form(answers), String::new());
            }
            KeyPress::Escape => return self.back_to_question(),
            key => self.list.entry.form_key(key),
        }
        Vec::new()
    }

    pub(super) fn back_to_question(&mut self) -> Vec<ScreenEffect> {
        self.focus = Focus::Line;
        Vec::new()
    }

    /// The question stays until the supervisor confirms the answer. The note comes back if it does not count.
    fn answer_with(&mut self, answer: PersonAnswer, note: String) -> Vec<ScreenEffect> {
        let Some(question) = self.asked() else { return Vec::new() };
        let Question { call, digest, .. } = question.clone();
        self.focus = Focus::Line;
        let answer = answer.noted(&note);
        self.list.give(call.clone(), note);
        vec![ScreenEffect::Send(FromClient::Answer { call, digest, answer })]
    }
}

/// An answer to a question of the model. Those to all its questions go together.
fn answer_model(
    screen: &mut Screen,
    choice: &Choice,
    question: &Question,
    (words, from): (String, NoteFrom),
) -> Vec<ScreenEffect> {
    match screen.list.answer_model(question, choice, &words) {
        Answered::All(answers) => screen.answer_with(PersonAnswer::Chosen(answers), words),
        Answered::Empty => screen.say_hint(NO_ANSWER),
        Answered::Marked | Answered::Next if from == NoteFrom::Nowhere => screen.say_answers(),
        Answered::Marked | Answered::Next => Vec::new(),
    }
}

/// How many questions of the model are answered before the one that the keys reach.
pub(crate) fn answered_before(screen: &Screen) -> usize {
    screen.question().map_or(0, |question| screen.list.answering(question).step())
}

/// The calls of the same answer that begin once the call of the question has ended. Some are asked about then.
fn waits_behind(screen: &Screen) -> Option<String> {
    let asked = &screen.question()?.call;
    let waits = |call: &&CallBlock| {
        call.call.id.session == asked.session
            && call.call.id.number > asked.number
            && call.call.origin.is_model()
            && call.place == CallPlace::Foreground
            && call.basis.is_none()
            && !screen.items.questions().iter().any(|other| other.call == call.call.id)
    };
    let titles = screen.items.open().iter().filter(waits).map(|block| call_title(&block.call));
    let titles: Vec<String> = titles.collect();
    let named = titles.iter().take(NAMED).map(|title| one_line(title, TITLE));
    let named = named.collect::<Vec<_>>().join(" · ");
    match titles.len() {
        0 => None,
        count if count > NAMED => Some(format!("behind it wait {count} calls: {named} · …")),
        1 => Some(format!("behind it waits 1 call: {named}")),
        count => Some(format!("behind it wait {count} calls: {named}")),
    }
}

/// True if the text of the line is a prompt beside the only open question.
fn sends_beside(screen: &Screen) -> bool {
    let is_prompt = screen.answers().is_some_and(|it| matches!(it.at_enter(), AtEnter::Line(_)));
    is_prompt && !screen.editor.is_empty() && screen.items.questions().len() < 2
}
