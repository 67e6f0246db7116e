//! PDF documents for models: poppler's programs make images or the text of pages, in a cage that has no
//! file but the document. Used by `read`.

use crate::command::job_place::JobPlace;
use crate::command::{self, CommandSpec, FilterRun};
use crate::failure::{FailureCode, ToolFailure};
use crate::files::image::{self, Format};
use crate::files::target_path::TargetPath;
use crate::tool_context::ToolContext;
use nix::sys::memfd::{MFdFlags, memfd_create};
use protocol::call::{FileEffect, Outcome};
use protocol::hidden::{for_model, line_for_model};
use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek};
use tool_specs::ToolAnswer;
use tool_specs::image_bounds::{MODEL_SEES, PAGES_MAX, SHOWN_SIDE};
use tool_specs::text::shell_words::shell_words;

/// Larger files are refused. The programs get a copy in memory.
const FILE_MAX: u64 = 100_000_000;
/// A document with more pages is shown only where the call says which.
const PAGES_UNASKED: u32 = 10;
/// Longest time of the programs, in milliseconds.
const TIME_MS: u64 = 60_000;
/// Most bytes that they print.
const PRINTED_MAX: usize = 64 << 20;
/// Most bytes of all images: the runner's report holds 16 MiB.
const IMAGES_MAX: usize = 8 << 20;
/// Most characters of an error of theirs.
const SAID_MAX: usize = 300;
/// The document for a program that opens it: each begins at its start.
const INPUT: &str = "/proc/self/fd/3";
/// Prints the number of pages, then lets the program convert them. `$1` is the largest number for which it
/// does, `$2` the smallest.
const SCRIPT: &str = "\
exec 3<&0 </dev/null
info=$(pdfinfo /proc/self/fd/3) || exit
pages=${info##*Pages:}
pages=${pages%%[!0-9 ]*}
echo $pages
[ $pages -le $1 ] && [ $pages -ge $2 ] || exit 0
shift 2
exec \"$@\"";
/// Exit codes of a shell if a program is missing or cannot be executed.
const NOT_RUN: [i32; 2] = [126, 127];

/// The way on without the programs.
const INSTALL: &str = "The package is poppler-utils on Debian, Ubuntu and Fedora, and poppler on Arch. Ask the user to \
    install it, or use another program with bash.";
/// The way on from a document that they cannot read.
const DAMAGED: &str = "The file is damaged, or made to attack such programs. Make it again, or use another program with bash.";

/// True if a file that begins so is a document.
pub(crate) fn is_document(start: &[u8]) -> bool {
    start.starts_with(b"%PDF-")
}

/// The pages that a call asks for, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PageRange {
    first: u32,
    last: u32,
}

impl PageRange {
    fn parse(text: &str) -> Result<Self, ToolFailure> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let number =
            |text: &str| text.trim().parse::<u32>().ok().filter(|n| (1..1 << 30).contains(n));
        let range = number(first).zip(number(last)).map(|(first, last)| Self { first, last });
        range
            .filter(|it| it.first <= it.last && ((it.last - it.first) as usize) < PAGES_MAX)
            .ok_or_else(|| {
                ToolFailure::new(
                    FailureCode::InvalidArguments,
                    format!("pages = {text:?} is not a range of at most {PAGES_MAX} pages"),
                    "Write a page as \"3\" and a range as \"1-5\".",
                )
            })
    }
}

impl fmt::Display for PageRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, last } = self;
        if first == last { write!(f, "{first}") } else { write!(f, "{first}-{last}") }
    }
}

