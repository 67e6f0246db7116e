//! The entry point: sets up a provider and handles one request at a time.

use crate::emit::{Emit, Emitter};
use crate::fault::{AttemptFault, FaultCause};
use crate::http::Endpoint;
use crate::key::{ApiKey, KeyError};
use crate::recording::{Recorder, Recording};
use crate::redactor::Redactor;
use crate::replay::replay;
use crate::request::send_request;
use crate::secrets::Secrets;
use protocol::content::ModelRequest;
use protocol::log::{LogLevel, LogLine};
use protocol::provider::{Auth, FromProvider, ProviderTimeouts, ReplaySpeed, SourceSetup};
use std::fs::File;
use std::sync::Arc;

/// The parts of a provider.
#[derive(Debug)]
pub struct ProviderSetup {
    /// Where answers come from.
    pub source: SourceSetup,
    /// Waits and tries.
    pub patience: ProviderTimeouts,
    /// The proxy, if any.
    pub proxy: Option<String>,
    /// The file that holds the key.
    pub key: Option<File>,
    /// The recording to play.
    pub replay: Option<File>,
    /// The file to record into.
    pub record: Option<File>,
}

/// A source of answers.
///
/// An error in the setup is reported at each request. If the worker exited instead, the supervisor
/// would only start it again.
#[derive(Debug)]
pub struct Provider {
    origin: Result<AnswerSource, AttemptFault>,
    patience: ProviderTimeouts,
    recorder: Option<Recorder>,
}

#[derive(Debug)]
enum AnswerSource {
    Server(Box<Endpoint>),
    Recording(Recording, ReplaySpeed),
}

impl Provider {
    /// Reads key, certificates (when TLS is needed at all) and recording, so that nothing needs a
    /// file afterwards but the resolver. Starts no thread and opens no connection.
    #[must_use]
    pub fn new(setup: ProviderSetup) -> Self {
        let (recorder, origin) = match setup.record {
            None => (None, answer_source(&setup)),
            Some(_) if setup.replay.is_some() => {
                (None, Err(AttemptFault::new(FaultCause::Setup, "a replay cannot be recorded")))
            }
            Some(ref file) => match file.try_clone().and_then(Recorder::new) {
                Ok(recorder) => (Some(recorder), answer_source(&setup)),
                Err(error) => {
                    let words = format!("the recording cannot be written: {error}");
                    (None, Err(AttemptFault::new(FaultCause::Setup, words)))
                }
            },
        };
        Self { origin, patience: setup.patience, recorder }
    }

    /// Handles one request: emits the stream, then `Ended` or `Failed`. If the future is dropped,
    /// the connection is closed; call [`Self::cancelled`] to record that.
    pub async fn answer(&mut self, request: &ModelRequest, emit: Emit<'_>) {
        let secrets = match &self.origin {
            Ok(AnswerSource::Server(endpoint)) => endpoint.secrets(),
            Ok(AnswerSource::Recording(..)) | Err(_) => Arc::new(Secrets::none()),
        };
        let mut redacted = Redactor::new(&secrets, emit);
        let mut emit = |word| redacted.emit(word);
        let mut emitter = Emitter {
            round: request.round,
            attempt: 1,
            of: self.patience.tries,
            any: false,
            emit: &mut emit,
        };
        match &mut self.origin {
            Err(fault) => emitter.give_up(fault, &self.patience),
            Ok(AnswerSource::Recording(recording, speed)) => {
                if let Err(fault) = replay((&*recording, *speed), request, &mut emitter).await {
                    emitter.give_up(&fault, &self.patience);
                }
            }
            Ok(AnswerSource::Server(endpoint)) => {
                send_request(endpoint, request, &self.patience, &mut self.recorder, &mut emitter)
                    .await;
            }
        }
        if let Some(error) = self.recorder.as_mut().and_then(Recorder::take_failure) {
            (emitter.emit)(FromProvider::Log(LogLine {
                level: LogLevel::Error,
                text: format!("recording stopped, the file is incomplete: {error}"),
            }));
        }
    }

    /// The request under way was dropped.
    pub fn cancelled(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            recorder.cancelled();
        }
    }
}

fn answer_source(setup: &ProviderSetup) -> Result<AnswerSource, AttemptFault> {
    match &setup.source {
        SourceSetup::Replay(speed) => {
            let departed = |words: String| AttemptFault::new(FaultCause::Departed, words);
            let file = setup
                .replay
                .as_ref()
                .ok_or_else(|| departed("no recording was given to replay".to_owned()))?;
            let recording = Recording::read(file).map_err(|error| departed(error.to_string()))?;
            Ok(AnswerSource::Recording(recording, *speed))
        }
        SourceSetup::Server(server) => {
            let no_key = |words: String| AttemptFault::new(FaultCause::NoKey, words);
            let key = match (server.auth, &setup.key) {
                (Auth::Keyless, _) => None,
                (Auth::ApiKey | Auth::Bearer, None) => {
                    return Err(no_key("no key was given".to_owned()));
                }
                (Auth::ApiKey | Auth::Bearer, Some(file)) => {
                    Some(ApiKey::read(file).map_err(|error| match error {
                        KeyError::Read(ref source) => no_key(format!("{error}: {source}")),
                        KeyError::Empty | KeyError::NotAKey => no_key(error.to_string()),
                    })?)
                }
            };
            let proxy = setup.proxy.as_deref();
            let endpoint = Endpoint::new(server, key.as_ref(), proxy, &setup.patience)?;
            Ok(AnswerSource::Server(Box::new(endpoint)))
        }
    }
}
