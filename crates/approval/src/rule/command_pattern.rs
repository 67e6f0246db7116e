//! Patterns for commands, matched word by word.
//!
//! `*` alone at the end stands for any further words, none included; `*` alone elsewhere for one
//! word; inside a word it stands for any letters of that word, none included. In a denial in Claude Code's brackets,
//! `Bash(git * main)`, a `*` also stands for any text of the command, blanks included, as it does there
//! (<https://code.claude.com/docs/en/permissions>).

use crate::program_name::base_name;
use crate::rule::error::{FaultAt, RuleFault};
use crate::rule::spelling;
use crate::shell::script::{ArgWord, HOLE};
use crate::shell::subcommands::subcommand_places;

/// A pattern for one simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandPattern {
    words: Vec<PatternWord>,
    /// A command of fewer words is no such command, in any spelling.
    least: usize,
    end: PatternEnd,
    /// The whole text as one pattern, where it is in Claude Code's brackets.
    text: Option<PatternWord>,
}

/// Which words may follow the last word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PatternEnd {
    /// Nothing.
    Closed,
    /// Any words.
    Open,
}

/// The answer of a rule that denies or asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fit {
    No,
    /// The program may read the words like those of the rule.
    Spelling,
    /// Words that are not known may be those of the rule.
    Unknown,
    Yes,
}

/// One word of a pattern: its literal pieces, with a `*` between any two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PatternWord {
    pieces: Vec<String>,
}

impl CommandPattern {
    /// Reads a pattern.
    pub(crate) fn parse(text: &str) -> Result<Self, FaultAt> {
        let mut words = Vec::new();
        let mut word = PatternWord { pieces: vec![String::new()] };
        let mut begun = false;
        let mut letters = text.char_indices();
        while let Some((at, c)) = letters.next() {
            match c {
                ' ' => {
                    if begun {
                        words.push(std::mem::replace(
                            &mut word,
                            PatternWord { pieces: vec![String::new()] },
                        ));
                    }
                    begun = false;
                    continue;
                }
                '*' => word.pieces.push(String::new()),
                '\\' => match letters.next() {
                    Some((_, escaped @ ('*' | '\\'))) => word.push(escaped),
                    _ => return Err((at, RuleFault::Backslash)),
                },
                '\'' | '"' => return Err((at, RuleFault::Quote(c))),
                ';' | '&' | '|' | '<' | '>' | '(' | ')' | '`' => {
                    return Err((at, RuleFault::Operator(c)));
                }
                c => word.push(c),
            }
            begun = true;
        }
        if begun {
            words.push(word);
        }
        let end = match words.last() {
            Some(last) if last.is_star() => {
                words.pop();
                PatternEnd::Open
            }
            Some(_) | None => PatternEnd::Closed,
        };
        let operands = words.iter().filter(|word| !word.is_option()).count();
        let least = operands.max(words.len().min(2));
        Ok(Self { words, least, end, text: None })
    }

