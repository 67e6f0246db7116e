//! The keys while a question is pending: answers, the rule of an "always" answer, a reason, and the
//! mode that a plan is approved with.

use super::key_press::{Direction, KeyPress};
use super::{Focus, Pending, QuestionShown, Screen, ScreenEffect};
use protocol::client::FromClient;
use protocol::judgement::{Ask, PermissionMode, PersonAnswer, Question};

/// Hint of the keys that answer a question.
const ANSWERS_TO_PLAN: &str = "y or e approves the plan, A and D too, n plans on, r plans on for a reason, \
    x stop the turn; Tab to type a message first";
/// Hint of the keys that answer a server's form, and its wish for a visit.
const ANSWERS_TO_FORM: &str =
    "y fill in the form, n decline, x stop the turn; Tab to type a message first";
const ANSWERS_TO_VISIT: &str = "y when you have finished on that page, n decline, x stop the turn; Tab to type a message first";
/// Hint of the keys that answer another question.
const ANSWERS: &str = "y once, s session, a always, n deny, r deny with a reason, x stop the turn; \
    Tab to type a message first";

/// Hint where a letter would allow what was not on the screen yet.
const HIDDEN_ROWS: &str =
    "rows of this question are hidden: PgDn shows them, then y allows it; n denies";

impl Screen {
    pub(super) fn at_question(&mut self, key: KeyPress) -> Vec<ScreenEffect> {
        let Some(question) = self.items.questions().first().cloned() else {
            self.focus = Focus::Line;
            return self.at_line(key);
        };
        match key {
            KeyPress::Char(':') => {
                self.focus = Focus::Line;
                self.at_line(key)
            }
            KeyPress::Char(letter) => {
                self.pending = Pending::Letter(letter, question.call);
                Vec::new()
            }
            KeyPress::Tab => {
                self.focus = Focus::Line;
                Vec::new()
            }
            KeyPress::Escape => self.stop(),
            KeyPress::EndOfInput => self.leave(),
            KeyPress::Up | KeyPress::Down
                if !self.prompts.queued.is_empty() || !self.editor.is_empty() =>
            {
                self.focus = Focus::Line;
                self.at_line(key)
            }
            KeyPress::Enter
            | KeyPress::NewLine
            | KeyPress::Interrupt
            | KeyPress::Up
            | KeyPress::Down
            | KeyPress::Move(..)
            | KeyPress::Erase(..)
            | KeyPress::Edit(_)
            | KeyPress::Page(_)
            | KeyPress::BackTab
            | KeyPress::Control(_)
            | KeyPress::Redraw
            | KeyPress::Leader => self.say_hint(self.answers()),
        }
    }

    /// True while a letter waits that [`ScreenInput::LetterAlone`] makes an answer, or a word that leaves.
    ///
    /// [`ScreenInput::LetterAlone`]: super::ScreenInput::LetterAlone
    #[must_use]
    pub fn letter_waits(&self) -> bool {
        matches!(self.pending, Pending::Letter(..) | Pending::Leaving)
    }

    /// Two printable keys in a row are words, which the question waits for.
    pub(super) fn word(&mut self, first: char, next: char) -> Vec<ScreenEffect> {
        self.focus = Focus::Line;
        let mut effects = self.at_line(KeyPress::Char(first));
        effects.extend(self.at_line(KeyPress::Char(next)));
        effects
    }

    /// The letter answers the question that it was pressed at, if its reader could see all of it. The word leaves.
    pub(super) fn letter_alone(&mut self, shown: QuestionShown) -> Vec<ScreenEffect> {
        let (letter, call) = match std::mem::replace(&mut self.pending, Pending::Nothing) {
            Pending::Letter(letter, call) => (letter, call),
            Pending::Leaving => return self.leave_by_word(),
            Pending::Nothing | Pending::Leader | Pending::Interrupted | Pending::Escaped => {
                return Vec::new();
            }
        };
        let asked = self.items.questions().first();
        if self.focus != Focus::Question || asked.is_none_or(|asked| asked.call != call) {
            return Vec::new();
        }
        match (shown, letter) {
            (QuestionShown::Whole, _) | (QuestionShown::InPart, 'n' | 'r' | 'x') => {
                self.answer_by(letter)
            }
            (QuestionShown::InPart, _) => self.say_hint(HIDDEN_ROWS),
        }
    }

    /// The answer that a letter stands for.
    pub(super) fn answer_by(&mut self, letter: char) -> Vec<ScreenEffect> {
        let Some(question) = self.items.questions().first().cloned() else { return Vec::new() };
        match letter {
            key if question.is_plan() && mode_of(key).is_some() => {
                let mode = mode_of(key).map(PersonAnswer::Mode);
                mode.map_or_else(Vec::new, |answer| self.answer(answer))
            }
            's' | 'a' if question.is_plan() => self.say_hint(ANSWERS_TO_PLAN),
            's' | 'a' | 'r' if question.is_of_server() => self.say_hint(self.answers()),
            'y' if question.is_form() => {
                // Answers that did not fit are there to be changed.
                if self.reason.is_empty() {
                    self.reason.start_over();
                    self.reason.insert(&form_lines(&question));
                }
                self.focus = Focus::Reason;
                Vec::new()
            }
            'y' => self.answer(PersonAnswer::Once),
            'n' => self.answer(PersonAnswer::Deny(String::new())),
            'x' => self.answer(PersonAnswer::Stop),
            's' => match question.rules().first() {
                Some(rule) => self.answer(PersonAnswer::Session(rule.clone())),
                None => self.say_hint("no rule is narrow enough for this; y allows it once"),
            },
            'a' if question.rules().is_empty() => {
                self.say_hint("no rule is narrow enough for this; y allows it once")
            }
            'a' => {
                self.focus = Focus::Rule(0);
                Vec::new()
            }
            'r' => {
                self.reason.start_over();
                self.focus = Focus::Reason;
                Vec::new()
            }
            _ => self.say_hint(self.answers()),
        }
    }

