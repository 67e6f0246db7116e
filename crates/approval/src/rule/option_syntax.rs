//! Programs that accept their options in any order and spelling: `rm -rf /`, `rm -fr /`, `rm --r -f
//! -- /`. Used to deny and to ask. The table comes first: the spellings that each program treats
//! alike.

use crate::program_name::base_name;

/// A program, or one of its subcommands.
struct OptionSyntax {
    words: &'static [&'static str],
    /// Each long option, with its short form if it has one. The list must be complete: a prefix is
    /// accepted as an option if it matches only one.
    long: &'static [(&'static str, Option<char>)],
    /// Short options that mean others: `-D` is `-d -f`.
    means: &'static [(char, &'static str)],
    /// Short options that take a value.
    values: &'static str,
    /// A sign before an operand that means an option: `+main` is `-f main`.
    signs: &'static [(char, char)],
    /// Operands that mean another.
    names: &'static [(&'static str, &'static str)],
    operands: Operands,
}

/// Whether the order of the operands matters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operands {
    /// Nothing: each is treated alike.
    Alike,
    InOrder,
}

const PLAIN: OptionSyntax = OptionSyntax {
    words: &[],
    long: &[],
    means: &[],
    values: "",
    signs: &[],
    names: &[],
    operands: Operands::InOrder,
};

const OWNER: &[(&str, Option<char>)] = &[
    ("--recursive", Some('R')),
    ("--verbose", Some('v')),
    ("--changes", Some('c')),
    ("--silent", Some('f')),
    ("--quiet", Some('f')),
    ("--no-dereference", Some('h')),
    ("--dereference", None),
    ("--from", None),
    ("--no-preserve-root", None),
    ("--preserve-root", None),
    ("--reference", None),
];

/// Spellings of modes for all users, with the octal form that rules use.
const MODES: &[(&str, &str)] = &[
    ("0777", "777"),
    ("00777", "777"),
    ("a=rwx", "777"),
    ("a+rwx", "777"),
    ("ugo=rwx", "777"),
    ("ugo+rwx", "777"),
    ("0666", "666"),
    ("00666", "666"),
    ("a=rw", "666"),
    ("ugo=rw", "666"),
    ("0000", "000"),
    ("0", "000"),
];

