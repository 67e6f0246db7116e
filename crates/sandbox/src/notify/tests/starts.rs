//! Programs that may not be run from where they lie are in the record, and nothing else is.

use super::{TestDirs, c, lines, test_config, test_dirs};
use crate::notify::{NotifyConfig, RunnablePaths};
use crate::seccomp::FilterSpec;
use crate::seccomp::tests::child::{raw, under};
use crate::seccomp::tests::{MARK, NEW};
use landlock::{
    ABI, Access, AccessFs, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr,
};
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use protocol::confinement::{Network, RefusalKind, Tier};
use std::ffi::CString;
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

const AT: u64 = libc::AT_FDCWD as u64;
const NONE: i64 = -(libc::ENOENT as i64);
const DENIED: i64 = -(libc::EACCES as i64);

/// Where the system's own programs and their loaders lie.
const SYSTEM: [&str; 4] = ["/usr", "/bin", "/lib", "/lib64"];

fn watch_over(place: &TestDirs) -> NotifyConfig {
    let system = SYSTEM.iter().filter_map(|path| std::fs::canonicalize(path).ok());
    NotifyConfig {
        runnable: RunnablePaths {
            places: system.chain([place.project.clone()]).collect(),
            ..RunnablePaths::default()
        },
        writable: vec![PathBuf::from("/")],
        ..test_config(FilterSpec::command(Tier::B, Network::Off, NEW, MARK))
    }
}

/// Locks this process so that it may run programs of the system and the project only.
fn lock(place: &TestDirs) {
    let runs = AccessFs::Execute;
    let mut ruleset =
        Ruleset::default().handle_access(AccessFs::from_all(ABI::V1) & runs).unwrap().create();
    for path in SYSTEM.iter().map(Path::new).chain([place.project.as_path()]) {
        if let Ok(place) = PathFd::new(path) {
            ruleset = ruleset.unwrap().add_rule(PathBeneath::new(place, runs));
        }
    }
    let status = ruleset.unwrap().restrict_self().unwrap();
    assert_eq!(status.ruleset, landlock::RulesetStatus::FullyEnforced, "Landlock is needed");
}

/// A program that exits with 7. Another process writes it: a child forked here meanwhile would hold
/// it open for writing.
fn program(at: &Path, first: &str) -> CString {
    let text = format!("#!{first}\nexit 7\n");
    let script = "printf '%s' \"$1\" > \"$0\" && chmod 755 \"$0\"";
    let mut shell = std::process::Command::new("sh");
    assert!(shell.args(["-c", script]).arg(at).arg(&text).status().unwrap().success());
    c(at)
}

/// The errno of a start in a copy of this process, or the code with which the program ended.
fn start(call: i64, args: [u64; 6]) -> i64 {
    // SAFETY: the copy becomes another program or ends.
    #[allow(unsafe_code)]
    let child = unsafe { libc::fork() };
    if child == 0 {
        let errno = -raw(call, args);
        // SAFETY: ends the copy.
        #[allow(unsafe_code)]
        unsafe {
            libc::_exit(100 + i32::try_from(errno).unwrap_or(0))
        }
    }
    let mut status = 0;
    // SAFETY: waits for our own child.
    #[allow(unsafe_code)]
    unsafe {
        libc::waitpid(child, &raw mut status, 0);
    }
    match i64::from(libc::WEXITSTATUS(status)) {
        errno @ 100.. => 100 - errno,
        code => code,
    }
}

/// By `execve`, with this in the fourth register.
fn run_with(path: &CString, register: u64) -> i64 {
    let (arguments, none) = ([path.as_ptr(), std::ptr::null()], [std::ptr::null::<u8>()]);
    let at = [path.as_ptr() as u64, arguments.as_ptr() as u64, none.as_ptr() as u64];
    start(libc::SYS_execve, [at[0], at[1], at[2], register, 0, 0])
}

fn run(path: &CString) -> i64 {
    run_with(path, 0)
}

/// By `execveat`.
fn run_at(dir: u64, path: &CString, flags: i32) -> i64 {
    let (arguments, none) = ([path.as_ptr(), std::ptr::null()], [std::ptr::null::<u8>()]);
    let at = [path.as_ptr() as u64, arguments.as_ptr() as u64, none.as_ptr() as u64];
    start(libc::SYS_execveat, [dir, at[0], at[1], at[2], flags as u64, 0])
}

#[test]
fn a_program_outside_is_predicted_and_what_may_or_cannot_be_run_is_not() {
    let place = test_dirs();
    let outside = program(&place.outside.join("tool"), "/bin/sh");
    let inside = program(&place.project.join("tool"), "/bin/sh");
    let plain = place.outside.join("plain");
    std::fs::write(&plain, "exit 7").unwrap();
    symlink(place.outside.join("tool"), place.project.join("link")).unwrap();
    symlink(place.project.join("tool"), place.outside.join("back")).unwrap();
    let (none, nowhere) = (c(&place.outside.join("none")), c(&place.outside.join("no/where")));
    let by_link = c(&place.project.join("link"));
    let back = c(&place.outside.join("back"));
    let (plain, folder, project) = (c(&plain), c(&place.outside), c(&place.project));
    let outcome = under(watch_over(&place), || {
        lock(&place);
        let mut answers = vec![
            run(&inside),
            run(&back),
            run(&outside),
            run(&by_link),
            run(&none),
            run(&nowhere),
            run(&plain),
            run(&folder),
            run(&c"".to_owned()),
            start(libc::SYS_execve, [8, 0, 0, 0, 0, 0]),
        ];
        assert_eq!(raw(libc::SYS_chdir, [project.as_ptr() as u64, 0, 0, 0, 0, 0]), 0);
        answers.push(run(&c"../outside/tool".to_owned()));
        answers.push(run(&c"./tool".to_owned()));
        answers
    });
    let fault = -i64::from(libc::EFAULT);
    assert_eq!(
        outcome.answers,
        [7, 7, DENIED, DENIED, NONE, NONE, DENIED, DENIED, NONE, fault, DENIED, 7]
    );
    let words = format!("{}/tool, running it", place.outside.display());
    let line = (RefusalKind::Predicted, "execve", words.as_str(), libc::EACCES);
    assert_eq!(lines(&outcome.record.refusals), [line, line, line]);
}

