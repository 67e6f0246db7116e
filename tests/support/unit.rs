//! Cgroups as a service manager would hand them to `agentd`, on a machine that has one for the tests.

use rustix::fs::{XattrFlags, setxattr};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Names the directory in which tests may make them, and in which this process runs.
const ROOM: &str = "AGENTD_TEST_CGROUP";

/// A cgroup below the one that was delegated to the tests; removed with its content.
pub struct Unit(pub PathBuf);

impl Unit {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let room = std::env::var(ROOM).unwrap_or_else(|_| {
            panic!("{ROOM} names no directory with delegated cgroups; `tests/vm/run` starts a machine that has one")
        });
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let unit = Path::new(&room).join(format!("unit-{}-{number}", std::process::id()));
        fs::create_dir(&unit).unwrap();
        Self(unit)
    }

    /// As a service manager marks it for `Delegate=yes`.
    pub fn delegated() -> Self {
        let unit = Self::new();
        unit.mark();
        unit
    }

    pub fn mark(&self) {
        setxattr(&self.0, "user.delegate", b"1", XattrFlags::empty()).unwrap();
    }

    /// The same command, started inside.
    pub fn inside(&self, command: &Command) -> Command {
        let mut inside = Command::new("sh");
        inside.args(["-c", "echo $$ > \"$0/cgroup.procs\" && exec \"$@\""]).arg(self.entrance());
        inside.arg(command.get_program()).args(command.get_args());
        inside.env_clear().stdin(Stdio::null());
        for (name, value) in command.get_envs() {
            inside.env(name, value.unwrap_or_default());
        }
        if let Some(place) = command.get_current_dir() {
            inside.current_dir(place);
        }
        inside
    }

    /// Once its controllers are enabled it can hold no process, so programs start in the leaf.
    fn entrance(&self) -> PathBuf {
        let leaf = self.0.join("agentd-own");
        if leaf.exists() { leaf } else { self.0.clone() }
    }

    /// Names of the cgroups in it.
    pub fn below(&self) -> Vec<String> {
        let listed = fs::read_dir(&self.0).unwrap().flatten();
        let folders = listed.filter(|entry| entry.file_type().unwrap().is_dir());
        folders.map(|entry| entry.file_name().into_string().unwrap()).collect()
    }

    pub fn calls(&self) -> Vec<String> {
        self.below().into_iter().filter(|name| name.starts_with("agentd-call-")).collect()
    }
}

impl Drop for Unit {
    fn drop(&mut self) {
        let _ = fs::write(self.0.join("cgroup.kill"), "1");
        for _ in 0..100 {
            for name in self.below() {
                let _ = fs::remove_dir(self.0.join(name));
            }
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
