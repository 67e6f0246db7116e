//! Programs that read their options in any order and spelling: `rm -rf /`, `rm -fr /`, `rm -r -f -- /`.
//! For denials and questions.

use crate::words::base_name;

/// A program, or one subcommand of it.
struct Row {
    words: &'static [&'static str],
    /// The letter of each long option.
    long: &'static [(&'static str, char)],
    /// Another letter of the same meaning.
    same: &'static [(char, char)],
    operands: Operands,
}

/// What the order of the other words means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operands {
    /// Nothing: each is treated alike.
    Alike,
    InOrder,
}

const RECURSIVE: (&str, char) = ("--recursive", 'r');
const FORCE: (&str, char) = ("--force", 'f');
const VERBOSE: (&str, char) = ("--verbose", 'v');

const ROWS: &[Row] = &[
    Row {
        words: &["rm"],
        long: &[RECURSIVE, FORCE, VERBOSE, ("--dir", 'd'), ("--interactive", 'i')],
        same: &[('R', 'r')],
        operands: Operands::Alike,
    },
    Row {
        words: &["rmdir"],
        long: &[("--parents", 'p'), VERBOSE],
        same: &[],
        operands: Operands::Alike,
    },
    Row {
        words: &["chmod"],
        long: &[("--recursive", 'R'), VERBOSE, ("--silent", 'f'), ("--quiet", 'f')],
        same: &[],
        operands: Operands::InOrder,
    },
    Row {
        words: &["chown"],
        long: &[("--recursive", 'R'), VERBOSE, ("--no-dereference", 'h')],
        same: &[],
        operands: Operands::InOrder,
    },
    Row {
        words: &["chgrp"],
        long: &[("--recursive", 'R'), VERBOSE, ("--no-dereference", 'h')],
        same: &[],
        operands: Operands::InOrder,
    },
    Row {
        words: &["cp"],
        long: &[RECURSIVE, FORCE, VERBOSE, ("--archive", 'a')],
        same: &[('R', 'r')],
        operands: Operands::InOrder,
    },
    Row {
        words: &["mv"],
        long: &[FORCE, VERBOSE, ("--no-clobber", 'n')],
        same: &[],
        operands: Operands::InOrder,
    },
    Row {
        words: &["git", "push"],
        long: &[FORCE, ("--delete", 'd'), ("--set-upstream", 'u'), ("--dry-run", 'n')],
        same: &[],
        operands: Operands::InOrder,
    },
    Row {
        words: &["git", "clean"],
        long: &[FORCE, ("--dry-run", 'n'), ("--quiet", 'q')],
        same: &[],
        operands: Operands::InOrder,
    },
    Row {
        words: &["git", "reset"],
        long: &[("--quiet", 'q')],
        same: &[],
        operands: Operands::InOrder,
    },
    Row {
        words: &["git", "branch"],
        long: &[("--delete", 'd'), FORCE, ("--move", 'm')],
        same: &[],
        operands: Operands::InOrder,
    },
];

/// Words sorted into options and the rest.
#[derive(Debug, Default)]
pub(crate) struct Sorted<'a> {
    options: Vec<String>,
    operands: Vec<&'a str>,
}

/// A pattern of words for one of these programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Alike(usize);

impl Alike {
    /// The program of the table that these words begin with.
    pub(crate) fn of(words: &[&str]) -> Option<Self> {
        let begins = |row: &Row| {
            words.len() > row.words.len()
                && row.words.iter().zip(words).all(|(name, word)| name == word)
        };
        ROWS.iter().position(begins).map(Self)
    }

    /// Whether it is about the program, not about one of its subcommands.
    pub(crate) fn is_whole_program(&self) -> bool {
        ROWS[self.0].words.len() == 1
    }

    /// The words behind the program; nothing for those of another.
    pub(crate) fn sort<'a>(&self, words: &[&'a str]) -> Option<Sorted<'a>> {
        let row = &ROWS[self.0];
        let (program, rest) = words.split_first()?;
        let (name, subcommand) = row.words.split_first()?;
        if base_name(program) != *name || !rest.starts_with(subcommand) {
            return None;
        }
        let mut sorted = Sorted::default();
        let mut rest = rest[subcommand.len()..].iter();
        for word in rest.by_ref() {
            match word.strip_prefix('-') {
                Some("-") => break,
                Some(long) if long.starts_with('-') => sorted.options.push(row.long(word)),
                Some(letters) if !letters.is_empty() => {
                    sorted.options.extend(letters.chars().map(|letter| row.letter(letter)));
                }
                Some(_) | None => sorted.operands.push(word),
            }
        }
        sorted.operands.extend(rest);
        Some(sorted)
    }

    /// Whether a command does what the pattern says, and perhaps more where it may. `fits` compares a
    /// word of the pattern with one of the command.
    pub(crate) fn catches(
        &self,
        (pattern, command): (&Sorted<'_>, &Sorted<'_>),
        may_do_more: bool,
        fits: impl Fn(&str, &str) -> bool,
    ) -> bool {
        let has = |option: &String| command.options.contains(option);
        let enough = match may_do_more {
            true => command.operands.len() >= pattern.operands.len(),
            false => {
                command.operands.len() == pattern.operands.len()
                    && command.options.iter().all(|option| pattern.options.contains(option))
            }
        };
        enough
            && pattern.options.iter().all(has)
            && match ROWS[self.0].operands {
                Operands::InOrder => pattern
                    .operands
                    .iter()
                    .zip(&command.operands)
                    .all(|(said, word)| fits(said, word)),
                Operands::Alike => {
                    let met = |said: &&str| command.operands.iter().any(|word| fits(said, word));
                    pattern.operands.iter().all(met)
                }
            }
    }
}

impl Row {
    /// A long option as its letter; GNU's programs take any beginning of it that is long enough.
    fn long(&self, word: &str) -> String {
        let known = self
            .long
            .iter()
            .find(|(long, _)| *long == word || (word.len() > 4 && long.starts_with(word)));
        known.map_or_else(|| word.to_owned(), |(_, letter)| letter.to_string())
    }

    fn letter(&self, letter: char) -> String {
        let same = self.same.iter().find(|(other, _)| *other == letter);
        same.map_or(letter, |(_, letter)| *letter).to_string()
    }
}
