//! The words for the model: from the command line, from standard input, or both.

use crate::failure::Failure;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;

/// Largest text on standard input in bytes. Stops an endless pipe from filling memory.
const CAP: u64 = 16 << 20;
/// How long to wait for a pipe that may never say anything, in milliseconds, where there are words
/// already. Programs often start others with a pipe that they forget to close.
const PATIENCE_MS: u16 = 3000;

/// The prompt of a run: `given` on the command line, and what comes on standard input behind it.
pub(crate) fn read(given: Option<&str>) -> Result<String, Failure> {
    let given = given.unwrap_or_default();
    let piped = if io::stdin().is_terminal() || silent(given)? { String::new() } else { piped()? };
    let prompt = join(given, &piped);
    if prompt.trim().is_empty() {
        return Err(Failure::user("there is no prompt").hint(
            "say it on the command line, as in `agentd -p 'What is here?'`, or on standard input",
        ));
    }
    Ok(prompt)
}

fn join(given: &str, piped: &str) -> String {
    match (given.trim().is_empty(), piped.trim().is_empty()) {
        (false, false) => format!("{given}\n\n{piped}"),
        (false, true) => given.to_owned(),
        (true, _) => piped.to_owned(),
    }
}

/// Whether standard input is a pipe on which nothing comes while there are words already.
fn silent(given: &str) -> Result<bool, Failure> {
    if given.trim().is_empty() {
        return Ok(false);
    }
    let stdin = io::stdin();
    let kind = stdin.as_fd().try_clone_to_owned().map(File::from).and_then(|file| file.metadata());
    if !kind.is_ok_and(|kind| kind.file_type().is_fifo() || kind.file_type().is_socket()) {
        return Ok(false);
    }
    let mut fds = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    let ready = poll(&mut fds, PollTimeout::from(PATIENCE_MS))
        .map_err(|error| Failure::user(format!("cannot read standard input: {error}")))?;
    if ready == 0 {
        eprintln!(
            "agentd: nothing came on standard input within {} s, going on without it; close it \
             with </dev/null",
            PATIENCE_MS / 1000
        );
    }
    Ok(ready == 0)
}

fn piped() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    match io::stdin().lock().take(CAP + 1).read_to_end(&mut bytes) {
        Ok(length) if length as u64 > CAP => {
            Err(Failure::user(format!("standard input is larger than {} MiB", CAP >> 20))
                .hint("put it into a file of the project and name the file in the prompt"))
        }
        Ok(_) => {
            String::from_utf8(bytes).map_err(|_| Failure::user("standard input is not UTF-8 text"))
        }
        // A closed standard input says nothing.
        Err(error) if error.raw_os_error() == Some(nix::libc::EBADF) => Ok(String::new()),
        Err(error) => Err(Failure::user(format!("cannot read standard input: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_are_joined_and_one_is_enough() {
        assert_eq!(join("sum this up", "a b\n"), "sum this up\n\na b\n");
        assert_eq!(join("hi", " \n"), "hi");
        assert_eq!(join("", "text"), "text");
    }
}
