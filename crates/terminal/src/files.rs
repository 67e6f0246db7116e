//! The names of a project's files, read in the background.

use client::ScreenInput;
use std::path::PathBuf;
use std::sync::mpsc::SyncSender;

/// Names that are listed. A person who needs more types the name.
const MOST: usize = 100_000;

/// Sends the names, relative to the project and without those that its ignore files name.
pub(crate) fn list(project: PathBuf, inputs: SyncSender<ScreenInput>) {
    std::thread::spawn(move || {
        let walk = ignore::WalkBuilder::new(&project).hidden(false).require_git(false).build();
        let mut names: Vec<String> = walk
            .filter_map(Result::ok)
            .filter_map(|entry| {
                let below = entry.path().strip_prefix(&project).ok()?.to_str()?.to_owned();
                let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
                let inside = !below.is_empty() && below != ".git" && !below.starts_with(".git/");
                inside.then(|| if is_dir { below + "/" } else { below })
            })
            .take(MOST)
            .collect();
        names.sort();
        let _ = inputs.send(ScreenInput::Files(names));
    });
}
