//! `:context`: what fills the model's context, and the summary in the input line for the person to
//! change. Part of [`Screen`].

use super::{Screen, ScreenEffect, TurnState};
use crate::context_text::context_text;
use crate::screen_items::ScreenItem;
use protocol::call::Call;
use protocol::client::{FromClient, SessionQuery, SessionWish};
use protocol::context::{Compaction, ContextReport, NumberedSummary, SummaryStep};
use protocol::hook::HookEvent;
use protocol::ids::CallId;

/// The use of the next report of the context.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum ContextUse {
    #[default]
    Show,
    EditSummary,
}

/// State of `:context`.
#[derive(Debug, Default)]
pub(super) struct ContextView {
    /// For the report that was asked for.
    purpose: ContextUse,
    /// The number of the summary that was last put into the input line.
    editing: Option<u32>,
    /// The state before the request of a summary that is not answered.
    turn: Option<TurnState>,
    /// A hook of a compaction that runs between turns.
    hook: Option<CallId>,
    /// Of the terminal, once its size is known.
    columns: Option<u16>,
}

impl ContextView {
    fn columns(&self) -> usize {
        self.columns.map_or(80, usize::from)
    }

    /// The terminal has so many columns now.
    pub(super) fn resized(&mut self, columns: u16) {
        self.columns = Some(columns);
    }
}

impl Screen {
    pub(super) fn ask_for_context(&mut self, purpose: ContextUse) -> Vec<ScreenEffect> {
        self.last_words.context.purpose = purpose;
        let query = SessionQuery::Context;
        self.to_session(|session| FromClient::Query { session, query })
    }

    pub(super) fn context_report(
        &mut self,
        report: Result<ContextReport, String>,
    ) -> Vec<ScreenEffect> {
        let report = match report {
            Ok(report) => report,
            Err(why) => return vec![ScreenEffect::Show(ScreenItem::Error(why))],
        };
        if std::mem::take(&mut self.last_words.context.purpose) == ContextUse::Show {
            return vec![ScreenEffect::Show(ScreenItem::Note(context_text(
                &report,
                self.last_words.context.columns(),
            )))];
        }
        let Some(NumberedSummary { number, text }) = report.summary else {
            let none = "no summary replaces messages of this conversation; :compact has the model \
                        write one";
            return vec![ScreenEffect::Show(ScreenItem::Error(none.to_owned()))];
        };
        if !self.may_answer() {
            return vec![ScreenEffect::Show(ScreenItem::Note(text))];
        }
        self.last_words.context.editing = Some(number);
        // It is here to be changed: no part of it is folded.
        self.editor.set(":context summary ");
        self.editor.insert(&text);
        self.say_hint("Enter replaces the summary; Ctrl-G edits it in $VISUAL; Ctrl-C leaves it")
    }

    /// A hook that runs beside a turn or between turns is no work of the turn. That of a compaction
    /// is, and a person may stop it.
    pub(super) fn hook_begins(&mut self, call: &Call) {
        let is_aside = serde_json::from_str::<serde_json::Value>(&call.input)
            .ok()
            .and_then(|input| HookEvent::parse(input.get("event")?.as_str()?))
            .is_some_and(HookEvent::is_aside);
        if !is_aside && self.turn == TurnState::Idle {
            self.turn = TurnState::Working;
            self.last_words.context.hook = Some(call.id.clone());
        }
    }

    pub(super) fn hook_ends(&mut self, call: &CallId) {
        if self.last_words.context.hook.take_if(|hook| hook == call).is_some() {
            self.turn = TurnState::Idle;
        }
    }

    /// A summary is work of the model, also between turns, and costs tokens.
    pub(super) fn compaction(&mut self, step: &Compaction) {
        match step {
            Compaction::Summary(SummaryStep::Asked { .. }) => {
                self.last_words.context.turn = Some(self.turn);
                self.turn = TurnState::Working;
            }
            Compaction::Summary(
                SummaryStep::Written { usage, .. } | SummaryStep::Failed { usage, .. },
            ) => {
                self.tokens.answered(*usage, self.prices());
                self.turn = self.last_words.context.turn.take().unwrap_or(self.turn);
            }
            Compaction::Cut { .. } | Compaction::Summary(SummaryStep::Edited { .. }) => {}
        }
    }

    /// Replaces the summary that was put into the input line.
    pub(super) fn edit_summary(&mut self, text: String) -> Vec<ScreenEffect> {
        let Some(number) = self.last_words.context.editing.take() else {
            return self.say_hint(":context summary without a text shows it first, to change it");
        };
        let wish = SessionWish::EditSummary(NumberedSummary { number, text });
        self.to_session(|session| FromClient::Wish { session, wish })
    }
}
