//! `read`: a file or a window of its lines, with their numbers; an image for models that see; pages of a PDF.

use crate::edit::replace::LOADED_MAX;
use crate::failure::{FailureCode, ToolFailure};
use crate::files::target_path::TargetPath;
use crate::files::{document, file_type, image, precondition};
use crate::spec::Tool;
use crate::text::lines::{Columns, LINE_CHARS, LineBuffer, NotUtf8, skip, skip_lines};
use crate::tool_context::ToolContext;
use encoding_rs_io::DecodeReaderBytesBuilder;
use protocol::call::FileEffect;
use std::fs::{File, Metadata};
use std::io::{self, BufRead, BufReader, Read, Seek};
use tool_specs::ToolAnswer;
use tool_specs::tool::read::{Input, ReadTool};

/// Without a window, larger files are refused: a search finds the place in them faster.
const WHOLE_MAX: u64 = 1_500_000;
/// Lines of a window that names no limit.
const LINES: u64 = 2000;
/// Limit for the bytes of text that one call collects, whatever its limit of lines.
const TEXT_MAX: usize = 2_000_000;
/// Room for the notes below the text.
const FOOTER_CHARS: usize = 400;
/// Room for a line's number and the mark of its cut.
const MARK_CHARS: usize = 100;
/// Up to this size the lines after the window are counted, too.
const COUNTED_MAX: u64 = 8_000_000;
/// Bytes that tell an image or a document from a text.
const FORMAT_START: u64 = 64;
/// Bytes read at once.
const PIECE: usize = 256 * 1024;

impl Tool for ReadTool {
    fn run(input: Input, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        let target = ctx.existing(&input.path)?;
        let (file, meta) = ctx.open(&target)?;
        let start = start(&file, &target)?;
        if document::is_document(&start) {
            let mut answer = document::read((&file, &meta), input.pages.as_deref(), &target, ctx)?;
            answer.footer.extend(without_lines(&input, "a PDF is read by pages"));
            return Ok(answer);
        }
        if let Some(format) = image::format(&start) {
            return show((&file, meta.len()), format, (&input, &target), ctx);
        }
        if meta.len() > WHOLE_MAX && input.offset.is_none() && input.limit.is_none() {
            return Err(ToolFailure::new(
                FailureCode::TooLarge,
                format!(
                    "{:?} has {} bytes; without offset and limit at most {WHOLE_MAX} are \
                        read",
                    input.path,
                    meta.len()
                ),
                "Read a part of it with offset and limit, for example offset = 1 and limit = 500, or search it with grep.",
            ));
        }
        let mut reader = BufReader::with_capacity(PIECE, &file);
        let window = match encoding(&mut reader, &target)? {
            Encoding::Utf8 => LineWindow::read(&mut reader, &input, meta.len(), ctx, &target)?,
            Encoding::Utf16 => {
                let decoder = DecodeReaderBytesBuilder::new().bom_sniffing(true).build(reader);
                let mut decoded = BufReader::with_capacity(file_type::SNIFFED, decoder);
                refuse_binary(fill(&mut decoded, &target)?, &target)?;
                let mut window = LineWindow::read(&mut decoded, &input, meta.len(), ctx, &target)?;
                window.notes.push("[the file is UTF-16 and is shown as UTF-8]".to_owned());
                window
            }
        };
        if let Some(digest) = whole(file, &meta) {
            ctx.record_version(&target, digest);
        }
        let mut answer = window.answer(ctx, &target);
        answer.footer.extend(without_pages(&input));
        Ok(answer)
    }
}

/// The note about arguments that mean nothing here.
fn without_lines(input: &Input, why: &str) -> Option<String> {
    let given = input.offset.or(input.limit).or(input.column);
    given.map(|_| format!("[offset, limit and column were ignored: {why}]"))
}

/// The same for a file that is not a document.
fn without_pages(input: &Input) -> Option<String> {
    input.pages.as_ref().map(|_| "[pages was ignored: the file is not a PDF]".to_owned())
}

