//! A local server of Anthropic Messages, or of another vendor's interface (see `vendor.rs`). It
//! sends the answers of the test, refuses requests that the real server refuses (see
//! `anthropic_rules.rs`), and records all requests.
//!
//! Included with `#[path]` by the tests of `provider` and by the end-to-end tests. Std,
//! `protocol` and `serde_json` only; one thread a connection; keeps connections alive; counts everything.
//!
//! ```ignore
//! let server = Server::scripted([
//!     Answer::says([thinking("hm", "sig=="), call("toolu_1", "read", r#"{"path":"a"}"#)]),
//!     Answer::status(529, "overloaded_error", "Overloaded"),
//!     Answer::text("done"),
//! ]);
//! run_agentd(&server.url());
//! assert_eq!(server.requests().len(), 3);
//! ```
#![allow(dead_code, clippy::unwrap_used)]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

#[path = "chat.rs"]
mod chat;
#[path = "gemini.rs"]
mod gemini;
#[path = "responses.rs"]
mod responses;
#[path = "anthropic_rules.rs"]
mod rules;
#[path = "vendor.rs"]
pub mod vendor;

pub use rules::Issued;
use vendor::Vendor;

/// A piece of an answer.
#[derive(Debug, Clone)]
pub enum Say {
    Text(String),
    /// With the signature that must come back.
    Thinking(String, String),
    /// Id, tool and arguments as the model says them, JSON or not.
    Call(String, String, String),
    /// A call that is cut: it begins, and its `content_block_stop` never comes.
    HalfACall(String, String, String),
}

pub fn text(text: &str) -> Say {
    Say::Text(text.into())
}

pub fn thinking(text: &str, signature: &str) -> Say {
    Say::Thinking(text.into(), signature.into())
}

pub fn call(id: &str, tool: &str, input: &str) -> Say {
    Say::Call(id.into(), tool.into(), input.into())
}

pub fn half_a_call(id: &str, tool: &str, input: &str) -> Say {
    Say::HalfACall(id.into(), tool.into(), input.into())
}

/// Reaction to one request.
#[derive(Debug, Clone)]
pub struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    /// Bytes in one chunk.
    piece: usize,
    /// Bytes in one write, if not each chunk at once.
    write: Option<usize>,
    /// Stop for so long after so many bytes, then go on.
    stall: Option<(usize, Duration)>,
    /// A pause after each write.
    pause: Duration,
    /// Bytes after which the connection is closed without an error.
    cut: Option<usize>,
    /// The body's end is not sent although nothing more comes.
    left_open: bool,
    /// Blocks that the client must send back once the whole answer was sent.
    issued: Vec<Issued>,
}

impl Answer {
    /// A whole answer in 200 and server-sent events; the reason to stop follows from the pieces.
    pub fn says(said: impl IntoIterator<Item = Say>) -> Self {
        let said: Vec<Say> = said.into_iter().collect();
        let stop = match said.last() {
            Some(Say::HalfACall(..)) => "max_tokens",
            _ if said.iter().any(|s| matches!(s, Say::Call(..))) => "tool_use",
            _ => "end_turn",
        };
        Self::stopped(said, stop)
    }

    pub fn text(words: &str) -> Self {
        Self::says([text(words)])
    }

    /// A whole answer with this `stop_reason`.
    pub fn stopped(said: impl IntoIterator<Item = Say>, stop: &str) -> Self {
        let said: Vec<Say> = said.into_iter().collect();
        let mut events = events(&said);
        events.push(json!({
            "type": "message_delta",
            "delta": {"stop_reason": stop, "stop_sequence": null},
            "usage": {"output_tokens": 25},
        }));
        events.push(json!({"type": "message_stop"}));
        let mut issued = issued(&said);
        if stop == "pause_turn" {
            issued.push(Issued { thought: Vec::new(), calls: Vec::new(), paused: true });
        }
        Self { issued, ..Self::stream(&events) }
    }