/// Shows pages of a document: images of them to a model that sees, else their text.
pub(crate) fn read(
    (file, meta): (&File, &Metadata),
    pages: Option<&str>,
    target: &TargetPath,
    ctx: &mut ToolContext<'_>,
) -> Result<ToolAnswer, ToolFailure> {
    let named = &target.named;
    let asked = pages.map(PageRange::parse).transpose()?;
    let Some(side) = &ctx.command else {
        return Err(ToolFailure::new(
            FailureCode::Binary,
            format!("{named:?} is a PDF document, although its name does not end in .pdf"),
            "Call read again and say which pages, for example pages = \"1-5\".",
        ));
    };
    if meta.len() > FILE_MAX {
        return Err(ToolFailure::new(
            FailureCode::TooLarge,
            format!(
                "{named:?} has {} MB; PDFs of up to {} are read",
                meta.len() / 1_000_000,
                FILE_MAX / 1_000_000
            ),
            "Make a smaller copy with some of its pages, and read that.",
        ));
    }
    let sees = side.env.iter().any(|(name, _)| name == MODEL_SEES);
    let time = u64::try_from(side.time.as_millis()).map_or(TIME_MS, |time| time.min(TIME_MS));
    let range = asked.unwrap_or(PageRange { first: 1, last: PAGES_UNASKED });
    let most = if asked.is_some() { u32::MAX } else { PAGES_UNASKED };
    let (first, last, side) =
        (range.first.to_string(), range.last.to_string(), SHOWN_SIDE.to_string());
    let words = match sees {
        true => vec!["pdftoppm", "-png", "-scale-to", &side, "-f", &first, "-l", &last, INPUT],
        false => {
            vec!["pdftotext", "-layout", "-enc", "UTF-8", "-f", &first, "-l", &last, INPUT, "-"]
        }
    };
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let named_words = words.iter().filter(|word| **word != "-");
    let text = owned(
        &named_words.map(|word| if *word == INPUT { named } else { *word }).collect::<Vec<_>>(),
    );
    let text = shell_words(&text);
    ctx.extras.ran = Some(text.clone());
    let shell = ["/bin/sh", "-c", SCRIPT, "sh", &most.to_string(), &first];
    let file = copy(file).map_err(|error| ToolFailure::io("read", named, error))?;
    let wanted = CommandSpec {
        argv: owned(&[&shell[..], &words].concat()),
        text,
        env: Vec::new(),
        without: Some("AGENTD_"),
        timeout_ms: Some(time),
        place: JobPlace::Over(file),
    };
    let ran = command::filter(wanted, PRINTED_MAX, ctx)?;
    let (count, printed) = converted((named, words[0]), ran)?;
    if range.first > count {
        let text = format!("page {first} is past the end: {named:?} has {count} pages");
        return Err(ToolFailure::new(FailureCode::PastEnd, text, "Give smaller page numbers."));
    }
    if count > most {
        return Err(ToolFailure::new(
            FailureCode::TooLarge,
            format!("{named:?} has {count} pages; without pages at most {PAGES_UNASKED} are shown"),
            format!("Say which to read, for example pages = \"1-5\"; at most {PAGES_MAX} a call."),
        ));
    }
    let range = PageRange { last: range.last.min(count), ..range };
    let shown = ctx.shown(&target.real);
    let (body, notes) = match sees {
        true => images(&printed, range, (named, &shown), ctx)?,
        false => texts(&printed, range),
    };
    let PageRange { first, last } = range;
    let summary = format!("{shown}: pages {first} to {last} of {count}");
    let mut answer = ToolAnswer::done(body, summary, vec![FileEffect::Read(target.recorded())]);
    answer.footer = notes;
    if last < count {
        let next = PageRange { first: last + 1, last: count.min(last + 1 + last - first) };
        let on = format!("continue with pages = \"{next}\"");
        answer.footer.push(format!("[pages {first} to {last} of {count}; {on}]"));
    }
    Ok(answer)
}

/// A copy in memory, which the programs can open although no path of the cage leads to it.
fn copy(file: &File) -> io::Result<File> {
    let mut copy = File::from(memfd_create(c"document", MFdFlags::MFD_CLOEXEC)?);
    io::copy(&mut file.take(FILE_MAX), &mut copy)?;
    copy.rewind()?;
    Ok(copy)
}