#[test]
fn a_directory_and_a_name_in_it_are_predicted_and_open_files_are_not() {
    let place = test_dirs();
    let tool = program(&place.outside.join("tool"), "/bin/sh");
    program(&place.project.join("tool"), "/bin/sh");
    symlink(&place.outside, place.project.join("out")).unwrap();
    let file = std::fs::File::open("/bin/true").unwrap();
    // Without close-on-exec: a script is read through its directory.
    let dirs = [&place.outside, &place.project]
        .map(|dir| open(dir, OFlag::O_RDONLY, Mode::empty()).unwrap());
    let outcome = under(watch_over(&place), || {
        lock(&place);
        let memory = raw(libc::SYS_memfd_create, [c"m".as_ptr() as u64, 0, 0, 0, 0, 0]) as u64;
        let true_ = std::fs::read("/bin/true").unwrap();
        let (at, length) = (true_.as_ptr() as u64, true_.len() as u64);
        assert_eq!(raw(libc::SYS_write, [memory, at, length, 0, 0, 0]), length as i64);
        let name = c"tool".to_owned();
        let [outside, project] = dirs.each_ref().map(|dir| dir.as_raw_fd() as u64);
        let empty = c"".to_owned();
        vec![
            run_at(outside, &name, 0),
            run_at(project, &name, 0),
            run_at(AT, &tool, libc::AT_SYMLINK_NOFOLLOW),
            run_at(project, &c"out/tool".to_owned(), libc::AT_SYMLINK_NOFOLLOW),
            run_at(project, &c"out".to_owned(), libc::AT_SYMLINK_NOFOLLOW),
            run_at(file.as_raw_fd() as u64, &empty, libc::AT_EMPTY_PATH),
            run_at(memory, &empty, libc::AT_EMPTY_PATH),
        ]
    });
    let loop_ = -i64::from(libc::ELOOP);
    assert_eq!(outcome.answers, [DENIED, 7, DENIED, DENIED, loop_, 0, 0]);
    let words = format!("{}/tool, running it", place.outside.display());
    let line = (RefusalKind::Predicted, "execveat", words.as_str(), libc::EACCES);
    assert_eq!(lines(&outcome.record.refusals), [line, line, line]);
}

#[test]
fn the_program_of_a_scripts_first_line_is_predicted() {
    let place = test_dirs();
    let shell = place.outside.join("shell");
    program(&shell, "/bin/sh");
    let name = shell.to_str().unwrap();
    let script = program(&place.project.join("script"), &format!(" {name} -e"));
    let through = program(
        &place.project.join("through"),
        &place.project.join("script").display().to_string(),
    );
    let missing = program(&place.project.join("missing"), &format!("{name}-none"));
    let fine = program(&place.project.join("fine"), "/usr/bin/env sh");
    let outcome = under(watch_over(&place), || {
        lock(&place);
        vec![run(&script), run(&through), run(&missing), run(&fine)]
    });
    assert_eq!(outcome.answers, [DENIED, DENIED, NONE, 7]);
    let words = format!("{name}, running {}/script with it", place.project.display());
    let line = (RefusalKind::Predicted, "execve", words.as_str(), libc::EACCES);
    assert_eq!(lines(&outcome.record.refusals), [line, line]);
}

#[test]
fn a_start_with_the_mark_passes_the_listener_and_not_the_kernel() {
    let place = test_dirs();
    let outside = program(&place.outside.join("tool"), "/bin/sh");
    let inside = program(&place.project.join("tool"), "/bin/sh");
    let mark = MARK.register();
    let outcome = under(watch_over(&place), || {
        lock(&place);
        [mark, mark ^ 1, mark ^ 1 << 32]
            .into_iter()
            .flat_map(|register| [run_with(&inside, register), run_with(&outside, register)])
            .collect()
    });
    assert_eq!(outcome.answers, [7, DENIED, 7, DENIED, 7, DENIED]);
    assert_eq!(outcome.record.refusals.len(), 2, "{:?}", outcome.record.refusals);
}

#[test]
fn a_loop_of_refused_starts_is_bounded() {
    let place = test_dirs();
    let tools: Vec<_> =
        ["one", "two"].map(|name| program(&place.outside.join(name), "/bin/sh")).into();
    let outcome = under(watch_over(&place), || {
        lock(&place);
        let path = |at: usize| tools[at % 2].as_ptr() as u64;
        (0..500).map(|at| raw(libc::SYS_execve, [path(at), 0, 0, 0, 0, 0])).collect()
    });
    assert_eq!(outcome.answers, [DENIED; 500]);
    let kept: u64 = outcome.record.refusals.iter().map(|line| line.count).sum();
    assert_eq!((outcome.record.refusals.len(), kept + outcome.record.uncounted), (200, 500));
}
