//! An attached terminal as a model: inputs in, effects out. Pure; its views are `line_view` and
//! `live`, its world is `attach`.

pub(crate) mod answer_list;
pub(crate) mod answer_words;
mod answering;
pub(crate) mod colon_command;
mod context;
pub(crate) mod editor;
mod entry_line;
mod given_answers;
mod key_input;
mod key_press;
mod line_marks;
mod messages;
pub(crate) mod other_names;
mod pasted_image;
mod question_keys;
mod read;
mod rewind;
mod running_list;
#[cfg(test)]
mod tests;

use crate::cost::Spent;
use crate::lines::display_width;
use crate::screen_items::{ScreenItem, ScreenItems};
use crate::session_facts::SessionFacts;
use crate::theme_name::ThemeName;
use answer_list::AnswerList;
use editor::{Editor, LineKeys};
use protocol::client::{
    BacklogFrom, ClientRights, FromClient, OtherClients, RequestFailure, SessionRow, SessionStart,
    ToClient, WaitingText, WhileBusy,
};
use protocol::confinement::FilePath;
use protocol::content::Usage;
use protocol::ids::SessionId;
use std::path::PathBuf;
use std::sync::mpsc::Sender;

pub use answer_list::{AnswerRow, AnswerRows};
pub use key_press::{Direction, Distance, EditKey, KeyPress};
pub use line_marks::{MemoryReach, NotePlace, note_of};
pub(crate) use question_keys::answered_before;
use rewind::RewindState;
pub use rewind::{RewindKind, RewindPoint, RewindScope};

/// Events that are shown of a session that has more: some screens full.
const FIRST_PAGE: u32 = 200;
/// Events of a preview.
const PREVIEW: u32 = 20;

/// Hint behind the leader key.
const AFTER_LEADER: &str = "d detaches; the session continues";

const LINE_AHEAD: &str = "that line came before the question could be read; type it again";
const ESCAPE_AHEAD: &str = "the line of that question is closed; another Esc stops the turn";

/// An input of the loop.
#[derive(Debug)]
// Each input is moved once. A box per message would cost more than it saves.
#[allow(clippy::large_enum_variant)]
pub enum ScreenInput {
    /// A message of the supervisor.
    Message(ToClient),
    /// The supervisor is gone, and why.
    Lost(String),
    /// A key.
    Key(KeyPress),
    /// Text that was pasted.
    Paste(String),
    /// A whole line, from a terminal that knows no keys.
    Line(String),
    /// Enter, at a question which appeared a moment ago: it was meant for the line.
    EnterAhead,
    /// A line, right behind the question or the rule that was painted: it was meant for what stood there before.
    LineAhead,
    /// Esc, right behind the end of the line of a rule or a form: it was meant for that line.
    EscapeAhead,
    /// No key followed for a while: a word that leaves was no line of a paste.
    WordAlone,
    /// Unsent text of an earlier visit.
    Draft(String),
    /// A colon command that was chosen from a list.
    Command(String),
    /// The input line gets this text instead of its own.
    Edited(String),
    /// Ctrl-G: open this place, else the unsent text, in an editor. The keys are not read until the pause is dropped.
    OpenEditor(KeyPause, Option<FilePlace>),
    /// Open the place in a file at this column and row of the terminal; for views that show text there.
    FollowPlace(KeyPause, (u16, u16)),
    /// Ctrl-Z: give the terminal to the shell. The keys are not read until the pause is dropped.
    Suspend(KeyPause),
    /// Ask for the list of sessions.
    ListSessions,
    /// Ask for the session's MCP servers, for a view that takes the answer.
    ListServers,
    /// Ask for the last events of another session, for a preview.
    Preview(SessionId),
    /// Go to another session.
    SwitchTo(SessionId),
    /// The mouse; for views that show where it may be used.
    Mouse(MouseInput),
    /// The terminal got the focus of its desktop, or lost it.
    Focused(bool),
    /// The colour of the terminal's ground, for views that asked for it.
    Ground(u8, u8, u8),
    /// Names of the project's files, for a view that asked for them.
    Files(Vec<String>),
    /// The list behind `/`, for a view that asked for it.
    SlashCommands(Vec<SlashRow>),
    /// The terminal is closed.
    HungUp,
    /// Its size in columns and rows.
    Resized(u16, u16),
    /// A signal that asks this process to end.
    Signal(i32),
}

