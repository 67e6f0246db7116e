//! The styles of all parts, from a table of themes. No meaning is carried by a colour alone.

use client::ThemeName;
use ratatui_core::style::{Color, Modifier, Style};

/// Red, green and blue.
pub(crate) type Rgb = (u8, u8, u8);

/// The colours of a theme: six roles, the grounds of a change, and the colours of code.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Palette {
    /// The hardest ground that it is made for: the lightest dark one, or the darkest light one.
    pub(crate) ground: Rgb,
    /// Text on a ground of this table. Elsewhere text has the terminal's own colour.
    pub(crate) text: Rgb,
    pub(crate) dim: Rgb,
    pub(crate) accent: Rgb,
    pub(crate) good: Rgb,
    pub(crate) bad: Rgb,
    pub(crate) ask: Rgb,
    pub(crate) added: Rgb,
    pub(crate) removed: Rgb,
    /// In the order of a terminal: red, green, yellow, blue, magenta, cyan.
    pub(crate) code: [Rgb; 6],
}

const fn rgb(hex: u32) -> Rgb {
    let [_, red, green, blue] = hex.to_be_bytes();
    (red, green, blue)
}

pub(crate) const DARK: Palette = Palette {
    ground: rgb(0x30_34_46),
    text: rgb(0xec_ef_f4),
    dim: rgb(0xb0_b7_c3),
    accent: rgb(0x8f_d3_e8),
    good: rgb(0xa6_e3_a1),
    bad: rgb(0xff_b0_b0),
    ask: rgb(0xf5_dc_8e),
    added: rgb(0x0a_44_14),
    removed: rgb(0x5a_1a_1e),
    code: [
        rgb(0xff_b0_b0),
        rgb(0xa6_e3_a1),
        rgb(0xf5_dc_8e),
        rgb(0xa8_cc_ff),
        rgb(0xe6_c8_ff),
        rgb(0x94_e2_d5),
    ],
};

pub(crate) const LIGHT: Palette = Palette {
    ground: rgb(0xee_e8_d5),
    text: rgb(0x24_28_2f),
    dim: rgb(0x56_5b_66),
    accent: rgb(0x00_56_6b),
    good: rgb(0x1c_5d_1c),
    bad: rgb(0xa0_18_22),
    ask: rgb(0x6b_4a_00),
    added: rgb(0xd7_ff_d7),
    removed: rgb(0xff_d7_d7),
    code: [
        rgb(0xa0_18_22),
        rgb(0x1c_5d_1c),
        rgb(0x6b_4a_00),
        rgb(0x1a_4e_a0),
        rgb(0x7a_2a_8c),
        rgb(0x00_5f_5f),
    ],
};

pub(crate) const DALTONISED_DARK: Palette = Palette {
    good: rgb(0x9e_cb_ff),
    bad: rgb(0xff_b8_70),
    added: rgb(0x0c_2a_66),
    removed: rgb(0x5a_28_00),
    code: [
        rgb(0xff_b8_70),
        rgb(0xa8_cc_ff),
        rgb(0xf5_dc_8e),
        rgb(0x9e_cb_ff),
        rgb(0xe6_c8_ff),
        rgb(0x94_e2_d5),
    ],
    ..DARK
};

pub(crate) const DALTONISED_LIGHT: Palette = Palette {
    good: rgb(0x0b_4a_a2),
    bad: rgb(0x8a_2c_00),
    added: rgb(0xd7_e6_ff),
    removed: rgb(0xff_e3_c2),
    code: [
        rgb(0x8a_2c_00),
        rgb(0x0b_4a_a2),
        rgb(0x6b_4a_00),
        rgb(0x1a_4e_a0),
        rgb(0x7a_2a_8c),
        rgb(0x00_5f_5f),
    ],
    ..LIGHT
};

/// Characters that changed within a line.
pub(crate) const CHANGED: Modifier = Modifier::UNDERLINED;

/// How many colours a terminal has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColourDepth {
    /// Any colour.
    True,
    /// A palette of 256; each colour becomes the nearest one.
    Palette,
    /// Sixteen, so that all themes are `ansi`.
    Sixteen,
}

impl ColourDepth {
    /// Decides from the environment: `COLORTERM` says that any colour is shown.
    #[must_use]
    pub fn decide(variable: impl Fn(&str) -> Option<String>) -> Self {
        let has_all = |value: &String| value == "truecolor" || value == "24bit";
        if variable("COLORTERM").as_ref().is_some_and(has_all) {
            return Self::True;
        }
        match variable("TERM") {
            Some(term) if term != "linux" && term != "ansi" && !term.starts_with("vt") => {
                Self::Palette
            }
            Some(_) | None => Self::Sixteen,
        }
    }

