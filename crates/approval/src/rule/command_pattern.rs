//! Patterns for commands, matched word by word.
//!
//! `*` alone at the end stands for any further words, none included; `*` alone elsewhere for one
//! word; inside a word it stands for any letters of that word, none included. In a denial in Claude Code's brackets,
//! `Bash(git * main)`, a `*` also stands for any text of the command, blanks included, as it does there
//! (<https://code.claude.com/docs/en/permissions>).

use crate::program_name::base_name;
use crate::rule::error::{FaultAt, RuleFault};
use crate::rule::pattern_word::PatternWord;
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

/// The name of a command's program, looked at once for many patterns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProgramName<'a> {
    text: &'a str,
    /// Without its directory.
    base: &'a str,
    /// Letters of it are not known.
    has_holes: bool,
}

impl<'a> ProgramName<'a> {
    pub(crate) fn of(word: &'a ArgWord) -> Self {
        let text = word.text();
        Self { text, base: base_name(text), has_holes: word.letters().is_none() }
    }

    pub(crate) fn has_holes(self) -> bool {
        self.has_holes
    }

    /// The name as it is written, and without its directory if it has one.
    pub(crate) fn spellings(self) -> impl Iterator<Item = &'a str> {
        let base = Some(self.base).filter(|base| base.len() < self.text.len());
        std::iter::once(self.text).chain(base)
    }

    /// Whether the first word of a denial fits this program.
    fn fits(self, first: &PatternWord) -> Fit {
        if self.spellings().any(|name| first.is(name)) {
            return Fit::Yes;
        }
        match self.has_holes && self.spellings().any(|name| first.could_be(name)) {
            true => Fit::Unknown,
            false => Fit::No,
        }
    }
}

impl CommandPattern {
    /// Reads a pattern.
    pub(crate) fn parse(text: &str) -> Result<Self, FaultAt> {
        let mut words = Vec::new();
        let mut word = PatternWord::empty();
        let mut begun = false;
        let mut letters = text.char_indices();
        while let Some((at, c)) = letters.next() {
            match c {
                ' ' => {
                    if begun {
                        words.push(std::mem::replace(&mut word, PatternWord::empty()));
                    }
                    begun = false;
                    continue;
                }
                '*' => word.push_star(),
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
        let mut whole = PatternWord::empty();
        let joined = text.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        let mut letters = joined.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '*' => whole.push_star(),
                '\\' => letters.next().into_iter().for_each(|escaped| whole.push(escaped)),
                other => whole.push(other),
            }
        }
        Ok(Self { text: Some(whole).filter(|whole| whole.literal().is_none()), ..parsed })
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
        let written = |at: &usize| self.words.get(*at).is_some_and(|word| word.literal().is_some());
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
        let program = ProgramName::of(program).fits(first);
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
    pub(crate) fn could_run(&self, program: ProgramName<'_>) -> bool {
        let spans = |first: &PatternWord| {
            self.text.is_some()
                && first.literal().is_none()
                && program.spellings().any(|name| first.could_begin(name))
        };
        let fits = |first: &PatternWord| program.fits(first) != Fit::No || spans(first);
        self.words.first().is_none_or(fits)
    }

    /// The last byte of the names of its programs, where all have the same.
    pub(crate) fn last_byte_of_program(&self) -> Option<u8> {
        // The text of a whole command may begin in the middle of the first word.
        self.words.first().filter(|_| self.text.is_none())?.last_byte()
    }

    /// The program's name, where the pattern has it letter by letter.
    pub(crate) fn program(&self) -> Option<&str> {
        self.words.first()?.literal()
    }
}
