//! Writing a recording as the conversation goes.

use super::line::{ChunkLine, FailedLine, RecordingLine, RequestLine, RetryingLine, VERSION};
use super::{RecordedRetry, shape};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use protocol::content::ModelRequest;
use protocol::provider::{Api, ProviderFailure};
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Write};
use std::time::Instant;

/// Writes the recording. Each line is written whole and at once, so a crash leaves a valid
/// recording of everything before it.
#[derive(Debug)]
pub struct Recorder {
    /// None once a line could not be written: a recording with a hole would be a lie.
    file: Option<File>,
    begun: Instant,
    failure: Option<io::Error>,
}

impl Recorder {
    /// Goes on where the file ends: a restarted provider is given the same file again.
    ///
    /// # Errors
    /// When the file cannot be measured or written.
    pub fn new(mut file: File) -> io::Result<Self> {
        let empty = file.metadata()?.len() == 0;
        if !empty {
            io::Seek::seek(&mut file, io::SeekFrom::End(0))?;
        }
        let mut recorder = Self { file: Some(file), begun: Instant::now(), failure: None };
        if empty {
            recorder.line(&RecordingLine::AgentdRecording(VERSION));
        }
        match recorder.failure.take() {
            Some(error) => Err(error),
            None => Ok(recorder),
        }
    }

    /// A request is sent, with so many tries.
    pub fn request(&mut self, request: &ModelRequest, api: Api, tries: u32, body: &str) {
        self.begun = Instant::now();
        self.line(&RecordingLine::Request(Some(RequestLine {
            round: request.round,
            shape: shape(&request.messages),
            api: api.into(),
            tries: Some(tries),
            body: serde_json::from_str(body).ok(),
        })));
    }

    /// One read of the network brought these bytes.
    pub fn chunk(&mut self, bytes: &[u8]) {
        let ms = self.ms();
        let (text, base64) = match std::str::from_utf8(bytes) {
            Ok(text) => (Some(Cow::Borrowed(text)), None),
            Err(_) => (None, Some(STANDARD.encode(bytes))),
        };
        self.line(&RecordingLine::Chunk(ChunkLine { ms, text, base64 }));
    }

    /// The attempt broke and another follows.
    pub(crate) fn retrying(&mut self, retry: &RecordedRetry) {
        self.line(&RecordingLine::Retrying(RetryingLine {
            ms: self.ms(),
            attempt: retry.attempt,
            of: retry.of,
            wait_ms: retry.wait_ms,
            reason: Cow::Borrowed(&retry.reason),
        }));
    }

    /// The request failed for good.
    pub fn failed(&mut self, kind: ProviderFailure, message: &str) {
        let failed = FailedLine { ms: self.ms(), kind: kind.into(), message: message.to_owned() };
        self.line(&RecordingLine::Failed(failed));
    }

    /// The request was dropped.
    pub fn cancelled(&mut self) {
        self.line(&RecordingLine::Cancelled(1));
    }

    /// The failure that ended the recording, once.
    pub fn take_failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }

    /// Since the request.
    fn ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn line(&mut self, line: &RecordingLine<'_>) {
        let Some(file) = &mut self.file else { return };
        let written = serde_json::to_vec(line).map_err(io::Error::from).and_then(|mut bytes| {
            bytes.push(b'\n');
            file.write_all(&bytes)
        });
        if let Err(error) = written {
            self.file = None;
            self.failure = Some(error);
        }
    }
}
