//! The answers to an open question with the input line: what Enter does, and the words for it. Pure.

use super::answer_list::{AnswerList, AnswerRow, AnswerRows, Choice, TypedNumber};
use super::{Focus, QuestionShown, RulePlace, note_of};
use protocol::hidden::on_screen;
use protocol::judgement::{PermissionMode, PersonAnswer, Question};
use std::borrow::Cow;

/// Hint where Enter would allow what was not on the screen yet.
pub(super) const HIDDEN_ROWS: &str = "rows are hidden: PgDn shows them, then Enter allows it";
const NO_ROW: &str = "↑ ↓ choose an answer, Enter gives it";
/// Words that answered questions once, or do elsewhere. On their own they are no prompt and no note.
const OLD_ANSWERS: [&str; 12] =
    ["y", "s", "a", "n", "r", "x", "e", "A", "D", "yes", "no", "always"];

/// Hint behind an answer that is not confirmed yet.
pub(super) const WAITING: &str = "answered; waiting for the supervisor";
const OTHER_NUMBER: &str = "this number was there before the question: Ctrl-U erases it; ↑ ↓ choose an answer, Enter gives it";
/// Most bytes of a note.
const MOST_NOTE: usize = 16 << 10;
/// Hint where the text is longer.
pub(super) const LONG_NOTE: &str =
    "a note has at most 16 KiB; send it as a prompt: Esc takes the mark off, then Enter";
const SENDS_FORM: &str = "Enter sends the answers to the server; an empty line leaves a field out";

/// What Enter does with the input line while a question is open.
pub(super) enum AtEnter {
    /// It is a command, or a prompt, as without a question.
    Line(&'static str),
    /// It gives the answer of this row.
    Answer(usize),
    /// The text is the answer to a question of the model.
    OwnWords,
    /// Nothing, and why.
    Nothing(String),
}

/// The open question with its list, and the text of the input line.
pub(crate) struct Answers<'a> {
    pub(super) list: &'a AnswerList,
    pub(super) question: &'a Question,
    pub(super) text: Cow<'a, str>,
}

