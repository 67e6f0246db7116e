//! Processes of calls that may outlive their supervisor: runners, the keepers of their cages, and
//! the commands. A file lists them by pid and start time, so that a later supervisor can kill them.
//! Used by the session lock and by `runner`.

use protocol::tool::{Keeper, KeeperKind};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Follows pid and start time of a keeper: its kind.
const GUARD: &str = "guard";
const FIRST: &str = "first";
/// Prefix of a list's first line; the boot id of the kernel follows.
const BOOT: &str = "boot ";

/// Flag of a process that is exiting.
const EXITING: u64 = 0x4;

/// Identifies a process: pids are reused, a pid with its start time is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    pid: u32,
    /// In clock ticks since the machine started.
    start: u64,
}

/// Role of a recorded process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OrphanRole {
    /// A runner, or a command.
    RunnerOrCommand,
    Keeper(KeeperKind),
}

/// A process in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordedProcess {
    process: Process,
    role: OrphanRole,
}

/// The fields of `/proc/PID/stat` that are used here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    ended: bool,
    parent: u32,
    flags: u64,
    start: u64,
}

impl Process {
    /// The running process of this pid.
    fn of(pid: u32) -> Option<Self> {
        Stat::of(pid).filter(|stat| !stat.ended).map(|stat| Self { pid, start: stat.start })
    }

    /// Its current state, if it still runs.
    fn now(self) -> Option<Stat> {
        Stat::of(self.pid).filter(|stat| !stat.ended && stat.start == self.start)
    }

    fn open(self) -> Option<OwnedFd> {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw)?;
        let handle = pidfd_open(pid, PidfdFlags::NONBLOCK).ok()?;
        // Checked again after the descriptor is open, so that a new process with a reused pid is
        // never signalled.
        self.now().map(|_| handle)
    }
}

impl RecordedProcess {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let (pid, start) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let role = match words.next() {
            None => OrphanRole::RunnerOrCommand,
            Some(GUARD) => OrphanRole::Keeper(KeeperKind::Guard),
            Some(FIRST) => OrphanRole::Keeper(KeeperKind::FirstProcess),
            Some(_) => return None,
        };
        Some(Self { process: Process { pid, start }, role })
    }

    fn line(self) -> String {
        let mark = match self.role {
            OrphanRole::RunnerOrCommand => String::new(),
            OrphanRole::Keeper(KeeperKind::Guard) => format!(" {GUARD}"),
            OrphanRole::Keeper(KeeperKind::FirstProcess) => format!(" {FIRST}"),
        };
        let Process { pid, start } = self.process;
        format!("{pid} {start}{mark}\n")
    }

    /// True if it runs. A PID 1 that is exiting counts as running while its namespace has live
    /// processes: it stays until the command was reaped. After the end of an earlier supervisor a
    /// container's first process may never do that.
    pub(crate) fn is_alive(self) -> bool {
        match (self.process.now(), self.role) {
            (None, _) => false,
            (Some(stat), OrphanRole::Keeper(KeeperKind::FirstProcess))
                if stat.flags & EXITING != 0 =>
            {
                has_live_children(self.process.pid)
            }
            (Some(_), _) => true,
        }
    }

    /// Kills it if it runs. A guard is not killed but continued: its runner is gone, so it kills
    /// its cage and then exits.
    pub(crate) fn end(self) -> bool {
        let signal = match self.role {
            OrphanRole::RunnerOrCommand | OrphanRole::Keeper(KeeperKind::FirstProcess) => {
                Signal::KILL
            }
            OrphanRole::Keeper(KeeperKind::Guard) => Signal::CONT,
        };
        let handle = self.process.open();
        handle.is_some_and(|handle| pidfd_send_signal(&handle, signal).is_ok())
    }
}

/// All other processes of a PID namespace descend from its PID 1, except the command's own process.
fn has_live_children(first: u32) -> bool {
    // Of a PID 1, which has one thread, an empty list is exact; a longer one may lack some
    // (proc_pid_tid_children(5)).
    let listed = fs::read_to_string(format!("/proc/{first}/task/{first}/children"));
    if listed.is_ok_and(|listed| listed.trim().is_empty()) {
        return false;
    }
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(Stat::of).any(|stat| stat.parent == first && !stat.ended)
}

