//! Handles the supervisor's messages.

use super::answer_list::AnswerList;
use super::rewind::rewound_note;
use super::running_list;
use super::{
    AFTER_LEADER, AnswerUsage, ConnectionState, Focus, LeaveReason, LongText, Pending, Screen,
    ScreenEffect, SeqRange, SwitchTo, TextPart, TurnState, UnstartedPrompts,
};
use crate::cost::Spent;
use crate::screen_items::{ScreenItem, ScreenItems};
use crate::session_facts::SessionFacts;
use protocol::call::CallOrigin;
use protocol::client::{
    ClientEvent, ClientRights, DetachReason, FromClient, NumberedEvent, OtherClients, Prices,
    RequestFailure, SettingChange, ToClient, WaitingText,
};
use protocol::content::Usage;
use protocol::ids::SessionId;
use protocol::store::ChangeSet;

impl Screen {
    pub(super) fn on_message(&mut self, word: ToClient) -> Vec<ScreenEffect> {
        self.last_words.refused = None;
        match word {
            word @ ToClient::Opened { .. } => {
                let opened = SessionFacts::of_opening(word);
                opened.map(|(facts, _)| self.opened(facts)).unwrap_or_default()
            }
            ToClient::Attached { session, name } if self.is_here(&session) => {
                self.items.attached_as(name);
                self.attached(session)
            }
            ToClient::Event { session, seq, event } if self.is_here(&session) => {
                self.event(seq, &event)
            }
            ToClient::Detached { session, parting, reason } if self.is_here(&session) => {
                vec![ScreenEffect::Leave(match parting {
                    DetachReason::TakenOver => LeaveReason::Detached(Some(reason)),
                    DetachReason::Ended => LeaveReason::Ended(reason),
                    DetachReason::Failed => LeaveReason::Failed(RequestFailure::Internal, reason),
                })]
            }
            ToClient::Behind { session } if self.is_here(&session) => {
                self.items.lost();
                self.connection = ConnectionState::Replaying;
                vec![self.attach(session)]
            }
            ToClient::Page { session, events } if self.is_here(&session) => self.page(&events),
            ToClient::TakenBack { session, texts } if self.is_here(&session) => {
                self.seqs.rewind.given_back(&texts);
                texts.iter().for_each(|text| self.prompts.taken_back(text));
                self.give_back(texts);
                Vec::new()
            }
            ToClient::Changes { session, changes } if self.is_here(&session) => {
                self.changes(changes)
            }
            ToClient::Context { session, report } if self.is_here(&session) => {
                self.context_report(report)
            }
            ToClient::Servers { session, servers } if self.is_here(&session) => {
                running_list::take_servers(self, servers)
            }
            ToClient::Failed { kind, message } => self.failed(kind, message),
            ToClient::Sessions(rows) => running_list::take_sessions(self, rows),
            ToClient::Attached { .. }
            | ToClient::Event { .. }
            | ToClient::Detached { .. }
            | ToClient::Behind { .. }
            | ToClient::Page { .. }
            | ToClient::TakenBack { .. }
            | ToClient::Changes { .. }
            | ToClient::Context { .. }
            | ToClient::Servers { .. }
            | ToClient::Welcome { .. }
            | ToClient::Refused { .. }
            | ToClient::Status(_)
            | ToClient::Done
            | ToClient::Pong(_)
            | ToClient::NetworkOpened { .. }
            | ToClient::NetworkClosed { .. }
            | ToClient::Processes(_) => Vec::new(),
        }
    }

    fn changes(&mut self, changes: Result<ChangeSet, String>) -> Vec<ScreenEffect> {
        vec![match changes {
            Err(why) => ScreenEffect::Show(ScreenItem::Error(why)),
            Ok(it) => ScreenEffect::OpenText(changes_text(&it, self.items.first_call_of_turn())),
        }]
    }

    fn is_here(&self, session: &SessionId) -> bool {
        self.session() == Some(session)
    }

