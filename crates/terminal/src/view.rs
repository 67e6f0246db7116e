//! The full-screen view: keys of its own, pickers and pager. What a key means beyond that, the screen
//! model says.

mod browse;
mod note;
mod rewind;
mod running;
mod scroll;
#[cfg(test)]
mod tests;

use crate::choices;
use crate::conversation::Conversation;
use crate::diff;
use crate::files;
use crate::frame::{Mode, PanelPlace, ViewState, frame};
use crate::help::help_rows;
use crate::pager::{Pager, PagerAction};
use crate::panels::PanelView;
use crate::picker::{Picker, PickerAction, PickerItem, PickerKind};
use crate::question::QuestionScroll;
use crate::row::{Piece, Row, wrap};
use crate::selection::Selection;
use crate::server_words::ServerWords;
use crate::slash;
use crate::theme::{ColourDepth, Rgb, Theme};
use crate::title::{Title, title};
use crate::tty::{Mouse, Notify, Tty};
use client::{
    Colour, ConnectionState, Direction, FilePlace, Focus, KeyPress, LongText, QuestionShown,
    RunningThing, Screen, ScreenInput, ScreenItem, ScreenView, TerminalGuard, TerminalUse,
    ThemeName, TurnClock, TurnState, is_checklist,
};
use prompts::PromptPlaces;
use protocol::client::{KnownModel, SessionRow, ToClient};
use protocol::hidden::on_screen;
use protocol::judgement::{PermissionMode, Question};
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

/// Rows of the last exchange that stay in the scrollback of the terminal.
const LEFT_BEHIND: usize = 200;

/// Rows of a text in the pager.
const MOST_ROWS: usize = 50_000;

/// What a person may choose about the view.
#[derive(Debug)]
pub struct FullScreenOptions {
    /// Colours on or off.
    pub colour: Colour,
    /// How many colours the terminal has.
    pub depth: ColourDepth,
    /// The theme at first.
    pub theme: ThemeName,
    /// Use of the mouse.
    pub mouse: Mouse,
    /// The way to call a person who looks elsewhere.
    pub notify: Notify,
    /// Who writes the terminal's title.
    pub title: Title,
    /// Gives the terminal back if this process is killed.
    pub guard: Option<TerminalGuard>,
    /// The project directory of the first session.
    pub project: PathBuf,
    /// Where slash commands lie beside the project's.
    pub prompt_places: PromptPlaces,
}

/// The view.
#[derive(Debug)]
pub struct FullScreen {
    tty: Tty,
    options: FullScreenOptions,
    state: ViewState,
    inputs: SyncSender<ScreenInput>,
    files: Vec<PickerItem>,
    /// Absent until they are read for the first time.
    slash: Option<Vec<PickerItem>>,
    /// Enter was pressed behind `/` before they were.
    entered: bool,
    servers: ServerWords,
    subject: ListSubject,
    /// The terminal's ground, once it has told it.
    ground: Option<Rgb>,
    /// Earlier events were asked for.
    loading: bool,
    /// Does the desktop show this terminal? Terminals that do not say count as shown.
    focused: bool,
    working: bool,
    /// Is there unsent text?
    typing: bool,
    /// The last key was Esc at an empty line: another one rewinds.
    escaped: bool,
}

/// What the open list is about, where its rows do not say it.
#[derive(Debug, Default)]
enum ListSubject {
    #[default]
    Nothing,
    /// These places, each in the row with its number.
    Places(Vec<FilePlace>),
    /// The row of the table whose actions are listed.
    Thing(RunningThing),
}

impl FullScreen {
    /// Takes the terminal over. `inputs` gets what is read in the background.
    ///
    /// # Errors
    /// If the terminal's mode cannot be set.
    pub fn enter(options: FullScreenOptions, inputs: SyncSender<ScreenInput>) -> io::Result<Self> {
        let mut view = Self::over(Tty::enter(options.mouse)?, options, inputs);
        view.ask_ground();
        Ok(view)
    }

    fn over(tty: Tty, options: FullScreenOptions, inputs: SyncSender<ScreenInput>) -> Self {
        Self {
            tty,
            state: ViewState::new(theme(&options, None)),
            options,
            inputs,
            files: Vec::new(),
            slash: None,
            entered: false,
            servers: ServerWords::default(),
            subject: ListSubject::default(),
            ground: None,
            loading: false,
            focused: true,
            working: false,
            typing: false,
            escaped: false,
        }
    }

