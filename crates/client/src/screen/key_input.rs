//! Handles a key, a paste or a typed line, by the present focus.

use super::answer_words::{WAITING, is_old_answer};
use super::colon_command::{self, ChangesOf, ColonCommand};
use super::context::ContextUse;
use super::editor::Stashed;
use super::key_press::{Direction, Distance, KeyPress};
use super::line_marks;
use super::running_list;
use super::{
    AFTER_LEADER, ConnectionState, Focus, LeaveReason, Pending, Screen, ScreenEffect, SwitchTo,
    TurnState,
};
use crate::screen_items::{CallBlock, ScreenItem};
use protocol::client::{
    FromClient, SessionQuery, SessionStart, SessionWish, SettingChange, WhileBusy,
};
use protocol::session::TASK;

/// Events of one page of earlier ones.
const PAGE: u32 = 100;
/// Hint of a read-only terminal.
const WATCHING: &str = "this terminal is read-only; attach without -r to type or answer";

impl Screen {
    pub(super) fn key(&mut self, key: KeyPress) -> Vec<ScreenEffect> {
        self.hint = None;
        match (std::mem::replace(&mut self.pending, Pending::Nothing), key) {
            (Pending::Leader, KeyPress::Char('d')) => {
                vec![ScreenEffect::Leave(LeaveReason::Detached(None))]
            }
            (Pending::Leader, _) => self.say_hint("after the leader key, d detaches"),
            (_, KeyPress::Leader) => {
                self.pending = Pending::Leader;
                self.say_hint(AFTER_LEADER)
            }
            (_, KeyPress::Redraw) => vec![ScreenEffect::Repaint],
            // Of a paste whose marks the terminal does not send: the rest must not reach a shell.
            (Pending::Leaving, KeyPress::Char(_) | KeyPress::Enter) => {
                self.editor.insert("\n");
                self.key(key)
            }
            (_, key) if self.focus == Focus::Line && self.editor.vim_key(key) => Vec::new(),
            (pending, KeyPress::Interrupt) => self.interrupt(pending),
            (pending, KeyPress::Escape) if self.is_at_rest() => self.escape_at_rest(pending),
            (_, key) => match self.focus {
                Focus::Line => self.at_line(key),
                Focus::Rule(place) => self.at_rule(key, place),
                Focus::Form => self.at_form(key),
            },
        }
    }

    pub(super) fn paste(&mut self, text: &str) -> Vec<ScreenEffect> {
        self.hint = None;
        // No key of before has its second one behind the paste.
        self.pending = Pending::Nothing;
        if !self.may_answer() {
            return self.say_hint(WATCHING);
        }
        // A paste is never an answer.
        match self.focus {
            Focus::Form => self.list.entry.line.insert(text),
            // A rule is one line.
            Focus::Rule(_) => self.list.entry.line.insert(text.lines().next().unwrap_or_default()),
            Focus::Line => {
                self.editor.paste(text);
                self.list.text_came();
            }
        }
        Vec::new()
    }

    /// Handles a whole line of a terminal without keys. Its first word answers a question.
    pub(super) fn line(&mut self, line: &str) -> Vec<ScreenEffect> {
        // What is asked next must be printed in its place.
        self.hint = None;
        let effects = self.take_line(line);
        if self.question().is_some_and(|asked| self.list.is_given(&asked.call)) {
            self.hint = Some(WAITING.to_owned());
        }
        effects
    }

    fn take_line(&mut self, line: &str) -> Vec<ScreenEffect> {
        // A space before a slash makes it text.
        let typed = line.trim_end();
        let line = line.trim();
        match self.focus {
            Focus::Line | Focus::Rule(_) if line.starts_with(':') => self.enter_line(line),
            // A terminal of lines does not tell a typed line from one of a paste.
            Focus::Line if line.starts_with('!') && typed.starts_with('!') => {
                self.say_hint(
                    "`!` runs nothing in a terminal of lines, where a paste looks like typing; a space before it makes \
                     it a prompt",
                )
            }
            Focus::Line if self.asked().is_some() => match line {
                "" => Vec::new(),
                _ => self.answer_by_line(line),
            },
            Focus::Line => self.enter_line(typed),
            Focus::Form => {
                self.list.entry.line.set(line);
                self.at_form(KeyPress::Enter)
            }
            Focus::Rule(_) => self.rule_by_line(line),
        }
    }

