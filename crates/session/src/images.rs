//! The images of a request: all of them for a model that sees, within the size that vendors take, and a
//! sentence in the place of each other. Pure.

use protocol::client::ImageLimits;
use protocol::content::{ContentBlock, ImageRef, Message};
use protocol::session::SessionSetup;

/// Leaves the images that the model can get. The notice is for the person, where the newest message
/// loses one.
pub(crate) fn prepare(messages: &mut [Message], setup: &SessionSetup) -> Option<String> {
    let model = &setup.model;
    let why = match setup.facts.vision {
        Some(true) => {
            leave_out_old(messages, setup.facts.images);
            return None;
        }
        Some(false) => format!("the model {model} does not see images"),
        None => format!("agentd does not know whether the model {model} sees images"),
    };
    let way = match setup.facts.vision {
        Some(_) => "`:model NAME` chooses a model that does".to_owned(),
        None => format!(
            "`vision = true` under `[models.{model}]` in the configuration says that it does, and \
             `:model NAME` chooses another model"
        ),
    };
    let lost = messages.last().map_or(0, |last| last.blocks.iter().map(count).sum::<usize>());
    for message in messages {
        for block in &mut message.blocks {
            replace(block, |image| {
                Some(format!("[{image} is not shown: {why}. The user knows: {way}.]"))
            });
        }
    }
    let images = if lost == 1 { "the image is" } else { "the images are" };
    (lost > 0).then(|| format!("{images} not shown to the model: {why}. {way}"))
}

/// Leaves out the oldest images where there are too many. Half of the room stays free then, so that the
/// next images leave the beginning of the request as it is.
fn leave_out_old(messages: &mut [Message], most: ImageLimits) {
    let sizes = messages.iter().flat_map(|message| &message.blocks).flat_map(shown);
    let sizes: Vec<u64> = sizes.map(|image| image.bytes).collect();
    let mut first = 0;
    for end in 1..=sizes.len() {
        let fits = |first: usize, part: u64| {
            let kept = &sizes[first..end];
            kept.iter().sum::<u64>() <= most.bytes / part
                && kept.len() as u64 <= u64::from(most.count) / part
        };
        if !fits(first, 1) {
            while first + 1 < end && !fits(first, 2) {
                first += 1;
            }
        }
    }
    let mut place = 0;
    for block in messages.iter_mut().flat_map(|message| &mut message.blocks) {
        replace(block, |image| {
            place += 1;
            (place <= first)
                .then(|| format!("[{image} is left out to make room; read it again to see it]"))
        });
    }
}

fn shown(block: &ContentBlock) -> &[ImageRef] {
    match block {
        ContentBlock::Image { image } => std::slice::from_ref(image),
        ContentBlock::ToolResult { images, .. } => images,
        ContentBlock::Text { .. }
        | ContentBlock::Thinking { .. }
        | ContentBlock::ToolUse { .. } => &[],
    }
}

fn count(block: &ContentBlock) -> usize {
    shown(block).len()
}

/// Puts a sentence in the place of each image that has one.
fn replace(block: &mut ContentBlock, mut sentence: impl FnMut(&ImageRef) -> Option<String>) {
    match block {
        ContentBlock::Image { image } => {
            if let Some(text) = sentence(image) {
                *block = ContentBlock::Text { text };
            }
        }
        ContentBlock::ToolResult { images, text, .. } => images.retain(|image| {
            let Some(sentence) = sentence(image) else { return true };
            text.push('\n');
            text.push_str(&sentence);
            false
        }),
        ContentBlock::Text { .. }
        | ContentBlock::Thinking { .. }
        | ContentBlock::ToolUse { .. } => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::content::{MediaType, MessageRole};

    fn image(bytes: u64) -> ContentBlock {
        let (digest, name, media) = (String::new(), "a.png".to_owned(), MediaType::Png);
        ContentBlock::Image { image: ImageRef { digest, name, media, width: 1, height: 1, bytes } }
    }

    fn kept(sizes: &[u64]) -> Vec<bool> {
        kept_of(sizes, ImageLimits::default())
    }

    fn kept_of(sizes: &[u64], most: ImageLimits) -> Vec<bool> {
        let blocks = sizes.iter().map(|bytes| image(*bytes)).collect();
        let mut messages = [Message { role: MessageRole::User, blocks }];
        leave_out_old(&mut messages, most);
        messages[0].blocks.iter().map(|block| count(block) == 1).collect()
    }

    #[test]
    fn the_oldest_images_go_at_once_and_not_with_each_new_one() {
        let mib = |n: u64| n << 20;
        assert_eq!(kept(&[mib(6), mib(6), mib(6)]), [true; 3]);
        // Too much: down to half, and nothing more goes with the next one.
        assert_eq!(kept(&[mib(6), mib(6), mib(6), mib(1)]), [false, false, true, true]);
        assert_eq!(
            kept(&[mib(6), mib(6), mib(6), mib(1), mib(6)]),
            [false, false, true, true, true]
        );
        // An image by itself always goes out: the tools bound it.
        assert_eq!(kept(&[mib(1), mib(40)]), [false, true]);
        let many = kept(&[1; 101]);
        assert_eq!(many.iter().filter(|kept| **kept).count(), 50);
        // Another vendor takes fewer bytes, or more images.
        let less = ImageLimits { bytes: mib(12), count: 100 };
        assert_eq!(kept_of(&[mib(6), mib(6), mib(6)], less), [false, false, true]);
        let more = ImageLimits { bytes: mib(18), count: 500 };
        assert_eq!(kept_of(&[1; 101], more), [true; 101]);
    }
}
