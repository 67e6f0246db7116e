//! The bytes of a request's images: read from the journal's files for the provider. The conversation
//! knows their names alone.

use super::state::SessionActorState;
use journal::Digest;
use protocol::client::ClientEvent;
use protocol::content::{ContentBlock, ImageFile, ImageRef, ModelRequest};
use std::path::Path;

impl SessionActorState {
    /// Puts the bytes into the request. The provider says in words which image has none.
    pub(super) async fn fill_in_images(&self, mut request: ModelRequest) -> ModelRequest {
        let shown = shown(&request);
        if shown.is_empty() {
            return request;
        }
        let directory = self.journal.directory.clone();
        let reading = tokio::task::spawn_blocking(move || read(&directory, shown));
        let (files, lost) = reading.await.unwrap_or_default();
        request.images = files;
        for image in lost {
            let text = format!(
                "the image {} is not shown to the model: its file in the session's journal is missing \
                 or damaged",
                image.name
            );
            tracing::warn!(session = %self.spec.id, "{text}");
            self.show(&ClientEvent::Notice { text });
        }
        request
    }
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