    /// A draft of a terminal with keys, which this one does not show, is no part of the line. It stays a draft.
    fn enter_line(&mut self, line: &str) -> Vec<ScreenEffect> {
        if !self.editor.is_empty() {
            self.editor.stash();
        }
        self.editor.set(line);
        self.enter(self.options.busy)
    }

    /// Enter was pressed before the question could be read.
    pub(super) fn enter_ahead(&mut self) -> Vec<ScreenEffect> {
        // The second half of an answer to an earlier question, from one who is used to lines, or a number for this one.
        match self.editor.is_empty() || is_old_answer(&self.editor.text()) {
            true => self.say_hint("Enter came before the question could be read; press it again"),
            false => self.line_key(KeyPress::Enter),
        }
    }

    /// A line with a word that leaves was the last one.
    pub(super) fn word_alone(&mut self) -> Vec<ScreenEffect> {
        match std::mem::replace(&mut self.pending, Pending::Nothing) {
            Pending::Leaving => self.leave_by_word(),
            other @ (Pending::Nothing
            | Pending::Leader
            | Pending::Interrupted
            | Pending::Escaped) => {
                self.pending = other;
                Vec::new()
            }
        }
    }

    /// True while a word waits that [`ScreenInput::WordAlone`] leaves by.
    ///
    /// [`ScreenInput::WordAlone`]: super::ScreenInput::WordAlone
    #[must_use]
    pub fn word_waits(&self) -> bool {
        self.pending == Pending::Leaving
    }

    fn interrupt(&mut self, pending: Pending) -> Vec<ScreenEffect> {
        match self.focus {
            Focus::Rule(_) | Focus::Form => self.back_to_question(),
            Focus::Line if self.turn == TurnState::Working => self.stop(),
            Focus::Line if !self.editor.is_empty() => {
                self.editor.clear();
                Vec::new()
            }
            Focus::Line if pending == Pending::Interrupted => {
                let leader = &self.options.leader;
                let hint = format!("to leave: Ctrl-D, :q, or {leader} d; the session continues");
                self.say_hint(&hint)
            }
            Focus::Line => {
                self.pending = Pending::Interrupted;
                let leader = &self.options.leader;
                let hint = format!("no turn is running; :q leaves, {leader} d detaches");
                self.say_hint(&hint)
            }
        }
    }

    pub(super) fn stop(&mut self) -> Vec<ScreenEffect> {
        if !self.may_answer() {
            return self.say_hint(WATCHING);
        }
        self.hint = Some("stopping the turn".to_owned());
        self.to_session(|session| FromClient::Interrupt { session })
    }

    pub(super) fn at_line(&mut self, key: KeyPress) -> Vec<ScreenEffect> {
        match self.at_question(key) {
            Some(effects) => effects,
            None => self.line_key(key),
        }
    }

    // All other keys are the editor's, which lists them.
    #[allow(clippy::wildcard_enum_match_arm)]
    fn line_key(&mut self, key: KeyPress) -> Vec<ScreenEffect> {
        match key {
            KeyPress::EndOfInput if self.editor.is_empty() => return self.leave(),
            KeyPress::Escape if self.turn == TurnState::Working => return self.stop(),
            // A read-only client may only type colon commands: to leave, or to show earlier events.
            KeyPress::Char(c) if !self.may_answer() && self.editor.is_empty() && c != ':' => {
                return self.say_hint(WATCHING);
            }
            KeyPress::Enter if self.editor.continue_line() => {}
            KeyPress::Enter if leaves(&self.editor.text()) => self.pending = Pending::Leaving,
            KeyPress::Enter => return self.enter(self.options.busy),
            KeyPress::Tab if self.turn == TurnState::Working => {
                return self.enter(self.options.busy.other());
            }
            KeyPress::Up if self.editor.is_empty() && !self.prompts.queued.is_empty() => {
                if !self.may_answer() {
                    return self.say_hint(WATCHING);
                }
                return self.to_session(|session| FromClient::TakeBack { session, only: None });
            }
            KeyPress::Control('s') => return stash(self),
            KeyPress::Control('b') => return self.send_to_background(),
            KeyPress::Control('t') => return running_list::ask(self),
            KeyPress::Control('v') if !self.may_answer() => return self.say_hint(WATCHING),
            KeyPress::Control('v') => return self.paste_image(),
            key => self.editor.key(key),
        }
        Vec::new()
    }

