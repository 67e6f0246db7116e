//! The keys of vim on the input line: two modes, counts, operators and motions. Pure.
//!
//! Not there: the visual mode, registers, `.`, and searches. The keys of the whole screen, as Enter and Ctrl-R, keep
//! their meaning in both modes.

use super::Editor;
use super::buffer::{columns, is_fold};
use super::undo::Change;
use crate::screen::key_press::{Direction, EditKey, KeyPress};
use std::ops::Range;

/// Largest count.
const COUNT: usize = 9999;

/// Whether a character is text or a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum VimMode {
    #[default]
    Insert,
    Normal,
}

/// The mode, and the command that is not complete.
#[derive(Debug, Clone, Default)]
pub(super) struct Vim {
    pub(super) mode: VimMode,
    typed: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Delete,
    Change,
    Yank,
}

/// Which characters are one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WordKind {
    /// Letters, digits and `_`, or a run of signs.
    Small,
    /// All but spaces.
    Big,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Motion {
    Left,
    Right,
    Up,
    Down,
    NextWord(WordKind),
    WordBack(WordKind),
    WordEnd(WordKind),
    LineStart,
    /// The first character that is no space.
    Indent,
    LineEnd,
    /// The line of the count, without one the first or the last.
    FirstLine,
    LastLine,
    Find(char, Direction, Stop),
}