/// The live children of this process.
pub(crate) fn living_children() -> Vec<i32> {
    let own = std::process::id();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let children =
        pids.filter(|pid| Stat::of(*pid).is_some_and(|stat| stat.parent == own && !stat.ended));
    children.filter_map(|pid| i32::try_from(pid).ok()).collect()
}

/// Records a runner that was started, so that a later supervisor finds it.
pub(crate) fn record(list: &Path, pid: u32) -> io::Result<()> {
    // It has ended already.
    let Some(process) = Process::of(pid) else { return Ok(()) };
    append(list, &RecordedProcess { process, role: OrphanRole::RunnerOrCommand }.line())
}

/// A runner reported a process that is not its child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotRunnersChild;

/// Records the keeper of this runner's cage and the command's process. Returns the running ones.
pub(crate) fn record_cage(
    list: &Path,
    runner: u32,
    keeper: Keeper,
) -> io::Result<Result<Vec<RecordedProcess>, NotRunnersChild>> {
    let mut noted = Vec::new();
    for (pid, role) in [
        (keeper.pid, OrphanRole::Keeper(keeper.kind)),
        (keeper.command, OrphanRole::RunnerOrCommand),
    ] {
        // It has ended already; the runner notices that by itself.
        let Some(stat) = Stat::of(pid).filter(|stat| !stat.ended) else { continue };
        if stat.parent != runner {
            return Ok(Err(NotRunnersChild));
        }
        noted.push(RecordedProcess { process: Process { pid, start: stat.start }, role });
    }
    append(list, &noted.iter().map(|it| it.line()).collect::<String>())?;
    Ok(Ok(noted))
}

/// Removes the list once no process in it runs.
pub(crate) fn clear(list: &Path) -> io::Result<()> {
    match fs::remove_file(list) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Err(_) | Ok(()) => Ok(()),
    }
}

/// True if a process in the list runs. Malformed lines are skipped.
pub(crate) fn any_alive(list: &Path) -> bool {
    read(list).into_iter().any(RecordedProcess::is_alive)
}

/// Kills every process in the list that runs.
pub(crate) fn kill_all(list: &Path) {
    for listed in read(list) {
        if listed.end() {
            let pid = listed.process.pid;
            tracing::warn!(pid, "killed a leftover process of an earlier supervisor's call");
        }
    }
}

fn read(list: &Path) -> Vec<RecordedProcess> {
    let text = fs::read_to_string(list).unwrap_or_default();
    // After a reboot the same pid and start time may belong to another process.
    match text.lines().find_map(|line| line.strip_prefix(BOOT)) {
        Some(boot) if boot != boot_id() => Vec::new(),
        Some(_) | None => text.lines().filter_map(RecordedProcess::parse).collect(),
    }
}

fn append(list: &Path, lines: &str) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().append(true).create(true).mode(0o600).open(list)?;
    let head = match file.metadata()?.len() {
        0 => format!("{BOOT}{}\n", boot_id()),
        _ => String::new(),
    };
    file.write_all(format!("{head}{lines}").as_bytes())
}

/// The kernel's boot id; empty if it cannot be read.
fn boot_id() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

