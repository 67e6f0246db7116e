//! Writes that Landlock refuses are in the record with the errno that the kernel gave.

use super::{TestDirs, c, lines, test_config, test_dirs};
use crate::notify::NotifyConfig;
use crate::seccomp::FilterSpec;
use crate::seccomp::tests::child::{raw, under};
use crate::seccomp::tests::{MARK, NEW, OLD};
use landlock::{ABI, AccessFs, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr};
use protocol::confinement::{Network, RefusalKind, Tier};
use std::ffi::CString;
use std::os::unix::fs::symlink;
use std::path::Path;

const AT: u64 = libc::AT_FDCWD as u64;

fn watch_over(place: &TestDirs) -> NotifyConfig {
    NotifyConfig {
        writable: vec![place.project.clone(), "/dev/null".into()],
        ..test_config(FilterSpec::command(Tier::B, Network::Off, NEW, MARK))
    }
}

/// Locks this process so that it may write beneath the project only.
fn lock(place: &TestDirs) {
    let writes = AccessFs::from_write(ABI::V3);
    let ruleset = Ruleset::default().handle_access(writes).unwrap().create().unwrap();
    let ruleset = ruleset
        .add_rule(PathBeneath::new(PathFd::new(&place.project).unwrap(), writes))
        .unwrap()
        .add_rule(PathBeneath::new(PathFd::new("/dev/null").unwrap(), AccessFs::WriteFile))
        .unwrap();
    let status = ruleset.restrict_self().unwrap();
    assert_eq!(status.ruleset, landlock::RulesetStatus::FullyEnforced, "Landlock ABI 3 is needed");
}

fn open(path: &CString, flags: i32) -> i64 {
    let result = raw(libc::SYS_openat, [AT, path.as_ptr() as u64, flags as u64, 0o644, 0, 0]);
    result.min(0)
}

#[test]
fn opens_outside_are_predicted_and_opens_inside_are_not() {
    let place = test_dirs();
    std::fs::write(place.outside.join("canary"), "alive").unwrap();
    symlink(&place.outside, place.project.join("way-out")).unwrap();
    let inside = c(&place.project.join("new"));
    let canary = c(&place.outside.join("canary"));
    let new = c(&place.outside.join("new"));
    let by_link = c(&place.project.join("way-out/canary"));
    let none = c(&place.outside.join("none/at/all"));
    let (null, absolute) = (c"/dev/null".to_owned(), c(&place.project));
    let outcome = under(watch_over(&place), || {
        lock(&place);
        let create = libc::O_CREAT | libc::O_WRONLY;
        let mut answers = vec![
            open(&inside, create),
            open(&null, libc::O_RDWR),
            open(&canary, libc::O_RDONLY),
            open(&canary, libc::O_WRONLY),
            open(&new, create),
            open(&by_link, libc::O_RDWR | libc::O_TRUNC),
            open(&none, create),
            open(&canary, create | libc::O_EXCL),
        ];
        assert_eq!(raw(libc::SYS_chdir, [absolute.as_ptr() as u64, 0, 0, 0, 0, 0]), 0);
        answers.push(open(&c"../outside/canary".to_owned(), libc::O_WRONLY));
        let how = [libc::O_WRONLY as u64, 0, 0];
        let path = canary.as_ptr() as u64;
        answers.push(raw(libc::SYS_openat2, [AT, path, how.as_ptr() as u64, 24, 0, 0]));
        answers
    });
    let denied = -i64::from(libc::EACCES);
    let (missing, exists) = (-i64::from(libc::ENOENT), -i64::from(libc::EEXIST));
    assert_eq!(outcome.answers, [0, 0, 0, denied, denied, denied, missing, exists, denied, denied]);
    let canary = format!("{}/canary for writing", place.outside.display());
    let new = format!("{}/new for writing", place.outside.display());
    let line = |call, detail| (RefusalKind::Predicted, call, detail, libc::EACCES);
    assert_eq!(
        lines(&outcome.record.refusals),
        [
            line("openat", canary.as_str()),
            line("openat", new.as_str()),
            line("openat", canary.as_str()),
            line("openat2", canary.as_str()),
        ]
    );
    assert_eq!(outcome.record.refusals[2].count, 2, "by the link and by the relative path");
    assert_eq!(std::fs::read_to_string(place.outside.join("canary")).unwrap(), "alive");
}

