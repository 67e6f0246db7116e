//! Four attempts that have defeated cages: to outlive the call, to approve oneself, to bound another
//! process to death, to move `.git` away. Each prints its outcome (`--nocapture`).
#![allow(clippy::unwrap_used)]

use crate::support::attempt::{attempt, python};
use crate::support::{Desk, needs, processes};
use ipc::{HELLO_BYTES, Hello};
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use protocol::client::{ClientLink, FromClient};
use std::fs;
use std::io::{IoSlice, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

const TIERS: [&str; 2] = ["A", "B"];

#[test]
fn the_survivor() {
    for tier in TIERS {
        let desk = Desk::new();
        let mark = format!("3600.{}{tier}", std::process::id()).replace('A', "1").replace('B', "2");
        let script = format!(
            "setsid sh -c 'trap \"\" TERM HUP INT; (sleep {mark} &); sleep {mark}' & sleep 0.2; \
             pgrep -cf '[s]leep {mark}' || ls /proc | grep -c '^[0-9]'"
        );
        let tried = attempt(&desk, tier, &[], move |_| script.clone());
        assert_eq!(tried.ended["outcome"]["code"], 0, "it ran: {}", tried.explain());
        let known = |pid: u32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(&mark)
        };
        let left = processes().into_iter().filter(|process| known(process.pid)).count();
        println!("the survivor, tier {tier}: {left} left");
        assert_eq!(left, 0);
    }
}

/// The first bytes of a client with this token.
fn introduction(token: &str) -> Vec<u8> {
    let (client, mut daemon) = UnixStream::pair().unwrap();
    let token = token.to_owned();
    let said = std::thread::spawn(move || {
        let (_words, say) = ipc::connect::<ClientLink>(client).unwrap();
        say.send(&FromClient::Hello { token, build: protocol::BUILD_ID.into() }).unwrap();
    });
    let mut bytes = vec![0; HELLO_BYTES];
    daemon.read_exact(&mut bytes).unwrap();
    daemon.write_all(&Hello::own().to_bytes()).unwrap();
    said.join().unwrap();
    daemon.read_to_end(&mut bytes).unwrap();
    bytes
}

/// The daemon's answer to those bytes.
fn answer(mut daemon: UnixStream, bytes: &[u8]) -> String {
    daemon.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    daemon.write_all(bytes).unwrap();
    let mut heard = Vec::new();
    let mut piece = [0; 4096];
    while let Ok(count @ 1..) = daemon.read(&mut piece) {
        heard.extend_from_slice(&piece[..count]);
    }
    String::from_utf8_lossy(&heard).into_owned()
}

/// Gives every comer of this socket a connection to the daemon, as a careless program might.
fn leak(daemon: &Path, here: &Path) {
    let listener = UnixListener::bind(here).unwrap();
    let daemon = daemon.to_owned();
    std::thread::spawn(move || {
        for comer in listener.incoming().flatten() {
            let connected = UnixStream::connect(&daemon).unwrap();
            let rights = [connected.as_raw_fd()];
            let control = [ControlMessage::ScmRights(&rights)];
            let byte = [IoSlice::new(b"x")];
            sendmsg::<()>(comer.as_raw_fd(), &byte, &control, MsgFlags::empty(), None).unwrap();
        }
    });
}

