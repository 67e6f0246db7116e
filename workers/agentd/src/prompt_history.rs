//! The prompts that terminals sent to a project's sessions, for Up and Ctrl-R: one file for each project,
//! `history/PROJECT.jsonl` in the state directory, and a lock beside it. Terminals write it, supervisors do not. Only its
//! user can read it.

use nix::libc::{O_NOFOLLOW, O_NONBLOCK};
use protocol::ids::SessionId;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Bytes of a file; above it, the older half goes.
const FILE_BYTES: usize = 1 << 20;
/// Bytes of a prompt that is kept. The journal has longer ones.
const PROMPT_BYTES: usize = 64 << 10;

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
struct SentPrompt {
    session: String,
    text: String,
}

/// What is read of a line of any build.
#[derive(Deserialize)]
struct PromptOwner {
    session: String,
}

/// The prompts of one project.
#[derive(Debug)]
pub(crate) struct PromptHistory {
    file: PathBuf,
}

impl PromptHistory {
    /// Those of the project with this real path.
    pub(crate) fn of(state: &Path, project: &Path) -> Self {
        let name = format!("{}.jsonl", config::project_dir_name(project));
        Self { file: dir(state).join(name) }
    }

    /// All that are kept, the newest last.
    pub(crate) fn prompts(&self) -> Vec<String> {
        let bytes = read(&self.file).unwrap_or_default();
        let sent = lines(&bytes).filter_map(|line| serde_json::from_slice(line).ok());
        sent.map(|sent: SentPrompt| sent.text).collect()
    }

    /// Adds one.
    pub(crate) fn add(&self, session: &SessionId, text: &str) -> io::Result<()> {
        if text.len() > PROMPT_BYTES {
            return Ok(());
        }
        if let Some(dir) = self.file.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        }
        let _lock = lock(&self.file)?;
        let sent = SentPrompt { session: session.0.clone(), text: text.to_owned() };
        if fs::symlink_metadata(&self.file).is_ok_and(|it| it.len() > FILE_BYTES as u64) {
            let old = read(&self.file)?;
            let mut bytes = 0;
            let all: Vec<&[u8]> = lines(&old).collect();
            let newer = all.iter().rev().take_while(|line| {
                bytes += line.len();
                bytes < FILE_BYTES / 2
            });
            replace(&self.file, &all[all.len() - newer.count()..])?;
        }
        // A line that a crash cut short ends before this one begins.
        let line = format!("\n{}", serde_json::to_string(&sent)?);
        open(OpenOptions::new().append(true).create(true), &self.file)?.write_all(line.as_bytes())
    }
}

/// Removes the prompts of these sessions. What cannot be read is left as it is, and named last.
pub(crate) fn forget(state: &Path, sessions: &[&SessionId]) -> io::Result<()> {
    let entries = match fs::read_dir(dir(state)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    let mut failed = Ok(());
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if !is_file || path.extension().is_none_or(|it| it != "jsonl") {
            continue;
        }
        if let Err(error) = forget_in(&path, sessions) {
            failed = Err(io::Error::new(error.kind(), format!("{}: {error}", path.display())));
        }
    }
    failed
}

fn forget_in(file: &Path, sessions: &[&SessionId]) -> io::Result<()> {
    let _lock = lock(file)?;
    // With prompts, where a crash came before its renaming.
    let _ = fs::remove_file(new_file(file));
    let text = read(file)?;
    let others = lines(&text).filter(|line| !sessions.iter().any(|it| is_of(line, it)));
    let others: Vec<&[u8]> = others.collect();
    if others.len() < lines(&text).count() {
        replace(file, &others)?;
    }
    Ok(())
}

