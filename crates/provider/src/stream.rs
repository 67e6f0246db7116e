//! Bytes of one attempt to steps of its answer, pure; the same for a live stream and a recording.
//!
//! The pieces of one network read are joined, so a quick model costs one frame a read instead of
//! one a word.

use crate::api::AnswerDecoder;
use crate::fault::AttemptFault;
use crate::sse;
use crate::step::{AnswerStep, FormatError};
use protocol::provider::{AnswerDelta, Api};
use protocol::surrogates;
use std::borrow::Cow;

/// The result of one read.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ReadOutcome {
    /// In order, neighbouring pieces of one block joined.
    pub steps: Vec<AnswerStep>,
    /// True if it contained an event other than a ping.
    pub progress: bool,
}

/// The decoders of one attempt.
#[derive(Debug)]
pub struct StreamDecoder {
    sse: sse::SseDecoder,
    decoder: AnswerDecoder,
    scratch: Vec<AnswerStep>,
    any: bool,
    over: bool,
}

impl StreamDecoder {
    /// For an answer in this language.
    #[must_use]
    pub fn new(api: Api) -> Self {
        Self {
            sse: sse::SseDecoder::default(),
            decoder: AnswerDecoder::new(api),
            scratch: Vec::new(),
            any: false,
            over: false,
        }
    }

    /// Decodes bytes, split anywhere. Everything after a terminal event is ignored.
    ///
    /// # Errors
    /// When the stream breaks its format or passes a limit.
    pub fn read(&mut self, bytes: &[u8]) -> Result<ReadOutcome, AttemptFault> {
        let Self { sse, decoder, scratch, any, over } = self;
        *any |= !bytes.is_empty();
        let mut outcome = ReadOutcome::default();
        let mut format_error: Option<FormatError> = None;
        sse.push(bytes, &mut |event| {
            if *over || format_error.is_some() {
                return;
            }
            match decode(decoder, &event, scratch) {
                Ok(progress) => outcome.progress |= progress,
                Err(why) => format_error = Some(why),
            }
            for step in scratch.drain(..) {
                *over |= is_terminal(&step);
                join(&mut outcome.steps, step);
            }
        })?;
        match format_error {
            Some(why) => Err(why.into()),
            None => Ok(outcome),
        }
    }

    /// The body ended without a terminal event. Decodes a last event that lacks only its blank
    /// line.
    ///
    /// # Errors
    /// Nearly always: the stream is broken.
    pub fn finish(mut self) -> Result<Vec<AnswerStep>, AttemptFault> {
        if !self.any {
            return Err(AttemptFault::broken("the server answered with an empty body"));
        }
        let mut steps = Vec::new();
        if let Some(event) = self.sse.finish() {
            decode(&mut self.decoder, &event, &mut steps)
                .map_err(|_| AttemptFault::broken("the stream ended in the middle of an event"))?;
        }
        if !steps.iter().any(is_terminal) {
            self.decoder.body_ended(&mut steps)?;
        }
        if !steps.iter().any(is_terminal) {
            return Err(AttemptFault::broken("the stream ended before the answer did"));
        }
        Ok(steps)
    }
}

/// Decodes an event. Half a surrogate pair in a text becomes U+FFFD. In arguments, which are JSON themselves, it stays
/// as an escape, so that no call means something else than the model wrote.
fn decode(
    decoder: &mut AnswerDecoder,
    event: &sse::SseEvent,
    out: &mut Vec<AnswerStep>,
) -> Result<bool, FormatError> {
    let failed = match decoder.event(&event.name, &event.data, out) {
        Err(failed @ FormatError::Format { .. }) => failed,
        decoded => return decoded,
    };
    let Cow::Owned(replaced) = surrogates::replaced(&event.data) else { return Err(failed) };
    let (before, said) = (decoder.clone(), out.len());
    let progress = decoder.event(&event.name, &replaced, out)?;
    let is_input = |step: &AnswerStep| {
        matches!(step, AnswerStep::Piece { delta: AnswerDelta::ToolInput(_), .. })
    };
    if !out[said..].iter().any(is_input) {
        return Ok(progress);
    }
    *decoder = before;
    out.truncate(said);
    decoder.event(&event.name, &surrogates::escaped(&event.data), out)
}

