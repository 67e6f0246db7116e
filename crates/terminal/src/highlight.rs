//! Colours of code: the grammars and themes of `bat`, loaded when the first code is shown.

use crate::row::Piece;
use crate::theme::Theme;
use ratatui_core::style::{Color, Modifier, Style};
use std::sync::{LazyLock, OnceLock};
use syntect::easy::HighlightLines;
use syntect::highlighting::{Color as SyntaxColor, FontStyle, Theme as SyntaxTheme};
use syntect::parsing::{SyntaxReference, SyntaxSet};
use two_face::theme::{EmbeddedLazyThemeSet, EmbeddedThemeName};

/// A longer line is data, and highlighting it takes long.
const LONGEST_LINE: usize = 1_000;
/// Lines of one piece of code that are highlighted.
const MOST_LINES: u32 = 2_000;

static SYNTAXES: LazyLock<SyntaxSet> = LazyLock::new(two_face::syntax::extra_newlines);
static CHOSEN: OnceLock<EmbeddedThemeName> = OnceLock::new();
static THEME: LazyLock<SyntaxTheme> = LazyLock::new(|| {
    let chosen = CHOSEN.get().copied().unwrap_or(EmbeddedThemeName::Ansi);
    two_face::theme::extra().get(chosen).clone()
});

/// Names the theme for all code; before the first code is shown. False if there is none of that name.
pub fn choose_theme(name: &str) -> bool {
    let known = EmbeddedLazyThemeSet::theme_names();
    let found = known.iter().find(|theme| theme.as_name().eq_ignore_ascii_case(name));
    found.is_some_and(|theme| CHOSEN.get_or_init(|| *theme) == theme)
}

/// The names of all themes.
pub fn theme_names() -> impl Iterator<Item = &'static str> {
    EmbeddedLazyThemeSet::theme_names().iter().map(|theme| theme.as_name())
}

/// A piece of code as parts with their colour: a number of the 16 colours of a terminal. The parts are
/// the whole text, in its order. `language` is named as a code block does.
#[must_use]
pub fn code_spans(language: &str, code: &str) -> Vec<(Option<u8>, String)> {
    let mut highlighter = Highlighter::of_language(language, &Theme::ansi());
    let mut spans: Vec<(Option<u8>, String)> = Vec::new();
    let mut add = |colour: Option<u8>, text: &str| match spans.last_mut() {
        Some((last, whole)) if *last == colour => whole.push_str(text),
        Some(_) | None => spans.push((colour, text.to_owned())),
    };
    for line in code.split_inclusive('\n') {
        let words = line.strip_suffix('\n').unwrap_or(line);
        for piece in highlighter.line(words) {
            let colour = match piece.style.fg {
                Some(Color::Indexed(number @ 0..=15)) => Some(number),
                Some(_) | None => None,
            };
            add(colour, &piece.text);
        }
        add(None, &line[words.len()..]);
    }
    spans
}

#[cfg(test)]
thread_local! {
    /// How many lines this thread has highlighted.
    pub(crate) static HIGHLIGHTED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Highlights the lines of one piece of code, in their order.
pub(crate) struct Highlighter {
    lines: Option<HighlightLines<'static>>,
    left: u32,
    look: Theme,
}

impl std::fmt::Debug for Highlighter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Highlighter").field("known", &self.lines.is_some()).finish()
    }
}

impl Highlighter {
    /// For a language as a code block names it, such as `rust` or `c++`.
    pub(crate) fn of_language(name: &str, look: &Theme) -> Self {
        let word = name.split([' ', ',', '{']).next().unwrap_or_default();
        let find = || SYNTAXES.find_syntax_by_token(word);
        Self::of((!word.is_empty()).then(find).flatten(), look)
    }

    /// For a file, by its name.
    pub(crate) fn of_file(path: &str, look: &Theme) -> Self {
        let name = path.rsplit('/').next().unwrap_or_default();
        let ending = name.rsplit('.').next().unwrap_or_default();
        let find = || {
            let by_name = SYNTAXES.find_syntax_by_extension(name);
            by_name.or_else(|| SYNTAXES.find_syntax_by_extension(ending))
        };
        Self::of((!name.is_empty()).then(find).flatten(), look)
    }

