//! The generous reading's second half: every command that can be seen in a text, through wrappers
//! such as `env` and `sh -c` too.

pub(crate) mod lex;
pub(crate) mod programs;
pub(crate) mod wrapper_syntax;

use crate::expand::{Certainty, EXPANSIONS_CAP, Expanded, Limit, Opacity, expand};
use crate::lenient::programs::{ProgramTrait, ProgramTraits};
use crate::lenient::wrapper_syntax::{CommandStart, RUN_OPTIONS, command_start};
use crate::strict::grammar;
use crate::strict::script::{ArgWord, Script, SimpleCommand};
use lex::{Quotes, TextPiece};
use std::borrow::Cow;
use std::collections::HashSet;

/// Deepest text within a text that is looked into. People write two; a deeper one hides something.
const DEPTH_CAP: usize = 8;

/// A piece and the places in it where a command could begin.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CommandCandidate {
    /// The words.
    pub words: Vec<String>,
    /// In ascending order, each below the number of words.
    pub starts: Vec<usize>,
}

/// The texts are nested deeper than in any real command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooDeep;

/// Words of the shell's grammar after which a command begins.
const GRAMMAR: &[&str] = &["!", "{", "do", "elif", "else", "if", "then", "time", "until", "while"];

/// Subcommands of git that run their arguments.
const GIT_RUNS: &[&str] = &["bisect", "filter-branch", "rebase", "submodule"];

/// Such options that take the next word.
const OPTIONS_WITH_WORD: &[&str] = &[
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--config",
    "--color",
    "--prefix",
    "-Z",
    "-H",
    "-n",
    "--context",
    "--host",
];

/// Every command that can be seen, and how far the programs are known.
pub(crate) fn find_commands(
    command: &str,
    script: &Script,
) -> Result<(Vec<CommandCandidate>, Opacity), TooDeep> {
    let mut found = Vec::new();
    let (mut opacity, mut expansions) = (Opacity::None, EXPANSIONS_CAP);
    let mut texts = Vec::new();
    // The readings of a text mostly agree, so the texts within it come several times.
    let mut known = HashSet::new();
    let mut next = Some((Cow::Borrowed(command), 0, Cow::Borrowed(script)));
    while let Some((text, depth, script)) = next {
        if depth > DEPTH_CAP {
            return Err(TooDeep);
        }
        let mut expanded = None;
        let read = lex::is_plain(&text) || is_all_said(&text, &script);
        if expansions > 0 && !read {
            expansions -= 1;
            expanded = Some(expand(&text));
        }
        if expansions == 0 && text.contains('$') {
            opacity = Opacity::TooMany(Limit::Texts);
        }
        if let Some(expanded) = &expanded {
            // Variables in a text that was not parsed with certainty may name a program.
            let open = expanded.certainty == Certainty::InDoubt && text.contains(['$', '`']);
            opacity = opacity.max(expanded.opacity).max(if open {
                Opacity::Opaque
            } else {
                Opacity::None
            });
        }
        let (pieces, prints) = cut_into_pieces(&text, &script, expanded);
        for piece in pieces {
            let (candidate, nested) = find_starts(piece, prints);
            found.extend(without_global_options(&candidate));
            found.push(candidate);
            let new =
                nested.into_iter().filter(|inner| *inner != text && known.insert(inner.clone()));
            texts.extend(new.map(|inner| (inner, depth + 1)));
        }
        next = texts.pop().map(|(text, depth): (String, _)| {
            let script = grammar::read(&text);
            (Cow::Owned(text), depth, Cow::Owned(script))
        });
    }
    Ok((found, opacity))
}

/// The destination of the output of `echo` and `printf`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputUse {
    /// To no shell, or to one whose text is a piece already.
    Elsewhere,
    /// Perhaps to a shell.
    ToShell,
}

