//! The keys while a question is pending. Printable keys write, as always; arrows mark a row of its list, Tab goes to
//! the next question, and Enter answers. A form of a server and a rule that is to be written have lines of their own.

use super::answer_list::{AnswerRow, AnswerRows, Choice};
use super::key_press::{Direction, KeyPress};
use super::{Focus, QuestionShown, RulePlace, Screen, ScreenEffect};
use protocol::client::FromClient;
use protocol::hidden::on_screen;
use protocol::judgement::{Ask, PermissionMode, PersonAnswer, Question};

/// Hint where Enter would allow what was not on the screen yet.
const HIDDEN_ROWS: &str = "rows are hidden: PgDn shows them, then Enter allows it";
const NO_ROW: &str = "↑ ↓ choose an answer, Enter gives it";
/// Words that answered questions once, or do elsewhere. On their own they are no prompt and no note.
const OLD_ANSWERS: [&str; 12] =
    ["y", "s", "a", "n", "r", "x", "e", "A", "D", "yes", "no", "always"];

/// What Enter does with the input line while a question is open.
enum AtEnter {
    /// It is a command, or a prompt, as without a question.
    Line(&'static str),
    /// It gives the answer of this row.
    Answer(usize),
    /// Nothing, and why.
    Nothing(String),
}

impl Screen {
    /// The question that the keys reach, if this terminal may answer it.
    pub(super) fn asked(&self) -> Option<&Question> {
        self.question().filter(|_| self.may_answer())
    }

    /// The keys that mean something else while a question is open. None for those of the line.
    pub(super) fn at_question(&mut self, key: KeyPress) -> Option<Vec<ScreenEffect>> {
        let rows = Choice::of(self.asked()?).len();
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
            KeyPress::Tab => Some(self.go_round(1)),
            KeyPress::BackTab => {
                Some(self.go_round(self.items.questions().len().saturating_sub(1)))
            }
            KeyPress::Escape => Some(self.stop()),
            KeyPress::Enter if self.editor.continue_line() => Some(Vec::new()),
            KeyPress::Enter => self.answer_by_enter(),
            KeyPress::Char(_)
            | KeyPress::NewLine
            | KeyPress::Interrupt
            | KeyPress::EndOfInput
            | KeyPress::Move(..)
            | KeyPress::Erase(..)
            | KeyPress::Edit(_)
            | KeyPress::Page(_)
            | KeyPress::Control(_)
            | KeyPress::Redraw
            | KeyPress::Leader => None,
        }
    }

    fn go_round(&mut self, by: usize) -> Vec<ScreenEffect> {
        match self.list.go_round(self.items.questions(), by) {
            true => {
                self.entry.start_over();
                Vec::new()
            }
            false => self.say_hint("no other question is open"),
        }
    }

    /// None where Enter is for the line.
    fn answer_by_enter(&mut self) -> Option<Vec<ScreenEffect>> {
        let question = self.asked()?.clone();
        Some(match self.at_enter(&question) {
            AtEnter::Line(_) => {
                // The next Enter allows nothing by itself.
                self.list.unmark();
                return None;
            }
            AtEnter::Nothing(why) => self.say_hint(&why),
            AtEnter::Answer(row) => {
                if number_of(&self.editor.text()).is_some() {
                    self.editor.clear();
                }
                self.list.mark(row);
                match Choice::of(&question).get(row) {
                    Some(choice) => self.choose(choice, &question),
                    None => Vec::new(),
                }
            }
        })
    }

