//! The output of a server, a message a line, as the library can read it. The library drops a line that it cannot read,
//! and the call would wait for its whole time: such an answer becomes an error here. Used by the client.

use protocol::surrogates;
use serde_json::{Value, json};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncBufRead, AsyncRead, BufReader, ReadBuf};
use tokio::sync::mpsc::UnboundedSender;

/// Most bytes of one message of a server.
pub(crate) const LONGEST_MESSAGE: usize = 16 << 20;
/// The code of an error that stands for an answer which cannot be read. No server has it by the specification.
pub(crate) const UNREADABLE: i32 = -32_790;

/// The lines of a server that can be read.
pub(crate) struct ReadableLines<R> {
    from: BufReader<R>,
    line: Vec<u8>,
    is_long: bool,
    ready: Vec<u8>,
    sent: usize,
    /// Takes the reasons why an answer cannot be read that does not say whose it is.
    unread: UnboundedSender<String>,
}

impl<R: AsyncRead> ReadableLines<R> {
    pub(crate) fn new(from: R, unread: UnboundedSender<String>) -> Self {
        let (line, ready) = (Vec::new(), Vec::new());
        Self { from: BufReader::new(from), line, is_long: false, ready, sent: 0, unread }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        self.ready = match message(&line, std::mem::take(&mut self.is_long)) {
            OutputLine::Line(line) => line.into_bytes(),
            OutputLine::Unreadable { id: Some(id), why } => {
                tracing::warn!(%why, "an answer of the server cannot be read");
                let error = json!({ "code": UNREADABLE, "message": why });
                json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string().into_bytes()
            }
            OutputLine::Unreadable { id: None, why } => {
                tracing::warn!(%why, "a message of the server cannot be read");
                // The conversation has ended if nobody receives it.
                let _ = self.unread.send(why);
                return;
            }
            OutputLine::Noise => return,
        };
        self.ready.push(b'\n');
        self.sent = 0;
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for ReadableLines<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.sent == this.ready.len() {
            let available = ready!(Pin::new(&mut this.from).poll_fill_buf(context))?;
            if available.is_empty() {
                return Poll::Ready(Ok(()));
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(available.len(), |end| end + 1);
            this.is_long |= this.line.len() + taken > LONGEST_MESSAGE;
            if !this.is_long {
                this.line.extend_from_slice(&available[..taken]);
            }
            Pin::new(&mut this.from).consume(taken);
            if end.is_some() {
                this.end_line();
            }
        }
        let some = (this.ready.len() - this.sent).min(to.remaining());
        to.put_slice(&this.ready[this.sent..this.sent + some]);
        this.sent += some;
        Poll::Ready(Ok(()))
    }
}

/// A line of a server.
#[derive(Debug, PartialEq)]
enum OutputLine {
    Line(String),
    /// An answer that cannot be read, with the request that it is for.
    Unreadable {
        id: Option<Value>,
        why: String,
    },
    /// No message: other things that servers print.
    Noise,
}

fn message(line: &[u8], is_long: bool) -> OutputLine {
    let text = String::from_utf8_lossy(line);
    let text = surrogates::replaced(text.trim().trim_start_matches('\u{feff}'));
    let why = match serde_json::from_str::<Value>(&text) {
        _ if is_long => format!("it has more than {} MiB", LONGEST_MESSAGE >> 20),
        Ok(value) => match fault(&value) {
            None => return OutputLine::Line(text.into_owned()),
            Some(why) => why,
        },
        Err(error) => format!("it is no JSON that agentd reads: {error}"),
    };
    let names_protocol = text.contains("\"jsonrpc\"");
    match field(&text, "id").filter(|id| id.is_number() || id.is_string()) {
        // A request of the server, which waits for its own time.
        _ if field(&text, "method").is_some() => OutputLine::Noise,
        Some(id) => OutputLine::Unreadable { id: Some(id), why },
        None if names_protocol || is_long => OutputLine::Unreadable { id: None, why },
        None => OutputLine::Noise,
    }
}

/// The fault of an answer whose JSON can be read.
fn fault(message: &Value) -> Option<String> {
    let message = message.as_object()?;
    if message.contains_key("method") || !message.contains_key("id") {
        return None;
    }
    let error = message.get("error");
    let is_error =
        error.is_some_and(|error| error["code"].is_i64() && error["message"].is_string());
    match (message.contains_key("result"), error) {
        (true, None) => None,
        (false, Some(_)) if is_error => None,
        (_, Some(error)) => Some(format!(
            "its error is not of the protocol's form: {}",
            shortened(&error.to_string())
        )),
        (false, None) => Some("it has neither a result nor an error".to_owned()),
    }
    .or_else(|| {
        let is_version = message.get("jsonrpc").is_some_and(|version| version == "2.0");
        (!is_version).then(|| "it does not name version 2.0 of JSON-RPC".to_owned())
    })
}

fn shortened(text: &str) -> String {
    text.chars().take(300).collect()
}

/// The value of a field of the outermost object, which may be torn behind it.
fn field(text: &str, name: &str) -> Option<Value> {
    let (bytes, quoted) = (text.as_bytes(), format!("\"{name}\""));
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                let end = at + string_length(&bytes[at..])?;
                let behind = text.get(end..)?.trim_start();
                if let (1, true, Some(value)) =
                    (depth, bytes[at..end] == *quoted.as_bytes(), behind.strip_prefix(':'))
                {
                    let mut values = serde_json::Deserializer::from_str(value).into_iter::<Value>();
                    return values.next()?.ok();
                }
                at = end;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        at += 1;
    }
    None
}

