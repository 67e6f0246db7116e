//! Signing git's commits with the person's ssh agent, as a right of one call: with the real agent,
//! ssh-keygen and git, in both tiers. As a control, requests that the command may not send to the
//! agent are sent to it from outside.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::{Desk, Run, needs, run, until};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const TIERS: [&str; 2] = ["A", "B"];
/// The right that lets a call sign with any program.
const GIVEN: [&str; 4] = ["--permission-mode", "auto", "--allowed-tools", "git-sign"];

/// A person with an agent of two keys, who signs commits with the first of them.
struct Signing {
    desk: Desk,
    agent: Child,
}

impl Drop for Signing {
    fn drop(&mut self) {
        let _ = self.agent.kill();
        let _ = self.agent.wait();
    }
}

impl Signing {
    fn new() -> Self {
        Self::with("ed25519")
    }

    fn with(kind: &str) -> Self {
        needs("git");
        needs("ssh-agent");
        needs("python3");
        let desk = Desk::new();
        let socket = desk.outside().join("agent");
        let mut agent = Command::new("ssh-agent");
        agent.args(["-D", "-a"]).arg(&socket).stdout(Stdio::null()).stderr(Stdio::null());
        let agent = agent.env("HOME", desk.home()).spawn().unwrap();
        until("the agent listens", || UnixStream::connect(&socket).is_ok());
        let signing = Self { desk, agent };
        let ssh = signing.desk.home().join(".ssh");
        fs::create_dir(&ssh).unwrap();
        for name in ["id", "other"] {
            let file = ssh.join(name).display().to_string();
            let made = ["-q", "-t", kind, "-N", "", "-C", name, "-f", &file];
            signing.done("ssh-keygen", &made);
            signing.done("ssh-add", &["-q", &file]);
        }
        signing.settings(
            "[gpg]\nformat = ssh\n[user]\nsigningKey = ~/.ssh/id\n[commit]\ngpgSign = true\n",
        );
        let public = signing.public("id");
        fs::write(signing.signers(), format!("ann@example.org {public}")).unwrap();
        signing.desk.write("id.pub", &public);
        signing.desk.write("other.pub", &signing.public("other"));
        signing.done("git", &["init", "-q"]);
        signing
    }

    fn settings(&self, signing: &str) {
        let text = format!("[user]\nname = Ann\nemail = ann@example.org\n{signing}");
        fs::write(self.desk.home().join(".gitconfig"), text).unwrap();
    }

    fn socket(&self) -> PathBuf {
        self.desk.outside().join("agent")
    }

    fn signers(&self) -> PathBuf {
        self.desk.outside().join("allowed_signers")
    }

    fn public(&self, name: &str) -> String {
        fs::read_to_string(self.desk.home().join(format!(".ssh/{name}.pub"))).unwrap()
    }

    /// A program outside, with the real agent.
    fn outside(&self, program: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.desk.project());
        command.env("HOME", self.desk.home()).env("SSH_AUTH_SOCK", self.socket());
        command.output().unwrap()
    }

    fn done(&self, program: &str, arguments: &[&str]) {
        let out = self.outside(program, arguments);
        assert!(out.status.success(), "{program} {arguments:?}: {out:?}");
    }

    /// The number of commits, and true if the person signed the newest.
    fn commits(&self) -> (usize, bool) {
        let log = self.outside("git", &["log", "--format=%H"]);
        let count = String::from_utf8(log.stdout).unwrap().lines().count();
        let signers = format!("gpg.ssh.allowedSignersFile={}", self.signers().display());
        let verified = self.outside("git", &["-c", &signers, "verify-commit", "HEAD"]);
        (count, verified.status.success())
    }

    /// Runs these calls of `bash` with the person's agent. Returns the results that the model got.
    fn calls(&self, tier: &str, inputs: &[Value], flags: &[&str]) -> (Run, Vec<String>) {
        self.calls_by(tier, ("bash", inputs), flags, Some(&self.socket()))
    }

    fn calls_by(
        &self,
        tier: &str,
        (tool, inputs): (&str, &[Value]),
        flags: &[&str],
        socket: Option<&Path>,
    ) -> (Run, Vec<String>) {
        let asked = |(at, input): (usize, &Value)| {
            Answer::says([call(&format!("toolu_{at}"), tool, &input.to_string())])
        };
        let answers = inputs.iter().enumerate().map(asked).chain([Answer::text("done")]);
        let server = Server::scripted(answers.collect::<Vec<_>>());
        let mut arguments = vec!["-p", "do it", "--output-format", "json"];
        arguments.extend(flags);
        let mut agentd = self.desk.with_server(&server, &arguments);
        agentd.env("AGENTD_SANDBOX_TIER", tier);
        socket.map(|socket| agentd.env("SSH_AUTH_SOCK", socket));
        let ran = run(agentd);
        let told = server.requests().into_iter().skip(1).map(|request| {
            let last = request.body["messages"].as_array().unwrap().last().unwrap().clone();
            last["content"][0]["content"].as_str().unwrap_or_default().to_owned()
        });
        (ran, told.collect())
    }

    fn newest(&self, event: &str) -> Value {
        self.desk.audit().into_iter().rfind(|record| record["event"] == event).unwrap()
    }
}

