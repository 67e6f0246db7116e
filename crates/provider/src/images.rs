//! The images of a request for the encoders: their bytes in base64, or a sentence in their place. Used
//! by the four encoders. Pure.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use protocol::content::{ImageRef, MediaType, ModelRequest};

/// The images of one request.
pub(crate) struct RequestImages<'a>(&'a ModelRequest);

impl<'a> RequestImages<'a> {
    pub(crate) fn of(request: &'a ModelRequest) -> Self {
        Self(request)
    }

    /// The bytes in base64; the error is a sentence for the model.
    pub(crate) fn base64(&self, image: &ImageRef) -> Result<String, String> {
        let found = self.0.images.iter().find(|file| file.image.digest == image.digest);
        let found = found.ok_or_else(|| {
            format!("[{image} cannot be shown: its bytes are no longer in the session's journal]")
        })?;
        Ok(BASE64_STANDARD.encode(&found.data))
    }

    /// A `data:` URL; the error is a sentence for the model.
    pub(crate) fn data_url(&self, image: &ImageRef) -> Result<String, String> {
        let base64 = self.base64(image)?;
        Ok(format!("data:{};base64,{base64}", image.media.name()))
    }
}

/// True for a document, which vendors take in another form than an image.
pub(crate) fn is_document(image: &ImageRef) -> bool {
    match image.media {
        MediaType::Pdf => true,
        MediaType::Png | MediaType::Jpeg => false,
    }
}
