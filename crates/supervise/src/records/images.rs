//! The images of a result between the wires and the journal. Used by `encode`, `decode` and the call
//! actor. Pure.

use journal::{Digest, ImageBytes, ImageRecord};
use protocol::call::RunReport;
use protocol::content::{ImageFile, ImageRef, MediaType};

/// Most characters of a name.
const NAME_CHARS: usize = 200;

/// Names the images of a report by their bytes: a runner's word for that is not enough.
pub(crate) fn named(mut report: RunReport) -> RunReport {
    for ImageFile { image, data } in &mut report.images {
        image.digest = Digest::of(data).to_string();
        image.bytes = data.len() as u64;
        image.name = prompts::line(&image.name, NAME_CHARS);
    }
    report.result.images = report.images.iter().map(|file| file.image.clone()).collect();
    report
}

/// The records of a report's images, with their bytes.
pub(super) fn records(files: &[ImageFile]) -> Vec<ImageRecord> {
    let record = |ImageFile { image, data }: &ImageFile| {
        let ImageRef { digest: _, name, media, width, height, bytes } = image.clone();
        let (media, digest) = (media.name().to_owned(), Digest::of(data));
        let data = ImageBytes(Some(data.as_slice().into()));
        ImageRecord { digest, bytes, name, media, width, height, data }
    };
    files.iter().map(record).collect()
}

/// The images that a record names. A format that is newer than this build is left out.
pub(super) fn refs(records: Vec<ImageRecord>) -> Vec<ImageRef> {
    let image = |record| {
        let ImageRecord { digest, bytes, name, media, width, height, data: _ } = record;
        let media = MediaType::parse(&media)?;
        Some(ImageRef { digest: digest.to_string(), name, media, width, height, bytes })
    };
    records.into_iter().filter_map(image).collect()
}
