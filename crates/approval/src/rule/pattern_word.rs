//! One word of a command's pattern. For `command_pattern` and `spelling`.

use crate::shell::script::HOLE;

/// One word of a pattern: its literal pieces, with a `*` between any two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PatternWord {
    pieces: Vec<String>,
}

impl PatternWord {
    /// A word without letters.
    pub(crate) fn empty() -> Self {
        Self { pieces: vec![String::new()] }
    }

    pub(crate) fn push(&mut self, c: char) {
        if let Some(last) = self.pieces.last_mut() {
            last.push(c);
        }
    }

    pub(crate) fn push_star(&mut self) {
        self.pieces.push(String::new());
    }

    /// True for `*` alone.
    pub(crate) fn is_star(&self) -> bool {
        self.pieces.len() == 2 && self.pieces.iter().all(String::is_empty)
    }

    /// The word, if it has no `*`.
    pub(crate) fn literal(&self) -> Option<&str> {
        match &self.pieces[..] {
            [whole] => Some(whole),
            _ => None,
        }
    }

    /// True if the word ends in `*`.
    pub(crate) fn ends_open(&self) -> bool {
        self.pieces.len() > 1 && self.pieces.last().is_some_and(String::is_empty)
    }

    /// True if the pattern matches the word. The first and the last piece are anchored to the
    /// word's ends; each other piece matches as early as possible, which is enough for `*`.
    pub(crate) fn is(&self, word: &str) -> bool {
        let [first, middle @ .., last] = &self.pieces[..] else {
            return self.pieces.first().is_some_and(|whole| whole == word);
        };
        let Some(mut rest) = word.strip_prefix(first.as_str()) else { return false };
        for piece in middle {
            let Some(at) = rest.find(piece.as_str()) else { return false };
            rest = &rest[at + piece.len()..];
        }
        rest.ends_with(last.as_str())
    }

    /// The last byte of each word that it matches, unless it ends in `*`.
    pub(crate) fn last_byte(&self) -> Option<u8> {
        self.pieces.last()?.bytes().last()
    }

    /// True if a `*` between other letters matched a `..`, which leaves the directory that the
    /// pattern names: `./scripts/*.sh` must not match `./scripts/../x.sh`.
    pub(crate) fn climbs(&self, word: &str) -> bool {
        let ups = |text: &str| text.split('/').filter(|part| *part == "..").count();
        let said: usize = self.pieces.iter().map(|piece| ups(piece)).sum();
        self.pieces.len() > 1 && ups(word) > said
    }

    /// True if these letters may begin with the letters before the first `*`.
    pub(crate) fn could_begin(&self, seen: &str) -> bool {
        let piece = self.pieces.first().map_or("", String::as_str);
        seen.contains(HOLE) || seen.starts_with(piece)
    }

    /// True if the pattern matches some text that these letters may become.
    pub(crate) fn could_be(&self, seen: &str) -> bool {
        let (Some(begin), Some(end)) = (seen.find(HOLE), seen.rfind(HOLE)) else {
            return self.is(seen);
        };
        let (begin, end) = (&seen[..begin], &seen[end + HOLE.len_utf8()..]);
        let first = self.pieces.first().map_or("", String::as_str);
        let last = self.pieces.last().map_or("", String::as_str);
        let meets = |one: &str, other: &str| one.starts_with(other) || other.starts_with(one);
        let ends = |one: &str, other: &str| one.ends_with(other) || other.ends_with(one);
        match self.pieces.len() {
            1 => {
                first.len() >= begin.len() + end.len()
                    && first.starts_with(begin)
                    && first.ends_with(end)
            }
            _ => meets(first, begin) && ends(last, end),
        }
    }

    pub(crate) fn is_option(&self) -> bool {
        self.pieces.first().is_some_and(|first| first.starts_with('-'))
    }

    /// The letters, with `*` between the pieces.
    pub(crate) fn written(&self) -> String {
        self.pieces.join("*")
    }
}
