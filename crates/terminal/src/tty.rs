//! The terminal: entered, written, given back. The only file of this crate that touches it.
//!
//! Each frame is one write between the marks of synchronised output (mode 2026), so that no half frame
//! is seen; cells that did not change are not written.

use crate::row::Links;
use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{
    DisableBracketedPaste, DisableFocusChange, DisableMouseCapture, EnableBracketedPaste,
    EnableFocusChange, EnableMouseCapture, KeyboardEnhancementFlags, PopKeyboardEnhancementFlags,
    PushKeyboardEnhancementFlags,
};
use crossterm::style::{
    Attribute, Color as TermColor, Print, ResetColor, SetAttribute, SetBackgroundColor,
    SetForegroundColor,
};
use crossterm::terminal::{
    self, BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen,
    LeaveAlternateScreen,
};
use crossterm::{execute, queue};
use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier};
use std::io::{self, Write};
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Keys are told apart that were one before, such as Enter and Shift-Enter. Without flag 8, which
/// breaks input methods.
const KEYS: KeyboardEnhancementFlags = KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES
    .union(KeyboardEnhancementFlags::REPORT_EVENT_TYPES)
    .union(KeyboardEnhancementFlags::REPORT_ALTERNATE_KEYS);

/// The terminal remembers its title, and has it again (xterm's window operations 22 and 23).
const KEEP_TITLE: &[u8] = b"\x1b[22;0t";
const TITLE_BACK: &[u8] = b"\x1b[23;0t";

/// Use of the mouse. A terminal whose mouse is used selects text only with Shift.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mouse {
    /// The wheel scrolls, a click unfolds.
    Used,
    /// The terminal keeps it.
    LeftAlone,
}

/// A way to call the person at the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notify {
    /// The terminal's bell.
    Bell,
    /// A notification of the desktop by OSC 9: iTerm2, kitty, WezTerm, Windows Terminal.
    Osc9,
    /// The same by OSC 777: urxvt, foot, Ghostty, VTE.
    Osc777,
    /// None.
    Off,
}

/// The terminal while it is ours.
pub(crate) struct Tty {
    out: Box<dyn Write>,
    /// Its size, where it is not asked for it.
    size: Option<(u16, u16)>,
    /// What the terminal shows; none where that is unknown.
    shown: Option<Buffer>,
    cursor: Option<(u16, u16)>,
    links: Links,
    /// The title that was written last.
    title: String,
    /// Shared with the panic hook.
    entered: Arc<AtomicBool>,
    #[cfg(agentd_hooks)]
    frames: u32,
}

impl Tty {
    /// Takes the terminal over.
    pub(crate) fn enter(mouse: Mouse) -> io::Result<Self> {
        terminal::enable_raw_mode()?;
        let mut tty = Self::over(Box::new(io::stdout()), None);
        tty.entered.store(true, Ordering::Relaxed);
        give_back_before_panic(Arc::clone(&tty.entered));
        execute!(tty.out, EnterAlternateScreen, EnableBracketedPaste, EnableFocusChange)?;
        // Terminals that do not know kitty's keyboard protocol ignore this; the console of Linux may not.
        if std::env::var_os("TERM").is_none_or(|term| term != "linux") {
            execute!(tty.out, PushKeyboardEnhancementFlags(KEYS))?;
        }
        if mouse == Mouse::Used {
            execute!(tty.out, EnableMouseCapture)?;
        }
        // Also where it stays as it is: what gives the terminal back does not know.
        tty.out.write_all(KEEP_TITLE)?;
        Ok(tty)
    }

    /// A terminal that is written to and whose mode is not changed.
    pub(crate) fn over(out: Box<dyn Write>, size: Option<(u16, u16)>) -> Self {
        let (shown, cursor, links) = (None, None, Vec::new());
        Self {
            out,
            size,
            shown,
            cursor,
            links,
            title: String::new(),
            entered: Arc::default(),
            #[cfg(agentd_hooks)]
            frames: 0,
        }
    }

    /// Its size as an area.
    pub(crate) fn area(&self) -> Rect {
        let (columns, rows) = self.size.unwrap_or_else(client::terminal_size);
        Rect::new(0, 0, columns, rows)
    }

    /// Gives it back as it was.
    pub(crate) fn leave(&mut self) {
        give_back(&self.entered, &mut self.out);
    }

    /// Asks for the colour of the ground by OSC 11. The answer comes among the keys, or never.
    pub(crate) fn ask_ground(&mut self) {
        self.print("\x1b]11;?\x1b\\");
    }

    /// The next frame is written whole.
    pub(crate) fn forget(&mut self) {
        self.shown = None;
    }