    /// An answer that goes so far and then turns into an error event.
    pub fn fails_after(said: impl IntoIterator<Item = Say>, kind: &str, message: &str) -> Self {
        let mut events = events(&said.into_iter().collect::<Vec<_>>());
        events.push(json!({"type": "error", "error": {"type": kind, "message": message}}));
        Self::stream(&events)
    }

    /// An error status in the vendor's shape.
    pub fn status(status: u16, kind: &str, message: &str) -> Self {
        let body = json!({
            "type": "error",
            "error": {"type": kind, "message": message},
            "request_id": "req_test",
        });
        Self::raw(status, "application/json", body.to_string().as_bytes())
    }

    /// Any status and body.
    pub fn raw(status: u16, content_type: &str, body: &[u8]) -> Self {
        Self {
            status,
            headers: vec![("content-type".into(), content_type.into())],
            body: body.to_vec(),
            piece: usize::MAX,
            write: None,
            stall: None,
            pause: Duration::ZERO,
            cut: None,
            left_open: false,
            issued: Vec::new(),
        }
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sent in chunks of so many bytes, each with a write of its own.
    pub fn in_pieces_of(mut self, bytes: usize) -> Self {
        self.piece = bytes.max(1);
        self
    }

    /// Sent in writes of so many bytes, a part of a chunk or several chunks.
    pub fn in_writes_of(mut self, bytes: usize) -> Self {
        self.write = Some(bytes.max(1));
        self
    }

    /// With a pause after each write.
    pub fn paced(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// The connection is closed after so many bytes of the body.
    pub fn cut_after(mut self, bytes: usize) -> Self {
        self.cut = Some(bytes.min(self.body.len()));
        self.issued.clear();
        self
    }

    /// The body ends properly, but after so many bytes.
    pub fn ended_after(mut self, bytes: usize) -> Self {
        self.body.truncate(bytes);
        self.issued.clear();
        self
    }

    /// Nothing comes for `time` after so many bytes of the body.
    pub fn stalled_after(mut self, bytes: usize, time: Duration) -> Self {
        self.stall = Some((bytes, time));
        self
    }

    /// The body is left open after its last event.
    pub fn left_open(mut self) -> Self {
        self.left_open = true;
        self
    }

    /// Bytes put before the body's own.
    pub fn preceded_by(mut self, bytes: &[u8]) -> Self {
        self.body.splice(0..0, bytes.iter().copied());
        self
    }

    /// With a body made of its own.
    pub fn edited(mut self, edit: impl FnOnce(String) -> String) -> Self {
        self.body = edit(String::from_utf8(self.body).unwrap()).into_bytes();
        self
    }

    /// The body as text.
    pub fn body(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    /// Length of the body in bytes.
    pub fn len(&self) -> usize {
        self.body.len()
    }

    fn stream(events: &[Value]) -> Self {
        let body: String = events
            .iter()
            .map(|e| format!("event: {}\ndata: {e}\n\n", e["type"].as_str().unwrap_or_default()))
            .collect();
        Self::raw(200, "text/event-stream; charset=utf-8", body.as_bytes())
            .header("request-id", "req_stream")
    }
}

/// One request as it came.
#[derive(Debug, Clone)]
pub struct Seen {
    pub body: Value,
    /// Byte for byte.
    pub raw: String,
    pub headers: Vec<(String, String)>,
    /// The status it was answered with, and the words if it was refused by the rules.
    pub status: u16,
    pub refused: Option<String>,
    pub first_byte: Instant,
    /// When the last byte of the answer was handed to the kernel; none if it never was.
    pub answered: Option<Instant>,
    /// The connection it came on, counted from 1.
    pub connection: usize,
}

type Script = Box<dyn FnMut(usize, &Value) -> Answer + Send>;

struct State {
    vendor: Vendor,
    script: Script,
    /// The key that is asked for; any will do without one.
    key: Option<String>,
    seen: Vec<Seen>,
    issued: Vec<Issued>,
    connections: usize,
}

/// The server. It ends with the test's process.
pub struct Server {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Server {
    /// Answers the n-th accepted request with the n-th answer, and refuses any further.
    pub fn scripted(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self::of(Vendor::Anthropic, answers)
    }

    /// The same, speaking another vendor's interface.
    pub fn of(vendor: Vendor, answers: impl IntoIterator<Item = Answer>) -> Self {
        let answers: Vec<Answer> = answers.into_iter().collect();
        Self::vendor_answering(vendor, move |n, _| {
            answers.get(n - 1).cloned().unwrap_or_else(|| {
                vendor.status(400, &format!("the test's script has no answer to request {n}"))
            })
        })
    }

    /// [`Self::answering`] for a vendor.
    pub fn vendor_answering(
        vendor: Vendor,
        script: impl FnMut(usize, &Value) -> Answer + Send + 'static,
    ) -> Self {
        let server = Self::answering(script);
        server.locked().vendor = vendor;
        server
    }

    /// Answers accepted request number n, counted from 1, with the result of the closure.
    pub fn answering(script: impl FnMut(usize, &Value) -> Answer + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback listener");
        let address = listener.local_addr().expect("its address");
        let state = Arc::new(Mutex::new(State {
            vendor: Vendor::Anthropic,
            script: Box::new(script),
            key: None,
            seen: Vec::new(),
            issued: Vec::new(),
            connections: 0,
        }));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || serve(&socket, &shared));
            }
        });
        Self { address, state }
    }