    fn opened(&mut self, facts: SessionFacts) -> Vec<ScreenEffect> {
        let (session, warnings) = (facts.session.clone(), facts.warnings.clone());
        let mut effects = Vec::new();
        match self.facts.replace(facts).map(|before| before.session) {
            Some(before) if before == session => {
                let note = "connected again".to_owned();
                effects.push(ScreenEffect::Show(ScreenItem::Note(note)));
            }
            Some(before) => {
                let detach = FromClient::Detach { session: before.clone() };
                effects.push(ScreenEffect::Send(detach));
                let rewound = self.take_rewound();
                let note = self.switch_to.note(&session, &before);
                effects.push(ScreenEffect::StartOver);
                effects.push(ScreenEffect::Show(ScreenItem::Note(note)));
                self.reset();
                self.give_back(rewound.into_iter().collect());
            }
            None => {}
        }
        let warnings =
            warnings.into_iter().map(|warning| ScreenEffect::Show(ScreenItem::Error(warning)));
        effects.extend(warnings);
        self.connection = ConnectionState::Replaying;
        effects.push(self.attach(session));
        // The other terminals were detached once. After a reconnection they stay.
        self.options.others = OtherClients::Stay;
        effects
    }

    /// Resets the state for another session.
    fn reset(&mut self) {
        self.items = ScreenItems::default();
        self.turn = TurnState::Idle;
        self.focus = Focus::Line;
        self.prompts = UnstartedPrompts::default();
        self.tokens = AnswerUsage::default();
        // What was put away is in the draft of its own session.
        self.editor.start_over();
        self.list = AnswerList::default();
        self.seqs = SeqRange::default();
    }

    fn attached(&mut self, session: SessionId) -> Vec<ScreenEffect> {
        self.connection = ConnectionState::Live;
        if self.turn == TurnState::Working {
            self.items.stream_started_earlier();
        }
        // The whole backlog has been received.
        let notes: Vec<_> = self.list.take_unsure_notes();
        if notes.iter().any(|note| !note.is_empty()) {
            self.give_back(notes);
            self.hint = Some(
                "your note may not have arrived: ↑ ↓ mark an answer that it goes with".to_owned(),
            );
        }
        let lost = std::mem::take(&mut self.prompts.unsure);
        if !lost.is_empty() {
            self.give_back(lost);
            self.hint =
                Some("perhaps not received: check above, then press Enter to send it".to_owned());
        }
        let not_rewound = self.not_rewound();
        let first = self.options.first_words.take();
        let first = first.map(|words| ScreenEffect::Show(ScreenItem::Note(words.to_owned())));
        let prompt = self.options.prompt.take().map(|text| {
            self.prompts.sent.push(text.clone());
            let busy = self.options.busy;
            ScreenEffect::Send(FromClient::Prompt { session, text, form: None, busy })
        });
        not_rewound.into_iter().chain(first).chain(prompt).collect()
    }

    /// Opens another session, if there is a supervisor to ask and the session is another.
    pub(super) fn switch(&mut self, session: SessionId) -> Vec<ScreenEffect> {
        if self.connection != ConnectionState::Live {
            self.hint = Some("not connected yet; try again in a moment".to_owned());
            return Vec::new();
        }
        if self.is_here(&session) {
            return Vec::new();
        }
        self.switch_to = SwitchTo::Other;
        vec![ScreenEffect::Switch(session)]
    }

    /// Puts prompts back into the input line, before the text typed meanwhile.
    pub(super) fn give_back(&mut self, texts: Vec<String>) {
        let typed = self.editor.text().into_owned();
        if texts.iter().any(|text| !text.is_empty()) {
            self.list.text_came();
        }
        let all: Vec<_> =
            texts.into_iter().chain([typed]).filter(|text| !text.is_empty()).collect();
        self.editor.set(&all.join("\n"));
    }

    fn failed(&mut self, kind: RequestFailure, message: String) -> Vec<ScreenEffect> {
        match self.connection {
            ConnectionState::Live => {
                // Only this kind announces the supervisor's end.
                self.last_words.refused = (kind == RequestFailure::Ending).then(|| message.clone());
                let failed = ScreenEffect::Show(ScreenItem::Error(message));
                std::iter::once(failed).chain(self.not_rewound()).collect()
            }
            // Without a session there is nothing to stay for.
            ConnectionState::Closed | ConnectionState::Replaying => {
                vec![ScreenEffect::Leave(LeaveReason::Failed(kind, message))]
            }
        }
    }

