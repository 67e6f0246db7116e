//! Properties of the four decoders for any bytes of a vendor's server. Called by their fuzz
//! targets, and by a test of `provider` with good streams that are damaged.

use protocol::provider::{AnswerDelta, Api};
use provider::step::AnswerStep;
use provider::stream::StreamDecoder;

/// The first byte decides how the others are split. No split causes a panic, and each split gives
/// the same steps, or the same failure of a broken stream.
pub fn any(api: Api, data: &[u8]) {
    let Some((piece, bytes)) = data.split_first() else { return };
    let whole = read(api, bytes, bytes.len().max(1));
    assert_eq!(read(api, bytes, usize::from(*piece).max(1)), whole);
}

fn read(api: Api, bytes: &[u8], piece: usize) -> Option<Vec<AnswerStep>> {
    let mut intake = StreamDecoder::new(api);
    let mut steps = Vec::new();
    for piece in bytes.chunks(piece) {
        steps.extend(intake.read(piece).ok()?.steps);
        if steps.iter().any(|step| matches!(step, AnswerStep::Ended(_) | AnswerStep::Failed(_))) {
            return Some(joined(steps));
        }
    }
    steps.extend(intake.finish().ok()?);
    Some(joined(steps))
}

/// Neighbouring pieces of one block joined, however they came.
pub fn joined(steps: Vec<AnswerStep>) -> Vec<AnswerStep> {
    let mut all: Vec<AnswerStep> = Vec::new();
    for step in steps {
        if let (
            Some(AnswerStep::Piece { index: open, delta: before }),
            AnswerStep::Piece { index, delta },
        ) = (all.last_mut(), &step)
            && open == index
            && let (AnswerDelta::Text(words), AnswerDelta::Text(more))
            | (AnswerDelta::Thinking(words), AnswerDelta::Thinking(more))
            | (AnswerDelta::ToolInput(words), AnswerDelta::ToolInput(more)) = (before, delta)
        {
            words.push_str(more);
            continue;
        }
        all.push(step);
    }
    all
}
