//! One request from its first try to its end: the thin loop between decoders, policy and network.

use crate::anthropic::{Step, encode};
use crate::fault::{Cause, Fault};
use crate::http::Endpoint;
use crate::intake::Intake;
use crate::key::{Key, KeyError};
use crate::recording::{Beat, Recorder, Recording, Retry};
use crate::retry::{Decision, decide};
use protocol::content::ModelRequest;
use protocol::provider::{FromProvider, Patience, Source};
use protocol::upkeep::{LogLevel, LogLine};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// What a provider is made of.
#[derive(Debug)]
pub struct Setup {
    /// Where answers come from.
    pub source: Source,
    /// Waits and tries.
    pub patience: Patience,
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
/// Whatever is wrong with its setup is told at each request, in words: a worker that died of a bad
/// configuration would only be started again.
#[derive(Debug)]
pub struct Provider {
    origin: Result<Origin, Fault>,
    patience: Patience,
    recorder: Option<Recorder>,
}

#[derive(Debug)]
enum Origin {
    Server(Box<Endpoint>),
    Recording(Recording),
}

/// Where the words about an answer go.
type Say<'a> = &'a mut dyn FnMut(FromProvider);

impl Provider {
    /// Reads key, certificates (when TLS is needed at all) and recording, so that nothing needs a
    /// file afterwards but the resolver. Starts no thread and opens no connection.
    #[must_use]
    pub fn new(setup: Setup) -> Self {
        let (recorder, origin) = match setup.record {
            None => (None, origin(&setup)),
            Some(_) if setup.replay.is_some() => {
                (None, Err(Fault::new(Cause::Setup, "a replay cannot be recorded")))
            }
            Some(ref file) => match file.try_clone().and_then(Recorder::new) {
                Ok(recorder) => (Some(recorder), origin(&setup)),
                Err(error) => {
                    let words = format!("the recording cannot be written: {error}");
                    (None, Err(Fault::new(Cause::Setup, words)))
                }
            },
        };
        Self { origin, patience: setup.patience, recorder }
    }