    fn event(&mut self, seq: u64, event: &ClientEvent) -> Vec<ScreenEffect> {
        if is_numbered(event) {
            self.seqs.last = self.seqs.last.max(seq);
            self.seqs.first.get_or_insert(seq);
            self.seqs.rewind.take(seq, event);
        }
        let asked_before = self.items.questions().len();
        if matches!(event, ClientEvent::Prompt { .. })
            && (self.connection, self.turn) == (ConnectionState::Live, TurnState::Idle)
        {
            self.items.turn_begins();
            self.tokens.of_turn = Spent::Nothing;
        }
        let items = self.items.take(event);
        self.update_facts(event);
        if self.pending == Pending::Leader {
            // An event clears hints about the turn. This hint is about the next key.
            self.hint = Some(AFTER_LEADER.to_owned());
        }
        let cost = self.tokens.of_turn;
        let mut effects: Vec<_> =
            items.into_iter().map(|item| ScreenEffect::Show(item.costing(cost))).collect();
        let asked = self.items.questions().len();
        if asked > asked_before && self.connection == ConnectionState::Live {
            effects.push(ScreenEffect::Bell);
        }
        effects.extend(self.follow_rewind(event));
        effects
    }

    /// The prices of the session's model, where they are known.
    pub(super) fn prices(&self) -> Option<Prices> {
        self.facts.as_ref()?.of_model.prices
    }

    /// Updates the facts that the live rows show.
    fn update_facts(&mut self, event: &ClientEvent) {
        if let Some(facts) = &mut self.facts {
            facts.update(event);
        }
        match event {
            ClientEvent::TurnEnded { .. } => {
                self.turn = TurnState::Idle;
                self.hint = None;
            }
            ClientEvent::Degraded { reason: _ } => {
                self.turn = TurnState::Idle;
                self.hint = None;
                // Nothing more is taken.
                let said = std::mem::take(&mut self.prompts.sent);
                self.give_back(said);
            }
            ClientEvent::Answer { blocks: _, usage } => {
                self.turn = TurnState::Working;
                // A stopped answer has no usage. Neither has the result of an undo.
                if *usage != Usage::default() {
                    self.tokens.newest = *usage;
                }
                self.tokens.answered(*usage, self.prices());
            }
            ClientEvent::Prompt { text, .. } => {
                self.turn = TurnState::Working;
                self.prompts.confirm(text);
                if !text.starts_with(':') {
                    self.editor.remember(text);
                }
            }
            ClientEvent::Proposed { call } if call.origin == CallOrigin::EventHook => {
                self.hook_begins(call)
            }
            // The session waits for a prompt meanwhile.
            ClientEvent::Proposed { call } if call.origin == CallOrigin::ServerStart => {}
            ClientEvent::CallEnded { call, .. } => {
                self.list.ended(call);
                self.hook_ends(call);
            }
            ClientEvent::Delta { .. }
            | ClientEvent::Struck { .. }
            | ClientEvent::Proposed { .. } => self.turn = TurnState::Working,
            ClientEvent::Started { call: _, enforced } => {
                // A replayed start is outdated; the opening described the present cage.
                if let (ConnectionState::Live, Some(facts), Some(tier)) =
                    (self.connection, &mut self.facts, enforced.of_command())
                {
                    facts.sandbox = tier.in_words().to_owned();
                }
            }
            ClientEvent::Decided { call, .. } => {
                self.list.decided(call);
                self.hint = None;
            }
            ClientEvent::Queue { waiting } => {
                self.prompts.are_queued(waiting);
            }
            // It is unknown which of the two models gave the replayed answers.
            ClientEvent::Changed { change: SettingChange::Model(_), .. } => {
                if self.connection == ConnectionState::Replaying {
                    self.tokens.spent = Spent::AtLeast(0);
                }
            }
            ClientEvent::Compacted(step) => self.compaction(step),
            ClientEvent::Changed { .. }
            | ClientEvent::Model { .. }
            | ClientEvent::Learned { .. }
            | ClientEvent::Asked { .. }
            | ClientEvent::Output { .. }
            | ClientEvent::InBackground { .. }
            | ClientEvent::Notice { .. } => {}
            ClientEvent::AnswerRejected { call, .. } => {
                self.hint = None;
                let note = self.list.rejected(call, &self.editor);
                self.give_back(note.into_iter().collect());
            }
        }
    }

    pub(super) fn may_answer(&self) -> bool {
        self.options.rights == ClientRights::Full
    }