impl Stat {
    /// `None` if there is no such process.
    fn of(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The name, in parentheses, may contain anything; the state after it is the third field of
    /// proc(5).
    fn parse(stat: &str) -> Option<Self> {
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3).copied();
        Some(Self {
            ended: matches!(field(3)?, "Z" | "X"),
            parent: field(4)?.parse().ok()?,
            flags: field(9)?.parse().ok()?,
            start: field(22)?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Command};
    use std::time::{Duration, Instant};

    fn sleeper() -> Child {
        Command::new("sleep").arg("60").spawn().unwrap()
    }

    #[test]
    fn what_was_noted_is_ended_and_nothing_else_is() {
        let place = tempfile::tempdir().unwrap();
        let list = place.path().join("runners");
        let (mut noted, mut other, mut reused) = (sleeper(), sleeper(), sleeper());
        record(&list, noted.id()).unwrap();
        // A pid that was reused: its start time is not the recorded one.
        let mut text = fs::read_to_string(&list).unwrap();
        text.push_str(&format!("{} 1\n\nnonsense\n-1 5\n4000000000 7\n0 0\n", reused.id()));
        fs::write(&list, text).unwrap();
        kill_all(&list);
        let until = Instant::now() + Duration::from_secs(5);
        let ended = loop {
            if let Some(status) = noted.try_wait().unwrap() {
                break status.signal();
            }
            assert!(Instant::now() < until, "it was not ended");
            std::thread::sleep(Duration::from_millis(5));
        };
        assert_eq!(ended, Some(9));
        for child in [&mut other, &mut reused] {
            assert_eq!(child.try_wait().unwrap(), None, "it was none of ours");
            child.kill().unwrap();
            child.wait().unwrap();
        }
        clear(&list).unwrap();
        clear(&list).unwrap();
        kill_all(&list);
    }

    #[test]
    fn a_list_from_before_the_machine_was_started_again_means_nobody() {
        let place = tempfile::tempdir().unwrap();
        let list = place.path().join("runners");
        record(&list, std::process::id()).unwrap();
        assert!(any_alive(&list));
        let text = fs::read_to_string(&list).unwrap();
        fs::write(&list, text.replace(&boot_id(), "another")).unwrap();
        assert!(!any_alive(&list));
        fs::write(&list, text.lines().skip(1).collect::<String>()).unwrap();
        assert!(any_alive(&list), "an older build named no boot");
    }

    #[test]
    fn a_name_full_of_brackets_hides_no_field() {
        let stat = "7 (a) b) c) S 1 7 7 0 -1 4194308 97 0 0 0 0 0 0 0 20 0 1 0 4711 9 9";
        let found = Stat { ended: false, parent: 1, flags: 4_194_308, start: 4711 };
        assert_eq!(Stat::parse(stat), Some(found));
        assert_eq!(Stat::parse("7 (x) S 1"), None);
        assert_eq!(Process::of(u32::MAX), None);
    }

    #[test]
    fn a_line_says_what_is_written() {
        for line in ["7 8\n", "7 8 guard\n", "7 8 first\n"] {
            assert_eq!(RecordedProcess::parse(line.trim_end()).unwrap().line(), line);
        }
        for line in ["", "7", "x 8", "7 8 other"] {
            assert_eq!(RecordedProcess::parse(line), None, "{line}");
        }
    }

    #[test]
    fn a_cage_is_noted_only_of_its_own_runner_and_a_guard_is_continued() {
        let place = tempfile::tempdir().unwrap();
        let list = place.path().join("runners");
        let (mut guard, mut command) = (sleeper(), sleeper());
        let (number, kind) = (guard.id(), KeeperKind::Guard);
        let keeper = Keeper { pid: number, kind, command: command.id() };
        let foreign = record_cage(&list, std::process::id() + 1, keeper).unwrap();
        assert_eq!(foreign, Err(NotRunnersChild));
        assert!(!any_alive(&list));
        let noted = record_cage(&list, std::process::id(), keeper).unwrap().unwrap();
        assert_eq!(noted.len(), 2);
        assert!(any_alive(&list));
        let becomes = |pid: u32, wanted: &[&str]| {
            let until = Instant::now() + Duration::from_secs(5);
            let state = || {
                let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
                stat.rsplit_once(") ").unwrap().1[..1].to_owned()
            };
            while !wanted.contains(&state().as_str()) {
                assert!(Instant::now() < until, "never {wanted:?}: {}", state());
                std::thread::sleep(Duration::from_millis(5));
            }
        };
        let pid = Pid::from_raw(i32::try_from(number).unwrap()).unwrap();
        rustix::process::kill_process(pid, Signal::STOP).unwrap();
        becomes(number, &["T"]);
        kill_all(&list);
        becomes(number, &["S", "R"]);
        becomes(command.id(), &["Z"]);
        guard.kill().unwrap();
        becomes(number, &["Z"]);
        assert!(!any_alive(&list), "what was not waited for lives no more");
        assert_eq!(record_cage(&list, std::process::id(), keeper).unwrap(), Ok(Vec::new()));
        guard.wait().unwrap();
        command.wait().unwrap();
    }
}
