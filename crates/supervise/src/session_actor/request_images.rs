//! The bytes of a request's images: read from the journal's files for the provider. The conversation
//! knows their names alone.

use journal::Digest;
use protocol::content::{ContentBlock, ImageFile, ImageRef, ModelRequest};
use std::path::Path;

/// Puts the bytes into the request. The provider says in words which image has none. Returns notices for people.
pub(super) async fn fill_in_images(request: &mut ModelRequest, journal: &Path) -> Vec<String> {
    let shown = shown(request);
    if shown.is_empty() {
        return Vec::new();
    }
    let directory = journal.to_owned();
    let reading = tokio::task::spawn_blocking(move || read(&directory, shown));
    let (files, lost) = reading.await.unwrap_or_default();
    request.images = files;
    let lost = lost.into_iter().map(|image| {
        format!(
            "the image {} is not shown to the model: its file in the session's journal is missing \
             or damaged",
            image.name
        )
    });
    lost.collect()
}

/// Each image once.
fn shown(request: &ModelRequest) -> Vec<ImageRef> {
    let mut shown: Vec<ImageRef> = Vec::new();
    for block in request.messages.iter().flat_map(|message| &message.blocks) {
        let images = match block {
            ContentBlock::Image { image } => std::slice::from_ref(image),
            ContentBlock::ToolResult { images, .. } => images.as_slice(),
            ContentBlock::Text { .. }
            | ContentBlock::Thinking { .. }
            | ContentBlock::ToolUse { .. } => &[],
        };
        for image in images {
            if !shown.iter().any(|known| known.digest == image.digest) {
                shown.push(image.clone());
            }
        }
    }
    shown
}

fn read(directory: &Path, images: Vec<ImageRef>) -> (Vec<ImageFile>, Vec<ImageRef>) {
    let (mut files, mut lost) = (Vec::new(), Vec::new());
    for image in images {
        let digest = image.digest.parse::<Digest>();
        match digest.ok().and_then(|digest| journal::image(directory, digest).ok()) {
            Some(data) => files.push(ImageFile { image, data }),
            None => lost.push(image),
        }
    }
    (files, lost)
}
