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
    telling: &mut Emitter<'_>,
) -> Result<(), AttemptFault> {
    let departed = |words: String| AttemptFault::new(FaultCause::Departed, words);
    let round = recording.answer_to(request).map_err(departed)?;
    telling.of = round.tries.unwrap_or(telling.of);
    let mut intake = Some(StreamDecoder::new(round.api));
    let begun = Instant::now();
    for beat in &round.beats {
        match (speed, begun.checked_add(beat.at)) {
            (ReplaySpeed::Recorded, Some(then)) => sleep_until(then).await,
            // A time that no clock has was never recorded.
            (ReplaySpeed::Recorded, None) | (ReplaySpeed::Full, _) => {}
        }
        match &beat.happened {
            RecordedEvent::Bytes(bytes) => {
                let Some(taken) = intake.as_mut().map(|intake| intake.read(bytes)) else {
                    continue;
                };
                match taken.and_then(|taken| telling.steps(taken.steps)) {
                    Ok(true) => return Ok(()),
                    Ok(false) => {}
                    // This error ended the attempt in the recording too. The next event shows the
                    // consequence; if there is none, the recording stops here.
                    Err(_) => intake = None,
                }
            }
            RecordedEvent::Retrying(retry) => {
                telling.retrying(retry.clone());
                intake = Some(StreamDecoder::new(round.api));
            }
            RecordedEvent::Failed { kind, message } => {
                telling.failed(*kind, message.clone());
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
    let last = intake.map(|intake| intake.finish().and_then(|steps| telling.steps(steps)));
    match last {
        Some(Ok(true)) => Ok(()),
        Some(Ok(false) | Err(_)) | None => Err(departed(format!(
            "the recording breaks off in the answer to request {}",
            request.round
        ))),
    }
}
