//! A project and a /proc with unusual mounts, each with the messages and the outcome; takes root.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::reserve::Scene;
use crate::support::{Desk, needs, run};
use serde_json::json;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The same command where these mounts were made before, `$P` being the project.
fn behind(mounts: &str, desk: &Desk, command: &Command) -> Command {
    assert!(crate::support::is_root(), "this test mounts file systems; run it as root");
    needs("unshare");
    let script = format!("mount --make-rprivate / && {mounts} && cd \"$P\" && exec \"$@\"");
    let mut moved = Command::new("setsid");
    moved.args(["unshare", "-m", "sh", "-c", &script, "sh"]).args(command.get_args()).env_clear();
    moved.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    moved.env("P", desk.project()).stdin(Stdio::null());
    moved
}

/// A model that runs a command and writes a file, as often as it is asked to.
fn command_and_write() -> Server {
    let bash = json!({ "command": "cat old; touch new; echo over" }).to_string();
    let write = json!({ "path": "other", "content": "x" }).to_string();
    Server::answering(move |round, _| match round % 3 {
        1 => Answer::says([call("toolu_1", "bash", &bash)]),
        2 => Answer::says([call("toolu_2", "write", &write)]),
        _ => Answer::text("done"),
    })
}

/// No cage makes it writable again, though root's own mounts could.
#[test]
fn a_project_on_a_read_only_mount_is_read_and_a_write_says_why() {
    for tier in ["A", "B"] {
        let desk = Desk::new();
        desk.write("old", "old-words");
        let server = command_and_write();
        let mut plain = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
        plain.env("AGENTD_SANDBOX_TIER", tier);
        let mounts = "mount --bind \"$P\" \"$P\" && mount -o remount,bind,ro \"$P\"";
        let ran = run(behind(mounts, &desk, &plain));
        assert_eq!(ran.code, 0, "{tier}: {ran:?}");
        let told = server.requests()[2].body["messages"].to_string();
        for words in ["old-words", "over", "Read-only file system"] {
            assert!(told.contains(words), "{tier}: {words} in {told}");
        }
        let made = |name: &str| desk.project().join(name).exists();
        assert!(!made("new") && !made("other"), "{tier}: {told}");
        let ran = run(plain);
        assert_eq!(ran.code, 0, "{tier}: {ran:?}");
        assert!(made("new") && made("other"), "the positive control, {tier}");
    }
}

/// Root's calls have no right of root; a container or CI often has another user's checkout.
#[test]
fn in_another_users_project_it_is_said_before_the_first_call_that_nothing_can_be_written() {
    assert!(crate::support::is_root(), "this test gives a project to another user; run it as root");
    for tier in ["A", "B"] {
        let desk = Desk::new();
        desk.write("old", "old-words");
        let server = command_and_write();
        let with = |desk: &Desk| {
            let mut agentd = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
            agentd.env("AGENTD_SANDBOX_TIER", tier);
            run(agentd)
        };
        let owner = Some(65534);
        std::os::unix::fs::chown(desk.project(), owner, owner).unwrap();
        let ran = with(&desk);
        assert!(ran.err.contains("belongs to the user with the id 65534"), "{tier}: {}", ran.err);
        assert!(ran.err.contains("setpriv --reuid 65534"), "{tier}: a way on: {}", ran.err);
        assert!(!desk.project().join("new").exists(), "{tier}: the note is true");
        let doctor = run(desk.agentd(&["doctor"])).out;
        assert!(doctor.contains("calls can change nothing in"), "{tier}: {doctor}");
        // The positive control.
        std::os::unix::fs::chown(desk.project(), Some(0), Some(0)).unwrap();
        let ran = with(&desk);
        assert!(!ran.err.contains("calls can change nothing"), "{tier}: {}", ran.err);
        assert!(desk.project().join("new").exists(), "{tier}");
        assert!(!run(desk.agentd(&["doctor"])).out.contains("calls can change nothing in"));
    }
}

