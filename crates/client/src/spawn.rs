//! Starts supervisors (private ones and the daemon), `agentd-store` for memories, the command that prints a key, and the pager. The
//! only file of this crate that starts a process, beside `installer` and `fleet_programs`.
//!
//! The child's standard input is one end of a socket pair, its lifeline. When this process ends, the
//! lifeline closes, and the supervisor ends. The supervisor first sends one line of JSON on it, with the
//! path of its socket.

use crate::screen::FilePlace;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::Deserialize;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Longest time until a new supervisor reports its socket. It first cleans up after earlier ones.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest time for a supervisor to end its workers in order, before it is killed. Its own ladder
/// takes 2 s from TERM to KILL.
const END_TIMEOUT: Duration = Duration::from_secs(6);
/// Longest startup message. Keeps a foreign program from filling the memory.
const MESSAGE_CAP: u64 = 64 << 10;

/// How a supervisor is started.
#[derive(Debug, Clone, Copy)]
pub struct SupervisorLaunch<'a> {
    /// Its executable.
    pub executable: &'a Path,
    /// Variables that it must not inherit: a key belongs to the provider alone.
    pub without: &'a [&'a str],
    /// Variables that are added to those of this process or replace them.
    pub with: &'a [(String, String)],
}

impl SupervisorLaunch<'_> {
    fn command(&self, mode: &str) -> Command {
        let mut command = Command::new(self.executable);
        command.arg(mode);
        for variable in self.without {
            command.env_remove(variable);
        }
        command.envs(self.with.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// Runs the command that prints a key, with a memory file as its standard output, and seals the
/// file. This process does not read the key. The command may prompt the user on the terminal.
///
/// # Errors
/// Where it cannot be started, or fails.
pub fn key_of_command(line: &str) -> io::Result<OwnedFd> {
    let memory = crate::sealed_key::memory_file()?;
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(line).stdout(Stdio::from(memory.try_clone()?));
    let status = command.status()?;
    match status.success() {
        true => crate::sealed_key::sealed(memory),
        false => Err(io::Error::other(format!("it ended with {status}"))),
    }
}

/// Shows a text that is longer than a terminal of `rows` rows in the user's pager: `$PAGER`, by default
/// `less`. Returns false if the text fits, or if the pager cannot be started or fails.
#[must_use]
pub fn page(text: &str, rows: u16) -> bool {
    let pager = std::env::var("PAGER").unwrap_or_else(|_| "less".to_owned());
    if text.lines().count() < usize::from(rows) || pager.trim().is_empty() {
        return false;
    }
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(&pager).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        // Colours, no clearing of the screen, no paging of a short text.
        command.env("LESS", "FRX");
    }
    let Ok(mut child) = command.spawn() else { return false };
    if let Some(mut input) = child.stdin.take() {
        // A pager that is closed early has shown enough.
        let _ = input.write_all(text.as_bytes());
    }
    // A pager that failed may have shown nothing; the shell reports a missing one by 127. One that a
    // signal ended was stopped by the user.
    child.wait().is_ok_and(|status| status.success() || status.code().is_none())
}

/// How long a clipboard's program may take.
const COPY_LIMIT: Duration = Duration::from_secs(1);

/// Opens a file in the user's editor, `$VISUAL`, `$EDITOR` or `vi`, and waits for its end.
///
/// # Errors
/// If it cannot be started, or fails.
pub fn edit_file(file: &Path) -> io::Result<()> {
    run_editor(&[file.as_os_str()])
}

/// The same at a line of it, by `+LINE FILE`.
///
/// # Errors
/// If it cannot be started, or fails.
pub(crate) fn edit_place(place: &FilePlace) -> io::Result<()> {
    run_editor(&[OsStr::new(&format!("+{}", place.line)), place.path.as_os_str()])
}

fn run_editor(arguments: &[&OsStr]) -> io::Result<()> {
    let named = ["VISUAL", "EDITOR"].iter().filter_map(|name| std::env::var(name).ok());
    let editor = named.into_iter().find(|it| !it.trim().is_empty()).unwrap_or_else(|| "vi".into());
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(format!("{editor} \"$@\"")).arg("sh").args(arguments);
    let status = spawn_unmasked(&mut command)?.wait()?;
    match status.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!("`{editor}` ended with {status}"))),
    }
}

