//! The worker as a real process in its real cage, with the test as its supervisor.
#![allow(clippy::unwrap_used)]

#[path = "../../../tests/support/anthropic.rs"]
mod anthropic;
mod tls;

use anthropic::{Answer, Server, text};
use ipc::{HELLO_BYTES, Hello, MessageJoiner, codec, descriptor_frame, fd, frames};
use protocol::Link;
use protocol::content::{ContentBlock, Message, MessageRole, ModelRequest, StopReason};
use protocol::ids::Generation;
use protocol::provider::{
    AnswerDelta, Api, Auth, FromProvider, PassedFd, ProviderFailure, ProviderLink,
    ProviderTimeouts, ReplaySpeed, SourceSetup, ToProvider,
};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

const KEY: &str = "sk-ant-test-of-the-worker";

const TESTS: &[(&str, fn())] = &[
    ("answers_pings_and_cancels_in_its_cage", answers_pings_and_cancels_in_its_cage),
    ("a_name_is_looked_up_in_the_cage", a_name_is_looked_up_in_the_cage),
    (
        "certificates_are_checked_and_ssl_cert_file_is_honoured",
        certificates_are_checked_and_ssl_cert_file_is_honoured,
    ),
    ("papers_are_taken_in_their_order", papers_are_taken_in_their_order),
    ("without_a_key_it_says_so_and_lives", without_a_key_it_says_so_and_lives),
    ("a_word_out_of_turn_ends_it", a_word_out_of_turn_ends_it),
    ("the_end_of_the_channel_ends_it_at_once", the_end_of_the_channel_ends_it_at_once),
    ("started_by_hand_it_says_whose_it_is", started_by_hand_it_says_whose_it_is),
];

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("as-worker") {
        return provider_worker::main();
    }
    let trials = TESTS.iter().map(|(name, test)| {
        libtest_mimic::Trial::test(*name, || {
            test();
            Ok(())
        })
    });
    let mut arguments = libtest_mimic::Arguments::from_args();
    arguments.test_threads.get_or_insert(1);
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// The worker's process and the supervisor's end of its channel.
struct Worker {
    child: Child,
    socket: UnixStream,
    joiner: MessageJoiner,
}

impl Worker {
    fn start() -> Self {
        Self::start_with(None)
    }

    /// With `SSL_CERT_FILE` in its environment.
    fn start_with(authorities: Option<&Path>) -> Self {
        let (socket, theirs) = UnixStream::pair().unwrap();
        let child = Command::new(std::env::current_exe().unwrap())
            .arg("as-worker")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stderr(Stdio::piped())
            .env_remove("SSL_CERT_DIR")
            .envs(authorities.map(|path| ("SSL_CERT_FILE", path)))
            .spawn()
            .unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut hello = [0; HELLO_BYTES];
        (&socket).read_exact(&mut hello).unwrap();
        Hello::from_bytes(&hello).unwrap().check().unwrap();
        Self { child, socket, joiner: MessageJoiner::new(ProviderLink::MESSAGE_CAP) }
    }

    fn configured(source: SourceSetup, papers: &[(PassedFd, &File)]) -> Self {
        Self::start().configure(source, papers)
    }

    fn configure(self, source: SourceSetup, papers: &[(PassedFd, &File)]) -> Self {
        let mut worker = self;
        worker.send(&ToProvider::Configure {
            source,
            patience: ProviderTimeouts {
                tries: 2,
                overload_tries: 2,
                max_wait_ms: 10,
                byte_timeout_ms: 5000,
                progress_timeout_ms: 5000,
                connect_timeout_ms: 1000,
            },
            proxy: None,
            papers: papers.iter().map(|(paper, _)| paper.clone()).collect(),
        });
        for (_, file) in papers {
            let frame = descriptor_frame(Generation(7));
            let sent = fd::send(worker.socket.as_fd(), &frame, file.as_fd()).unwrap();
            worker.socket.write_all(&frame[sent..]).unwrap();
        }
        assert_eq!(worker.next(), FromProvider::Ready);
        worker
    }

    fn send(&mut self, word: &ToProvider) {
        let bytes = frames(Generation(7), 0, &codec::encode(word).unwrap());
        self.socket.write_all(&bytes).unwrap();
    }