    fn at_enter(&self, question: &Question) -> AtEnter {
        let text = self.editor.text();
        let text = text.trim();
        let choices = Choice::of(question);
        if text.starts_with(':') {
            return AtEnter::Line("Enter runs the command; the question waits");
        }
        if OLD_ANSWERS.contains(&text) {
            return AtEnter::Nothing(format!(
                "a letter answers nothing: ↑ ↓ and Enter do, or a number and Enter, 1 to {}",
                choices.len()
            ));
        }
        if let Some(number) = number_of(text) {
            return match number.checked_sub(1).filter(|row| *row < choices.len()) {
                Some(row) => AtEnter::Answer(row),
                None => {
                    AtEnter::Nothing(format!("the answers have the numbers 1 to {}", choices.len()))
                }
            };
        }
        if self.list.is_given(&question.call) && text.is_empty() {
            return AtEnter::Nothing("answered; waiting for the supervisor".to_owned());
        }
        match (self.list.marked(), text.is_empty()) {
            (Some(row), _) if !self.list.is_given(&question.call) => AtEnter::Answer(row),
            (_, true) => AtEnter::Nothing(NO_ROW.to_owned()),
            (_, false) => {
                AtEnter::Line("Enter sends this as a prompt; ↑ ↓ mark an answer that it goes with")
            }
        }
    }

    /// Gives the answer of a row, if the reader could see all that it allows.
    fn choose(&mut self, choice: &Choice, question: &Question) -> Vec<ScreenEffect> {
        if choice.allows() && self.list.shown() == QuestionShown::InPart {
            return self.say_hint(HIDDEN_ROWS);
        }
        match choice {
            Choice::Once | Choice::Visited => self.answer(PersonAnswer::Once),
            Choice::Session(rule) => self.answer(PersonAnswer::Session(rule.clone())),
            Choice::Mode(mode) => self.answer(PersonAnswer::Mode(*mode)),
            Choice::Stop => self.answer(PersonAnswer::Stop),
            Choice::Deny => {
                let note = match choice.note(question) {
                    Some(_) => self.editor.take().trim().to_owned(),
                    None => String::new(),
                };
                self.answer_with(PersonAnswer::Deny(note.clone()), note)
            }
            Choice::Always => {
                // A rule that did not count is there to be changed.
                if self.entry.is_empty() {
                    self.entry.start_over();
                    self.entry.insert(question.rules().first().map_or("", String::as_str));
                }
                self.focus = Focus::Rule(RulePlace::Project);
                Vec::new()
            }
            Choice::Fill => {
                // Answers that did not fit are there to be changed.
                if self.entry.is_empty() {
                    self.entry.start_over();
                    self.entry.insert(&form_lines(question));
                }
                self.focus = Focus::Form;
                Vec::new()
            }
        }
    }

    /// A line of a terminal without keys: a number or a letter of an older hand, and perhaps words behind it.
    pub(super) fn answer_by_line(&mut self, line: &str) -> Vec<ScreenEffect> {
        let Some(question) = self.asked().cloned() else { return Vec::new() };
        let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        let choices = Choice::of(&question);
        let by_mode = PermissionMode::parse(rest).map(Choice::Mode);
        let chosen = match (first, by_mode) {
            ("y", Some(mode)) if question.is_plan() => choices.iter().find(|it| **it == mode),
            _ => match number_of(first) {
                Some(number) => number.checked_sub(1).and_then(|row| choices.get(row)),
                None => choices.iter().find(|choice| is_letter_of(choice, first)),
            },
        };
        let Some(chosen) = chosen else {
            let words = self.answers_in_words();
            return self.say_hint(&words);
        };
        let is_named_by_mode = first == "y"
            && PermissionMode::parse(rest).is_some()
            && matches!(chosen, Choice::Mode(_));
        if *chosen == Choice::Fill && !rest.is_empty() {
            return self.answer(PersonAnswer::Form(rest.to_owned()));
        }
        if *chosen == Choice::Deny && first != "n" {
            return self.answer(PersonAnswer::Deny(rest.to_owned()));
        }
        if !rest.is_empty() && !is_named_by_mode {
            let words = self.answers_in_words();
            return self.say_hint(&words);
        }
        self.choose(chosen, &question)
    }

