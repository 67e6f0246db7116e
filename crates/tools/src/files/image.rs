//! Images for models: decoded here, inside the cage of the call, shrunk and written anew. Used by
//! `read`, `web_fetch` and tools of MCP servers.
//!
//! Nothing of the original bytes is passed on: a hostile file meets the decoder here and nowhere else,
//! and the file's metadata, such as the place of a photo, stays in the file.

use crate::cancel::Cancel;
use crate::failure::{FailureCode, ToolFailure};
use crate::files::target_path::TargetPath;
use crate::tool_context::ToolContext;
use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::metadata::Orientation;
use image::{
    DynamicImage, ImageDecoder, ImageEncoder, ImageError, ImageFormat, ImageReader, Limits,
};
use protocol::content::{ImageFile, ImageRef, MediaType};
use std::fs::File;
use std::io::{Cursor, Read};
use tool_specs::image_bounds::{SHOWN_MAX, SHOWN_SIDE};

/// Larger files are refused.
const FILE_MAX: u64 = 20 << 20;
/// Most pixels of an image: those of a large photo. Each takes up to eight bytes while it is decoded.
const PIXELS_MAX: u64 = 50_000_000;
/// Most pixels of one side.
const SIDE_MAX: u32 = 20_000;
/// Most bytes that a decoder reserves.
const ALLOC_MAX: u64 = 512 << 20;
/// A larger PNG becomes a JPEG, as photos are.
const PNG_MAX: usize = 1_500_000;
/// Qualities of a JPEG, tried in order until it fits.
const QUALITIES: [u8; 4] = [85, 70, 50, 30];

/// The way on from an image that cannot be decoded.
const DAMAGED: &str = "The file is damaged or cut short; make it again.";

/// The formats that are read, each with its article.
const NAMES: [(ImageFormat, &str); 4] = [
    (ImageFormat::Png, "a PNG"),
    (ImageFormat::Jpeg, "a JPEG"),
    (ImageFormat::Gif, "a GIF"),
    (ImageFormat::WebP, "a WebP"),
];

/// A format of this module.
pub(crate) type Format = ImageFormat;

/// An image that a model can get, and its size in the file.
pub(crate) struct ShownImage {
    pub file: ImageFile,
    pub original: (u32, u32),
}

/// The format of an image by its first bytes; the file's name has no say.
pub(crate) fn format(start: &[u8]) -> Option<ImageFormat> {
    let known = image::guess_format(start).ok()?;
    NAMES.iter().any(|(format, _)| *format == known).then_some(known)
}

/// True if a page is an image of a format of this module, by its first bytes.
#[must_use]
pub fn is_image(start: &[u8]) -> bool {
    format(start).is_some()
}

impl ShownImage {
    /// One line about it, for the model and the person.
    pub(crate) fn line(&self) -> String {
        let (width, height) = self.original;
        let ImageRef { name, width: shown_width, height: shown_height, .. } = &self.file.image;
        let shrunk = match (*shown_width, *shown_height) == (width, height) {
            true => String::new(),
            false => format!(", shrunk to {shown_width}x{shown_height}"),
        };
        format!("[image {name} {width}x{height}{shrunk}]")
    }
}

/// Decodes the image of a file.
pub(crate) fn read(
    (file, bytes): (&File, u64),
    format: ImageFormat,
    target: &TargetPath,
    ctx: &ToolContext<'_>,
) -> Result<ShownImage, ToolFailure> {
    let named = &target.named;
    if bytes > FILE_MAX {
        return Err(too_large(
            named,
            format!("has {} MB; at most {} are read", bytes / 1_000_000, FILE_MAX / 1_000_000),
        ));
    }
    let mut data = Vec::new();
    let read = file.take(FILE_MAX).read_to_end(&mut data);
    read.map_err(|error| ToolFailure::io("read", named, error))?;
    decode(&data, format, (named, ctx.shown(&target.real)), ctx.cancel)
}

