//! Patterns for commands, matched word by word.
//!
//! `*` alone at the end stands for any further words, none included; `*` alone elsewhere for one
//! word; inside a word it stands for any letters of that word, none included. In a denial in Claude Code's brackets,
//! `Bash(git * main)`, a `*` also stands for any text of the command, blanks included, as it does there
//! (<https://code.claude.com/docs/en/permissions>).

use crate::program_name::{base_name, glob_could_be};
use crate::rule::error::{FaultAt, RuleFault};
use crate::rule::option_syntax::KnownProgram;
use crate::strict::script::ArgWord as Known;

/// A pattern for one simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandPattern {
    words: Vec<PatternWord>,
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

/// One word of a pattern: its literal pieces, with a `*` between any two.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PatternWord {
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
        Ok(Self { words, end, text: None })
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
    pub(crate) fn covers(&self, command: &[Known]) -> bool {
        let said = self.words.iter().zip(command).all(|(pattern, word)| match word {
            Known::Known(word) => pattern.is(word) && (pattern.is_star() || !pattern.climbs(word)),
            Known::One(_) => pattern.is_star(),
            Known::Open(_) => false,
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

    /// True if a denial matches a command of these words. Broader than [`Self::covers`]: the
    /// program may have a directory, its name may be a shell glob, and a pattern whose last word
    /// ends in `*` also matches further words (`rm -rf /*` and `rm -rf / --no-preserve-root`).
    pub(crate) fn catches(&self, command: &[String]) -> bool {
        let Some((first, _)) = self.words.split_first() else { return true };
        let Some((program, arguments)) = command.split_first() else { return false };
        if let Some(text) = &self.text {
            let with = |program: &str| [&[program.to_owned()], arguments].concat().join(" ");
            if text.is(&with(program)) || text.is(&with(base_name(program))) {
                return true;
            }
        }
        let open =
            self.end == PatternEnd::Open || self.words.last().is_some_and(PatternWord::ends_open);
        let long_enough = if open {
            command.len() >= self.words.len()
        } else {
            command.len() == self.words.len()
        };
        let as_written = long_enough
            && first.could_be_program(program, base_name(program))
            && self.words[1..].iter().zip(arguments).all(|(pattern, word)| pattern.is(word));
        as_written || self.catches_reordered(command, open)
    }

    /// True if these words could begin a command that the pattern catches.
    pub(crate) fn begins(&self, command: &[String]) -> bool {
        let arguments = command.get(1..).unwrap_or_default();
        let rest = self.words.get(1..).unwrap_or_default();
        // These programs accept their words in any order, and a `*` over blanks any words.
        self.is_known_program()
            || self.text.is_some()
            || rest.iter().zip(arguments).all(|(pattern, word)| pattern.is(word))
    }

    fn is_known_program(&self) -> bool {
        let written: Vec<String> = self.words.iter().map(|word| word.pieces.join("*")).collect();
        let written: Vec<&str> = written.iter().map(String::as_str).collect();
        KnownProgram::of(&written).is_some_and(|alike| alike.is_whole_program())
    }

    /// True if the program would treat the command like the pattern: its options have another order
    /// or spelling.
    fn catches_reordered(&self, command: &[String], open: bool) -> bool {
        if command.len() < 2 || self.words.len() < 2 {
            return false;
        }
        let written: Vec<String> = self.words.iter().map(|word| word.pieces.join("*")).collect();
        let written: Vec<&str> = written.iter().map(String::as_str).collect();
        let Some(alike) = KnownProgram::of(&written) else { return false };
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let (Some(pattern), Some(command)) = (alike.sort(&written), alike.sort(&words)) else {
            return false;
        };
        let fits = |said: &str, word: &str| {
            PatternWord { pieces: said.split('*').map(str::to_owned).collect() }.is(word)
        };
        alike.catches((&pattern, &command), open, fits)
    }

    /// True if a denial could catch some command of this program; `base` is its name without a
    /// directory.
    pub(crate) fn could_run(&self, program: &str, base: &str) -> bool {
        let spans = |first: &PatternWord| {
            let begins =
                |name: &str| first.pieces.first().is_some_and(|it| name.starts_with(it.as_str()));
            self.text.is_some() && first.pieces.len() > 1 && (begins(program) || begins(base))
        };
        self.words.first().is_none_or(|first| first.could_be_program(program, base) || spans(first))
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

    fn could_be_program(&self, program: &str, name: &str) -> bool {
        self.is(program)
            || (name.len() < program.len() && self.is(name))
            || matches!(&self.pieces[..], [whole] if glob_could_be(name, whole))
    }
}