/// Gives a text to the clipboard by a program of this desktop, and names the program. None if there is
/// no desktop here, or no such program.
#[must_use]
pub fn copy_by_program(text: &str) -> Option<&'static str> {
    let (result, copied) = mpsc::channel();
    let text = text.to_owned();
    std::thread::spawn(move || result.send(try_programs(&text)));
    // A desktop that hangs must not stop the terminal.
    copied.recv_timeout(COPY_LIMIT).ok().flatten()
}

fn try_programs(text: &str) -> Option<&'static str> {
    let programs: [(&str, &str, &[&str]); 2] =
        [("WAYLAND_DISPLAY", "wl-copy", &[]), ("DISPLAY", "xclip", &["-selection", "clipboard"])];
    programs.into_iter().find_map(|(variable, program, arguments)| {
        std::env::var_os(variable).filter(|value| !value.is_empty())?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = spawn_unmasked(&mut command).ok()?;
        let written = child.stdin.take()?.write_all(text.as_bytes());
        // Both go on in the background and end at once in front.
        let status = child.wait().ok()?;
        (written.is_ok() && status.success()).then_some(program)
    })
}

/// The output of a program of this desktop, cut after so many bytes. None if the program failed; the error
/// is `TimedOut` if it did not end in time, and `NotFound` if it is not installed.
pub(crate) fn output_of(
    program: &str,
    arguments: &[&str],
    limit: Duration,
    most: u64,
) -> io::Result<Option<Vec<u8>>> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = spawn_unmasked(&mut command)?;
    let (result, ended) = mpsc::channel();
    let output = child.stdout.take();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = output.map_or(Ok(0), |output| output.take(most).read_to_end(&mut bytes));
        result.send(read.map(|_| bytes))
    });
    let read = ended.recv_timeout(limit).unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    // One that has printed all ends at once. Any other has failed.
    let until = Instant::now() + COPY_LIMIT;
    let mut status = child.try_wait()?;
    let whole = read.as_ref().is_ok_and(|bytes| (bytes.len() as u64) < most);
    while status.is_none() && whole && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
        status = child.try_wait()?;
    }
    if status.is_none() {
        let _ = child.kill();
        let _ = child.wait();
    }
    let is_good = !whole || status.is_some_and(|status| status.success());
    read.map(|bytes| is_good.then_some(bytes))
}

/// Starts a program with no signal blocked. This process blocks signals that it reads in a thread, and
/// a child would inherit that.
pub(crate) fn spawn_unmasked(command: &mut Command) -> io::Result<Child> {
    let blocked = SigSet::empty().thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
    let child = command.spawn();
    blocked.thread_set_mask()?;
    child
}

/// A process that gives the terminal back if this one is killed. Dropped, it ends.
#[derive(Debug)]
pub struct TerminalGuard {
    child: Child,
}

impl TerminalGuard {
    /// Starts `agentd`, this executable, as the guard, and waits until it has seen the terminal.
    ///
    /// # Errors
    /// If it cannot be started, or there is no terminal.
    pub fn start(executable: &Path) -> io::Result<Self> {
        let mut command = Command::new(executable);
        command.arg("guard-terminal").stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let ready = child.stdout.take().map(|mut out| out.read_exact(&mut [0]));
        match ready {
            Some(Ok(())) => Ok(Self { child }),
            Some(Err(error)) => {
                let _ = child.wait();
                Err(error)
            }
            None => Ok(Self { child }),
        }
    }
}

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        if let Some(mut words) = self.child.stdin.take() {
            // One that was killed needs no word.
            let _ = words.write_all(b".");
        }
        let _ = self.child.wait();
    }
}

/// Starts the daemon and waits until it can be connected to. It outlives this process.
///
/// # Errors
/// If the executable is missing, cannot be started, or reports an error. The kind `taken` means
/// that another daemon runs.
pub(crate) fn start_daemon(launch: &SupervisorLaunch<'_>) -> Result<(), StartError> {
    let refused = |source| StartError::Refused { path: launch.executable.to_owned(), source };
    let (ours, theirs) = UnixStream::pair().map_err(refused)?;
    let mut command = launch.command("--daemon");
    command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(refused)?;
    drop(command);
    let word = startup_message(&ours, &mut child).map(drop);
    if word.is_err() {
        // It has reported the reason and exits.
        let _ = child.wait();
    }
    word
}