    /// Asks the terminal for its ground where the theme depends on it.
    fn ask_ground(&mut self) {
        let options = &self.options;
        let is_asked = options.colour == Colour::On && options.depth != ColourDepth::Sixteen;
        if is_asked && options.theme.needs_ground() && self.ground.is_none() {
            self.tty.ask_ground();
        }
    }

    /// Draws all in the theme that is chosen now.
    fn change_look(&mut self) {
        self.state.look = theme(&self.options, self.ground);
        self.state.conversation.forget_rows();
        self.state.question.forget_rows();
    }

    fn project(&self, screen: &Screen) -> PathBuf {
        let here = |row: &&SessionRow| screen.session() == Some(&row.session);
        let listed = screen.sessions().iter().find(here);
        listed.map_or_else(|| self.options.project.clone(), |row| row.project.to_path())
    }

    fn key(&mut self, key: KeyPress, screen: &Screen) -> Vec<ScreenInput> {
        let pass = vec![ScreenInput::Key(key)];
        match &mut self.state.mode {
            Mode::Input => self.input_key(key, screen),
            _ if key == KeyPress::Redraw => pass,
            // Who wants to stop the turn need not close first what is open over it.
            _ if key == KeyPress::Interrupt && screen.turn() == TurnState::Working => {
                self.state.conversation.choose_none();
                self.state.mode = Mode::Input;
                pass
            }
            Mode::Pager(pager) => {
                let height = usize::from(self.tty.area().height).saturating_sub(2);
                match pager.key(key, height) {
                    PagerAction::Stay => {}
                    PagerAction::Close => {
                        let browsing = self.state.conversation.chosen().is_some();
                        self.state.mode = if browsing { Mode::Browse(None) } else { Mode::Input };
                    }
                    PagerAction::Copy(text) => self.copy(&text),
                    PagerAction::Propose(command) => {
                        self.state.mode = Mode::Input;
                        if screen.input().0.is_empty() {
                            return vec![ScreenInput::Paste(command)];
                        }
                        self.state.hint = Some(format!("the input line is not empty; {command}"));
                    }
                }
                Vec::new()
            }
            Mode::Picker(picker) => {
                let kind = picker.kind;
                // A file that is still being read may have this name: Enter waits for it.
                if kind == PickerKind::Places && key == KeyPress::Enter {
                    self.state.hint = Some("Ctrl-G opens it in your editor".to_owned());
                    return Vec::new();
                }
                let is_read = self.slash.is_some() || kind != PickerKind::Slash;
                self.entered = key == KeyPress::Enter && !is_read;
                if self.entered {
                    return Vec::new();
                }
                match picker.key(key) {
                    PickerAction::Stay => {
                        let (rows, here) = (screen.sessions(), screen.session());
                        choices::preview(picker, rows, here).into_iter().collect()
                    }
                    PickerAction::Close(typed) => {
                        let of_block = kind == PickerKind::Places;
                        self.state.mode = if of_block { Mode::Browse(None) } else { Mode::Input };
                        let typed_back = match kind {
                            PickerKind::Files => format!("@{typed}"),
                            PickerKind::Commands if !typed.is_empty() => format!(":{typed}"),
                            PickerKind::Slash if !typed.is_empty() => format!("/{typed}"),
                            PickerKind::Commands
                            | PickerKind::Slash
                            | PickerKind::Sessions
                            | PickerKind::History
                            | PickerKind::Rewind
                            | PickerKind::RewindScope
                            | PickerKind::Places
                            | PickerKind::Running
                            | PickerKind::Actions
                            | PickerKind::Ports(_)
                            | PickerKind::StopCall(_)
                            | PickerKind::Note
                            | PickerKind::Values(_) => return Vec::new(),
                        };
                        vec![ScreenInput::Paste(typed_back)]
                    }
                    PickerAction::Choose(value, typed) => {
                        self.state.mode = Mode::Input;
                        if value == choices::REWIND {
                            return self.rewind(screen);
                        }
                        if value == choices::RESUME {
                            return self.list_sessions();
                        }
                        if value == choices::RUNNING {
                            return self.list_running(screen);
                        }
                        if kind == PickerKind::Running {
                            return self.running_chosen(&value, screen);
                        }
                        if kind == PickerKind::Note {
                            return note::chosen(&value, screen);
                        }
                        if kind == PickerKind::Actions {
                            return self.action_chosen(&value, screen);
                        }
                        if let Some(picker) = choices::values(&value, models(screen)) {
                            self.state.mode = Mode::Picker(picker);
                            return Vec::new();
                        }
                        if kind == PickerKind::Rewind && !value.is_empty() {
                            return self.rewind_scope(&value);
                        }
                        choices::inputs(kind, &value, &typed)
                    }
                    PickerAction::Fill(value, typed) => {
                        self.state.mode = Mode::Input;
                        if kind == PickerKind::Note {
                            return note::in_line(&value, screen).into_iter().collect();
                        }
                        choices::filled(kind, &value, &typed)
                    }
                }
            }
            Mode::Browse(_) => self.browse_key(key, screen),
        }
    }

