//! Pinned files: which of them must be read before a request, and where the request carries each.
//!
//! Each request carries the newest text of each file once. An unchanged file stays at the front of
//! the first message, so that a vendor's prompt cache keeps its prefix. After a change, one line
//! replaces it there, and its text moves to the end of the newest message until the conversation is
//! compacted. Pure.

use protocol::call::{CallOrigin, Outcome, ToolResult};
use protocol::content::{FilesUpdated, UpdatePosition};
use protocol::context::{Compaction, SummaryStep};
use protocol::session::{FileStamp, PinnedStamp, SessionEvent};
use std::collections::HashMap;

/// Text before the files at the front.
const HEAD: &str = "Files that the user pinned to this conversation, each with its current text. The \
                    text of a file that changes moves to the end of the newest message, under FILES \
                    UPDATED.";
/// Text at the front in place of a changed file.
const POINTER: &str = "(changed since; its current text is at the end, under FILES UPDATED)";

/// How a request finds the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PinnedState {
    /// All must be read: a call may have changed them without a trace.
    Nothing,
    /// The stamps tell which must be read.
    Before,
    /// Their stamps were taken for this request.
    Now,
}

/// Where the request carries a file.
#[derive(Debug, Clone, PartialEq, Eq)]
enum TurnRound {
    /// At the front, in this version, once it has been read.
    Front(Option<String>),
    /// At the end.
    End,
}

/// One pinned file.
#[derive(Debug)]
struct PinnedFile {
    path: String,
    place: TurnRound,
    /// The newest version: the text for the model; in a replay, the journal's digest of it.
    now: Option<String>,
    /// Taken before the newest version was read.
    stamp: FileStamp,
}

impl PinnedFile {
    fn new(path: String) -> Self {
        Self { path, place: TurnRound::Front(None), now: None, stamp: FileStamp::Unknown }
    }

    /// Puts the newest version where the request carries it.
    fn settle(&mut self) {
        match &self.place {
            TurnRound::Front(None) => self.place = TurnRound::Front(self.now.clone()),
            TurnRound::Front(front) if *front != self.now => self.place = TurnRound::End,
            TurnRound::Front(_) | TurnRound::End => {}
        }
    }
}

/// The pinned files of a conversation, in the order of pinning.
#[derive(Debug)]
pub(crate) struct PinnedFiles {
    files: Vec<PinnedFile>,
    known: PinnedState,
    /// Position of changed files' text in the next request.
    end: UpdatePosition,
    /// Calls of a replay that read one: the file of each.
    replayed: HashMap<u32, String>,
    /// How often their stamps were asked for.
    checks: u32,
}

impl PinnedFiles {
    pub(crate) fn new(paths: Vec<String>) -> Self {
        let mut pinned = Self {
            files: Vec::new(),
            known: PinnedState::Nothing,
            end: UpdatePosition::BehindResults,
            replayed: HashMap::new(),
            checks: 0,
        };
        pinned.set(paths);
        pinned
    }

    /// Sets the pinned files. Versions of files that stay pinned are kept.
    pub(crate) fn set(&mut self, paths: Vec<String>) {
        let mut files: Vec<PinnedFile> = Vec::new();
        for path in paths {
            if files.iter().any(|file| file.path == path) {
                continue;
            }
            let old = self.files.iter().position(|file| file.path == path);
            files.push(old.map_or_else(|| PinnedFile::new(path), |at| self.files.swap_remove(at)));
        }
        self.files = files;
        self.known = PinnedState::Nothing;
    }

    /// The number of the newest question for stamps.
    pub(crate) fn check(&self) -> u32 {
        self.checks
    }

    /// The number of the next one.
    pub(crate) fn next_check(&mut self) -> u32 {
        self.checks = self.checks.saturating_add(1);
        self.checks
    }

    /// A call may have changed any of them.
    pub(crate) fn outdate(&mut self) {
        self.known = PinnedState::Nothing;
    }

    /// The files whose stamps the next request needs.
    pub(crate) fn to_stat(&self) -> Vec<String> {
        match self.known {
            PinnedState::Now => Vec::new(),
            PinnedState::Nothing | PinnedState::Before => {
                self.files.iter().map(|file| file.path.clone()).collect()
            }
        }
    }

    /// Takes the stamps in. Returns the files to read.
    pub(crate) fn stamped(&mut self, began: i64, stamps: Vec<PinnedStamp>) -> Vec<String> {
        let mut stamps: HashMap<_, _> = stamps.into_iter().map(|it| (it.file, it.stamp)).collect();
        let mut due = Vec::new();
        for file in &mut self.files {
            let stamp = stamps.remove(&file.path).unwrap_or(FileStamp::Unknown);
            let unchanged = self.known == PinnedState::Before
                && file.now.is_some()
                && stamp != FileStamp::Unknown
                && stamp == file.stamp;
            if unchanged {
                continue;
            }
            due.push(file.path.clone());
            file.stamp = match stamp {
                FileStamp::Found(found) if !found.is_settled(began) => FileStamp::Unknown,
                FileStamp::Found(_) | FileStamp::Missing | FileStamp::Unknown => stamp,
            };
        }
        self.known = PinnedState::Now;
        due
    }

    /// A file was read, or could not be.
    pub(crate) fn read(&mut self, path: &str, result: &ToolResult) {
        if let Some(file) = self.files.iter_mut().find(|file| file.path == path) {
            file.now = Some(version(result));
            if !is_an_answer(&result.outcome) {
                file.stamp = FileStamp::Unknown;
            }
        }
    }

