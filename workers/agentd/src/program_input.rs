//! Lines of an editor or a program on standard input.

use crate::cli_error::CliError;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::sync::mpsc::Sender;

/// Longest line, in bytes: a prompt with the text of a large file.
const LINE: u64 = 32 << 20;

/// What is read.
#[derive(Debug)]
pub(crate) enum ProgramText {
    /// A line that is not blank. Bytes that are no UTF-8 are replaced.
    Line(String),
    /// A line was left out that has more bytes than this.
    TooLong(u64),
    /// The other end has gone.
    Eof,
}

/// Standard input, which no program that this one starts may read from: a command that prints a key would take the
/// words of the other end.
pub(crate) fn own_input() -> Result<File, CliError> {
    let own = io::stdin().as_fd().try_clone_to_owned();
    let nothing = File::open("/dev/null");
    let moved = own.and_then(|own| {
        nix::unistd::dup2_stdin(&nothing?)?;
        Ok(File::from(own))
    });
    moved.map_err(|error| CliError::internal(format!("standard input cannot be used: {error}")))
}

/// Reads lines until the end.
pub(crate) fn read_lines<T: From<ProgramText>>(input: File, inputs: &Sender<T>) {
    let mut input = BufReader::new(input);
    loop {
        let mut line = Vec::new();
        let text = match input.by_ref().take(LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => ProgramText::Eof,
            Ok(_) if line.last() != Some(&b'\n') && line.len() as u64 == LINE => {
                match input.skip_until(b'\n') {
                    Ok(_) => ProgramText::TooLong(LINE),
                    Err(_) => ProgramText::Eof,
                }
            }
            Ok(_) if line.trim_ascii().is_empty() => continue,
            Ok(_) => ProgramText::Line(String::from_utf8_lossy(line.trim_ascii()).into_owned()),
        };
        let is_last = matches!(text, ProgramText::Eof);
        if inputs.send(text.into()).is_err() || is_last {
            return;
        }
    }
}