#[test]
fn names_outside_are_predicted_and_names_inside_are_not() {
    let place = test_dirs();
    for dir in [&place.project, &place.outside] {
        std::fs::write(dir.join("file"), "alive").unwrap();
        std::fs::create_dir(dir.join("dir")).unwrap();
    }
    let paths = |dir: &std::path::Path| ["file", "dir", "new"].map(|name| c(&dir.join(name)));
    let (inside, outside) = (paths(&place.project), paths(&place.outside));
    let outcome = under(watch_over(&place), || {
        lock(&place);
        let at = |path: &CString| path.as_ptr() as u64;
        let mut answers = Vec::new();
        for [file, dir, new] in [&outside, &inside] {
            answers.extend([
                raw(libc::SYS_mkdirat, [AT, at(new), 0o755, 0, 0, 0]),
                raw(libc::SYS_mkdirat, [AT, at(dir), 0o755, 0, 0, 0]),
                raw(libc::SYS_symlinkat, [at(file), AT, at(new), 0, 0, 0]).min(0),
                raw(libc::SYS_truncate, [at(file), 0, 0, 0, 0, 0]),
                raw(libc::SYS_unlinkat, [AT, at(file), 0, 0, 0, 0]),
                raw(libc::SYS_unlinkat, [AT, at(dir), libc::AT_REMOVEDIR as u64, 0, 0, 0]),
            ]);
        }
        // A name inside for a file outside, and a file of the project carried out.
        answers.push(raw(libc::SYS_linkat, [AT, at(&outside[0]), AT, at(&inside[1]), 0, 0]));
        answers.push(raw(libc::SYS_renameat2, [AT, at(&inside[2]), AT, at(&outside[2]), 0, 0]));
        // As `mv` asks first.
        let only_new = u64::from(libc::RENAME_NOREPLACE);
        for to in [&outside[0], &outside[2]] {
            answers.push(raw(libc::SYS_renameat2, [AT, at(&inside[2]), AT, at(to), only_new, 0]));
        }
        answers.push(raw(libc::SYS_renameat2, [AT, at(&inside[2]), AT, at(&inside[0]), 0, 0]));
        answers
    });
    let (denied, exists) = (-i64::from(libc::EACCES), -i64::from(libc::EEXIST));
    assert_eq!(outcome.answers[..6], [denied, exists, denied, denied, denied, denied]);
    assert_eq!(outcome.answers[6..12], [0, exists, exists, 0, 0, 0]);
    assert_eq!(outcome.answers[12..], [-i64::from(libc::EXDEV), denied, exists, denied, 0]);
    let detail = |name: &str, rest: &str| format!("{}/{name}{rest}", place.outside.display());
    let expected = [
        ("mkdirat", detail("new", ", making it"), libc::EACCES),
        ("symlinkat", detail("new", ", making it"), libc::EACCES),
        ("truncate", detail("file", ", its length"), libc::EACCES),
        ("unlinkat", detail("file", ", removing it"), libc::EACCES),
        ("unlinkat", detail("dir", ", removing it"), libc::EACCES),
        ("linkat", detail("file", ", linking to it"), libc::EXDEV),
        ("renameat2", detail("new", ", as a new name"), libc::EACCES),
        ("renameat2", detail("new", ", making it"), libc::EACCES),
    ];
    let expected: Vec<_> = expected
        .iter()
        .map(|(call, detail, errno)| (RefusalKind::Predicted, *call, detail.as_str(), *errno))
        .collect();
    assert_eq!(lines(&outcome.record.refusals), expected);
    assert_eq!(std::fs::read_to_string(place.outside.join("file")).unwrap(), "alive");
}