    /// A line below a rule: its place, and perhaps another rule.
    pub(super) fn rule_by_line(&mut self, line: &str) -> Vec<ScreenEffect> {
        let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let place = match first {
            "1" | "y" => RulePlace::Project,
            "2" | "A" => RulePlace::Everywhere,
            "3" | "n" => return self.back_to_question(),
            _ => {
                let words = self.rule_in_words();
                return self.say_hint(&words);
            }
        };
        if !rest.trim().is_empty() {
            self.entry.set(rest.trim());
        }
        self.at_rule(KeyPress::Enter, place)
    }

    /// The list below the question that the keys reach. None where there is none, or this terminal only reads.
    #[must_use]
    pub fn answer_rows(&self) -> Option<AnswerRows> {
        let question = self.asked()?;
        let row = |(text, is_marked): (String, bool)| AnswerRow { text, is_marked };
        match self.focus {
            Focus::Form => {
                let enter = "Enter sends the answers to the server; an empty line leaves a field out; Esc goes back";
                Some(AnswerRows { rows: Vec::new(), enter: enter.to_owned() })
            }
            Focus::Rule(place) => {
                let rows = RulePlace::ALL.map(|it| row((it.label().to_owned(), it == place)));
                let more = if question.rules().len() > 1 { ", Tab another rule" } else { "" };
                let enter =
                    format!("Enter writes the rule {}{more}, Esc goes back", place.in_words());
                Some(AnswerRows { rows: rows.into(), enter })
            }
            Focus::Line => {
                let at = match self.at_enter(question) {
                    AtEnter::Answer(row) => Some(row),
                    AtEnter::Line(_) | AtEnter::Nothing(_) => None,
                };
                let choices = Choice::of(question);
                let label = |(number, choice): (usize, &Choice)| {
                    row((format!("{} {}", number + 1, choice.label(question)), at == Some(number)))
                };
                let rows = choices.iter().enumerate().map(label).collect();
                Some(AnswerRows { rows, enter: self.enter_in_words(question) })
            }
        }
    }

    /// What Enter does now.
    fn enter_in_words(&self, question: &Question) -> String {
        let row = match self.at_enter(question) {
            AtEnter::Line(words) => return words.to_owned(),
            AtEnter::Nothing(why) => return why,
            AtEnter::Answer(row) => row,
        };
        let choices = Choice::of(question);
        let Some(choice) = choices.get(row) else { return NO_ROW.to_owned() };
        if choice.allows() && self.list.shown() == QuestionShown::InPart {
            return HIDDEN_ROWS.to_owned();
        }
        let text = self.editor.text();
        let note = match choice.note(question) {
            _ if text.trim().is_empty() || number_of(&text).is_some() => String::new(),
            Some(note) => format!(", {note}"),
            None => "; your text stays in the line".to_owned(),
        };
        format!("Enter {}{note}", choice.does(question))
    }

    /// The answers for a terminal without keys, each by its number.
    pub(crate) fn answers_in_words(&self) -> String {
        let Some(question) = self.asked() else { return String::new() };
        let choices = Choice::of(question);
        let of = |(at, choice): (usize, &Choice)| format!("{} {}", at + 1, choice.label(question));
        let list = choices.iter().enumerate().map(of).collect::<Vec<_>>().join(", ");
        let letters = choices.iter().filter_map(letter_of).collect::<Vec<_>>().join(", ");
        let reason = match Choice::Deny.note(question) {
            Some(_) => "; words behind r are the reason",
            None => "",
        };
        format!("{list}: type a number, or {letters}, then Enter{reason}")
    }

    /// The same below a rule.
    pub(crate) fn rule_in_words(&self) -> String {
        let [project, everywhere] = RulePlace::ALL.map(RulePlace::label);
        let rule = self.entry.text();
        format!(
            "allow `{}` in later sessions? 1 {project}, 2 {everywhere}, 3 back: type a number, or y, A, n, then \
             Enter; a rule behind the number is written instead",
            on_screen(&rule)
        )
    }

