//! A user attached to a session: connects the terminal and the supervisor to the [`Screen`].
//!
//! Threads read keys, signals and the supervisor's messages. This thread passes each input to the
//! screen, performs the effects, and paints. If a supervisor is lost, another one is started.

mod draft;
mod edit;
pub(crate) mod inline_view;
mod local_effects;
mod paint;
mod terminal;

use crate::client_error::ClientError;
use crate::event_reader::{EventReader, MAX_PINGS, SLOW_NOTE, SupervisorInput};
use crate::screen::{
    AttachOptions, Focus, KeyPress, LeaveReason, LongText, Screen, ScreenEffect, ScreenInput,
};
use crate::screen_items::ScreenItem;
use crate::screen_view::ScreenView;
use crate::silence::{PING_AFTER, SilenceAction};
use crate::supervisor_source::SupervisorSource;
use draft::DraftState;
use ipc::{ChannelError, Sender};
use protocol::client::{
    ClientEvent, ClientRights, FromClient, RequestFailure, SessionRequest, SessionStart, ToClient,
};
use protocol::ids::{CallId, SessionId};
use protocol::session::OpenTurn;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

pub use crate::terminal_use::TerminalUse;
pub use inline_view::{InlineView, LinesView};
pub use terminal::{LeaderKey, size as terminal_size};

/// Bound on inputs that the screen has not handled. Then the reader thread blocks.
const QUEUE: usize = 256;
/// Inputs taken in before the screen is painted again.
const BATCH: usize = 1024;
/// Most supervisors that may be lost within `LOSS_WINDOW`. More losses mean a bug that a restart
/// does not fix.
const LOSSES: usize = 3;
const LOSS_WINDOW: Duration = Duration::from_secs(60);
/// How long a read-only client waits until another client resumes a session whose daemon was lost.
const RESUMED_BY_OTHERS: Duration = Duration::from_secs(10);
/// Pause between two checks for that.
const WATCH_PAUSE: Duration = Duration::from_millis(200);
/// Shortest time between two frames: 60 a second.
const FRAME: Duration = Duration::from_micros(16_600);
/// How long a question has to be on the screen before a key answers it. Who is typing when it
/// appears needs about that long to stop.
const READ_FIRST: Duration = Duration::from_millis(250);

/// How long a letter at a question has to stay alone before it answers: prose is typed faster.
const LETTER_ALONE: Duration = Duration::from_millis(300);

/// What the terminal sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalMode {
    /// Each key. This key starts a command to the client.
    Keys(LeaderKey),
    /// Whole lines.
    Lines,
}

/// What an attached terminal needs of the command line's side: files, and openings of other
/// sessions.
pub trait AttachServices {
    /// The audit records of a session, as text.
    fn audit(&self, session: &SessionId) -> String;

    /// The memories of the session's project and of all projects, as text.
    ///
    /// # Errors
    /// One sentence for the user.
    fn memories(&self, session: &SessionId) -> Result<String, String>;

    /// Removes memories, and returns their texts.
    ///
    /// # Errors
    /// Those that were removed, and one sentence for the user.
    fn remove_memories(&self, session: &SessionId, ids: &[String]) -> Result<String, String>;

    /// The request that resumes another session, under the configuration of its project, with the
    /// descriptors that its `papers` names.
    ///
    /// # Errors
    /// One sentence for the user.
    fn opening(&self, session: &SessionId) -> Result<(SessionRequest, Vec<OwnedFd>), String>;

    /// The unsent text of a session's input line, from a terminal that is gone.
    fn draft(&self, session: &SessionId) -> Option<String>;

    /// Opens an unsent text in the person's editor, and returns the edited text.
    ///
    /// # Errors
    /// One sentence for the user.
    fn edit(&self, session: &SessionId, text: &str) -> Result<String, String>;

    /// Saves the unsent text; an empty one removes the draft.
    ///
    /// # Errors
    /// One sentence for the user.
    fn save_draft(&self, session: &SessionId, text: &str) -> Result<(), String>;
}

/// Arguments of [`attach`].
#[derive(Debug)]
pub struct AttachArgs {
    /// The session.
    pub opening: SessionRequest,
    /// The descriptors that `opening.papers` names.
    pub papers: Vec<OwnedFd>,
    /// Rights and first prompt.
    pub options: AttachOptions,
    /// What the terminal sends.
    pub mode: TerminalMode,
}