/// As a Landlock of version 2 does: reading everywhere, writing beneath the project, and no say in
/// lengths.
fn lock_as_of_old(place: &TestDirs) {
    let (reads, writes) = (AccessFs::from_read(ABI::V1), AccessFs::from_write(ABI::V1));
    let beneath = |path: &Path, rights| PathBeneath::new(PathFd::new(path).unwrap(), rights);
    let rules = Ruleset::default().handle_access(reads | writes).unwrap().create().unwrap();
    let rules = rules.add_rule(beneath(Path::new("/"), reads)).unwrap();
    let rules = rules.add_rule(beneath(&place.project, reads | writes)).unwrap();
    rules.restrict_self().unwrap();
}

/// Every way to empty a file without a descriptor for writing, on a kernel whose Landlock restricts
/// none of them. Within the grants `truncate` works; outside none does.
#[test]
fn a_landlock_without_lengths_empties_nothing_outside() {
    let place = test_dirs();
    symlink(place.outside.join("file"), place.project.join("way-out")).unwrap();
    symlink(place.project.join("inside"), place.outside.join("way-in")).unwrap();
    let written =
        [place.outside.join("file"), place.project.join("file"), place.project.join("inside")];
    let fill = || written.iter().for_each(|path| std::fs::write(path, "alive").unwrap());
    let tried = |truncate: [CString; 8], outside: CString| {
        lock_as_of_old(&place);
        let project = c(&place.project);
        assert_eq!(raw(libc::SYS_chdir, [project.as_ptr() as u64, 0, 0, 0, 0, 0]), 0);
        let cut = |path: &CString, length: i64| {
            raw(libc::SYS_truncate, [path.as_ptr() as u64, length as u64, 0, 0, 0, 0])
        };
        let mut answers: Vec<i64> = truncate.iter().map(|path| cut(path, 2)).collect();
        answers.extend([cut(&truncate[0], -1), cut(&truncate[0], 64), cut(&truncate[0], 65)]);
        answers.push(raw(libc::SYS_truncate, [8, 0, 0, 0, 0, 0]));
        answers.extend(
            [libc::O_RDONLY, libc::O_ACCMODE].map(|mode| open(&outside, mode | libc::O_TRUNC)),
        );
        let how = [(libc::O_RDONLY | libc::O_TRUNC) as u64, 0, 0];
        let at = outside.as_ptr() as u64;
        answers.push(raw(libc::SYS_openat2, [AT, at, how.as_ptr() as u64, 24, 0, 0]).min(0));
        answers
    };
    let paths = || {
        [
            c(&place.project.join("file")),
            c"inside".to_owned(),
            c(&place.outside.join("way-in")),
            c(&place.outside.join("file")),
            c"way-out".to_owned(),
            c"none".to_owned(),
            c(&place.project),
            c"".to_owned(),
        ]
    };
    let spec = FilterSpec::command(Tier::B, Network::Off, OLD, MARK);
    let watch = NotifyConfig { spec, file_bytes: 64, ..watch_over(&place) };
    let outside = c(&written[0]);
    fill();
    let outcome = under(watch, || tried(paths(), outside.clone()));
    let no = |errno: i32| -i64::from(errno);
    let denied = no(libc::EACCES);
    assert_eq!(
        outcome.answers[..8],
        [0, 0, 0, denied, denied, no(libc::ENOENT), no(libc::EISDIR), no(libc::ENOENT)]
    );
    assert_eq!(outcome.answers[8..12], [no(libc::EINVAL), 0, no(libc::EFBIG), no(libc::EFAULT)]);
    assert_eq!(outcome.answers[12..], [denied, denied, no(libc::ENOSYS)]);
    let length = |path: &Path| std::fs::metadata(path).unwrap().len();
    assert_eq!(written.each_ref().map(|path| length(path)), [5, 64, 2]);
    let detail = format!("{}, its length", written[0].display());
    let refused = |call, detail| (RefusalKind::Refused, call, detail, libc::EACCES);
    let emptied = "emptying a file that is not opened for writing";
    assert_eq!(
        lines(&outcome.record.refusals),
        [refused("truncate", detail.as_str()), refused("openat", emptied)]
    );
    // The control: the filter for a newer kernel leaves truncation to Landlock, and the file is
    // emptied.
    fill();
    let outcome = under(watch_over(&place), || tried(paths(), outside.clone()));
    assert_eq!(outcome.answers[12..], [0, 0, 0]);
    assert_eq!(length(&written[0]), 0);
}

