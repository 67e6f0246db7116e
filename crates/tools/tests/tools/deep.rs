//! Trees deeper than any project: searches report their depth limit and stay fast.

use crate::project::Project;
use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::{Mode, mkdirat};
use serde_json::json;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Folders one in the other, with a file and these rules in each.
fn deep(top: &Path, levels: u32, rules: &str) {
    let place = OFlag::O_PATH | OFlag::O_DIRECTORY;
    let mut at = open(top, place, Mode::empty()).unwrap();
    for _ in 0..levels {
        mkdirat(&at, "d", Mode::S_IRWXU).unwrap();
        at = openat(&at, "d", place, Mode::empty()).unwrap();
        file(&at, "file", "hit\n");
        if !rules.is_empty() {
            file(&at, ".gitignore", rules);
        }
    }
}

fn file(at: &OwnedFd, name: &str, text: &str) {
    let flags = OFlag::O_CREAT | OFlag::O_WRONLY;
    let file = openat(at, name, flags, Mode::S_IRWXU).unwrap();
    std::fs::File::from(file).write_all(text.as_bytes()).unwrap();
}

/// With rules in each folder too, all of which would be asked of each name below them.
#[test]
fn a_walk_ends_at_a_depth_that_is_said() {
    for rules in ["", "*.log\n!kept.log\n"] {
        let project = Project::with(&[("z/file", "hit\n")]);
        deep(&project.place.project, 1_500, rules);
        let said =
            "[1 directories are more than 256 levels deep and were not searched; give one as path]";
        // The project itself and 255 folders are looked into.
        let text = project.ok("glob", json!({"pattern": "**/file"}));
        assert!(text.contains("newest 200 of 256;") && text.contains(said), "{text}");
        let text = project.ok("glob", json!({"pattern": "**/none"}));
        assert!(text.contains("no file matches") && text.contains(said), "{text}");
        let text = project.ok("grep", json!({"pattern": "hit", "path": "z"}));
        assert!(text.contains("z/file:1:hit") && !text.contains(said), "{text}");
        let text = project.ok("grep", json!({"pattern": "none"}));
        assert!(text.contains(said), "{text}");
        let text = project.ok("ls", json!({}));
        assert!(text.contains(" d\n") && !text.contains(said), "{text}");
        // The way on leads further down. With rules it is slow without optimization: all above hold.
        if rules.is_empty() {
            let text = project.ok("glob", json!({"pattern": "file", "path": "d/".repeat(300)}));
            assert!(text.contains("newest 200 of 256;"), "{text}");
        }
        sandbox::remove_tree(&project.path("d")).unwrap();
    }
}