const COMMIT: &str = "git commit -q --allow-empty -m one";

#[test]
fn a_call_with_the_right_signs_commits_that_others_can_verify() {
    for (tier, kind) in TIERS.into_iter().zip(["ed25519", "rsa"]) {
        let signing = Signing::with(kind);
        let plain = "ls -A \"$TMPDIR\"; echo \"socket=$SSH_AUTH_SOCK=\"";
        let inputs =
            [json!({ "command": COMMIT, "git_signing": "on" }), json!({ "command": plain })];
        let rules = ["--allowed-tools", "git-sign:git commit *", "--permission-mode", "auto"];
        let (ran, told) = signing.calls(tier, &inputs, &rules);
        assert_eq!((ran.code, signing.commits()), (0, (1, true)), "{tier}: {told:?} {}", ran.err);
        let listed = signing.outside("ssh-keygen", &["-lf", "id.pub"]);
        let listed = String::from_utf8(listed.stdout).unwrap();
        let fingerprint = listed.split(' ').nth(1).unwrap();
        assert!(told[0].contains(&format!("signed once with the key {fingerprint}")), "{told:?}");
        assert!(told[1].contains("socket==") && !told[1].contains(".git-sign"), "{tier}: {told:?}");
        let records = signing.desk.audit();
        let of =
            |event: &str| records.iter().find(|record| record["event"] == event).unwrap().clone();
        assert_eq!(of("ended")["signed"], json!([format!("signed once, by key {fingerprint}")]));
        assert!(of("decided")["rights"][0].as_str().unwrap().starts_with("git-sign"), "{tier}");
        assert_eq!(signing.newest("ended")["signed"], Value::Null, "{tier}");
        let session = ran.json()["session_id"].as_str().unwrap().to_owned();
        let shown = run(signing.desk.agentd(&["audit", "show", &format!("{session}.1")])).out;
        assert!(shown.contains(&format!("signed once, by key {fingerprint}")), "{shown}");
        // Several, and by the tool without a shell.
        let argv = ["git", "rebase", "-q", "--root", "--force-rebase"];
        let input = [json!({ "argv": argv, "git_signing": "on" })];
        let (_, told) = signing.calls_by(tier, ("run", &input), &GIVEN, Some(&signing.socket()));
        assert_eq!(signing.commits(), (1, true), "{tier}: {told:?}");
        let tag = [json!({ "command": "git tag -s -m x v1", "git_signing": "on" })];
        let (_, told) = signing.calls(tier, &tag, &GIVEN);
        let signers = format!("gpg.ssh.allowedSignersFile={}", signing.signers().display());
        let verified = signing.outside("git", &["-c", &signers, "verify-tag", "v1"]);
        assert!(verified.status.success(), "{tier}: {told:?} {verified:?}");
    }
}