/// The user's own places are used where the machine's are closed; the kernel is not to blame, and
/// the sandbox stays as it is.
#[test]
fn where_temporary_directories_are_closed_another_place_is_used() {
    let closed = "mount -t tmpfs -o ro none /tmp && mount -t tmpfs -o ro none /var/tmp";
    for tier in ["A", "B"] {
        let desk = Desk::new();
        desk.write("old", "old-words");
        let server = command_and_write();
        let mut plain = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
        plain.env("AGENTD_SANDBOX_TIER", tier).env("TMPDIR", "/nowhere/at-all");
        for run in [run(behind(closed, &desk, &plain)), run(plain)] {
            assert_eq!(run.code, 0, "{tier}: {run:?}");
        }
        let told = server.requests()[2].body["messages"].to_string();
        assert!(told.contains("old-words") && told.contains("over"), "{tier}: {told}");
        for ended in desk.audit().iter().filter(|record| record["event"] == "ended") {
            let is_command = !ended["enforced"]["in_process"].as_bool().unwrap_or_default();
            assert!(!is_command || ended["enforced"]["tier"] == tier, "{ended:#}");
        }
        let doctor = run(behind(closed, &desk, &desk.agentd(&["doctor"])));
        assert!(doctor.out.contains("ok      cage"), "{doctor:?}");
        // The control: where nothing is left, the places are named, and nothing else is to blame.
        let all = format!(
            "{closed} && mount --bind \"$HOME\" \"$HOME\" && mount -o remount,bind,ro \"$HOME\""
        );
        let doctor = run(behind(&all, &desk, &desk.agentd(&["doctor"])));
        for words in ["MISSING temporary files", "/tmp: ", "/var/tmp: ", "Read-only file system"] {
            assert!(doctor.out.contains(words), "{words} in {doctor:?}");
        }
        assert!(!doctor.out.contains("unsafe-no-sandbox"), "{doctor:?}");
    }
}

#[test]
fn without_proc_nothing_runs_and_the_reason_is_said() {
    let desk = Desk::new();
    let server = command_and_write();
    let masked = "mount -t tmpfs none /proc";
    let plain = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
    let ran = run(behind(masked, &desk, &plain));
    assert_eq!(ran.code, 15, "{ran:?}");
    assert!(ran.err.contains("mount /proc"), "{ran:?}");
    assert!(server.requests().is_empty());
    let ran = run(behind(masked, &desk, &desk.agentd(&["doctor"])));
    assert_eq!(ran.code, 11, "{}", ran.out);
    for words in ["MISSING cage", "/proc/self/task", "mount /proc"] {
        assert!(ran.out.contains(words), "{words}: {}", ran.out);
    }
}

/// Masked as in containers: the files that a cage needs are still there.
#[test]
fn where_parts_of_proc_are_masked_calls_run_in_their_tier() {
    for tier in ["A", "B"] {
        let desk = Desk::new();
        desk.write("old", "old-words");
        let server = command_and_write();
        let mut plain = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
        plain.env("AGENTD_SANDBOX_TIER", tier);
        let masked = "mount -t tmpfs none /proc/sys && mount --bind /dev/null /proc/cpuinfo";
        let ran = run(behind(masked, &desk, &plain));
        assert_eq!(ran.code, 0, "{tier}: {ran:?}");
        assert!(desk.project().join("new").exists() && desk.project().join("other").exists());
        assert_eq!(desk.ended(1)["enforced"]["tier"], tier);
    }
}

/// The shell of a script is the one that the tool's description names.
#[test]
fn a_script_runs_in_sh_where_no_bash_can_be_started_and_in_bash_wherever_it_lies() {
    let hidden = "mount --bind /dev/null \"$(readlink -f /bin/bash)\"";
    let moved =
        format!("mount -t tmpfs none /usr/local/bin && cp /bin/bash /usr/local/bin/ && {hidden}");
    let script = json!({ "command": "echo \"bash:${BASH_VERSION:-none} $SHELL\"" }).to_string();
    for (mounts, told, ran_in) in [
        (hidden, "The shell is /bin/sh, run with -c, since", "bash:none /bin/sh"),
        (&moved, "The shell is bash (/usr/local/bin/bash), run", " /usr/local/bin/bash"),
        ("true", "The shell is bash (/", "/bash"),
    ] {
        for tier in ["A", "B"] {
            let desk = Desk::new();
            let server = Server::scripted([
                Answer::says([call("toolu_1", "bash", &script)]),
                Answer::text("done"),
            ]);
            let mut plain = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
            plain.env("AGENTD_SANDBOX_TIER", tier).env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin");
            let ran = run(behind(mounts, &desk, &plain));
            assert_eq!(ran.code, 0, "{tier} {mounts}: {ran:?}");
            let body = server.requests()[1].body.clone();
            let tools = body["tools"].to_string();
            assert!(tools.contains(told), "{tier} {mounts}: {tools}");
            let result = body["messages"].to_string();
            assert!(result.contains(ran_in), "{tier} {mounts}: {result}");
            let is_bash = !result.contains("bash:none");
            assert_eq!(is_bash, mounts != hidden, "{tier} {mounts}: {result}");
            assert_eq!(desk.ended(1)["outcome"]["code"], 0, "{tier} {mounts}: {result}");
        }
    }
}

