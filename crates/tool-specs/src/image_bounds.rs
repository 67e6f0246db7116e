//! The bounds of the images in a result: the runner keeps them, and the supervisor checks that it does.

use protocol::confinement::Profile;
use protocol::content::{ImageFile, MediaType};

/// By this variable the supervisor says that the model sees images.
pub const MODEL_SEES: &str = "AGENTD_MODEL_SEES";

/// Most pages of one call.
pub const PAGES_MAX: usize = 20;
/// The longer side that models get. Anthropic scales larger images down to this size itself:
/// <https://platform.claude.com/docs/en/build-with-claude/vision>, "Evaluate image size".
pub const SHOWN_SIDE: u32 = 1568;
/// Most bytes that models get: in base64 they stay below 5 MB, the most that Anthropic takes.
pub const SHOWN_MAX: usize = 3_750_000;

/// Most images that a call in such a cage may show.
#[must_use]
pub fn most_images(profile: Profile) -> usize {
    let several = matches!(profile, Profile::Document | Profile::Mcp | Profile::McpWrite);
    if several { PAGES_MAX } else { 1 }
}

/// Why this process did not make such an image for a model; none where it may have. For the supervisor,
/// since the process that decodes may be taken over by the file.
#[must_use]
pub fn unfit(ImageFile { image, data }: &ImageFile) -> Option<String> {
    let begins: &[u8] = match image.media {
        MediaType::Png => b"\x89PNG\r\n\x1a\n",
        MediaType::Jpeg => b"\xff\xd8\xff",
        MediaType::Pdf => return Some("it is a document".to_owned()),
    };
    let sides = 1..=SHOWN_SIDE;
    if data.len() > SHOWN_MAX {
        return Some(format!("it has {} bytes; at most {SHOWN_MAX} are sent", data.len()));
    }
    if !sides.contains(&image.width) || !sides.contains(&image.height) {
        let (width, height) = (image.width, image.height);
        return Some(format!(
            "it has {width}x{height} pixels; at most {SHOWN_SIDE} a side are sent"
        ));
    }
    let named = image.media.name();
    (!data.starts_with(begins)).then(|| format!("its bytes do not begin as {named}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::content::ImageRef;

    #[test]
    fn an_image_that_no_decoder_here_makes_is_unfit() {
        let of = |media, (width, height), data: &[u8]| {
            let (digest, name) = (String::new(), "a.png".to_owned());
            let image = ImageRef { digest, name, media, width, height, bytes: 0 };
            unfit(&ImageFile { image, data: data.to_vec() })
        };
        let (png, jpeg) = (&b"\x89PNG\r\n\x1a\n"[..], &b"\xff\xd8\xff\xe0"[..]);
        assert_eq!(of(MediaType::Png, (1568, 1), png), None);
        assert_eq!(of(MediaType::Jpeg, (1, 1568), jpeg), None);
        let long = [png, &[0; SHOWN_MAX]].concat();
        assert_eq!(of(MediaType::Png, (1, 1), &long[..SHOWN_MAX]), None);
        for (media, sides, data) in [
            (MediaType::Png, (1, 1), &long[..]),
            (MediaType::Png, (1569, 1), png),
            (MediaType::Png, (1, 1569), png),
            (MediaType::Png, (0, 1), png),
            (MediaType::Png, (1, 1), jpeg),
            (MediaType::Jpeg, (1, 1), png),
            (MediaType::Png, (1, 1), b""),
            (MediaType::Png, (1, 1), b"GIF89a"),
            (MediaType::Pdf, (1, 0), b"%PDF-1.7"),
        ] {
            assert!(of(media, sides, data).is_some(), "{media:?} {sides:?} {}", data.len());
        }
    }
}
