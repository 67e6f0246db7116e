//! Processes of calls that may outlive their supervisor: runners, the keepers of their cages, and the
//! commands' own processes. Named in a file by pid and start time, and ended by force. Used by the lock
//! on a session and by the call actor.

use protocol::tool::{Keeper, KeeperKind};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Behind the pid and the start of a keeper: which kind it is.
const GUARD: &str = "guard";
const FIRST: &str = "first";
/// Begins the first line of a list, before the name of this run of the kernel.
const BOOT: &str = "boot ";

/// The flag of a process that is ending.
const EXITING: u64 = 0x4;

/// A process that no other is: its number comes again, its number with its start does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    pid: u32,
    /// In clock ticks since the machine started.
    start: u64,
}

/// What a process of the list is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OrphanRole {
    /// A runner, or a command.
    RunnerOrCommand,
    Keeper(KeeperKind),
}

/// A process of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordedProcess {
    process: Process,
    role: OrphanRole,
}

/// The fields of `/proc/PID/stat` that matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    ended: bool,
    parent: u32,
    flags: u64,
    start: u64,
}

impl Process {
    /// The living process of this number.
    fn of(pid: u32) -> Option<Self> {
        Stat::of(pid).filter(|stat| !stat.ended).map(|stat| Self { pid, start: stat.start })
    }

    /// As it is, while it lives.
    fn now(self) -> Option<Stat> {
        Stat::of(self.pid).filter(|stat| !stat.ended && stat.start == self.start)
    }

    fn open(self) -> Option<OwnedFd> {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw)?;
        let handle = pidfd_open(pid, PidfdFlags::NONBLOCK).ok()?;
        // Looked at again behind the descriptor: a process that has its number since is never meant.
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

    /// Whether it lives. A first process that is ending counts by what lives in its namespace: it
    /// stays until the command's process was waited for, which in a container may be never.
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

    /// Ends it where it lives. A guard is not killed but continued: its runner is gone, and it ends
    /// what is in its cage and then itself.
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

/// All else in a PID namespace descends from its first process, unless it is the command's own.
fn has_live_children(first: u32) -> bool {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(Stat::of).any(|stat| stat.parent == first && !stat.ended)
}

/// Notes a runner that was started, so that a later supervisor finds it.
pub(crate) fn record(list: &Path, pid: u32) -> io::Result<()> {
    // One that has ended already needs no finding.
    let Some(process) = Process::of(pid) else { return Ok(()) };
    append(list, &RecordedProcess { process, role: OrphanRole::RunnerOrCommand }.line())
}

/// A runner named a process that is not its own child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotRunnersChild;

/// Notes the keeper of this runner's cage and the command's process; gives those that live.
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
        // The runner itself finds out that it has ended.
        let Some(stat) = Stat::of(pid).filter(|stat| !stat.ended) else { continue };
        if stat.parent != runner {
            return Ok(Err(NotRunnersChild));
        }
        noted.push(RecordedProcess { process: Process { pid, start: stat.start }, role });
    }
    append(list, &noted.iter().map(|it| it.line()).collect::<String>())?;
    Ok(Ok(noted))
}

/// Forgets all that was noted: none of them lives.
pub(crate) fn clear(list: &Path) -> io::Result<()> {
    match fs::remove_file(list) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Err(_) | Ok(()) => Ok(()),
    }
}

/// Whether a process of the list lives. Lines that say nothing sensible are passed over.
pub(crate) fn any_alive(list: &Path) -> bool {
    read(list).into_iter().any(RecordedProcess::is_alive)
}

/// Ends every process of the list that lives.
pub(crate) fn kill_all(list: &Path) {
    for listed in read(list) {
        if listed.end() {
            let pid = listed.process.pid;
            tracing::warn!(pid, "a process of an earlier supervisor's call was ended by force");
        }
    }
}

fn read(list: &Path) -> Vec<RecordedProcess> {
    let text = fs::read_to_string(list).unwrap_or_default();
    // Numbers and starts come again when the machine has been started again.
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

/// Names this run of the machine's kernel; empty where the kernel does not say.
fn boot_id() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

impl Stat {
    /// `None` where there is no such process.
    fn of(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The name, in brackets, may hold anything; the state behind it is the third field of proc(5).
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
        // A number that belongs to somebody else by now: the start is not the one that was noted.
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
