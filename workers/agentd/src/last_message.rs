//! The file of `--output-last-message`: opened before the run, written once after it. Used by
//! `run` only.
//!
//! A new text replaces the file in one step, so a reader sees the old text or the whole new one. The
//! directory is opened before the run: a call that replaces it by a link cannot move the file.

use crate::cli_error::CliError;
use client::{Moment, RunView, ShownOpening, Transcript, ViewOutput};
use protocol::client::ClientEvent;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The file, ready to be written.
#[derive(Debug)]
pub(crate) struct LastMessageFile {
    named: PathBuf,
    target: Target,
}

#[derive(Debug)]
enum Target {
    /// A file of this directory, replaced as a whole.
    InDirectory { dir: OwnedFd, name: OsString, mode: Option<Mode> },
    /// A pipe or device. It cannot be replaced, so the text is written into it.
    Stream(File),
}

impl LastMessageFile {
    /// Checks that the file can be written, and changes nothing.
    pub(crate) fn open(named: &Path) -> Result<Self, CliError> {
        let target = target(named).map_err(|why| {
            CliError::user(format!("--output-last-message {}: {why}", named.display()))
        })?;
        Ok(Self { named: named.to_owned(), target })
    }

    /// Writes the text of the last answer.
    pub(crate) fn save(self, text: &str) -> Result<(), CliError> {
        let saved = match self.target {
            Target::InDirectory { dir, name, mode } => replace(&dir, &name, mode, text),
            Target::Stream(mut file) => file.write_all(text.as_bytes()),
        };
        saved.map_err(|error| {
            CliError::user(format!(
                "--output-last-message {}: the answer was not written: {error}",
                self.named.display()
            ))
            .exit(crate::cli_exit::CliExit::Failed)
        })
    }

    /// A note for a run that has no answer to write.
    pub(crate) fn unwritten(&self) -> String {
        format!("agentd: {} was not written: the run has no answer", self.named.display())
    }
}

fn target(named: &Path) -> Result<Target, String> {
    let failed = |error: io::Error| error.to_string();
    let real = match named.metadata() {
        Ok(found) if found.is_dir() => return Err("it is a directory".to_owned()),
        Ok(found) if found.is_file() => {
            OpenOptions::new().write(true).open(named).map_err(failed)?;
            named.canonicalize().map_err(failed)?
        }
        // A pipe without a reader is refused, and does not block the run.
        Ok(_) => {
            let mut open = OpenOptions::new();
            let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits();
            let file = open.write(true).custom_flags(flags.cast_signed()).open(named);
            let file = file.map_err(failed)?;
            let flags = rustix::fs::fcntl_getfl(&file).map_err(|error| failed(error.into()))?;
            rustix::fs::fcntl_setfl(&file, flags - OFlags::NONBLOCK)
                .map_err(|error| failed(error.into()))?;
            return Ok(Target::Stream(file));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => named.to_owned(),
        Err(error) => return Err(failed(error)),
    };
    let name = real.file_name().ok_or("it names no file")?.to_owned();
    let parent = real.parent().filter(|parent| !parent.as_os_str().is_empty());
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY;
    let dir = rustix::fs::open(parent.unwrap_or(Path::new(".")), flags, Mode::empty())
        .map_err(|error| failed(error.into()))?;
    let mode = real.metadata().ok().map(|found| Mode::from_raw_mode(found.permissions().mode()));
    // Proves that a file can be made there, now and not after the run.
    let (draft, _) = create_draft(&dir, &name).map_err(failed)?;
    rustix::fs::unlinkat(&dir, draft, AtFlags::empty()).map_err(|error| failed(error.into()))?;
    Ok(Target::InDirectory { dir, name, mode })
}

/// A new file beside the one to replace.
fn create_draft(dir: &OwnedFd, name: &OsStr) -> io::Result<(OsString, File)> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut attempt = 0;
    loop {
        let mut draft = OsString::from(".");
        draft.push(name);
        draft.push(format!(".{}-{attempt}", std::process::id()));
        match rustix::fs::openat(dir, &draft, flags, Mode::from_raw_mode(0o666)) {
            Ok(file) => return Ok((draft, file.into())),
            Err(Errno::EXIST) if attempt < 100 => attempt += 1,
            Err(error) => return Err(error.into()),
        }
    }
}

