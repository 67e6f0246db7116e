//! The broker as the process it is: started over a socket pair, locked, ended with its channel.
//!
//! Not on the usual harness, because this program starts itself as the worker.
#![allow(clippy::unwrap_used)]

use ipc::{HELLO_BYTES, Hello, MessageJoiner, codec, frames};
use protocol::broker::{BrokerLink, FromBroker, ToBroker};
use protocol::call::CallOrigin;
use protocol::ids::{Generation, SessionId};
use protocol::judgement::{
    Audience, Basis, PermissionMode, Rule, RuleEffect, RuleSet, ToolKind, Verdict,
};
use protocol::{Link, call::Call, ids::CallId, judgement::JudgedCall};
use std::fs;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Longest wait for anything; a broker that is well answers in milliseconds.
const PATIENCE: Duration = Duration::from_secs(20);

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("as-broker") {
        return broker_worker::main();
    }
    let tests: [(&str, fn()); 6] = [
        ("it_says_ready_judges_and_answers_in_the_right_life", it_judges),
        ("it_is_locked_before_it_reads", it_is_locked),
        ("it_ends_quietly_with_its_channel", it_ends_with_its_channel),
        ("it_ends_on_a_broken_frame_without_a_panic", it_ends_on_a_broken_frame),
        ("it_ends_with_the_thread_that_started_it", it_ends_with_its_parent),
        ("started_by_hand_it_says_what_to_do", it_is_not_for_hands),
    ];
    let trials = tests.map(|(name, test)| {
        libtest_mimic::Trial::test(name, move || {
            test();
            Ok(())
        })
    });
    let mut arguments = libtest_mimic::Arguments::from_args();
    arguments.test_threads.get_or_insert(1);
    libtest_mimic::run(&arguments, trials.into()).exit_code()
}

/// A broker and the supervisor's end of its channel.
struct Started {
    child: Child,
    socket: UnixStream,
    joiner: MessageJoiner,
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start() -> Started {
    let (socket, theirs) = UnixStream::pair().unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let child = Command::new(std::env::current_exe().unwrap())
        .arg("as-broker")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut started =
        Started { child, socket, joiner: MessageJoiner::new(BrokerLink::MESSAGE_CAP) };
    let mut hello = [0; HELLO_BYTES];
    started.socket.read_exact(&mut hello).unwrap();
    Hello::from_bytes(&hello).unwrap().check().unwrap();
    let ready = started.next();
    assert!(matches!(ready, (Generation(0), FromBroker::Ready { .. })), "{ready:?}");
    started
}

impl Started {
    fn say(&mut self, word: &ToBroker) {
        let body = codec::encode(word).unwrap();
        self.socket.write_all(&frames(Generation(3), 9, &body)).unwrap();
    }

    /// The next word that is no log line, with its generation.
    fn next(&mut self) -> (Generation, FromBroker) {
        loop {
            if let Some(joined) = self.joiner.next_message().unwrap() {
                let word = codec::decode(&joined.body.expect("a word")).unwrap();
                if !matches!(word, FromBroker::Log(_)) {
                    return (joined.generation, word);
                }
                continue;
            }
            let mut buffer = [0; 4096];
            let length = self.socket.read(&mut buffer).expect("the broker answers in time");
            if length == 0 {
                let mut errors = String::new();
                self.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
                panic!("the broker ended: {errors}");
            }
            self.joiner.push(&buffer[..length]);
        }
    }

