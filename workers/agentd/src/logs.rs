//! `agentd logs`: the log of supervisors and workers, of all sessions or of one.

use crate::cli_error::CliError;
use crate::cli_exit::CliExit;
use crate::context::CliContext;
use crate::sessions;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use protocol::hidden::on_screen;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use std::fs::{DirBuilder, File};
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

/// Use of the flag `--follow`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FollowMode {
    End,
    Follow,
}

pub(crate) fn main(beginning: Option<&str>, then: FollowMode) -> Result<CliExit, CliError> {
    let context = CliContext::of_process()?;
    let session = beginning.map(|beginning| sessions::named(&context, beginning)).transpose()?;
    let dir = context.dirs.state.join("log");
    let wanted = |line: &str| session.as_ref().is_none_or(|session| line.contains(&session.0));
    let mut shown = 0;
    let old = dir.join("supervisor.log.old");
    if old.exists() {
        shown += copy(&mut opened(&old)?, &wanted)?;
    }
    let current = dir.join("supervisor.log");
    if !current.exists() && then == FollowMode::End {
        if shown == 0 {
            eprintln!("agentd: there is no log in {} yet", dir.display());
        }
        return Ok(CliExit::Done);
    }
    if then == FollowMode::End {
        copy(&mut opened(&current)?, &wanted)?;
        return Ok(CliExit::Done);
    }
    let watch = LogWatch::of(&dir).map_err(|error| {
        CliError::internal(format!("{} cannot be watched: {error}", dir.display()))
    })?;
    while !current.exists() {
        watch.wait();
    }
    let mut log = opened(&current)?;
    loop {
        copy(&mut log, &wanted)?;
        watch.wait();
        // A supervisor that starts moves a long log away and begins a new one.
        if is_another(&current, log.get_ref()) {
            copy(&mut log, &wanted)?;
            log = opened(&current)?;
        }
    }
}

/// Wakes up when something is written in a directory.
struct LogWatch(OwnedFd);

impl LogWatch {
    /// Watches from now on. Creates the directory if it is missing.
    fn of(dir: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let changes = WatchFlags::MODIFY | WatchFlags::CREATE | WatchFlags::MOVED_TO;
        inotify::add_watch(&watch, dir, changes)?;
        Ok(Self(watch))
    }

    /// Waits for the next change. Ends the process if the reader closed standard output.
    fn wait(&self) {
        let out = io::stdout();
        let mut polled = [
            PollFd::new(self.0.as_fd(), PollFlags::POLLIN),
            PollFd::new(out.as_fd(), PollFlags::empty()),
        ];
        let _ = poll(&mut polled, PollTimeout::NONE);
        let closed = PollFlags::POLLERR | PollFlags::POLLHUP;
        if polled[1].revents().is_some_and(|seen| seen.intersects(closed)) {
            std::process::exit(0);
        }
        // The files show the changes. The notifications are only removed from the queue.
        let mut buffer = [0; 4096];
        while nix::unistd::read(&self.0, &mut buffer).is_ok_and(|length| length > 0) {}
    }
}

fn opened(path: &Path) -> Result<BufReader<File>, CliError> {
    File::open(path).map(BufReader::new).map_err(|error| unreadable(&error))
}

fn is_another(path: &Path, open: &File) -> bool {
    match (std::fs::metadata(path), open.metadata()) {
        (Ok(there), Ok(here)) => (there.dev(), there.ino()) != (here.dev(), here.ino()),
        (Ok(_) | Err(_), _) => false,
    }
}

/// Prints the lines that are wanted up to the present end; how many. A closed pipe ends it all.
fn copy(log: &mut BufReader<File>, wanted: &impl Fn(&str) -> bool) -> Result<usize, CliError> {
    let mut out = io::stdout().lock();
    let (mut shown, mut line) = (0, Vec::new());
    loop {
        line.clear();
        match log.read_until(b'\n', &mut line) {
            Ok(0) => return Ok(shown),
            Ok(_) => {
                let text = String::from_utf8_lossy(&line);
                if wanted(&text) {
                    shown += 1;
                    let text = on_screen(text.trim_end_matches('\n'));
                    if writeln!(out, "{text}").is_err() {
                        std::process::exit(0);
                    }
                }
            }
            Err(error) => return Err(unreadable(&error)),
        }
    }
}

fn unreadable(error: &io::Error) -> CliError {
    CliError::config(format!("the log cannot be read: {error}")).exit(CliExit::Failed)
}
