//! A user attached to a session: connects the terminal and the supervisor to the [`Screen`].
//!
//! Threads read keys, signals and the supervisor's messages. This thread passes each input to the
//! screen, performs the effects, and paints. If a supervisor is lost, another one is started.

mod paint;
mod terminal;

use crate::client_error::ClientError;
use crate::colour::Colour;
use crate::event_reader::{EventReader, MAX_PINGS, PING_AFTER, SLOW_NOTE, SupervisorInput};
use crate::line_view::{LineView, LiveArea};
use crate::live_rows::{LiveRows, key_hint, live_rows};
use crate::sanitize::wrap;
use crate::screen::{AttachOptions, KeyPress, LeaveReason, Screen, ScreenEffect, ScreenInput};
use crate::screen_items::ScreenItem;
use crate::supervisor_source::{SilenceAction, SupervisorSource};
use ipc::{ChannelError, Sender};
use paint::Painter;
use protocol::client::{
    ClientEvent, ClientRights, FromClient, RequestFailure, SessionRequest, SessionStart, ToClient,
};
use protocol::confinement::FilePath;
use protocol::ids::SessionId;
use protocol::session::OpenTurn;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

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

/// Abilities of the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalMode {
    /// It sends each key and can repaint rows. This key starts a command to the client.
    Keys(LeaderKey),
    /// It sends whole lines and writes one below the other.
    Lines,
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
    /// Abilities of the terminal.
    pub mode: TerminalMode,
    /// Colours on or off.
    pub colour: Colour,
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

/// Attaches until the user leaves. `audit` returns the audit records of a session as text.
/// `signals` gets the sender for signals.
///
/// # Errors
/// Where there is no supervisor, or no terminal.
pub fn attach(
    supervisors: &mut dyn SupervisorSource,
    visit: AttachArgs,
    audit: &dyn Fn(&SessionId) -> String,
    signals: impl FnOnce(SyncSender<ScreenInput>),
) -> Result<AttachEnd, ClientError> {
    let (sender, inputs) = mpsc::sync_channel(QUEUE);
    signals(sender.clone());
    let keys = sender.clone();
    let ear = EventReader::new(sender);
    let say = ear.connect(supervisors, &visit.opening, &visit.papers)?;
    let no_terminal = |error: io::Error| ClientError::Failed {
        kind: RequestFailure::Usage,
        message: format!("the terminal cannot be used: {error}"),
    };
    let (raw, around) = match visit.mode.clone() {
        TerminalMode::Keys(leader) => {
            let raw = terminal::RawMode::enter().map_err(no_terminal)?;
            std::thread::spawn(move || terminal::read_keys(&leader, &keys));
            (Some(raw), LiveArea::Shown)
        }
        TerminalMode::Lines => {
            std::thread::spawn(move || terminal::read_lines(&keys));
            (None, LiveArea::Absent)
        }
    };
    let attached = AttachLoop {
        supervisors,
        screen: Screen::new(visit.options.clone()),
        view: LineView::new(visit.colour, around),
        visit,
        audit,
        sender: say,
        reader: ear,
        inputs,
        pings: PingState { last_message: Instant::now(), unanswered: 0, reply_due: ReplyDue::No },
        painter: Painter::default(),
        painted: None,
        shown_hint: None,
        finished: String::new(),
        losses: Vec::new(),
        awaited: None,
    };
    let left = attached.run();
    drop(raw);
    Ok(left)
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

struct AttachLoop<'a> {
    supervisors: &'a mut dyn SupervisorSource,
    screen: Screen,
    view: LineView,
    visit: AttachArgs,
    audit: &'a dyn Fn(&SessionId) -> String,
    sender: Sender<FromClient>,
    reader: EventReader<ScreenInput>,
    inputs: mpsc::Receiver<ScreenInput>,
    pings: PingState,
    painter: Painter,
    /// The painted rows, and the terminal width at that time.
    painted: Option<(LiveRows, u16)>,
    /// The last key hint that a terminal without rows printed.
    shown_hint: Option<String>,
    /// Lines for good that are not written yet.
    finished: String,
    losses: Vec<Instant>,
    /// A session that another client has to resume, and the time limit of that wait.
    awaited: Option<(SessionId, Instant)>,
}

