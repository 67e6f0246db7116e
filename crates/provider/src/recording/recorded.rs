//! Reading a recording and finding the answer to a request in it; pure but for the reading.

use super::line::{ChunkLine, FailedLine, RecordingLine, RequestLine, RetryingLine, VERSION};
use super::{RecordedRetry, scripted, shape};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use protocol::content::ModelRequest;
use protocol::provider::{Api, ProviderFailure};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// Largest recording in bytes. Stops a wrong file from filling memory.
const RECORDING_CAP: usize = 512 << 20;

/// A recording, read whole.
#[derive(Debug)]
pub struct Recording {
    rounds: BTreeMap<u32, RecordedRound>,
}

/// The recorded answer to one request.
#[derive(Debug)]
pub(crate) struct RecordedRound {
    /// The language of its bytes.
    pub(crate) api: Api,
    /// None fits any request.
    shape: Option<Vec<String>>,
    /// Tries there were.
    pub(crate) tries: Option<u32>,
    /// The recorded events in order.
    pub(crate) events: Vec<TimedEvent>,
}

/// One thing that happened while an answer came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TimedEvent {
    /// Since the request.
    pub(crate) at: Duration,
    pub(crate) event: RecordedEvent,
}

/// A recorded event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RecordedEvent {
    /// One read of the network.
    Bytes(Vec<u8>),
    /// The attempt broke.
    Retrying(RecordedRetry),
    /// The request failed.
    Failed { kind: ProviderFailure, message: String },
    /// The request was dropped.
    Cancelled,
}

/// Why a file is no recording.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// It cannot be read.
    #[error("the recording cannot be read: {0}")]
    Read(#[source] io::Error),
    /// It is too large.
    #[error("the recording is larger than {RECORDING_CAP} bytes")]
    TooLarge,
    /// The first line is missing or of another version.
    #[error("the recording does not begin with {{\"agentd_recording\":{VERSION}}}")]
    NotARecording,
    /// A line that is not understood.
    #[error("line {line} of the recording is not understood: {source}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// Why.
        source: serde_json::Error,
    },
    /// A line where it makes no sense.
    #[error("line {line} of the recording: {why}")]
    Order {
        /// Counted from 1.
        line: usize,
        /// Why.
        why: &'static str,
    },
}

