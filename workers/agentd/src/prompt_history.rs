//! The prompts that terminals sent to a project's sessions, for Up and Ctrl-R: one file for each project,
//! `history/PROJECT.jsonl` in the state directory. Terminals write it, supervisors do not. Only its user can read it.

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
        let text = fs::read(&self.file).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        text.lines().filter_map(parsed).map(|sent| sent.text).collect()
    }

    /// Adds one.
    pub(crate) fn add(&self, session: &SessionId, text: &str) -> io::Result<()> {
        if text.len() > PROMPT_BYTES {
            return Ok(());
        }
        if let Some(dir) = self.file.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        }
        let mut options = OpenOptions::new();
        let mut file = options.read(true).append(true).create(true).mode(0o600).open(&self.file)?;
        file.lock()?;
        let sent = SentPrompt { session: session.0.clone(), text: text.to_owned() };
        // A line that a crash cut short ends before this one begins.
        let line = format!("\n{}", serde_json::to_string(&sent)?);
        if file.metadata()?.len() > FILE_BYTES as u64 {
            let text = read(&mut file)?;
            let mut bytes = 0;
            let newer = text.lines().rev().take_while(|line| {
                bytes += line.len();
                bytes < FILE_BYTES / 2
            });
            let newer: Vec<&str> = newer.collect();
            replace(&mut file, newer.into_iter().rev())?;
        }
        file.write_all(line.as_bytes())
    }
}

/// Removes the prompts of these sessions.
pub(crate) fn forget(state: &Path, sessions: &[&SessionId]) -> io::Result<()> {
    let entries = match fs::read_dir(dir(state)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        let mut file = OpenOptions::new().read(true).append(true).open(path)?;
        file.lock()?;
        let text = read(&mut file)?;
        let is_removed = |sent: &SentPrompt| sessions.iter().any(|it| it.0 == sent.session);
        let is_of_others = |line: &&str| parsed(line).is_some_and(|sent| !is_removed(&sent));
        let all = text.lines().filter(|line| !line.is_empty());
        let others: Vec<&str> = all.clone().filter(is_of_others).collect();
        if others.len() < all.count() {
            replace(&mut file, others.into_iter())?;
        }
    }
    Ok(())
}

fn dir(state: &Path) -> PathBuf {
    state.join("history")
}

fn parsed(line: &str) -> Option<SentPrompt> {
    serde_json::from_str(line).ok()
}

fn read(file: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The file gets these lines instead. Its lock is held.
fn replace<'a>(file: &mut File, lines: impl Iterator<Item = &'a str>) -> io::Result<()> {
    let text: String = lines.map(|line| format!("\n{line}")).collect();
    file.set_len(0)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::PermissionsExt;

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
}