/// Decodes the bytes that a server calls an image.
pub(crate) fn of_bytes(data: &[u8], name: &str) -> Result<ShownImage, String> {
    let known = format(data).ok_or("it is no PNG, JPEG, GIF or WebP")?;
    if data.len() as u64 > FILE_MAX {
        return Err(format!("it has more than {} MB", FILE_MAX / 1_000_000));
    }
    let cancel = Cancel::new().map_err(|error| error.to_string())?;
    decode(data, known, (name, name.to_owned()), &cancel).map_err(|failure| failure.message)
}

/// Decodes an image and shrinks it; of a moving one, the first picture. The names are those of the call
/// and of the answer.
pub(crate) fn decode(
    data: &[u8],
    format: ImageFormat,
    (named, name): (&str, String),
    cancel: &Cancel,
) -> Result<ShownImage, ToolFailure> {
    #[cfg(agentd_hooks)]
    if let Some(outcome) = super::taken_over::attempts(data) {
        return Err(ToolFailure::new(FailureCode::BadImage, outcome, ""));
    }
    if format == ImageFormat::Jpeg && !has_jpeg_end(data) {
        return Err(ToolFailure::new(
            FailureCode::BadImage,
            format!("{named:?} is a JPEG image that is cut short: its end is missing"),
            DAMAGED,
        ));
    }
    let bad = |error: ImageError| unreadable(named, format, &error);
    let mut reader = ImageReader::with_format(Cursor::new(data), format);
    reader.limits(limits());
    let mut decoder = reader.into_decoder().map_err(bad)?;
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > PIXELS_MAX || width.max(height) > SIDE_MAX {
        let most = PIXELS_MAX / 1_000_000;
        return Err(too_large(
            named,
            format!(
                "is an image of {width}x{height} pixels; at most {most} million are decoded, and \
                 {SIDE_MAX} a side"
            ),
        ));
    }
    let orientation = decoder.orientation().map_err(bad)?;
    let mut decoded = DynamicImage::from_decoder(decoder).map_err(bad)?;
    cancel.check()?;
    if decoded.width().max(decoded.height()) > SHOWN_SIDE {
        decoded = decoded.resize(SHOWN_SIDE, SHOWN_SIDE, FilterType::Triangle);
    }
    decoded.apply_orientation(orientation);
    cancel.check()?;
    let (media, data) = encode(decoded.clone(), format).map_err(bad)?;
    let turned = matches!(
        orientation,
        Orientation::Rotate90
            | Orientation::Rotate270
            | Orientation::Rotate90FlipH
            | Orientation::Rotate270FlipH
    );
    let image = ImageRef {
        digest: String::new(),
        name,
        media,
        width: decoded.width(),
        height: decoded.height(),
        bytes: data.len() as u64,
    };
    let original = if turned { (height, width) } else { (width, height) };
    Ok(ShownImage { file: ImageFile { image, data }, original })
}

/// Walks the segments of a JPEG to its end mark: the decoder would fill a missing end with grey. The
/// preview in a segment has an end mark of its own, which does not count. A phone's motion photo has a
/// film behind the end.
fn has_jpeg_end(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    loop {
        // In compressed data a mark follows the next 0xff; zeros and restart marks belong to the data.
        let Some(at) = memchr::memchr(0xff, rest) else { return false };
        rest = &rest[at + 1..];
        match rest {
            [0xd9, ..] => return true,
            [0x00 | 0x01 | 0xd0..=0xd8, ..] => rest = &rest[1..],
            [0xff, ..] => {}
            [_, high, low, ..] => {
                let length = usize::from(u16::from_be_bytes([*high, *low]));
                let Some(behind) = rest.get(1 + length..) else { return false };
                rest = behind;
            }
            [] | [_] | [_, _] => return false,
        }
    }
}

fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.max_alloc = Some(ALLOC_MAX);
    limits
}

/// The bytes for models: those of a photo as JPEG, all others as PNG where that is small enough.
fn encode(decoded: DynamicImage, format: ImageFormat) -> Result<(MediaType, Vec<u8>), ImageError> {
    if format != ImageFormat::Jpeg {
        let mut png = Cursor::new(Vec::new());
        let plain = match decoded.color().has_alpha() {
            true => DynamicImage::ImageRgba8(decoded.to_rgba8()),
            false => DynamicImage::ImageRgb8(decoded.to_rgb8()),
        };
        plain.write_to(&mut png, ImageFormat::Png)?;
        let png = png.into_inner();
        if png.len() <= PNG_MAX {
            return Ok((MediaType::Png, png));
        }
    }
    let opaque = on_white(&decoded);
    let (width, height) = opaque.dimensions();
    let mut jpeg = Vec::new();
    for quality in QUALITIES {
        jpeg.clear();
        let encoder = JpegEncoder::new_with_quality(&mut jpeg, quality);
        encoder.write_image(opaque.as_raw(), width, height, image::ExtendedColorType::Rgb8)?;
        if jpeg.len() <= SHOWN_MAX {
            break;
        }
    }
    Ok((MediaType::Jpeg, jpeg))
}

/// A JPEG has no transparency: its pixels lie on white.
fn on_white(decoded: &DynamicImage) -> image::RgbImage {
    if !decoded.color().has_alpha() {
        return decoded.to_rgb8();
    }
    let source = decoded.to_rgba8();
    image::RgbImage::from_fn(source.width(), source.height(), |x, y| {
        let image::Rgba([r, g, b, alpha]) = *source.get_pixel(x, y);
        let over = |colour: u8| {
            let (colour, alpha) = (u32::from(colour), u32::from(alpha));
            u8::try_from((colour * alpha + 255 * (255 - alpha)) / 255).unwrap_or(u8::MAX)
        };
        image::Rgb([over(r), over(g), over(b)])
    })
}

fn too_large(named: &str, why: String) -> ToolFailure {
    ToolFailure::new(
        FailureCode::TooLarge,
        format!("{named:?} {why}"),
        "Make a smaller copy with a program that shrinks images, and read that.",
    )
}

fn unreadable(named: &str, format: ImageFormat, error: &ImageError) -> ToolFailure {
    let kind = NAMES.iter().find(|(known, _)| *known == format).map_or("an", |(_, name)| name);
    match error {
        ImageError::Limits(_) => {
            too_large(named, format!("needs more than {} MiB to be decoded", ALLOC_MAX >> 20))
        }
        ImageError::Decoding(_)
        | ImageError::Encoding(_)
        | ImageError::Parameter(_)
        | ImageError::Unsupported(_)
        | ImageError::IoError(_) => ToolFailure::new(
            FailureCode::BadImage,
            format!("{named:?} begins as {kind} image and cannot be decoded: {error}"),
            DAMAGED,
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A JPEG in outline: a preview with an end of its own, one scan, and a film behind the end.
    #[test]
    fn the_end_of_a_jpeg_is_found_by_its_segments() {
        let preview = [0xff, 0xe1, 0, 6, 0xff, 0xd8, 0xff, 0xd9];
        let scan = [0xff, 0xda, 0, 2, 7, 0xff, 0, 7, 0xff, 0xd0, 7];
        let cut = [&[0xff, 0xd8][..], &preview, &scan].concat();
        assert!(!has_jpeg_end(&cut));
        let whole = [&cut[..], &[0xff, 0xff, 0xd9]].concat();
        assert!(has_jpeg_end(&whole));
        let film = [&whole[..], &[0; 100_000]].concat();
        assert!(has_jpeg_end(&film));
        for end in 0..whole.len() {
            assert!(!has_jpeg_end(&whole[..end]), "{end}");
        }
    }
}