/// The pieces of a text: one way to cut it if it is certain how bash does, otherwise the pieces of
/// every possible way.
fn cut_into_pieces(
    text: &str,
    script: &Script,
    expanded: Option<Expanded>,
) -> (Vec<TextPiece>, OutputUse) {
    let whole = |words| TextPiece { words, starts: Vec::new() };
    if lex::is_plain(text) {
        return (lex::pieces(text, Quotes::Kept), OutputUse::Elsewhere);
    }
    let sure = match &expanded {
        Some(expanded) => expanded.certainty == Certainty::Sure,
        None => is_all_said(text, script),
    };
    let mut pieces: Vec<TextPiece> =
        expanded.into_iter().flat_map(|expanded| expanded.commands).map(whole).collect();
    if let Ok(script) = script {
        pieces.extend(script.iter().map(of_simple));
    }
    if sure {
        return (deduplicated(pieces), OutputUse::Elsewhere);
    }
    for quotes in [Quotes::Kept, Quotes::Ignored] {
        pieces.extend(lex::pieces(text, quotes));
    }
    if text.contains('$') {
        // The text with all variables empty, and with all variables blank (`$IFS`).
        for held in ["", " "] {
            pieces.extend(lex::pieces(&without_variables(text, held), Quotes::Ignored));
        }
    }
    if text.contains('{') && text.contains(',') {
        // An approximation of brace expansion.
        pieces.extend(lex::pieces(&text.replace(['{', '}', ','], " "), Quotes::Ignored));
    }
    let shell = pieces.iter().flat_map(|piece| &piece.words).any(|word| {
        let traits = ProgramTraits::of(word);
        traits.has(ProgramTrait::Shell) || traits.has(ProgramTrait::Sources)
    });
    (deduplicated(pieces), if shell { OutputUse::ToShell } else { OutputUse::Elsewhere })
}

/// True if the strict parse knows every word of the text, and no word could start a nested text.
fn is_all_said(text: &str, script: &Script) -> bool {
    let said = |word: &str| {
        let traits = ProgramTraits::of(word);
        ![
            ProgramTrait::Shell,
            ProgramTrait::Sources,
            ProgramTrait::FeedsShell,
            ProgramTrait::ReadsText,
            ProgramTrait::PassesOn,
        ]
        .into_iter()
        .any(|one| traits.has(one))
    };
    let words =
        |simple: &SimpleCommand| simple.words.iter().all(|word| word.known().is_some_and(said));
    !text.contains(['$', '`', '{']) && script.as_ref().is_ok_and(|script| script.iter().all(words))
}

/// Removes duplicate pieces: the different ways to cut a text mostly agree.
fn deduplicated(mut pieces: Vec<TextPiece>) -> Vec<TextPiece> {
    let mut known = HashSet::with_capacity(pieces.len());
    let new: Vec<bool> = pieces.iter().map(|piece| known.insert(piece)).collect();
    let mut new = new.into_iter();
    pieces.retain(|_| new.next().unwrap_or(true));
    pieces
}

/// A command of the grammar, as far as its words are known.
fn of_simple(simple: &SimpleCommand) -> TextPiece {
    let words = simple.words.iter().map_while(ArgWord::known).map(str::to_owned);
    TextPiece { words: words.collect(), starts: Vec::new() }
}