/// How much of a question this terminal has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuestionShown {
    /// Every row, or those that its reader scrolled to.
    Whole,
    /// Rows in the middle were hidden until now.
    InPart,
    /// None: something else is in front of it.
    Hidden,
}

/// A row of the list behind `/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlashRow {
    /// The name and its arguments.
    pub text: String,
    /// What it is for and where it comes from.
    pub detail: String,
    /// The text for the input line; none where the file cannot be used.
    pub insert: Option<String>,
}

/// While it exists, another program reads the keys of the terminal.
#[derive(Debug)]
pub struct KeyPause {
    /// Its end wakes the reader.
    #[expect(dead_code, reason = "dropping it is its use")]
    pub(crate) reader: Sender<()>,
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePlace {
    /// Its real path, from the root on.
    pub path: PathBuf,
    /// The line, counted from 1.
    pub line: u32,
}

/// What the mouse did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MouseInput {
    /// The wheel turned by so many notches; up is negative.
    Wheel(i32),
    /// The left button was pressed at this column and row, counted from 0.
    Pressed(u16, u16),
    /// The mouse is there, with the left button down.
    Dragged(u16, u16),
    /// The left button was let go there.
    Released(u16, u16),
}

/// Something to be done.
#[derive(Debug, PartialEq, Eq)]
pub enum ScreenEffect {
    /// Say this to the supervisor.
    Send(FromClient),
    /// Show this for good.
    Show(ScreenItem),
    /// Show items that are older than all shown ones.
    ShowEarlier(Vec<ScreenItem>),
    /// Ring the bell.
    Bell,
    /// Find a supervisor in the place of the lost one, and open the session there.
    Reconnect(SessionId),
    /// Open another session here.
    Open(SessionStart),
    /// Open this session here, under the configuration of its project.
    Switch(SessionId),
    /// The following items are those of another session.
    StartOver,
    /// Ask for this directory to be added; only the file system knows its real path.
    AddDirectory(String),
    /// Save the image of the clipboard in this directory, for the prompt.
    PasteImage(FilePath),
    /// Show the audit records of the session.
    ShowAudit(SessionId),
    /// Draw all in this theme.
    Theme(ThemeName),
    /// Show the memories of the session's project and of all projects.
    ShowMemories(SessionId),
    /// Remove some of them.
    RemoveMemories(SessionId, Vec<String>),
    /// Write this note of the person, or give it back.
    WriteNote(SessionId, NotePlace, String),
    /// Show a text that is no part of the conversation.
    OpenText(LongText),
    /// Repaint everything.
    Repaint,
    /// The end.
    Leave(LeaveReason),
}

/// A text with a title that is no part of the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LongText {
    /// One line.
    pub title: String,
    /// Its parts, from the top.
    pub parts: Vec<TextPart>,
}

/// A part of a [`LongText`]: whole lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextPart {
    /// Its lines.
    pub text: String,
    /// The colon command that a person may want to give about it.
    pub command: Option<String>,
}

impl LongText {
    /// A text of one part.
    #[must_use]
    pub fn new(title: &str, text: String) -> Self {
        Self { title: title.to_owned(), parts: vec![TextPart { text, command: None }] }
    }

    /// The whole text without its title.
    #[must_use]
    pub fn text(&self) -> String {
        self.parts.iter().map(|part| part.text.as_str()).collect()
    }
}