impl Answers<'_> {
    /// The rows of the list.
    pub(super) fn choices(&self) -> Vec<Choice> {
        Choice::of(self.question, &self.list.answering(self.question))
    }

    /// What Enter does now.
    pub(super) fn at_enter(&self) -> AtEnter {
        let text = self.text.trim();
        let choices = self.choices();
        let is_of_model = !self.question.of_model().is_empty();
        if text.starts_with(':') {
            return AtEnter::Line("Enter runs the command; the question waits");
        }
        if self.list.is_given(&self.question.call) {
            return match text.is_empty() || is_old_answer(text) {
                true => AtEnter::Nothing(WAITING.to_owned()),
                false if note_of(&self.text).is_some() => {
                    AtEnter::Line("Enter asks where to keep this")
                }
                false => AtEnter::Line("Enter sends this as a prompt"),
            };
        }
        // To a question of the model such a word is an answer.
        if OLD_ANSWERS.contains(&text) && !is_of_model {
            return AtEnter::Nothing(format!(
                "a letter answers nothing: ↑ ↓ and Enter do, or a number and Enter, 1 to {}",
                choices.len()
            ));
        }
        if let Some(number) = self.number() {
            return match number.checked_sub(1).filter(|row| *row < choices.len()) {
                Some(row) => AtEnter::Answer(row),
                None => {
                    AtEnter::Nothing(format!("the answers have the numbers 1 to {}", choices.len()))
                }
            };
        }
        match (self.list.marked(), text) {
            (Some(row), _) if self.is_long_note(choices.get(row)) => {
                AtEnter::Nothing(LONG_NOTE.to_owned())
            }
            (Some(row), _) => AtEnter::Answer(row),
            (None, "") => AtEnter::Nothing(NO_ROW.to_owned()),
            (None, text) if number_of(text).is_some() => AtEnter::Nothing(OTHER_NUMBER.to_owned()),
            (None, _) if note_of(&self.text).is_some() => {
                AtEnter::Line("Enter asks where to keep this; ↑ ↓ mark an answer that it goes with")
            }
            (None, text) if is_of_model && !text.starts_with('!') => match fits_a_note(text) {
                true => AtEnter::OwnWords,
                false => AtEnter::Nothing(LONG_NOTE.to_owned()),
            },
            (None, _) => {
                AtEnter::Line("Enter sends this as a prompt; ↑ ↓ mark an answer that it goes with")
            }
        }
    }

    /// The number of a row that was typed at this question, and nothing else.
    pub(super) fn number(&self) -> Option<usize> {
        match self.list.number() {
            TypedNumber::Answer => number_of(&self.text),
            TypedNumber::Text => None,
        }
    }

    fn is_long_note(&self, choice: Option<&Choice>) -> bool {
        choice.is_some_and(|choice| choice.note(self.question).is_some())
            && !fits_a_note(&self.text)
    }

    /// The rows of the list, and what Enter does.
    pub(super) fn rows(&self, focus: Focus) -> AnswerRows {
        let question = self.question;
        let row = |(text, is_marked): (String, bool)| AnswerRow { text, is_marked };
        match focus {
            Focus::Form => {
                let enter = "Enter sends the answers to the server; an empty line leaves a field out; Esc goes back";
                AnswerRows { head: None, rows: Vec::new(), enter: enter.to_owned() }
            }
            Focus::Rule(place) => {
                let rows = RulePlace::ALL.map(|it| row((it.label().to_owned(), it == place)));
                let more = if question.rules().len() > 1 { ", Tab another rule" } else { "" };
                let note = if self.text.is_empty() { "" } else { ", with your note" };
                let enter = format!(
                    "Enter allows it{note}, and writes the rule {}; Esc goes back{more}",
                    place.in_words()
                );
                AnswerRows { head: None, rows: rows.into(), enter }
            }
            Focus::Line => {
                let at = match self.at_enter() {
                    AtEnter::Answer(row) => Some(row),
                    AtEnter::Line(_) | AtEnter::OwnWords | AtEnter::Nothing(_) => None,
                };
                let choices = self.choices();
                let label = |(number, choice): (usize, &Choice)| {
                    row((format!("{} {}", number + 1, choice.label(question)), at == Some(number)))
                };
                let rows = choices.iter().enumerate().map(label).collect();
                AnswerRows { head: self.head(), rows, enter: self.enter_in_words() }
            }
        }
    }

    /// Which of several questions of the model the rows answer.
    fn head(&self) -> Option<String> {
        let questions = self.question.of_model();
        let answering = self.list.answering(self.question);
        let asked = answering.at(questions).filter(|_| questions.len() > 1)?;
        let (step, count) = (answering.step() + 1, questions.len());
        Some(format!("{step} of {count}: {}", on_screen(&asked.text)))
    }

    /// What Enter does now.
    fn enter_in_words(&self) -> String {
        let question = self.question;
        let row = match self.at_enter() {
            AtEnter::Line(words) => return words.to_owned(),
            AtEnter::Nothing(why) => return why,
            AtEnter::OwnWords => return "Enter answers with these words".to_owned(),
            AtEnter::Answer(row) => row,
        };
        let choices = self.choices();
        let Some(choice) = choices.get(row) else { return NO_ROW.to_owned() };
        if choice.allows() && self.list.shown() != QuestionShown::Whole {
            return HIDDEN_ROWS.to_owned();
        }
        let text = &*self.text;
        let note = match choice.note(question) {
            _ if text.trim().is_empty() || self.number().is_some() => String::new(),
            Some(note) => format!(", {note}"),
            None => "; your text stays in the line".to_owned(),
        };
        format!("Enter {}{note}", choice.does(question))
    }

    /// The answers for a terminal without keys, each by its number.
    pub(crate) fn in_words(&self, focus: Focus) -> String {
        match focus {
            Focus::Line => self.answers_in_words(),
            Focus::Rule(_) => self.rule_in_words(),
            Focus::Form => SENDS_FORM.to_owned(),
        }
    }

    fn answers_in_words(&self) -> String {
        let question = self.question;
        let choices = self.choices();
        let of = |(at, choice): (usize, &Choice)| format!("{} {}", at + 1, choice.label(question));
        let list = choices.iter().enumerate().map(of).collect::<Vec<_>>().join(", ");
        if !question.of_model().is_empty() {
            let head = self.head().map(|head| head + "; ").unwrap_or_default();
            return format!("{head}{list}: type a number or your own words, then Enter");
        }
        let letters = choices.iter().filter_map(letter_of).collect::<Vec<_>>().join(", ");
        let reason = match Choice::Deny.note(question) {
            Some(_) => "; words behind r are the reason",
            None => "",
        };
        format!("{list}: type a number, or {letters}, then Enter{reason}")
    }

    fn rule_in_words(&self) -> String {
        let [project, everywhere] = RulePlace::ALL.map(RulePlace::label);
        let rule = self.list.entry.line.text();
        format!(
            "allow `{}` in later sessions? 1 {project}, 2 {everywhere}, 3 back: type a number, or y, A, n, then \
             Enter; a rule behind the number is written instead",
            on_screen(&rule)
        )
    }
}

