//! A user attached to a session: connects the terminal and the supervisor to the [`Screen`].
//!
//! Threads read keys, signals and the supervisor's messages. The loop in `session_loop` passes each input to
//! the screen; this file performs the effects, and paints. If a supervisor is lost, another one is started.

mod draft;
mod edit;
mod ground_answer;
mod history;
pub(crate) mod inline_view;
mod local_effects;
mod paint;
mod read_first;
mod suspend;
mod terminal;

use crate::client_error::ClientError;
use crate::screen::{
    AttachOptions, KeyPress, LeaveReason, LongText, NotePlace, Screen, ScreenEffect, ScreenInput,
};
use crate::screen_items::ScreenItem;
use crate::screen_view::ScreenView;
use crate::session_connection::{
    LoopInput, LossLimit, PingWhen, SessionConnection, SupervisorInput, input_queue,
};
use crate::session_facts::is_progress;
use crate::session_loop::{self, NextWait, SessionUser};
use crate::supervisor_source::SupervisorSource;
use draft::DraftState;
use protocol::client::{ClientRights, RequestFailure, SessionRequest, ToClient};
use protocol::ids::SessionId;
use read_first::ReadFirst;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

pub use crate::terminal_use::TerminalUse;
pub use inline_view::{InlineView, LinesView};
pub use terminal::{LeaderKey, size as terminal_size};

/// Losses of supervisors that a person waits through.
const LOSSES: LossLimit = LossLimit { most: 3, within: Duration::from_secs(60) };
/// How long a read-only client waits until another client resumes a session whose daemon was lost.
const RESUMED_BY_OTHERS: Duration = Duration::from_secs(10);
/// Pause between two checks for that.
const WATCH_PAUSE: Duration = Duration::from_millis(200);
/// Shortest time between two frames: 60 a second.
const FRAME: Duration = Duration::from_micros(16_600);
/// How long a word that leaves has to stay the last line: those of a paste come faster.
const WORD_ALONE: Duration = Duration::from_millis(300);

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

    /// Writes a note of the person, and returns where it is.
    ///
    /// # Errors
    /// One sentence for the user; nothing was written.
    fn write_note(
        &self,
        session: &SessionId,
        place: NotePlace,
        text: &str,
    ) -> Result<String, String>;

    /// The request that resumes another session, under the configuration of its project, with the
    /// descriptors that its `papers` names.
    ///
    /// # Errors
    /// One sentence for the user.
    fn opening(&self, session: &SessionId) -> Result<(SessionRequest, Vec<OwnedFd>), String>;

    /// The unsent text of a session's input line, from a terminal that is gone.
    fn draft(&self, session: &SessionId) -> Option<String>;

    /// The prompts that terminals sent to the sessions of this one's project, the newest last.
    fn history(&self, session: &SessionId) -> Vec<String>;

    /// Adds one that was sent to this session.
    ///
    /// # Errors
    /// One sentence for the user.
    fn add_to_history(&self, session: &SessionId, text: &str) -> Result<(), String>;

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
    let AttachArgs { opening, papers, options, mode } = visit;
    let (sender, inputs) = input_queue();
    signals(sender.clone());
    let (keys, for_view) = (sender.clone(), sender.clone());
    let session = (opening, papers);
    let connection = SessionConnection::open(supervisors, session, (sender, inputs), LOSSES)?;
    let view = view(for_view).map_err(|error| ClientError::Failed {
        kind: RequestFailure::Usage,
        message: format!("the terminal cannot be used: {error}"),
    })?;
    match mode.clone() {
        TerminalMode::Keys(leader) => {
            std::thread::spawn(move || terminal::read_keys(&leader, &keys))
        }
        TerminalMode::Lines => std::thread::spawn(move || terminal::read_lines(&keys)),
    };
    let attached = AttachedTerminal {
        connection,
        screen: Screen::new(options),
        view,
        mode,
        services,
        painted: None,
        read_first: ReadFirst::default(),
        word: None,
        draft: DraftState::default(),
        switch: None,
        awaited: None,
    };
    Ok(attached.run())
}

impl From<SupervisorInput> for ScreenInput {
    fn from(input: SupervisorInput) -> Self {
        match input {
            SupervisorInput::Message(message) => Self::Message(message),
            SupervisorInput::Lost(error) => Self::Lost(error.to_string()),
            SupervisorInput::Silent => Self::Lost("it does not answer".to_owned()),
        }
    }
}

impl LoopInput for ScreenInput {
    fn is_message(&self) -> bool {
        matches!(self, Self::Message(_))
    }
}