#[test]
fn self_approval() {
    let refusal = "the token does not match";
    for tier in TIERS {
        let desk = Desk::new();
        let leaked = desk.project().join("leaked");
        desk.write("introduction", "");
        fs::write(desk.project().join("introduction"), introduction(&"0".repeat(64))).unwrap();
        let (control, heard) = std::sync::mpsc::channel();
        let tried = attempt(&desk, tier, &[], move |live| {
            let door = live.socket.parent().unwrap();
            let token = fs::read_to_string(door.join("token")).unwrap();
            let daemon = UnixStream::connect(&live.socket).unwrap();
            control.send(answer(daemon, &introduction(&token))).unwrap();
            leak(&live.socket, &leaked);
            let read = format!("cat {}/token", door.display());
            let take = python(
                "import array, socket\n\
                 s = socket.socket(socket.AF_UNIX)\n\
                 s.connect(\"leaked\")\n\
                 _, (( _, _, rights),), _, _ = s.recvmsg(1, socket.CMSG_SPACE(4))\n\
                 daemon = socket.socket(fileno=array.array(\"i\", rights)[0])\n\
                 daemon.settimeout(2)\n\
                 daemon.sendall(open(\"introduction\", \"rb\").read())\n\
                 heard = b\"\"\n\
                 try:\n    \
                 while piece := daemon.recv(4096): heard += piece\n\
                 except OSError as error: heard += str(error).encode()\n\
                 print(\"the answer:\", len(heard), heard)",
            );
            format!("{read}; {take}")
        });
        // A daemon that knows the opener of the connection sends its greeting only.
        let length =
            tried.words.split("the answer: ").nth(1).and_then(|rest| rest.split(' ').next());
        let length: usize =
            length.unwrap_or_else(|| panic!("{}", tried.explain())).parse().unwrap();
        let turned_away = length <= HELLO_BYTES || tried.words.contains(refusal);
        println!("self-approval, tier {tier}: turned away: {turned_away}");
        assert!(turned_away, "{}", tried.explain());
        let heard = heard.recv().unwrap();
        assert!(heard.len() > HELLO_BYTES && !heard.contains(refusal), "the control: {heard:?}");
    }
}

/// A process outside that dies when its processor time is bounded.
struct Victim(Child);

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn prlimit_of_another_process() {
    needs("python3");
    let program = |pid: &str| {
        python(&format!(
            "import resource, subprocess, time\n\
             own = subprocess.Popen([\"sh\", \"-c\", \"while :; do :; done\"])\n\
             for name, pid in (\"own\", own.pid), (\"other\", {pid}):\n    \
             try:\n        resource.prlimit(pid, resource.RLIMIT_CPU, (1, 1)); print(name, \"bounded\")\n    \
             except OSError as error: print(name, \"refused\", error.errno)\n\
             own.kill()"
        ))
    };
    for tier in TIERS {
        let desk = Desk::new();
        let mut victim =
            Victim(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap());
        let pid = victim.0.id().to_string();
        let script = program(&pid);
        let tried = attempt(&desk, tier, &[], move |_| script.clone());
        assert!(tried.words.contains("other refused"), "{}", tried.explain());
        assert!(tried.shows("prlimit64"), "{}", tried.explain());
        std::thread::sleep(Duration::from_millis(1500));
        let alive = victim.0.try_wait().unwrap().is_none();
        println!("prlimit of another process, tier {tier}: refused, and it lives: {alive}");
        assert!(alive, "{}", tried.explain());
        // The positive control: the same words without a cage end it.
        let free = Command::new("sh").args(["-c", &program(&pid)]).output().unwrap();
        assert!(String::from_utf8_lossy(&free.stdout).contains("other bounded"), "{free:?}");
        crate::support::until("it is ended for its time", || {
            victim.0.try_wait().unwrap().is_some()
        });
    }
}

#[test]
fn moving_git_away() {
    needs("git");
    for tier in TIERS {
        let desk = Desk::new();
        let init =
            Command::new("git").args(["init", "-q", "."]).current_dir(desk.project()).status();
        assert!(init.unwrap().success());
        let settings = desk.read(".git/config");
        let tried = attempt(&desk, tier, &[], |_| {
            "if mv .git away 2>words; then echo moved; mkdir .git .git/hooks; \
             echo '[core] fsmonitor = evil' > .git/config; echo evil > .git/hooks/pre-commit; \
             else cat words; fi; git status --short; echo end"
                .into()
        });
        assert!(tried.words.contains("end"), "{}", tried.explain());
        let moved = tried.words.contains("moved");
        let outcome =
            if moved { "moved; what was made in its place was put right" } else { "busy" };
        println!("moving .git away, tier {tier}: {outcome}");
        assert_eq!(moved, tier == "B", "{}", tried.explain());
        assert_eq!(desk.read(".git/config"), settings, "{}", tried.explain());
        assert!(!desk.project().join(".git/hooks/pre-commit").exists(), "{}", tried.explain());
        assert_eq!(tried.shown.contains("tampered"), moved, "{}", tried.shown);
        // The command may move its own files; none of them is lost.
        let kept = if moved { "away/HEAD" } else { ".git/HEAD" };
        assert!(desk.project().join(kept).exists(), "{}", tried.explain());
    }
}
