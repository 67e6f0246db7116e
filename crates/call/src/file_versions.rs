//! The file versions that the model knows: the digest of each file as a call last read or wrote it.
//! The journal holds them, so they outlive the supervisor. The call machine refuses an edit of a
//! file that has changed since, and the model is given the instructions of a nested directory once.

use journal::{Digest, FileVersionRecord, JournalEntry, JournalRecord};
use protocol::call::{FileVersion, ProbeReport, RunReport};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Digests by real path, and the files with instructions, which running calls share.
#[derive(Debug, Clone, Default)]
pub struct FileVersions(HashMap<String, Digest>, Arc<Mutex<BTreeSet<String>>>);

impl FileVersions {
    /// The versions that a journal's records give.
    pub fn of(entries: &[JournalEntry]) -> Self {
        let mut seen = Self::default();
        for entry in entries {
            seen.apply(&entry.record);
        }
        seen
    }

    /// A record that was written.
    pub fn apply(&mut self, record: &JournalRecord) {
        for file in record.seen_files() {
            self.0.insert(file.path.clone(), file.digest);
            self.tell(&file.path);
        }
    }

    /// For a call that may change files unread.
    pub fn without_digests(&self) -> Self {
        Self(HashMap::new(), self.1.clone())
    }

    /// The model gets this file with instructions now. False if it has had it.
    pub fn tell(&self, path: &str) -> bool {
        let name = Path::new(path).file_name();
        let is_one = |known: &&str| name.is_some_and(|name| name == *known);
        prompts::INSTRUCTION_NAMES.iter().any(is_one)
            && self.1.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned())
    }

    /// The first path of a call whose file has changed since. A deleted file fails elsewhere.
    pub fn first_changed<'a>(&self, probe: &'a ProbeReport) -> Option<&'a str> {
        let differs = |real: &str, now: &Option<String>| match (self.0.get(real), now) {
            (Some(known), Some(now)) => known.to_string() != *now,
            (None, _) | (_, None) => false,
        };
        let path = probe.paths.iter().find(|path| differs(&path.real, &path.digest))?;
        Some(&path.named)
    }

    /// The record of the files that a call read or wrote.
    pub fn record(report: Option<&RunReport>) -> Option<JournalRecord> {
        let version = |file: &FileVersion| {
            let (path, digest) = (file.path.clone(), file.digest.parse().ok()?);
            Some(FileVersionRecord { path, digest })
        };
        JournalRecord::of_seen_files(report?.seen.iter().filter_map(version).collect())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use protocol::call::ProbedPath;

    fn probe(digest: Option<Digest>) -> ProbeReport {
        let digest = digest.map(|digest| digest.to_string());
        let path = ProbedPath { named: "a".into(), real: "/p/a".into(), in_scope: true, digest };
        ProbeReport { paths: vec![path], diff: String::new() }
    }

    #[test]
    fn the_last_read_or_write_counts() {
        let [one, two] = [b"1", b"2"].map(|bytes| Digest::of(bytes));
        let saw = |digest| JournalRecord::Seen {
            files: vec![FileVersionRecord { path: "/p/a".into(), digest }],
        };
        let mut seen = FileVersions::default();
        assert_eq!(seen.first_changed(&probe(Some(one))), None, "never read");
        seen.apply(&saw(one));
        assert_eq!(seen.first_changed(&probe(Some(one))), None);
        assert_eq!(seen.first_changed(&probe(Some(two))), Some("a"));
        assert_eq!(seen.first_changed(&probe(None)), None, "it is gone");
        seen.apply(&saw(two));
        assert_eq!(seen.first_changed(&probe(Some(two))), None);
        assert_eq!(seen.first_changed(&probe(Some(one))), Some("a"));
    }

    #[test]
    fn instructions_are_told_once_also_after_a_replay() {
        let seen = FileVersions::default();
        let call = seen.without_digests();
        assert!(call.tell("/p/a/AGENTS.md") && !seen.tell("/p/a/AGENTS.md"));
        assert!(call.tell("/p/b/AGENTS.md"), "another directory's");
        assert!(!call.tell("/p/a/other.md"), "no instructions");
        let mut replayed = FileVersions::default();
        let digest = Digest::of(b"1");
        let file = FileVersionRecord { path: "/p/a/CLAUDE.md".into(), digest };
        replayed.apply(&JournalRecord::Seen { files: vec![file] });
        assert!(!replayed.tell("/p/a/CLAUDE.md"));
    }
}
