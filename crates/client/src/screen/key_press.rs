//! A key by its function. Pure.

/// Which way the cursor goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To the beginning.
    Start,
    /// To the end.
    End,
}

/// How far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distance {
    /// One character, with the marks that belong to it.
    Character,
    /// One word.
    Word,
    /// To the end of the line.
    Line,
    /// All.
    All,
}

/// A key that brings earlier text back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditKey {
    /// Insert the text that was killed last.
    Yank,
    /// Replace the yanked text by the one that was killed before it.
    YankEarlier,
    /// Take back the last change.
    Undo,
    /// Make the change again that was taken back.
    Redo,
}

/// A key by its function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPress {
    /// A character.
    Char(char),
    /// Done with the line.
    Enter,
    /// A new line in it.
    NewLine,
    /// Stop, or back.
    Escape,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D.
    EndOfInput,
    /// Between question and line, or to the next rule.
    Tab,
    /// The row above, the queued prompts, or earlier input.
    Up,
    /// The row below, or later input.
    Down,
    /// The cursor moves.
    Move(Distance, Direction),
    /// Text goes.
    Erase(Distance, Direction),
    /// Killed text comes back, or a change is taken back.
    Edit(EditKey),
    /// A page towards the beginning or the end of what is shown.
    Page(Direction),
    /// Shift-Tab.
    BackTab,
    /// A letter with Ctrl that has no meaning here; views may give it one.
    Control(char),
    /// Repaint everything.
    Redraw,
    /// The first of two that leave.
    Leader,
}