/// How a terminal leaves a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaveReason {
    /// The user left; no turn is running.
    Quit,
    /// The user left or was detached; the session continues. The reason, if there is one.
    Detached(Option<String>),
    /// The session was ended, and why.
    Ended(String),
    /// The supervisor refused or failed the request.
    Failed(RequestFailure, String),
    /// The supervisor is gone, and no other took its place.
    Lost(String),
    /// A signal.
    Signal(i32),
}

/// State of the session's turn, as far as this terminal knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnState {
    /// No turn runs.
    Idle,
    /// One does.
    Working,
}

/// Target of the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Focus {
    /// The input line, with the list of an open question above it.
    Line,
    /// The rule of an "always" answer, and where Enter writes it.
    Rule(RulePlace),
    /// The form of a server.
    Form,
}

/// Where a rule is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RulePlace {
    /// The person's file for this project.
    Project,
    /// The person's configuration.
    Everywhere,
}

impl RulePlace {
    pub(crate) const ALL: [Self; 2] = [Self::Project, Self::Everywhere];

    /// By the first word of a line.
    fn of_word(word: &str) -> Option<Self> {
        match word {
            "1" | "y" => Some(Self::Project),
            "2" | "A" => Some(Self::Everywhere),
            _ => None,
        }
    }

    /// The row of the list.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Project => "for this project alone, in a file beside your config.toml",
            Self::Everywhere => "for all your projects, in your config.toml",
        }
    }

    /// Behind "writes the rule".
    pub(crate) fn in_words(self) -> &'static str {
        match self {
            Self::Project => "for this project",
            Self::Everywhere => "for all projects",
        }
    }
}

/// Where this terminal is with the supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionState {
    /// Nothing is open.
    Closed,
    /// The backlog is being received.
    Replaying,
    /// Events are new.
    Live,
}

/// Keys that count when a second one follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pending {
    Nothing,
    Leader,
    /// Ctrl-C on an idle prompt.
    Interrupted,
    /// Esc on an idle, empty line.
    Escaped,
    /// Enter behind a word that leaves.
    Leaving,
}

/// Where a terminal goes when it opens another session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SwitchTo {
    Copy,
    /// A copy up to an earlier place.
    Rewound,
    New,
    Other,
}

/// Options of an attachment.
#[derive(Debug, Clone)]
pub struct AttachOptions {
    /// Rights of this terminal.
    pub rights: ClientRights,
    /// Detach the other terminals, or let them stay.
    pub others: OtherClients,
    /// The first prompt.
    pub prompt: Option<String>,
    /// How the leader key is called.
    pub leader: String,
    /// The keys of the input line.
    pub keys: LineKeys,
    /// What becomes of a prompt that Enter sends while a turn runs; Tab sends it the other way.
    pub busy: WhileBusy,
    /// Shown once, before the first prompt.
    pub first_words: Option<&'static str>,
}

/// Prompts that are not part of a turn yet.
#[derive(Debug, Default)]
struct UnstartedPrompts {
    /// Queued by the supervisor, for the running turn or behind it.
    queued: Vec<WaitingText>,
    /// Sent, but not yet confirmed to be on disk.
    sent: Vec<String>,
    /// Sent over a connection that was lost before the confirmation.
    unsure: Vec<String>,
}

/// Tokens and costs of the session's answers.
#[derive(Debug, Default)]
pub struct AnswerUsage {
    /// Of all answers.
    pub all: Usage,
    /// Of the newest answer.
    pub newest: Usage,
    /// Costs of all answers.
    pub spent: Spent,
    /// Costs of the answers of the newest turn.
    of_turn: Spent,
}

/// What the supervisor said last about matters that no event shows.
#[derive(Debug, Default)]
struct LastWords {
    /// All sessions.
    sessions: Vec<SessionRow>,
    /// Reason of its announced end. The next message clears it.
    refused: Option<String>,
    /// What fills the model's context.
    context: context::ContextView,
    /// What the list of `:running` waits for.
    running: Option<running_list::AwaitedList>,
}