/// Where a search within the line stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    On,
    Beside,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Motion(Motion),
    Lines,
    /// The word at the cursor, alone or with the spaces behind it.
    InnerWord(WordKind),
    AWord(WordKind),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Move(Motion),
    Operate(Operator, Target),
    Insert,
    Append,
    InsertAtIndent,
    AppendAtEnd,
    OpenBelow,
    OpenAbove,
    Replace(char),
    SwitchCase,
    PutBehind,
    PutBefore,
    Undo,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct VimCommand {
    /// None where none was typed.
    count: Option<usize>,
    act: Act,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parsed {
    /// More keys belong to it.
    Part,
    Unknown,
    Whole(VimCommand),
}

impl Editor {
    /// Takes a key as vim does, where its keys were chosen. False for a key that has its usual meaning.
    // All other keys are the editor's and the screen's, which list them.
    #[allow(clippy::wildcard_enum_match_arm)]
    pub(crate) fn vim_key(&mut self, key: KeyPress) -> bool {
        let Some(vim) = &mut self.vim else { return false };
        match (vim.mode, key) {
            (VimMode::Insert, KeyPress::Escape) => {
                vim.mode = VimMode::Normal;
                self.moves();
                let at = left(self.buffer.shown(), self.buffer.cursor());
                self.go_to(at);
                true
            }
            (VimMode::Normal, KeyPress::Char(c)) => {
                vim.typed.push(c);
                match parse(&vim.typed) {
                    Parsed::Part => {}
                    Parsed::Unknown => vim.typed.clear(),
                    Parsed::Whole(command) => {
                        vim.typed.clear();
                        self.run(command);
                    }
                }
                true
            }
            (VimMode::Normal, KeyPress::Escape) if !vim.typed.is_empty() => {
                vim.typed.clear();
                true
            }
            (VimMode::Normal, _) => {
                vim.typed.clear();
                false
            }
            (VimMode::Insert, _) => false,
        }
    }

    /// True if characters are commands.
    #[must_use]
    pub fn is_normal_mode(&self) -> bool {
        self.vim.as_ref().is_some_and(|vim| vim.mode == VimMode::Normal)
    }

    pub(super) fn insert_mode(&mut self) {
        if let Some(vim) = &mut self.vim {
            vim.mode = VimMode::Insert;
        }
    }

    fn run(&mut self, command: VimCommand) {
        let times = command.count.unwrap_or(1);
        let (text, at) = (self.buffer.shown(), self.buffer.cursor());
        let line = line_of(text, at);
        match command.act {
            Act::Move(Motion::Up) => (0..times).for_each(|_| self.key(KeyPress::Up)),
            Act::Move(Motion::Down) => (0..times).for_each(|_| self.key(KeyPress::Down)),
            Act::Move(motion) => {
                if let Some(there) = target(text, at, motion, command.count) {
                    self.moves();
                    self.go_to(there);
                }
            }
            Act::Operate(operator, of) => self.operate(operator, of, command.count),
            Act::Insert => self.insert_at(at),
            Act::Append => self.insert_at(right(text, at)),
            Act::InsertAtIndent => self.insert_at(indent(text, &line)),
            Act::AppendAtEnd => self.insert_at(line.end),
            Act::OpenBelow => self.open(line.end, line.end + 1),
            Act::OpenAbove => self.open(line.start, line.start),
            Act::Replace(with) => {
                if self.rewrite(times, |_| with) {
                    let last = left(self.buffer.shown(), self.buffer.cursor());
                    self.go_to(last);
                }
            }
            Act::SwitchCase => {
                let of_line = text[at..line.end].chars().count();
                self.rewrite(times.min(of_line), |c| match c.is_lowercase() {
                    true => c.to_uppercase().next().unwrap_or(c),
                    false => c.to_lowercase().next().unwrap_or(c),
                });
            }
            Act::PutBehind => self.put(times, Direction::End),
            Act::PutBefore => self.put(times, Direction::Start),
            Act::Undo => (0..times).for_each(|_| self.key(KeyPress::Edit(EditKey::Undo))),
        }
        if self.is_normal_mode() {
            // The cursor stands on a character, not behind the last one.
            let (text, at) = (self.buffer.shown(), self.buffer.cursor());
            let line = line_of(text, at);
            if at == line.end && at > line.start {
                let before = left(text, at);
                self.go_to(before);
            }
        }
    }

    fn go_to(&mut self, at: usize) {
        self.buffer.go_to(at);
    }

    fn insert_at(&mut self, at: usize) {
        self.moves();
        self.go_to(at);
        self.insert_mode();
    }

    /// A new line is made at one place, and text goes in at the other.
    fn open(&mut self, at: usize, text_at: usize) {
        self.go_to(at);
        self.insert("\n");
        self.insert_at(text_at);
    }

    /// Other characters in the place of these; the cursor goes behind them. False where the line has not so many.
    fn rewrite(&mut self, times: usize, with: impl Fn(char) -> char) -> bool {
        let (text, at) = (self.buffer.shown(), self.buffer.cursor());
        let old: Vec<char> = text[at..line_of(text, at).end].chars().take(times).collect();
        // A folded paste is no character to change.
        if old.len() < times || old.iter().any(|c| is_fold(*c)) {
            return false;
        }
        let length: usize = old.iter().map(|c| c.len_utf8()).sum();
        let new: String = old.into_iter().map(with).collect();
        self.before(Change::Whole);
        self.buffer.remove_to(at + length);
        self.buffer.insert(&new);
        true
    }

    fn operate(&mut self, operator: Operator, of: Target, count: Option<usize>) {
        let (text, at) = (self.buffer.shown(), self.buffer.cursor());
        let Some((mut range, is_of_lines)) = range(text, at, (operator, of), count) else { return };
        // The lines of a change stay as one empty line.
        let is_whole = is_of_lines && operator != Operator::Change;
        let mut taken = self.buffer.between(&range);
        if is_of_lines {
            taken.push('\n');
        }
        if is_whole && range.end < text.len() {
            range.end += 1;
        } else if is_whole && range.start > 0 {
            range.start -= 1;
        }
        self.kills.push(taken);
        match operator {
            Operator::Yank => {
                self.moves();
                if !is_of_lines {
                    self.go_to(range.start);
                }
            }
            Operator::Delete | Operator::Change => {
                self.before(Change::Whole);
                self.go_to(range.start);
                self.buffer.remove_to(range.end);
                if is_whole {
                    let line = line_of(self.buffer.shown(), self.buffer.cursor());
                    let at = indent(self.buffer.shown(), &line);
                    self.go_to(at);
                }
                if operator == Operator::Change {
                    self.insert_mode();
                }
            }
        }
    }

    /// Puts the text that was taken last behind or before the cursor; whole lines below or above its line.
    fn put(&mut self, times: usize, side: Direction) {
        let Some(text) = self.kills.get(0).map(|text| text.repeat(times.min(100))) else { return };
        let (shown, at) = (self.buffer.shown(), self.buffer.cursor());
        let line = line_of(shown, at);
        match (text.strip_suffix('\n'), side) {
            (Some(lines), Direction::End) => {
                self.go_to(line.end);
                self.insert(&format!("\n{lines}"));
                self.go_to(line.end + 1);
            }
            (Some(_), Direction::Start) => {
                self.go_to(line.start);
                self.insert(&text);
                self.go_to(line.start);
            }
            (None, side) => {
                let from = if side == Direction::End { right(shown, at) } else { at };
                self.go_to(from);
                self.insert(&text);
                let last = left(self.buffer.shown(), self.buffer.cursor());
                self.go_to(last);
            }
        }
    }
}

fn parse(typed: &str) -> Parsed {
    let (first, rest) = count(typed);
    let mut keys = rest.chars();
    let Some(key) = keys.next() else { return Parsed::Part };
    let rest = keys.as_str();
    let whole = |act| Parsed::Whole(VimCommand { count: first, act });
    let operator = match key {
        'd' => Operator::Delete,
        'c' => Operator::Change,
        'y' => Operator::Yank,
        _ => return of_one(key, rest).map_or_else(|other| other, whole),
    };
    let (second, rest) = count(rest);
    let both = first.map_or(second, |first| Some(first.saturating_mul(second.unwrap_or(1))));
    let whole = |of| {
        let count = both.map(|count| count.min(COUNT));
        Parsed::Whole(VimCommand { count, act: Act::Operate(operator, of) })
    };
    let mut keys = rest.chars();
    match (keys.next(), keys.next()) {
        (None, _) | (Some('i' | 'a'), None) => Parsed::Part,
        (Some(again), _) if again == key => whole(Target::Lines),
        (Some('i'), Some('w')) => whole(Target::InnerWord(WordKind::Small)),
        (Some('i'), Some('W')) => whole(Target::InnerWord(WordKind::Big)),
        (Some('a'), Some('w')) => whole(Target::AWord(WordKind::Small)),
        (Some('a'), Some('W')) => whole(Target::AWord(WordKind::Big)),
        (Some(first), _) => match motion(first, &rest[first.len_utf8()..]) {
            Ok(motion) => whole(Target::Motion(motion)),
            Err(other) => other,
        },
    }
}

/// The number at the beginning, and the rest. A 0 alone is a motion.
fn count(typed: &str) -> (Option<usize>, &str) {
    let is_count = typed.starts_with(|c: char| ('1'..='9').contains(&c));
    let digits = typed.bytes().take_while(u8::is_ascii_digit).count();
    match is_count {
        true => {
            (Some(typed[..digits].parse().map_or(COUNT, |n: usize| n.min(COUNT))), &typed[digits..])
        }
        false => (None, typed),
    }
}

/// A command without an operator.
fn of_one(key: char, rest: &str) -> Result<Act, Parsed> {
    let operate = |operator, motion| Act::Operate(operator, Target::Motion(motion));
    Ok(match key {
        'i' => Act::Insert,
        'a' => Act::Append,
        'I' => Act::InsertAtIndent,
        'A' => Act::AppendAtEnd,
        'o' => Act::OpenBelow,
        'O' => Act::OpenAbove,
        'x' => operate(Operator::Delete, Motion::Right),
        'X' => operate(Operator::Delete, Motion::Left),
        's' => operate(Operator::Change, Motion::Right),
        'D' => operate(Operator::Delete, Motion::LineEnd),
        'C' => operate(Operator::Change, Motion::LineEnd),
        'S' => Act::Operate(Operator::Change, Target::Lines),
        'Y' => Act::Operate(Operator::Yank, Target::Lines),
        '~' => Act::SwitchCase,
        'p' => Act::PutBehind,
        'P' => Act::PutBefore,
        'u' => Act::Undo,
        'r' => Act::Replace(rest.chars().next().ok_or(Parsed::Part)?),
        _ => Act::Move(motion(key, rest)?),
    })
}

fn motion(key: char, rest: &str) -> Result<Motion, Parsed> {
    let found = || rest.chars().next().ok_or(Parsed::Part);
    Ok(match key {
        'h' => Motion::Left,
        'l' | ' ' => Motion::Right,
        'k' => Motion::Up,
        'j' => Motion::Down,
        'w' => Motion::NextWord(WordKind::Small),
        'W' => Motion::NextWord(WordKind::Big),
        'b' => Motion::WordBack(WordKind::Small),
        'B' => Motion::WordBack(WordKind::Big),
        'e' => Motion::WordEnd(WordKind::Small),
        'E' => Motion::WordEnd(WordKind::Big),
        '0' => Motion::LineStart,
        '^' => Motion::Indent,
        '$' => Motion::LineEnd,
        'G' => Motion::LastLine,
        'g' if found()? == 'g' => Motion::FirstLine,
        'f' => Motion::Find(found()?, Direction::End, Stop::On),
        'F' => Motion::Find(found()?, Direction::Start, Stop::On),
        't' => Motion::Find(found()?, Direction::End, Stop::Beside),
        'T' => Motion::Find(found()?, Direction::Start, Stop::Beside),
        _ => return Err(Parsed::Unknown),
    })
}

/// The place that a motion leads to. None where there is none; rows up and down are the editor's.
fn target(text: &str, at: usize, motion: Motion, count: Option<usize>) -> Option<usize> {
    let times = count.unwrap_or(1);
    let line = line_of(text, at);
    let repeated = |step: &dyn Fn(usize) -> usize| (0..times).fold(at, |at, _| step(at));
    Some(match motion {
        Motion::Left => repeated(&|at| left(text, at)),
        Motion::Right => repeated(&|at| right(text, at)),
        Motion::NextWord(kind) => repeated(&|at| next_word(text, at, kind)),
        Motion::WordBack(kind) => repeated(&|at| word_back(text, at, kind)),
        Motion::WordEnd(kind) => repeated(&|at| word_end(text, at, kind)),
        Motion::LineStart => line.start,
        Motion::Indent => indent(text, &line),
        Motion::LineEnd => line.end,
        Motion::FirstLine => indent(text, &nth_line(text, count.unwrap_or(1))),
        Motion::LastLine => indent(text, &nth_line(text, count.unwrap_or(usize::MAX))),
        Motion::Find(c, way, stop) => find(text, at, (c, way, stop), times)?,
        Motion::Up | Motion::Down => return None,
    })
}

/// What an operator works on, and whether that is whole lines, given without their last line end.
fn range(
    text: &str,
    at: usize,
    (operator, of): (Operator, Target),
    count: Option<usize>,
) -> Option<(Range<usize>, bool)> {
    let times = count.unwrap_or(1);
    let line = line_of(text, at);
    let lines_to = |there: usize| {
        let other = line_of(text, there);
        Some((line.start.min(other.start)..line.end.max(other.end), true))
    };
    let below = |times| {
        let step = |at: usize, _| match line_of(text, at).end {
            end if end < text.len() => end + 1,
            _ => at,
        };
        (0..times).fold(at, step)
    };
    let motion = match of {
        Target::Lines => return lines_to(below(times - 1)),
        Target::InnerWord(kind) => return Some((word_at(text, at, kind), false)),
        Target::AWord(kind) => {
            let word = word_at(text, at, kind);
            let spaces = text[word.end..line.end].chars().take_while(|c| c.is_whitespace());
            let length: usize = spaces.map(char::len_utf8).sum();
            return Some((word.start..word.end + length, false));
        }
        Target::Motion(motion) => motion,
    };
    let on_word = text[at..].chars().next().is_some_and(|c| !c.is_whitespace());
    let there = match motion {
        Motion::Down if line.end == text.len() => return None,
        Motion::Up if line.start == 0 => return None,
        Motion::Down => return lines_to(below(times)),
        Motion::Up => {
            let up = |at: usize, _| line_of(text, at).start.saturating_sub(1);
            return lines_to((0..times).fold(at, up));
        }
        Motion::FirstLine | Motion::LastLine => return lines_to(target(text, at, motion, count)?),
        // As everybody expects, and vim does: the space behind a word stays.
        Motion::NextWord(kind) if operator == Operator::Change && on_word => {
            let end = (0..times).fold(at, |at, nth| match nth {
                0 => left(text, class_end(text, at, kind)).max(at),
                _ => word_end(text, at, kind),
            });
            right(text, end)
        }
        // The last word of a line ends at the line's end.
        Motion::NextWord(_) => {
            let there = target(text, at, motion, count)?;
            let crossed = text[at..there].contains('\n') && text[there..].trim_start() != "";
            let last = line_of(text, there).start.saturating_sub(1);
            if crossed && text[last..there].trim().is_empty() && last > at { last } else { there }
        }
        Motion::WordEnd(_) => right(text, target(text, at, motion, count)?),
        Motion::Find(_, Direction::End, _) => right(text, target(text, at, motion, count)?),
        Motion::Left
        | Motion::Right
        | Motion::WordBack(_)
        | Motion::LineStart
        | Motion::Indent
        | Motion::LineEnd
        | Motion::Find(_, Direction::Start, _) => target(text, at, motion, count)?,
    };
    (there != at).then_some((at.min(there)..at.max(there), false))
}

/// The line at this place, without its end.
fn line_of(text: &str, at: usize) -> Range<usize> {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    start..text[at..].find('\n').map_or(text.len(), |end| at + end)
}

/// Counted from 1; the last one where there are fewer.
fn nth_line(text: &str, number: usize) -> Range<usize> {
    let mut starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1));
    let last = text.rfind('\n').map_or(0, |end| end + 1);
    line_of(text, starts.nth(number.saturating_sub(1)).unwrap_or(last))
}