    // All other keys are the model's.
    #[allow(clippy::wildcard_enum_match_arm)]
    fn input_key(&mut self, key: KeyPress, screen: &Screen) -> Vec<ScreenInput> {
        self.state.hint = None;
        let at_line = screen.focus() == Focus::Line;
        let asked = screen.question().is_some();
        let empty = screen.draft().is_empty();
        let page = self.state.size.1.saturating_sub(2).max(1) as isize;
        match key {
            KeyPress::Page(way)
                if screen.question().is_some() && self.state.question.is_folded() =>
            {
                self.state.question.scroll(way);
            }
            KeyPress::Page(Direction::Start) => return self.scroll(-page, screen),
            KeyPress::Page(Direction::End) => return self.scroll(page, screen),
            KeyPress::Control('o') => self.browse(),
            KeyPress::Escape if at_line && empty && !asked && screen.turn() == TurnState::Idle => {
                self.browse();
                self.escaped = true;
                self.state.hint = Some("Esc again to rewind".to_owned());
            }
            KeyPress::Control('p') => return self.list_sessions(),
            KeyPress::Control('t') => return self.list_running(screen),
            KeyPress::Control('r') => {
                let items = choices::earlier(self.state.conversation.prompts(), screen.history());
                self.state.mode = Mode::Picker(Picker::new(PickerKind::History, items));
            }
            // Tab sends a text the other way than Enter.
            KeyPress::Tab if at_line && !empty && screen.turn() == TurnState::Working => {
                return vec![ScreenInput::Key(key)];
            }
            KeyPress::Tab if at_line && screen.items().questions().len() < 2 => {
                self.state.panels = match self.state.panel_place(screen, self.tty.area().width) {
                    PanelPlace::Nowhere => PanelView::Shown,
                    PanelPlace::Beside | PanelPlace::InFront => PanelView::Hidden,
                };
            }
            KeyPress::BackTab if at_line && !asked => {
                let next = match screen.facts().map(|facts| facts.mode) {
                    Some(PermissionMode::Ask) => PermissionMode::Sandboxed,
                    Some(PermissionMode::Sandboxed) => PermissionMode::Plan,
                    Some(_) | None => PermissionMode::Ask,
                };
                return vec![ScreenInput::Command(format!(":mode {}", next.name()))];
            }
            KeyPress::Char('@')
                if at_line && at_word_start(screen) && !screen.input().0.is_normal_mode() =>
            {
                let inputs = self.inputs.clone();
                files::list(self.project(screen), inputs);
                self.state.mode = Mode::Picker(Picker::new(PickerKind::Files, self.files.clone()));
                return self.servers.ask(screen.session());
            }
            KeyPress::Char(sign @ ('/' | ':')) if at_line && empty => {
                let kind = if sign == '/' { PickerKind::Slash } else { PickerKind::Commands };
                let places = PromptPlaces {
                    project: self.project(screen),
                    ..self.options.prompt_places.clone()
                };
                slash::list(places, self.inputs.clone());
                self.entered = false;
                let slash = self.slash.as_deref().unwrap_or_default();
                let items = choices::leave_last(self.servers.beside(kind, slash));
                let picker = Picker::new(kind, items).and_names(choices::other_names(sign));
                self.state.mode = Mode::Picker(picker);
                return self.servers.ask(screen.session());
            }
            KeyPress::Enter if at_line && asks_for_value(screen) => {
                self.state.mode = choices::values(screen.draft().trim(), models(screen))
                    .map_or(Mode::Input, Mode::Picker);
                return vec![ScreenInput::Edited(String::new())];
            }
            KeyPress::Enter if at_line && !asked && note::is_in_line(screen) => {
                self.state.mode = Mode::Picker(note::places(&self.project(screen)));
            }
            KeyPress::Char('?') if at_line && empty => {
                let rows = help_rows(
                    &screen.options().leader,
                    usize::from(self.tty.area().width),
                    &self.state.look,
                );
                let text = rows.iter().map(Row::text).collect::<Vec<_>>().join("\n");
                self.state.mode =
                    Mode::Pager(Pager::new("Keys and commands".to_owned(), rows, text));
            }
            _ => {
                // Who types wants to see what comes.
                if matches!(key, KeyPress::Enter) {
                    self.state.conversation.show_end();
                }
                return vec![ScreenInput::Key(key)];
            }
        }
        Vec::new()
    }

