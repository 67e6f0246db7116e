//! A person at a session: the terminal and the supervisor on one side, the [`Screen`] on the other.
//!
//! Threads listen to keys, signals and the supervisor; this one asks the screen what each input
//! means, does it, and paints. A supervisor that is lost is followed by another.

mod paint;
mod terminal;

use crate::blocks::Item;
use crate::colour::Colour;
use crate::ear::{Ear, Heard, QUIET, SLOW, UNANSWERED};
use crate::line_view::{Around, LineView};
use crate::live::{Live, asking, live};
use crate::plain::folded;
use crate::run_error::RunError;
use crate::screen::{Effect, Entrance, Input, Key, Leaving, Screen};
use crate::supervisors::{Silence, Supervisors};
use ipc::{ChannelError, Sender};
use paint::Painter;
use protocol::client::{Event, FailedKind, FromClient, Opening, Rights, Start, ToClient};
use protocol::confinement::FilePath;
use protocol::ids::SessionId;
use protocol::session::OpenTurn;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

pub use terminal::LeaderKey;

/// Inputs held for a screen that is slower than the supervisor, before the supervisor waits.
const QUEUE: usize = 256;
/// Inputs taken in before the screen is painted again.
const BATCH: usize = 1024;
/// So many supervisors may be lost within this time: more is a fault that another start does not
/// mend.
const LOSSES: usize = 3;
const LOSS_WINDOW: Duration = Duration::from_secs(60);
/// How long who only watches waits for somebody to go on with a session whose daemon was lost.
const OTHERS: Duration = Duration::from_secs(10);
/// Between two looks whether somebody did.
const WATCH_PAUSE: Duration = Duration::from_millis(200);

/// What the terminal can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Manner {
    /// It sends each key and paints rows anew; this key begins a command to this program.
    Keys(LeaderKey),
    /// It sends whole lines and writes one below the other.
    Lines,
}

/// A person's visit to a session.
#[derive(Debug)]
pub struct Visit {
    /// The session.
    pub opening: Opening,
    /// The descriptors that `opening.papers` names.
    pub papers: Vec<OwnedFd>,
    /// What they may do there.
    pub entrance: Entrance,
    /// What their terminal can do.
    pub manner: Manner,
    /// Whether it is coloured.
    pub colour: Colour,
}

/// The end of a visit.
#[derive(Debug)]
pub struct Left {
    /// The session, if one was open.
    pub session: Option<SessionId>,
    /// How.
    pub how: Leaving,
    /// Prompts that were said last and of which nobody knows whether the session took them.
    pub unconfirmed: Vec<String>,
}

/// Attaches until the person leaves. `audit` tells what the audit log holds of a session; `signals`
/// is given the sender into which signals go.
///
/// # Errors
/// Where there is no supervisor, or no terminal.
pub fn attach(
    supervisors: &mut dyn Supervisors,
    visit: Visit,
    audit: &dyn Fn(&SessionId) -> String,
    signals: impl FnOnce(SyncSender<Input>),
) -> Result<Left, RunError> {
    let (sender, inputs) = mpsc::sync_channel(QUEUE);
    signals(sender.clone());
    let keys = sender.clone();
    let ear = Ear::new(sender);
    let say = ear.begin(supervisors, &visit.opening, &visit.papers)?;
    let no_terminal = |error: io::Error| RunError::Failed {
        kind: FailedKind::Usage,
        message: format!("the terminal cannot be used: {error}"),
    };
    let (raw, around) = match visit.manner.clone() {
        Manner::Keys(leader) => {
            let raw = terminal::Raw::enter().map_err(no_terminal)?;
            std::thread::spawn(move || terminal::listen_to_keys(&leader, &keys));
            (Some(raw), Around::LiveRows)
        }
        Manner::Lines => {
            std::thread::spawn(move || terminal::listen_to_lines(&keys));
            (None, Around::Nothing)
        }
    };
    let attached = Attached {
        supervisors,
        screen: Screen::new(visit.entrance.clone()),
        view: LineView::new(visit.colour, around),
        visit,
        audit,
        say,
        ear,
        inputs,
        heard: Instant::now(),
        unanswered: 0,
        said: Said::Nothing,
        painter: Painter::default(),
        painted: None,
        told: None,
        finished: String::new(),
        losses: Vec::new(),
        seeking: None,
    };
    let left = attached.go();
    drop(raw);
    Ok(left)
}

impl Heard for Input {
    fn word(word: ToClient) -> Self {
        Self::Word(word)
    }

    fn lost(error: ChannelError) -> Self {
        Self::Lost(error.to_string())
    }
}

/// Whether the supervisor owes an answer to what was said last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Nothing,
    Something,
}