/// Git itself judges the conditions, and the agent's keys are those of all files.
#[test]
fn the_key_of_a_condition_that_holds_in_the_repository_signs() {
    let signing = Signing::new();
    let project = signing.desk.project();
    let here = format!(
        "[includeIf \"gitdir:{}/\"]\npath = here\n[includeIf \"gitdir:/nowhere/\"]\npath = elsewhere\n",
        project.display()
    );
    let base = "[gpg]\nformat = ssh\n[user]\nsigningKey = ~/.ssh/id\n";
    let name = |file: &str, text: &str| fs::write(signing.desk.home().join(file), text).unwrap();
    name("here", "[user]\nsigningKey = ~/.ssh/other.pub\n[commit]\ngpgSign = true\n");
    name("elsewhere", "[user]\nsigningKey = ~/.ssh/id.pub\n[commit]\ngpgSign = false\n");
    signing.settings(&format!("{base}{here}"));
    let input = [json!({ "command": COMMIT, "git_signing": "on" })];
    let (_, told) = signing.calls("A", &input, &GIVEN);
    let other = signing.public("other");
    fs::write(signing.signers(), format!("ann@example.org {other}")).unwrap();
    assert_eq!(signing.commits(), (1, true), "{told:?}");
}

#[test]
fn without_the_right_nothing_is_signed_and_the_way_on_is_told() {
    for tier in TIERS {
        let signing = Signing::new();
        let auto = ["--permission-mode", "auto", "--allowed-tools", "bash"];
        // Neither the mode nor a rule for the command gives it.
        let asks = [json!({ "command": COMMIT, "git_signing": "on" })];
        let (ran, told) = signing.calls(tier, &asks, &auto);
        assert_eq!((ran.code, signing.commits()), (10, (0, false)), "{tier}: {told:?}");
        for words in ["with your ssh key", "`git_signing`", "git-sign:git commit -q"] {
            assert!(told[0].contains(words), "{words}: {told:?}");
        }
        // Not asked for: as without an agent.
        let (ran, told) = signing.calls(tier, &[json!({ "command": COMMIT })], &auto);
        assert_eq!((ran.code, signing.commits()), (0, (1, false)), "{tier}: {told:?}");
        let hint = |told: &str| {
            told.split("--- agentd ---").last().unwrap().contains("git_signing \"on\"")
        };
        assert!(hint(&told[0]), "{told:?}");
        let (_, told) = signing.calls(tier, &[json!({ "command": format!("{COMMIT} -S") })], &auto);
        assert_eq!(signing.commits(), (1, false), "{tier}: {told:?}");
        assert!(hint(&told[0]), "{told:?}");
        let tool = [json!({ "subject": "two" })];
        signing.done("git", &["add", "id.pub"]);
        let (_, told) =
            signing.calls_by(tier, ("git_commit", &tool), &auto, Some(&signing.socket()));
        assert_eq!(signing.commits(), (2, false), "{tier}: {told:?}");
        assert!(hint(&told[0]), "{told:?}");
        // A person who does not sign commits gets no hint about signing.
        signing.settings("");
        let (_, told) = signing.calls(tier, &[json!({ "command": COMMIT })], &auto);
        assert!(told[0].contains("exit code: 0") && !told[0].contains("git-sign"), "{told:?}");
    }
}

/// Sends the agent behind `SSH_AUTH_SOCK` the requests that a command might try.
const PROBE: &str = r#"
import base64, os, socket, struct, sys
def text(b): return struct.pack('>I', len(b)) + b
def blob(name): return base64.b64decode(open(name).read().split()[1])
def ask(name, message):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(10)
    s.connect(os.environ['SSH_AUTH_SOCK'])
    try:
        s.sendall(text(message))
        kind = s.recv(5)
        print(name + '=' + (str(kind[4]) if len(kind) == 5 else 'closed'))
    except OSError as e:
        print(name + '=closed')
def is_socket(fd):
    try: return os.readlink('/proc/self/fd/' + fd).startswith('socket')
    except OSError: return False
print('sockets=%d' % sum(map(is_socket, os.listdir('/proc/self/fd'))))
def sign(key, data, flags=0): return b'\x0d' + text(blob(key)) + text(data) + struct.pack('>I', flags)
def sig(space): return b'SSHSIG' + text(space) + text(b'') + text(b'sha512') + text(b'7' * 64)
login = text(b'7' * 32) + b'\x32' + text(b'ann') + text(b'ssh-connection') + text(b'publickey') \
    + b'\x01' + text(b'ssh-ed25519') + text(blob('id.pub'))