    pub(super) fn asks_about_plan(&self) -> bool {
        self.items.questions().first().is_some_and(Question::is_plan)
    }

    pub(super) fn asks_for_form(&self) -> bool {
        self.items.questions().first().is_some_and(Question::is_form)
    }

    pub(super) fn answers(&self) -> &'static str {
        let Some(question) = self.items.questions().first() else { return ANSWERS };
        match question.ask {
            Ask::Form { .. } => ANSWERS_TO_FORM,
            Ask::Visit => ANSWERS_TO_VISIT,
            Ask::Plan { .. } => ANSWERS_TO_PLAN,
            Ask::Call { .. } => ANSWERS,
        }
    }

    /// A rule is written only after it was shown, and by Enter: letters may be words.
    pub(super) fn at_rule(&mut self, key: KeyPress, choice: usize) -> Vec<ScreenEffect> {
        let Some(asked) = self.items.questions().first() else { return self.back_to_question() };
        match key {
            KeyPress::Enter => match lasting_answer(asked, choice) {
                Some(answer) => self.answer(answer),
                None => self.back_to_question(),
            },
            KeyPress::Tab | KeyPress::Down => {
                self.focus = Focus::Rule((choice + 1) % (2 * asked.rules().len()).max(1));
                Vec::new()
            }
            KeyPress::Escape => self.back_to_question(),
            KeyPress::Char(_) => {
                self.focus = Focus::Line;
                self.at_line(key)
            }
            KeyPress::NewLine
            | KeyPress::Interrupt
            | KeyPress::EndOfInput
            | KeyPress::Up
            | KeyPress::Move(..)
            | KeyPress::Erase(..)
            | KeyPress::Edit(_)
            | KeyPress::Page(_)
            | KeyPress::BackTab
            | KeyPress::Control(_)
            | KeyPress::Redraw
            | KeyPress::Leader => {
                self.say_hint("Enter writes the rule, Tab shows another choice, Esc goes back")
            }
        }
    }

    // All other keys are the editor's, which lists them.
    #[allow(clippy::wildcard_enum_match_arm)]
    pub(super) fn at_reason(&mut self, key: KeyPress) -> Vec<ScreenEffect> {
        match key {
            KeyPress::Enter if self.asks_for_form() => {
                let answers = self.reason.text().into_owned();
                return self.answer(PersonAnswer::Form(answers));
            }
            KeyPress::Enter => {
                let reason = self.reason.take().trim().to_owned();
                return self.answer(PersonAnswer::Deny(reason));
            }
            KeyPress::Escape => return self.back_to_question(),
            // The rows of a form, and no earlier reason.
            KeyPress::Up if self.asks_for_form() => drop(self.reason.move_row(Direction::Start)),
            KeyPress::Down if self.asks_for_form() => drop(self.reason.move_row(Direction::End)),
            KeyPress::EndOfInput => {}
            key => self.reason.key(key),
        }
        Vec::new()
    }

    pub(super) fn back_to_question(&mut self) -> Vec<ScreenEffect> {
        self.focus = Focus::Question;
        Vec::new()
    }

    /// The question stays until the supervisor confirms the answer.
    pub(super) fn answer(&mut self, answer: PersonAnswer) -> Vec<ScreenEffect> {
        let Some(question) = self.items.questions().first() else { return Vec::new() };
        let Question { call, digest, .. } = question.clone();
        self.focus = Focus::Question;
        self.hint = Some("answered; waiting for the supervisor".to_owned());
        vec![ScreenEffect::Send(FromClient::Answer { call, digest, answer })]
    }
}

/// The lines of a server's form.
fn form_lines(question: &Question) -> String {
    match &question.ask {
        Ask::Form { lines } => lines.join("\n"),
        Ask::Call { .. } | Ask::Plan { .. } | Ask::Visit => String::new(),
    }
}

/// The answer of a choice among a question's rules: each for this project, then each for all projects.
pub(crate) fn lasting_answer(question: &Question, choice: usize) -> Option<PersonAnswer> {
    let rules = question.rules();
    let rule = rules.get(choice % rules.len().max(1))?.clone();
    Some(match choice < rules.len() {
        true => PersonAnswer::Always(rule),
        false => PersonAnswer::Everywhere(rule),
    })
}

/// The mode that a plan is approved with by this key. The modes that ask nobody need Shift.
fn mode_of(key: char) -> Option<PermissionMode> {
    match key {
        'y' => Some(PermissionMode::Ask),
        'e' => Some(PermissionMode::AcceptEdits),
        'A' => Some(PermissionMode::Auto),
        'D' => Some(PermissionMode::DontAsk),
        _ => None,
    }
}