fn is_terminal(step: &AnswerStep) -> bool {
    matches!(step, AnswerStep::Ended(_) | AnswerStep::Failed(_))
}

/// Appends a step, or joins its text to the piece before.
fn join(steps: &mut Vec<AnswerStep>, step: AnswerStep) {
    if let (
        Some(AnswerStep::Piece { index: open, delta: before }),
        AnswerStep::Piece { index, delta },
    ) = (steps.last_mut(), &step)
        && open == index
    {
        match (before, delta) {
            (AnswerDelta::Text(all), AnswerDelta::Text(more))
            | (AnswerDelta::Thinking(all), AnswerDelta::Thinking(more))
            | (AnswerDelta::ToolInput(all), AnswerDelta::ToolInput(more)) => {
                return all.push_str(more);
            }
            (_, _) => {}
        }
    }
    steps.push(step);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    const STREAM: &str = concat!(
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"m\"}}\n\n",
        "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
        "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\n\n",
        "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"bé\"}}\n\n",
        "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
        "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n",
        "data: {\"type\":\"message_stop\"}\n\n",
    );

    #[test]
    fn one_read_is_one_piece_and_nothing_follows_the_end() {
        let mut decoder = StreamDecoder::new(Api::Anthropic);
        let stream = format!("{STREAM}data: {{torn\n\n");
        let outcome = decoder.read(stream.as_bytes()).unwrap();
        assert!(outcome.progress);
        assert_eq!(outcome.steps.len(), 3);
        assert_eq!(
            outcome.steps[0],
            AnswerStep::Piece { index: 0, delta: AnswerDelta::Text("abé".into()) }
        );
        assert_eq!(decoder.read(b"data: more\n\n").unwrap(), ReadOutcome::default());
    }

    #[test]
    fn pings_and_comments_are_no_progress() {
        let mut decoder = StreamDecoder::new(Api::Anthropic);
        for bytes in ["data: {\"type\":\"ping\"}\n\n", ": KEEP ALIVE\n\n", "\n"] {
            assert!(!decoder.read(bytes.as_bytes()).unwrap().progress);
        }
        assert!(decoder.read(STREAM.as_bytes()).unwrap().progress);
    }

    #[test]
    fn a_body_that_ends_early_is_broken_however_it_ends() {
        let cases = [
            (0, "the server answered with an empty body"),
            (40, "the stream ended in the middle of an event"),
            (STREAM.len() - 30, "the stream ended before the answer did"),
        ];
        for (cut, words) in cases {
            let mut decoder = StreamDecoder::new(Api::Anthropic);
            decoder.read(&STREAM.as_bytes()[..cut]).unwrap();
            assert_eq!(decoder.finish().unwrap_err().words, words, "{cut}");
        }
        // The control: only blank line and line feed are missing.
        for cut in [1, 2] {
            let mut decoder = StreamDecoder::new(Api::Anthropic);
            decoder.read(&STREAM.as_bytes()[..STREAM.len() - cut]).unwrap();
            assert!(matches!(decoder.finish().unwrap().as_slice(), [AnswerStep::Ended(_)]));
        }
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_answer(cuts in proptest::collection::vec(0usize..STREAM.len(), 0..20)) {
            let mut cuts = cuts;
            cuts.push(STREAM.len());
            cuts.sort_unstable();
            let (mut decoder, mut steps, mut from) = (StreamDecoder::new(Api::Anthropic), Vec::new(), 0);
            for cut in cuts {
                for step in decoder.read(&STREAM.as_bytes()[from..cut]).unwrap().steps {
                    join(&mut steps, step);
                }
                from = cut;
            }
            prop_assert_eq!(steps, StreamDecoder::new(Api::Anthropic).read(STREAM.as_bytes()).unwrap().steps);
        }
    }
}