struct Attached<'a> {
    supervisors: &'a mut dyn Supervisors,
    screen: Screen,
    view: LineView,
    visit: Visit,
    audit: &'a dyn Fn(&SessionId) -> String,
    say: Sender<FromClient>,
    ear: Ear<Input>,
    inputs: mpsc::Receiver<Input>,
    /// When the supervisor was heard last, or asked for a sign of life.
    heard: Instant,
    unanswered: u32,
    said: Said,
    painter: Painter,
    /// The rows that stand there, and the width they were painted for.
    painted: Option<(Live, u16)>,
    /// What a terminal without rows was told last about keys.
    told: Option<String>,
    /// Lines for good that are not written yet.
    finished: String,
    losses: Vec<Instant>,
    /// A session that somebody else has to go on with, and until when that is waited for.
    seeking: Option<(SessionId, Instant)>,
}

impl Attached<'_> {
    fn go(mut self) -> Left {
        let how = self.follow();
        if matches!(self.visit.manner, Manner::Keys(_)) {
            let end = self.painter.erase(usize::from(terminal::size().0)) + "\u{1b}[?25h";
            let _ = write_out(&(self.finished.replace('\n', "\r\n") + &end));
        } else {
            let _ = write_out(&self.finished);
        }
        let unconfirmed = match how {
            // Who leaves by themselves leaves them on their way, and they are heard.
            Leaving::Quit | Leaving::Detached(None) | Leaving::Signal(_) => Vec::new(),
            Leaving::Detached(Some(_))
            | Leaving::Ended(_)
            | Leaving::Failed(..)
            | Leaving::Lost(_) => self.screen.unconfirmed(),
        };
        Left { session: self.screen.session().cloned(), how, unconfirmed }
    }

    fn follow(&mut self) -> Leaving {
        loop {
            // Nothing can be painted any more where nothing can be written.
            if self.paint().is_err() {
                return Leaving::Detached(None);
            }
            if let Some(leaving) = self.seek() {
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

    /// The next input. A supervisor that owes something and is silent is asked whether it lives;
    /// while nothing is owed, nothing wakes up.
    fn next(&mut self) -> Option<Input> {
        // Who only watches leaves it to others to end a supervisor by force.
        let patient = self.visit.entrance.rights == Rights::ReadOnly;
        loop {
            if self.seeking.is_some() {
                return self.inputs.recv_timeout(WATCH_PAUSE).ok();
            }
            if patient || (self.said == Said::Nothing && !self.screen.is_owed()) {
                let input = self.inputs.recv().ok();
                self.heard = Instant::now();
                return input;
            }
            let patience = QUIET.saturating_sub(self.heard.elapsed());
            match self.inputs.recv_timeout(patience) {
                Ok(Input::Word(word)) => {
                    self.heard = Instant::now();
                    self.unanswered = 0;
                    self.said = Said::Nothing;
                    return Some(Input::Word(word));
                }
                Ok(input) => return Some(input),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) if self.unanswered >= UNANSWERED => {
                    return self.is_lost().then(|| Input::Lost("it does not answer".to_owned()));
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.heard = Instant::now();
                    self.unanswered += 1;
                    // Should this fail, the loss of the supervisor comes in by itself.
                    let _ = self.say.send(&FromClient::Ping(u64::from(self.unanswered)));
                }
            }
        }
    }

    /// Whether a supervisor that does not answer is given up.
    fn is_lost(&mut self) -> bool {
        let look = self.unanswered - UNANSWERED;
        match self.ear.unanswered(self.supervisors, look) {
            Silence::Deaf | Silence::Stuck => {
                self.unanswered = 0;
                return true;
            }
            Silence::Slow if look == 0 => self.show(Item::Note(SLOW.to_owned())),
            Silence::Slow => {}
        }
        (self.heard, self.unanswered) = (Instant::now(), self.unanswered + 1);
        false
    }

    /// Takes one input in; how to leave, where it says so.
    fn take(&mut self, input: Input) -> Option<Leaving> {
        let input = match (input, &self.visit.manner) {
            // A terminal that sends no keys sends this signal for one.
            (Input::Signal(nix::libc::SIGINT), Manner::Lines) => Input::Key(Key::Interrupt),
            (input, _) => input,
        };
        if let Input::Word(ToClient::Event { event, .. }) = &input
            && moves_on(event)
        {
            self.losses.clear();
        }
        let effects = self.screen.update(input);
        effects.into_iter().find_map(|effect| self.perform(effect))
    }

    fn perform(&mut self, effect: Effect) -> Option<Leaving> {
        match effect {
            // Should this fail, the loss of the supervisor comes in by itself.
            Effect::Say(word) => {
                self.said = Said::Something;
                let _ = self.say.send(&word);
            }
            Effect::Show(item) => self.show(item),
            Effect::ShowEarlier(items) => {
                self.show(Item::Note("earlier:".to_owned()));
                items.into_iter().for_each(|item| self.show(item));
                self.show(Item::Note("up to here".to_owned()));
            }
            Effect::Bell => self.finished.push('\u{7}'),
            Effect::Repaint => {
                self.painted = None;
                if matches!(self.visit.manner, Manner::Keys(_)) {
                    self.finished.push_str("\u{1b}[2J\u{1b}[H");
                }
            }
            Effect::ShowAudit(session) => {
                let text = (self.audit)(&session);
                self.show(Item::Note(text));
            }
            Effect::AddDirectory(named) => match std::fs::canonicalize(&named) {
                Ok(real) if real.is_dir() => {
                    let effects = self.screen.add_directory(FilePath::from(real));
                    return effects.into_iter().find_map(|effect| self.perform(effect));
                }
                Ok(_) => self.show(Item::Trouble(format!("{named} is not a directory"))),
                Err(error) => self.show(Item::Trouble(format!("{named}: {error}"))),
            },
            Effect::Open(start) => {
                let opening = Opening { start, ..self.visit.opening.clone() };
                let papers = &self.visit.papers;
                // As above.
                let _ = self.say.send(&FromClient::Open(opening));
                papers.iter().for_each(|paper| drop(self.say.send_fd(paper.as_fd())));
            }
            Effect::Reconnect(session) => return self.reconnect(session),
            Effect::Leave(leaving) => return Some(leaving),
        }
        None
    }

    fn show(&mut self, item: Item) {
        let columns = usize::from(terminal::size().0);
        self.finished.push_str(&self.view.in_columns(columns).lines(&item));
    }

    /// Goes on with the session under another supervisor.
    fn reconnect(&mut self, session: SessionId) -> Option<Leaving> {
        let now = Instant::now();
        self.losses.retain(|lost| now.duration_since(*lost) < LOSS_WINDOW);
        self.losses.push(now);
        if self.losses.len() > LOSSES {
            let why = format!(
                "the supervisor was lost {} times within a minute without progress; `agentd logs` \
                 says why",
                self.losses.len()
            );
            return Some(Leaving::Lost(why));
        }
        // The person sees that something happens while another one starts.
        let _ = self.paint();
        match self.visit.entrance.rights {
            Rights::Full => {
                let open_turn = OpenTurn::GoesOn;
                self.visit.opening.start = Start::Resume { session, open_turn };
                let opening = &self.visit.opening;
                let begun = self.ear.begin(self.supervisors, opening, &self.visit.papers);
                self.begun(begun)
            }
            // Opened for who only watches, its turn and its questions would end with the look.
            Rights::ReadOnly => {
                self.ear.forget();
                self.seeking = Some((session, now + OTHERS));
                None
            }
        }
    }

    /// Looks whether somebody goes on with the session that was lost; keys are heard meanwhile.
    fn seek(&mut self) -> Option<Leaving> {
        let (session, until) = self.seeking.clone()?;
        match self.supervisors.connect_where_live(&session) {
            Ok(Some(found)) => {
                self.seeking = None;
                let open_turn = OpenTurn::Waits;
                self.visit.opening.start = Start::Resume { session, open_turn };
                let begun = self.ear.listen_to(found, &self.visit.opening, &self.visit.papers);
                self.begun(begun)
            }
            Ok(None) if Instant::now() < until => None,
            Ok(None) => Some(Leaving::Lost(format!(
                "nobody goes on with session {session}, and who only watches does not either"
            ))),
            Err(error) => Some(Leaving::Lost(error.to_string())),
        }
    }

    fn begun(&mut self, begun: Result<Sender<FromClient>, RunError>) -> Option<Leaving> {
        match begun {
            Ok(say) => {
                self.say = say;
                None
            }
            Err(error) => Some(Leaving::Lost(error.to_string())),
        }
    }

    fn paint(&mut self) -> io::Result<()> {
        if self.visit.manner == Manner::Lines {
            return self.tell();
        }
        let (columns, rows) = terminal::size();
        let live = live(&self.screen, usize::from(columns), usize::from(rows));
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

    /// What a terminal without rows is told: what is finished, and what to answer.
    fn tell(&mut self) -> io::Result<()> {
        let mut text = std::mem::take(&mut self.finished);
        let asking = self.screen.hint.clone().or_else(|| asking(&self.screen));
        if asking != self.told {
            if let Some(words) = &asking {
                let columns = usize::from(terminal::size().0);
                text.push_str(&format!("{}\n", folded(words, columns, 0)));
            }
            self.told = asking;
        }
        write_out(&text)
    }
}

/// Whether a session moved on: supervisors that were lost before that are no loop. The read of a
/// pinned file, which no model asked for, is made again under each supervisor.
fn moves_on(event: &Event) -> bool {
    if let Event::Proposed { call } = event {
        return !call.use_id.is_empty();
    }
    matches!(event, Event::Prompt { .. } | Event::Answer { .. })
}

fn write_out(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