    fn of(syntax: Option<&'static SyntaxReference>, look: &Theme) -> Self {
        let known = syntax.filter(|_| look.is_coloured());
        let lines = known.map(|syntax| HighlightLines::new(syntax, &THEME));
        Self { lines, left: MOST_LINES, look: *look }
    }

    /// True if the language is known, and its words get colours.
    pub(crate) fn is_known(&self) -> bool {
        self.lines.is_some()
    }

    /// The next line, without its end.
    pub(crate) fn line(&mut self, line: &str) -> Vec<Piece> {
        let plain = || vec![Piece::new(line, self.look.text)];
        if line.len() > LONGEST_LINE || self.left == 0 {
            // What follows cannot be read without this line.
            let result = plain();
            self.lines = None;
            return result;
        }
        let look = self.look;
        let Some(lines) = &mut self.lines else { return plain() };
        self.left -= 1;
        #[cfg(test)]
        HIGHLIGHTED.set(HIGHLIGHTED.get() + 1);
        match lines.highlight_line(&format!("{line}\n"), &SYNTAXES) {
            Ok(parts) => {
                let piece = |(style, text): &(syntect::highlighting::Style, &str)| {
                    Piece::new(text.trim_end_matches('\n'), of_syntax(*style, &look))
                };
                parts.iter().map(piece).filter(|piece| !piece.text.is_empty()).collect()
            }
            Err(_) => {
                self.lines = None;
                vec![Piece::new(line, look.text)]
            }
        }
    }
}

fn of_syntax(style: syntect::highlighting::Style, look: &Theme) -> Style {
    let mut result = Style::new();
    if let Some(colour) = colour(style.foreground, look) {
        result = result.fg(colour);
    }
    for (font, modifier) in [
        (FontStyle::BOLD, Modifier::BOLD),
        (FontStyle::ITALIC, Modifier::ITALIC),
        (FontStyle::UNDERLINE, Modifier::UNDERLINED),
    ] {
        if style.font_style.contains(font) {
            result = result.add_modifier(modifier);
        }
    }
    result
}

/// In these themes no opacity means a colour of the terminal's palette by its number, and an opacity
/// of 1 the terminal's own text colour.
fn colour(colour: SyntaxColor, look: &Theme) -> Option<Color> {
    match colour.a {
        0 => look.syntax(colour.r),
        1 => None,
        _ => look.syntax_rgb((colour.r, colour.g, colour.b)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_gets_colours_of_the_terminals_palette_and_keeps_its_text() {
        let look = Theme::ansi();
        let line = "let answer: u32 = 42; // why";
        for mut code in
            [Highlighter::of_language("rust", &look), Highlighter::of_file("a/b.rs", &look)]
        {
            let pieces = code.line(line);
            let text: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
            assert_eq!(text, line);
            let colours: Vec<_> = pieces.iter().filter_map(|piece| piece.style.fg).collect();
            assert!(!colours.is_empty(), "{pieces:?}");
            let of_palette = |colour: &Color| matches!(colour, Color::Indexed(0..=15));
            assert!(colours.iter().all(of_palette), "{colours:?}");
        }
        let plain = Highlighter::of_language("rust", &Theme::plain()).line(line);
        assert_eq!(plain, [Piece::new(line, Style::new())], "NO_COLOR");
        let code = format!("{line}\n\n  x\n");
        for language in ["rust", "no such language"] {
            let spans = code_spans(language, &code);
            let whole: String = spans.iter().map(|(_, text)| text.as_str()).collect();
            assert_eq!(whole, code);
            assert_eq!(spans.iter().any(|(colour, _)| colour.is_some()), language == "rust");
        }
        let unknown = Highlighter::of_language("no such language", &look).line(line);
        assert_eq!(unknown.len(), 1);
    }
}
