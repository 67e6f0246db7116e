//! Mode, owner, times and attributes, for which Landlock has no right: a program that may change nothing of
//! the project changes them neither, in both tiers, and can in its own folder.

use super::yard::{TIERS, Told, Yard};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Tries every way to change the status of a file: the name of the way and the errno, 0 where it worked.
const WAYS: &str = r"
import ctypes, fcntl, os, struct, sys
path = sys.argv[1]
libc = ctypes.CDLL(None, use_errno=True)
at = os.fsencode(path)
here = os.open(os.path.dirname(path), os.O_RDONLY)
name = os.path.basename(path)
fd = os.open(path, os.O_RDONLY)
me, us = os.getuid(), os.getgid()
times = struct.pack('4q', 7, 0, 7, 0)
def raw(*words):
    if libc.syscall(*words) < 0: raise OSError(ctypes.get_errno(), 'refused')
ways = {
    'chmod': lambda: os.chmod(path, 0o640),
    'fchmod': lambda: os.fchmod(fd, 0o641),
    'fchmodat': lambda: os.chmod(name, 0o642, dir_fd=here),
    'fchmodat2': lambda: raw(452, -100, at, 0o643, 0),
    'through /proc': lambda: os.chmod(f'/proc/self/fd/{fd}', 0o644),
    'chown': lambda: os.chown(path, me, us),
    'lchown': lambda: os.lchown(path, me, us),
    'fchown': lambda: os.fchown(fd, me, us),
    'fchownat, no path': lambda: raw(260, fd, b'', me, us, 0x1000),
    'utimensat': lambda: os.utime(path, (7, 7)),
    'utimensat, now': lambda: os.utime(path),
    'futimens': lambda: os.utime(fd, (7, 7)),
    'utimes': lambda: raw(235, at, times),
    'futimesat': lambda: raw(261, here, os.fsencode(name), times),
    'utime': lambda: raw(132, at, struct.pack('2q', 7, 7)),
}
attributes = {
    'setxattr': lambda: os.setxattr(path, 'user.tried', b'1'),
    'fsetxattr': lambda: os.setxattr(fd, 'user.tried', b'1'),
    'removexattr': lambda: os.removexattr(path, 'user.there'),
    'chattr': lambda: fcntl.ioctl(fd, 0x40086602, struct.pack('l', 0x40)),
}
if len(sys.argv) > 2: ways |= attributes
for way, change in ways.items():
    try:
        change()
        print(way, 0)
    except OSError as error:
        print(way, error.errno)
";

fn try_all(yard: &Yard, (tier, profile): (&str, &str), at: &Path, more: &[&str]) -> Told {
    let program = [&["python3", "-c", WAYS, at.to_str().unwrap()], more].concat();
    yard.cage(tier, &["profile", profile], &program)
}

/// What a change of status leaves a trace in.
fn changed(path: &Path) -> (u32, i64, i64, i64) {
    let status = fs::metadata(path).unwrap();
    (status.mode(), status.mtime(), status.ctime(), status.ctime_nsec())
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_verifier_changes_no_status_in_the_project_and_all_of_it_in_its_own_folder() {
    for tier in TIERS {
        for profile in ["verify", "format"] {
            let yard = Yard::new();
            let (theirs, own) = (yard.project.join("file"), yard.temp.join("file"));
            fs::write(&theirs, "theirs").unwrap();
            fs::write(&own, "own").unwrap();
            let before = changed(&theirs);
            let told = try_all(&yard, (tier, profile), &theirs, &["attributes"]);
            let tried = told.in_tier(tier).all("out");
            assert_eq!(tried.len(), 19, "{told:?}");
            assert!(tried.iter().all(|way| !way.ends_with(" 0")), "{tier} {profile}: {tried:?}");
            assert_eq!(changed(&theirs), before, "{tier} {profile}: {tried:?}");
            let refused = told.all("refusal").join("\n");
            assert!(refused.contains("/project/file, its mode"), "{tier} {profile}: {told:?}");

            let told = try_all(&yard, (tier, profile), &own, &[]);
            let tried = told.in_tier(tier).all("out");
            assert_eq!(tried.len(), 15, "{told:?}");
            assert!(tried.iter().all(|way| way.ends_with(" 0")), "{tier} {profile}: {tried:?}");
            assert_eq!((changed(&own).0 & 0o777, changed(&own).1), (0o644, 7));
        }
    }
}

#[test]
fn a_command_that_may_change_the_project_changes_its_status() {
    for tier in TIERS {
        let yard = Yard::new();
        let file = yard.project.join("file");
        fs::write(&file, "x").unwrap();
        let told = yard.shell(tier, &format!("chmod 0751 {}; echo $?", file.display()));
        assert_eq!(told.in_tier(tier).printed(), "0");
        assert_eq!(changed(&file).0 & 0o777, 0o751);
    }
}

#[test]
fn a_link_that_changes_under_the_call_leads_nowhere_else() {
    let yard = Yard::new();
    let (theirs, own) = (yard.project.join("file"), yard.temp.join("file"));
    fs::write(&theirs, "theirs").unwrap();
    fs::write(&own, "own").unwrap();
    let before = changed(&theirs);
    let program = format!(
        "import os, threading, time\ntheirs, own = {:?}, {:?}\nos.chdir(os.path.dirname(own))\nend = time.monotonic() + 2\ndef swap():\n    while time.monotonic() < end:\n        for at in (theirs, own):\n            os.symlink(at, 'new')\n            os.replace('new', 'link')\nos.symlink(own, 'link')\nthreading.Thread(target=swap).start()\ndone = refused = 0\nwhile time.monotonic() < end:\n    try:\n        os.chmod('link', 0o640)\n        done += 1\n    except OSError:\n        refused += 1\nprint('both' if done and refused else (done, refused))",
        theirs, own
    );
    let told = yard.cage("b", &["profile", "verify"], &["python3", "-c", &program]);
    assert_eq!(told.in_tier("b").printed(), "both", "{told:?}");
    assert_eq!(changed(&theirs), before);
    assert_eq!(changed(&own).0 & 0o777, 0o640);
}

#[test]
fn the_record_says_where_they_are_kept() {
    let yard = Yard::new();
    let says = |profile: &str, program: &[&str], words: &str| {
        let told = yard.cage("b", &["profile", profile], program);
        let limits = told.all("limit");
        assert!(limits.iter().any(|limit| limit.contains(words)), "{profile}: {limits:?}");
    };
    let kept = "Mode, owner and times can be changed only within the grants";
    says("verify", &["true"], kept);
    says("format", &["true"], kept);
    says("git-look", &["git", "--version"], kept);
    says("command", &["true"], "files outside the grants can be changed");
}