/// The number of pages, and the program's output.
///
/// # Errors
/// Where a program is missing, or did not come to a good end.
fn converted(
    (named, program): (&str, &str),
    ran: FilterRun,
) -> Result<(u32, Vec<u8>), ToolFailure> {
    let FilterRun { printed, said, answer } = ran;
    let said = said.replace('\n', " ");
    let said: String = line_for_model(&said).trim().chars().take(SAID_MAX).collect();
    let bad = |why: String| {
        let text = format!("{named:?} cannot be shown: {why}");
        ToolFailure::new(FailureCode::BadDocument, text, DAMAGED)
    };
    let Outcome::Exited { code } = answer.outcome else {
        let failure = bad(format!("{program} did not come to its end: {}", answer.summary));
        let code = answer.code.unwrap_or(failure.code);
        return Err(ToolFailure { outcome: answer.outcome, code, ..failure });
    };
    if NOT_RUN.contains(&code) {
        let text = format!("{named:?} is a PDF document, and poppler is not installed: {said}");
        return Err(ToolFailure::new(FailureCode::NotFound, text, INSTALL));
    }
    if said.contains("Incorrect password") {
        let text = format!("{named:?} is encrypted: it opens with a password only");
        let hint = "Ask the user for a copy without a password.";
        return Err(ToolFailure::new(FailureCode::BadDocument, text, hint));
    }
    let Some(printed) = printed else {
        let text = format!("{program} printed more than {} MiB of {named:?}", PRINTED_MAX >> 20);
        return Err(ToolFailure::new(FailureCode::TooLarge, text, "Ask for fewer pages."));
    };
    let line = printed.iter().position(|byte| *byte == b'\n').unwrap_or(printed.len());
    let (count, rest) = printed.split_at(line);
    let count = std::str::from_utf8(count).ok().and_then(|count| count.parse().ok());
    match (count, code) {
        (Some(count), 0) => Ok((count, rest.get(1..).unwrap_or_default().to_vec())),
        (_, _) => Err(bad(format!("poppler ended with exit code {code}: {said}"))),
    }
}

/// The lines about the images of these pages, and notes; the images go into the report.
fn images(
    printed: &[u8],
    PageRange { first, last }: PageRange,
    (named, shown): (&str, &str),
    ctx: &mut ToolContext<'_>,
) -> Result<(String, Vec<String>), ToolFailure> {
    let (mut lines, mut bytes, mut next) = (Vec::new(), 0, first);
    let mut rest = printed;
    while let Some((png, behind)) = split_png(rest).filter(|_| next <= last) {
        let name = format!("{shown} page {next}");
        let page = image::decode(png, Format::Png, (named, name), ctx.cancel)?;
        bytes += page.file.data.len();
        if bytes > IMAGES_MAX {
            break;
        }
        lines.push(page.line());
        ctx.extras.images.push(page.file);
        (rest, next) = (behind, next + 1);
    }
    let why = match bytes > IMAGES_MAX {
        true => "their images are too large together; read them with another call",
        false => "pdftoppm made no image of them",
    };
    let left_out = (next <= last)
        .then(|| format!("[pages = \"{}\" left out: {why}]", PageRange { first: next, last }));
    Ok((lines.join("\n"), left_out.into_iter().collect()))
}

/// The first PNG of several, and the bytes behind it.
fn split_png(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut at = 8;
    image::format(bytes).filter(|format| *format == Format::Png)?;
    loop {
        let (length, kind) = bytes.get(at..)?.split_first_chunk::<4>()?;
        let is_end = kind.starts_with(b"IEND");
        at = at.checked_add(12)?.checked_add(u32::from_be_bytes(*length) as usize)?;
        if is_end {
            return bytes.split_at_checked(at);
        }
    }
}