    /// The next word of the protocol; log lines come between the others as they like.
    fn next(&mut self) -> FromProvider {
        let mut buffer = [0; 4096];
        loop {
            if let Some(message) = self.joiner.next_message().unwrap() {
                assert_eq!(message.generation, Generation(7));
                let word = codec::decode(&message.body.unwrap()).unwrap();
                if matches!(word, FromProvider::Log(_)) {
                    continue;
                }
                return word;
            }
            match self.socket.read(&mut buffer).unwrap() {
                0 => panic!("the worker closed its channel: {}", self.end().1),
                length => self.joiner.push(&buffer[..length]),
            }
        }
    }

    /// All words up to the one that ends the answer.
    fn answer(&mut self, round: u32) -> Vec<FromProvider> {
        self.send(&ToProvider::Ask(request(round)));
        let mut words = Vec::new();
        loop {
            words.push(self.next());
            if let Some(FromProvider::Ended { .. } | FromProvider::Failed { .. }) = words.last() {
                return words;
            }
        }
    }

    /// Its exit code and what it wrote to standard error.
    fn end(&mut self) -> (Option<i32>, String) {
        let deadline = Instant::now() + Duration::from_secs(5);
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None if Instant::now() > deadline => panic!("the worker does not end"),
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        let mut words = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut words).unwrap();
        (status.code(), words)
    }

    fn status(&self, field: &str) -> String {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(field)).unwrap();
        line.split_whitespace().nth(1).unwrap().to_owned()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Ours, by its handle; ended already where the test was about that.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn server_at(base_url: String) -> SourceSetup {
    SourceSetup::Server(protocol::provider::ModelServer {
        api: Api::Anthropic,
        base_url,
        auth: Auth::ApiKey,
        headers: Vec::new(),
        effort: None,
    })
}

fn file(text: &str) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn request(round: u32) -> ModelRequest {
    ModelRequest {
        round,
        model: "test-model".into(),
        system: String::new(),
        tools: Vec::new(),
        messages: vec![Message {
            role: MessageRole::User,
            blocks: vec![ContentBlock::Text { text: "hi".into() }],
        }],
        max_tokens: 100,
        updated: None,
        calls: protocol::content::ToolChoice::Yes,
        images: Vec::new(),
        answer_schema: None,
    }
}

fn says(words: &[FromProvider]) -> String {
    assert!(
        matches!(words.last(), Some(FromProvider::Ended { stop: StopReason::EndTurn, .. })),
        "{words:?}"
    );
    let text = |word: &FromProvider| {
        let FromProvider::Delta { delta: AnswerDelta::Text(text), .. } = word else { return None };
        Some(text.clone())
    };
    words.iter().filter_map(text).collect()
}

fn answers_pings_and_cancels_in_its_cage() {
    let slow = Answer::text("never whole").stalled_after(600, Duration::from_secs(4));
    let server =
        Server::scripted([Answer::says([text("hel"), text("lo")]), slow, Answer::text("again")])
            .with_key(KEY);
    let key = file(KEY);
    let mut worker = Worker::configured(server_at(server.url()), &[(PassedFd::Key, &key)]);
    assert_eq!(
        ["Seccomp:", "NoNewPrivs:", "CapEff:"].map(|field| worker.status(field)),
        ["2", "1", "0000000000000000"]
    );
    worker.send(&ToProvider::Ping(1));
    assert_eq!(worker.next(), FromProvider::Pong(1));
    assert_eq!(says(&worker.answer(1)), "hello");

    worker.send(&ToProvider::Ask(request(2)));
    while server.requests().len() < 2 {
        std::thread::sleep(Duration::from_millis(1));
    }
    worker.send(&ToProvider::Ping(2));
    let behind_the_pieces = |worker: &mut Worker| {
        let mut word = worker.next();
        while let FromProvider::Delta { .. } = word {
            word = worker.next();
        }
        word
    };
    let pong = behind_the_pieces(&mut worker);
    assert_eq!(pong, FromProvider::Pong(2), "a ping is answered in mid-stream");
    worker.send(&ToProvider::Cancel);
    assert_eq!(behind_the_pieces(&mut worker), FromProvider::Cancelled { round: 2 });
    // A cancel that comes too late is nothing.
    worker.send(&ToProvider::Cancel);
    assert_eq!(says(&worker.answer(3)), "again");
    assert_eq!(server.requests().len(), 3);
}

