//! What a key, a paste or a typed line means, by what the keys are for at that moment.

use super::command::{self, Command};
use super::editor::{Reach, Toward};
use super::{Effect, Focus, Leaving, Link, Moving, Pending, Screen, Turn};
use crate::blocks::Item;
use protocol::client::{Change, FromClient, Start};
use protocol::judgement::{Answer, Question};

/// Events of one page of earlier ones.
const PAGE: u32 = 100;
/// What a terminal that only watches is told.
const WATCHING: &str = "this terminal only watches; attach without -r to type or answer";
/// What to press at a question.
const ANSWERS: &str = "y once, s session, a always, n deny, r deny with a reason, x stop the turn; \
    Tab to type a message first";

/// A key, by what it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// Done with the line.
    Enter,
    /// A new line in it.
    NewLine,
    /// Stop, or back.
    Escape,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D.
    EndOfInput,
    /// Between question and line, or to the next rule.
    Tab,
    /// Earlier input, or what is queued.
    Up,
    /// Later input.
    Down,
    /// The cursor moves.
    Go(Reach, Toward),
    /// Text goes.
    Erase(Reach, Toward),
    /// Paint everything anew.
    Redraw,
    /// The first of two that leave.
    Leader,
}

impl Screen {
    pub(super) fn key(&mut self, key: Key) -> Vec<Effect> {
        self.hint = None;
        match (std::mem::replace(&mut self.pending, Pending::Nothing), key) {
            (Pending::Leader, Key::Char('d')) => vec![Effect::Leave(Leaving::Detached(None))],
            (Pending::Leader, _) => self.say_hint("after the leader key, d detaches"),
            (_, Key::Leader) => {
                self.pending = Pending::Leader;
                self.say_hint("d detaches; the session goes on")
            }
            (_, Key::Redraw) => vec![Effect::Repaint],
            (pending, Key::Interrupt) => self.interrupt(pending),
            (_, key) => match self.focus {
                Focus::Line => self.at_line(key),
                Focus::Question => self.at_question(key),
                Focus::Rule(offer) => self.at_rule(key, offer),
                Focus::Reason => self.at_reason(key),
            },
        }
    }

    pub(super) fn paste(&mut self, text: &str) -> Vec<Effect> {
        self.hint = None;
        if !self.may_answer() {
            return self.say_hint(WATCHING);
        }
        // A paste is never an answer.
        if self.focus == Focus::Reason {
            self.reason.insert(text);
        } else {
            self.focus = Focus::Line;
            self.editor.insert(text);
        }
        Vec::new()
    }

    /// A whole line, where a terminal has no keys: a question is answered by its first letter.
    pub(super) fn line(&mut self, line: &str) -> Vec<Effect> {
        let line = line.trim();
        match self.focus {
            Focus::Line => {
                self.editor.set(line);
                self.at_line(Key::Enter)
            }
            Focus::Reason => {
                self.reason.set(line);
                self.at_reason(Key::Enter)
            }
            Focus::Question if line.starts_with(':') => {
                self.editor.set(line);
                self.at_line(Key::Enter)
            }
            Focus::Question | Focus::Rule(_) => {
                let (letter, rest) = line.split_at(line.chars().next().map_or(0, char::len_utf8));
                let Some(letter) = letter.chars().next() else { return Vec::new() };
                if letter == 'r' && !rest.trim().is_empty() {
                    return self.answer(Answer::Deny(rest.trim().to_owned()));
                }
                if !rest.is_empty() {
                    return self.say_hint(ANSWERS);
                }
                self.key(Key::Char(letter))
            }
        }
    }

    fn interrupt(&mut self, pending: Pending) -> Vec<Effect> {
        match self.focus {
            Focus::Rule(_) | Focus::Reason => self.back_to_question(),
            Focus::Line | Focus::Question if self.turn == Turn::Working => self.stop(),
            Focus::Line | Focus::Question if !self.editor.is_empty() => {
                self.editor.set("");
                Vec::new()
            }
            Focus::Line | Focus::Question if pending == Pending::Interrupted => {
                let leader = &self.entrance.leader;
                let hint = format!("to leave: Ctrl-D, :q, or {leader} d; the session stays");
                self.say_hint(&hint)
            }
            Focus::Line | Focus::Question => {
                self.pending = Pending::Interrupted;
                self.say_hint("nothing runs here")
            }
        }
    }

    fn stop(&mut self) -> Vec<Effect> {
        if !self.may_answer() {
            return self.say_hint(WATCHING);
        }
        self.hint = Some("stopping the turn".to_owned());
        self.to_session(|session| FromClient::Interrupt { session })
    }