    /// Writes what differs from the last frame.
    pub(crate) fn write(
        &mut self,
        frame: Buffer,
        cursor: Option<(u16, u16)>,
        links: Links,
    ) -> io::Result<()> {
        #[cfg(agentd_hooks)]
        self.panic_at_frame();
        let bytes = bytes(self.shown.as_ref(), &frame, &self.links, &links, self.cursor, cursor)?;
        if !bytes.is_empty() {
            self.out.write_all(&bytes)?;
            self.out.flush()?;
        }
        self.shown = Some(frame);
        (self.cursor, self.links) = (cursor, links);
        Ok(())
    }

    /// For tests: panics at the frame with this number.
    #[cfg(agentd_hooks)]
    fn panic_at_frame(&mut self) {
        self.frames += 1;
        let wanted = std::env::var("AGENTD_PANIC_FRAME").ok().and_then(|it| it.parse().ok());
        assert!(wanted != Some(self.frames), "frame {} was to panic", self.frames);
    }

    /// Writes the title of the terminal, where it changes.
    pub(crate) fn title(&mut self, title: String) -> io::Result<()> {
        if self.title == title {
            return Ok(());
        }
        write!(self.out, "\x1b]0;{title}\x07")?;
        self.out.flush()?;
        self.title = title;
        Ok(())
    }

    /// Calls the person.
    pub(crate) fn notify(&mut self, way: Notify, words: &str) {
        let bytes = match way {
            Notify::Bell => "\x07".to_owned(),
            Notify::Osc9 => format!("\x1b]9;agentd: {words}\x1b\\"),
            Notify::Osc777 => format!("\x1b]777;notify;agentd;{words}\x1b\\"),
            Notify::Off => return,
        };
        // A terminal that is gone calls nobody.
        let _ = self.out.write_all(bytes.as_bytes());
        let _ = self.out.flush();
    }

    /// Writes what is no part of a frame, such as lines that stay after the terminal was given back.
    pub(crate) fn print(&mut self, lines: &str) {
        let _ = self.out.write_all(lines.as_bytes());
        let _ = self.out.flush();
    }

    /// Gives text to the clipboard, by a program of the desktop or by OSC 52, and says which way.
    pub(crate) fn copy(&mut self, text: &str) -> io::Result<String> {
        if let Some(program) = client::copy_by_program(text) {
            return Ok(format!("copied by {program}"));
        }
        // Terminals do not say if they took it.
        execute!(self.out, crossterm::clipboard::CopyToClipboard::to_clipboard_from(text))?;
        Ok("copied by OSC 52, if this terminal takes it".to_owned())
    }
}

impl std::fmt::Debug for Tty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tty").field("entered", &self.entered).finish_non_exhaustive()
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Gives the terminal back, once.
fn give_back(entered: &AtomicBool, out: &mut dyn Write) {
    if !entered.swap(false, Ordering::Relaxed) {
        return;
    }
    // A terminal that is gone needs nothing.
    let _ = goodbye().and_then(|bytes| out.write_all(&bytes));
    let _ = out.flush();
    let _ = terminal::disable_raw_mode();
}

/// A panic of this thread ends the view. Its message then goes to the terminal's own screen, where it
/// can be read.
fn give_back_before_panic(entered: Arc<AtomicBool>) {
    let own = thread::current().id();
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if thread::current().id() == own {
            give_back(&entered, &mut io::stdout());
        }
        print(info);
    }));
}

/// What gives a terminal back from any state, also from the middle of a frame.
pub(crate) fn goodbye() -> io::Result<Vec<u8>> {
    // CAN ends a sequence that was cut short.
    let mut out = b"\x18".to_vec();
    queue!(
        out,
        EndSynchronizedUpdate,
        ResetColor,
        SetAttribute(Attribute::Reset),
        DisableMouseCapture,
        DisableFocusChange,
        DisableBracketedPaste,
        PopKeyboardEnhancementFlags,
        LeaveAlternateScreen,
        Show
    )?;
    out.extend(TITLE_BACK);
    Ok(out)
}

/// What turns one frame into the next. Empty where they are equal.
pub(crate) fn bytes(
    shown: Option<&Buffer>,
    frame: &Buffer,
    old_links: &Links,
    links: &Links,
    old_cursor: Option<(u16, u16)>,
    cursor: Option<(u16, u16)>,
) -> io::Result<Vec<u8>> {
    let empty = Buffer::empty(frame.area);
    let same_size = shown.filter(|shown| shown.area == frame.area);
    let before = same_size.unwrap_or(&empty);
    let mut cells = before.diff(frame);
    if same_size.is_some() && old_links != links {
        add_linked(&mut cells, frame, old_links, links);
    }
    if same_size.is_some() && cells.is_empty() && old_cursor == cursor {
        return Ok(Vec::new());
    }
    let mut out = Vec::new();
    queue!(out, BeginSynchronizedUpdate, Hide)?;
    if same_size.is_none() {
        queue!(out, ResetColor, SetAttribute(Attribute::Reset), Clear(ClearType::All))?;
    }
    write_cells(&mut out, &cells, links)?;
    if let Some((x, y)) = cursor {
        queue!(out, MoveTo(x, y), Show)?;
    }
    queue!(out, EndSynchronizedUpdate)?;
    Ok(out)
}