fn replace(dir: &OwnedFd, name: &OsStr, mode: Option<Mode>, text: &str) -> io::Result<()> {
    let (draft, mut file) = create_draft(dir, name)?;
    let mut write = || -> io::Result<()> {
        file.write_all(text.as_bytes())?;
        if let Some(mode) = mode {
            rustix::fs::fchmod(&file, mode)?;
        }
        file.sync_all()?;
        Ok(rustix::fs::renameat(dir, &draft, dir, name)?)
    };
    write().inspect_err(|_| {
        // It is incomplete, and the error of the write is the one to report.
        let _ = rustix::fs::unlinkat(dir, &draft, AtFlags::empty());
    })
}

/// A view that also remembers the text of the last answer.
pub(crate) struct AnswerView {
    shown: Box<dyn RunView>,
    /// The text, if there was an answer with one.
    pub(crate) last: Option<String>,
}

impl AnswerView {
    pub(crate) fn around(shown: Box<dyn RunView>) -> Self {
        Self { shown, last: None }
    }
}

impl RunView for AnswerView {
    fn opening(&self) -> ShownOpening {
        self.shown.opening()
    }

    fn show(&mut self, transcript: &Transcript, moment: Moment<'_>) -> ViewOutput {
        if matches!(moment, Moment::Happened(ClientEvent::Answer { .. }))
            && !transcript.answer().is_empty()
        {
            self.last = Some(transcript.answer().to_owned());
        }
        self.shown.show(transcript, moment)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn names(dir: &Path) -> Vec<String> {
        let names = fs::read_dir(dir).unwrap();
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_keeps_its_mode_and_its_link() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        fs::write(&real, "old").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("real", &link).unwrap();
        let file = LastMessageFile::open(&link).unwrap();
        assert_eq!(fs::read_to_string(&real).unwrap(), "old", "nothing changes before the run");
        file.save("new").unwrap();
        assert_eq!(fs::read_to_string(&real).unwrap(), "new");
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(link.is_symlink());
        assert_eq!(names(dir.path()).len(), 2, "no draft is left");
    }

    #[test]
    fn a_directory_that_is_replaced_by_a_link_moves_no_file() {
        let root = tempfile::tempdir().unwrap();
        let (dir, other) = (root.path().join("out"), root.path().join("other"));
        fs::create_dir(&dir).unwrap();
        fs::create_dir(&other).unwrap();
        let file = LastMessageFile::open(&dir.join("answer")).unwrap();
        fs::rename(&dir, root.path().join("moved")).unwrap();
        symlink("other", &dir).unwrap();
        file.save("text").unwrap();
        assert!(names(&other).is_empty());
        assert_eq!(fs::read_to_string(root.path().join("moved/answer")).unwrap(), "text");
    }

    #[test]
    fn a_pipe_gets_the_text_and_one_without_a_reader_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
        let refused = LastMessageFile::open(&pipe).unwrap_err();
        assert!(refused.message().contains("pipe: "), "{}", refused.message());
        let path = pipe.clone();
        let reader = std::thread::spawn(move || fs::read_to_string(path).unwrap());
        let file = loop {
            match LastMessageFile::open(&pipe) {
                Ok(file) => break file,
                Err(_) => std::thread::yield_now(),
            }
        };
        file.save("text").unwrap();
        assert_eq!(reader.join().unwrap(), "text");
        assert!(!fs::metadata(&pipe).unwrap().is_file());
    }

    #[test]
    fn a_place_that_takes_no_file_is_refused_with_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        for (place, why) in [
            (dir.path().to_owned(), "it is a directory"),
            (dir.path().join("none/answer"), "No such file"),
            (PathBuf::from("/dev/full/answer"), "Not a directory"),
            (PathBuf::from(""), "it names no file"),
        ] {
            let refused = LastMessageFile::open(&place).unwrap_err();
            assert!(refused.message().contains(why), "{place:?}: {}", refused.message());
        }
        LastMessageFile::open(&dir.path().join("answer")).unwrap();
        assert!(names(dir.path()).is_empty(), "a check leaves nothing");
    }
}