/// The text of these pages, each below its number, and notes.
fn texts(printed: &[u8], PageRange { first, last }: PageRange) -> (String, Vec<String>) {
    let printed = String::from_utf8_lossy(printed);
    let pages = (first..=last).zip(printed.split('\u{c}'));
    let page = |(number, text)| format!("[page {number}]\n{}\n", for_model(str::trim_end(text)));
    let body: String = pages.map(page).collect();
    let empty = printed.trim_matches(|c: char| c.is_whitespace()).is_empty();
    let note = "[there is no text on these pages; they may be scanned, and a model that sees gets their images]";
    (body, empty.then(|| note.to_owned()).into_iter().collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_range_names_one_page_or_up_to_twenty() {
        for (text, range) in [
            ("3", Some((3, 3))),
            ("1-5", Some((1, 5))),
            (" 2 - 21 ", Some((2, 21))),
            ("2-22", None),
            ("5-1", None),
            ("0", None),
            ("1-", None),
            ("-3", None),
            ("", None),
            ("a", None),
            ("99999999999", None),
        ] {
            let parsed = PageRange::parse(text).ok().map(|it| (it.first, it.last));
            assert_eq!(parsed, range, "{text:?}");
        }
    }

    #[test]
    fn images_that_follow_each_other_are_taken_apart() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\x02IDAT12crc.\0\0\0\0IENDcrc.";
        let both = [&png[..], png].concat();
        let (one, rest) = split_png(&both).unwrap();
        assert_eq!((one, rest), (&png[..], &png[..]));
        assert_eq!(split_png(rest), Some((&png[..], &[][..])));
        for end in 0..png.len() {
            assert_eq!(split_png(&png[..end]), None, "{end}");
        }
        let endless = [&png[..8], &[0xff; 40]].concat();
        assert_eq!(split_png(&endless), None);
    }

    fn of(printed: Option<&[u8]>, outcome: Outcome, said: &str) -> Result<(u32, Vec<u8>), String> {
        let answer = ToolAnswer::done(String::new(), "killed".to_owned(), Vec::new());
        let answer = ToolAnswer { outcome, ..answer };
        let ran = FilterRun { printed: printed.map(<[u8]>::to_vec), said: said.to_owned(), answer };
        let made = converted(("a.pdf", "pdftoppm"), ran);
        made.map_err(|no| format!("{}: {}", no.code.name(), no.message))
    }

    #[test]
    fn each_bad_end_of_the_programs_is_told_apart() {
        let exited = |code| Outcome::Exited { code };
        assert_eq!(of(Some(b"2\nab"), exited(0), "Syntax Warning"), Ok((2, b"ab".to_vec())));
        assert_eq!(of(Some(b"12\n"), exited(0), ""), Ok((12, Vec::new())));
        for (printed, outcome, said, error) in [
            (
                Some(&b"2\n"[..]),
                exited(127),
                "sh: pdftoppm: not found",
                "not_found: \"a.pdf\" is a PDF document, and",
            ),
            (
                Some(b""),
                exited(1),
                "Error: Incorrect password",
                "bad_document: \"a.pdf\" is encrypted",
            ),
            (
                Some(b""),
                exited(1),
                "Couldn't\nread \x1b[1m",
                "exit code 1: Couldn't read \u{241b}[1m",
            ),
            (Some(b"\n"), exited(0), "", "exit code 0"),
            (None, exited(0), "", "too_large: pdftoppm printed more than 64 MiB"),
            (
                Some(b"2\n"),
                Outcome::Signalled { signal: 11 },
                "",
                "pdftoppm did not come to its end: killed",
            ),
        ] {
            let made = of(printed, outcome, said);
            assert!(made.as_ref().is_err_and(|no| no.contains(error)), "{made:?} {error}");
        }
    }

    #[test]
    fn the_text_of_each_page_stands_below_its_number() {
        let (text, notes) = texts(b"one \n\n\x0ctwo\x1b\n\x0c", PageRange { first: 4, last: 5 });
        assert_eq!((text.as_str(), notes.len()), ("[page 4]\none\n[page 5]\ntwo\u{241b}\n", 0));
        let (_, notes) = texts(b"\x0c \n\x0c", PageRange { first: 1, last: 2 });
        assert!(notes[0].contains("no text"), "{notes:?}");
    }
}