fn indent(text: &str, line: &Range<usize>) -> usize {
    let of_line = &text[line.clone()];
    line.start + of_line.find(|c: char| !c.is_whitespace()).unwrap_or(0)
}

/// The character before this place, in its line.
fn left(text: &str, at: usize) -> usize {
    let line = line_of(text, at);
    let mut chars = text[line.start..at].char_indices().rev();
    chars.find(|(_, c)| columns(*c) > 0).map_or(line.start, |(start, _)| line.start + start)
}

/// The place behind the character at this one, in its line.
fn right(text: &str, at: usize) -> usize {
    let line = line_of(text, at);
    let mut chars = text[at..line.end].char_indices().skip(1);
    chars.find(|(_, c)| columns(*c) > 0).map_or(line.end, |(end, _)| at + end)
}

/// Characters of one class in a row are a word; spaces are none.
fn class(c: char, kind: WordKind) -> u8 {
    match kind {
        _ if c.is_whitespace() => 0,
        _ if is_fold(c) => 3,
        WordKind::Big => 1,
        WordKind::Small if c.is_alphanumeric() || c == '_' || columns(c) == 0 => 1,
        WordKind::Small => 2,
    }
}

/// Behind the run of this place.
fn class_end(text: &str, at: usize, kind: WordKind) -> usize {
    let Some(here) = text[at..].chars().next() else { return at };
    let of = class(here, kind);
    text[at..].find(|c| class(c, kind) != of).map_or(text.len(), |length| at + length)
}