/// The bytes of the string that begins here, with its quotes.
fn string_length(bytes: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]
    use super::*;

    fn unreadable(line: &[u8]) -> Option<Value> {
        match message(line, false) {
            OutputLine::Unreadable { id, .. } => id,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_answer_that_cannot_be_read_is_an_error_of_its_request() {
        let deep = |id: &str| {
            let nest = "[".repeat(50_000) + &"]".repeat(50_000);
            format!("{{\"jsonrpc\":\"2.0\",{id}\"result\":{{\"x\":{nest}}}}}")
        };
        assert_eq!(unreadable(deep("\"id\":7,").as_bytes()), Some(json!(7)));
        let behind = deep("").replace("}}", "},\"id\":\"a\\\"b\"}");
        assert_eq!(unreadable(behind.as_bytes()), Some(json!("a\"b")));
        for torn in [
            r#"{"jsonrpc":"2.0","x":{"id":1},"y":"id","id":7,"result":{"a":"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{"a":NaN}}"#,
            r#"{"jsonrpc":"2.0","id":7}"#,
            r#"{"jsonrpc":"2.0","id":7,"error":"no"}"#,
            r#"{"id":7,"result":{}}"#,
        ] {
            assert_eq!(unreadable(torn.as_bytes()), Some(json!(7)), "{torn}");
        }
        assert_eq!(unreadable(br#"{"jsonrpc":"2.0","id":"#), None);
        assert!(matches!(message(b"{\"a\":", true), OutputLine::Unreadable { id: None, .. }));
    }

    #[test]
    fn what_can_be_mended_is_read_and_noise_is_no_answer() {
        let line = |bytes: &[u8]| match message(bytes, false) {
            OutputLine::Line(line) => line,
            other => panic!("{other:?}"),
        };
        let answer = |text: &str| format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"{text}\"}}");
        assert_eq!(line(answer("\\ud83d").as_bytes()), answer("\\ufffd"));
        let mut bytes = answer("@").into_bytes();
        bytes.iter_mut().filter(|byte| **byte == b'@').for_each(|byte| *byte = 0xff);
        assert_eq!(line(&bytes), answer("\u{fffd}"));
        assert_eq!(line(b"{\"level\":\"info\"}"), "{\"level\":\"info\"}");
        for noise in [
            &b"Welcome!"[..],
            b"{'a': 1}",
            b"{",
            b"\xff\xfe",
            br#"{"jsonrpc":"2.0","id":1,"method":"#,
        ] {
            let is_request = noise.ends_with(b"\"method\":");
            let message = message(noise, false);
            assert!(message == OutputLine::Noise || is_request, "{message:?}");
        }
        let request = br#"{"jsonrpc":"2.0","id":1,"method":"x","params":NaN}"#;
        assert_eq!(message(request, false), OutputLine::Noise);
    }
}