/// The first bytes; leaves the file at its beginning.
fn start(mut file: &File, target: &TargetPath) -> Result<Vec<u8>, ToolFailure> {
    let failed = |error| ToolFailure::io("read", &target.named, error);
    let mut start = Vec::new();
    file.take(FORMAT_START).read_to_end(&mut start).map_err(failed)?;
    file.rewind().map_err(failed)?;
    Ok(start)
}

/// The answer that shows an image.
fn show(
    file: (&File, u64),
    format: image::Format,
    (input, target): (&Input, &TargetPath),
    ctx: &mut ToolContext<'_>,
) -> Result<ToolAnswer, ToolFailure> {
    let image = image::read(file, format, target, ctx)?;
    let line = image.line();
    let effects = vec![FileEffect::Read(target.recorded())];
    let mut answer = ToolAnswer::done(line.clone(), line, effects);
    answer.footer.extend(without_lines(input, "an image has no lines"));
    answer.footer.extend(without_pages(input));
    ctx.extras.images.push(image.file);
    Ok(answer)
}

/// The digest of a file that could be edited; none where it was changed while it was read.
fn whole(mut file: File, before: &Metadata) -> Option<String> {
    if before.len() > LOADED_MAX {
        return None;
    }
    file.rewind().ok()?;
    let digest = precondition::digest_reader(&file).ok()?;
    let after = file.metadata().ok()?;
    let same = after.len() == before.len() && after.modified().ok() == before.modified().ok();
    same.then_some(digest)
}

/// How the text of a file is written.
enum Encoding {
    Utf8,
    Utf16,
}

/// Inspects the first bytes without consuming them.
fn encoding(reader: &mut impl BufRead, target: &TargetPath) -> Result<Encoding, ToolFailure> {
    let start = fill(reader, target)?;
    let start = &start[..start.len().min(file_type::SNIFFED)];
    if file_type::is_utf16(start) {
        return Ok(Encoding::Utf16);
    }
    refuse_binary(start, target)?;
    Ok(Encoding::Utf8)
}

fn fill<'a>(reader: &'a mut impl BufRead, target: &TargetPath) -> Result<&'a [u8], ToolFailure> {
    reader.fill_buf().map_err(|error| ToolFailure::io("read", &target.named, error))
}

fn refuse_binary(start: &[u8], target: &TargetPath) -> Result<(), ToolFailure> {
    match file_type::binary_type(start) {
        None => Ok(()),
        Some(kind) => Err(ToolFailure::new(
            FailureCode::Binary,
            format!("{:?} is a binary file ({kind})", target.named),
            "Only text files, PDF documents, and PNG, JPEG, GIF and WebP images can be read. Use bash with a program \
             for this file type.",
        )),
    }
}

/// The requested lines, and counts of the others.
struct LineWindow {
    text: String,
    first: u64,
    last: u64,
    /// All lines of the file, where they were counted.
    total: Option<u64>,
    /// True if lines follow the window.
    more: bool,
    /// Below the text.
    notes: Vec<String>,
}

