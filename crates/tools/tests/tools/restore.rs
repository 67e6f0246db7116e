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
    let report =
        restore(files, (&[], tools::DeniedReads::NONE), 30_000, &project.place, &project.cancel);
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

/// A runner died behind its writes and before its result: the same restore comes again.
#[test]
fn what_is_restored_already_is_no_conflict() {
    let project = Project::with(&[("a", "after"), ("b", "after"), ("c", "after"), ("d", "after")]);
    symlink("b", project.path("link")).unwrap();
    let files = [
        kept(&project, "a", was(b"before")),
        kept(&project, "b", PriorContent::Absent),
        kept(&project, "link", PriorContent::Link(FilePath::from(Path::new("c")))),
        kept(&project, "c", was(b"before")),
    ];
    put_back(&project, &files[..3]).unwrap();
    put_back(&project, &files).unwrap();
    assert_eq!(std::fs::read(project.path("a")).unwrap(), b"before");
    assert_eq!(std::fs::read(project.path("c")).unwrap(), b"before");
    assert!(!project.path("b").exists());
    put_back(&project, &files).unwrap();
    // The control: another content is a conflict, and so is another mode.
    std::fs::write(project.path("c"), "a person's").unwrap();
    let said = put_back(&project, &files).unwrap_err();
    assert!(said.contains("changed since: c"), "{said}");
    std::fs::write(project.path("c"), "before").unwrap();
    put_back(&project, &files).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(project.path("c"), mode).unwrap();
    put_back(&project, &files).unwrap_err();
}

#[test]
fn a_restore_of_a_part_carries_a_code_and_is_no_error() {
    let project = Project::with(&[("a", "after"), ("b", "after")]);
    let why = PriorContent::NotKept("too large".to_owned());
    let files = [kept(&project, "a", was(b"before")), kept(&project, "b", why)];
    let run = |files: &[FileBackup]| {
        let report = restore(
            files,
            (&[], tools::DeniedReads::NONE),
            30_000,
            &project.place,
            &project.cancel,
        );
        (report.result.is_error, report.result.code)
    };
    assert_eq!(run(&files), (false, Some("partly_restored".to_owned())));
    assert_eq!(run(&files[..1]), (false, None), "the control");
}

#[test]
fn no_restore_makes_a_repository_out_of_files_that_are_harmless_alone() {
    let project = Project::new();
    let files = ["HEAD", "objects/x", "refs/x", "config"].map(|name| {
        std::fs::create_dir_all(project.path("nb").join(name).parent().unwrap()).unwrap();
        kept(&project, &format!("nb/{name}"), was(b"x"))
    });
    for dir in ["nb/objects", "nb/refs"] {
        std::fs::remove_dir(project.path(dir)).unwrap();
    }
    let refused = put_back(&project, &files).unwrap_err();
    assert!(refused.contains("[protected]"), "{refused}");
    assert!(!project.path("nb/config").exists());
    // The control: without one of the three it is a directory like any other.
    put_back(&project, &[files[0].clone(), files[1].clone(), files[3].clone()]).unwrap();
}