    /// Answers one request: says what streams, and at last `Ended` or `Failed`. Dropped half way,
    /// it drops the connection; [`Self::cancelled`] then notes it.
    pub async fn answer(&mut self, request: &ModelRequest, say: Say<'_>) {
        let mut telling =
            Telling { round: request.round, attempt: 1, of: self.patience.tries, any: false, say };
        match &self.origin {
            Err(fault) => give_up(fault, &self.patience, &mut telling),
            Ok(Origin::Recording(recording)) => {
                if let Err(fault) = play(recording, request, &mut telling) {
                    give_up(&fault, &self.patience, &mut telling);
                }
            }
            Ok(Origin::Server(endpoint)) => {
                ask(endpoint, request, &self.patience, &mut self.recorder, &mut telling).await;
            }
        }
        if let Some(error) = self.recorder.as_mut().and_then(Recorder::take_failure) {
            (telling.say)(FromProvider::Log(LogLine {
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

fn origin(setup: &Setup) -> Result<Origin, Fault> {
    match &setup.source {
        Source::Replay => {
            let departed = |words: String| Fault::new(Cause::Departed, words);
            let file = setup
                .replay
                .as_ref()
                .ok_or_else(|| departed("no recording was given to replay".to_owned()))?;
            let recording = Recording::read(file).map_err(|error| departed(error.to_string()))?;
            Ok(Origin::Recording(recording))
        }
        Source::Anthropic { base_url, auth } => {
            let no_key = |words: String| Fault::new(Cause::NoKey, words);
            let file = setup.key.as_ref().ok_or_else(|| no_key("no key was given".to_owned()))?;
            let key = Key::read(file).map_err(|error| match error {
                KeyError::Read(ref source) => no_key(format!("{error}: {source}")),
                KeyError::Empty | KeyError::NotAKey => no_key(error.to_string()),
            })?;
            let proxy = setup.proxy.as_deref();
            let endpoint = Endpoint::new(base_url, (*auth, key), proxy, &setup.patience)?;
            Ok(Origin::Server(Box::new(endpoint)))
        }
    }
}

/// Asks a server until it answers or the policy gives up.
async fn ask(
    endpoint: &Endpoint,
    request: &ModelRequest,
    patience: &Patience,
    recorder: &mut Option<Recorder>,
    telling: &mut Telling<'_>,
) {
    let body = match encode(request) {
        Ok(body) => body,
        Err(error) => return give_up(&error.into(), patience, telling),
    };
    if let Some(recorder) = recorder {
        recorder.request(request, telling.of, &body);
    }
    loop {
        let Err(fault) = attempt(endpoint, body.clone(), recorder, telling).await else {
            return;
        };
        match decide(&fault, telling.attempt, patience, random()) {
            Decision::Again { wait } => {
                let retry = Retry {
                    attempt: telling.attempt + 1,
                    of: telling.of,
                    // Rounded down, and then waited as told.
                    wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
                    reason: fault.told(),
                };
                if let Some(recorder) = recorder {
                    recorder.retrying(&retry);
                }
                let wait = Duration::from_millis(retry.wait_ms);
                telling.retrying(retry);
                tokio::time::sleep(wait).await;
            }
            Decision::GiveUp { kind, words } => {
                if let Some(recorder) = recorder {
                    recorder.failed(kind, &words);
                }
                return telling.failed(kind, words);
            }
        }
    }
}

/// One try: from nothing, since the request holds all that is known.
async fn attempt(
    endpoint: &Endpoint,
    body: String,
    recorder: &mut Option<Recorder>,
    telling: &mut Telling<'_>,
) -> Result<(), Fault> {
    let mut stream = endpoint.post(body).await?;
    let request_id = stream.request_id.clone();
    let named = |fault: Fault| Fault {
        request_id: fault.request_id.or_else(|| request_id.clone()),
        ..fault
    };
    let mut intake = Intake::default();
    while let Some(bytes) = stream.next().await.map_err(named)? {
        if let Some(recorder) = recorder {
            recorder.chunk(bytes.as_ref());
        }
        let taken = intake.read(bytes.as_ref()).map_err(named)?;
        if taken.progress {
            stream.progressed();
        }
        if telling.steps(taken.steps).map_err(named)? {
            stream.let_go();
            return Ok(());
        }
    }
    let steps = intake.finish().map_err(named)?;
    telling.steps(steps).map_err(named)?;
    Ok(())
}

/// Plays a recorded answer as fast as it can.
fn play(
    recording: &Recording,
    request: &ModelRequest,
    telling: &mut Telling<'_>,
) -> Result<(), Fault> {
    let departed = |words: String| Fault::new(Cause::Departed, words);
    let round = recording.answer_to(request).map_err(departed)?;
    telling.of = round.tries.unwrap_or(telling.of);
    let mut intake = Some(Intake::default());
    for beat in &round.beats {
        match beat {
            Beat::Bytes(bytes) => {
                let Some(taken) = intake.as_mut().map(|intake| intake.read(bytes)) else {
                    continue;
                };
                match taken.and_then(|taken| telling.steps(taken.steps)) {
                    Ok(true) => return Ok(()),
                    Ok(false) => {}
                    // It broke the attempt when it was recorded too; what came of that is the
                    // next beat, and without one the recording breaks off.
                    Err(_) => intake = None,
                }
            }
            Beat::Retrying(retry) => {
                telling.retrying(retry.clone());
                intake = Some(Intake::default());
            }
            Beat::Failed { kind, message } => {
                telling.failed(*kind, message.clone());
                return Ok(());
            }
            Beat::Cancelled => {
                return Err(departed(format!(
                    "request {} was dropped here when it was recorded",
                    request.round
                )));
            }
        }
    }
    let last = intake.map(|intake| intake.finish().and_then(|steps| telling.steps(steps)));
    match last {
        Some(Ok(true)) => Ok(()),
        Some(Ok(false) | Err(_)) | None => Err(departed(format!(
            "the recording breaks off in the answer to request {}",
            request.round
        ))),
    }
}

fn give_up(fault: &Fault, patience: &Patience, telling: &mut Telling<'_>) {
    if let Decision::GiveUp { kind, words } = decide(fault, u32::MAX, patience, 0.0) {
        telling.failed(kind, words);
    }
}

/// From 0 to 1, different in each process and at each call; jitter needs no more.
fn random() -> f64 {
    let bits = RandomState::new().hash_one(0);
    f64::from(u32::try_from(bits >> 32).unwrap_or_default()) / f64::from(u32::MAX)
}

/// Puts steps into the words of the wire.
struct Telling<'a> {
    round: u32,
    attempt: u32,
    of: u32,
    /// Whether anything was streamed that a new beginning would have to strike.
    any: bool,
    say: Say<'a>,
}

impl Telling<'_> {
    /// Says whether the answer is whole.
    fn steps(&mut self, steps: Vec<Step>) -> Result<bool, Fault> {
        let round = self.round;
        for step in steps {
            match step {
                Step::Piece { index, delta } => {
                    self.any = true;
                    (self.say)(FromProvider::Delta { round, index, delta });
                }
                Step::StartedOver if self.any => {
                    self.retrying(Retry {
                        attempt: self.attempt,
                        of: self.of,
                        wait_ms: 0,
                        reason: "the server began its answer again".to_owned(),
                    });
                }
                Step::StartedOver => {}
                Step::Ended(ending) => {
                    (self.say)(FromProvider::Ended {
                        round,
                        stop: ending.stop,
                        usage: ending.usage,
                        model: ending.model,
                    });
                    return Ok(true);
                }
                Step::Failed(error) => return Err(error.into()),
            }
        }
        Ok(false)
    }

    fn retrying(&mut self, retry: Retry) {
        self.any = false;
        self.attempt = retry.attempt;
        (self.say)(FromProvider::Retrying {
            round: self.round,
            attempt: retry.attempt,
            of: retry.of,
            wait_ms: retry.wait_ms,
            reason: retry.reason,
        });
    }

    fn failed(&mut self, kind: protocol::provider::Failure, message: String) {
        (self.say)(FromProvider::Failed { round: self.round, kind, message });
    }
}