/// The end of a visit.
#[derive(Debug)]
pub struct AttachEnd {
    /// The session, if one was open.
    pub session: Option<SessionId>,
    /// How.
    pub reason: LeaveReason,
    /// Prompts that were sent last; the session may not have received them.
    pub unconfirmed: Vec<String>,
}

/// Attaches until the user leaves. `view` opens the view; it gets a sender of inputs. `signals` gets
/// the sender for signals.
///
/// # Errors
/// Where there is no supervisor, or no terminal.
pub fn attach(
    supervisors: &mut dyn SupervisorSource,
    visit: AttachArgs,
    services: &dyn AttachServices,
    view: impl FnOnce(SyncSender<ScreenInput>) -> io::Result<Box<dyn ScreenView>>,
    signals: impl FnOnce(SyncSender<ScreenInput>),
) -> Result<AttachEnd, ClientError> {
    let (sender, inputs) = mpsc::sync_channel(QUEUE);
    signals(sender.clone());
    let (keys, for_view) = (sender.clone(), sender.clone());
    let ear = EventReader::new(sender);
    let say = ear.connect(supervisors, &visit.opening, &visit.papers)?;
    let view = view(for_view).map_err(|error| ClientError::Failed {
        kind: RequestFailure::Usage,
        message: format!("the terminal cannot be used: {error}"),
    })?;
    match visit.mode.clone() {
        TerminalMode::Keys(leader) => {
            std::thread::spawn(move || terminal::read_keys(&leader, &keys))
        }
        TerminalMode::Lines => std::thread::spawn(move || terminal::read_lines(&keys)),
    };
    let attached = AttachLoop {
        supervisors,
        screen: Screen::new(visit.options.clone()),
        view,
        visit,
        services,
        sender: say,
        reader: ear,
        inputs,
        pings: PingState { last_message: Instant::now(), unanswered: 0, reply_due: ReplyDue::No },
        painted: None,
        question: QuestionTimes::default(),
        draft: DraftState::default(),
        switch: None,
        losses: Vec::new(),
        awaited: None,
    };
    Ok(attached.run())
}

impl SupervisorInput for ScreenInput {
    fn message(word: ToClient) -> Self {
        Self::Message(word)
    }

    fn lost(error: ChannelError) -> Self {
        Self::Lost(error.to_string())
    }
}

/// Does the supervisor owe a reply to the last message that was sent?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReplyDue {
    No,
    Yes,
}

/// Pings of a supervisor that owes a message.
struct PingState {
    /// Time of the last message or ping.
    last_message: Instant,
    /// Pings since the last message.
    unanswered: u32,
    reply_due: ReplyDue,
}

/// Times of the question on the screen.
#[derive(Debug, Default)]
struct QuestionTimes {
    /// The call that it is about, and since when it is there.
    shown: Option<(CallId, Instant)>,
    /// Since when a letter waits that may be its answer.
    letter: Option<Instant>,
}

struct AttachLoop<'a> {
    supervisors: &'a mut dyn SupervisorSource,
    screen: Screen,
    view: Box<dyn ScreenView>,
    visit: AttachArgs,
    services: &'a dyn AttachServices,
    sender: Sender<FromClient>,
    reader: EventReader<ScreenInput>,
    inputs: mpsc::Receiver<ScreenInput>,
    pings: PingState,
    /// When the last frame was painted.
    painted: Option<Instant>,
    question: QuestionTimes,
    draft: DraftState,
    /// The session that was asked for in the place of this one, and how it is opened.
    switch: Option<(SessionId, SessionRequest, Vec<OwnedFd>)>,
    losses: Vec<Instant>,
    /// A session that another client has to resume, and the time limit of that wait.
    awaited: Option<(SessionId, Instant)>,
}