/// True if a text is short enough to go with an answer.
pub(super) fn fits_a_note(text: &str) -> bool {
    text.trim().len() <= MOST_NOTE
}

/// True for a text that would be an answer elsewhere: a letter of an older hand, or a number.
pub(super) fn is_old_answer(text: &str) -> bool {
    OLD_ANSWERS.contains(&text.trim()) || number_of(text).is_some()
}

/// The number that is all of a text.
pub(super) fn number_of(text: &str) -> Option<usize> {
    let text = text.trim();
    let is_number = !text.is_empty() && text.len() <= 2 && text.bytes().all(|c| c.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// The letter of an answer in a terminal of lines.
fn letter_of(choice: &Choice) -> Option<&'static str> {
    match choice {
        Choice::Once | Choice::Fill | Choice::Visited => Some("y"),
        Choice::Mode(PermissionMode::Ask) => Some("y"),
        Choice::Mode(PermissionMode::AcceptEdits) => Some("e"),
        Choice::Mode(PermissionMode::Sandboxed) => Some("b"),
        Choice::Mode(PermissionMode::Auto) => Some("A"),
        Choice::Mode(PermissionMode::DontAsk) => Some("D"),
        Choice::Mode(PermissionMode::Plan) => None,
        Choice::Session(_) => Some("s"),
        Choice::Always => Some("a"),
        Choice::Deny => Some("n"),
        Choice::Stop => Some("x"),
        Choice::Pick(..) | Choice::Finish => None,
    }
}

fn is_letter_of(choice: &Choice, word: &str) -> bool {
    letter_of(choice) == Some(word) || (*choice == Choice::Deny && word == "r")
}

/// What a line of a terminal without keys means.
pub(super) enum LineAnswer {
    /// It names a row.
    Choose(Choice),
    /// It is all of this answer.
    Give(PersonAnswer),
    /// It answers a question of the model.
    OwnWords(String),
    /// Its reason is too long.
    TooLong,
    Unclear,
}

/// A line: a number or a letter of an older hand, and perhaps words behind it.
pub(super) fn answer_of_line(answers: &Answers<'_>, line: &str) -> LineAnswer {
    let question = answers.question;
    let mut choices = answers.choices();
    if !question.of_model().is_empty() {
        let row = number_of(line).and_then(|number| number.checked_sub(1));
        return match (row, line.trim()) {
            (Some(row), _) if row < choices.len() => LineAnswer::Choose(choices.swap_remove(row)),
            (Some(_), _) | (None, "") => LineAnswer::Unclear,
            (None, words) if !fits_a_note(words) => LineAnswer::TooLong,
            (None, words) => LineAnswer::OwnWords(words.to_owned()),
        };
    }
    let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let Some(chosen) = choice_of_line(choices, first, rest) else { return LineAnswer::Unclear };
    let is_named_by_mode =
        first == "y" && PermissionMode::parse(rest).is_some() && matches!(chosen, Choice::Mode(_));
    if chosen == Choice::Fill && !rest.is_empty() {
        return LineAnswer::Give(PersonAnswer::Form(rest.to_owned()));
    }
    if chosen == Choice::Deny && !fits_a_note(rest) {
        return LineAnswer::TooLong;
    }
    if chosen == Choice::Deny && first != "n" {
        return LineAnswer::Give(PersonAnswer::Deny(rest.to_owned()));
    }
    match rest.is_empty() || is_named_by_mode {
        true => LineAnswer::Choose(chosen),
        false => LineAnswer::Unclear,
    }
}

/// By its first word, and by a mode behind that.
fn choice_of_line(mut choices: Vec<Choice>, first: &str, rest: &str) -> Option<Choice> {
    let by_mode = PermissionMode::parse(rest).map(Choice::Mode);
    let at = match (first, by_mode) {
        ("y", Some(mode)) => choices.iter().position(|it| *it == mode),
        _ => match number_of(first) {
            Some(number) => number.checked_sub(1).filter(|row| *row < choices.len()),
            None => choices.iter().position(|choice| is_letter_of(choice, first)),
        },
    };
    at.map(|at| choices.swap_remove(at))
}
