//! Files that a person pinned to a conversation: what of them the model is shown, and when.
//!
//! They stand at the front of the first message, as they were when they were laid down there, so
//! that what a vendor's cache holds stays the same. What changed since a model last saw it comes
//! with the next request and with that one alone. They are read by calls like any other `read`,
//! at the beginning of a turn and after a round that may have changed something. Pure.

use protocol::call::ToolResult;
use protocol::content::{FilesUpdated, UpdatePlace};

/// What stands before the files at the front.
const HEAD: &str = "Files that the user pinned to this conversation, as they were when they were \
                    put here. What changes in them is shown once, under FILES UPDATED.";

/// Whether the files must be read before the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    Due,
    Taken,
}

/// One pinned file. Each text is what its `read` came to, in words for the model.
#[derive(Debug)]
struct File {
    path: String,
    /// As it stands at the front.
    front: Option<String>,
    /// As the model saw it last, where that was behind the front.
    shown: Option<String>,
    /// As it was read last.
    now: Option<String>,
}

/// The pinned files of a conversation, in the order of pinning.
#[derive(Debug)]
pub(crate) struct Pinned {
    files: Vec<File>,
    look: Look,
    /// What goes with the next request.
    updated: Option<FilesUpdated>,
}

impl Pinned {
    pub(crate) fn new(paths: Vec<String>) -> Self {
        let mut pinned = Self { files: Vec::new(), look: Look::Due, updated: None };
        pinned.set(paths);
        pinned
    }

    /// These are pinned now. What is known of those that stay is kept.
    pub(crate) fn set(&mut self, paths: Vec<String>) {
        let mut files: Vec<File> = Vec::new();
        for path in paths {
            if files.iter().any(|file| file.path == path) {
                continue;
            }
            let known = self.files.iter().position(|file| file.path == path);
            files.push(match known {
                Some(at) => self.files.swap_remove(at),
                None => File { path, front: None, shown: None, now: None },
            });
        }
        self.files = files;
        self.updated = None;
        self.look = Look::Due;
    }

    /// Something may have changed.
    pub(crate) fn outdate(&mut self) {
        self.look = Look::Due;
    }

    /// The files to read before the next request; none where there is no need.
    pub(crate) fn to_read(&self) -> Vec<String> {
        match self.look {
            Look::Due => self.files.iter().map(|file| file.path.clone()).collect(),
            Look::Taken => Vec::new(),
        }
    }

    /// A file was read, or could not be.
    pub(crate) fn read(&mut self, path: &str, result: &ToolResult) {
        if let Some(file) = self.files.iter_mut().find(|file| file.path == path) {
            file.now = Some(match result.is_error {
                false => result.text.clone(),
                true => format!("(it cannot be shown: {})", result.text.trim()),
            });
        }
    }

    /// All were read: what is new is laid down at the front, what changed goes with the next
    /// request.
    pub(crate) fn all_read(&mut self) {
        self.look = match self.files.iter().all(|file| file.now.is_some()) {
            true => Look::Taken,
            false => Look::Due,
        };
        let mut changed = Vec::new();
        for file in &mut self.files {
            match (&file.front, &file.now) {
                (None, now) => file.front.clone_from(now),
                (Some(front), Some(now)) if file.shown.as_ref().unwrap_or(front) != now => {
                    changed.push(block(&file.path, now));
                }
                (Some(_), _) => {}
            }
        }
        let text = changed.concat();
        self.updated =
            (!text.is_empty()).then_some(FilesUpdated { text, place: UpdatePlace::BehindResults });
    }

    /// What goes with the next request alone.
    pub(crate) fn updated(&self) -> Option<FilesUpdated> {
        self.updated.clone()
    }

    /// The request was answered: the model has seen what went with it, which is returned.
    pub(crate) fn answered(&mut self) -> Option<FilesUpdated> {
        let updated = self.updated.take();
        if updated.is_some() {
            self.files.iter_mut().for_each(|file| file.shown.clone_from(&file.now));
        }
        updated
    }

    /// The answer was empty: the same goes with the next request too, inside the last result.
    pub(crate) fn show_inside(&mut self, updated: Option<FilesUpdated>) {
        self.updated =
            updated.map(|updated| FilesUpdated { place: UpdatePlace::InsideLastResult, ..updated });
    }

    /// The front is sent anew anyway: it may as well say how the files are now.
    pub(crate) fn lay_down(&mut self) {
        for file in self.files.iter_mut().filter(|file| file.now.is_some()) {
            file.front.clone_from(&file.now);
            file.shown = None;
        }
        self.updated = None;
    }

    /// What stands at the front of the first message.
    pub(crate) fn front(&self) -> Option<String> {
        let files = self.files.iter();
        let texts = files.filter_map(|file| Some(block(&file.path, file.front.as_ref()?)));
        let texts: String = texts.collect();
        (!texts.is_empty()).then(|| format!("{HEAD}\n\n{texts}"))
    }

    /// Bytes of a request that are about them.
    pub(crate) fn size(&self) -> usize {
        let updated = self.updated.as_ref().map_or(0, |updated| updated.text.len());
        self.front().map_or(0, |front| front.len()) + updated
    }
}

fn block(path: &str, text: &str) -> String {
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("<file path={path:?}>\n{text}{end}</file>\n")
}