    fn at_line(&mut self, key: Key) -> Vec<Effect> {
        match key {
            Key::EndOfInput if self.editor.is_empty() => return self.leave(),
            Key::Escape if self.turn == Turn::Working => return self.stop(),
            Key::Enter if self.editor.text().trim_start().starts_with(':') => {
                let text = self.editor.take();
                return self.command(text.trim());
            }
            // Who watches may leave and look back, and that is written with a colon.
            Key::Char(c) if !self.may_answer() && self.editor.is_empty() && c != ':' => {
                return self.say_hint(WATCHING);
            }
            Key::Enter => return self.submit(),
            Key::Tab if !self.blocks.questions().is_empty() && self.may_answer() => {
                self.focus = Focus::Question;
            }
            Key::Up if self.editor.is_empty() && !self.queue.is_empty() => {
                if !self.may_answer() {
                    return self.say_hint(WATCHING);
                }
                return self.to_session(|session| FromClient::TakeBack { session });
            }
            Key::Up => self.editor.earlier(),
            Key::Down => self.editor.later(),
            Key::Char(c) => self.editor.insert(c.encode_utf8(&mut [0; 4])),
            Key::NewLine => self.editor.insert("\n"),
            Key::Go(reach, toward) => self.editor.go(reach, toward),
            Key::Erase(reach, toward) => self.editor.erase(reach, toward),
            Key::EndOfInput => self.editor.erase(Reach::Character, Toward::End),
            Key::Escape | Key::Tab | Key::Interrupt | Key::Redraw | Key::Leader => {}
        }
        Vec::new()
    }

    fn submit(&mut self) -> Vec<Effect> {
        if self.editor.text().trim().is_empty() {
            return Vec::new();
        }
        if !self.may_answer() {
            return self.say_hint(WATCHING);
        }
        if self.link != Link::Live {
            return self.say_hint("not connected yet; the text stays here");
        }
        let text = self.editor.take();
        self.prompt(text)
    }

    fn prompt(&mut self, text: String) -> Vec<Effect> {
        if !self.blocks.questions().is_empty() {
            self.focus = Focus::Question;
        }
        self.said.push(text.clone());
        self.to_session(|session| FromClient::Prompt { session, text })
    }

    pub(super) fn leave(&self) -> Vec<Effect> {
        let how = match self.turn {
            Turn::Idle => Leaving::Quit,
            Turn::Working => Leaving::Detached(None),
        };
        vec![Effect::Leave(how)]
    }

    fn command(&mut self, text: &str) -> Vec<Effect> {
        let meant = match command::parse(text) {
            Ok(meant) => meant,
            Err(said) => return vec![Effect::Show(Item::Trouble(said))],
        };
        let changes = match meant {
            Command::Network(_)
            | Command::AllowHost(_)
            | Command::Mode(_)
            | Command::Model(_)
            | Command::Compact
            | Command::Undo
            | Command::Pin(_)
            | Command::Unpin(_)
            | Command::AddDirectory(_) => true,
            Command::Quit
            | Command::Clear
            | Command::Fork
            | Command::Audit
            | Command::Earlier
            | Command::Help => false,
        };
        if changes && !self.may_answer() {
            return self.say_hint(WATCHING);
        }
        match meant {
            Command::Quit => self.leave(),
            Command::Network(network) => self.change(Change::Network(network)),
            Command::AllowHost(host) => self.change(Change::Host(host)),
            Command::Mode(mode) => self.change(Change::Mode(mode)),
            Command::Model(name) => self.change(Change::Model(name)),
            Command::AddDirectory(named) => vec![Effect::AddDirectory(named)],
            Command::Pin(file) => self.change(Change::Pin(file)),
            Command::Unpin(file) => self.change(Change::Unpin(file)),
            Command::Undo if self.link != Link::Live => {
                self.say_hint("not connected yet; say it again in a moment")
            }
            // It waits its turn as words for the model do, and is one of the session's turns.
            Command::Undo => self.prompt(":undo".to_owned()),
            Command::Compact => self.to_session(|session| FromClient::Compact { session }),
            Command::Help => {
                let leave = format!("{} d", self.entrance.leader);
                vec![Effect::Show(Item::Note(command::help(&leave)))]
            }
            Command::Clear => {
                self.moving = Moving::ToNew;
                vec![Effect::Repaint, Effect::Open(Start::New)]
            }
            Command::Fork => {
                self.moving = Moving::ToCopy;
                let copy = |of| Effect::Open(Start::Fork { of, at: None });
                self.facts.session.clone().map(copy).into_iter().collect()
            }
            Command::Audit => {
                self.facts.session.clone().map(Effect::ShowAudit).into_iter().collect()
            }
            Command::Earlier => {
                let before = self.first_seq.unwrap_or(1);
                self.to_session(|session| FromClient::Page { session, before, most: PAGE })
            }
        }
    }

