//! The names of the themes of the full screen.

/// A theme, as the configuration and `:theme` name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThemeName {
    /// Dark or light by the terminal's ground; `ansi` where the terminal does not tell it.
    Auto,
    /// For a dark ground.
    Dark,
    /// For a light ground.
    Light,
    /// Blue and orange for good and bad, on either ground.
    Daltonised,
    /// The sixteen colours of the terminal.
    Ansi,
}

impl ThemeName {
    /// All of them, the default first.
    pub const ALL: [Self; 5] = [Self::Auto, Self::Dark, Self::Light, Self::Daltonised, Self::Ansi];

    /// Reads a name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|theme| theme.name().eq_ignore_ascii_case(name))
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Dark => "dark",
            Self::Light => "light",
            Self::Daltonised => "daltonised",
            Self::Ansi => "ansi",
        }
    }

    /// True if its colours depend on the terminal's ground.
    #[must_use]
    pub fn needs_ground(self) -> bool {
        matches!(self, Self::Auto | Self::Daltonised)
    }

    /// One sentence about it.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Auto => "dark or light by the terminal's ground, else ansi",
            Self::Dark => "for a dark ground",
            Self::Light => "for a light ground",
            Self::Daltonised => "blue and orange instead of green and red, for either ground",
            Self::Ansi => "the sixteen colours of the terminal",
        }
    }
}