    /// From now on another key is answered 401.
    pub fn with_key(self, key: &str) -> Self {
        self.locked().key = Some(key.into());
        self
    }

    /// For `ANTHROPIC_BASE_URL` and its like.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Everything it was asked so far, refused requests included.
    pub fn requests(&self) -> Vec<Seen> {
        self.locked().seen.clone()
    }

    /// Connections so far.
    pub fn connections(&self) -> usize {
        self.locked().connections
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, State> {
        locked(&self.state)
    }
}

fn locked(state: &Mutex<State>) -> std::sync::MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One connection until the client leaves, or an answer closes it.
fn serve(socket: &TcpStream, state: &Mutex<State>) -> Option<()> {
    let connection = {
        let mut state = locked(state);
        state.connections += 1;
        state.connections
    };
    socket.set_nodelay(true).ok()?;
    let mut reader = BufReader::new(socket);
    loop {
        reader.fill_buf().ok().filter(|bytes| !bytes.is_empty())?;
        let first_byte = Instant::now();
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
            match line.trim_end() {
                "" => break,
                line => head.push(line.to_owned()),
            }
        }
        let headers: Vec<(String, String)> = head[1..]
            .iter()
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
        let mut raw = vec![0; length];
        reader.read_exact(&mut raw).ok()?;
        let raw = String::from_utf8_lossy(&raw).into_owned();
        let body: Value = serde_json::from_str(&raw).unwrap_or(Value::Null);

        let (answer, at) = {
            let mut state = locked(state);
            let vendor = state.vendor;
            let key = state.key.as_deref();
            let refusal = vendor.check(&head[0], &headers, key, &body, &state.issued);
            let accepted = state.seen.iter().filter(|seen| seen.refused.is_none()).count();
            let (answer, refused) = match refusal {
                Ok(()) => ((state.script)(accepted + 1, &body), None),
                Err(refusal) => (vendor.refuses(&refusal), Some(refusal.message)),
            };
            let status = answer.status;
            let answered = None;
            let seen =
                Seen { body, raw, headers, status, refused, first_byte, answered, connection };
            state.seen.push(seen);
            // Before it is sent: the client may echo it before this thread runs again.
            state.issued.extend(answer.issued.iter().cloned());
            (answer, state.seen.len() - 1)
        };
        send(socket, &answer)?;
        locked(state).seen[at].answered = Some(Instant::now());
    }
}

