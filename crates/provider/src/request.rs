//! One request to a server, from its first try to its end; called by [`crate::Provider`].

use crate::api::{OldThinking, encode, is_for_old_thinking};
use crate::emit::Emitter;
use crate::fault::{AnswerReached, AttemptFault};
use crate::http::Endpoint;
use crate::recording::{RecordedRetry, Recorder};
use crate::refused_tool::{refused_tool, shown};
use crate::retry::{RetryDecision, TriesMade, decide};
use crate::stream::StreamDecoder;
use protocol::content::ModelRequest;
use protocol::provider::ProviderTimeouts;
use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

/// Most tools that are left out. Stops a server that refuses one after the other.
const LEFT_OUT: usize = 20;

/// Asks a server until it answers or the policy gives up.
pub(crate) async fn send_request(
    endpoint: &mut Endpoint,
    request: &ModelRequest,
    patience: &ProviderTimeouts,
    recorder: &mut Option<Recorder>,
    emitter: &mut Emitter<'_>,
) {
    let mut request = Cow::Borrowed(request);
    leave_out(&mut request, endpoint.left_out());
    let encoded = |endpoint: &Endpoint, request: &ModelRequest| {
        encode(endpoint.server(), request, endpoint.old_thinking())
    };
    let mut body = match encoded(endpoint, &request) {
        Ok(body) => body,
        Err(error) => return emitter.give_up(&error.into(), patience),
    };
    if let Some(recorder) = recorder {
        recorder.request(&request, endpoint.server().api, emitter.of, &body);
    }
    let (mut made, first) = (TriesMade::default(), Instant::now());
    loop {
        let Err(fault) = attempt(endpoint, (&request.model, body.clone()), recorder, emitter).await
        else {
            return;
        };
        let fault = fault.without(&endpoint.secrets());
        if endpoint.old_thinking() == OldThinking::Sent
            && is_for_old_thinking(endpoint.server().api, &fault.words)
        {
            // No try is lost: it is another request, and there is one such in the life of a provider.
            endpoint.leave_old_thinking_out();
            match encoded(endpoint, &request) {
                Ok(anew) => body = anew,
                Err(error) => return emitter.give_up(&error.into(), patience),
            }
            emitter.notice(
                "what the model thought earlier is left out from now on: what stood before it has \
                 changed, and this model takes its thinking back only behind what it came behind",
            );
            continue;
        }
        if endpoint.left_out().len() < LEFT_OUT
            && let Some(name) = refused_tool(&fault, &request.tools).map(str::to_owned)
        {
            // No try is lost: it is another request.
            emitter.notice(&format!(
                "{} is left out of every request from now on, since the model's server refuses it: {}",
                shown(&name),
                fault.words
            ));
            endpoint.leave_out(name);
            leave_out(&mut request, endpoint.left_out());
            match encoded(endpoint, &request) {
                Ok(anew) => body = anew,
                Err(error) => return emitter.give_up(&error.into(), patience),
            }
            continue;
        }
        made = made.and(&fault);
        match decide(&fault, (made, first.elapsed()), patience, random()) {
            RetryDecision::Again { wait, of } => {
                let retry = RecordedRetry {
                    attempt: emitter.attempt + 1,
                    of,
                    // Rounded down; the wait itself is exact.
                    wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
                    reason: fault.message(),
                };
                if let Some(recorder) = recorder {
                    recorder.retrying(&retry);
                }
                let wait = Duration::from_millis(retry.wait_ms);
                emitter.retrying(retry);
                tokio::time::sleep(wait).await;
            }
            RetryDecision::GiveUp { kind, words } => {
                if let Some(recorder) = recorder {
                    recorder.failed(kind, &words);
                }
                return emitter.failed(kind, words);
            }
        }
    }
}

fn leave_out(request: &mut Cow<'_, ModelRequest>, names: &[String]) {
    if request.tools.iter().any(|tool| names.contains(&tool.name)) {
        request.to_mut().tools.retain(|tool| !names.contains(&tool.name));
    }
}

/// One try: from nothing, since the request holds all that is known.
async fn attempt(
    endpoint: &Endpoint,
    (model, body): (&str, String),
    recorder: &mut Option<Recorder>,
    emitter: &mut Emitter<'_>,
) -> Result<(), AttemptFault> {
    let mut stream = endpoint.post(model, body).await?;
    let request_id = stream.request_id.clone();
    let named = |fault: AttemptFault| AttemptFault {
        request_id: fault.request_id.or_else(|| request_id.clone()),
        answer: AnswerReached::Stream,
        ..fault
    };
    let secrets = endpoint.secrets();
    let mut decoder = StreamDecoder::new(endpoint.server().api);
    while let Some(bytes) = stream.next().await.map_err(named)? {
        if let Some(recorder) = recorder {
            recorder.chunk(&secrets.redact_bytes(&bytes));
        }
        let outcome = decoder.read(&bytes).map_err(named)?;
        if outcome.progress {
            stream.progressed();
        }
        if emitter.steps(outcome.steps).map_err(named)? {
            stream.let_go();
            return Ok(());
        }
    }
    let steps = decoder.finish().map_err(named)?;
    emitter.steps(steps).map_err(named)?;
    Ok(())
}

/// From 0 to 1, different in each process and at each call; jitter needs no more.
fn random() -> f64 {
    let bits = RandomState::new().hash_one(0);
    f64::from(u32::try_from(bits >> 32).unwrap_or_default()) / f64::from(u32::MAX)
}