const ROWS: &[OptionSyntax] = &[
    OptionSyntax {
        words: &["rm"],
        long: &[
            ("--recursive", Some('r')),
            ("--force", Some('f')),
            ("--verbose", Some('v')),
            ("--version", None),
            ("--dir", Some('d')),
            ("--interactive", Some('i')),
            ("--no-preserve-root", None),
            ("--preserve-root", None),
            ("--one-file-system", None),
        ],
        means: &[('R', "r")],
        operands: Operands::Alike,
        ..PLAIN
    },
    OptionSyntax {
        words: &["rmdir"],
        long: &[
            ("--parents", Some('p')),
            ("--verbose", Some('v')),
            ("--ignore-fail-on-non-empty", None),
        ],
        operands: Operands::Alike,
        ..PLAIN
    },
    OptionSyntax { words: &["chmod"], long: OWNER, names: MODES, ..PLAIN },
    OptionSyntax { words: &["chown"], long: OWNER, ..PLAIN },
    OptionSyntax { words: &["chgrp"], long: OWNER, ..PLAIN },
    OptionSyntax {
        words: &["cp"],
        long: &[
            ("--recursive", Some('r')),
            ("--force", Some('f')),
            ("--verbose", Some('v')),
            ("--archive", Some('a')),
            ("--reflink", None),
            ("--remove-destination", None),
            ("--update", Some('u')),
        ],
        means: &[('R', "r")],
        ..PLAIN
    },
    OptionSyntax {
        words: &["mv"],
        long: &[
            ("--force", Some('f')),
            ("--verbose", Some('v')),
            ("--no-clobber", Some('n')),
            ("--no-target-directory", Some('T')),
            ("--update", Some('u')),
        ],
        ..PLAIN
    },
    OptionSyntax {
        words: &["git", "push"],
        long: &[
            ("--force", Some('f')),
            ("--force-with-lease", None),
            ("--force-if-includes", None),
            ("--follow-tags", None),
            ("--delete", Some('d')),
            ("--set-upstream", Some('u')),
            ("--dry-run", Some('n')),
            ("--all", None),
            ("--mirror", None),
            ("--tags", None),
            ("--prune", None),
            ("--no-verify", None),
            ("--push-option", Some('o')),
        ],
        values: "o",
        signs: &[('+', 'f'), (':', 'd')],
        ..PLAIN
    },
    OptionSyntax {
        words: &["git", "clean"],
        long: &[
            ("--force", Some('f')),
            ("--dry-run", Some('n')),
            ("--quiet", Some('q')),
            ("--interactive", Some('i')),
            ("--exclude", Some('e')),
        ],
        values: "e",
        ..PLAIN
    },
    OptionSyntax {
        words: &["git", "reset"],
        long: &[
            ("--hard", None),
            ("--soft", None),
            ("--mixed", None),
            ("--merge", None),
            ("--keep", None),
            ("--quiet", Some('q')),
            ("--patch", Some('p')),
        ],
        ..PLAIN
    },
    OptionSyntax {
        words: &["git", "branch"],
        long: &[
            ("--delete", Some('d')),
            ("--force", Some('f')),
            ("--format", None),
            ("--move", Some('m')),
            ("--merged", None),
            ("--copy", Some('c')),
            ("--contains", None),
            ("--color", None),
            ("--column", None),
            ("--create-reflog", None),
        ],
        means: &[('D', "df"), ('M', "mf"), ('C', "cf")],
        ..PLAIN
    },
    OptionSyntax {
        words: &["git", "tag"],
        long: &[("--delete", Some('d')), ("--force", Some('f')), ("--format", None)],
        values: "mF",
        ..PLAIN
    },
    OptionSyntax {
        words: &["git", "commit"],
        long: &[
            ("--amend", None),
            ("--all", Some('a')),
            ("--allow-empty", None),
            ("--author", None),
            ("--message", Some('m')),
            ("--no-verify", Some('n')),
            ("--no-edit", None),
            ("--no-gpg-sign", None),
            ("--no-signoff", None),
            ("--file", Some('F')),
        ],
        values: "mFCc",
        ..PLAIN
    },
    OptionSyntax {
        words: &["git", "rebase"],
        long: &[("--interactive", Some('i')), ("--force-rebase", Some('f')), ("--exec", Some('x'))],
        values: "x",
        ..PLAIN
    },
];

/// Words sorted into options and the rest.
#[derive(Debug, Default)]
pub(crate) struct SortedWords {
    /// Each with all its spellings.
    options: Vec<Vec<String>>,
    /// Values of options that are separate words.
    values: Vec<String>,
    operands: Vec<String>,
}

/// A pattern of words for one of these programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KnownProgram(usize);

impl KnownProgram {
    /// The program of the table that these words begin with.
    pub(crate) fn of(words: &[&str]) -> Option<Self> {
        let begins = |row: &OptionSyntax| {
            words.len() > row.words.len()
                && row.words.iter().zip(words).all(|(name, word)| name == word)
        };
        ROWS.iter().position(begins).map(Self)
    }

    /// True for a whole program, false for a subcommand.
    pub(crate) fn is_whole_program(&self) -> bool {
        ROWS[self.0].words.len() == 1
    }

    /// The words behind the program; nothing for those of another.
    pub(crate) fn sort(&self, words: &[&str]) -> Option<SortedWords> {
        let row = &ROWS[self.0];
        let (program, rest) = words.split_first()?;
        let (name, subcommand) = row.words.split_first()?;
        if base_name(program) != *name || !rest.starts_with(subcommand) {
            return None;
        }
        let mut sorted = SortedWords::default();
        let mut rest = rest[subcommand.len()..].iter();
        while let Some(word) = rest.next() {
            let takes_next = match word.strip_prefix('-') {
                Some("-") => break,
                Some(long) if long.starts_with('-') => row.long(word, &mut sorted.options),
                Some(letters) if !letters.is_empty() => row.short(letters, &mut sorted.options),
                Some(_) | None => {
                    row.operand(word, &mut sorted);
                    false
                }
            };
            if takes_next {
                sorted.values.extend(rest.next().map(|value| (*value).to_owned()));
            }
        }
        rest.for_each(|word| row.operand(word, &mut sorted));
        Some(sorted)
    }

