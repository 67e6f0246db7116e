//! `read`: a file or a window of its lines, with their numbers.

use crate::answer::Answer;
use crate::arguments::Facts;
use crate::failure::{Code, Failure};
use crate::judged;
use crate::kinds;
use crate::lines::{LINE_CHARS, Line, NotUtf8, skip};
use crate::open;
use crate::replace::LOADED_MAX;
use crate::site::{Site, Target};
use crate::spec::{Alias, Lasting, Tool};
use protocol::call::Effect;
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs::{File, Metadata};
use std::io::{BufRead, BufReader, Seek};

/// Without a window, larger files are refused: most of such an answer would be cut anyway.
const WHOLE_MAX: u64 = 1_500_000;
/// Lines of a window that names no limit.
const LINES: u64 = 2000;
/// Bytes of the text that one call gathers, whatever its limit.
const TEXT_MAX: usize = 2_000_000;
/// Up to this size the lines after the window are counted, too.
const COUNTED_MAX: u64 = 8_000_000;

pub(super) struct Read;

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The file, relative to the project directory or absolute.
    path: String,
    /// First line to read, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    offset: Option<u64>,
    /// How many lines to read; 2000 where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    limit: Option<u64>,
    /// Give the plain text without line numbers.
    #[serde(default)]
    raw: bool,
}

impl Tool for Read {
    type Input = Input;
    const NAME: &'static str = "read";
    const KIND: ToolKind = ToolKind::Query;
    const PROFILE: Profile = Profile::Query;
    const DESCRIPTION: &'static str = "Read a text file. Each line comes as its number, a tab and \
        its text; the number and the tab are no part of the file. For a large file give offset and limit.";
    const ALIASES: &'static [Alias] = &[
        Alias { name: "read_file", defaults: r#"{"raw":true}"# },
        Alias { name: "file-read", defaults: r#"{"raw":true}"# },
        Alias::plain("view_file"),
    ];

    const LASTING: Lasting = Lasting::WhileUnchanged;

    fn facts(input: &Input) -> Facts {
        Facts { paths: vec![input.path.clone()], ..Facts::default() }
    }

    fn run(input: Input, site: &mut Site<'_>) -> Result<Answer, Failure> {
        let target = site.existing(&input.path)?;
        let (file, meta) = open::regular(&target)?;
        site.account.trail.is(&target.real, &meta);
        if meta.len() > WHOLE_MAX && input.offset.is_none() && input.limit.is_none() {
            return Err(Failure::new(
                Code::TooLarge,
                format!(
                    "{:?} has {} bytes; a whole file may have {WHOLE_MAX}",
                    input.path,
                    meta.len()
                ),
                "Read a part of it with offset and limit, for example offset = 1 and limit = 500, or search it with grep.",
            ));
        }
        let mut reader = BufReader::with_capacity(kinds::SNIFFED, file);
        refuse_binary(&mut reader, &target)?;
        let window = Window::read(&mut reader, &input, meta.len(), site, &target)?;
        if let Some(digest) = whole(reader.into_inner(), &meta) {
            site.saw(&target, digest);
        }
        Ok(window.answer(site, &target))
    }
}

/// The digest of a file that could be edited; none where it was changed while it was read.
fn whole(mut file: File, before: &Metadata) -> Option<String> {
    if before.len() > LOADED_MAX {
        return None;
    }
    file.rewind().ok()?;
    let digest = judged::digest_of(&file).ok()?;
    let after = file.metadata().ok()?;
    let same = after.len() == before.len() && after.modified().ok() == before.modified().ok();
    same.then_some(digest)
}

/// Looks at the first bytes without taking them out of the reader.
fn refuse_binary(reader: &mut BufReader<File>, target: &Target) -> Result<(), Failure> {
    let start = reader.fill_buf().map_err(|error| Failure::io("read", &target.named, error))?;
    match kinds::binary(start) {
        None => Ok(()),
        Some(kind) => Err(Failure::new(
            Code::Binary,
            format!("{:?} is a binary file ({kind})", target.named),
            "Only text can be read. Use bash with a program that knows this type.",
        )),
    }
}

/// The lines that were asked for, and what is known of the others.
struct Window {
    text: String,
    first: u64,
    last: u64,
    /// All lines of the file, where they were counted.
    total: Option<u64>,
    /// Whether lines follow the window.
    more: bool,
}

impl Window {
    fn read(
        reader: &mut BufReader<File>,
        input: &Input,
        size: u64,
        site: &Site<'_>,
        target: &Target,
    ) -> Result<Self, Failure> {
        let failed = |error| Failure::io("read", &target.named, error);
        let first = input.offset.unwrap_or(1);
        let limit = input.limit.unwrap_or(LINES);
        for passed in 0..first - 1 {
            if passed % 1024 == 0 {
                site.go_on()?;
            }
            if !skip(reader).map_err(failed)?.line {
                return Err(past_end(target, first, passed));
            }
        }
        let mut text = String::new();
        let mut line = Line::default();
        let mut last = first - 1;
        let mut more = false;
        while last + 1 - first < limit && text.len() < TEXT_MAX {
            site.go_on()?;
            if !line.read(reader).map_err(failed)? {
                break;
            }
            last += 1;
            let shown = line.shown(LINE_CHARS).map_err(|NotUtf8| not_utf8(target, last))?;
            // A byte order mark is no text; edit leaves it where it is.
            let shown = if last == 1 { shown.trim_start_matches('\u{feff}') } else { &shown };
            if !input.raw {
                text.push_str(&format!("{last}\t"));
            }
            text.push_str(shown);
            text.push('\n');
        }
        if last < first && first > 1 {
            return Err(past_end(target, first, last));
        }
        let mut total = last;
        let counted = size <= COUNTED_MAX;
        while counted || !more {
            if !skip(reader).map_err(failed)?.line {
                break;
            }
            more = true;
            total += 1;
        }
        let total = (counted || !more).then_some(total);
        Ok(Self { text, first, last, total, more })
    }

    fn answer(self, site: &Site<'_>, target: &Target) -> Answer {
        let shown = site.shown(&target.real);
        let lines = (self.last + 1).saturating_sub(self.first);
        let effects = vec![Effect::Read(target.recorded())];
        if self.last == 0 {
            return Answer::done(
                "(the file is empty)".to_owned(),
                format!("{shown}: empty"),
                effects,
            );
        }
        let mut answer = Answer::done(self.text, format!("{shown}: {lines} lines"), effects);
        answer.how_to_get_more = "read them with offset and limit";
        if self.first > 1 || self.more {
            let of = self.total.map_or(String::new(), |total| format!(" of {total}"));
            let on = if self.more {
                format!("; go on with offset = {}", self.last + 1)
            } else {
                String::new()
            };
            answer.footer.push(format!("[lines {} to {}{of}{on}]", self.first, self.last));
        }
        answer
    }
}

fn past_end(target: &Target, first: u64, lines: u64) -> Failure {
    Failure::new(
        Code::PastEnd,
        format!("line {first} is past the end: {:?} has {lines} lines", target.named),
        "Give a smaller offset.",
    )
}

fn not_utf8(target: &Target, line: u64) -> Failure {
    Failure::new(
        Code::NotUtf8,
        format!("line {line} of {:?} is not UTF-8", target.named),
        "It is probably in an older encoding; with bash, iconv -f LATIN1 -t UTF-8 shows it.",
    )
}