    fn fit(self, colour: Rgb) -> Color {
        match self {
            Self::True => Color::Rgb(colour.0, colour.1, colour.2),
            Self::Palette | Self::Sixteen => Color::Indexed(nearest(colour)),
        }
    }
}

/// Styles by what they say.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Theme {
    pub(crate) text: Style,
    /// Less than the rest; lines between parts.
    pub(crate) dim: Style,
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
    /// The row of an added line.
    pub(crate) added: Style,
    /// The row of a removed line.
    pub(crate) removed: Style,
    /// A bar over the whole width that says what is wrong.
    pub(crate) alarm: Style,
    /// What a search found where it is now.
    pub(crate) found_here: Style,
    /// Colours of code; absent without colours.
    syntax: Option<SyntaxColours>,
}

#[derive(Debug, Clone, Copy)]
struct SyntaxColours {
    /// In the order of a terminal; absent where they are the terminal's own.
    table: Option<[Color; 6]>,
    depth: ColourDepth,
}

impl Theme {
    /// The theme of this name on this ground, if the terminal has told it.
    pub(crate) fn of(name: ThemeName, ground: Option<Rgb>, depth: ColourDepth) -> Self {
        let on_ground = |dark, light| match ground.map(luminance) {
            Some(value) if value <= luminance(DARK.ground) => Some(dark),
            Some(value) if value >= luminance(LIGHT.ground) => Some(light),
            Some(_) | None => None,
        };
        let palette = match name {
            ThemeName::Auto => on_ground(DARK, LIGHT),
            ThemeName::Daltonised => on_ground(DALTONISED_DARK, DALTONISED_LIGHT),
            ThemeName::Dark => Some(DARK),
            ThemeName::Light => Some(LIGHT),
            ThemeName::Ansi => None,
        };
        match palette.filter(|_| depth != ColourDepth::Sixteen) {
            Some(palette) => Self::from_palette(&palette, depth),
            None if name == ThemeName::Daltonised => Self::ansi_daltonised(),
            None => Self { syntax: Some(SyntaxColours { table: None, depth }), ..Self::ansi() },
        }
    }

    pub(crate) fn from_palette(palette: &Palette, depth: ColourDepth) -> Self {
        let style = |colour| Style::new().fg(depth.fit(colour));
        let on = |ground| style(palette.text).bg(depth.fit(ground));
        let accent = style(palette.accent);
        Self {
            text: Style::new(),
            dim: style(palette.dim),
            prompt: accent.add_modifier(Modifier::BOLD),
            heading: accent.add_modifier(Modifier::BOLD),
            code: accent,
            link: accent.add_modifier(Modifier::UNDERLINED),
            good: style(palette.good),
            bad: style(palette.bad),
            refused: style(palette.bad),
            asks: style(palette.ask).add_modifier(Modifier::BOLD),
            added: on(palette.added),
            removed: on(palette.removed),
            alarm: style(palette.ground).bg(depth.fit(palette.bad)),
            found_here: style(palette.ground).bg(depth.fit(palette.ask)),
            syntax: Some(SyntaxColours {
                table: Some(palette.code.map(|colour| depth.fit(colour))),
                depth,
            }),
        }
    }

    /// With the terminal's own sixteen colours, so that the person's own palette holds.
    pub(crate) fn ansi() -> Self {
        let style = Style::new();
        Self {
            text: style,
            dim: style.add_modifier(Modifier::DIM),
            prompt: style.fg(Color::Cyan).add_modifier(Modifier::BOLD),
            heading: style.fg(Color::Blue).add_modifier(Modifier::BOLD),
            code: style.fg(Color::Yellow),
            link: style.fg(Color::Blue).add_modifier(Modifier::UNDERLINED),
            good: style.fg(Color::Green),
            bad: style.fg(Color::Red),
            refused: style.fg(Color::Magenta),
            asks: style.fg(Color::Yellow).add_modifier(Modifier::BOLD),
            added: style,
            removed: style,
            alarm: style.fg(Color::Red).add_modifier(Modifier::REVERSED),
            found_here: style.fg(Color::Black).bg(Color::Yellow),
            syntax: Some(SyntaxColours { table: None, depth: ColourDepth::True }),
        }
    }