    fn list_sessions(&mut self) -> Vec<ScreenInput> {
        self.state.mode = Mode::Picker(Picker::new(PickerKind::Sessions, Vec::new()));
        vec![ScreenInput::ListSessions]
    }

    /// Puts the present items into the list of files, or that of commands.
    fn fill_picker(&mut self) {
        let Mode::Picker(picker) = &mut self.state.mode else { return };
        let items = match picker.kind {
            PickerKind::Files => self.servers.beside(picker.kind, &self.files),
            PickerKind::Slash | PickerKind::Commands => {
                let slash = self.slash.as_deref().unwrap_or_default();
                choices::leave_last(self.servers.beside(picker.kind, slash))
            }
            PickerKind::Sessions
            | PickerKind::History
            | PickerKind::Rewind
            | PickerKind::RewindScope
            | PickerKind::Places
            | PickerKind::Running
            | PickerKind::Actions
            | PickerKind::Ports(_)
            | PickerKind::StopCall(_)
            | PickerKind::Note
            | PickerKind::Values(_) => return,
        };
        picker.set_items(items);
    }

    fn copy(&mut self, text: &str) {
        self.state.hint = Some(match self.tty.copy(text) {
            Ok(way) => way,
            Err(error) => format!("not copied: {error}"),
        });
    }
}

fn theme(options: &FullScreenOptions, ground: Option<Rgb>) -> Theme {
    match options.colour {
        Colour::On => Theme::of(options.theme, ground, options.depth),
        Colour::Off => Theme::plain(),
    }
}

/// The models of the session's own configuration and vendor.
fn models(screen: &Screen) -> &[KnownModel] {
    screen.facts().map_or(&[], |facts| &facts.models)
}

/// True if the line is a command that asks for one of a few values.
fn asks_for_value(screen: &Screen) -> bool {
    choices::values(screen.draft().trim(), models(screen)).is_some()
}

fn at_word_start(screen: &Screen) -> bool {
    let (editor, _) = screen.input();
    editor.before_cursor().chars().next_back().is_none_or(char::is_whitespace)
}