    fn end(&mut self) -> (ExitStatus, String) {
        let status = wait(&mut self.child);
        let mut errors = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        (status, errors)
    }
}

fn wait(child: &mut Child) -> ExitStatus {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("the broker does not end");
}

fn session() -> SessionId {
    SessionId("0123456789ab".into())
}

fn it_judges() {
    let mut broker = start();
    let deny =
        Rule { effect: RuleEffect::Deny, text: "bash:sudo *".into(), file: "f".into(), line: 1 };
    let rules = RuleSet {
        rules: vec![deny.clone()],
        mode: PermissionMode::Auto,
        audience: Audience::NonInteractive,
        project: "/p".into(),
    };
    broker.say(&ToBroker::Rules { session: session(), rules });
    for (number, command, wanted) in [(1, "sudo x", Some(deny)), (2, "make", None)] {
        let id = CallId { session: session(), number };
        broker.say(&ToBroker::Judge(Box::new(JudgedCall {
            call: Call {
                id: id.clone(),
                origin: CallOrigin::model("u"),
                tool: "bash".into(),
                input: "{}".into(),
            },
            kind: ToolKind::Mutation,
            command: Some(command.into()),
            page: None,
            probe: None,
            confinement: String::new(),
            extra_rights: Vec::new(),
            configured: None,
            tampered: Box::default(),
            asked: None,
            typed_by: None,
            reach: protocol::judgement::EffectReach::Unknown,
        })));
        let (generation, said) = broker.next();
        assert_eq!(generation, Generation(3));
        let FromBroker::Verdict { call, verdict } = said else { panic!("{said:?}") };
        assert_eq!(call, id);
        match wanted {
            Some(rule) => {
                assert!(matches!(verdict, Verdict::Deny(Basis::Rule(found), _) if found == rule))
            }
            None => assert_eq!(verdict, Verdict::Allow(Basis::Mode(PermissionMode::Auto))),
        }
    }
    broker.say(&ToBroker::Ping(5));
    assert_eq!(broker.next().1, FromBroker::Pong(5));
}

fn it_is_locked() {
    let broker = start();
    let field = |name: &str| {
        let status = fs::read_to_string(format!("/proc/{}/status", broker.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(name)).map(str::to_owned);
        line.expect("a field of /proc/PID/status").split_whitespace().last().unwrap().to_owned()
    };
    assert_eq!(field("Seccomp:"), "2");
    assert_eq!(field("NoNewPrivs:"), "1");
    assert_eq!(u64::from_str_radix(&field("CapEff:"), 16).unwrap(), 0);
    assert_eq!(field("Threads:"), "1");
    // Not traceable: its memory is nobody's to read who is not root.
    let unprivileged = !nix::unistd::geteuid().is_root();
    let readable = fs::read(format!("/proc/{}/environ", broker.child.id())).is_ok();
    assert!(!(unprivileged && readable), "environ of a non-dumpable process was read");
}

fn it_ends_with_its_channel() {
    let mut broker = start();
    broker.socket.shutdown(std::net::Shutdown::Both).unwrap();
    let (status, errors) = broker.end();
    assert_eq!((status.code(), errors.as_str()), (Some(0), ""));
}

fn it_ends_on_a_broken_frame() {
    let good = frames(Generation(1), 0, &codec::encode(&ToBroker::Ping(1)).unwrap());
    let mut unknown = good.clone();
    let body = unknown.len() - 2;
    unknown[body] = 0x77;
    let too_long = [0xff; 64].to_vec();
    for broken in [too_long, unknown] {
        let mut broker = start();
        broker.socket.write_all(&broken).unwrap();
        let (status, errors) = broker.end();
        assert_eq!(status.code(), Some(1), "{errors}");
        assert!(errors.contains("agentd-broker: the other side broke the protocol"), "{errors}");
    }
    // Positive control: the frame unbroken.
    let mut broker = start();
    broker.socket.write_all(&good).unwrap();
    assert_eq!(broker.next().1, FromBroker::Pong(1));
}

fn it_ends_with_its_parent() {
    // The thread that starts it ends; nothing else happens to the channel.
    let mut broker = std::thread::spawn(start).join().unwrap();
    let status = wait(&mut broker.child);
    assert_eq!(status.code(), None, "ended by a signal");
}

fn it_is_not_for_hands() {
    let output = Command::new(std::env::current_exe().unwrap())
        .arg("as-broker")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("is started by agentd, not by hand"), "{errors}");
}