    pub(super) fn change(&self, change: Change) -> Vec<Effect> {
        self.to_session(|session| FromClient::Change { session, change })
    }

    fn at_question(&mut self, key: Key) -> Vec<Effect> {
        let Some(question) = self.blocks.questions().first().cloned() else {
            self.focus = Focus::Line;
            return self.at_line(key);
        };
        match key {
            Key::Char('y') => self.answer(Answer::Once),
            Key::Char('n') => self.answer(Answer::Deny(String::new())),
            Key::Char('x') => self.answer(Answer::Stop),
            Key::Char('s') => match question.offers.into_iter().next() {
                Some(rule) => self.answer(Answer::Session(rule)),
                None => self.say_hint("no rule is narrow enough for this; y allows it once"),
            },
            Key::Char('a') if question.offers.is_empty() => {
                self.say_hint("no rule is narrow enough for this; y allows it once")
            }
            Key::Char('a') => {
                self.focus = Focus::Rule(0);
                Vec::new()
            }
            Key::Char('r') => {
                self.reason.set("");
                self.focus = Focus::Reason;
                Vec::new()
            }
            Key::Char(':') => {
                self.focus = Focus::Line;
                self.at_line(key)
            }
            Key::Tab => {
                self.focus = Focus::Line;
                Vec::new()
            }
            Key::Escape => self.stop(),
            Key::EndOfInput => self.leave(),
            Key::Up | Key::Down if !self.queue.is_empty() || !self.editor.is_empty() => {
                self.focus = Focus::Line;
                self.at_line(key)
            }
            Key::Char(_)
            | Key::Enter
            | Key::NewLine
            | Key::Interrupt
            | Key::Up
            | Key::Down
            | Key::Go(..)
            | Key::Erase(..)
            | Key::Redraw
            | Key::Leader => self.say_hint(ANSWERS),
        }
    }

    /// A rule is written only after it was shown and a second key said yes.
    fn at_rule(&mut self, key: Key, offer: usize) -> Vec<Effect> {
        let offers = self.blocks.questions().first().map_or(&[][..], |asked| &asked.offers);
        match key {
            Key::Char('y') => match offers.get(offer).cloned() {
                Some(rule) => self.answer(Answer::Always(rule)),
                None => self.back_to_question(),
            },
            Key::Tab | Key::Down => {
                self.focus = Focus::Rule((offer + 1) % offers.len().max(1));
                Vec::new()
            }
            Key::Escape | Key::Char('n') => self.back_to_question(),
            Key::Char(_)
            | Key::Enter
            | Key::NewLine
            | Key::Interrupt
            | Key::EndOfInput
            | Key::Up
            | Key::Go(..)
            | Key::Erase(..)
            | Key::Redraw
            | Key::Leader => self.say_hint("y writes the rule, Tab shows another, n goes back"),
        }
    }

    fn at_reason(&mut self, key: Key) -> Vec<Effect> {
        match key {
            Key::Enter => {
                let reason = self.reason.take().trim().to_owned();
                return self.answer(Answer::Deny(reason));
            }
            Key::Escape => return self.back_to_question(),
            Key::Char(c) => self.reason.insert(c.encode_utf8(&mut [0; 4])),
            Key::NewLine => self.reason.insert("\n"),
            Key::Up => self.reason.earlier(),
            Key::Down => self.reason.later(),
            Key::Go(reach, toward) => self.reason.go(reach, toward),
            Key::Erase(reach, toward) => self.reason.erase(reach, toward),
            Key::Interrupt | Key::EndOfInput | Key::Tab | Key::Redraw | Key::Leader => {}
        }
        Vec::new()
    }

    fn back_to_question(&mut self) -> Vec<Effect> {
        self.focus = Focus::Question;
        Vec::new()
    }

    /// The question stays until the supervisor says that the answer counted.
    fn answer(&mut self, answer: Answer) -> Vec<Effect> {
        let Some(question) = self.blocks.questions().first() else { return Vec::new() };
        let Question { call, digest, .. } = question.clone();
        self.focus = Focus::Question;
        self.hint = Some("answered; waiting for the supervisor".to_owned());
        vec![Effect::Say(FromClient::Answer { call, digest, answer })]
    }

    fn say_hint(&mut self, hint: &str) -> Vec<Effect> {
        self.hint = Some(hint.to_owned());
        Vec::new()
    }

    fn to_session(&self, word: impl FnOnce(protocol::ids::SessionId) -> FromClient) -> Vec<Effect> {
        self.facts.session.clone().map(|session| Effect::Say(word(session))).into_iter().collect()
    }
}