/// Replaces this process by the daemon, in the foreground, for service managers. Returns only on
/// failure.
#[must_use]
pub fn become_daemon(launch: &SupervisorLaunch<'_>) -> StartError {
    let source = launch.command("--foreground").exec();
    StartError::Refused { path: launch.executable.to_owned(), source }
}

/// A supervisor that this process started and that ends with it.
#[derive(Debug)]
pub struct PrivateSupervisor {
    child: Child,
    /// Held for its end; dropped to end the supervisor.
    lifeline: Option<UnixStream>,
    socket: PathBuf,
    token: String,
}

/// Why there is no supervisor.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its executable is not where this one is.
    #[error("{} is missing", path.display())]
    Missing {
        /// Where it should be.
        path: PathBuf,
    },
    /// `agentd-fleet` was not installed.
    #[error("{} is missing: commands of a fleet need it, and it is installed by a command of its own", path.display())]
    NoFleet {
        /// Where it should be.
        path: PathBuf,
    },
    /// The path of this executable is unknown.
    #[error("the directory of agentd's executables is unknown; mount /proc")]
    Nowhere(#[source] io::Error),
    /// The system refused to start it.
    #[error("cannot start {}", path.display())]
    Refused {
        /// The executable.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// It exited or sent an invalid message before it reported its socket.
    #[error("agentd-supervisor did not start: {why}")]
    NotUp {
        /// The reason.
        why: String,
    },
    /// It reported why it cannot run.
    #[error("{message}")]
    Cannot {
        /// One of `configuration`, `state`, `sandbox`, `worker`, `taken` and `internal`.
        kind: String,
        /// Message of the supervisor, with a remedy.
        message: String,
    },
}

/// The first message on the lifeline.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum StartupMessage {
    Up { socket: PathBuf, token_file: PathBuf },
    Down { error: StartupError },
}

#[derive(Debug, Deserialize)]
struct StartupError {
    kind: String,
    message: String,
}

/// The executable of this name in the directory of the running one.
///
/// # Errors
/// [`StartError::Missing`] with the path, or [`StartError::Nowhere`] if /proc does not tell the
/// path of this executable.
pub fn sibling_executable(name: &str) -> Result<PathBuf, StartError> {
    let own = std::env::current_exe().and_then(fs::canonicalize);
    let path = own.map_err(StartError::Nowhere)?.with_file_name(name);
    if path.is_file() { Ok(path) } else { Err(StartError::Missing { path }) }
}

/// Runs a program of agentd to its end, and returns its standard output.
pub(crate) fn output_of_own(command: &mut Command) -> io::Result<String> {
    output_bytes(command).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn output_bytes(command: &mut Command) -> io::Result<Vec<u8>> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    output_of_child(spawn_unmasked(command)?)
}

fn output_of_child(child: Child) -> io::Result<Vec<u8>> {
    let done = child.wait_with_output()?;
    match done.status.success() {
        true => Ok(done.stdout),
        false => {
            let why = String::from_utf8_lossy(&done.stderr);
            Err(io::Error::other(why.trim().trim_start_matches("error: ").to_owned()))
        }
    }
}

/// Has `agentd-store` list, add or remove memories, and returns its answer. It gets no variable of this process, and
/// `input` on its standard input: other users of the machine can read the words of a command.
///
/// # Errors
/// It cannot be started, or its own error.
pub fn store_output(executable: &Path, words: &[&OsStr], input: &str) -> io::Result<String> {
    let mut command = Command::new(executable);
    command.env_clear().args(words);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = spawn_unmasked(&mut command)?;
    if let Some(mut stdin) = child.stdin.take() {
        // Its own error says why it does not read all of it.
        let _ = stdin.write_all(input.as_bytes());
    }
    let bytes = output_of_child(child)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Variables by which git's caller, such as a hook, chooses a repository in place of that of the directory.
const OF_ANOTHER_REPOSITORY: [&str; 6] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_PREFIX",
    "GIT_OBJECT_DIRECTORY",
];

