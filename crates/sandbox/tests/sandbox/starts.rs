//! Programs that a command starts: what lies outside of what the cage grants for running is refused, and
//! each is a line of the record, in both tiers.

use super::yard::{TIERS, Told, Yard};
use std::path::Path;
use std::process::Command;

/// A script in this place, written by another process: one that a test forks meanwhile would hold it
/// open for writing.
fn script(at: &Path, interpreter: &str) -> String {
    let write = "mkdir -p \"$(dirname \"$0\")\"; printf '#!%s\\nexit 7\\n' \"$1\" > \"$0\"; chmod 755 \"$0\"";
    let status = Command::new("sh").args(["-c", write]).arg(at).arg(interpreter).status().unwrap();
    assert!(status.success());
    at.to_str().unwrap().to_owned()
}

/// The lines of the record, without the words of the error.
fn refusals(told: &Told) -> Vec<String> {
    told.all("refusal").into_iter().map(str::to_owned).collect()
}

#[test]
fn a_program_outside_is_refused_and_recorded_and_one_inside_runs() {
    for tier in TIERS {
        let yard = Yard::new();
        // Readable in both tiers, and granted for reading alone.
        let read = script(&yard.home.join(".cargo/registry/tool"), "/bin/sh");
        let away = script(&yard.root.join("away"), "/bin/sh");
        let inside = script(&yard.project.join("tool"), "/bin/sh");
        let kept = script(&yard.project.join("kept"), &read);
        let text = format!("{read}; echo $?; {away}; echo $?; {inside}; echo $?; {kept}; echo $?");
        let told = yard.shell(tier, &format!("({text}) 2>/dev/null; exit 0"));
        // The shell's own words for what may not be run and for what is not there.
        let missing = if tier == "a" { "127" } else { "126" };
        assert_eq!(
            told.in_tier(tier).printed().lines().collect::<Vec<_>>(),
            ["126", missing, "7", "126"]
        );
        assert_eq!(told.one("exit"), "0");
        let absent = if tier == "a" { libc::ENOENT } else { libc::EACCES };
        let denied = libc::EACCES;
        let expected = [
            format!("Predicted execve {denied} {read}, running it"),
            format!("Predicted execve {absent} {away}, running it"),
            format!("Predicted execve {denied} {read}, running {kept} with it"),
        ];
        assert_eq!(refusals(&told), expected, "{tier}: {told:?}");
        // The controls: without a cage all of it runs.
        for path in [&read, &away, &inside] {
            assert_eq!(Command::new(path).status().unwrap().code(), Some(7), "{path}");
        }
    }
}

#[test]
fn looking_through_folders_for_a_program_is_no_refusal() {
    for tier in TIERS {
        let yard = Yard::new();
        let away = yard.root.join("away");
        std::fs::create_dir(&away).unwrap();
        std::fs::write(away.join("true"), "not for running").unwrap();
        // `env` asks the kernel for each folder in turn.
        let path = format!("{}:{}/none:/nonexistent:/usr/bin:/bin", away.display(), away.display());
        let search = |name| {
            let mut runner = yard.runner(tier, &[], &["sh", "-c", &format!("env {name}; echo $?")]);
            Told::from(&runner.env("ATTEMPT_PATH", &path).output().unwrap())
        };
        let told = search("true");
        assert_eq!(told.in_tier(tier).printed(), "0", "{told:?}");
        assert_eq!(refusals(&told), [""; 0], "{tier}: {told:?}");
        // What would run without the cage is none where the search finds its like further on ...
        for name in ["true", "alone"] {
            let _ = std::fs::remove_file(away.join(name));
            script(&away.join(name), "/bin/sh");
        }
        let told = search("true");
        assert_eq!(told.printed(), "0", "the next one: {told:?}");
        assert_eq!(refusals(&told), [""; 0], "{tier}: {told:?}");
        // ... and is one where it does not ...
        let told = search("alone");
        let [refusal] = &refusals(&told)[..] else { panic!("{tier}: {told:?}") };
        assert!(refusal.contains("/away/alone, running it"), "{tier}: {told:?}");
        // ... or where the command itself says where to look: so it could hide what it tried.
        let told = yard.shell(tier, &format!("PATH={path} /usr/bin/env true; echo $?"));
        assert_eq!(told.printed(), "0", "{told:?}");
        let [refusal] = &refusals(&told)[..] else { panic!("{tier}: {told:?}") };
        assert!(refusal.contains("/away/true, running it"), "{tier}: {told:?}");
    }
}

#[test]
fn the_commands_own_program_is_told_as_before_and_starts_without_a_line() {
    for tier in TIERS {
        let yard = Yard::new();
        let inside = script(&yard.project.join("tool"), "/bin/sh");
        let told = yard.cage(tier, &[], &[&inside]);
        assert_eq!((told.in_tier(tier).one("exit"), told.all("refusal").len()), ("7".into(), 0));
        let away = script(&yard.root.join("away"), "/bin/sh");
        let told = yard.cage(tier, &[], &[&away]);
        assert!(told.one("reason").contains("away"), "{told:?}");
    }
}

#[test]
fn threads_and_vfork_start_programs_as_ever() {
    for tier in TIERS {
        let yard = Yard::new();
        let program = "\
import os, subprocess, threading, sys
def start(): subprocess.run(['/bin/true'], check=True)
threads = [threading.Thread(target=start) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
pids = [os.posix_spawn('/bin/true', ['true'], {}) for _ in range(8)]
print([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [0] * 8)
sys.stdout.flush()
def become(): os.execv('/bin/echo', ['echo', 'became'])
other = threading.Thread(target=become)
other.start()
other.join()
";
        let script = yard.project.join("threads.py");
        std::fs::write(&script, program).unwrap();
        let told = yard.cage(tier, &[], &["/usr/bin/python3", script.to_str().unwrap()]);
        assert_eq!(told.in_tier(tier).printed(), "True\nbecame", "{told:?}");
        assert_eq!(refusals(&told), [""; 0], "{tier}: {told:?}");
    }
}