/// Why lines were not passed over.
enum Stop {
    Cancelled(ToolFailure),
    Io(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The limits of one answer.
struct WindowBounds {
    /// Lines.
    limit: u64,
    /// Characters of the text.
    chars: usize,
    /// The part of each line that is shown.
    columns: Columns,
}

impl WindowBounds {
    fn of(input: &Input, max_chars: usize) -> Self {
        let limit = input.limit.unwrap_or(if input.column.is_some() { 1 } else { LINES });
        let chars = max_chars.saturating_sub(FOOTER_CHARS).min(TEXT_MAX);
        let one = chars.saturating_sub(MARK_CHARS).max(1);
        let most = if limit == 1 { one } else { LINE_CHARS.min(one) };
        let skip = input.column.map_or(0, |column| column - 1);
        Self { limit, chars, columns: Columns { skip, most } }
    }
}

impl LineWindow {
    fn read(
        reader: &mut impl BufRead,
        input: &Input,
        size: u64,
        ctx: &ToolContext<'_>,
        target: &TargetPath,
    ) -> Result<Self, ToolFailure> {
        let failed = |error| ToolFailure::io("read", &target.named, error);
        let WindowBounds { limit, chars, columns } = WindowBounds::of(input, ctx.max_chars);
        let first = input.offset.unwrap_or(1);
        let passed =
            skip_lines(reader, first - 1, || ctx.check_cancelled().map_err(Stop::Cancelled));
        let passed = passed.map_err(|stop| match stop {
            Stop::Cancelled(failure) => failure,
            Stop::Io(error) => failed(error),
        })?;
        if passed < first - 1 {
            return Err(past_end(target, first, passed));
        }
        let mut text = String::new();
        let mut used = 0;
        let mut line = LineBuffer::default();
        let mut last = first - 1;
        let mut is_cut = false;
        let mut passed = 0;
        while last + 1 - first < limit {
            ctx.check_cancelled()?;
            if !line.read(reader, columns).map_err(failed)? {
                break;
            }
            let number = last + 1;
            let shown = line.shown(columns.most).map_err(|NotUtf8| not_utf8(target, number))?;
            // A byte order mark is no text; edit leaves it where it is.
            let shown = if number == 1 { shown.trim_start_matches('\u{feff}') } else { &shown };
            let numbered =
                if input.raw { format!("{shown}\n") } else { format!("{number}\t{shown}\n") };
            used += numbered.chars().count();
            if used > chars && last >= first {
                passed = 1;
                break;
            }
            is_cut |= line.is_longer(columns.most);
            last = number;
            text.push_str(&numbered);
        }
        if last < first && first > 1 {
            return Err(past_end(target, first, last));
        }
        let mut more = passed > 0;
        let mut total = last + passed;
        let counted = size <= COUNTED_MAX;
        while counted || !more {
            if !skip(reader).map_err(failed)?.line {
                break;
            }
            more = true;
            total += 1;
        }
        let total = (counted || !more).then_some(total);
        let mut notes = Vec::new();
        if is_cut {
            let column = columns.skip + columns.most as u64 + 1;
            notes.push(format!(
                "[to read the rest of a cut line: offset = its number, limit = 1, column = \
                    {column}]"
            ));
        }
        Ok(Self { text, first, last, total, more, notes })
    }

    fn answer(self, ctx: &ToolContext<'_>, target: &TargetPath) -> ToolAnswer {
        let shown = ctx.shown(&target.real);
        let lines = (self.last + 1).saturating_sub(self.first);
        let effects = vec![FileEffect::Read(target.recorded())];
        if self.last == 0 {
            return ToolAnswer::done(
                "(the file is empty)".to_owned(),
                format!("{shown}: empty"),
                effects,
            );
        }
        let mut answer = ToolAnswer::done(self.text, format!("{shown}: {lines} lines"), effects);
        answer.footer = self.notes;
        if self.first > 1 || self.more {
            let of = self.total.map_or(String::new(), |total| format!(" of {total}"));
            let on = if self.more {
                format!("; continue with offset = {}", self.last + 1)
            } else {
                String::new()
            };
            answer.footer.push(format!("[lines {} to {}{of}{on}]", self.first, self.last));
        }
        answer
    }
}

fn past_end(target: &TargetPath, first: u64, lines: u64) -> ToolFailure {
    ToolFailure::new(
        FailureCode::PastEnd,
        format!("line {first} is past the end: {:?} has {lines} lines", target.named),
        "Give a smaller offset.",
    )
}

fn not_utf8(target: &TargetPath, line: u64) -> ToolFailure {
    ToolFailure::new(
        FailureCode::NotUtf8,
        format!("line {line} of {:?} is not UTF-8", target.named),
        file_type::NOT_UTF8_HINT,
    )
}