struct AttachedTerminal<'a> {
    connection: SessionConnection<'a, ScreenInput>,
    screen: Screen,
    view: Box<dyn ScreenView>,
    mode: TerminalMode,
    services: &'a dyn AttachServices,
    /// When the last frame was painted.
    painted: Option<Instant>,
    read_first: ReadFirst,
    /// Since when a word waits that leaves.
    word: Option<Instant>,
    draft: DraftState,
    /// The session that was asked for in the place of this one, and how it is opened.
    switch: Option<(SessionId, SessionRequest, Vec<OwnedFd>)>,
    /// A session that another client has to resume, and the time limit of that wait.
    awaited: Option<(SessionId, Instant)>,
}

impl<'a> SessionUser<'a> for AttachedTerminal<'a> {
    type Input = ScreenInput;
    type End = LeaveReason;

    fn connection(&mut self) -> &mut SessionConnection<'a, ScreenInput> {
        &mut self.connection
    }

    fn prepare(&mut self) -> ControlFlow<LeaveReason, NextWait> {
        self.follow_word()?;
        self.follow_draft();
        let since = self.painted.map_or(FRAME, |painted| painted.elapsed());
        let early = FRAME.saturating_sub(since);
        let mut wait = Some(early);
        if early.is_zero() {
            // Nothing can be painted any more where nothing can be written.
            if self.paint().is_err() {
                return ControlFlow::Break(LeaveReason::Detached(None));
            }
            wait = self.view.tick(&self.screen);
        }
        self.join_if_resumed()?;
        if self.awaited.is_some() {
            return ControlFlow::Continue(NextWait {
                most: Some(WATCH_PAUSE),
                ping: PingWhen::Never,
            });
        }
        let ping = match self.screen.options().rights {
            // Who only watches leaves it to others to end a supervisor by force.
            ClientRights::ReadOnly => PingWhen::Never,
            ClientRights::Full if self.screen.awaits_supervisor() => PingWhen::Always,
            ClientRights::Full => PingWhen::ReplyDue,
        };
        let most = [wait, self.until_word(), self.until_draft()].into_iter().flatten().min();
        ControlFlow::Continue(NextWait { most, ping })
    }

    /// Handles an input that the view may replace.
    fn take(&mut self, input: ScreenInput) -> ControlFlow<LeaveReason> {
        let inputs = self.view.take(input, &self.screen);
        inputs.into_iter().try_for_each(|input| self.take_one(input))
    }

    fn note(&mut self, text: &str) {
        self.view.show(ScreenItem::Note(text.to_owned()));
    }
}

