//! The report of a call that an MCP server has answered. Used by `agentd-mcp`.

use crate::files::image;
use protocol::call::{Outcome, ProcessUsage, RunReport};
use protocol::confinement::Profile;
use protocol::content::ImageFile;
use protocol::hidden::for_model;
use protocol::hidden::without_hidden;
use tool_specs::image_bounds::most_images;
use tool_specs::{BodyFrom, ToolAnswer};

/// Says that the answer is not whole.
const HID: &str =
    "[agentd: letters that show as nothing were taken out of this answer of the server]";

/// One part of a server's answer.
#[derive(Debug)]
pub enum AnswerPart {
    /// Text for the model.
    Text(String),
    /// The bytes of a file that is said to be an image.
    Image(Vec<u8>),
}

/// The report of a call that a server has answered with this outcome.
#[must_use]
pub fn server_report(
    (server, tool): (&str, &str),
    parts: Vec<AnswerPart>,
    outcome: Outcome,
    max_chars: u32,
) -> RunReport {
    let (mut body, mut images) = (Vec::new(), Vec::<ImageFile>::new());
    let mut hides = false;
    for part in parts {
        match part {
            AnswerPart::Image(_) if images.len() == most_images(Profile::Mcp) => {
                body.push("[one more image, which is not shown]".to_owned());
            }
            AnswerPart::Text(text) => {
                let lines = for_model(&text);
                let kept = without_hidden(&lines);
                hides |= kept != lines;
                body.push(kept.into_owned());
            }
            AnswerPart::Image(data) => {
                let name = format!("{server}-{tool}-{}", images.len() + 1);
                match image::of_bytes(&data, &name) {
                    Ok(shown) => {
                        body.push(shown.line());
                        images.push(shown.file);
                    }
                    Err(why) => body.push(format!("[an image that is not shown: {why}]")),
                }
            }
        }
    }
    if hides {
        body.push(HID.to_owned());
    }
    let end = if outcome == Outcome::Done { "done" } else { "the server reports an error" };
    let summary = format!("{server} {tool}: {end}");
    let answer = ToolAnswer {
        by: BodyFrom::Program,
        how_to_get_more: "ask the server for less".into(),
        outcome,
        ..ToolAnswer::done(body.join("\n"), summary, Vec::new())
    };
    let max = usize::try_from(max_chars).unwrap_or(usize::MAX);
    let (result, full, effects) = answer.into_result(max);
    RunReport {
        result,
        full,
        images,
        effects,
        seen: Vec::new(),
        instructions: Vec::new(),
        evidence: None,
        refusals: Vec::new(),
        refusals_uncounted: 0,
        tampered: Vec::new(),
        usage: ProcessUsage::default(),
        command_pid: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(text: &str) -> String {
        let parts = vec![AnswerPart::Text(text.to_owned())];
        server_report(("s", "t"), parts, Outcome::Done, 10_000).result.text
    }

    #[test]
    fn hidden_letters_of_an_answer_are_taken_out_and_the_model_learns_of_it() {
        let text = text_of("Hello.\u{202e}\u{e0049}\u{200b}\nTwo \u{1b}.");
        assert!(text.starts_with("Hello.\nTwo \u{241b}."), "{text:?}");
        assert!(text.contains(HID), "{text:?}");
        let text = text_of("Hello \u{2764}\u{fe0f}.\nTwo.");
        assert!(text.starts_with("Hello \u{2764}\u{fe0f}.\nTwo."), "{text:?}");
        assert!(!text.contains(HID), "the control: {text:?}");
    }
}