#[test]
fn a_socket_outside_is_predicted() {
    let place = test_dirs();
    let address = |path: &std::path::Path| {
        let mut bytes = (libc::AF_UNIX as u16).to_ne_bytes().to_vec();
        bytes.extend(c(path).as_bytes_with_nul());
        bytes
    };
    let (inside, outside) = (address(&place.project.join("s")), address(&place.outside.join("s")));
    let outcome = under(watch_over(&place), || {
        lock(&place);
        [inside, outside]
            .map(|address| {
                let socket = raw(libc::SYS_socket, [1, 1, 0, 0, 0, 0]) as u64;
                let length = address.len() as u64;
                raw(libc::SYS_bind, [socket, address.as_ptr() as u64, length, 0, 0, 0])
            })
            .to_vec()
    });
    assert_eq!(outcome.answers, [0, -i64::from(libc::EACCES)]);
    let detail = format!("{}/s, making it", place.outside.display());
    let expected = (RefusalKind::Predicted, "bind", detail.as_str(), libc::EACCES);
    assert_eq!(lines(&outcome.record.refusals), [expected]);
}

#[test]
fn own_streams_may_be_opened_again_and_own_entries_of_proc_have_a_number() {
    let place = test_dirs();
    let outcome = under(watch_over(&place), || {
        // A pipe in the place of the standard streams, as the runner gives one.
        let (_read, write) = std::io::pipe().unwrap();
        let write = std::os::fd::AsRawFd::as_raw_fd(&write) as u64;
        for stream in [1, 2] {
            raw(libc::SYS_dup3, [write, stream, 0, 0, 0, 0]);
        }
        lock(&place);
        [c"/dev/stderr", c"/dev/fd/1", c"/proc/self/fd/2", c"/proc/thread-self/fd/2"]
            .into_iter()
            .chain([c"/proc/self/comm"])
            .map(|path| open(&path.to_owned(), libc::O_WRONLY))
            .collect()
    });
    assert_eq!(outcome.answers, [0, 0, 0, 0, -i64::from(libc::EACCES)]);
    let own = format!("/proc/{}/comm for writing", outcome.pid);
    let expected = (RefusalKind::Predicted, "openat", own.as_str(), libc::EACCES);
    assert_eq!(lines(&outcome.record.refusals), [expected]);
}

#[test]
fn memory_of_own_processes_is_left_to_tracing_and_that_of_others_is_predicted() {
    let place = test_dirs();
    let parent = std::os::unix::process::parent_id();
    let outcome = under(watch_over(&place), || {
        lock(&place);
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let number = child.id();
        let answers = [
            format!("/proc/{number}/mem"),
            format!("/proc/{number}/task/{number}/mem"),
            "/proc/self/mem".to_owned(),
            format!("/proc/{number}/comm"),
            format!("/proc/{parent}/mem"),
            "/proc/1/mem".to_owned(),
        ]
        .map(|path| open(&CString::new(path).unwrap(), libc::O_RDWR));
        let number = i64::from(number);
        child.kill().unwrap();
        child.wait().unwrap();
        answers.into_iter().chain([number]).collect()
    });
    let (child, answers) = outcome.answers.split_last().unwrap();
    // Refused all the same: nothing in /proc is granted for writing.
    assert_eq!(answers, [-i64::from(libc::EACCES); 6]);
    let words = [format!("{child}/comm"), format!("{parent}/mem"), "1/mem".to_owned()]
        .map(|name| format!("/proc/{name} for writing"));
    let expected = words
        .each_ref()
        .map(|line| (RefusalKind::Predicted, "openat", line.as_str(), libc::EACCES));
    assert_eq!(lines(&outcome.record.refusals), expected);
}
