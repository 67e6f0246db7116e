//! The images of a result between the wires and the journal. Used by `encode`, `decode` and the call
//! actor. Pure.

use journal::{Digest, ImageBytes, ImageRecord};
use protocol::call::{Outcome, RunReport, ToolResult};
use protocol::confinement::Profile;
use protocol::content::{ImageFile, ImageRef, MediaType};

/// Most characters of a name.
const NAME_CHARS: usize = 200;

/// Names the images of a report by their bytes: a runner's word for that is not enough. A hostile file may
/// have taken the runner over, so an image that no runner makes is not passed on, and the call fails.
pub(crate) fn named(mut report: RunReport, (tool, profile): (&str, Profile)) -> RunReport {
    let (images, most) = (&report.images, tool_specs::image_bounds::most_images(profile));
    let unfit = match images.len() > most {
        true => Some(format!("there are {}; a call shows at most {most}", images.len())),
        false => images.iter().find_map(tool_specs::image_bounds::unfit),
    };
    if let Some(why) = unfit {
        let message = format!("the image that the call's process handed over is refused: {why}");
        let hint = "The file may be made to attack image decoders. Do not read it again.";
        report.result = ToolResult::error(Outcome::Failed, "bad_image", tool, &message, hint);
        report.full = None;
        report.images.clear();
    }
    for ImageFile { image, data } in &mut report.images {
        image.digest = Digest::of(data).to_string();
        image.bytes = data.len() as u64;
        image.name = protocol::hidden::line(&image.name, NAME_CHARS);
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

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::call::ProcessUsage;

    fn report(images: &[&[u8]]) -> RunReport {
        let file = |data: &&[u8]| {
            let (digest, name) = ("a runner's word".to_owned(), "a.png".to_owned());
            let (media, width, height) = (MediaType::Png, 10, 10);
            let image = ImageRef { digest, name, media, width, height, bytes: 1 };
            ImageFile { image, data: data.to_vec() }
        };
        let result = ToolResult {
            outcome: Outcome::Done,
            text: "[image a.png 10x10]".to_owned(),
            summary: String::new(),
            is_error: false,
            code: None,
            images: Vec::new(),
        };
        RunReport {
            result,
            full: Some("all".to_owned()),
            images: images.iter().map(file).collect(),
            effects: Vec::new(),
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

    #[test]
    fn an_image_is_passed_on_only_as_a_runner_makes_it() {
        let png = &b"\x89PNG\r\n\x1a\n"[..];
        let good = named(report(&[png]), ("read", Profile::Query));
        assert_eq!(good.result.images, [good.images[0].image.clone()]);
        assert_eq!(good.images[0].image.digest, Digest::of(png).to_string());
        assert_eq!(named(report(&[]), ("bash", Profile::Command)).result.outcome, Outcome::Done);
        assert_eq!(named(report(&[png; 20]), ("read", Profile::Document)).result.images.len(), 20);
        for (bad, profile) in [
            (&[&b"<script>"[..]][..], Profile::Query),
            (&[png, png], Profile::Query),
            (&[png, b"<script>"], Profile::Document),
            (&[png; 21], Profile::Document),
        ] {
            let refused = named(report(bad), ("read", profile));
            let ToolResult { outcome, text, is_error, images, .. } = &refused.result;
            assert_eq!((outcome, *is_error, images.len()), (&Outcome::Failed, true, 0));
            assert!(text.starts_with("Error [bad_image] read: "), "{text}");
            assert!(refused.images.is_empty() && refused.full.is_none());
        }
    }
}
