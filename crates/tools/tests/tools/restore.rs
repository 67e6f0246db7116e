//! Restoring the files of a call: all of them or none, also after a failure half-way.

use crate::project::Project;
use protocol::confinement::FilePath;
use protocol::store::{FileBackup, PriorContent};
use std::os::unix::fs::symlink;
use std::path::Path;
use tools::restore;

fn digest(project: &Project, path: &Path) -> Option<String> {
    // As the look before a verdict sees it.
    let file = FileBackup {
        path: path.to_str().unwrap().to_owned(),
        before: PriorContent::Absent,
        after: None,
    };
    let probe = tools::probe_restore(&[file], &project.place, &project.cancel);
    probe.paths.first().unwrap().digest.clone()
}

fn was(bytes: &[u8]) -> PriorContent {
    PriorContent::File { bytes: bytes.to_vec(), mode: 0o644 }
}

fn kept(project: &Project, name: &str, before: PriorContent) -> FileBackup {
    let path = project.path(name);
    let after = digest(project, &path);
    FileBackup { path: path.to_str().unwrap().to_owned(), before, after }
}

/// A step that fails after all others succeeded: the link is too long.
fn impossible(project: &Project, name: &str) -> FileBackup {
    kept(project, name, PriorContent::Link(FilePath::from(Path::new(&"n".repeat(5_000)))))
}

fn put_back(project: &Project, files: &[FileBackup]) -> Result<String, String> {
    let report = restore(files, &[], 30_000, &project.place, &project.cancel);
    match report.result.is_error {
        false => Ok(report.result.text),
        true => Err(report.result.text),
    }
}

#[test]
fn what_was_put_back_is_as_before_where_a_later_file_fails() {
    let project = Project::with(&[("a", "after"), ("b", "after")]);
    symlink("b", project.path("link")).unwrap();
    let files = [
        kept(&project, "a", was(b"before")),
        kept(&project, "link", was(b"before")),
        kept(&project, "made", was(b"before")),
    ];
    let all = [&files[..], &[impossible(&project, "z")]].concat();
    let failed = put_back(&project, &all).unwrap_err();
    assert!(failed.contains("nothing was changed"), "{failed}");
    assert_eq!(std::fs::read_to_string(project.path("a")).unwrap(), "after");
    assert_eq!(std::fs::read_link(project.path("link")).unwrap(), Path::new("b"));
    assert!(!project.path("made").exists());
    put_back(&project, &files).unwrap();
    for name in ["a", "link", "made"] {
        assert_eq!(std::fs::read_to_string(project.path(name)).unwrap(), "before", "{name}");
    }
}

#[test]
fn the_file_that_fails_is_as_before_too() {
    let project = Project::with(&[("a", "after")]);
    // It is taken away before the link cannot be made.
    let failed = put_back(&project, &[impossible(&project, "a")]).unwrap_err();
    assert!(failed.contains("nothing was changed"), "{failed}");
    assert_eq!(std::fs::read_to_string(project.path("a")).unwrap(), "after");
    put_back(&project, &[kept(&project, "a", PriorContent::Link("b".into()))]).unwrap();
    assert_eq!(std::fs::read_link(project.path("a")).unwrap(), Path::new("b"));
}

#[test]
fn what_is_too_large_to_be_held_is_not_touched() {
    let project = Project::new();
    let large = vec![b'x'; 9 << 20];
    project.put("large", &large);
    let files = [kept(&project, "large", was(b"before")), impossible(&project, "z")];
    let failed = put_back(&project, &files).unwrap_err();
    assert!(failed.contains("[too_large]"), "{failed}");
    assert!(std::fs::read(project.path("large")).unwrap() == large);
}
