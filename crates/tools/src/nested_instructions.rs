//! The instructions of nested directories, for the model beside the result of a call that reads or
//! edits a file there. The runner of that call reads them, because its cage already stands and reaches
//! no file that the call's tool does not. Used by `run`; the supervisor gives each to the model once
//! in a session.

use crate::files::precondition;
use prompts::{
    DeniedReads, INSTRUCTION_BYTES, INSTRUCTION_NAMES, Instructions, instructions_of,
    nested_directories,
};
use protocol::call::{DirectoryInstructions, FileEffect, FileVersion};
use protocol::hidden::{for_model, line_for_model};
use sandbox::CallScope;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Most directories of one call: those nearest to its files. Each text is bounded as the project's own.
const DIRECTORIES: usize = 8;

/// Those for the files of a call, the outermost first.
pub(crate) fn of(
    effects: &[FileEffect],
    scope: &CallScope,
    denied: DeniedReads<'_>,
) -> Vec<DirectoryInstructions> {
    let files = effects.iter().filter_map(touched);
    let dirs = files.flat_map(|file| nested_directories(&scope.project, file));
    let dirs: BTreeSet<PathBuf> = dirs.filter(|dir| scope.contains(dir)).collect();
    let mut dirs: Vec<PathBuf> = dirs.into_iter().collect();
    dirs.sort_by_key(|dir| dir.components().count());
    let nearest = dirs.split_off(dirs.len().saturating_sub(DIRECTORIES));
    nearest.iter().filter_map(|dir| read(dir, scope, denied)).collect()
}

/// The file that an effect reads or edits.
fn touched(effect: &FileEffect) -> Option<&Path> {
    match effect {
        FileEffect::Read(path) | FileEffect::Written(path) | FileEffect::Created(path) => {
            Some(Path::new(path))
        }
        FileEffect::Deleted(_) | FileEffect::Ran(_) | FileEffect::Signed { .. } => None,
    }
}

fn read(dir: &Path, scope: &CallScope, denied: DeniedReads<'_>) -> Option<DirectoryInstructions> {
    let (found, troubles) = instructions_of(dir, &scope.project, INSTRUCTION_BYTES, denied);
    let shown = |path: &Path| line_for_model(&scope.shown(path).to_string_lossy()).into_owned();
    let troubles = troubles.into_iter().map(|(name, why)| {
        line_for_model(&format!("{} is not followed: {why}", shown(&dir.join(name)))).into_owned()
    });
    let imports = found.as_ref().map(Instructions::import_notes).unwrap_or_default();
    let imports = imports.into_iter().map(|note| line_for_model(&note).into_owned());
    let troubles: Vec<String> = imports.chain(troubles).collect();
    let Some(Instructions { name, text, .. }) = found else {
        let path = dir.join(INSTRUCTION_NAMES[0]).to_string_lossy().into_owned();
        let file = FileVersion { path, digest: String::new() };
        let unusable = DirectoryInstructions { file, text: String::new(), troubles };
        return (!unusable.troubles.is_empty()).then_some(unusable);
    };
    let file = dir.join(name);
    let digest = precondition::digest_reader(File::open(&file).ok()?).ok()?;
    let (below, from) = (shown(dir), shown(&file));
    let text = format!(
        "# Instructions of this project for {below}/, from {from}\n\nThey hold for the files below \
         {below}/, before those of the directories above it.\n\n{}\n",
        for_model(&text)
    );
    let file = FileVersion { path: file.to_string_lossy().into_owned(), digest };
    Some(DirectoryInstructions { file, text, troubles })
}
