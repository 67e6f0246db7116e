//! What a hostile program tries. Each prints `ACT: done` or `ACT: ERRNO words`.

use nix::errno::Errno;
use std::io;
use std::process::ExitCode;

/// Tries one act and prints how it went.
pub fn attempt(act: &str, words: &[&str]) -> ExitCode {
    match perform(act, words) {
        Ok(said) => {
            println!("{act}: done {said}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            let errno = Errno::from_raw(error.raw_os_error().unwrap_or(0));
            println!("{act}: {errno:?} {error}");
            ExitCode::FAILURE
        }
    }
}

fn perform(act: &str, words: &[&str]) -> io::Result<String> {
    match (act, words) {
        ("write", [path]) => std::fs::write(path, "written by the attempt").map(|()| String::new()),
        ("read", [path]) => std::fs::read_to_string(path),
        _ => Err(io::Error::other(format!("no such act: {act} {words:?}"))),
    }
}
