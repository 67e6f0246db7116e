//! No snapshot has what a link leads to, whenever the link comes.
#![allow(clippy::unwrap_used)]

use super::tests::place;
use super::*;
use rustix::fs::{RenameFlags, openat, renameat_with};
use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const SECRET: &str = "the key of the person";
/// Files of the directory that changes places with a link.
const FILES: usize = 200;

/// True if any object of the repository of snapshots has this text.
async fn is_in_objects(of: &Workspace, text: &str) -> bool {
    let words = ["cat-file", "--batch", "--batch-all-objects", "--buffer"];
    let all = of.git.run(&words, b"").await.unwrap();
    String::from_utf8_lossy(&all).contains(text)
}

/// A directory of the person with a file of each name in `d`.
fn secrets(at: &Path) {
    fs::create_dir(at).unwrap();
    (0..FILES)
        .for_each(|n| fs::write(at.join(format!("f{n}")), format!("{SECRET} {n}\n")).unwrap());
}

/// A command of the task changes a directory for a link to the person's keys and back while git works.
#[tokio::test(flavor = "current_thread")]
async fn a_directory_that_becomes_a_link_while_git_reads_brings_no_secret() {
    let (dir, repo) = place().await;
    secrets(&dir.path().join("keys"));
    let (at, name) = (dir.path().join("here"), repo.to_str().unwrap());
    let mut here = Workspace::prepare(&at, name, "main", None).await.unwrap();
    let tree = here.tree().to_owned();
    fs::create_dir(tree.join("d")).unwrap();
    symlink(dir.path().join("keys"), tree.join(".git/link")).unwrap();
    let files = fs::File::open(tree.join("d")).unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let (root, ends) = (fs::File::open(&tree).unwrap(), Arc::clone(&over));
    let command = std::thread::spawn(move || {
        let swap = || renameat_with(&root, "d", &root, ".git/link", RenameFlags::EXCHANGE).unwrap();
        for turn in 0.. {
            std::thread::sleep(Duration::from_millis(turn % 9 * 3));
            swap();
            std::thread::sleep(Duration::from_micros(300));
            swap();
            if ends.load(Ordering::Relaxed) {
                break;
            }
        }
    });
    let mut taken = 0;
    for round in 0..25 {
        fs::write(tree.join("plain"), format!("{round}\n")).unwrap();
        for n in 0..FILES {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
            let file = openat(&files, format!("f{n}"), flags, Mode::from(0o644)).unwrap();
            fs::File::from(file).write_all(format!("{round} of {n}\n").as_bytes()).unwrap();
        }
        // Git may say that a file went away.
        if let Ok(Some(snapshot)) = here.snapshot().await {
            let words = ["cat-file", "blob", &format!("{}:plain", snapshot.tree)];
            let plain = here.git.run(&words, b"").await.unwrap();
            assert_eq!(plain, format!("{round}\n").as_bytes());
            here.stored(snapshot.tree);
            taken += 1;
        }
    }
    over.store(true, Ordering::Relaxed);
    command.join().unwrap();
    assert!(!is_in_objects(&here, SECRET).await, "{taken} snapshots");
    // The controls: snapshots were taken, and the directory's own files are in one once it stays.
    if let Some(last) = here.snapshot().await.unwrap() {
        here.stored(last.tree);
    }
    let words = ["cat-file", "blob", &format!("{}:d/f7", here.tree)];
    assert_eq!(here.git.run(&words, b"").await.unwrap(), b"24 of 7\n");
    assert!(taken > 0);
}

/// The same with a link that stays, to a directory and to a file: snapshots have the links.
#[tokio::test(flavor = "current_thread")]
async fn a_link_is_in_a_snapshot_as_a_link() {
    let (dir, repo) = place().await;
    secrets(&dir.path().join("keys"));
    let (at, name) = (dir.path().join("here"), repo.to_str().unwrap());
    let mut here = Workspace::prepare(&at, name, "main", None).await.unwrap();
    fs::create_dir(here.tree().join("d")).unwrap();
    fs::write(here.tree().join("d/f1"), "own\n").unwrap();
    let before = here.snapshot().await.unwrap().unwrap();
    here.stored(before.tree);
    fs::remove_dir_all(here.tree().join("d")).unwrap();
    symlink(dir.path().join("keys"), here.tree().join("d")).unwrap();
    symlink(dir.path().join("keys/f1"), here.tree().join("f1")).unwrap();
    symlink("/proc/self", here.tree().join("process")).unwrap();
    let taken = here.snapshot().await.unwrap().unwrap();
    assert!(!is_in_objects(&here, SECRET).await);
    assert!(is_in_objects(&here, "own\n").await, "the control");
    let listed = here.git.run(&["ls-tree", &taken.tree, "d", "f1", "process"], b"").await.unwrap();
    assert_eq!(String::from_utf8_lossy(&listed).matches("120000 blob").count(), 3);
    // The cage itself: git does not read what it is told to.
    let key = dir.path().join("keys/f1");
    let words = ["hash-object", "-w", "--", key.to_str().unwrap()];
    let refused = here.git.run(&words, b"").await.unwrap_err().to_string();
    assert!(refused.contains("Permission denied"), "{refused}");
    let through = here.git.run(&["hash-object", "-w", "--", "workspace/d/f1"], b"").await;
    assert!(through.is_err() && !is_in_objects(&here, SECRET).await);
}

/// A snapshot with a link is restored beside files of the same names: nothing is written through the link.
#[tokio::test(flavor = "current_thread")]
async fn a_restoration_writes_through_no_link() {
    let (dir, repo) = place().await;
    let outside = dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    let name = repo.to_str().unwrap();
    let mut here = Workspace::prepare(&dir.path().join("here"), name, "main", None).await.unwrap();
    fs::create_dir(here.tree().join("d")).unwrap();
    fs::write(here.tree().join("d/new"), "new\n").unwrap();
    let taken = here.snapshot().await.unwrap().unwrap();
    let mut there =
        Workspace::prepare(&dir.path().join("there"), name, "main", None).await.unwrap();
    symlink(&outside, there.tree().join("d")).unwrap();
    there.add_pack(&taken.pack).await.unwrap();
    there.restore(&taken.tree).await.unwrap();
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    assert_eq!(fs::read(there.tree().join("d/new")).unwrap(), b"new\n", "the control");
}