/// True for a line that names the session, also where a crash cut it short.
fn is_of(line: &[u8], session: &SessionId) -> bool {
    match serde_json::from_slice::<PromptOwner>(line) {
        Ok(owner) => owner.session == session.0,
        Err(_) => line.starts_with(format!(r#"{{"session":"{}","#, session.0).as_bytes()),
    }
}

fn dir(state: &Path) -> PathBuf {
    state.join("history")
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

/// Opens a regular file, and nothing that leads or waits elsewhere.
fn open(options: &mut OpenOptions, file: &Path) -> io::Result<File> {
    let opened = options.mode(0o600).custom_flags(O_NOFOLLOW | O_NONBLOCK).open(file)?;
    match opened.metadata()?.is_file() {
        true => Ok(opened),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
    }
}

/// Who has it may change the file, which may be another one behind it.
fn lock(file: &Path) -> io::Result<File> {
    let lock = open(OpenOptions::new().write(true).create(true), &file.with_extension("lock"))?;
    lock.lock()?;
    Ok(lock)
}

fn read(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(OpenOptions::new().read(true), file)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn new_file(file: &Path) -> PathBuf {
    file.with_extension("new")
}

/// The file gets these lines instead: all of them, or it stays as it is. Its lock is held.
fn replace(file: &Path, lines: &[&[u8]]) -> io::Result<()> {
    let new = new_file(file);
    let _ = fs::remove_file(&new);
    let mut out = open(OpenOptions::new().write(true).create_new(true), &new)?;
    let text = lines.iter().flat_map(|line| [b"\n", *line].concat());
    out.write_all(&text.collect::<Vec<u8>>())?;
    fs::rename(&new, file)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use nix::sys::stat::Mode;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    #[test]
    fn prompts_come_back_by_project_and_only_their_user_can_read_them() {
        let state = tempfile::tempdir().unwrap();
        let one = PromptHistory::of(state.path(), Path::new("/p/one"));
        let other = PromptHistory::of(state.path(), Path::new("/q/one"));
        let (a, b) = (SessionId("a".to_owned()), SessionId("b".to_owned()));
        assert!(one.prompts().is_empty());
        one.add(&a, "first\nof two lines").unwrap();
        other.add(&b, "elsewhere").unwrap();
        one.add(&b, "second").unwrap();
        // A crash in the middle of a line.
        let mut cut = OpenOptions::new().append(true).open(&one.file).unwrap();
        cut.write_all(b"\n{\"session\":\"a\",\"te").unwrap();
        one.add(&a, "third").unwrap();
        assert_eq!(one.prompts(), ["first\nof two lines", "second", "third"]);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&one.file), mode(&dir(state.path()))), (0o600, 0o700));
        forget(state.path(), &[&a]).unwrap();
        assert_eq!(one.prompts(), ["second"]);
        assert!(
            !fs::read_to_string(&one.file).unwrap().contains(r#""a""#),
            "the cut line is gone too"
        );
        assert_eq!(other.prompts(), ["elsewhere"]);
        forget(state.path(), &[&b]).unwrap();
        assert!(one.prompts().is_empty() && other.prompts().is_empty());
    }

    #[test]
    fn the_newest_prompts_stay_and_no_huge_one_is_kept() {
        let state = tempfile::tempdir().unwrap();
        let (history, session) =
            (PromptHistory::of(state.path(), Path::new("/p")), SessionId("a".to_owned()));
        let filler = "x".repeat(PROMPT_BYTES - 8);
        for number in 0..40 {
            history.add(&session, &format!("{number} {filler}")).unwrap();
            assert!(fs::metadata(&history.file).unwrap().len() < 2 * FILE_BYTES as u64);
        }
        history.add(&session, &"y".repeat(PROMPT_BYTES + 1)).unwrap();
        let prompts = history.prompts();
        assert!(prompts.last().unwrap().starts_with("39 "), "{}", prompts.len());
        assert!((4..20).contains(&prompts.len()), "{}", prompts.len());
        assert!(prompts.windows(2).all(|two| two[0] != two[1]));
        assert!(forget(Path::new("/nowhere"), &[&session]).is_ok());
    }

    #[test]
    fn forgetting_leaves_what_it_does_not_know() {
        let state = tempfile::tempdir().unwrap();
        let history = PromptHistory::of(state.path(), Path::new("/p"));
        let (a, b) = (SessionId("a".to_owned()), SessionId("b".to_owned()));
        history.add(&a, "removed").unwrap();
        history.add(&b, "kept").unwrap();
        let newer = br#"
{"session":{"id":"b"},"parts":["of a newer build"]}
{"session":"a","parts":["removed too"]}"#;
        let mut file = OpenOptions::new().append(true).open(&history.file).unwrap();
        file.write_all(newer).unwrap();
        file.write_all(b"\n\xff").unwrap();
        // Nothing of this is the history of a project.
        let at = |name: &str| dir(state.path()).join(name);
        let elsewhere = state.path().join("elsewhere");
        fs::copy(&history.file, &elsewhere).unwrap();
        symlink(&elsewhere, at("link.jsonl")).unwrap();
        fs::create_dir(at("directory.jsonl")).unwrap();
        nix::unistd::mkfifo(&at("fifo.jsonl"), Mode::from_bits_truncate(0o600)).unwrap();
        fs::copy(&history.file, at("notes.txt")).unwrap();
        // One that cannot be locked does not keep the others.
        fs::write(at("bad.jsonl"), "").unwrap();
        fs::create_dir(at("bad.lock")).unwrap();
        let failed = forget(state.path(), &[&a]).unwrap_err().to_string();
        assert!(failed.contains("bad.jsonl"), "{failed}");
        let left = String::from_utf8_lossy(&fs::read(&history.file).unwrap()).into_owned();
        assert!(left.contains("kept") && left.contains("of a newer build"), "{left}");
        assert!(!left.contains("removed"), "{left}");
        assert!(read(&history.file).unwrap().contains(&0xff), "bytes stay");
        for other in [elsewhere, at("notes.txt")] {
            assert!(String::from_utf8_lossy(&fs::read(other).unwrap()).contains("removed"));
        }
        for not_read in ["link", "directory", "fifo"] {
            let file = at(&format!("{not_read}.jsonl"));
            assert_eq!(PromptHistory { file: file.clone() }.prompts(), [""; 0], "{not_read}");
            assert!(PromptHistory { file }.add(&a, "x").is_err(), "{not_read}");
        }
    }

    #[test]
    fn a_crash_before_the_renaming_costs_no_prompt_and_leaves_none_behind() {
        let state = tempfile::tempdir().unwrap();
        let history = PromptHistory::of(state.path(), Path::new("/p"));
        let (a, b) = (SessionId("a".to_owned()), SessionId("b".to_owned()));
        history.add(&a, "first").unwrap();
        history.add(&b, "second").unwrap();
        let before = fs::metadata(&history.file).unwrap();
        fs::copy(&history.file, new_file(&history.file)).unwrap();
        assert_eq!(history.prompts(), ["first", "second"]);
        forget(state.path(), &[&a]).unwrap();
        assert_eq!(history.prompts(), ["second"]);
        let after = fs::metadata(&history.file).unwrap();
        assert_ne!(before.ino(), after.ino(), "the old file was never empty");
        assert!(!new_file(&history.file).exists());
    }
}