/// Cells of links that changed are written again.
fn add_linked<'a>(
    cells: &mut Vec<(u16, u16, &'a Cell)>,
    frame: &'a Buffer,
    old: &Links,
    new: &Links,
) {
    let changed = old.iter().filter(|link| !new.contains(link));
    let changed: Vec<_> = changed.chain(new.iter().filter(|link| !old.contains(link))).collect();
    for link in changed {
        for x in link.from..link.to {
            let known = cells.iter().any(|(cx, cy, _)| (*cx, *cy) == (x, link.y));
            if let (false, Some(cell)) = (known, frame.cell((x, link.y))) {
                cells.push((x, link.y, cell));
            }
        }
    }
    cells.sort_by_key(|(x, y, _)| (*y, *x));
}

fn write_cells(out: &mut Vec<u8>, cells: &[(u16, u16, &Cell)], links: &Links) -> io::Result<()> {
    let mut place = None;
    let mut style = (Color::Reset, Color::Reset, Modifier::empty());
    let mut open: Option<&str> = None;
    queue!(out, SetAttribute(Attribute::Reset))?;
    for (x, y, cell) in cells {
        if place != Some((*x, *y)) {
            queue!(out, MoveTo(*x, *y))?;
        }
        let link = links.iter().find(|link| link.y == *y && (link.from..link.to).contains(x));
        let target = link.map(|link| &*link.target);
        if open != target {
            let plain: String =
                target.unwrap_or_default().chars().filter(|c| !c.is_control()).collect();
            queue!(out, Print(format!("\x1b]8;;{plain}\x1b\\")))?;
            open = target;
        }
        let wanted = (cell.fg, cell.bg, cell.modifier);
        if wanted != style {
            write_style(out, wanted)?;
            style = wanted;
        }
        queue!(out, Print(cell.symbol()))?;
        // Terminals disagree about the width of some characters, so the next place is named.
        place = cell.symbol().is_ascii().then_some((x + 1, *y));
    }
    if open.is_some() {
        queue!(out, Print("\x1b]8;;\x1b\\"))?;
    }
    if style != (Color::Reset, Color::Reset, Modifier::empty()) {
        queue!(out, SetAttribute(Attribute::Reset))?;
    }
    Ok(())
}

fn write_style(out: &mut Vec<u8>, style: (Color, Color, Modifier)) -> io::Result<()> {
    let (front, back, modifier) = style;
    queue!(out, SetAttribute(Attribute::Reset))?;
    for (bit, attribute) in [
        (Modifier::BOLD, Attribute::Bold),
        (Modifier::DIM, Attribute::Dim),
        (Modifier::ITALIC, Attribute::Italic),
        (Modifier::UNDERLINED, Attribute::Underlined),
        (Modifier::REVERSED, Attribute::Reverse),
        (Modifier::CROSSED_OUT, Attribute::CrossedOut),
    ] {
        if modifier.contains(bit) {
            queue!(out, SetAttribute(attribute))?;
        }
    }
    if let Some(colour) = of_cell(front) {
        queue!(out, SetForegroundColor(colour))?;
    }
    if let Some(colour) = of_cell(back) {
        queue!(out, SetBackgroundColor(colour))?;
    }
    Ok(())
}

fn of_cell(colour: Color) -> Option<TermColor> {
    Some(match colour {
        Color::Reset => return None,
        Color::Black => TermColor::Black,
        Color::Red => TermColor::DarkRed,
        Color::Green => TermColor::DarkGreen,
        Color::Yellow => TermColor::DarkYellow,
        Color::Blue => TermColor::DarkBlue,
        Color::Magenta => TermColor::DarkMagenta,
        Color::Cyan => TermColor::DarkCyan,
        Color::Gray => TermColor::Grey,
        Color::DarkGray => TermColor::DarkGrey,
        Color::LightRed => TermColor::Red,
        Color::LightGreen => TermColor::Green,
        Color::LightYellow => TermColor::Yellow,
        Color::LightBlue => TermColor::Blue,
        Color::LightMagenta => TermColor::Magenta,
        Color::LightCyan => TermColor::Cyan,
        Color::White => TermColor::White,
        Color::Rgb(r, g, b) => TermColor::Rgb { r, g, b },
        Color::Indexed(number) => TermColor::AnsiValue(number),
    })
}
