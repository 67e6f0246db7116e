//! Trees that a call can leave behind, removed with as little as a thread of the supervisor has.
#![allow(clippy::unwrap_used)]

use super::*;
use nix::fcntl::OFlag;
use nix::sys::stat::{SFlag, mkdirat, mknodat};
use nix::unistd::symlinkat;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

/// Deeper than a recursive walk comes on the stack of a thread.
const DEEP: u32 = 20_000;

fn place() -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let tree = place.path().join("tree");
    fs::create_dir(&tree).unwrap();
    (place, tree)
}

/// Folders one in the other, a file in each tenth, and the mode of each when it has its contents.
fn deep(tree: &Path, mode: Mode) {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY;
    let mut at = open(tree, flags, Mode::empty()).unwrap();
    for level in 0..DEEP {
        mkdirat(&at, c"d", OPEN).unwrap();
        let below = openat(&at, c"d", flags, Mode::empty()).unwrap();
        if level % 10 == 0 {
            let file = OFlag::O_CREAT | OFlag::O_WRONLY;
            openat(&below, c"file", file, Mode::S_IRUSR).unwrap();
        }
        let own = format!("/proc/self/fd/{}", at.as_raw_fd());
        fs::set_permissions(own, fs::Permissions::from_mode(mode.bits())).unwrap();
        at = below;
    }
}

#[test]
fn a_deep_tree_takes_no_stack() {
    let (place, tree) = place();
    deep(&tree, OPEN);
    let small = std::thread::Builder::new().stack_size(128 << 10);
    small.spawn(move || remove_tree(&tree).unwrap()).unwrap().join().unwrap();
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

/// In a process of its own, whose limit is nobody else's.
#[test]
fn a_deep_tree_of_shut_folders_takes_few_descriptors() {
    const TREE: &str = "REMOVAL_TEST_TREE";
    if let Some(tree) = std::env::var_os(TREE) {
        return remove_tree(Path::new(&tree)).unwrap();
    }
    let (place, tree) = place();
    deep(&tree, Mode::empty());
    let own = "removal::tests::a_deep_tree_of_shut_folders_takes_few_descriptors";
    // Whoever ran the tests may have left descriptors open, as a build's job server does.
    let few = "for fd in /proc/$$/fd/*; do [ ${fd##*/} -le 2 ] || eval \"exec ${fd##*/}>&-\"; done
        ulimit -n 12 && exec \"$@\"";
    let done = Command::new("bash")
        .args(["-c", few, "bash"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", own, "--test-threads=1"])
        .env(TREE, &tree)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && said.contains("1 passed"), "{said}");
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn no_name_and_no_kind_of_file_stays() {
    let (place, tree) = place();
    let outside = place.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("kept"), "x").unwrap();
    // Names that the removal itself would give.
    for number in 0..5 {
        fs::create_dir_all(tree.join(number.to_string()).join("inner/most")).unwrap();
    }
    fs::write(tree.join("5"), "x").unwrap();
    let shut = tree.join("0/shut");
    fs::create_dir_all(shut.join("cache")).unwrap();
    let place_of = open(&shut, OFlag::O_PATH, Mode::empty()).unwrap();
    let long = "n".repeat(255);
    for name in [OsString::from_vec(b"\xff\xfe\n\x1b[2J".to_vec()), OsString::from(&long)] {
        let name = name.as_os_str();
        mkdirat(&place_of, name, OPEN).unwrap();
        fs::write(shut.join(name).join(name), "x").unwrap();
        symlinkat(name, &place_of, OsStr::new(&long[1..])).unwrap_or_default();
    }
    mknodat(&place_of, c"fifo", SFlag::S_IFIFO, OPEN, 0).unwrap();
    mknodat(&place_of, c"socket", SFlag::S_IFSOCK, OPEN, 0).unwrap();
    symlinkat(c"..", &place_of, c"circle").unwrap();
    symlinkat(c"self", &place_of, c"self").unwrap();
    symlinkat(outside.as_path(), &place_of, c"elsewhere").unwrap();
    fs::hard_link(outside.join("kept"), shut.join("cache/second name")).unwrap();
    for folder in [shut.join("cache"), shut, tree.join("1/inner"), tree.join("1"), tree.clone()] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o000)).unwrap();
    }
    remove_tree(&tree).unwrap();
    assert!(!tree.exists());
    assert_eq!(fs::read(outside.join("kept")).unwrap(), b"x");
}

#[test]
fn a_wide_tree_is_removed() {
    let (_place, tree) = place();
    for number in 0..10_000 {
        fs::create_dir(tree.join(format!("d{number}"))).unwrap();
        fs::write(tree.join(format!("f{number}")), "").unwrap();
        if number % 10 == 0 {
            fs::create_dir(tree.join(format!("d{number}/within"))).unwrap();
            fs::write(tree.join(format!("d{number}/within/file")), "").unwrap();
        }
    }
    remove_tree(&tree).unwrap();
    assert!(!tree.exists());
}

#[test]
fn a_file_or_a_link_is_no_tree() {
    let (place, tree) = place();
    fs::write(tree.join("kept"), "x").unwrap();
    let link = place.path().join("link");
    std::os::unix::fs::symlink(&tree, &link).unwrap();
    remove_tree(&link).unwrap_err();
    remove_tree(&tree.join("kept")).unwrap_err();
    assert_eq!(fs::read(link.join("kept")).unwrap(), b"x");
    let none = remove_tree(&place.path().join("none")).unwrap_err();
    assert_eq!(none.kind(), io::ErrorKind::NotFound);
}

/// Each has its positive control: the same thread before it was locked, or another one beside it.
#[test]
fn the_removing_thread_can_do_nothing_else() {
    let (place, tree) = place();
    let outside = place.path().join("outside");
    fs::create_dir_all(outside.join("kept")).unwrap();
    fs::create_dir_all(tree.join("a/b/c")).unwrap();
    fs::write(tree.join("a/b/file"), "x").unwrap();
    let file = tree.join("written");
    fs::write(&file, "before").unwrap();
    let root = tree.clone();
    let locked = std::thread::spawn(move || {
        if !restrict_to_removal_in(std::slice::from_ref(&root)).unwrap() {
            return;
        }
        let denied = io::ErrorKind::PermissionDenied;
        assert_eq!(fs::read(&file).unwrap_err().kind(), denied);
        assert_eq!(fs::write(&file, "after").unwrap_err().kind(), denied);
        assert_eq!(fs::read_dir(&outside).unwrap_err().kind(), denied);
        assert_eq!(remove_tree(&outside).unwrap_err().kind(), denied);
        assert_eq!(fs::remove_dir(outside.join("kept")).unwrap_err().kind(), denied);
        remove_tree(&root.join("a")).unwrap();
        assert!(!root.join("a").exists());
    });
    locked.join().unwrap();
    fs::write(tree.join("written"), "by another thread").unwrap();
    fs::remove_dir(place.path().join("outside/kept")).unwrap();
}