    /// Ctrl-B: the commands and sub-agents that run go on in the background. Where none runs, it is the key of other
    /// line editors for one character back.
    fn send_to_background(&mut self) -> Vec<ScreenEffect> {
        // A sub-agent has cages of its own.
        let runs = |call: &CallBlock| call.cage.is_some() || call.call.tool == TASK;
        let is_waited_for = |call: &CallBlock| !call.is_in_background() && runs(call);
        if !self.items.open().iter().any(is_waited_for) {
            self.editor.key(KeyPress::Move(Distance::Character, Direction::Start));
            return Vec::new();
        }
        if !self.may_answer() {
            return self.say_hint(WATCHING);
        }
        let wish = SessionWish::Background;
        self.to_session(|session| FromClient::Wish { session, wish })
    }

    /// The line is done: a command, or a prompt. The bare words are prompts of a terminal of lines, which does not tell
    /// a typed line from one of a paste.
    fn enter(&mut self, busy: WhileBusy) -> Vec<ScreenEffect> {
        match self.editor.text().trim() {
            "" => return Vec::new(),
            "/rewind" => {
                self.editor.take();
                return self.command(":rewind");
            }
            "/exit" | "/quit" if leaves(&self.editor.text()) => return self.leave_by_word(),
            text if text.starts_with(':') => {
                let text = self.editor.take();
                return self.command(text.trim());
            }
            _ => {}
        }
        if !self.may_answer() {
            return self.say_hint(WATCHING);
        }
        if self.connection != ConnectionState::Live {
            return self.say_hint("not connected yet; the text stays here");
        }
        let text = self.editor.take();
        match line_marks::note_of(&text) {
            Some(note) => line_marks::list_places(note),
            None => self.prompt(text, busy),
        }
    }

    pub(super) fn prompt(&mut self, text: String, busy: WhileBusy) -> Vec<ScreenEffect> {
        self.prompts.sent.push(text.clone());
        self.to_session(|session| line_marks::message(session, text, busy))
    }

    pub(super) fn leave_by_word(&mut self) -> Vec<ScreenEffect> {
        self.editor.take();
        self.leave()
    }

    pub(super) fn leave(&self) -> Vec<ScreenEffect> {
        let how = match self.turn {
            TurnState::Idle => LeaveReason::Quit,
            TurnState::Working => LeaveReason::Detached(None),
        };
        vec![ScreenEffect::Leave(how)]
    }

