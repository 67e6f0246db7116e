//! The prompt of a run: from the command line, standard input, or both.

use crate::cli_error::CliError;
use client::Prompts;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::Value;
use std::fs::File;
use std::io::{self, BufRead, IsTerminal, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;

/// Largest text on standard input in bytes. Stops an endless pipe from filling memory.
const CAP: u64 = 16 << 20;
/// The format of a prompt in a stream, for messages.
const SHAPE: &str =
    r#"each line is a message such as {"type":"user","message":{"role":"user","content":"Hi"}}"#;
/// Longest wait in milliseconds for data on a pipe, if there is a prompt already. Programs often
/// start others with a pipe that they never close.
const PATIENCE_MS: u16 = 3000;

/// The prompt of a run: the command line, then standard input.
pub(crate) fn read(given: Option<&str>) -> Result<String, CliError> {
    let given = given.unwrap_or_default();
    let piped =
        if io::stdin().is_terminal() || is_silent_pipe(given)? { String::new() } else { piped()? };
    let prompt = join(given, &piped);
    if prompt.trim().is_empty() {
        return Err(CliError::user("there is no prompt").hint(
            "give it on the command line, as in `agentd -p 'What is here?'`, or on standard input",
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

/// Refuses a prompt on the command line if all prompts come from standard input.
pub(crate) fn none(given: Option<&str>) -> Result<(), CliError> {
    match given {
        Some(given) if !given.trim().is_empty() => {
            Err(CliError::user("--input-format stream-json takes its prompts from standard input")
                .hint("remove the prompt from the command line"))
        }
        Some(_) | None => Ok(()),
    }
}

/// The first prompt of a stream of JSON lines, and the way to the others.
pub(crate) fn first_of_stream() -> Result<(String, Prompts), CliError> {
    let mut read = 0;
    let mut next = move || next_of_stream(&mut read);
    let first = next().unwrap_or_else(|| Err("there is no prompt on standard input".to_owned()));
    let first = first.map_err(|message| CliError::user(message).hint(SHAPE))?;
    Ok((first, Prompts::Following(Box::new(next))))
}

/// The next prompt on standard input; `read` counts its lines.
fn next_of_stream(read: &mut u64) -> Option<Result<String, String>> {
    loop {
        let mut line = Vec::new();
        *read += 1;
        let said = io::stdin().lock().take(CAP + 1).read_until(b'\n', &mut line);
        let wrong = |why: &str| Some(Err(format!("standard input, line {read}: {why}")));
        match said {
            Ok(0) => return None,
            Ok(length) if length as u64 > CAP => {
                return wrong(&format!("it is longer than {} MiB", CAP >> 20));
            }
            Ok(_) if line.trim_ascii().is_empty() => {}
            Ok(_) => match message(&line) {
                Ok(text) => return Some(Ok(text)),
                Err(why) => return wrong(&why),
            },
            Err(error) => return wrong(&error.to_string()),
        }
    }
}

/// The text of a user message.
fn message(line: &[u8]) -> Result<String, String> {
    let said: Value = serde_json::from_slice(line).map_err(|error| format!("not JSON: {error}"))?;
    if said["type"] != "user" {
        return Err(format!("its type is {} and not \"user\"", said["type"]));
    }
    let text = match &said["message"]["content"] {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let text = |block: &Value| match block["type"].as_str() {
                Some("text") => block["text"].as_str().map(str::to_owned),
                Some(_) | None => None,
            };
            let texts: Option<Vec<String>> = blocks.iter().map(text).collect();
            texts.ok_or("a message may contain only text")?.join("\n\n")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            return Err("it has no message.content".to_owned());
        }
    };
    if text.trim().is_empty() { Err("its message is empty".to_owned()) } else { Ok(text) }
}

/// True if there is a prompt already and standard input is a pipe on which nothing arrives.
fn is_silent_pipe(given: &str) -> Result<bool, CliError> {
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
        .map_err(|error| CliError::user(format!("cannot read standard input: {error}")))?;
    if ready == 0 {
        eprintln!(
            "agentd: standard input sent nothing within {} s; continuing without it; close it \
             with </dev/null",
            PATIENCE_MS / 1000
        );
    }
    Ok(ready == 0)
}

fn piped() -> Result<String, CliError> {
    let mut bytes = Vec::new();
    match io::stdin().lock().take(CAP + 1).read_to_end(&mut bytes) {
        Ok(length) if length as u64 > CAP => {
            Err(CliError::user(format!("standard input is larger than {} MiB", CAP >> 20))
                .hint("put the text into a file of the project and name the file in the prompt"))
        }
        Ok(_) => {
            String::from_utf8(bytes).map_err(|_| CliError::user("standard input is not UTF-8 text"))
        }
        // A closed standard input counts as empty.
        Err(error) if error.raw_os_error() == Some(nix::libc::EBADF) => Ok(String::new()),
        Err(error) => Err(CliError::user(format!("cannot read standard input: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_a_stream_are_understood_or_named() {
        let said = |line: &str| message(line.as_bytes());
        let simple = r#"{"type":"user","message":{"role":"user","content":"hi"}}"#;
        assert_eq!(said(simple), Ok("hi".to_owned()));
        let blocks = r#"{"type":"user","message":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}"#;
        assert_eq!(said(blocks), Ok("a\n\nb".to_owned()));
        for wrong in [
            "hi",
            "{}",
            r#"{"type":"assistant"}"#,
            r#"{"type":"user"}"#,
            r#"{"type":"user","message":{"content":" "}}"#,
            r#"{"type":"user","message":{"content":[{"type":"image"}]}}"#,
        ] {
            assert!(said(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn both_are_joined_and_one_is_enough() {
        assert_eq!(join("sum this up", "a b\n"), "sum this up\n\na b\n");
        assert_eq!(join("hi", " \n"), "hi");
        assert_eq!(join("", "text"), "text");
    }
}
