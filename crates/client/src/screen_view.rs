//! What `attach` asks of a view of the [`Screen`]. The screen decides what a key and a message mean; a
//! view shows it, and may have keys of its own for what only it shows.

use crate::screen::{LongText, QuestionShown, Screen, ScreenInput};
use crate::screen_items::ScreenItem;
use crate::terminal_use::TerminalUse;
use crate::theme_name::ThemeName;
use protocol::judgement::Question;
use std::io;
use std::time::Duration;

/// A view of an attached session.
pub trait ScreenView {
    /// Sees each input before the screen does, and returns what the screen gets instead: mostly the
    /// same, and nothing for a key that only moves the view.
    fn take(&mut self, input: ScreenInput, screen: &Screen) -> Vec<ScreenInput>;

    /// Shows this for good, below all before.
    fn show(&mut self, item: ScreenItem);

    /// Shows items that are older than all shown ones.
    fn show_earlier(&mut self, items: Vec<ScreenItem>);

    /// Shows a text that is no part of the conversation.
    fn open(&mut self, text: LongText);

    /// The items that follow are those of another session.
    fn start_over(&mut self);

    /// Calls the person: a question waits.
    fn bell(&mut self);

    /// Draws all in another theme. Views that print lines have the terminal's colours.
    fn set_theme(&mut self, _theme: ThemeName) {
        let words = "themes are for the full screen".to_owned();
        self.show(ScreenItem::Error(words));
    }

    /// The terminal may show something else than was painted.
    fn repaint(&mut self);

    /// Gives the terminal to another program, and takes it back behind that.
    ///
    /// # Errors
    /// If the terminal cannot be taken back.
    fn lend_terminal(&mut self, run: TerminalUse<'_>) -> io::Result<Result<String, String>>;

    /// Paints what changed.
    ///
    /// # Errors
    /// If the terminal cannot be written.
    fn paint(&mut self, screen: &Screen) -> io::Result<()>;

    /// Columns of the last painted input line, with its mark.
    fn input_columns(&self) -> usize;

    /// How much of this question was painted. Views that print all of it say `Whole`.
    fn question_shown(&self, _question: &Question) -> QuestionShown {
        QuestionShown::Whole
    }

    /// When the view changes by itself, because it shows a time.
    fn tick(&self, screen: &Screen) -> Option<Duration>;

    /// Gives the terminal back as it was.
    fn leave(&mut self, screen: &Screen);
}