    /// Of the sixteen colours those that differ without red and green.
    fn ansi_daltonised() -> Self {
        let style = Style::new();
        let (blue, yellow) = (style.fg(Color::LightBlue), style.fg(Color::Yellow));
        Self {
            good: blue,
            bad: yellow,
            refused: yellow,
            asks: style.fg(Color::Cyan).add_modifier(Modifier::BOLD),
            code: style.fg(Color::Cyan),
            alarm: yellow.add_modifier(Modifier::REVERSED),
            ..Self::ansi()
        }
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
            alarm: style.add_modifier(Modifier::REVERSED),
            found_here: style.add_modifier(Modifier::REVERSED),
            syntax: None,
            ..Self::ansi()
        }
    }

    /// More than the rest.
    pub(crate) fn bold(&self) -> Style {
        self.text.add_modifier(Modifier::BOLD)
    }

    /// What a search found elsewhere.
    pub(crate) fn found(&self) -> Style {
        self.bold().add_modifier(CHANGED)
    }

    /// Are colours used?
    pub(crate) fn is_coloured(&self) -> bool {
        self.syntax.is_some()
    }

    /// A colour of code that is a number of the terminal's palette; absent for that of text.
    pub(crate) fn syntax(&self, number: u8) -> Option<Color> {
        let Some(colours) = self.syntax?.table else { return Some(Color::Indexed(number)) };
        match number {
            1..=6 => colours.get(usize::from(number - 1)).copied(),
            9..=14 => colours.get(usize::from(number - 9)).copied(),
            8 => self.dim.fg,
            _ => None,
        }
    }

    /// A colour of code that a theme of `bat` names.
    pub(crate) fn syntax_rgb(&self, colour: Rgb) -> Option<Color> {
        self.syntax.map(|colours| colours.depth.fit(colour))
    }
}

/// The relative luminance of WCAG 2.
pub(crate) fn luminance(colour: Rgb) -> f64 {
    let linear = |value: u8| {
        let value = f64::from(value) / 255.0;
        if value <= 0.03928 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * linear(colour.0) + 0.7152 * linear(colour.1) + 0.0722 * linear(colour.2)
}

/// Steps of a channel in the cube of the 256 colours.
const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];

/// The colour of this number among the 256, from 16 on: a cube, then greys.
pub(crate) fn of_palette(number: u8) -> Rgb {
    let step = |at: u8| STEPS.get(usize::from(at % 6)).copied().unwrap_or_default();
    match number {
        232.. => (8 + 10 * (number - 232), 8 + 10 * (number - 232), 8 + 10 * (number - 232)),
        _ => {
            let at = number.saturating_sub(16);
            (step(at / 36), step(at / 6), step(at))
        }
    }
}

fn nearest(colour: Rgb) -> u8 {
    let distance = |number: &u8| {
        let other = of_palette(*number);
        let square = |a: u8, b: u8| u32::from(a.abs_diff(b)).pow(2);
        square(colour.0, other.0) + square(colour.1, other.1) + square(colour.2, other.2)
    };
    (16..=255).min_by_key(distance).unwrap_or(16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ground_and_the_terminal_decide_about_a_theme() {
        let all = ColourDepth::True;
        let good = |name, ground, depth| Theme::of(name, ground, depth).good.fg;
        let (black, white, grey) = ((0, 0, 0), (255, 255, 255), (128, 128, 128));
        let dark = good(ThemeName::Dark, None, all);
        let light = good(ThemeName::Light, None, all);
        assert_ne!(dark, light);
        assert_eq!(good(ThemeName::Auto, Some(black), all), dark);
        assert_eq!(good(ThemeName::Auto, Some(white), all), light);
        for ground in [None, Some(grey)] {
            assert_eq!(good(ThemeName::Auto, ground, all), Some(Color::Green), "{ground:?}");
            let daltonised = good(ThemeName::Daltonised, ground, all);
            assert_eq!(daltonised, Some(Color::LightBlue), "{ground:?}");
        }
        assert_eq!(good(ThemeName::Dark, None, ColourDepth::Sixteen), Some(Color::Green));
        let indexed = good(ThemeName::Dark, None, ColourDepth::Palette);
        assert!(matches!(indexed, Some(Color::Indexed(16..))), "{indexed:?}");
    }

    #[test]
    fn only_colorterm_promises_any_colour() {
        let depth = |colorterm: Option<&str>, term: &str| {
            ColourDepth::decide(|name| match name {
                "COLORTERM" => colorterm.map(str::to_owned),
                _ => Some(term.to_owned()),
            })
        };
        assert_eq!(depth(Some("truecolor"), "xterm"), ColourDepth::True);
        assert_eq!(depth(Some("24bit"), "xterm"), ColourDepth::True);
        assert_eq!(depth(Some("yes"), "tmux-256color"), ColourDepth::Palette);
        assert_eq!(depth(None, "xterm-kitty"), ColourDepth::Palette);
        assert_eq!(depth(None, "linux"), ColourDepth::Sixteen);
    }

    #[test]
    fn a_colour_becomes_the_nearest_of_the_256() {
        assert_eq!(nearest((0, 0, 0)), 16);
        assert_eq!(nearest((255, 255, 255)), 231);
        assert_eq!(nearest((10, 68, 20)), 22, "a dark green stays green");
        assert_eq!(nearest((48, 48, 50)), 236, "a grey");
        for number in 16..=255 {
            assert_eq!(of_palette(nearest(of_palette(number))), of_palette(number));
        }
    }
}