impl AttachLoop<'_> {
    fn run(mut self) -> AttachEnd {
        let how = self.follow();
        if matches!(self.visit.mode, TerminalMode::Keys(_)) {
            let end = self.painter.erase(usize::from(terminal::size().0)) + "\u{1b}[?25h";
            let _ = write_out(&(self.finished.replace('\n', "\r\n") + &end));
        } else {
            let _ = write_out(&self.finished);
        }
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
            // Nothing can be painted any more where nothing can be written.
            if self.paint().is_err() {
                return LeaveReason::Detached(None);
            }
            if let Some(leaving) = self.reconnect_if_resumed() {
                return leaving;
            }
            let mut next = self.next();
            for _ in 0..BATCH {
                let Some(input) = next else { break };
                if let Some(leaving) = self.take(input) {
                    return leaving;
                }
                next = self.inputs.try_recv().ok();
            }
        }
    }

    /// The next input. A silent supervisor that owes a message is pinged. If it owes none, this
    /// blocks without a timeout.
    fn next(&mut self) -> Option<ScreenInput> {
        // Who only watches leaves it to others to end a supervisor by force.
        let patient = self.visit.options.rights == ClientRights::ReadOnly;
        loop {
            if self.awaited.is_some() {
                return self.inputs.recv_timeout(WATCH_PAUSE).ok();
            }
            if patient || (self.pings.reply_due == ReplyDue::No && !self.screen.awaits_supervisor())
            {
                let input = self.inputs.recv().ok();
                self.pings.last_message = Instant::now();
                return input;
            }
            let patience = PING_AFTER.saturating_sub(self.pings.last_message.elapsed());
            match self.inputs.recv_timeout(patience) {
                Ok(ScreenInput::Message(word)) => {
                    self.pings.last_message = Instant::now();
                    self.pings.unanswered = 0;
                    self.pings.reply_due = ReplyDue::No;
                    return Some(ScreenInput::Message(word));
                }
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

    /// True if the silent supervisor is given up.
    fn give_up_on_silence(&mut self) -> bool {
        let checks = self.pings.unanswered - MAX_PINGS;
        match self.reader.on_silence(self.supervisors, checks) {
            SilenceAction::Reconnect | SilenceAction::Kill => {
                self.pings.unanswered = 0;
                return true;
            }
            SilenceAction::Wait if checks == 0 => self.show(ScreenItem::Note(SLOW_NOTE.to_owned())),
            SilenceAction::Wait => {}
        }
        (self.pings.last_message, self.pings.unanswered) =
            (Instant::now(), self.pings.unanswered + 1);
        false
    }

    /// Handles one input. Returns a reason if the terminal has to leave.
    fn take(&mut self, input: ScreenInput) -> Option<LeaveReason> {
        let input = match (input, &self.visit.mode) {
            // A terminal that sends no keys sends this signal for one.
            (ScreenInput::Signal(nix::libc::SIGINT), TerminalMode::Lines) => {
                ScreenInput::Key(KeyPress::Interrupt)
            }
            (input, _) => input,
        };
        if let ScreenInput::Message(ToClient::Event { event, .. }) = &input
            && is_progress(event)
        {
            self.losses.clear();
        }
        let effects = self.screen.update(input);
        effects.into_iter().find_map(|effect| self.perform(effect))
    }

    fn perform(&mut self, effect: ScreenEffect) -> Option<LeaveReason> {
        match effect {
            // If this fails, the reader thread reports the loss of the supervisor.
            ScreenEffect::Send(word) => {
                self.pings.reply_due = ReplyDue::Yes;
                let _ = self.sender.send(&word);
            }
            ScreenEffect::Show(item) => self.show(item),
            ScreenEffect::ShowEarlier(items) => {
                self.show(ScreenItem::Note("earlier:".to_owned()));
                items.into_iter().for_each(|item| self.show(item));
                self.show(ScreenItem::Note("up to here".to_owned()));
            }
            ScreenEffect::Bell => self.finished.push('\u{7}'),
            ScreenEffect::Repaint => {
                self.painted = None;
                if matches!(self.visit.mode, TerminalMode::Keys(_)) {
                    self.finished.push_str("\u{1b}[2J\u{1b}[H");
                }
            }
            ScreenEffect::ShowAudit(session) => {
                let text = (self.audit)(&session);
                self.show(ScreenItem::Note(text));
            }
            ScreenEffect::AddDirectory(named) => match std::fs::canonicalize(&named) {
                Ok(real) if real.is_dir() => {
                    let effects = self.screen.add_directory(FilePath::from(real));
                    return effects.into_iter().find_map(|effect| self.perform(effect));
                }
                Ok(_) => self.show(ScreenItem::Error(format!("{named} is not a directory"))),
                Err(error) => self.show(ScreenItem::Error(format!("{named}: {error}"))),
            },
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

    fn show(&mut self, item: ScreenItem) {
        let columns = usize::from(terminal::size().0);
        self.finished.push_str(&self.view.in_columns(columns).lines(&item));
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

    fn paint(&mut self) -> io::Result<()> {
        if self.visit.mode == TerminalMode::Lines {
            return self.write_lines();
        }
        let (columns, rows) = terminal::size();
        let live = live_rows(&self.screen, usize::from(columns), usize::from(rows));
        let same = self.painted.as_ref() == Some(&(live.clone(), columns));
        if same && self.finished.is_empty() {
            return Ok(());
        }
        let finished = std::mem::take(&mut self.finished);
        let colour = self.visit.colour;
        let frame = self.painter.frame(&finished, &live, usize::from(columns), colour);
        self.painted = Some((live, columns));
        write_out(&frame)
    }

    /// Prints finished lines and the key hint on a terminal without rows.
    fn write_lines(&mut self) -> io::Result<()> {
        let mut text = std::mem::take(&mut self.finished);
        let asking = self.screen.hint.clone().or_else(|| key_hint(&self.screen));
        if asking != self.shown_hint {
            if let Some(words) = &asking {
                let columns = usize::from(terminal::size().0);
                text.push_str(&format!("{}\n", wrap(words, columns, 0)));
            }
            self.shown_hint = asking;
        }
        write_out(&text)
    }
}

/// True if the session made progress. Losses before it then do not count as a crash loop. The read
/// of a pinned file does not count: it is repeated under each supervisor.
fn is_progress(event: &ClientEvent) -> bool {
    if let ClientEvent::Proposed { call } = event {
        return !call.use_id.is_empty();
    }
    matches!(event, ClientEvent::Prompt { .. } | ClientEvent::Answer { .. })
}

fn write_out(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