    /// True if the command does the same as the pattern, or more if `may_do_more`. `fits` compares
    /// a word of the pattern with a word of the command.
    pub(crate) fn catches(
        &self,
        (pattern, command): (&SortedWords, &SortedWords),
        may_do_more: bool,
        fits: impl Fn(&str, &str) -> bool,
    ) -> bool {
        let same = |said: &[String], option: &[String]| {
            said.iter().any(|said| option.iter().any(|spelling| fits(said, spelling)))
        };
        let has = |said: &Vec<String>| command.options.iter().any(|option| same(said, option));
        let said = |option: &Vec<String>| pattern.options.iter().any(|said| same(said, option));
        let enough = match may_do_more {
            true => command.operands.len() >= pattern.operands.len(),
            false => {
                command.operands.len() == pattern.operands.len() && command.options.iter().all(said)
            }
        };
        enough
            && pattern.options.iter().all(has)
            && pattern.values.iter().all(|said| command.values.iter().any(|word| fits(said, word)))
            && match ROWS[self.0].operands {
                Operands::InOrder => pattern
                    .operands
                    .iter()
                    .zip(&command.operands)
                    .all(|(said, word)| fits(said, word)),
                Operands::Alike => {
                    let met = |said: &String| command.operands.iter().any(|word| fits(said, word));
                    pattern.operands.iter().all(met)
                }
            }
    }
}

impl OptionSyntax {
    /// Adds a long option or a prefix of one. Returns true if its value is the next word.
    fn long(&self, word: &str, options: &mut Vec<Vec<String>>) -> bool {
        let (name, value) =
            word.split_once('=').map_or((word, None), |(n, value)| (n, Some(value)));
        let exact = self.long.iter().filter(|(long, _)| *long == name);
        let mut known: Vec<_> = exact.collect();
        if known.is_empty() {
            // The program refuses an ambiguous prefix, so any of these options may be meant.
            known = self.long.iter().filter(|(long, _)| long.starts_with(name)).collect();
        }
        let mut takes_next = false;
        for (long, letter) in &known {
            match letter {
                Some(letter) => self.letter(*letter, options),
                None => options.push(vec![(*long).to_owned()]),
            }
            let takes = letter.is_some_and(|letter| self.values.contains(letter));
            takes_next |= takes && value.is_none();
        }
        if known.is_empty() {
            options.push(vec![word.to_owned()]);
        }
        takes_next
    }

    /// Adds short options in one word. Returns true if the value of the last is the next word.
    fn short(&self, letters: &str, options: &mut Vec<Vec<String>>) -> bool {
        // `-r*` in a pattern: an option that begins so.
        if letters.contains('*') {
            options.push(vec![format!("-{letters}")]);
            return false;
        }
        for (at, letter) in letters.char_indices() {
            self.letter(letter, options);
            if self.values.contains(letter) {
                return at + letter.len_utf8() == letters.len();
            }
        }
        false
    }

    fn letter(&self, letter: char, options: &mut Vec<Vec<String>>) {
        let meant = self.means.iter().find(|(other, _)| *other == letter);
        let own = letter.to_string();
        for letter in meant.map_or(own.as_str(), |(_, meant)| meant).chars() {
            let long = self.long.iter().filter(|(_, short)| *short == Some(letter));
            let spellings = long.map(|(long, _)| (*long).to_owned());
            options.push(std::iter::once(format!("-{letter}")).chain(spellings).collect());
        }
    }

    fn operand(&self, word: &str, sorted: &mut SortedWords) {
        let sign = self.signs.iter().find(|(sign, _)| word.starts_with(*sign) && word.len() > 1);
        if let Some((_, letter)) = sign {
            self.letter(*letter, &mut sorted.options);
        }
        let word = if sign.is_some() { &word[1..] } else { word };
        let same = self.names.iter().find(|(other, _)| *other == word);
        sorted.operands.push(same.map_or(word, |(_, name)| name).to_owned());
    }
}
