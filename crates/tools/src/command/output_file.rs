//! A file with the whole output of a command, where its result cannot hold it: the model reads on there.

use crate::command::capture::{self, HeadTail, SPILLED};
use crate::files::safe_open;
use crate::tool_context::ToolContext;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag};
use nix::sys::stat::Mode;
use sandbox::CallScope;
use std::borrow::Cow;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The way on where there is no such file.
pub(super) const REDIRECT: &str =
    "ask for less, or with bash redirect the output to a file and read that in parts";
/// Of each hundred characters of a result, so many are for the output; the others are for the notes.
const OUTPUT_PERCENT: usize = 90;
/// Most files of one directory: with their longest text, 256 MiB.
const FILES: usize = 32;

/// How to get the output that a result has no room for.
pub(super) fn way_on(out: &HeadTail, err: &HeadTail, ctx: &ToolContext<'_>) -> Cow<'static, str> {
    let room = ctx.max_chars / 100 * OUTPUT_PERCENT;
    let fits = |text: &str| text.chars().count() <= room;
    let bytes = out.total() + err.total();
    // Beyond what `join` keeps, its text lacks parts and fits all the same.
    let is_whole = |text: &str| bytes <= capture::KEPT as u64 && fits(text);
    if bytes <= room as u64 || is_whole(&capture::join(out.clone(), err.clone(), "").text) {
        return REDIRECT.into();
    }
    let all = capture::everything(out.clone(), err.clone()).text;
    let Some(path) = keep(&all, ctx.scope) else { return REDIRECT.into() };
    let path = ctx.shown(&path);
    match out.total().max(err.total()) <= SPILLED as u64 {
        true => format!("all of it is in {path}, which read shows in parts with offset").into(),
        false => format!(
            "the first and the last {} MiB are in {path}, which read shows in parts with offset",
            SPILLED >> 21
        )
        .into(),
    }
}

/// Writes a new file to the directory that commands know as `/tmp`, or else to the session's own.
fn keep(text: &str, scope: &CallScope) -> Option<PathBuf> {
    let tmp = scope.private.iter().find(|(shown_at, _)| shown_at == Path::new("/tmp"));
    let dir = tmp.map_or(&scope.temp, |(_, kept_at)| kept_at);
    let made = (1..FILES).find_map(|number| {
        let path = dir.join(format!("agentd-output-{number}.txt"));
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL;
        let mode = Mode::from_bits_truncate(0o600);
        match safe_open::open_no_links(AT_FDCWD, &path, flags, mode) {
            Ok(fd) => Some(Ok((path, File::from(fd)))),
            Err(Errno::EEXIST) => None,
            Err(errno) => Some(Err(errno)),
        }
    });
    let (path, mut file) = made?.ok()?;
    if file.write_all(text.as_bytes()).is_err() {
        let _ = std::fs::remove_file(&path);
        return None;
    }
    Some(path)
}