    /// All that were due have been read.
    pub(crate) fn all_read(&mut self) {
        self.files.iter_mut().for_each(PinnedFile::settle);
    }

    /// The digest from the journal, before the end of the replay.
    pub(crate) fn replay(&mut self, happened: &SessionEvent) {
        match happened {
            SessionEvent::Called { call } if call.origin == CallOrigin::PinnedRead => {
                self.replayed.insert(call.id.number, file_of(&call.input));
            }
            SessionEvent::Result { call, origin: CallOrigin::PinnedRead, result, .. } => {
                if let Some(path) = self.replayed.remove(&call.number) {
                    self.read(&path, result);
                    self.all_read();
                }
            }
            SessionEvent::Compacted(
                Compaction::Cut { .. } | Compaction::Summary(SummaryStep::Written { .. }),
            ) => {
                self.lay_down();
            }
            SessionEvent::Compacted(Compaction::Summary(
                SummaryStep::Asked { .. } | SummaryStep::Failed { .. } | SummaryStep::Edited { .. },
            )) => {}
            SessionEvent::Called { .. }
            | SessionEvent::Result { .. }
            | SessionEvent::BackgroundEnded { .. }
            | SessionEvent::Prompt { .. }
            | SessionEvent::Answer { .. }
            | SessionEvent::Joined { .. }
            | SessionEvent::TurnEnded { .. } => {}
        }
    }

    /// The replay is over: each file keeps its place, and digests are no texts.
    pub(crate) fn replayed(&mut self) {
        for file in &mut self.files {
            file.now = None;
            if let TurnRound::Front(_) = file.place {
                file.place = TurnRound::Front(None);
            }
        }
        self.replayed = HashMap::new();
    }

    /// A request went out: the next one needs stamps of its own.
    pub(crate) fn asked(&mut self) {
        if self.known == PinnedState::Now {
            self.known = PinnedState::Before;
        }
    }

    /// The request was answered, or a turn begins.
    pub(crate) fn show_at_end(&mut self) {
        self.end = UpdatePosition::BehindResults;
    }

    /// The answer was empty: the next request carries changed files inside the last result.
    pub(crate) fn show_inside(&mut self) {
        self.end = UpdatePosition::InsideLastResult;
    }

    /// The front is sent anew anyway, so it takes the newest version of each file.
    pub(crate) fn lay_down(&mut self) {
        for file in &mut self.files {
            file.place = TurnRound::Front(file.now.clone());
        }
    }

    /// The text at the front of the first message.
    pub(crate) fn front(&self) -> Option<String> {
        let blocks = self.files.iter().filter_map(|file| match &file.place {
            TurnRound::Front(text) => Some(block(&file.path, text.as_ref()?)),
            TurnRound::End => Some(block(&file.path, POINTER)),
        });
        let blocks: String = blocks.collect();
        (!blocks.is_empty()).then(|| format!("{HEAD}\n\n{blocks}"))
    }

    /// The text at the end of the newest message.
    pub(crate) fn updated(&self) -> Option<FilesUpdated> {
        let changed = self.files.iter().filter(|file| file.place == TurnRound::End);
        let blocks = changed.filter_map(|file| Some(block(&file.path, file.now.as_ref()?)));
        let text: String = blocks.collect();
        (!text.is_empty()).then_some(FilesUpdated { text, place: self.end })
    }

    /// The number of them.
    pub(crate) fn count(&self) -> usize {
        self.files.len()
    }

    /// Those whose text the next request may have although it was not read yet.
    pub(crate) fn unread(&self) -> Vec<String> {
        let unread = self.files.iter().filter(|file| file.now.is_none());
        unread.map(|file| file.path.clone()).collect()
    }

    /// Bytes of a request that are about them.
    pub(crate) fn size(&self) -> usize {
        let updated = self.updated().map_or(0, |updated| updated.text.len());
        self.front().map_or(0, |front| front.len()) + updated
    }
}

/// The arguments of the call that reads a pinned file.
pub(crate) fn input(path: &str) -> String {
    serde_json::json!({ "path": path, "raw": true }).to_string()
}

/// The file that such a call reads.
pub(crate) fn file_of(input: &str) -> String {
    let input: serde_json::Value = serde_json::from_str(input).unwrap_or_default();
    input["path"].as_str().unwrap_or_default().to_owned()
}

/// The version of a file that a read came to.
fn version(result: &ToolResult) -> String {
    match result.is_error {
        false if !result.images.is_empty() => {
            "(it cannot be shown: only text is pinned. A prompt shows an image with @)".to_owned()
        }
        false => result.text.clone(),
        true => format!("(it cannot be shown: {})", result.text.trim()),
    }
}

/// True if the outcome gives the file's content. Otherwise the file is read again before the next
/// request.
fn is_an_answer(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Done
        | Outcome::Failed
        | Outcome::Denied
        | Outcome::Refused { .. }
        | Outcome::Invalid => true,
        Outcome::Exited { .. }
        | Outcome::Signalled { .. }
        | Outcome::TimedOut
        | Outcome::Confined { .. }
        | Outcome::OutOfMemory
        | Outcome::Crashed
        | Outcome::Interrupted
        | Outcome::NeverStarted => false,
    }
}

fn block(path: &str, text: &str) -> String {
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("<file path={path:?}>\n{text}{end}</file>\n")
}