/// Sequence numbers of the first and the last recorded event received.
#[derive(Debug, Default)]
struct SeqRange {
    first: Option<u64>,
    last: u64,
    /// Places among them to go back to.
    rewind: RewindState,
}

/// State of an attached terminal.
#[derive(Debug)]
pub struct Screen {
    pub(crate) options: AttachOptions,
    /// Known once a session is open.
    pub(crate) facts: Option<SessionFacts>,
    pub(crate) items: ScreenItems,
    pub(crate) turn: TurnState,
    pub(crate) focus: Focus,
    pub(crate) connection: ConnectionState,
    prompts: UnstartedPrompts,
    pub(crate) editor: Editor,
    list: AnswerList,
    /// One line about the last action, or why it is not possible.
    pub(crate) hint: Option<String>,
    pub(crate) tokens: AnswerUsage,
    pub(crate) pending: Pending,
    /// Is the session that is opened next a copy of this one, a new one, or another?
    pub(crate) switch_to: SwitchTo,
    last_words: LastWords,
    seqs: SeqRange,
}

impl Screen {
    /// A terminal that has received nothing yet.
    #[must_use]
    pub fn new(options: AttachOptions) -> Self {
        let editor = Editor::with_keys(options.keys);
        Self {
            options,
            facts: None,
            items: ScreenItems::default(),
            turn: TurnState::Idle,
            focus: Focus::Line,
            connection: ConnectionState::Closed,
            prompts: UnstartedPrompts::default(),
            editor,
            list: AnswerList::default(),
            hint: None,
            tokens: AnswerUsage::default(),
            pending: Pending::Nothing,
            switch_to: SwitchTo::Copy,
            last_words: LastWords::default(),
            seqs: SeqRange::default(),
        }
    }

    /// Handles an input.
    pub fn update(&mut self, input: ScreenInput) -> Vec<ScreenEffect> {
        let effects = self.handle(input);
        self.follow_questions();
        effects
    }

    fn handle(&mut self, input: ScreenInput) -> Vec<ScreenEffect> {
        match input {
            ScreenInput::Message(word) => self.on_message(word),
            ScreenInput::Lost(why) => self.lost(&why),
            ScreenInput::Key(key) => self.key(key),
            ScreenInput::Paste(text) => self.paste(&text),
            ScreenInput::Line(line) => self.line(&line),
            ScreenInput::HungUp => self.leave(),
            ScreenInput::EnterAhead => self.enter_ahead(),
            // No hint: it would stand in the place of the rule.
            ScreenInput::LineAhead => {
                vec![ScreenEffect::Show(ScreenItem::Note(LINE_AHEAD.to_owned()))]
            }
            ScreenInput::EscapeAhead => {
                self.hint.get_or_insert_with(|| ESCAPE_AHEAD.to_owned());
                Vec::new()
            }
            ScreenInput::WordAlone => self.word_alone(),
            ScreenInput::Draft(text) => {
                self.give_back(vec![text]);
                Vec::new()
            }
            ScreenInput::Command(text) => self.command(&text),
            ScreenInput::Edited(text) => {
                self.editor.set(text.trim_end_matches('\n'));
                self.list.text_came();
                Vec::new()
            }
            ScreenInput::ListServers => {
                let query = protocol::client::SessionQuery::Servers;
                self.to_session(|session| FromClient::Query { session, query })
            }
            ScreenInput::ListSessions => vec![ScreenEffect::Send(FromClient::List)],
            ScreenInput::Preview(session) => {
                let (before, most) = (u64::MAX, PREVIEW);
                vec![ScreenEffect::Send(FromClient::Page { session, before, most })]
            }
            ScreenInput::SwitchTo(session) => self.switch(session),
            // Rows are painted for the size there is, whenever something came in.
            ScreenInput::Resized(columns, _) => {
                self.last_words.context.resized(columns);
                Vec::new()
            }
            // The others are for views that show more. The attachment lends the terminal.
            ScreenInput::OpenEditor(..)
            | ScreenInput::FollowPlace(..)
            | ScreenInput::Suspend(_)
            | ScreenInput::Mouse(_)
            | ScreenInput::Focused(_)
            | ScreenInput::Ground(..)
            | ScreenInput::Files(_)
            | ScreenInput::SlashCommands(_) => Vec::new(),
            ScreenInput::Signal(signal) => vec![ScreenEffect::Leave(LeaveReason::Signal(signal))],
        }
    }