fn a_name_is_looked_up_in_the_cage() {
    let server = Server::scripted([Answer::text("found")]);
    let url = server.url().replace("127.0.0.1", "localhost");
    let mut worker = Worker::configured(server_at(url), &[(PassedFd::Key, &file(KEY))]);
    assert_eq!(says(&worker.answer(1)), "found");
}

fn certificates_are_checked_and_ssl_cert_file_is_honoured() {
    let authority = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(authority.path(), tls::AUTHORITY).unwrap();
    let empty = tempfile::NamedTempFile::new().unwrap();
    let url = format!("https://localhost:{}", tls::answer_once("trusted"));
    let ask = |authorities| {
        let worker = Worker::start_with(Some(authorities));
        let source = server_at(url.clone());
        worker.configure(source, &[(PassedFd::Key, &file(KEY))]).answer(1)
    };
    assert_eq!(says(&ask(authority.path())), "trusted");
    // The one authority of this file did not sign the server's certificate.
    let stranger = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(stranger.path(), tls::STRANGER).unwrap();
    let failed = |authorities| match ask(authorities).pop() {
        Some(FromProvider::Failed { message, .. }) => message,
        other => panic!("{other:?}"),
    };
    let words = failed(stranger.path());
    assert!(words.contains("invalid peer certificate: UnknownIssuer"), "{words}");
    let words = failed(empty.path());
    assert!(words.contains("No CA certificates were loaded"), "{words}");
    assert!(words.contains("SSL_CERT_FILE"), "{words}");
}

fn papers_are_taken_in_their_order() {
    let server = Server::scripted([Answer::text("once")]).with_key(KEY);
    let (key, mut recording) = (file(KEY), file(""));
    let papers = [(PassedFd::Record, &recording), (PassedFd::Key, &key)];
    let mut worker = Worker::configured(server_at(server.url()), &papers);
    let then = worker.answer(1);
    assert_eq!(says(&then), "once");
    drop(worker);
    let mut worker = Worker::configured(
        SourceSetup::Replay(ReplaySpeed::Full),
        &[(PassedFd::Replay, &recording)],
    );
    assert_eq!(worker.answer(1), then);
    let mut text = String::new();
    recording.rewind().unwrap();
    recording.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("{\"agentd_recording\":1}\n") && !text.contains(KEY), "{text}");
}

fn without_a_key_it_says_so_and_lives() {
    let mut worker = Worker::configured(server_at("http://127.0.0.1:1".into()), &[]);
    for round in 1..3 {
        let words = worker.answer(round);
        let [FromProvider::Failed { kind: ProviderFailure::NoKey, message, .. }] = words.as_slice()
        else {
            panic!("{words:?}")
        };
        assert!(message.contains("Set the variable"), "{message}");
    }
}

fn a_word_out_of_turn_ends_it() {
    let mut worker = Worker::start();
    worker.send(&ToProvider::Ask(request(1)));
    let (code, words) = worker.end();
    assert_eq!(code, Some(1));
    assert!(words.contains("a message came before Configure"), "{words}");

    let slow = Answer::text("slow").stalled_after(0, Duration::from_secs(4));
    let server = Server::scripted([slow]);
    let mut worker = Worker::configured(server_at(server.url()), &[(PassedFd::Key, &file(KEY))]);
    worker.send(&ToProvider::Ask(request(1)));
    worker.send(&ToProvider::Ask(request(2)));
    let (code, words) = worker.end();
    assert_eq!(code, Some(1));
    assert!(words.contains("a second Ask came"), "{words}");
}

fn the_end_of_the_channel_ends_it_at_once() {
    let slow = Answer::text("slow").stalled_after(0, Duration::from_secs(4));
    let server = Server::scripted([slow]);
    let mut worker = Worker::configured(server_at(server.url()), &[(PassedFd::Key, &file(KEY))]);
    worker.send(&ToProvider::Ask(request(1)));
    while server.requests().is_empty() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let begun = Instant::now();
    worker.socket.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(worker.end(), (Some(0), String::new()));
    assert!(begun.elapsed() < Duration::from_secs(1));
}

fn started_by_hand_it_says_whose_it_is() {
    let output = Command::new(std::env::current_exe().unwrap())
        .arg("as-worker")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(words.contains("is started by agentd, not by hand"), "{words}");
}
