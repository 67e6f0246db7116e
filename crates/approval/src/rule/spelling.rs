//! The same words in another order or spelling: `rm -fr /` for `rm -rf /`. A rule that denies or asks
//! may mean them, so the user is asked.

use crate::program_name::base_name;
use crate::rule::pattern_word::PatternWord;
use crate::shell::script::{ArgWord, HOLE};
use crate::shell::subcommands::has_subcommands;

/// Programs that treat each operand alike.
const ALIKE: &[&str] = &["rm", "rmdir"];

/// Short options that mean others, by the words that they follow.
const MEANS: &[(&[&str], char, &str)] = &[
    (&["rm"], 'R', "r"),
    (&["git", "branch"], 'D', "df"),
    (&["git", "branch"], 'M', "mf"),
    (&["git", "branch"], 'C', "cf"),
];

/// Signs before an operand that mean an option.
const SIGNS: &[(&[&str], char, char)] =
    &[(&["git", "push"], '+', 'f'), (&["git", "push"], ':', 'd')];

/// Spellings of modes for all users, with the octal form that rules use.
const MODES: &[(&str, &str)] = &[
    ("a=rwx", "777"),
    ("a+rwx", "777"),
    ("ugo=rwx", "777"),
    ("ugo+rwx", "777"),
    ("a=rw", "666"),
    ("ugo=rw", "666"),
    ("", "000"),
];

/// Whether the order of the operands matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OperandOrder {
    Any,
    Kept,
}

/// Most words that may each be the missing option.
const GUESSES: usize = 8;

/// True if the program may read these words as those of the pattern.
pub(crate) fn may_mean(pattern: &[PatternWord], command: &[ArgWord]) -> bool {
    let (Some((first, said)), Some((program, words))) =
        (pattern.split_first(), command.split_first())
    else {
        return false;
    };
    if said.is_empty() {
        return false;
    }
    let name = base_name(program.text());
    let begin: Vec<&str> = std::iter::once(name).chain(words.first().map(ArgWord::text)).collect();
    let is_option = |text: &str| text.len() > 1 && text.starts_with('-');
    let (options, operands): (Vec<_>, Vec<_>) =
        said.iter().partition(|word| is_option(&word.written()));
    // Behind `--` each word is an operand.
    let dashes = words.iter().position(|word| word.known() == Some("--")).unwrap_or(words.len());
    let (before, behind) = words.split_at(dashes);
    let given: Vec<&str> =
        before.iter().map(ArgWord::text).filter(|word| is_option(word)).collect();
    let rest: Vec<&ArgWord> =
        before.iter().filter(|word| !is_option(word.text())).chain(behind.iter().skip(1)).collect();
    let signed: Vec<char> = SIGNS
        .iter()
        .filter(|(of, sign, _)| of == &begin && rest.iter().any(|it| it.text().starts_with(*sign)))
        .map(|(_, _, letter)| *letter)
        .collect();
    let missing = |option: &&&PatternWord| !has_option(&option.written(), &given, &signed, &begin);
    let is_missing = options.iter().any(|option| missing(&option));
    // The first operand names the command of such a program.
    if has_subcommands(first.written().as_str())
        && let (Some(said), Some(word)) = (operands.first(), rest.first())
        && !said.could_be(word.text())
    {
        return false;
    }
    if words.iter().any(ArgWord::hides_words) {
        return true;
    }
    let guess = |word: &&&ArgWord| {
        let text = word.text();
        text.starts_with(HOLE) && !text.contains('/')
    };
    let alike = if ALIKE.contains(&name) { OperandOrder::Any } else { OperandOrder::Kept };
    match is_missing {
        false => all_met(&operands, &rest, alike),
        true if given.iter().any(|option| option.contains(HOLE)) => {
            all_met(&operands, &rest, alike)
        }
        true => {
            let guesses: Vec<&ArgWord> = rest.iter().filter(guess).copied().collect();
            let without = |guess: &&ArgWord| {
                let others = rest.iter().filter(|it| !std::ptr::eq(**it, *guess)).copied();
                all_met(&operands, &others.collect::<Vec<_>>(), alike)
            };
            guesses.len() > GUESSES || guesses.iter().any(without)
        }
    }
}

/// True if each operand of the pattern is among the words: in their order, if that matters.
fn all_met(operands: &[&PatternWord], words: &[&ArgWord], order: OperandOrder) -> bool {
    let meets = |said: &PatternWord, word: &ArgWord| {
        let text = word.text();
        let mode = text.trim_start_matches('0');
        let mode = MODES.iter().find(|(other, _)| *other == mode).map_or(mode, |(_, mode)| mode);
        said.could_be(text)
            || (mode != text && said.could_be(mode))
            || (text.starts_with(['+', ':']) && said.could_be(&text[1..]))
    };
    if order == OperandOrder::Any {
        return operands.iter().all(|said| words.iter().any(|word| meets(said, word)));
    }
    let mut rest = words.iter();
    operands.iter().all(|said| rest.any(|word| meets(said, word)))
}

/// True if the options of a command hold this option of a pattern, in some spelling.
fn has_option(said: &str, given: &[&str], signed: &[char], begin: &[&str]) -> bool {
    let begins_with = |letter: char, option: &str| {
        option[2..].chars().next().is_some_and(|first| first.eq_ignore_ascii_case(&letter))
    };
    let prefix = said.trim_end_matches('*');
    if given.contains(&said) || (prefix != said && given.iter().any(|it| it.starts_with(prefix))) {
        return true;
    }
    if let Some(name) = prefix.strip_prefix("--") {
        let Some(letter) = name.chars().next() else { return true };
        return signed.contains(&letter)
            || given.iter().any(|option| match option.strip_prefix("--") {
                Some(long) => {
                    let long = long.split('=').next().unwrap_or_default();
                    let name = name.split('=').next().unwrap_or_default();
                    !long.is_empty() && name.starts_with(long)
                }
                None => letters(option, begin).chars().any(|it| it.eq_ignore_ascii_case(&letter)),
            });
    }
    letters(prefix, begin).chars().all(|letter| {
        signed.contains(&letter)
            || given.iter().any(|option| match option.starts_with("--") {
                true => begins_with(letter, option),
                false => letters(option, begin).contains(letter),
            })
    })
}

/// The short options in a word.
fn letters(option: &str, begin: &[&str]) -> String {
    let meant = |letter: char| {
        let row = MEANS.iter().find(|(of, other, _)| begin.starts_with(of) && *other == letter);
        row.map_or_else(|| letter.to_string(), |(_, _, meant)| (*meant).to_owned())
    };
    option.trim_start_matches('-').chars().map(meant).collect()
}
