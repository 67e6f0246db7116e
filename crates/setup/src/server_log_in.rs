//! The log-in of a person at an MCP server that has an address, as far as the cage of its client needs it. The
//! client may write the directory of its tokens, so nothing is read there: `agentd-mcp --login` recorded the
//! host beside it. Used by the session's actor.

use protocol::hosts::HostRule;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The suffix of the record beside the directory.
const HOSTS: &str = "hosts";
/// Most bytes of it.
const LONGEST: u64 = 4096;

/// The host where the tokens in this file are renewed; none without a log-in.
pub fn renewed_at(file: &Path) -> Option<HostRule> {
    let mut text = String::new();
    let record = File::open(file.parent()?.with_extension(HOSTS)).ok()?;
    record.take(LONGEST).read_to_string(&mut text).ok()?;
    HostRule::of_rule(text.lines().next()?).ok()
}

/// Tells one log-in from another; the same for none at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogInStamp(Option<(u64, i64, i64)>);

/// That of the log-in whose tokens stand in this file.
pub fn stamp(file: &Path) -> LogInStamp {
    let record = file.parent().map(|dir| dir.with_extension(HOSTS));
    let found = record.and_then(|record| fs::metadata(record).ok());
    LogInStamp(found.map(|found| (found.ino(), found.mtime(), found.mtime_nsec())))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_recorded_host_counts_and_nothing_that_the_client_writes() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("far-0123456789abcdef");
        let file = dir.join("log-in.json");
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(
            &file,
            r#"{"grantor": {"metadata": {"token_endpoint": "https://b.example"}}}"#,
        )
        .unwrap();
        std::fs::write(dir.join("log-in.hosts"), "b.example:443").unwrap();
        assert_eq!(renewed_at(&file), None);
        assert_eq!(stamp(&file), LogInStamp::default());
        for (text, host) in [("a.example:443", true), ("", false), ("a b", false)] {
            std::fs::write(dir.with_extension(HOSTS), text).unwrap();
            let before = stamp(&file);
            assert_eq!(before, stamp(&file));
            std::thread::sleep(std::time::Duration::from_millis(20));
            std::fs::write(dir.with_extension(HOSTS), text).unwrap();
            assert_ne!(before, stamp(&file), "a new log-in");
            let found = renewed_at(&file);
            assert_eq!(found.is_some_and(|rule| rule.admits("a.example", 443)), host, "{text}");
        }
    }
}