impl ScreenView for FullScreen {
    fn take(&mut self, input: ScreenInput, screen: &Screen) -> Vec<ScreenInput> {
        self.typing = !screen.draft().is_empty();
        self.servers.note(&input);
        self.state.clock.note(&input, screen, Instant::now());
        match input {
            ScreenInput::Key(key) => {
                self.end_selection();
                self.key(key, screen)
            }
            ScreenInput::Mouse(mouse) => self.mouse(mouse, screen),
            ScreenInput::Focused(focused) => {
                self.focused = focused;
                Vec::new()
            }
            ScreenInput::Resized(..) => {
                self.tty.forget();
                // What stood beside the conversation would cover it.
                if self.state.panels == PanelView::Shown {
                    self.state.panels = PanelView::ByNews;
                }
                Vec::new()
            }
            ScreenInput::OpenEditor(pause, None) => {
                self.end_selection();
                self.open_editor(pause, screen)
            }
            ScreenInput::FollowPlace(pause, cell) => self.follow_place(pause, cell, screen),
            ScreenInput::Ground(red, green, blue) => {
                self.ground = Some((red, green, blue));
                self.change_look();
                Vec::new()
            }
            ScreenInput::Files(names) => {
                let item =
                    |text: String| PickerItem { value: text.clone(), text, detail: String::new() };
                self.files = names.into_iter().map(item).collect();
                self.fill_picker();
                Vec::new()
            }
            ScreenInput::SlashCommands(rows) => {
                self.slash = Some(slash::items(&rows));
                self.fill_picker();
                if self.entered && matches!(self.state.mode, Mode::Picker(_)) {
                    return self.key(KeyPress::Enter, screen);
                }
                Vec::new()
            }
            ScreenInput::Paste(text) => {
                // A paste goes to the line, whatever is open over it.
                if !matches!(self.state.mode, Mode::Input) {
                    self.state.mode = Mode::Input;
                    self.state.conversation.choose_none();
                }
                vec![ScreenInput::Paste(text)]
            }
            ScreenInput::Message(ToClient::Page { session, events })
                if screen.session() != Some(&session) =>
            {
                if let Mode::Picker(picker) = &mut self.state.mode {
                    picker.set_preview(&session.0, &events);
                }
                Vec::new()
            }
            ScreenInput::Message(ToClient::Servers { servers, .. }) if self.servers.is_asked() => {
                self.servers.answered(&servers);
                self.fill_picker();
                Vec::new()
            }
            ScreenInput::Message(message) => {
                let mut inputs = Vec::new();
                if let (ToClient::Sessions(rows), Mode::Picker(picker)) =
                    (&message, &mut self.state.mode)
                    && picker.kind == PickerKind::Sessions
                {
                    picker.set_items(rows.iter().map(choices::session).collect());
                    inputs.extend(choices::preview(picker, rows, screen.session()));
                }
                inputs.insert(0, ScreenInput::Message(message));
                inputs
            }
            ScreenInput::Preview(_)
            | ScreenInput::Lost(_)
            | ScreenInput::Line(_)
            | ScreenInput::EnterAhead
            | ScreenInput::LineAhead
            | ScreenInput::EscapeAhead
            | ScreenInput::WordAlone
            | ScreenInput::Draft(_)
            | ScreenInput::Command(_)
            | ScreenInput::Edited(_)
            | ScreenInput::OpenEditor(_, Some(_))
            | ScreenInput::Suspend(_)
            | ScreenInput::ListSessions
            | ScreenInput::ListServers
            | ScreenInput::SwitchTo(_)
            | ScreenInput::HungUp
            | ScreenInput::Signal(_) => vec![input],
        }
    }

    fn show(&mut self, item: ScreenItem) {
        if let ScreenItem::Ended(call) = &item
            && is_checklist(&call.call)
            && let Some(result) = call.result.as_ref().filter(|result| !result.is_error)
        {
            self.state.checklist.clone_from(&result.text);
        }
        let item = self.state.clock.timed(item, Instant::now());
        self.state.conversation.push(item);
    }

    fn show_earlier(&mut self, items: Vec<ScreenItem>) {
        self.loading = false;
        self.state.conversation.push_earlier(items);
    }

    fn open(&mut self, long: LongText) {
        // The keys belong to what the person does since.
        if !matches!(self.state.mode, Mode::Input) || self.typing {
            return self.show(ScreenItem::Note(format!("{}\n{}", long.title, long.text())));
        }
        let (columns, look) = (usize::from(self.tty.area().width), &self.state.look);
        let text = on_screen(&long.text());
        let is_diff = diff::is_unified(&text);
        let under = Piece::new("", look.text);
        let (mut rows, mut commands): (Vec<Row>, Vec<_>) = (Vec::new(), Vec::new());
        for part in long.parts {
            commands.push((rows.len(), part.command));
            let part = on_screen(&part.text);
            let room = (MOST_ROWS + 1).saturating_sub(rows.len());
            let lines = part.lines().map(|line| Row::new(line, look.text));
            match is_diff {
                true => rows.extend(diff::wrapped(&part, columns, look).into_iter().take(room)),
                false => {
                    rows.extend(lines.flat_map(|row| wrap(&row.pieces, columns, &under)).take(room))
                }
            }
        }
        if rows.len() > MOST_ROWS {
            rows.truncate(MOST_ROWS);
            rows.push(Row::new("… more rows are not shown; y copies all", self.state.look.dim));
        }
        let mut pager = Pager::new(long.title, rows, text);
        pager.commands = commands;
        self.state.mode = Mode::Pager(pager);
    }