impl Recording {
    /// Reads a recording from the start of a file, whatever its offset: a restarted provider gets
    /// the same open file again.
    ///
    /// # Errors
    /// [`RecordingError`].
    pub fn read(file: &File) -> Result<Self, RecordingError> {
        let mut bytes = Vec::new();
        let mut piece = vec![0; 1 << 20];
        loop {
            match file.read_at(&mut piece, bytes.len() as u64) {
                Ok(0) => break,
                Ok(length) => bytes.extend_from_slice(&piece[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(RecordingError::Read(error)),
            }
            if bytes.len() > RECORDING_CAP {
                return Err(RecordingError::TooLarge);
            }
        }
        let text = String::from_utf8(bytes)
            .map_err(|error| RecordingError::Read(io::Error::other(error)))?;
        Self::parse(&text)
    }

    /// Understands the text of a recording.
    ///
    /// # Errors
    /// [`RecordingError`].
    pub fn parse(text: &str) -> Result<Self, RecordingError> {
        let mut lines = text
            .lines()
            .enumerate()
            .map(|(at, text)| (at + 1, text.trim()))
            .filter(|(_, text)| !text.is_empty() && !text.starts_with("//"));
        let first = lines.next().and_then(|(_, text)| serde_json::from_str(text).ok());
        let Some(RecordingLine::AgentdRecording(VERSION)) = first else {
            return Err(RecordingError::NotARecording);
        };
        let mut rounds = BTreeMap::new();
        let mut open: Option<(u32, RecordedRound)> = None;
        for (number, text) in lines {
            let line = serde_json::from_str(text)
                .map_err(|source| RecordingError::Line { line: number, source })?;
            let wrong = |why| RecordingError::Order { line: number, why };
            if let RecordingLine::Request(request) = line {
                let last = open.as_ref().map_or(0, |(round, _)| *round);
                rounds.extend(open.replace(opened(request, last)));
                continue;
            }
            let Some((round, answer)) = &mut open else {
                return Err(wrong("an answer before the first request"));
            };
            if matches!(line, RecordingLine::Say(_)) && answer.api != Api::Anthropic {
                return Err(wrong("`say` in a request with an `api` of its own"));
            }
            let timed = timed(line, *round).map_err(wrong)?;
            answer.events.push(timed);
        }
        rounds.extend(open);
        Ok(Self { rounds })
    }

    /// The answer to `request`, or where the two depart, in words.
    pub(crate) fn answer_to(&self, request: &ModelRequest) -> Result<&RecordedRound, String> {
        let round = self.rounds.get(&request.round).ok_or_else(|| {
            let all: Vec<String> = self.rounds.keys().map(u32::to_string).collect();
            format!(
                "the recording has no answer to request {}; it has answers to {}",
                request.round,
                match all.is_empty() {
                    true => "none".to_owned(),
                    false => all.join(", "),
                }
            )
        })?;
        let now = shape(&request.messages);
        match round.shape.as_ref().and_then(|then| super::shape::departure(then, &now)) {
            None => Ok(round),
            Some(words) => Err(format!(
                "the conversation departs from the recording at request {}: {words}",
                request.round
            )),
        }
    }
}

fn opened(request: Option<RequestLine<'_>>, last: u32) -> (u32, RecordedRound) {
    let Some(request) = request else {
        let any =
            RecordedRound { api: Api::Anthropic, shape: None, tries: None, events: Vec::new() };
        return (last.saturating_add(1), any);
    };
    let round = RecordedRound {
        api: request.api.into(),
        shape: Some(request.shape),
        tries: request.tries,
        events: Vec::new(),
    };
    (request.round, round)
}

fn timed(line: RecordingLine<'_>, round: u32) -> Result<TimedEvent, &'static str> {
    let (ms, event) = match line {
        RecordingLine::Chunk(chunk) => (chunk.ms, RecordedEvent::Bytes(bytes(chunk)?)),
        RecordingLine::Say(said) => {
            (0, RecordedEvent::Bytes(scripted::stream(&said, round).into_bytes()))
        }
        RecordingLine::Retrying(RetryingLine { ms, attempt, of, wait_ms, reason }) => {
            let reason = reason.into_owned();
            (ms, RecordedEvent::Retrying(RecordedRetry { attempt, of, wait_ms, reason }))
        }
        RecordingLine::Failed(FailedLine { ms, kind, message }) => {
            (ms, RecordedEvent::Failed { kind: kind.into(), message })
        }
        RecordingLine::Cancelled(_) => (0, RecordedEvent::Cancelled),
        RecordingLine::AgentdRecording(_) => return Err("a second first line"),
        // Taken before.
        RecordingLine::Request(_) => return Err("a request in a request"),
    };
    Ok(TimedEvent { at: Duration::from_millis(ms), event })
}

fn bytes(chunk: ChunkLine<'_>) -> Result<Vec<u8>, &'static str> {
    match (chunk.text, chunk.base64) {
        (Some(text), None) => Ok(text.into_owned().into_bytes()),
        (None, Some(base64)) => STANDARD.decode(base64).map_err(|_| "bad base64"),
        (Some(_), Some(_)) | (None, None) => Err("a chunk has either text or base64"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use protocol::content::{ContentBlock, Message, MessageRole};

    fn request(round: u32, prompt: &str) -> ModelRequest {
        ModelRequest {
            round,
            model: "m".into(),
            system: String::new(),
            tools: Vec::new(),
            messages: vec![Message {
                role: MessageRole::User,
                blocks: vec![ContentBlock::Text { text: prompt.into() }],
            }],
            max_tokens: 1,
            updated: None,
            calls: protocol::content::ToolChoice::Yes,
            images: Vec::new(),
            answer_schema: None,
        }
    }

    const HAND: &str = r#"{"agentd_recording":1}
// By hand.
{"request":null}
{"say":[{"text":"hi"}]}

{"request":{"round":2,"shape":["user: \"go\""]}}
{"chunk":{"ms":3,"text":"da"}}
{"chunk":{"base64":"dGE="}}
{"request":null}
{"failed":{"kind":"overloaded","message":"m"}}
"#;

    #[test]
    fn answers_are_found_by_number_and_compared_by_shape() {
        let recording = Recording::parse(HAND).unwrap();
        assert!(recording.answer_to(&request(1, "anything")).is_ok());
        assert_eq!(
            recording.answer_to(&request(2, "go")).unwrap().events,
            [(3, b"da"), (0, b"ta")].map(|(ms, bytes)| TimedEvent {
                at: Duration::from_millis(ms),
                event: RecordedEvent::Bytes(bytes.to_vec()),
            })
        );
        assert_eq!(
            recording.answer_to(&request(2, "stop")).unwrap_err(),
            "the conversation departs from the recording at request 2: \
             message 1 was <user: \"go\"> when recorded and is <user: \"stop\"> now"
        );
        assert_eq!(
            recording.answer_to(&request(4, "go")).unwrap_err(),
            "the recording has no answer to request 4; it has answers to 1, 2, 3"
        );
    }

    #[test]
    fn what_is_no_recording_is_refused_by_its_line() {
        let head = "{\"agentd_recording\":1}\n";
        let cases = [
            ("", "the recording does not begin with {\"agentd_recording\":1}"),
            (
                "{\"agentd_recording\":2}",
                "the recording does not begin with {\"agentd_recording\":1}",
            ),
            (
                &format!("{head}{{\"say\":[]}}"),
                "line 2 of the recording: an answer before the first request",
            ),
            (
                &format!("{head}{{\"request\":null}}\n{{\"chunk\":{{}}}}"),
                "line 3 of the recording: a chunk has either text or base64",
            ),
            (
                &format!("{head}{{\"request\":null}}\n{{\"chunk\":{{\"base64\":\"?\"}}}}"),
                "line 3 of the recording: bad base64",
            ),
            (
                &format!("{head}{head}"),
                "line 2 of the recording: an answer before the first request",
            ),
        ];
        for (text, words) in cases {
            assert_eq!(Recording::parse(text).unwrap_err().to_string(), words, "{text}");
        }
        let torn = Recording::parse(&format!("{head}{{\"request\":")).unwrap_err();
        assert!(torn.to_string().starts_with("line 2 of the recording is not understood"));
    }
}
