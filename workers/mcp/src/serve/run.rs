//! One process of `agentd` that the server runs: its input, its bounded outputs, and its end. Used by `serve`.

use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::future::Future;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep_until, timeout};

/// How long a process may take to end in order after SIGTERM.
const GRACE: Duration = Duration::from_secs(20);
/// How long outputs may stay open after the end of the process.
const REST: Duration = Duration::from_secs(2);

/// A process to run.
pub(super) struct Spawn<'a> {
    pub(super) program: &'a Path,
    pub(super) words: Vec<OsString>,
    pub(super) directory: &'a Path,
    /// Its whole standard input.
    pub(super) input: String,
}

/// Most bytes that are kept of each output.
pub(super) struct Capture {
    out: usize,
    err: usize,
}

impl Default for Capture {
    fn default() -> Self {
        Self { out: 8 << 20, err: 16 << 10 }
    }
}

/// What a process printed, and how it ended.
#[derive(Debug, Default)]
pub(super) struct Output {
    /// As a shell has it: 128 and the number of the signal that killed it.
    pub(super) exit_code: i32,
    pub(super) out: Vec<u8>,
    /// Bytes of standard output beyond those kept.
    pub(super) lost: usize,
    pub(super) err: Vec<u8>,
}

/// Runs it until it has ended; `stop` ends it by SIGTERM, and by SIGKILL if that does not.
///
/// # Errors
/// If it cannot be started or waited for.
pub(super) async fn to_the_end(
    spawn: Spawn<'_>,
    capture: Capture,
    stop: impl Future<Output = ()>,
) -> Result<Output, String> {
    let failed = |error: io::Error| format!("{}: {error}", spawn.program.display());
    let mut command = Command::new(spawn.program);
    command.args(spawn.words).current_dir(spawn.directory).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let write = async {
        if let Some(mut stdin) = stdin {
            // A process that ends before it has read all says why.
            let _early = stdin.write_all(spawn.input.as_bytes()).await;
        }
    };
    let mut streams = pin!(async {
        let streams = tokio::join!(write, kept(stdout, capture.out), kept(stderr, capture.err));
        (streams.1, streams.2)
    });
    let mut stop = pin!(stop);
    let (mut read, mut kill_at) = (None, None);
    let status = loop {
        tokio::select! {
            status = child.wait() => break status.map_err(failed)?,
            both = &mut streams, if read.is_none() => read = Some(both),
            () = &mut stop, if kill_at.is_none() => {
                terminate(&child);
                kill_at = Some(Instant::now() + GRACE);
            }
            () = sleep_until(kill_at.unwrap_or_else(Instant::now)), if kill_at.is_some() => {
                child.start_kill().map_err(failed)?;
                kill_at = Some(Instant::now() + GRACE);
            }
        }
    };
    let read = match read {
        Some(read) => Some(read),
        None => timeout(REST, streams).await.ok(),
    };
    let ((out, lost), (err, _)) = read.unwrap_or_default();
    Ok(Output { exit_code: exit_code(status), out, lost, err })
}

fn exit_code(status: ExitStatus) -> i32 {
    let of_signal = || status.signal().map_or(1, |signal| signal.saturating_add(128));
    status.code().unwrap_or_else(of_signal)
}

/// Sends SIGTERM. The process has no number any more once it was waited for.
fn terminate(child: &Child) {
    let number = child.id().and_then(|id| i32::try_from(id).ok());
    if let Some(pid) = number.and_then(Pid::from_raw) {
        let _gone = kill_process(pid, Signal::TERM);
    }
}

/// Reads a stream to its end and keeps its first bytes; the others are counted.
async fn kept(stream: Option<impl AsyncRead + Unpin>, most: usize) -> (Vec<u8>, usize) {
    let (mut all, mut lost) = (Vec::new(), 0_usize);
    let Some(mut stream) = stream else { return (all, lost) };
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        let fits = count.min(most.saturating_sub(all.len()));
        all.extend(buffer.iter().take(fits));
        lost = lost.saturating_add(count.saturating_sub(fits));
    }
    (all, lost)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::future::pending;
    use tokio::time::sleep;

    fn shell(script: &str, input: &str, stop: impl Future<Output = ()>) -> Output {
        let spawn = Spawn {
            program: Path::new("/bin/sh"),
            words: ["-c", script].map(OsString::from).to_vec(),
            directory: Path::new("/"),
            input: input.to_owned(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(to_the_end(spawn, Capture { out: 10, err: 3 }, stop)).unwrap()
    }

    #[test]
    fn outputs_are_kept_up_to_their_bounds() {
        let ran = shell("cat; echo wrong >&2; exit 7", "0123456789abc", pending());
        assert_eq!((ran.exit_code, ran.out.as_slice(), ran.lost), (7, &b"0123456789"[..], 3));
        assert_eq!(ran.err, b"wro");
    }

    #[test]
    fn a_stop_ends_the_process_in_order() {
        let stop = async { sleep(Duration::from_millis(300)).await };
        let script = "trap 'echo over; exit 143' TERM; while :; do sleep 0.05; done";
        let ran = shell(script, "", stop);
        assert_eq!((ran.exit_code, ran.out.as_slice()), (143, &b"over\n"[..]));
    }
}
