//! Coloured output: on for a terminal, unless the environment switches it off.

/// Use of escape sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// They may.
    On,
    /// They may not.
    Off,
}

/// Kind of an output stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Terminal {
    /// A terminal.
    Yes,
    /// A file or a pipe.
    No,
}

impl Colour {
    /// Decides from the stream and the environment. `NO_COLOR` switches colours off,
    /// `CLICOLOR_FORCE` switches them on otherwise, and `TERM=dumb` does not count as a terminal.
    #[must_use]
    pub fn decide(terminal: Terminal, variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name| variable(name).filter(|value| !value.is_empty());
        if set("NO_COLOR").is_some() {
            return Self::Off;
        }
        if set("CLICOLOR_FORCE").is_some_and(|value| value != "0") {
            return Self::On;
        }
        match terminal {
            Terminal::Yes if set("TERM").is_none_or(|term| term != "dumb") => Self::On,
            Terminal::Yes | Terminal::No => Self::Off,
        }
    }

    /// `text` in red, where colours are on.
    #[must_use]
    pub fn red(self, text: &str) -> String {
        self.paint("31", text)
    }

    /// `text` in green, where colours are on.
    #[must_use]
    pub fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    /// `text` dimmed, where colours are on.
    #[must_use]
    pub fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// `text` in bold, where colours are on.
    #[must_use]
    pub fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        match self {
            Self::On => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            Self::Off => text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_has_its_say() {
        type Variables = &'static [(&'static str, &'static str)];
        let cases: &[(Terminal, Variables, Colour)] = &[
            (Terminal::Yes, &[("TERM", "xterm")], Colour::On),
            (Terminal::Yes, &[], Colour::On),
            (Terminal::No, &[("TERM", "xterm")], Colour::Off),
            (Terminal::Yes, &[("TERM", "dumb")], Colour::Off),
            (Terminal::Yes, &[("NO_COLOR", "1")], Colour::Off),
            (Terminal::Yes, &[("NO_COLOR", "")], Colour::On),
            (Terminal::No, &[("CLICOLOR_FORCE", "1")], Colour::On),
            (Terminal::No, &[("CLICOLOR_FORCE", "0")], Colour::Off),
            (Terminal::No, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], Colour::Off),
        ];
        for (terminal, variables, want) in cases {
            let variable = |name: &str| {
                variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(Colour::decide(*terminal, variable), *want, "{terminal:?} {variables:?}");
        }
    }
}