    fn start_over(&mut self) {
        self.state = ViewState::new(self.state.look);
        self.files.clear();
        self.servers.forget();
        self.loading = false;
    }

    fn bell(&mut self) {
        self.tty.notify(self.options.notify, "a question waits");
    }

    fn lend_terminal(&mut self, run: TerminalUse<'_>) -> io::Result<Result<String, String>> {
        self.tty.leave();
        let result = run();
        self.tty = Tty::enter(self.options.mouse)?;
        Ok(result)
    }

    fn set_theme(&mut self, theme: ThemeName) {
        self.options.theme = theme;
        self.ask_ground();
        self.change_look();
        self.state.hint = Some(format!("theme {}; `ui.theme` keeps it", theme.name()));
    }

    fn repaint(&mut self) {
        self.tty.forget();
    }

    fn paint(&mut self, screen: &Screen) -> io::Result<()> {
        let working = screen.turn() == TurnState::Working;
        let ended = self.working && !working && screen.connection() == ConnectionState::Live;
        if ended && !self.focused {
            self.tty.notify(self.options.notify, "the turn has ended");
        }
        self.working = working;
        self.state.follow(screen);
        self.state.project = self.project(screen).display().to_string();
        if let Mode::Picker(picker) = &mut self.state.mode
            && picker.kind == PickerKind::Sessions
        {
            picker.set_items(screen.sessions().iter().map(choices::session).collect());
        }
        self.refresh_running(screen);
        self.refresh_followed(screen);
        let frame = frame(&mut self.state, screen, self.tty.area());
        if self.options.title == Title::Written {
            self.tty.title(title(screen, &self.project(screen)))?;
        }
        self.tty.write(frame.buffer, frame.cursor, frame.links)
    }

    fn input_columns(&self) -> usize {
        self.state.size.0
    }

    fn question_shown(&self, question: &Question) -> QuestionShown {
        match self.state.mode {
            Mode::Pager(_) => QuestionShown::Hidden,
            Mode::Input | Mode::Browse(_) | Mode::Picker(_) => self.state.question.seen(question),
        }
    }

    fn tick(&self, screen: &Screen) -> Option<Duration> {
        // The panel shows how long a command in the background has run.
        let runs = screen.items().open().iter().any(client::CallBlock::runs);
        let of_panel = runs.then_some(Duration::from_secs(1));
        self.state.clock.until_next(Instant::now()).or(of_panel)
    }

    fn leave(&mut self, _screen: &Screen) {
        let width = usize::from(self.tty.area().width);
        self.tty.leave();
        self.options.guard = None;
        let rows = self.state.conversation.last_exchange(width, &self.state.look);
        let first = rows.len().saturating_sub(LEFT_BEHIND);
        let lines: String =
            rows[first..].iter().map(|row| row.text().trim_end().to_owned() + "\n").collect();
        self.tty.print(&lines);
    }
}

impl ViewState {
    pub(crate) fn new(look: Theme) -> Self {
        Self {
            conversation: Conversation::default(),
            mode: Mode::Input,
            look,
            checklist: String::new(),
            project: String::new(),
            started: std::collections::HashMap::new(),
            clock: TurnClock::default(),
            question: QuestionScroll::default(),
            panels: PanelView::ByNews,
            search: String::new(),
            hint: None,
            selection: Selection::default(),
            size: (80, 20),
        }
    }

    /// Notes when calls began to run.
    pub(crate) fn follow(&mut self, screen: &Screen) {
        let open = screen.items().open();
        let name = |call: &client::CallBlock| call.call.id.to_string();
        self.started.retain(|known, _| open.iter().any(|call| name(call) == *known));
        for call in open.iter().filter(|call| call.runs()) {
            self.started.entry(name(call)).or_insert_with(Instant::now);
        }
    }
}