impl AttachedTerminal<'_> {
    fn run(mut self) -> AttachEnd {
        let (columns, rows) = terminal_size();
        self.screen.update(ScreenInput::Resized(columns, rows));
        let how = session_loop::follow(&mut self);
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

    /// The time until a word leaves.
    fn until_word(&self) -> Option<Duration> {
        self.word.map(|since| WORD_ALONE.saturating_sub(since.elapsed()))
    }

    /// Has a word leave once it has stayed alone.
    fn follow_word(&mut self) -> ControlFlow<LeaveReason> {
        if !self.screen.word_waits() {
            self.word = None;
            return ControlFlow::Continue(());
        }
        let since = *self.word.get_or_insert_with(Instant::now);
        if since.elapsed() < WORD_ALONE {
            return ControlFlow::Continue(());
        }
        self.word = None;
        self.take_one(ScreenInput::WordAlone)
    }

    fn paint(&mut self) -> io::Result<()> {
        self.view.paint(&self.screen)?;
        self.screen.fit_input(self.view.input_columns());
        self.painted = Some(Instant::now());
        // What Enter does depends on it.
        let shown = self.screen.question().map(|asked| self.view.question_shown(asked));
        if shown.is_some_and(|shown| self.screen.question_painted(shown)) {
            self.view.paint(&self.screen)?;
        }
        self.read_first.painted(&self.screen, shown, Instant::now());
        Ok(())
    }

    /// Handles one input. Breaks if the terminal has to leave.
    fn take_one(&mut self, input: ScreenInput) -> ControlFlow<LeaveReason> {
        let input = match (input, &self.mode) {
            (ScreenInput::OpenEditor(pause, None), _) => return self.edit(pause),
            (ScreenInput::OpenEditor(pause, Some(place)), _) => {
                return self.open_place(pause, &place);
            }
            (ScreenInput::Suspend(pause), _) => return self.suspend(pause),
            // A terminal that sends no keys sends this signal for one.
            (ScreenInput::Signal(nix::libc::SIGINT), TerminalMode::Lines) => {
                ScreenInput::Key(KeyPress::Interrupt)
            }
            (input, _) => input,
        };
        let input = self.read_first.meant(input, (&self.screen, &self.mode), Instant::now());
        if let ScreenInput::Message(ToClient::Opened { session, .. }) = &input
            && let Some((_, opening, papers)) =
                self.switch.take_if(|(awaited, ..)| awaited == session)
        {
            self.connection.replace_opening(opening, papers);
        }
        if let ScreenInput::Message(ToClient::Event { event, .. }) = &input
            && is_progress(event, |call| self.screen.items().find(call))
        {
            self.connection.forget_losses();
        }
        let opens = matches!(&input, ScreenInput::Message(ToClient::Opened { .. }));
        let before = opens.then(|| self.screen.session().cloned()).flatten();
        if opens {
            // What was typed since belongs to the session before.
            self.save_draft();
        }
        let is_message = matches!(&input, ScreenInput::Message(_) | ScreenInput::Lost(_));
        let focus = is_message.then(|| self.screen.focus());
        let effects = self.screen.update(input);
        if let Some(before) = focus {
            self.read_first.followed(before, &self.screen, Instant::now());
        }
        if opens && self.screen.session() != before.as_ref() {
            self.read_history();
        }
        self.perform_all(effects)
    }

    fn perform(&mut self, effect: ScreenEffect) -> ControlFlow<LeaveReason> {
        match effect {
            ScreenEffect::Send(word) => {
                self.connection.send(&word);
                self.add_to_history(&word);
            }
            ScreenEffect::Show(item) => self.view.show(item),
            ScreenEffect::ShowEarlier(items) => self.view.show_earlier(items),
            ScreenEffect::StartOver => self.view.start_over(),
            ScreenEffect::Bell => self.view.bell(),
            ScreenEffect::Repaint => self.view.repaint(),
            ScreenEffect::OpenText(text) => self.view.open(text),
            ScreenEffect::Theme(theme) => self.view.set_theme(theme),
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
            ScreenEffect::WriteNote(session, place, text) => {
                return self.write_note(&session, place, &text);
            }
            ScreenEffect::Switch(session) => self.switch_to(session),
            ScreenEffect::AddDirectory(named) => match std::fs::canonicalize(&named) {
                Ok(real) if real.is_dir() => return self.add_directory(real),
                Ok(_) => self.view.show(ScreenItem::Error(format!("{named} is not a directory"))),
                Err(error) => self.view.show(ScreenItem::Error(format!("{named}: {error}"))),
            },
            ScreenEffect::PasteImage(dir) => return self.paste_image(&dir),
            ScreenEffect::Open(start) => self.connection.send_start(start),
            ScreenEffect::Reconnect(session) => return self.reconnect(session),
            ScreenEffect::Leave(leaving) => return ControlFlow::Break(leaving),
        }
        ControlFlow::Continue(())
    }

    /// Asks for another session. This one stays on the screen until the other is open.
    fn switch_to(&mut self, session: SessionId) {
        self.save_draft();
        match self.services.opening(&session) {
            Ok((opening, papers)) => {
                self.connection.send_opening(opening.clone(), &papers);
                self.switch = Some((session, opening, papers));
            }
            Err(why) => self.view.show(ScreenItem::Error(why)),
        }
    }

    /// Continues the session under another supervisor.
    fn reconnect(&mut self, session: SessionId) -> ControlFlow<LeaveReason> {
        if let Some(losses) = self.connection.count_loss() {
            return ControlFlow::Break(LeaveReason::Lost(format!(
                "the supervisor was lost {losses} times within a minute without progress; \
                 `agentd logs` says why"
            )));
        }
        // Shows the note about the reconnection before the new supervisor starts.
        let _ = self.paint();
        match self.screen.options().rights {
            ClientRights::Full => {
                self.connection.resume(session).map_or_else(lost, ControlFlow::Continue)
            }
            // A session that is opened only for a read-only client would end its turn and questions
            // when that client leaves.
            ClientRights::ReadOnly => {
                self.connection.drop_current();
                self.awaited = Some((session, Instant::now() + RESUMED_BY_OTHERS));
                ControlFlow::Continue(())
            }
        }
    }

    /// Attaches again if another client has resumed the lost session. Keys are handled meanwhile.
    fn join_if_resumed(&mut self) -> ControlFlow<LeaveReason> {
        let Some((session, until)) = &self.awaited else { return ControlFlow::Continue(()) };
        match self.connection.join_resumed(session) {
            Ok(true) => {
                self.awaited = None;
                ControlFlow::Continue(())
            }
            Ok(false) if Instant::now() < *until => ControlFlow::Continue(()),
            Ok(false) => ControlFlow::Break(LeaveReason::Lost(format!(
                "session {session} is not running, and a read-only client cannot resume it; \
                 attach without -r"
            ))),
            Err(error) => lost(error),
        }
    }
}

/// Leaves because no supervisor goes on with the session.
fn lost(error: ClientError) -> ControlFlow<LeaveReason> {
    ControlFlow::Break(LeaveReason::Lost(error.to_string()))
}
