//! The styles of all parts. The sixteen colours of the terminal, so that the person's own palette
//! holds; no meaning is carried by a colour alone.

use ratatui_core::style::{Color, Modifier, Style};

/// Styles by what they say.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Theme {
    pub(crate) text: Style,
    /// Less than the rest; lines between parts.
    pub(crate) dim: Style,
    pub(crate) bold: Style,
    /// A prompt of the person.
    pub(crate) prompt: Style,
    /// A heading of the model's text.
    pub(crate) heading: Style,
    /// Code in a line of text.
    pub(crate) code: Style,
    pub(crate) link: Style,
    /// It went well; an added line.
    pub(crate) good: Style,
    /// It did not; a removed line.
    pub(crate) bad: Style,
    /// A refusal of the cage.
    pub(crate) refused: Style,
    /// Something waits for the person.
    pub(crate) asks: Style,
    /// Characters that changed within a line.
    pub(crate) changed: Modifier,
    /// The chosen block or row.
    pub(crate) chosen: Style,
    /// What a search found where it is now.
    pub(crate) found_here: Style,
    /// Are colours used?
    pub(crate) coloured: bool,
}

impl Theme {
    /// With the terminal's own sixteen colours.
    pub(crate) fn ansi() -> Self {
        let style = Style::new();
        Self {
            text: style,
            dim: style.add_modifier(Modifier::DIM),
            bold: style.add_modifier(Modifier::BOLD),
            prompt: style.fg(Color::Cyan).add_modifier(Modifier::BOLD),
            heading: style.fg(Color::Blue).add_modifier(Modifier::BOLD),
            code: style.fg(Color::Yellow),
            link: style.fg(Color::Blue).add_modifier(Modifier::UNDERLINED),
            good: style.fg(Color::Green),
            bad: style.fg(Color::Red),
            refused: style.fg(Color::Magenta),
            asks: style.fg(Color::Yellow).add_modifier(Modifier::BOLD),
            changed: Modifier::UNDERLINED,
            chosen: style.add_modifier(Modifier::REVERSED),
            found_here: style.fg(Color::Black).bg(Color::Yellow),
            coloured: true,
        }
    }

    /// What a search found elsewhere.
    pub(crate) fn found(&self) -> Style {
        self.bold.add_modifier(self.changed)
    }

    /// Without colours.
    pub(crate) fn plain() -> Self {
        let style = Style::new();
        let bold = style.add_modifier(Modifier::BOLD);
        Self {
            prompt: bold,
            heading: bold,
            code: style,
            link: style.add_modifier(Modifier::UNDERLINED),
            good: style,
            bad: bold,
            refused: bold,
            asks: bold,
            found_here: style.add_modifier(Modifier::REVERSED),
            coloured: false,
            ..Self::ansi()
        }
    }
}