fn next_word(text: &str, at: usize, kind: WordKind) -> usize {
    let on_space = text[at..].chars().next().is_none_or(char::is_whitespace);
    let behind = if on_space { at } else { class_end(text, at, kind) };
    let rest = &text[behind..];
    behind + (rest.len() - rest.trim_start().len())
}

fn word_back(text: &str, at: usize, kind: WordKind) -> usize {
    let before = text[..at].trim_end();
    let Some(last) = before.chars().next_back() else { return 0 };
    let of = class(last, kind);
    let start = before.char_indices().rev().take_while(|(_, c)| class(*c, kind) == of).last();
    start.map_or(0, |(start, _)| start)
}

fn word_end(text: &str, at: usize, kind: WordKind) -> usize {
    let Some(here) = text[at..].chars().next() else { return at };
    let behind = at + here.len_utf8();
    let rest = &text[behind..];
    let start = behind + (rest.len() - rest.trim_start().len());
    if start == text.len() {
        return at;
    }
    left(text, class_end(text, start, kind))
}

/// The run at this place, of spaces too, within its line.
fn word_at(text: &str, at: usize, kind: WordKind) -> Range<usize> {
    let line = line_of(text, at);
    let Some(here) = text[at..line.end].chars().next() else { return at..at };
    let of = class(here, kind);
    let before = text[line.start..at].char_indices().rev();
    let start = before.take_while(|(_, c)| class(*c, kind) == of).last();
    let start = start.map_or(at, |(start, _)| line.start + start);
    start..class_end(text, at, kind).min(line.end)
}

fn find(
    text: &str,
    at: usize,
    (wanted, way, stop): (char, Direction, Stop),
    times: usize,
) -> Option<usize> {
    let line = line_of(text, at);
    let nth = times.checked_sub(1)?;
    match way {
        Direction::End => {
            let from = right(text, at);
            let mut found = text[from..line.end].match_indices(wanted);
            let there = from + found.nth(nth)?.0;
            Some(if stop == Stop::On { there } else { left(text, there) })
        }
        Direction::Start => {
            let mut found = text[line.start..at].rmatch_indices(wanted);
            let there = line.start + found.nth(nth)?.0;
            Some(if stop == Stop::On { there } else { right(text, there) })
        }
    }
}

#[cfg(test)]
#[path = "vim_tests.rs"]
mod tests;