impl AttachLoop<'_> {
    fn run(mut self) -> AttachEnd {
        let (columns, rows) = terminal_size();
        self.screen.update(ScreenInput::Resized(columns, rows));
        let how = self.follow();
        self.save_draft();
        self.view.leave(&self.screen);
        let unconfirmed = match how {
            // The supervisor still receives the prompts of a user who leaves.
            LeaveReason::Quit | LeaveReason::Detached(None) | LeaveReason::Signal(_) => Vec::new(),
            LeaveReason::Detached(Some(_))
            | LeaveReason::Ended(_)
            | LeaveReason::Failed(..)
            | LeaveReason::Lost(_) => self.screen.unconfirmed(),
        };
        AttachEnd { session: self.screen.session().cloned(), reason: how, unconfirmed }
    }

    fn follow(&mut self) -> LeaveReason {
        loop {
            let since = self.painted.map_or(FRAME, |painted| painted.elapsed());
            let early = FRAME.saturating_sub(since);
            let mut wait = Some(early);
            if early.is_zero() {
                // Nothing can be painted any more where nothing can be written.
                if self.paint().is_err() {
                    return LeaveReason::Detached(None);
                }
                wait = self.view.tick(&self.screen);
            }
            if let Some(leaving) = self.reconnect_if_resumed() {
                return leaving;
            }
            let mut next = self.next(self.until_letter(self.until_draft(wait)));
            for _ in 0..BATCH {
                let Some(input) = next else { break };
                if let Some(leaving) = self.take_all(input) {
                    return leaving;
                }
                next = self.inputs.try_recv().ok();
            }
            if let Some(leaving) = self.follow_letter() {
                return leaving;
            }
            self.follow_draft();
        }
    }

    /// The earlier of `wait` and the time when a letter at a question becomes an answer.
    fn until_letter(&self, wait: Option<Duration>) -> Option<Duration> {
        let due = self.question.letter.map(|since| LETTER_ALONE.saturating_sub(since.elapsed()));
        wait.into_iter().chain(due).min()
    }

    /// Makes a letter at a question an answer once it has stayed alone.
    fn follow_letter(&mut self) -> Option<LeaveReason> {
        if !self.screen.letter_waits() {
            self.question.letter = None;
            return None;
        }
        let since = *self.question.letter.get_or_insert_with(Instant::now);
        if since.elapsed() < LETTER_ALONE {
            return None;
        }
        self.question.letter = None;
        self.take(ScreenInput::LetterAlone(self.view.question_shown()))
    }

    fn paint(&mut self) -> io::Result<()> {
        self.view.paint(&self.screen)?;
        self.painted = Some(Instant::now());
        let asked = self.screen.items().questions().first().map(|asked| &asked.call);
        if asked != self.question.shown.as_ref().map(|(call, _)| call) {
            self.question.shown = asked.map(|call| (call.clone(), Instant::now()));
        }
        Ok(())
    }

    /// True for a key that would answer a question which nobody can have read yet.
    fn is_ahead_of_question(&self, key: KeyPress) -> bool {
        let answers = matches!(key, KeyPress::Char(_) | KeyPress::Enter);
        let asked = self.screen.items().questions().first();
        let is_read = self.question.shown.as_ref().is_some_and(|(call, since)| {
            asked.is_some_and(|asked| asked.call == *call) && since.elapsed() >= READ_FIRST
        });
        answers && !is_read && self.screen.focus() == Focus::Question
    }

    /// The next input; none after `wait`. A silent supervisor that owes a message is pinged. If it
    /// owes none and `wait` is absent, this blocks without a timeout.
    fn next(&mut self, wait: Option<Duration>) -> Option<ScreenInput> {
        let begun = Instant::now();
        // Who only watches leaves it to others to end a supervisor by force.
        let patient = self.visit.options.rights == ClientRights::ReadOnly;
        loop {
            if self.awaited.is_some() {
                return self.inputs.recv_timeout(WATCH_PAUSE).ok();
            }
            if patient || (self.pings.reply_due == ReplyDue::No && !self.screen.awaits_supervisor())
            {
                let input = match wait {
                    Some(wait) => self.inputs.recv_timeout(wait).ok(),
                    None => self.inputs.recv().ok(),
                };
                self.pings.last_message = Instant::now();
                return input;
            }
            let patience = PING_AFTER.saturating_sub(self.pings.last_message.elapsed());
            let left = wait.map(|wait| wait.saturating_sub(begun.elapsed()));
            if let Some(left) = left.filter(|left| *left < patience) {
                match self.inputs.recv_timeout(left) {
                    Ok(ScreenInput::Message(word)) => return Some(self.heard(word)),
                    Ok(input) => return Some(input),
                    Err(_) => return None,
                }
            }
            match self.inputs.recv_timeout(patience) {
                Ok(ScreenInput::Message(word)) => return Some(self.heard(word)),
                Ok(input) => return Some(input),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) if self.pings.unanswered >= MAX_PINGS => {
                    return self
                        .give_up_on_silence()
                        .then(|| ScreenInput::Lost("it does not answer".to_owned()));
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.pings.last_message = Instant::now();
                    self.pings.unanswered += 1;
                    // If this fails, the reader thread reports the loss of the supervisor.
                    let _ = self.sender.send(&FromClient::Ping(u64::from(self.pings.unanswered)));
                }
            }
        }
    }

    fn heard(&mut self, word: ToClient) -> ScreenInput {
        self.pings.last_message = Instant::now();
        self.pings.unanswered = 0;
        self.pings.reply_due = ReplyDue::No;
        ScreenInput::Message(word)
    }

    /// True if the silent supervisor is given up.
    fn give_up_on_silence(&mut self) -> bool {
        let checks = self.pings.unanswered - MAX_PINGS;
        match self.reader.on_silence(self.supervisors, checks) {
            SilenceAction::Reconnect | SilenceAction::Kill => {
                self.pings.unanswered = 0;
                return true;
            }
            SilenceAction::Wait if checks == 0 => {
                self.view.show(ScreenItem::Note(SLOW_NOTE.to_owned()));
            }
            SilenceAction::Wait => {}
        }
        (self.pings.last_message, self.pings.unanswered) =
            (Instant::now(), self.pings.unanswered + 1);
        false
    }

    /// Handles one input. Returns a reason if the terminal has to leave.
    fn take(&mut self, input: ScreenInput) -> Option<LeaveReason> {
        let input = match (input, &self.visit.mode) {
            (ScreenInput::OpenEditor(pause), _) => return self.edit(pause),
            // A terminal that sends no keys sends this signal for one.
            (ScreenInput::Signal(nix::libc::SIGINT), TerminalMode::Lines) => {
                ScreenInput::Key(KeyPress::Interrupt)
            }
            (ScreenInput::Key(key), TerminalMode::Keys(_)) if self.is_ahead_of_question(key) => {
                ScreenInput::TypedAhead(key)
            }
            (input, _) => input,
        };
        if let ScreenInput::Message(ToClient::Opened { session, .. }) = &input
            && let Some((_, opening, papers)) =
                self.switch.take_if(|(awaited, ..)| awaited == session)
        {
            (self.visit.opening, self.visit.papers) = (opening, papers);
        }
        if let ScreenInput::Message(ToClient::Event { event, .. }) = &input
            && is_progress(event)
        {
            self.losses.clear();
        }
        let effects = self.screen.update(input);
        self.perform_all(effects)
    }

    fn perform(&mut self, effect: ScreenEffect) -> Option<LeaveReason> {
        match effect {
            // If this fails, the reader thread reports the loss of the supervisor.
            ScreenEffect::Send(word) => {
                self.pings.reply_due = ReplyDue::Yes;
                let _ = self.sender.send(&word);
            }
            ScreenEffect::Show(item) => self.view.show(item),
            ScreenEffect::ShowEarlier(items) => self.view.show_earlier(items),
            ScreenEffect::StartOver => self.view.start_over(),
            ScreenEffect::Bell => self.view.bell(),
            ScreenEffect::Repaint => self.view.repaint(),
            ScreenEffect::OpenText(text) => self.view.open(text),
            ScreenEffect::ShowAudit(session) => {
                let records = self.services.audit(&session);
                self.view.open(LongText::new("Audit records", records));
            }
            ScreenEffect::ShowMemories(session) => match self.services.memories(&session) {
                Ok(listed) => self.view.open(LongText::new("Memories", listed)),
                Err(error) => self.view.show(ScreenItem::Error(error)),
            },
            ScreenEffect::RemoveMemories(session, ids) => {
                let removed = self.services.remove_memories(&session, &ids);
                self.view.show(removed.map_or_else(ScreenItem::Error, ScreenItem::Note));
            }
            ScreenEffect::Switch(session) => self.switch_to(session),
            ScreenEffect::AddDirectory(named) => match std::fs::canonicalize(&named) {
                Ok(real) if real.is_dir() => return self.add_directory(real),
                Ok(_) => self.view.show(ScreenItem::Error(format!("{named} is not a directory"))),
                Err(error) => self.view.show(ScreenItem::Error(format!("{named}: {error}"))),
            },
            ScreenEffect::PasteImage(dir) => return self.paste_image(&dir),
            ScreenEffect::Open(start) => {
                let opening = SessionRequest { start, ..self.visit.opening.clone() };
                let papers = &self.visit.papers;
                // As above.
                let _ = self.sender.send(&FromClient::Open(opening));
                papers.iter().for_each(|paper| drop(self.sender.send_fd(paper.as_fd())));
            }
            ScreenEffect::Reconnect(session) => return self.reconnect(session),
            ScreenEffect::Leave(leaving) => return Some(leaving),
        }
        None
    }

    /// Asks for another session. This one stays on the screen until the other is open.
    fn switch_to(&mut self, session: SessionId) {
        self.save_draft();
        match self.services.opening(&session) {
            Ok((opening, papers)) => {
                // If this fails, the reader thread reports the loss of the supervisor.
                let _ = self.sender.send(&FromClient::Open(opening.clone()));
                papers.iter().for_each(|paper| drop(self.sender.send_fd(paper.as_fd())));
                self.switch = Some((session, opening, papers));
            }
            Err(why) => self.view.show(ScreenItem::Error(why)),
        }
    }

    /// Continues the session under another supervisor.
    fn reconnect(&mut self, session: SessionId) -> Option<LeaveReason> {
        let now = Instant::now();
        self.losses.retain(|lost| now.duration_since(*lost) < LOSS_WINDOW);
        self.losses.push(now);
        if self.losses.len() > LOSSES {
            let why = format!(
                "the supervisor was lost {} times within a minute without progress; `agentd logs` \
                 says why",
                self.losses.len()
            );
            return Some(LeaveReason::Lost(why));
        }
        // Shows the note about the reconnection before the new supervisor starts.
        let _ = self.paint();
        match self.visit.options.rights {
            ClientRights::Full => {
                let open_turn = OpenTurn::GoesOn;
                self.visit.opening.start = SessionStart::Resume { session, open_turn };
                let opening = &self.visit.opening;
                let begun = self.reader.connect(self.supervisors, opening, &self.visit.papers);
                self.connected(begun)
            }
            // A session that is opened only for a read-only client would end its turn and questions
            // when that client leaves.
            ClientRights::ReadOnly => {
                self.reader.drop_current();
                self.awaited = Some((session, now + RESUMED_BY_OTHERS));
                None
            }
        }
    }

    /// Attaches again if another client has resumed the lost session. Keys are handled meanwhile.
    fn reconnect_if_resumed(&mut self) -> Option<LeaveReason> {
        let (session, until) = self.awaited.clone()?;
        match self.supervisors.connect_where_live(&session) {
            Ok(Some(found)) => {
                self.awaited = None;
                let open_turn = OpenTurn::Waits;
                self.visit.opening.start = SessionStart::Resume { session, open_turn };
                let begun = self.reader.open_over(found, &self.visit.opening, &self.visit.papers);
                self.connected(begun)
            }
            Ok(None) if Instant::now() < until => None,
            Ok(None) => Some(LeaveReason::Lost(format!(
                "session {session} is not running, and a read-only client cannot resume it; \
                 attach without -r"
            ))),
            Err(error) => Some(LeaveReason::Lost(error.to_string())),
        }
    }

    fn connected(&mut self, begun: Result<Sender<FromClient>, ClientError>) -> Option<LeaveReason> {
        match begun {
            Ok(say) => {
                self.sender = say;
                None
            }
            Err(error) => Some(LeaveReason::Lost(error.to_string())),
        }
    }
}

/// True if the session made progress. Losses before it then do not count as a crash loop. The read
/// of a pinned file does not count: it is repeated under each supervisor.
fn is_progress(event: &ClientEvent) -> bool {
    if let ClientEvent::Proposed { call } = event {
        return call.origin.is_model();
    }
    matches!(event, ClientEvent::Prompt { .. } | ClientEvent::Answer { .. })
}
