//! Processes: none outside is touched, none survives, and nobody gains a right, in both tiers.

use super::yard::{TIERS, Yard, mark, processes_with};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A process outside that the command would like to touch.
struct Victim(Child);

impl Victim {
    fn new() -> Self {
        let child = Command::new("sleep").arg(mark()).spawn().unwrap();
        Self(child)
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    /// Where its stack is, as hexadecimal digits.
    fn address(&self) -> String {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", self.0.id())).unwrap();
        let line = maps.lines().find(|line| line.contains("[stack]")).unwrap();
        line.split('-').next().unwrap().to_owned()
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn refused(said: &str) -> bool {
    ["EPERM", "EACCES", "ESRCH", "ENOENT"].iter().any(|errno| said.starts_with(errno))
}

#[test]
fn a_process_outside_cannot_be_touched() {
    for tier in TIERS {
        let yard = Yard::new();
        let victim = Victim::new();
        let (pid, address) = (victim.pid(), victim.address());
        for act in [
            &["kill", pid.as_str()][..],
            &["ptrace", &pid],
            &["peek", &pid, &address],
            &["memory", &pid],
            &["environ", &pid],
            &["bound", &pid],
            &["schedule", &pid],
        ] {
            let said = yard.caged(tier, act);
            assert!(refused(&said), "{tier} {act:?}: {said}");
            // A fresh victim each: a traced one would not be the same.
            let control = Victim::new();
            let mut act: Vec<String> = act.iter().map(|word| (*word).to_owned()).collect();
            act[1] = control.pid();
            if act.len() > 2 {
                act[2] = control.address();
            }
            let act: Vec<&str> = act.iter().map(String::as_str).collect();
            assert!(yard.free(&act).starts_with("done"), "control of {act:?}");
        }
        assert!(yard.caged(tier, &["kill-own-child"]).starts_with("done"));
    }
}

/// A terminal outside: its master, and the path of its other end.
fn terminal() -> (std::fs::File, String) {
    use std::os::fd::AsRawFd;
    let master = std::fs::File::options().read(true).write(true).open("/dev/ptmx").unwrap();
    let mut name = [0_u8; 64];
    // SAFETY: the buffer is as long as said, and the descriptor is the file's.
    #[allow(unsafe_code)]
    let failed = unsafe {
        libc::unlockpt(master.as_raw_fd())
            + libc::ptsname_r(master.as_raw_fd(), name.as_mut_ptr().cast(), name.len())
    };
    assert_eq!(failed, 0);
    let name = std::ffi::CStr::from_bytes_until_nul(&name).unwrap();
    (master, name.to_str().unwrap().to_owned())
}

#[test]
fn the_person_s_terminal_is_not_written_to() {
    let (_master, path) = terminal();
    for tier in TIERS {
        let yard = Yard::new();
        let said = yard.caged(tier, &["write", &path]);
        assert!(refused(&said), "{tier}: {said}");
        let told = yard.shell(tier, "exec 3<>/dev/ptmx && echo opened");
        assert_eq!(told.printed(), "opened", "{told:?}");
        assert!(yard.free(&["write", &path]).starts_with("done"), "the control");
    }
}

#[test]
fn the_runner_and_the_first_process_cannot_be_touched() {
    for tier in TIERS {
        let yard = Yard::new();
        // In tier A process 1 is the namespace's first; in tier B the parent is the runner.
        let target = if tier == "a" { "1" } else { "$PPID" };
        let tell = yard.inside.to_str().unwrap();
        let script = format!(
            "for act in kill ptrace memory environ bound; do {tell} try $act {target}; done"
        );
        let told = yard.shell(tier, &script);
        for act in ["kill", "ptrace", "memory", "environ", "bound"] {
            let said = told.in_tier(tier).all("out");
            let line = said.iter().find(|line| line.starts_with(act)).unwrap();
            assert!(refused(line.split_once(": ").unwrap().1), "{tier} {line}");
        }
    }
}

#[test]
fn no_privileges_are_left_or_gained() {
    for tier in TIERS {
        let yard = Yard::new();
        for field in ["CapEff", "CapPrm", "CapInh", "CapAmb"] {
            let said = yard.caged(tier, &["status", field]);
            assert_eq!(said, "done 0000000000000000", "{tier} {field}");
        }
        assert_eq!(yard.caged(tier, &["status", "NoNewPrivs"]), "done 1");
        assert_eq!(yard.caged(tier, &["status", "Seccomp"]), "done 2");
        let mounted = yard.caged(tier, &["mount", yard.project.to_str().unwrap()]);
        assert!(refused(&mounted), "{tier} {mounted}");
        let apart = yard.caged(tier, &["unshare"]);
        assert!(refused(&apart), "{tier} {apart}");
        assert!(yard.free(&["unshare"]).starts_with("done"), "the control of unshare");
        // No controlling terminal, and none to be had.
        assert!(yard.caged(tier, &["terminal"]).starts_with("ENXIO"));
    }
}

#[test]
fn neither_variables_nor_descriptors_leak_in() {
    for tier in TIERS {
        let yard = Yard::new();
        let planted = yard.secret.to_str().unwrap();
        let helper = yard.inside.to_str().unwrap();
        let runner = |program: &[&str]| {
            let inner = yard.runner(tier, &[], program);
            // A shell leaves descriptor 9 open for what it starts.
            let out = Command::new("sh")
                .arg("-c")
                .arg(format!("exec 9<{planted}; exec \"$@\""))
                .arg("sh")
                .arg(inner.get_program())
                .args(inner.get_args())
                .env("PLANTED_KEY", "a-key")
                .output()
                .unwrap();
            super::yard::Told::from(&out)
        };
        let told = runner(&[helper, "try", "env", "PLANTED_KEY"]);
        assert!(told.printed().contains("ENOENT"), "{tier} {told:?}");
        let told = runner(&[helper, "try", "descriptor", "9"]);
        assert!(told.printed().contains("ENOENT"), "{tier} {told:?}");
        let told = runner(&["sh", "-c", "ls /proc/self/fd"]);
        // Three streams, and the directory that ls reads.
        assert_eq!(told.all("out"), ["0", "1", "2", "3"], "{tier}");
        let free = Command::new("sh")
            .args([
                "-c",
                &format!("exec 9<{planted}; exec \"$@\""),
                "sh",
                super::yard::ATTEMPT,
                "try",
                "descriptor",
                "9",
            ])
            .output()
            .unwrap();
        assert!(String::from_utf8_lossy(&free.stdout).contains("done"), "the control");
    }
}

/// A daemon as nasty as they come: own session, forked twice, deaf to TERM, holding the pipe.
fn daemon(mark: &str) -> String {
    format!(
        "(setsid sh -c 'trap \"\" TERM HUP INT; sleep {mark} & while :; do sleep 1; done' &) ; "
    )
}

#[test]
fn nothing_survives_the_end_of_the_command() {
    for tier in TIERS {
        let yard = Yard::new();
        let mark = mark();
        let told = yard.shell(tier, &format!("{} sleep 0.1; echo printed", daemon(&mark)));
        assert_eq!(told.in_tier(tier).one("exit"), "0");
        assert_eq!(told.one("survivors"), "0");
        assert_eq!(told.printed(), "printed");
        assert_eq!(processes_with(&mark).len(), 0, "{tier}");
    }
}

#[test]
fn nothing_survives_the_kill_and_it_is_quick() {
    for tier in TIERS {
        let yard = Yard::new();
        let mark = mark();
        let begun = Instant::now();
        let script = format!("{} trap '' TERM; sleep 60", daemon(&mark));
        let told = yard.cage(tier, &["kill-after", "200"], &["sh", "-c", &script]);
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        assert_eq!(told.in_tier(tier).one("signal"), "9");
        assert_eq!(told.one("survivors"), "0");
        assert_eq!(processes_with(&mark).len(), 0, "{tier}");
    }
}

#[test]
fn a_command_that_listens_to_term_may_tidy_up() {
    for tier in TIERS {
        let yard = Yard::new();
        let script = "trap 'echo tidied; exit 7' TERM; sleep 60 & wait";
        let told = yard.cage(tier, &["kill-after", "200"], &["sh", "-c", script]);
        assert_eq!(told.in_tier(tier).one("exit"), "7");
        assert_eq!(told.printed(), "tidied");
    }
}

#[test]
fn nothing_survives_when_the_runner_is_killed() {
    for tier in TIERS {
        let yard = Yard::new();
        let mark = mark();
        let script = format!("{} sleep 60", daemon(&mark));
        let options = ["die-after", "400"];
        let mut runner = yard
            .runner(tier, &options, &["sh", "-c", &script])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let found = |wanted: bool| {
            let deadline = Instant::now() + Duration::from_secs(8);
            while Instant::now() < deadline {
                // The runner itself has the mark in its script.
                let others = processes_with(&mark)
                    .into_iter()
                    .filter(|(_, line)| line.starts_with("sleep"))
                    .count();
                if (others > 0) == wanted {
                    return true;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            false
        };
        assert!(found(true), "{tier}: the daemon ran");
        assert!(!runner.wait().unwrap().success());
        assert!(found(false), "{tier}: {:?}", processes_with(&mark));
    }
}

#[test]
fn what_cannot_be_executed_is_said_in_plain_words() {
    for tier in TIERS {
        let yard = Yard::new();
        std::fs::write(yard.project.join("data"), "x").unwrap();
        let cases = [
            ("no-such-program", "no program `no-such-program` in PATH"),
            ("./data", "may not be executed"),
            ("./nothing", "does not exist in the cage"),
        ];
        for (program, words) in cases {
            let told = yard.cage(tier, &[], &[program]);
            assert_eq!(told.one("unstarted"), "program");
            assert!(told.one("reason").contains(words), "{told:?}");
        }
    }
}

#[test]
fn an_argument_of_any_length_arrives_or_is_refused_in_words() {
    for tier in TIERS {
        let yard = Yard::new();
        let long = "x".repeat(120_000);
        let script = ["sh", "-c", "echo ${#1} ${#2}", "sh", &long, &long];
        assert_eq!(yard.cage(tier, &[], &script).printed(), "120000 120000");
    }
}

#[test]
fn bounds_hold_and_what_stays_below_passes() {
    let yard = Yard::new();
    for tier in TIERS {
        let big = |bytes: &str| {
            let write = format!("head -c {bytes} /dev/zero > big && echo written");
            yard.cage(tier, &["file-bytes", "100000"], &["sh", "-c", &write])
        };
        assert_eq!(big("200000").printed(), "", "{tier}");
        assert_eq!(big("90000").printed(), "written", "{tier}");
        let told = yard.cage(tier, &["open-files", "20"], &["sh", "-c", "ulimit -n; ulimit -c"]);
        assert_eq!(told.all("out"), ["20", "0"], "{tier}");
    }
}

#[test]
fn the_account_names_what_was_used() {
    for tier in TIERS {
        let yard = Yard::new();
        let told = yard.shell(tier, "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done");
        assert!(told.one("cpu_ms").parse::<u64>().unwrap() > 20, "{told:?}");
        assert!(told.one("peak_kib").parse::<u64>().unwrap() > 500, "{told:?}");
    }
}