    fn page(&mut self, events: &[NumberedEvent]) -> Vec<ScreenEffect> {
        let Some(first) = events.first() else {
            self.hint = Some("this is the start of the session".to_owned());
            return Vec::new();
        };
        // Only events above those that are shown; a late preview of this session is none.
        let is_earlier = |shown: u64| events.last().is_some_and(|last| last.seq < shown);
        if !self.seqs.first.is_some_and(is_earlier) {
            return Vec::new();
        }
        self.seqs.first = Some(first.seq);
        self.seqs.rewind.take_earlier(events);
        let mut page = ScreenItems::default();
        let items = events.iter().flat_map(|numbered| page.take(&numbered.event)).collect();
        vec![ScreenEffect::ShowEarlier(items)]
    }
}

impl SwitchTo {
    /// What a terminal says that went from `before` to `session`.
    fn note(self, session: &SessionId, before: &SessionId) -> String {
        match self {
            Self::Rewound => rewound_note(session, before),
            Self::Copy => format!("you are now in session {session}, a copy of {before}"),
            Self::New => format!(
                "this is the new session {session}; `agentd attach {before}` returns to {before}"
            ),
            Self::Other => format!("this is session {session}; before, {before}"),
        }
    }
}

impl UnstartedPrompts {
    /// The prompt is on disk.
    fn confirm(&mut self, text: &str) {
        for said in [&mut self.unsure, &mut self.sent] {
            if let Some(place) = said.iter().position(|said| said == text) {
                said.remove(place);
                return;
            }
        }
    }

    /// The queue has these.
    fn are_queued(&mut self, waiting: &[WaitingText]) {
        self.queued = waiting.to_vec();
        waiting.iter().for_each(|prompt| self.confirm(&prompt.text));
    }

    /// It is in the input line again.
    fn taken_back(&mut self, text: &str) {
        self.confirm(text);
        let place = self.queued.iter().rposition(|queued| queued.text == text);
        place.map(|place| self.queued.remove(place));
    }
}

/// True if an event has a sequence number of its own.
fn is_numbered(event: &ClientEvent) -> bool {
    match event {
        ClientEvent::Delta { .. }
        | ClientEvent::Struck { .. }
        | ClientEvent::Output { .. }
        | ClientEvent::Queue { .. }
        | ClientEvent::Notice { .. }
        | ClientEvent::Model { .. }
        | ClientEvent::AnswerRejected { .. } => false,
        ClientEvent::Prompt { .. }
        | ClientEvent::Answer { .. }
        | ClientEvent::Proposed { .. }
        | ClientEvent::Asked { .. }
        | ClientEvent::Decided { .. }
        | ClientEvent::Started { .. }
        | ClientEvent::InBackground { .. }
        | ClientEvent::CallEnded { .. }
        | ClientEvent::TurnEnded { .. }
        | ClientEvent::Changed { .. }
        | ClientEvent::Learned { .. }
        | ClientEvent::Compacted { .. }
        | ClientEvent::Degraded { .. } => true,
    }
}

/// Changed files as a unified diff, each with the command that takes it back. `turn` is the first
/// call of the newest turn.
fn changes_text(ChangeSet { files, notes }: &ChangeSet, turn: u32) -> LongText {
    let title = match files.len() {
        0 => "No file differs".to_owned(),
        1 => "1 file differs".to_owned(),
        count => format!("{count} files differ"),
    };
    let mut parts = Vec::new();
    for file in files {
        let calls: Vec<String> = file.calls.iter().map(u32::to_string).collect();
        let plural = if calls.len() == 1 { "" } else { "s" };
        let heading = format!("# {} (call{plural} {})", file.path, calls.join(", "));
        let of_turn = turn > 0 && file.calls.iter().all(|call| *call >= turn);
        // Behind `all` a name that begins with the word itself is still a name.
        let all = if of_turn && !file.path.starts_with("all ") { "" } else { "all " };
        parts.push(TextPart {
            text: format!("{heading}\n{}\n", file.diff.trim_end_matches('\n')),
            command: Some(format!(":undo {all}{}", file.path)),
        });
    }
    let text: String = notes.iter().map(|note| format!("# {note}\n")).collect();
    parts.push(TextPart { text, command: None });
    LongText { title, parts }
}
