//! The keys while a question is pending. Printable keys write, as always; arrows mark a row of its list, Tab goes to
//! the next question, and Enter answers. A form of a server and a rule that is to be written have lines of their own.

use super::answer_list::{AnswerRows, Choice};
use super::answer_words::{Answers, AtEnter, HIDDEN_ROWS, choice_of_line, form_lines, number_of};
use super::key_press::{Direction, KeyPress};
use super::{Focus, QuestionShown, RulePlace, Screen, ScreenEffect};
use protocol::client::FromClient;
use protocol::judgement::{PermissionMode, PersonAnswer, Question};

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
        self.answers().map(|answers| answers.rows(self.focus))
    }

    fn say_answers(&mut self) -> Vec<ScreenEffect> {
        self.hint = self.answers().map(|answers| answers.in_words(self.focus));
        Vec::new()
    }

    /// The keys that mean something else while a question is open. None for those of the line.
    // They are all other keys.
    #[allow(clippy::wildcard_enum_match_arm)]
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
        Some(match then {
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

    /// Gives the answer of a row, if the reader could see all that it allows.
    fn choose(&mut self, choice: &Choice, question: &Question) -> Vec<ScreenEffect> {
        if choice.allows() && self.list.shown() == QuestionShown::InPart {
            return self.say_hint(HIDDEN_ROWS);
        }
        let note = match choice.note(question) {
            Some(_) => self.editor.take().trim().to_owned(),
            None => String::new(),
        };
        if let Some(answer) = choice.answer(&note) {
            return self.answer_with(answer, note);
        }
        if *choice == Choice::Always {
            self.list.begin_entry(question.rules().first().map_or("", String::as_str));
            self.focus = Focus::Rule(RulePlace::Project);
        } else {
            self.list.begin_entry(&form_lines(question));
            self.focus = Focus::Form;
        }
        Vec::new()
    }

    /// A line of a terminal without keys: a number or a letter of an older hand, and perhaps words behind it.
    pub(super) fn answer_by_line(&mut self, line: &str) -> Vec<ScreenEffect> {
        let Some(question) = self.asked().cloned() else { return Vec::new() };
        let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        let chosen = choice_of_line(&question, first, rest);
        let Some(chosen) = chosen else {
            return self.say_answers();
        };
        let is_named_by_mode = first == "y"
            && PermissionMode::parse(rest).is_some()
            && matches!(chosen, Choice::Mode(_));
        if chosen == Choice::Fill && !rest.is_empty() {
            return self.answer(PersonAnswer::Form(rest.to_owned()));
        }
        if chosen == Choice::Deny && first != "n" {
            return self.answer(PersonAnswer::Deny(rest.to_owned()));
        }
        if !rest.is_empty() && !is_named_by_mode {
            return self.say_answers();
        }
        self.choose(&chosen, &question)
    }

    /// A line below a rule: its place, and perhaps another rule.
    pub(super) fn rule_by_line(&mut self, line: &str) -> Vec<ScreenEffect> {
        let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let place = match first {
            "1" | "y" => RulePlace::Project,
            "2" | "A" => RulePlace::Everywhere,
            "3" | "n" => return self.back_to_question(),
            _ => {
                return self.say_answers();
            }
        };
        if !rest.trim().is_empty() {
            self.list.entry.set(rest.trim());
        }
        self.at_rule(KeyPress::Enter, place)
    }

    /// A rule is written only after it was shown, and by Enter.
    // All other keys are the editor's, which lists them.
    #[allow(clippy::wildcard_enum_match_arm)]
    pub(super) fn at_rule(&mut self, key: KeyPress, place: RulePlace) -> Vec<ScreenEffect> {
        match key {
            KeyPress::Enter => {
                let rule = self.list.entry.text().trim().to_owned();
                if rule.is_empty() {
                    return self.say_hint("a rule has a tool and a pattern, as in edit:src/**");
                }
                if self.list.shown() == QuestionShown::InPart {
                    return self.say_hint(HIDDEN_ROWS);
                }
                let answer = match place {
                    RulePlace::Project => PersonAnswer::Always(rule),
                    RulePlace::Everywhere => PersonAnswer::Everywhere(rule),
                };
                let note = self.editor.take().trim().to_owned();
                return self.answer_with(answer, note);
            }
            KeyPress::Up => self.focus = Focus::Rule(RulePlace::Project),
            KeyPress::Down => self.focus = Focus::Rule(RulePlace::Everywhere),
            KeyPress::Tab => {
                let question = self.list.question(self.items.questions()).cloned();
                question.iter().for_each(|asked| self.list.suggest_next_rule(asked));
            }
            KeyPress::Escape => return self.back_to_question(),
            KeyPress::NewLine | KeyPress::EndOfInput => {}
            key => self.list.entry.key(key),
        }
        Vec::new()
    }

    // All other keys are the editor's, which lists them.
    #[allow(clippy::wildcard_enum_match_arm)]
    pub(super) fn at_form(&mut self, key: KeyPress) -> Vec<ScreenEffect> {
        match key {
            KeyPress::Enter => {
                let answers = self.list.entry.text().into_owned();
                return self.answer(PersonAnswer::Form(answers));
            }
            KeyPress::Escape => return self.back_to_question(),
            key => self.list.form_key(key),
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
        let answer = answer.noted(&note);
        self.list.give(call.clone(), note);
        vec![ScreenEffect::Send(FromClient::Answer { call, digest, answer })]
    }
}