/// Sends an answer; nothing if the connection is then of no use.
fn send(mut socket: &TcpStream, answer: &Answer) -> Option<()> {
    let mut head = format!("HTTP/1.1 {} Scripted\r\ntransfer-encoding: chunked\r\n", answer.status);
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    socket.write_all(head.as_bytes()).ok()?;
    let end = answer.cut.unwrap_or(answer.body.len());
    let mut sent = 0;
    let mut unsent = Vec::new();
    let mut stall = answer.stall;
    while sent < end {
        let mut to = sent.saturating_add(answer.piece).min(end);
        if let Some((at, time)) = stall
            && to >= at
        {
            to = at.max(sent);
            if to == sent {
                std::thread::sleep(time);
                stall = None;
                continue;
            }
        }
        unsent.extend_from_slice(format!("{:x}\r\n", to - sent).as_bytes());
        unsent.extend_from_slice(&answer.body[sent..to]);
        unsent.extend_from_slice(b"\r\n");
        sent = to;
        let whole = match answer.write {
            Some(bytes) if sent < end => unsent.len() / bytes * bytes,
            Some(_) | None => unsent.len(),
        };
        for write in unsent[..whole].chunks(answer.write.unwrap_or(usize::MAX)) {
            socket.write_all(write).ok()?;
        }
        unsent.drain(..whole);
        if !answer.pause.is_zero() {
            std::thread::sleep(answer.pause);
        }
    }
    if answer.cut.is_some() {
        socket.shutdown(std::net::Shutdown::Both).ok();
        return None;
    }
    if answer.left_open {
        return Some(());
    }
    socket.write_all(b"0\r\n\r\n").ok()
}

fn events(said: &[Say]) -> Vec<Value> {
    let mut events = vec![json!({
        "type": "message_start",
        "message": {
            "id": "msg_test", "type": "message", "role": "assistant", "model": "test-model",
            "content": [], "stop_reason": null,
            "usage": {"input_tokens": 10, "output_tokens": 1,
                      "cache_creation_input_tokens": 3, "cache_read_input_tokens": 7},
        },
    })];
    for (index, said) in said.iter().enumerate() {
        let (block, deltas) = match said {
            Say::Text(text) => (
                json!({"type": "text", "text": ""}),
                vec![json!({"type": "text_delta", "text": text})],
            ),
            Say::Thinking(text, signature) => (
                json!({"type": "thinking", "thinking": "", "signature": ""}),
                vec![
                    json!({"type": "thinking_delta", "thinking": text}),
                    json!({"type": "signature_delta", "signature": signature}),
                ],
            ),
            Say::Call(id, tool, input) | Say::HalfACall(id, tool, input) => {
                // As the real one: first nothing, then pieces that are cut anywhere.
                let [one, two] = halves(input);
                (
                    json!({"type": "tool_use", "id": id, "name": tool, "input": {}}),
                    ["", one, two]
                        .map(|part| json!({"type": "input_json_delta", "partial_json": part}))
                        .to_vec(),
                )
            }
        };
        events.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
        events.push(json!({"type": "ping"}));
        for delta in deltas {
            events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        if !matches!(said, Say::HalfACall(..)) {
            events.push(json!({"type": "content_block_stop", "index": index}));
        }
    }
    events
}

fn halves(text: &str) -> [&str; 2] {
    let middle = (0..=text.len() / 2).rev().find(|at| text.is_char_boundary(*at));
    let (one, two) = text.split_at(middle.unwrap_or(0));
    [one, two]
}

fn issued(said: &[Say]) -> Vec<Issued> {
    let mut thought = Vec::new();
    let mut calls = Vec::new();
    for said in said {
        match said {
            Say::Thinking(text, signature) => thought.push((text.clone(), signature.clone())),
            Say::Call(id, ..) => calls.push(id.clone()),
            Say::Text(_) | Say::HalfACall(..) => {}
        }
    }
    match thought.is_empty() {
        true => Vec::new(),
        false => vec![Issued { thought, calls, paused: false }],
    }
}