ask('login', sign('id.pub', login))
ask('file', sign('id.pub', sig(b'file')))
ask('other', sign('other.pub', sig(b'git')))
ask('long', sign('id.pub', sig(b'git') + b'x' * 70000))
ask('extension', b'\x1b' + text(b'query'))
ask('git', sign('id.pub', sig(b'git')))
"#;

#[test]
fn the_command_gets_signatures_of_git_s_by_that_key_and_nothing_else_of_the_agent() {
    let script = "ssh-add -l; ssh-add -L | wc -l; python3 probe.py; \
        echo text > f; ssh-keygen -Y sign -n file -f id.pub f && echo signed-a-file; \
        ssh-add -D && echo removed; ssh-add -x </dev/null && echo locked; \
        cat ~/.ssh/id && echo read-the-key; \
        SSH_AUTH_SOCK=$REAL ssh-add -l && echo reached-the-agent; true";
    for tier in TIERS {
        let signing = Signing::new();
        signing.desk.write("probe.py", PROBE);
        let real = signing.socket();
        let script = script.replace("$REAL", &real.display().to_string());
        signing.desk.write("attempts.sh", &script);
        let inputs = [json!({ "command": "sh attempts.sh", "git_signing": "on" })];
        let (ran, told) = signing.calls(tier, &inputs, &GIVEN);
        let told = &told[0];
        assert_eq!(ran.code, 0, "{tier}: {told}");
        for words in
            [" id (ED25519)", "\n1\n", "login=5", "file=5", "other=5", "long=closed", "git=14"]
        {
            assert!(told.contains(words), "{tier} {words}: {told}");
        }
        assert!(told.contains("extension=5") && told.contains("sockets=0"), "{tier}: {told}");
        for words in [
            " other (ED25519)",
            "signed-a-file",
            "removed",
            "locked",
            "read-the-key",
            "PRIVATE KEY",
            "reached-the-agent",
        ] {
            assert!(!told.contains(words), "{tier} {words}: {told}");
        }
        assert!(told.contains("not a git commit or tag"), "{tier}: {told}");
        // The controls: the agent itself answers all of them.
        let probed = signing.outside("python3", &["probe.py"]);
        let probed = String::from_utf8(probed.stdout).unwrap();
        for words in ["login=14", "file=14", "other=14", "long=14", "git=14"] {
            assert!(probed.contains(words), "{words}: {probed}");
        }
        let listed = signing.outside("ssh-add", &["-l"]);
        assert_eq!(String::from_utf8(listed.stdout).unwrap().lines().count(), 2, "both are there");
        signing.desk.write("f", "text");
        signing.done("ssh-keygen", &["-Y", "sign", "-n", "file", "-f", "id.pub", "f"]);
        signing.done("ssh-add", &["-D"]);
    }
}

#[test]
fn where_nothing_can_be_signed_the_call_is_told_why_and_does_not_run() {
    let signing = Signing::new();
    let input = [json!({ "command": "touch ran", "git_signing": "on" })];
    let told = |socket: Option<&Path>| {
        let (_, told) = signing.calls_by("A", ("bash", &input), &GIVEN, socket);
        (fs::remove_file(signing.desk.project().join("ran")).is_ok(), told[0].clone())
    };
    let real = signing.socket();
    let (ran, said) = told(Some(&real));
    assert!(ran, "the control: {said}");
    let refused = |socket: Option<&Path>, words: &str| {
        let (ran, said) = told(socket);
        assert!(!ran && said.contains(words) && said.contains("[no_signing]"), "{words}: {said}");
    };
    refused(None, "SSH_AUTH_SOCK is not set");
    refused(Some(&signing.desk.outside().join("none")), "does not answer");
    signing.done("ssh-add", &["-q", "-d", "id.pub"]);
    refused(Some(&real), "has none of the keys");
    signing.settings("[commit]\ngpgSign = true\n[user]\nsigningKey = 3AA5C34371567BD2\n");
    refused(Some(&real), "gpg-agent signs any hash");
    signing.settings("[gpg]\nformat = ssh\n[user]\nsigningKey = ~/.ssh/none\n");
    refused(Some(&real), "contains no ssh public key");
    signing.settings("");
    refused(Some(&real), "Set gpg.format=ssh");
}

