//! Words into which `find -exec` and `xargs` put a file or their input, for both judges.

use crate::shell::script::{ArgWord, Fields, HOLE, Unknown, WordStart};

/// A word in which a mark is replaced by one text.
pub(crate) fn replaced(word: &str, mark: &str) -> ArgWord {
    ArgWord::One(Unknown {
        start: WordStart::Any,
        fields: Fields::Alike,
        text: word.replace(mark, &HOLE.to_string()),
        written: word.to_owned(),
    })
}

/// A word of `-exec`, in which `{}` is a file that was found.
pub(crate) fn found_file(word: &ArgWord) -> ArgWord {
    match word.known() {
        Some(known) if known.contains("{}") => replaced(known, "{}"),
        Some(_) | None => word.clone(),
    }
}

/// The command of `xargs`, with words of its input at its end or in place of a mark.
pub(crate) fn with_input(own: &[ArgWord], command: &[ArgWord]) -> Vec<ArgWord> {
    let mark = own.iter().zip(own.iter().skip(1)).find_map(|(option, next)| {
        (option.known() == Some("-I")).then(|| next.letters()).flatten()
    });
    let glued = own.iter().find_map(|option| option.letters()?.strip_prefix("-I"));
    match mark.or(glued.filter(|mark| !mark.is_empty())) {
        None => {
            let input = ArgWord::unknown("the input of xargs");
            command.iter().cloned().chain([input]).collect()
        }
        Some(mark) => {
            let put = |word: &ArgWord| match word.letters() {
                Some(known) if known.contains(mark) => replaced(known, mark),
                Some(_) | None => word.clone(),
            };
            command.iter().map(put).collect()
        }
    }
}
