//! The demo's attacks on its own processes: `kill -9`.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;

/// Which worker is killed when which call starts, by the call's number in the recording.
const PLAN: [(u32, &str); 2] = [(4, "agentd-session"), (7, "agentd-provider")];

/// The accidents of one demo.
#[derive(Debug, Default)]
pub(super) struct Accidents {
    /// The demo's own supervisor, once there is one.
    pub(super) supervisor: Option<i32>,
    /// The killed processes, with their process IDs.
    pub(super) killed: Vec<(&'static str, i32)>,
}

impl Accidents {
    /// Runs the attack that belongs to the start of this call, if there is one, and returns the
    /// text to show.
    pub(super) fn at(&mut self, call: u32) -> Option<String> {
        let (_, worker) = PLAN.into_iter().find(|(number, _)| *number == call)?;
        let pid = child(self.supervisor?, worker)?;
        kill(Pid::from_raw(pid), Signal::SIGKILL).ok()?;
        self.killed.push((worker, pid));
        Some(format!("  -- {worker}, process {pid}, is killed with kill -9 --\n"))
    }

    /// True if all planned attacks happened.
    pub(super) fn all(&self) -> Result<String, String> {
        if self.killed.len() == PLAN.len() {
            let named = self.killed.iter().map(|(worker, pid)| format!("{worker} {pid}"));
            return Ok(named.collect::<Vec<_>>().join(", "));
        }
        Err(format!("only {} of {} workers could be killed", self.killed.len(), PLAN.len()))
    }
}

/// The process of that name which `parent` started.
fn child(parent: i32, name: &str) -> Option<i32> {
    // The kernel keeps 15 bytes of a name.
    let kept = name.get(..15).unwrap_or(name);
    fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let (head, rest) = stat.rsplit_once(')')?;
        let named = head.split_once('(').is_some_and(|(_, found)| found == kept);
        let of_parent = rest.split_whitespace().nth(1)?.parse() == Ok(parent);
        (named && of_parent).then_some(pid)
    })
}