    /// This much of the question was painted that the keys reach. True if that is news.
    pub fn question_painted(&mut self, shown: QuestionShown) -> bool {
        self.list.painted(shown)
    }

    /// Keeps the list at an open question, and no row marked by itself behind a typed text.
    fn follow_questions(&mut self) {
        if self.list.follow(self.items.questions()) {
            self.focus = Focus::Line;
        }
        // The questions of a lost connection may come back.
        if self.connection == ConnectionState::Live {
            for closed in self.list.drop_closed(self.items.questions()) {
                self.hint = Some(closed.rescue_into(&mut self.editor));
            }
        }
        match self.editor.is_empty() {
            true => self.list.line_is_empty(),
            false => self.list.typed(),
        }
    }

    /// Prompts that the session may not have received.
    #[must_use]
    pub fn unconfirmed(&self) -> Vec<String> {
        let prompts = self.prompts.unsure.iter().chain(&self.prompts.sent);
        prompts.chain(self.list.unsure_notes()).cloned().collect()
    }

    /// True if the supervisor owes this terminal a message.
    #[must_use]
    pub fn awaits_supervisor(&self) -> bool {
        self.turn == TurnState::Working || self.connection != ConnectionState::Live
    }

    /// A directory was found by its real path.
    #[must_use]
    pub fn add_directory(&self, real: FilePath) -> Vec<ScreenEffect> {
        self.change(protocol::client::SettingChange::AddDirectory(real))
    }

    /// The input line recalls these lines, the newest last.
    pub fn set_history(&mut self, lines: Vec<String>) {
        self.editor.set_history(lines);
    }

    /// The input line is shown in so many columns.
    pub fn fit_input(&mut self, columns: usize) {
        let (_, mark) = self.input();
        let room = columns.saturating_sub(display_width(mark));
        match self.focus {
            Focus::Form | Focus::Rule(_) => self.list.entry.line.fit(room),
            Focus::Line => self.editor.fit(room),
        }
    }

    fn lost(&mut self, why: &str) -> Vec<ScreenEffect> {
        let Some(session) = self.session().cloned() else {
            return vec![ScreenEffect::Leave(LeaveReason::Failed(
                RequestFailure::Internal,
                why.to_owned(),
            ))];
        };
        // The supervisor announced its end. Another user ended it, so this client does not start it
        // again.
        if let Some(why) = self.last_words.refused.take() {
            return vec![ScreenEffect::Leave(LeaveReason::Lost(why))];
        }
        self.prompts.unsure.append(&mut self.prompts.sent);
        self.connection = ConnectionState::Closed;
        self.last_words.running = None;
        self.items.lost();
        self.prompts.queued.clear();
        self.turn = TurnState::Idle;
        self.focus = Focus::Line;
        self.list.lost();
        let note = "the connection is lost; connecting again".to_owned();
        vec![ScreenEffect::Show(ScreenItem::Note(note)), ScreenEffect::Reconnect(session)]
    }

    /// How to see the session from where this terminal stopped.
    fn attach(&self, session: SessionId) -> ScreenEffect {
        let from = match self.seqs.last {
            0 => BacklogFrom::Newest(FIRST_PAGE),
            last => BacklogFrom::Seq(last + 1),
        };
        let AttachOptions { rights, others, .. } = self.options;
        ScreenEffect::Send(FromClient::Attach { session, from, rights, others })
    }
}