/// Runs the person's git in a directory, without these variables, and returns its standard output.
///
/// # Errors
/// It cannot be started, or git's own words.
pub fn git_output(directory: &Path, words: &[&OsStr], without: &[&str]) -> io::Result<Vec<u8>> {
    let mut command = Command::new("git");
    for name in OF_ANOTHER_REPOSITORY.iter().chain(without) {
        command.env_remove(name);
    }
    output_bytes(command.args(words).current_dir(directory))
}

/// Has the systemd manager of this user do something, and returns what `systemctl` prints.
///
/// # Errors
/// It is not there, or its own words.
pub fn systemctl(words: &[&str]) -> io::Result<Vec<u8>> {
    output_bytes(Command::new("systemctl").arg("--user").args(words))
}

/// Has a program of agentd take the place of this process, terminal included. Returns only if it cannot.
pub fn become_program(executable: &Path, words: &[&OsStr]) -> StartError {
    let mut command = Command::new(executable);
    command.args(words);
    // It must not inherit blocked signals.
    let unblocked = SigSet::empty().thread_set_mask();
    let source = unblocked.map_or_else(io::Error::from, |()| command.exec());
    StartError::Refused { path: executable.to_owned(), source }
}

impl PrivateSupervisor {
    /// Starts one and waits until it can be connected to.
    ///
    /// # Errors
    /// If the executable is missing, cannot be started, or reports an error.
    pub fn start(launch: &SupervisorLaunch<'_>) -> Result<Self, StartError> {
        let refused = |source| StartError::Refused { path: launch.executable.to_owned(), source };
        let (ours, theirs) = UnixStream::pair().map_err(refused)?;
        let mut command = launch.command("--private");
        command
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            // A key pressed in this terminal is for this process, which ends the others in order.
            .process_group(0);
        let child = command.spawn().map_err(refused)?;
        // The command also owns the supervisor's end of the lifeline.
        drop(command);
        let mut started =
            Self { child, lifeline: Some(ours), socket: PathBuf::new(), token: String::new() };
        let (socket, token_file) = match &started.lifeline {
            Some(lifeline) => startup_message(lifeline, &mut started.child)?,
            None => return Err(StartError::NotUp { why: "it was ended".to_owned() }),
        };
        let token = fs::read_to_string(&token_file).map_err(|error| StartError::NotUp {
            why: format!("its token {} cannot be read: {error}", token_file.display()),
        })?;
        started.socket = socket;
        started.token = token.trim().to_owned();
        Ok(started)
    }

    /// Where it listens.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The token that authenticates this client.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it, with everything it started, and waits for that.
    ///
    /// # Errors
    /// If the system does not report its exit status.
    pub fn end(mut self) -> io::Result<()> {
        self.end_in_order()
    }

    /// How it ended: by which signal or with which code. Its connection closes a moment before its end.
    pub(crate) fn how_ended(&mut self) -> Option<String> {
        self.wait_up_to(Duration::from_secs(1)).ok()?.map(in_words)
    }

    /// Kills it. Its child processes end with it.
    pub(crate) fn kill(&mut self) {
        // Fails only if it has already ended.
        let _ = self.child.kill();
    }

    fn end_in_order(&mut self) -> io::Result<()> {
        self.lifeline = None;
        if self.wait_up_to(END_TIMEOUT)?.is_none() {
            self.child.kill()?;
            self.child.wait()?;
        }
        Ok(())
    }