    /// A rule is written only after it was shown, and by Enter.
    // All other keys are the editor's, which lists them.
    #[allow(clippy::wildcard_enum_match_arm)]
    pub(super) fn at_rule(&mut self, key: KeyPress, place: RulePlace) -> Vec<ScreenEffect> {
        match key {
            KeyPress::Enter => {
                let rule = self.entry.text().trim().to_owned();
                if rule.is_empty() {
                    return self.say_hint("a rule has a tool and a pattern, as in edit:src/**");
                }
                if self.list.shown() == QuestionShown::InPart {
                    return self.say_hint(HIDDEN_ROWS);
                }
                return self.answer(match place {
                    RulePlace::Project => PersonAnswer::Always(rule),
                    RulePlace::Everywhere => PersonAnswer::Everywhere(rule),
                });
            }
            KeyPress::Up => self.focus = Focus::Rule(RulePlace::Project),
            KeyPress::Down => self.focus = Focus::Rule(RulePlace::Everywhere),
            KeyPress::Tab => self.suggest_next_rule(),
            KeyPress::Escape => return self.back_to_question(),
            KeyPress::NewLine | KeyPress::EndOfInput => {}
            key => self.entry.key(key),
        }
        Vec::new()
    }

    fn suggest_next_rule(&mut self) {
        let Some(question) = self.asked() else { return };
        let shown = self.entry.text();
        let at = question.rules().iter().position(|rule| *rule == *shown);
        let next = at.map_or(0, |at| at + 1) % question.rules().len().max(1);
        if let Some(rule) = question.rules().get(next).cloned() {
            self.entry.set(&rule);
        }
    }

    // All other keys are the editor's, which lists them.
    #[allow(clippy::wildcard_enum_match_arm)]
    pub(super) fn at_form(&mut self, key: KeyPress) -> Vec<ScreenEffect> {
        match key {
            KeyPress::Enter => {
                let answers = self.entry.text().into_owned();
                return self.answer(PersonAnswer::Form(answers));
            }
            KeyPress::Escape => return self.back_to_question(),
            // The rows of a form, and no earlier text.
            KeyPress::Up => drop(self.entry.move_row(Direction::Start)),
            KeyPress::Down => drop(self.entry.move_row(Direction::End)),
            KeyPress::EndOfInput => {}
            key => self.entry.key(key),
        }
        Vec::new()
    }

    pub(super) fn back_to_question(&mut self) -> Vec<ScreenEffect> {
        self.focus = Focus::Line;
        Vec::new()
    }

    fn answer(&mut self, answer: PersonAnswer) -> Vec<ScreenEffect> {
        self.answer_with(answer, String::new())
    }

    /// The question stays until the supervisor confirms the answer. The note comes back if it does not count.
    fn answer_with(&mut self, answer: PersonAnswer, note: String) -> Vec<ScreenEffect> {
        let Some(question) = self.asked() else { return Vec::new() };
        let Question { call, digest, .. } = question.clone();
        self.focus = Focus::Line;
        self.list.give(call.clone(), note);
        vec![ScreenEffect::Send(FromClient::Answer { call, digest, answer })]
    }
}

/// The number that is all of a text.
fn number_of(text: &str) -> Option<usize> {
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
        Choice::Mode(PermissionMode::Auto) => Some("A"),
        Choice::Mode(PermissionMode::DontAsk) => Some("D"),
        Choice::Mode(PermissionMode::Plan) => None,
        Choice::Session(_) => Some("s"),
        Choice::Always => Some("a"),
        Choice::Deny => Some("n"),
        Choice::Stop => Some("x"),
    }
}

fn is_letter_of(choice: &Choice, word: &str) -> bool {
    letter_of(choice) == Some(word) || (*choice == Choice::Deny && word == "r")
}

/// The lines of a server's form.
fn form_lines(question: &Question) -> String {
    match &question.ask {
        Ask::Form { lines } => lines.join("\n"),
        Ask::Call { .. } | Ask::Plan { .. } | Ask::Visit => String::new(),
    }
}