    /// Reads a pattern in Claude Code's brackets.
    pub(crate) fn parse_claude(text: &str) -> Result<Self, FaultAt> {
        let parsed = Self::parse(text)?;
        let mut whole = PatternWord { pieces: vec![String::new()] };
        let joined = text.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        let mut letters = joined.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '*' => whole.pieces.push(String::new()),
                '\\' => letters.next().into_iter().for_each(|escaped| whole.push(escaped)),
                other => whole.push(other),
            }
        }
        Ok(Self { text: Some(whole).filter(|whole| whole.pieces.len() > 1), ..parsed })
    }

    /// True if the pattern matches all words of the command, including the unknown ones.
    pub(crate) fn covers(&self, command: &[ArgWord]) -> bool {
        let said = self.words.iter().zip(command).all(|(pattern, word)| match word {
            ArgWord::Known(word) => {
                pattern.is(word) && (pattern.is_star() || !pattern.climbs(word))
            }
            ArgWord::One(_) => pattern.is_star(),
            ArgWord::Open(_) => false,
        });
        let enough = command.len() >= self.words.len();
        said && enough && (self.end == PatternEnd::Open || command.len() == self.words.len())
    }

    /// True if the pattern writes out the words at these positions, or matches every command
    /// anyway.
    pub(crate) fn writes_out(&self, places: &[usize]) -> bool {
        let written = |at: &usize| self.words.get(*at).is_some_and(|word| word.pieces.len() == 1);
        self.words.is_empty() || places.iter().all(written)
    }

    /// Whether a denial fits a command. Broader than [`Self::covers`]: the program may have a
    /// directory, and a pattern whose last word ends in `*` also matches further words (`rm -rf /*`
    /// and `rm -rf / --no-preserve-root`).
    pub(crate) fn fits(&self, command: &[ArgWord]) -> Fit {
        let few = command.len() < self.least && !command.iter().any(ArgWord::is_open);
        if few && self.text.is_none() {
            return Fit::No;
        }
        let mut fit = self.fits_words(command);
        for (nth, at) in subcommand_places(command).enumerate().filter(|(_, at)| *at > 1) {
            if fit < Fit::Yes {
                let less: Vec<_> = command[..1].iter().chain(&command[at..]).cloned().collect();
                let most = if nth == 0 { Fit::Yes } else { Fit::Spelling };
                fit = fit.max(self.fits_words(&less).min(most));
            }
        }
        fit
    }

    fn fits_words(&self, command: &[ArgWord]) -> Fit {
        let Some((first, rest)) = self.words.split_first() else { return Fit::Yes };
        let Some((program, arguments)) = command.split_first() else { return Fit::No };
        let text = self.fits_text(program, arguments);
        let hides_words = program.hides_words();
        let program = first.fits_program(program);
        if program == Fit::No || text == Fit::Yes {
            return text;
        }
        if hides_words {
            return text.max(Fit::Unknown);
        }
        let mut words = self.fits_arguments(rest, arguments);
        if words == Fit::No && spelling::may_mean(&self.words, command) {
            words = Fit::Spelling;
        }
        text.max(words.min(program))
    }

    fn fits_arguments(&self, rest: &[PatternWord], arguments: &[ArgWord]) -> Fit {
        let open =
            self.end == PatternEnd::Open || self.words.last().is_some_and(PatternWord::ends_open);
        let mut fit = Fit::Yes;
        for (at, pattern) in rest.iter().enumerate() {
            let Some(word) = arguments.get(at) else {
                let more = |word: &ArgWord| word.is_open() && pattern.could_be(word.text());
                return if arguments.iter().any(more) { Fit::Unknown } else { Fit::No };
            };
            if !pattern.could_be(word.text()) {
                // It may also be no word at all.
                let none = word.is_open() && word.text().chars().all(|c| c == HOLE);
                return if none { Fit::Unknown } else { Fit::No };
            }
            if word.hides_words() {
                let last = at + 1 == rest.len() && open && pattern.is(word.text());
                let certain = last && word.text() != HOLE.to_string();
                return if certain { fit } else { Fit::Unknown };
            }
            if !pattern.is(word.text()) || (word.is_open() && at + 1 < rest.len()) {
                fit = Fit::Unknown;
            }
        }
        let more = arguments.get(rest.len()..).unwrap_or_default();
        match more.iter().all(ArgWord::is_open) {
            _ if open => fit,
            true if more.is_empty() && !arguments.iter().any(ArgWord::is_open) => fit,
            true => Fit::Unknown,
            false => Fit::No,
        }
    }

    /// Whether the text of the whole command fits a pattern in Claude Code's brackets.
    fn fits_text(&self, program: &ArgWord, arguments: &[ArgWord]) -> Fit {
        let Some(text) = &self.text else { return Fit::No };
        let with = |program: &str| {
            let words = arguments.iter().map(ArgWord::text);
            std::iter::once(program).chain(words).collect::<Vec<_>>().join(" ")
        };
        let spellings = [with(program.text()), with(base_name(program.text()))];
        let open = arguments.iter().chain([program]).any(ArgWord::is_open);
        let fit = |whole: &String| match text.could_be(whole) {
            false => Fit::No,
            true if text.is(whole) && !open => Fit::Yes,
            true => Fit::Unknown,
        };
        spellings.iter().map(fit).max().unwrap_or(Fit::No)
    }

    /// True if a denial could fit some command of this program.
    pub(crate) fn could_run(&self, program: &ArgWord) -> bool {
        let spans = |first: &PatternWord| {
            let begins = |name: &str| {
                let piece = first.pieces.first().map_or("", String::as_str);
                name.contains(HOLE) || name.starts_with(piece)
            };
            let text = program.text();
            self.text.is_some()
                && first.pieces.len() > 1
                && (begins(text) || begins(base_name(text)))
        };
        let fits = |first: &PatternWord| first.fits_program(program) != Fit::No || spans(first);
        self.words.first().is_none_or(fits)
    }

    /// The program's name, where the pattern has it letter by letter.
    pub(crate) fn program(&self) -> Option<&str> {
        match &self.words.first()?.pieces[..] {
            [whole] => Some(whole),
            _ => None,
        }
    }
}

impl PatternWord {
    fn push(&mut self, c: char) {
        if let Some(last) = self.pieces.last_mut() {
            last.push(c);
        }
    }

    fn is_star(&self) -> bool {
        self.pieces.len() == 2 && self.pieces.iter().all(String::is_empty)
    }

    fn ends_open(&self) -> bool {
        self.pieces.len() > 1 && self.pieces.last().is_some_and(String::is_empty)
    }

    /// True if the pattern matches the word. The first and the last piece are anchored to the
    /// word's ends; each other piece matches as early as possible, which is enough for `*`.
    fn is(&self, word: &str) -> bool {
        let [first, middle @ .., last] = &self.pieces[..] else {
            return self.pieces.first().is_some_and(|whole| whole == word);
        };
        // Most words differ in their last letter.
        if !last.is_empty() && word.as_bytes().last() != last.as_bytes().last() {
            return false;
        }
        let Some(mut rest) = word.strip_prefix(first.as_str()) else { return false };
        for piece in middle {
            let Some(at) = rest.find(piece.as_str()) else { return false };
            rest = &rest[at + piece.len()..];
        }
        rest.ends_with(last.as_str())
    }

    /// True if a `*` between other letters matched a `..`, which leaves the directory that the
    /// pattern names: `./scripts/*.sh` must not match `./scripts/../x.sh`.
    fn climbs(&self, word: &str) -> bool {
        let ups = |text: &str| text.split('/').filter(|part| *part == "..").count();
        let said: usize = self.pieces.iter().map(|piece| ups(piece)).sum();
        self.pieces.len() > 1 && ups(word) > said
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

    fn fits_program(&self, program: &ArgWord) -> Fit {
        let text = program.text();
        let name = base_name(text);
        if self.is(text) || (name.len() < text.len() && self.is(name)) {
            return Fit::Yes;
        }
        if program.letters().is_some() {
            return Fit::No;
        }
        match self.could_be(text) || self.could_be(name) {
            true => Fit::Unknown,
            false => Fit::No,
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
