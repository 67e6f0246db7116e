//! Calls of ordinary programs pass. Each line here was once broken by some project's filter.

use super::{lines, test_config, test_dirs};
use crate::notify::NotifyConfig;
use crate::seccomp::FilterSpec;
use crate::seccomp::tests::child::{raw, under};
use crate::seccomp::tests::{MARK, NEW};
use protocol::confinement::{Network, Tier};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;

fn everywhere() -> NotifyConfig {
    NotifyConfig {
        writable: vec![PathBuf::from("/")],
        ..test_config(FilterSpec::command(Tier::B, Network::On, NEW, MARK))
    }
}

#[test]
fn ordinary_calls_pass_without_a_line() {
    let outcome = under(everywhere(), || {
        let mut pair = [0_i32; 2];
        let at = pair.as_mut_ptr() as u64;
        let (one, length) = (1_i32, 4_u32);
        let (value, size) = (&raw const one as u64, &raw const length as u64);
        let first = |pair: [i32; 2]| pair[0] as u64;
        let seqpacket = (libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC) as u64;
        let mut answers = vec![
            raw(libc::SYS_socketpair, [1, 1, 0, at, 0, 0]),
            raw(libc::SYS_setsockopt, [first(pair), 1, libc::SO_PASSCRED as u64, value, 4, 0]),
            raw(libc::SYS_getsockopt, [first(pair), 1, libc::SO_TYPE as u64, value, size, 0]),
            raw(libc::SYS_socketpair, [1, seqpacket, 0, at, 0, 0]),
            raw(libc::SYS_memfd_create, [c"m".as_ptr() as u64, 0, 0, 0, 0, 0]).min(0),
            raw(libc::SYS_personality, [0xFFFF_FFFF, 0, 0, 0, 0, 0]).min(0),
            raw(libc::SYS_personality, [0x4_0000, 0, 0, 0, 0, 0]).min(0),
            raw(libc::SYS_unshare, [(libc::CLONE_FS | libc::CLONE_FILES) as u64, 0, 0, 0, 0, 0]),
            raw(libc::SYS_prlimit64, [0, 7, 0, 0, 0, 0]),
            // The lowest, which each niceness may go to.
            raw(libc::SYS_setpriority, [0, 0, 19, 0, 0, 0]),
            raw(libc::SYS_socket, [16, 3 | libc::SOCK_CLOEXEC as u64, 0, 0, 0, 0]).min(0),
            raw(libc::SYS_socket, [2, 1, 6, 0, 0, 0]).min(0),
            raw(libc::SYS_socket, [10, 2, 0, 0, 0, 0]).min(0),
        ];
        // There is no terminal here: the kernel's own answer shows that the request got through.
        answers.push(raw(libc::SYS_ioctl, [first(pair), libc::TIOCGWINSZ, 0, 0, 0, 0]));
        answers.push(std::thread::spawn(|| 0).join().unwrap());
        let (mut one, mut other) = UnixStream::pair().unwrap();
        std::io::Write::write_all(&mut one, b"x").unwrap();
        let mut byte = [0];
        std::io::Read::read_exact(&mut other, &mut byte).unwrap();
        answers
    });
    let mut expected = vec![0; 13];
    expected.extend([-i64::from(libc::ENOTTY), 0]);
    assert_eq!(outcome.answers, expected);
    assert_eq!(lines(&outcome.record.refusals), []);
}

#[test]
fn programs_are_started_by_path_and_by_descriptor() {
    let outcome = under(everywhere(), || {
        let by_path = Command::new("sh").args(["-c", "echo x >/dev/null; exit 3"]).status();
        let file = std::fs::File::open("/bin/true").unwrap();
        let file = std::os::fd::AsRawFd::as_raw_fd(&file) as u64;
        // SAFETY: the copy becomes another program or ends.
        #[allow(unsafe_code)]
        let child = unsafe { libc::fork() };
        if child == 0 {
            let arguments = [c"true".as_ptr(), std::ptr::null()];
            let none = [std::ptr::null::<libc::c_char>()];
            let (arguments, none) = (arguments.as_ptr() as u64, none.as_ptr() as u64);
            let empty = c"".as_ptr() as u64;
            let flags = libc::AT_EMPTY_PATH as u64;
            raw(libc::SYS_execveat, [file, empty, arguments, none, flags, 0]);
            // SAFETY: ends the copy.
            #[allow(unsafe_code)]
            unsafe {
                libc::_exit(9)
            }
        }
        let mut status = 0;
        // SAFETY: waits for our own child.
        #[allow(unsafe_code)]
        unsafe {
            libc::waitpid(child, &raw mut status, 0);
        }
        vec![i64::from(by_path.unwrap().code().unwrap()), i64::from(status)]
    });
    assert_eq!(outcome.answers, [3, 0]);
    assert_eq!(lines(&outcome.record.refusals), []);
}

#[test]
fn a_shell_works_in_its_project_without_a_line() {
    let place = test_dirs();
    let script = "mkdir -p a/b && echo x > a/b/c && mv a/b/c a/d && cp -p a/d a/e && ln -s d a/f \
                  && cat a/f a/e > g && rm -rf a && test \"$(cat g | wc -l)\" -eq 2";
    let watch =
        NotifyConfig { writable: vec![place.project.clone(), "/dev/null".into()], ..everywhere() };
    let outcome = under(watch, || {
        let mut shell = Command::new("sh");
        let status = shell.arg("-ec").arg(script).current_dir(&place.project).status();
        vec![i64::from(status.unwrap().code().unwrap())]
    });
    assert_eq!(outcome.answers, [0]);
    assert_eq!(lines(&outcome.record.refusals), []);
}