/// An agent that says which keys it has and then waits for a touch that never comes.
fn waiting_agent(path: &Path, blob: Vec<u8>) {
    let listener = UnixListener::bind(path).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, blob) = (stream.unwrap(), blob.clone());
            std::thread::spawn(move || {
                let mut message = [0; 5];
                while stream.read_exact(&mut message).is_ok() && message[4] == 11 {
                    let length = u32::try_from(blob.len()).unwrap().to_be_bytes();
                    let body = [&[12, 0, 0, 0, 1], &length[..], &blob, &[0; 4]].concat();
                    let whole = u32::try_from(body.len()).unwrap().to_be_bytes();
                    stream.write_all(&[&whole[..], &body].concat()).unwrap();
                }
                std::thread::sleep(Duration::from_secs(60));
            });
        }
    });
}

#[test]
fn an_agent_that_waits_for_its_person_does_not_hold_up_the_end_of_a_call() {
    for tier in TIERS {
        let signing = Signing::new();
        let read = "import base64,sys; sys.stdout.buffer.write(base64.b64decode(open('id.pub').read().split()[1]))";
        let blob = signing.outside("python3", &["-c", read]).stdout;
        let socket = signing.desk.outside().join("waiting");
        waiting_agent(&socket, blob);
        let input = [json!({ "command": COMMIT, "git_signing": "on", "timeout_ms": 2000 })];
        let since = Instant::now();
        let (_, told) = signing.calls_by(tier, ("bash", &input), &GIVEN, Some(&socket));
        assert!(told[0].contains("timed out after 2000 ms"), "{tier}: {told:?}");
        assert!(since.elapsed() < Duration::from_secs(30), "{tier}: {:?}", since.elapsed());
        assert_eq!(signing.newest("ended")["signed"], Value::Null);
    }
}

/// Other calls of the session share its temporary directory, as this process does here.
#[test]
fn the_socket_serves_processes_of_its_call_and_no_others() {
    for tier in TIERS {
        let signing = Signing::new();
        let wait = "ssh-add -l; touch \"$TMPDIR/up\"; until [ -e \"$TMPDIR/over\" ]; do sleep 0.1; done; \
            ssh-add -l";
        let input = [json!({ "command": wait, "git_signing": "on", "timeout_ms": 30000 })];
        let state = signing.desk.state();
        let of_ours = move || {
            let dirs = fs::read_dir("/tmp").unwrap().flatten().map(|entry| entry.path());
            dirs.filter(|dir| {
                fs::read_link(dir.join("session")).is_ok_and(|owner| owner.starts_with(&state))
            })
            .map(|dir| dir.join("tmp"))
            .find(|temp| temp.join("up").exists())
        };
        let stranger = std::thread::spawn(move || {
            until("the command is up", || of_ours().is_some());
            let temp = of_ours().unwrap();
            let names = fs::read_dir(&temp).unwrap().flatten().map(|entry| entry.path());
            let is_socket = |path: &PathBuf| path.to_string_lossy().contains(".git-sign-");
            let socket = names.into_iter().find(is_socket).unwrap();
            let mut stream = UnixStream::connect(&socket).unwrap();
            let _ = stream.write_all(&[0, 0, 0, 1, 11]);
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer);
            fs::write(temp.join("over"), "").unwrap();
            (socket, answer)
        });
        let (_, told) = signing.calls(tier, &input, &GIVEN);
        let (socket, answer) = stranger.join().unwrap();
        assert!(answer.is_empty(), "{tier}: a stranger was answered: {answer:?}");
        assert_eq!(told[0].matches(" id (ED25519)").count(), 2, "{tier}: {told:?}");
        assert!(!socket.exists(), "{tier}: {socket:?} is left");
    }
}