/// The places of a piece where a command could begin, and the texts it hands on.
///
/// Only the first wrapper of each kind is followed: it already covers everything after it, and
/// following each would take quadratic time.
fn find_starts(piece: TextPiece, prints: OutputUse) -> (CommandCandidate, Vec<String>) {
    let TextPiece { words, starts: given } = piece;
    let mut begins = vec![false; words.len() + 1];
    begins[0] = true;
    for start in given {
        begins[start] = true;
    }
    let mut nested = Vec::new();
    let mut seen = WrappersSeen::default();
    for at in 0..words.len() {
        let word = &words[at];
        // `function f {` has a name before it.
        begins[at + 1] |= word == "{";
        if !begins[at] {
            continue;
        }
        if is_assignment(word) {
            begins[at] = false;
            begins[at + 1] = true;
        } else if GRAMMAR.contains(&word.as_str()) {
            begins[at + 1] = true;
        }
        let traits = ProgramTraits::of(word);
        // A shell in the same text may execute the printed output.
        let printed = prints == OutputUse::ToShell && traits.has(ProgramTrait::Prints);
        let behind = match traits.has(ProgramTrait::PassesOn) {
            true => command_start(&words[at..]),
            false if printed => CommandStart::Anywhere,
            false => CommandStart::Nothing,
        };
        match behind {
            CommandStart::At(further) => begins[at + further] = true,
            CommandStart::Anywhere if first(&mut seen.passes_on) => begins[at + 1..].fill(true),
            CommandStart::Anywhere | CommandStart::Nothing => {}
        }
        if traits.has(ProgramTrait::Finds) && first(&mut seen.finds) {
            for behind in at + 1..words.len() {
                begins[behind + 1] |= RUN_OPTIONS.contains(&words[behind].as_str());
            }
        }
        if traits.has(ProgramTrait::Evaluates) && first(&mut seen.joins) {
            let from = at + 1 + usize::from(words.get(at + 1).is_some_and(|word| word == "--"));
            nested.push(words[from..].join(" "));
        }
        // Of a wrapper whose options are known, the command is found; others may take a text.
        let reads = traits.has(ProgramTrait::ReadsText)
            && (behind == CommandStart::Anywhere || !traits.has(ProgramTrait::PassesOn));
        if (printed || reads) && first(&mut seen.reads) {
            nested.extend(words[at + 1..].iter().cloned());
            // `alias x='…'` holds its text behind the sign.
            let text = |word: &String| Some(word.split_once('=')?.1.to_owned());
            nested.extend(words[at + 1..].iter().filter_map(text));
            // `env -S'…'`
            let joined = |word: &String| Some(word.strip_prefix("-S")?.to_owned());
            nested.extend(words[at + 1..].iter().filter_map(joined));
        }
        // `git -c alias.x='!…'`: git passes the text after the `!` to a shell.
        if traits.has(ProgramTrait::IsGit) && first(&mut seen.gits) {
            let marked = |word: &String| Some(word.split_once("=!")?.1.to_owned());
            nested.extend(words[at + 1..].iter().filter_map(marked));
            if words[at + 1..].iter().any(|word| GIT_RUNS.contains(&word.as_str())) {
                begins[at + 1..].fill(true);
                nested.extend(words[at + 1..].iter().cloned());
            }
        }
        if traits.has(ProgramTrait::Shell) && first(&mut seen.shells) {
            let mut behind_c = words[at + 1..].iter().skip_while(|word| !is_c_option(word)).skip(1);
            nested.extend(behind_c.find(|word| !word.starts_with(['-', '+'])).cloned());
        }
    }
    let starts = (0..words.len()).filter(|at| begins[*at]).collect();
    (CommandCandidate { words, starts }, nested)
}

/// The same commands less the options before a subcommand: `git -C x push` is `git push`.
fn without_global_options(candidate: &CommandCandidate) -> Option<CommandCandidate> {
    // The first is enough: people and models write one to a piece.
    let at = *candidate
        .starts
        .iter()
        .find(|at| ProgramTraits::of(&candidate.words[**at]).has(ProgramTrait::HasSubcommands))?;
    let (program, mut rest) = candidate.words[at..].split_first()?;
    let all = rest.len();
    while let [option, behind @ ..] = rest {
        let takes_word = OPTIONS_WITH_WORD.contains(&option.as_str());
        match behind {
            [_, further @ ..] if takes_word => rest = further,
            _ if option.starts_with(['-', '+']) => rest = behind,
            _ => break,
        }
    }
    let words: Vec<String> = std::iter::once(program).chain(rest).cloned().collect();
    (rest.len() < all).then_some(CommandCandidate { words, starts: vec![0] })
}

/// Which kinds of wrapper a piece had so far.
#[derive(Debug, Default)]
struct WrappersSeen {
    passes_on: bool,
    finds: bool,
    joins: bool,
    reads: bool,
    shells: bool,
    gits: bool,
}

fn first(seen: &mut bool) -> bool {
    !std::mem::replace(seen, true)
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        let name = name.strip_suffix('+').unwrap_or(name);
        let name = match name.split_once('[') {
            Some((list, place)) if place.ends_with(']') => list,
            Some(_) | None => name,
        };
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// The text with `held` in the place of each variable; `$(` and `$'` are none.
fn without_variables(text: &str, held: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(c) = letters.next() {
        match (c, letters.peek()) {
            ('$', Some('{')) => {
                letters.by_ref().find(|c| *c == '}');
                out.push_str(held);
            }
            ('$', Some('0'..='9' | '@' | '*' | '#' | '?' | '!' | '-' | '$')) => {
                letters.next();
                out.push_str(held);
            }
            ('$', Some(c)) if c.is_ascii_alphabetic() || *c == '_' => {
                while letters.next_if(|c| c.is_ascii_alphanumeric() || *c == '_').is_some() {}
                out.push_str(held);
            }
            _ => out.push(c),
        }
    }
    out
}

/// `-c`, `-lc`, `-xec` and the like.
fn is_c_option(word: &str) -> bool {
    word.strip_prefix('-').is_some_and(|letters| !letters.starts_with('-') && letters.contains('c'))
}
