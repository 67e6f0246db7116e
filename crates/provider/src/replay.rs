//! One request to a recording; called by [`crate::Provider`].

use crate::emit::Emitter;
use crate::fault::{AttemptFault, FaultCause};
use crate::recording::{RecordedEvent, Recording};
use crate::stream::StreamDecoder;
use protocol::content::ModelRequest;
use protocol::provider::ReplaySpeed;
use tokio::time::{Instant, sleep_until};

/// Plays a recorded answer.
pub(crate) async fn replay(
    (recording, speed): (&Recording, ReplaySpeed),
    request: &ModelRequest,
    emitter: &mut Emitter<'_>,
) -> Result<(), AttemptFault> {
    let departed = |words: String| AttemptFault::new(FaultCause::Departed, words);
    let round = recording.answer_to(request).map_err(departed)?;
    emitter.of = round.tries.unwrap_or(emitter.of);
    let mut decoder = Some(StreamDecoder::new(round.api));
    let begun = Instant::now();
    for timed in &round.events {
        match (speed, begun.checked_add(timed.at)) {
            (ReplaySpeed::Recorded, Some(then)) => sleep_until(then).await,
            // A time that no clock has was never recorded.
            (ReplaySpeed::Recorded, None) | (ReplaySpeed::Full, _) => {}
        }
        match &timed.event {
            RecordedEvent::Bytes(bytes) => {
                let Some(outcome) = decoder.as_mut().map(|decoder| decoder.read(bytes)) else {
                    continue;
                };
                match outcome.and_then(|outcome| emitter.steps(outcome.steps)) {
                    Ok(true) => return Ok(()),
                    Ok(false) => {}
                    // This error ended the attempt in the recording too. The next event shows the
                    // consequence; if there is none, the recording stops here.
                    Err(_) => decoder = None,
                }
            }
            RecordedEvent::Retrying(retry) => {
                emitter.retrying(retry.clone());
                decoder = Some(StreamDecoder::new(round.api));
            }
            RecordedEvent::Failed { kind, message } => {
                emitter.failed(*kind, message.clone());
                return Ok(());
            }
            RecordedEvent::Cancelled => {
                return Err(departed(format!(
                    "request {} was dropped here when it was recorded",
                    request.round
                )));
            }
        }
    }
    let last = decoder.map(|decoder| decoder.finish().and_then(|steps| emitter.steps(steps)));
    match last {
        Some(Ok(true)) => Ok(()),
        Some(Ok(false) | Err(_)) | None => Err(departed(format!(
            "the recording breaks off in the answer to request {}",
            request.round
        ))),
    }
}
