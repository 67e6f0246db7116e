//! State of a build in a file, with what that build printed of it: a later build has to print the same.

use super::Desk;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/older_state")
        .join(format!("{name}.tar.gz"))
}

fn tar(words: &[&str], archive: &Path) {
    super::needs("tar");
    let ran = Command::new("tar").args(words).arg("-f").arg(archive).status().unwrap();
    assert!(ran.success(), "tar {words:?}");
}

/// All that this build prints of the sessions and the audit log in this directory.
fn said(place: &Path) -> BTreeMap<String, String> {
    let state = place.join("state");
    let say = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agentd"));
        command.args(words).current_dir(place).env_clear();
        command.env("HOME", place).env("XDG_STATE_HOME", &state).env("TZ", "UTC");
        let ran = super::run(command);
        assert_eq!(ran.code, 0, "{words:?}: {}", ran.err);
        assert_eq!(ran.err, "", "{words:?}");
        (words.join("_"), ran.out.replace(state.to_str().unwrap(), "STATE"))
    };
    let sessions = fs::read_dir(state.join("agentd/sessions")).unwrap();
    let mut all: BTreeMap<_, _> = [&["audit", "verify"][..], &["audit", "export"]].map(say).into();
    for session in sessions {
        let id = session.unwrap().file_name().into_string().unwrap();
        all.extend([
            say(&["show", &id]),
            say(&["show", &id, "--calls"]),
            say(&["show", &id, "--json"]),
            say(&["export", &id]),
            say(&["export", &id, "--format", "json"]),
            say(&["export", &id, "--format", "html"]),
        ]);
    }
    all
}

/// Writes the state of this desk, whose processes have ended, and what this build prints of it.
pub fn write(desk: &Desk, name: &str) {
    let place = tempfile::tempdir().unwrap();
    let from = desk.state().parent().unwrap().to_owned();
    // Overlays of build directories say nothing about sessions.
    let left_out = ["caches", "log", "last-cage", "protected"];
    let left_out = left_out.map(|name| format!("--exclude={name}"));
    let archive = place.path().join("state.tar");
    let words = left_out.iter().map(String::as_str);
    let words: Vec<_> = words.chain(["-C", from.to_str().unwrap(), "-c", "agentd"]).collect();
    tar(&words, &archive);
    fs::create_dir(place.path().join("state")).unwrap();
    tar(&["-C", place.path().join("state").to_str().unwrap(), "-x"], &archive);
    let printed = place.path().join("said");
    fs::create_dir(&printed).unwrap();
    for (words, out) in said(place.path()) {
        fs::write(printed.join(words), out).unwrap();
    }
    let kept = ["-C", place.path().to_str().unwrap(), "--owner=0", "--group=0", "-cz"];
    tar(&[&kept[..], &["state", "said"]].concat(), &file(name));
}

/// Checks that this build prints the same as the build that wrote the state.
pub fn is_printed_as_before(name: &str) {
    let place = tempfile::tempdir().unwrap();
    tar(&["-C", place.path().to_str().unwrap(), "--no-same-owner", "-xz"], &file(name));
    let now = said(place.path());
    assert!(now.len() > 2, "no session in {name}");
    for (words, out) in &now {
        let before = fs::read_to_string(place.path().join("said").join(words)).unwrap();
        for (line, (was, is)) in (1..).zip(before.lines().zip(out.lines())) {
            assert_eq!(is, was, "line {line} of agentd {}", words.replace('_', " "));
        }
        assert_eq!(*out, before, "agentd {}", words.replace('_', " "));
    }
}
