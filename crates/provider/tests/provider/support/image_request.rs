//! A request with an image in a prompt and images in a result. For the tests of the encoders, and for the
//! example `image_requests`, which the vendors' own libraries read.
#![allow(dead_code)]

use protocol::content::{
    ContentBlock, ImageFile, ImageRef, MediaType, Message, MessageRole, ModelRequest, ToolChoice,
};

pub fn file(name: &str, media: MediaType) -> ImageFile {
    let (digest, name) = (format!("digest of {name}"), name.to_owned());
    let image = ImageRef { digest, name, media, width: 12, height: 8, bytes: 3 };
    ImageFile { image, data: b"png".to_vec() }
}

/// A prompt with an image, a call, and its result with an image; these files have bytes.
pub fn request(images: Vec<ImageFile>) -> ModelRequest {
    let shot = file("shot.png", MediaType::Png).image;
    let page = file("page.pdf", MediaType::Pdf).image;
    let message = |role, blocks| Message { role, blocks };
    let text = |text: &str| ContentBlock::Text { text: text.to_owned() };
    let asked = ContentBlock::ToolUse { id: "t1".into(), name: "read".into(), input: "{}".into() };
    let result = ContentBlock::ToolResult {
        id: "t1".into(),
        text: "two files".into(),
        is_error: false,
        images: vec![shot.clone(), page],
    };
    ModelRequest {
        round: 1,
        model: "gpt-4".into(),
        system: String::new(),
        tools: Vec::new(),
        messages: vec![
            message(MessageRole::User, vec![text("see"), ContentBlock::Image { image: shot }]),
            message(MessageRole::Assistant, vec![asked]),
            message(MessageRole::User, vec![result]),
        ],
        max_tokens: 100,
        updated: None,
        calls: ToolChoice::Yes,
        images,
        answer_schema: None,
    }
}

pub fn all() -> Vec<ImageFile> {
    vec![file("shot.png", MediaType::Png), file("page.pdf", MediaType::Pdf)]
}