/// A project on an exFAT of its own, for which names that differ in case alone are one.
struct Folding(PathBuf);

impl Folding {
    fn project(desk: &Desk) -> Self {
        assert!(crate::support::is_root(), "this test mounts file systems; run it as root");
        for program in ["mkfs.exfat", "losetup", "mount"] {
            needs(program);
        }
        let (image, at) = (desk.outside().join("image"), desk.project());
        fs::File::create(&image).unwrap().set_len(16 << 20).unwrap();
        let made = Command::new("mkfs.exfat").arg(&image).stdout(Stdio::null()).status();
        assert!(made.unwrap().success());
        // By the kernel, or by a program where it has none.
        let script = "mount -t exfat -o loop \"$1\" \"$2\" 2>/dev/null || {
            disk=$(losetup -f --show \"$1\") || exit
            mount.exfat-fuse \"$disk\" \"$2\" >/dev/null; mounted=$?
            losetup -d \"$disk\"; exit $mounted
        }";
        let mounted = Command::new("sh").args(["-c", script, "sh"]).arg(&image).arg(&at).status();
        assert!(mounted.unwrap().success(), "this test mounts exFAT: install exfat-fuse");
        Self(at)
    }
}

impl Drop for Folding {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[test]
#[ignore = "needs exFAT: .ci/nightly machine"]
fn where_names_fold_file_tools_refuse_protected_names_by_every_spelling() {
    let attempts = [
        ("write", json!({ "path": ".GIT/config", "content": "evil" })),
        ("write", json!({ "path": ".git/Hooks/pre-commit", "content": "evil" })),
        ("write", json!({ "path": ".ENVRC", "content": "evil" })),
        ("edit", json!({ "path": ".Envrc", "old_string": "mine", "new_string": "evil" })),
        ("delete", json!({ "path": ".envRC" })),
        ("write", json!({ "path": ".VSCode/Tasks.json", "content": "evil" })),
        ("write", json!({ "path": "sub/.Claude/settings.json", "content": "evil" })),
        ("write", json!({ "path": "README", "content": "new words" })),
    ];
    for tier in ["A", "B"] {
        let desk = Desk::new();
        let _folding = Folding::project(&desk);
        for (name, text) in [(".git/config", "mine"), (".envrc", "mine"), ("readme", "old words")] {
            desk.write(name, text);
        }
        let calls = attempts.clone();
        let server = Server::answering(move |round, _| match calls.get(round - 1) {
            Some((tool, input)) => {
                Answer::says([call(&format!("toolu_{round}"), tool, &input.to_string())])
            }
            None => Answer::text("done"),
        });
        let mut asked = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
        asked.env("AGENTD_SANDBOX_TIER", tier);
        let ran = run(asked);
        assert_eq!(ran.code, 0, "{tier}: {ran:?}");
        let told = server.requests().last().unwrap().body["messages"].to_string();
        assert_eq!(told.matches("the protected file ").count(), 7, "{tier}: {told}");
        assert_eq!((desk.read(".git/config"), desk.read(".envrc")), ("mine".into(), "mine".into()));
        let made = |name: &str| desk.project().join(name).exists();
        assert!(!made(".git/hooks") && !made(".vscode") && !made("sub"), "{tier}: {told}");
        // The positive control: the other spelling is the same file here, and it may be written.
        assert_eq!(desk.read("readme"), "new words", "{tier}: {told}");
    }
}

/// The mount is made while the model thinks and the next command's cage stands already.
#[test]
fn a_mount_in_the_project_never_meets_an_old_reserve() {
    assert!(crate::support::is_root(), "this test mounts a file system; run it as root");
    let desk = Desk::new().with_ping_ms(1000);
    let place = desk.write("sub/below", "hidden").parent().unwrap().to_owned();
    let mut scene = Scene::new(&desk, "", &["echo ran > sub/made", "echo ran > sub/made"]);
    // The control: without a mount the runner is taken.
    let first = scene.resting();
    scene.answer();
    scene.call_ends();
    assert_eq!(scene.runners(), [first]);
    let second = scene.resting();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "none"]).arg(&place).status().unwrap();
    assert!(mounted.success());
    scene.answer();
    scene.call_ends();
    let shown = fs::read_to_string(place.join("made"));
    let unmounted = Command::new("umount").arg(&place).status().unwrap();
    assert!(unmounted.success());
    assert_eq!(shown.unwrap(), "ran\n", "the command saw the mount");
    assert_ne!(scene.runners()[1], second);
    scene.end();
}