    pub(super) fn command(&mut self, text: &str) -> Vec<ScreenEffect> {
        let meant = match colon_command::parse(text) {
            Ok(meant) => meant,
            Err(said) => return vec![ScreenEffect::Show(ScreenItem::Error(said))],
        };
        if meant.changes_session() && !self.may_answer() {
            return self.say_hint(WATCHING);
        }
        match meant {
            ColonCommand::Quit => self.leave(),
            ColonCommand::Say(words) => {
                vec![ScreenEffect::Show(ScreenItem::Note(words.to_owned()))]
            }
            ColonCommand::Network(network) => self.change(SettingChange::Network(network)),
            ColonCommand::AllowHost(host) => self.change(SettingChange::Host(host)),
            ColonCommand::Mode(mode) => self.change(SettingChange::Mode(mode)),
            ColonCommand::Model(name) => self.change(SettingChange::Model(name)),
            ColonCommand::Name(name) => self.change(SettingChange::Name(name)),
            ColonCommand::AddDirectory(named) => vec![ScreenEffect::AddDirectory(named)],
            ColonCommand::Pin(file) => self.change(SettingChange::Pin(file)),
            ColonCommand::Unpin(file) => self.change(SettingChange::Unpin(file)),
            ColonCommand::Undo(_) if self.connection != ConnectionState::Live => {
                self.say_hint("not connected yet; try again in a moment")
            }
            // It is queued like a prompt and is a turn of its own.
            ColonCommand::Undo(what) => {
                self.prompt(format!(":undo {what}").trim_end().to_owned(), WhileBusy::Queue)
            }
            ColonCommand::Paste => self.paste_image(),
            ColonCommand::Rewind(None) => self.list_rewind_points(),
            ColonCommand::Rewind(Some((seq, scope))) => self.rewind(seq, scope),
            ColonCommand::Compact(focus) => {
                let wish = SessionWish::Compact { focus };
                self.to_session(|session| FromClient::Wish { session, wish })
            }
            ColonCommand::Running(command) => running_list::give(self, command),
            ColonCommand::Help => {
                let leave = format!("{} d", self.options.leader);
                vec![ScreenEffect::Show(ScreenItem::Note(colon_command::help(&leave)))]
            }
            ColonCommand::Clear => {
                self.switch_to = SwitchTo::New;
                vec![ScreenEffect::Repaint, ScreenEffect::Open(SessionStart::New)]
            }
            ColonCommand::Fork => {
                self.switch_to = SwitchTo::Copy;
                let copy = |of| ScreenEffect::Open(SessionStart::Fork { of, at: None });
                self.session().cloned().map(copy).into_iter().collect()
            }
            ColonCommand::Theme(theme) => vec![ScreenEffect::Theme(theme)],
            ColonCommand::Audit => {
                self.session().cloned().map(ScreenEffect::ShowAudit).into_iter().collect()
            }
            ColonCommand::Memories => {
                self.session().cloned().map(ScreenEffect::ShowMemories).into_iter().collect()
            }
            ColonCommand::RemoveMemories(ids) => {
                let remove = |session| ScreenEffect::RemoveMemories(session, ids);
                self.session().cloned().map(remove).into_iter().collect()
            }
            ColonCommand::Note(place, text) => line_marks::write_note(self, place, text),
            ColonCommand::Changes(of) => {
                let since = match of {
                    ChangesOf::Turn => self.items.first_call_of_turn(),
                    ChangesOf::Session => 0,
                };
                self.to_session(|session| FromClient::Query {
                    session,
                    query: SessionQuery::Changes { since },
                })
            }
            ColonCommand::Context => self.ask_for_context(ContextUse::Show),
            ColonCommand::Servers => {
                let query = SessionQuery::Servers;
                self.to_session(|session| FromClient::Query { session, query })
            }
            ColonCommand::Summary(None) => self.ask_for_context(ContextUse::EditSummary),
            ColonCommand::Summary(Some(text)) => self.edit_summary(text),
            ColonCommand::Earlier => {
                let before = self.seqs.first.unwrap_or(1);
                self.to_session(|session| FromClient::Page { session, before, most: PAGE })
            }
        }
    }

    pub(super) fn change(&self, change: SettingChange) -> Vec<ScreenEffect> {
        self.to_session(|session| FromClient::Change { session, change })
    }

    pub(super) fn say_hint(&mut self, hint: &str) -> Vec<ScreenEffect> {
        self.hint = Some(hint.to_owned());
        Vec::new()
    }

    pub(super) fn to_session(
        &self,
        word: impl FnOnce(protocol::ids::SessionId) -> FromClient,
    ) -> Vec<ScreenEffect> {
        let session = self.session().cloned();
        session.map(|session| ScreenEffect::Send(word(session))).into_iter().collect()
    }
}

/// Ctrl-S: the draft is put away, or comes back.
fn stash(screen: &mut Screen) -> Vec<ScreenEffect> {
    match screen.editor.stash() {
        Stashed::Away => screen.say_hint("put away; Ctrl-S on an empty line gives it back"),
        Stashed::Back => Vec::new(),
        Stashed::Nothing => screen.say_hint("no text was put away"),
    }
}

/// True for the words that leave the terminal.
fn leaves(text: &str) -> bool {
    matches!(text.trim_end(), "exit" | "quit" | "/exit" | "/quit")
}