    /// Waits for its end; none if it still runs after this time.
    fn wait_up_to(&mut self, limit: Duration) -> io::Result<Option<ExitStatus>> {
        let deadline = Instant::now() + limit;
        // Its id belongs to it until its status is read.
        if let Some(status) = self.child.try_wait()? {
            return Ok(Some(status));
        }
        let end = pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty())?;
        loop {
            let left = PollTimeout::try_from(deadline.saturating_duration_since(Instant::now()));
            let mut ended = [PollFd::new(end.as_fd(), PollFlags::POLLIN)];
            match poll(&mut ended, left.unwrap_or(PollTimeout::MAX)) {
                Ok(_) => return self.child.try_wait(),
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn in_words(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("it was ended by signal {signal}"),
        (None, Some(code)) => format!("it exited with code {code}"),
        (None, None) => "it ended".to_owned(),
    }
}

/// Where it is, or why it is not.
fn startup_message(
    lifeline: &UnixStream,
    child: &mut Child,
) -> Result<(PathBuf, PathBuf), StartError> {
    let line = first_line(lifeline, child).map_err(|why| StartError::NotUp { why })?;
    match serde_json::from_str(&line) {
        Ok(StartupMessage::Up { socket, token_file }) => Ok((socket, token_file)),
        Ok(StartupMessage::Down { error: StartupError { kind, message } }) => {
            Err(StartError::Cannot { kind, message })
        }
        Err(error) => {
            Err(StartError::NotUp { why: format!("its first message is invalid: {error}") })
        }
    }
}

fn first_line(lifeline: &UnixStream, child: &mut Child) -> Result<String, String> {
    let set = lifeline.set_read_timeout(Some(START_TIMEOUT));
    set.map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    let mut limited = lifeline.take(MESSAGE_CAP);
    let mut byte = [0];
    loop {
        match limited.read(&mut byte) {
            Ok(0) => {
                let ended = child.wait().map_or_else(|e| e.to_string(), |s| s.to_string());
                return Err(format!("it exited ({ended}); `agentd logs` shows the reason"));
            }
            Ok(_) if byte[0] == b'\n' => break,
            Ok(_) => bytes.push(byte[0]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(format!("it sent no message within {} s", START_TIMEOUT.as_secs()));
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    String::from_utf8(bytes).map_err(|error| error.to_string())
}

impl Drop for PrivateSupervisor {
    fn drop(&mut self) {
        // Also ends the supervisor on an early return.
        let _ = self.end_in_order();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A program that plays the supervisor.
    fn script(dir: &Path, text: &str) -> PathBuf {
        let path = dir.join("agentd-supervisor");
        // By another process: a test that forks meanwhile would hold a descriptor of this one open
        // for writing, and the script could not be started ("text file busy").
        let mut writer = Command::new("sh")
            .args(["-c", "cat > \"$1\" && chmod 755 \"$1\"", "sh"])
            .arg(&path)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let script = format!("#!/bin/sh\n{text}\n");
        writer.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
        assert!(writer.wait().unwrap().success());
        path
    }

    fn start(executable: &Path) -> Result<PrivateSupervisor, StartError> {
        PrivateSupervisor::start(&SupervisorLaunch { executable, without: &[], with: &[] })
    }

    #[test]
    fn a_supervisor_comes_up_and_ends_with_its_lifeline() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("token"), "abc\n").unwrap();
        let text = format!(
            "test \"$1\" = --private || exit 1\n\
             test \"$HOME$AGENTD_TEST\" = given || exit 1\n\
             echo '{{\"socket\":\"/s\",\"token_file\":\"{}/token\",\"pid\":1}}' >&0\n\
             read never; echo ended > {}/ended",
            dir.path().display(),
            dir.path().display()
        );
        let executable = script(dir.path(), &text);
        let started = PrivateSupervisor::start(&SupervisorLaunch {
            executable: &executable,
            without: &["HOME"],
            with: &[("AGENTD_TEST".into(), "given".into())],
        })
        .unwrap();
        assert_eq!((started.socket(), started.token()), (Path::new("/s"), "abc"));
        let proc = PathBuf::from(format!("/proc/{}", started.pid()));
        assert!(proc.exists());
        started.end().unwrap();
        assert!(dir.path().join("ended").exists());
        assert!(!proc.exists());
    }

    #[test]
    fn what_does_not_come_up_says_why() {
        let dir = tempfile::tempdir().unwrap();
        let said_by = |text: &str| start(&script(dir.path(), text)).unwrap_err().to_string();
        let said = said_by(
            "echo '{\"error\":{\"kind\":\"state\",\"message\":\"no place for state\"}}' >&0",
        );
        assert_eq!(said, "no place for state");
        assert!(said_by("exit 3").contains("exit status: 3"));
        assert!(said_by("echo nonsense >&0; sleep 0.1").contains("invalid"));
        let missing = start(Path::new("/nonexistent")).unwrap_err();
        assert!(matches!(missing, StartError::Refused { .. }), "{missing}");
    }
}
