//! Changes several files together: if one change fails, the earlier ones are reverted. For
//! `apply_patch`.

use crate::edit::remove;
use crate::edit::replace::{LOADED_MAX, OriginalFile, load_original, replace};
use crate::engine::Engine;
use crate::failure::{FailureCode, ToolFailure};
use crate::files::protected::ProtectedSearch;
use crate::files::target_path::TargetPath;
use crate::tool_context::{ReportExtras, ToolContext};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A file as it was found, and as it will be.
#[derive(Debug)]
pub(crate) struct FileChange {
    pub target: TargetPath,
    /// Absent where nothing was there.
    pub before: Option<OriginalFile>,
    /// The new content; absent if the file is removed.
    pub after: Option<Vec<u8>>,
    /// The new mode bits, if they differ from the current ones.
    pub mode: Option<u32>,
    /// Directories that will be made for it, the deepest first.
    made: Vec<PathBuf>,
}

impl FileChange {
    /// A file as it is: nothing will change yet.
    ///
    /// # Errors
    /// As [`load_original`]; `too_large` where it could not be held to be put back.
    pub fn of(target: TargetPath, ctx: &ToolContext<'_>) -> Result<Self, ToolFailure> {
        let before = load_original(ctx, &target)?;
        if let Some(OriginalFile { bytes: None, size, .. }) = &before {
            return Err(ToolFailure::new(
                FailureCode::TooLarge,
                format!(
                    "{:?} has {size} bytes; the limit for a patch is {LOADED_MAX}",
                    target.named
                ),
                "Nothing was changed. Use delete or bash for it.",
            ));
        }
        let after = before.as_ref().and_then(|before| before.bytes.clone());
        let mode = before.as_ref().map(OriginalFile::mode);
        let missing = |dir: &&Path| dir.symlink_metadata().is_err();
        let made =
            target.real.ancestors().skip(1).take_while(missing).map(Path::to_owned).collect();
        Ok(Self { target, before, after, mode, made })
    }

    fn changes(&self) -> bool {
        self.before.as_ref().and_then(|before| before.bytes.as_ref()) != self.after.as_ref()
    }

    fn forward(&self) -> Result<(), ToolFailure> {
        match (&self.before, &self.after) {
            (before, Some(after)) => {
                replace(&self.target, before.as_ref(), after)?;
                match (before, self.mode) {
                    // A file that moves keeps its permissions.
                    (None, Some(mode)) => permit(&self.target, mode),
                    (None, None) | (Some(_), _) => Ok(()),
                }
            }
            (Some(before), None) => remove::remove_file(&self.target, before),
            (None, None) => Ok(()),
        }
    }

    /// True if the file has its original content.
    fn is_as_before(&self, plain: &ToolContext<'_>) -> bool {
        let now = self.now(plain).and_then(|target| load_original(plain, &target));
        let bytes =
            |found: &Option<OriginalFile>| found.as_ref().and_then(|found| found.bytes.clone());
        now.is_ok_and(|now| bytes(&now) == bytes(&self.before))
    }

    fn now(&self, plain: &ToolContext<'_>) -> Result<TargetPath, ToolFailure> {
        plain.resolve(&self.target.recorded())
    }

    fn back(&self, plain: &ToolContext<'_>) -> Result<(), ToolFailure> {
        let target = self.now(plain)?;
        let there = load_original(plain, &target)?;
        match (&self.before, there) {
            (Some(found), there) => {
                replace(&target, there.as_ref(), found.bytes.as_deref().unwrap_or_default())?;
                permit(&target, found.mode())
            }
            (None, Some(there)) => {
                remove::remove_file(&target, &there)?;
                for dir in &self.made {
                    // A directory that contains something else by now stays.
                    let _ = std::fs::remove_dir(dir);
                }
                Ok(())
            }
            (None, None) => Ok(()),
        }
    }
}

fn permit(target: &TargetPath, mode: u32) -> Result<(), ToolFailure> {
    let mode = std::fs::Permissions::from_mode(mode & 0o777);
    std::fs::set_permissions(&target.real, mode)
        .map_err(|error| ToolFailure::io("set the permissions of", &target.named, error))
}

/// Makes all changes, or none. Files are written before others are removed, so that nothing is lost
/// if the disk is full.
///
/// # Errors
/// The error of the first change that fails. The message names the files that could not be
/// reverted.
pub(crate) fn apply_all(changes: &[FileChange], ctx: &ToolContext<'_>) -> Result<(), ToolFailure> {
    let written = changes.iter().filter(|change| change.changes() && change.after.is_some());
    let removed = changes.iter().filter(|change| change.changes() && change.after.is_none());
    let mut done: Vec<&FileChange> = Vec::new();
    for change in written.chain(removed) {
        done.push(change);
        let Err(failure) = ctx.check_cancelled().and_then(|()| change.forward()) else { continue };
        let plain = ToolContext {
            scope: ctx.scope,
            judged: &[],
            cancel: ctx.cancel,
            command: None,
            engine: Engine::Without,
            denied: prompts::DeniedReads::NONE,
            max_chars: ctx.max_chars,
            protected: ProtectedSearch::default(),
            extras: ReportExtras::default(),
        };
        let stuck: Vec<&str> = done
            .iter()
            .rev()
            .filter(|change| !change.is_as_before(&plain))
            .filter_map(|change| change.back(&plain).err().map(|_| change.target.named.as_str()))
            .collect();
        let all = match stuck.is_empty() {
            true => "nothing was changed".to_owned(),
            false => format!(
                "these files are changed although the call failed, check them: {}",
                stuck.join(", ")
            ),
        };
        return Err(match failure.code == FailureCode::Stale && stuck.is_empty() {
            true => failure,
            false => ToolFailure { message: format!("{}; {all}", failure.message), ..failure },
        });
    }
    Ok(())
}
