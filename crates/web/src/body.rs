//! Decodes a server's response body to text: decompresses it within a limit and decodes its
//! character set. Pure; used by `fetch`.

use encoding_rs::{Encoding, UTF_8};
use flate2::read::{GzDecoder, ZlibDecoder};
use std::io::Read;

/// Limit of a page in bytes, compressed or not: fifty times the part that the model receives.
pub(crate) const MAX_BYTES: usize = 2 << 20;
/// Limit of an image in bytes.
const IMAGE_MAX_BYTES: usize = 8 << 20;
/// Length in which HTML declares its character set, by the standard.
const PRESCAN: usize = 1024;

/// A response body with its headers.
#[derive(Debug, Clone, Default)]
pub(crate) struct PageBody {
    /// `content-type`, as sent.
    pub content_type: String,
    /// `content-encoding`, as sent.
    pub content_encoding: String,
    /// At most [`most_bytes`].
    pub bytes: Vec<u8>,
    /// True if the body was cut at the limit.
    pub cut: bool,
}

/// Kind of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyKind {
    /// HTML, to be converted to prose.
    Html,
    /// Text to be used unchanged.
    Plain,
}

/// A decoded body.
#[derive(Debug)]
pub(crate) struct PageText {
    pub kind: BodyKind,
    pub text: String,
    pub cut: bool,
}

/// Most bytes to read of a body that begins so. Its header has no say: a text is a text.
pub(crate) fn most_bytes(start: &[u8]) -> usize {
    match tools::is_image(start) {
        true => IMAGE_MAX_BYTES,
        false => MAX_BYTES,
    }
}

/// Decompresses and decodes a body.
///
/// # Errors
/// The reason why it is not readable text.
pub(crate) fn decode(body: PageBody) -> Result<PageText, String> {
    let PageBody { content_type, content_encoding: packed, bytes, cut } = body;
    let (bytes, cut) = decompress(&packed, bytes, cut)?;
    let (mime, charset) = parse_content_type(&content_type);
    let kind = body_kind(&mime, &bytes).ok_or_else(|| match mime.as_str() {
        "" => format!("it is not text ({} bytes without a content type)", bytes.len()),
        mime => format!("it is {mime}, which cannot be converted to text ({} bytes)", bytes.len()),
    })?;
    let encoding = charset.or_else(|| match kind {
        BodyKind::Html => charset_of_page(&bytes),
        BodyKind::Plain => None,
    });
    // A byte order mark takes precedence.
    let (text, ..) = encoding.unwrap_or(UTF_8).decode(&bytes);
    Ok(PageText { kind, text: text.into_owned(), cut })
}

/// The decompressed bytes. We request uncompressed bodies, but some servers compress anyway.
fn decompress(packed: &str, bytes: Vec<u8>, cut: bool) -> Result<(Vec<u8>, bool), String> {
    let packed = packed.trim().to_ascii_lowercase();
    let mut out = Vec::new();
    let room = MAX_BYTES as u64 + 1;
    let read = match packed.as_str() {
        "" | "identity" => return Ok((bytes, cut)),
        "gzip" | "x-gzip" => GzDecoder::new(&bytes[..]).take(room).read_to_end(&mut out),
        "deflate" => ZlibDecoder::new(&bytes[..]).take(room).read_to_end(&mut out),
        other => return Err(format!("it is compressed with {other}, which is not supported")),
    };
    match read {
        Ok(_) => {}
        // A body that was cut has no valid end; the part before it is usable.
        Err(_) if cut && !out.is_empty() => {}
        Err(error) => {
            return Err(format!(
                "it claims {packed} compression but cannot be decompressed: \
                                {error}"
            ));
        }
    }
    let longer = out.len() > MAX_BYTES;
    out.truncate(MAX_BYTES);
    Ok((out, cut || longer))
}

/// The media type, in lower case, and the character set of a `content-type`.
fn parse_content_type(content_type: &str) -> (String, Option<&'static Encoding>) {
    let mut parts = content_type.split(';');
    let mime = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
    let charset = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        let value = value.trim().trim_matches('"');
        name.trim()
            .eq_ignore_ascii_case("charset")
            .then(|| Encoding::for_label(value.as_bytes()))?
    });
    (mime, charset)
}

fn body_kind(mime: &str, bytes: &[u8]) -> Option<BodyKind> {
    let subtype = mime.rsplit(['/', '+']).next().unwrap_or_default();
    match mime {
        "text/html" | "application/xhtml+xml" => Some(BodyKind::Html),
        "" | "application/octet-stream" => {
            let front = &bytes[..bytes.len().min(PRESCAN)];
            let start = front.trim_ascii_start().to_ascii_lowercase();
            if start.starts_with(b"<!doctype html") || start.starts_with(b"<html") {
                return Some(BodyKind::Html);
            }
            let text = !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok();
            text.then_some(BodyKind::Plain)
        }
        _ if mime.starts_with("text/") => Some(BodyKind::Plain),
        _ => matches!(subtype, "json" | "xml" | "javascript" | "yaml" | "x-yaml" | "toml" | "x-sh")
            .then_some(BodyKind::Plain),
    }
}

/// The character set that a page declares: `<meta charset=…>`, or the older form.
fn charset_of_page(bytes: &[u8]) -> Option<&'static Encoding> {
    let front = String::from_utf8_lossy(&bytes[..bytes.len().min(PRESCAN)]).to_ascii_lowercase();
    let behind = &front[front.find("<meta")?..];
    let value =
        behind[behind.find("charset=")? + "charset=".len()..].trim_start_matches(['"', '\'']);
    let end = value.find(|c: char| !c.is_ascii_alphanumeric() && !"-_:.".contains(c));
    Encoding::for_label(&value.as_bytes()[..end.unwrap_or(value.len())])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};
    use std::io::Write;

    fn body(content_type: &str, packed: &str, bytes: &[u8]) -> PageBody {
        let (content_type, packed) = (content_type.to_owned(), packed.to_owned());
        PageBody { content_type, content_encoding: packed, bytes: bytes.to_vec(), cut: false }
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut packer = GzEncoder::new(Vec::new(), Compression::best());
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap()
    }

    #[test]
    fn kinds_and_letters() {
        for (content_type, bytes, kind, text) in [
            ("text/html; charset=utf-8", &b"<p>\xc3\xa4"[..], BodyKind::Html, "<p>ä"),
            ("Text/HTML; Charset=\"ISO-8859-1\"", b"<p>\xe4", BodyKind::Html, "<p>ä"),
            (
                "text/html",
                b"<meta charset='windows-1252'>\x80",
                BodyKind::Html,
                "<meta charset='windows-1252'>€",
            ),
            (
                "text/html",
                b"<meta http-equiv=x content='text/html; charset=koi8-r'>\xc1",
                BodyKind::Html,
                "<meta http-equiv=x content='text/html; charset=koi8-r'>а",
            ),
            ("text/plain; charset=nonsense", b"a\xff", BodyKind::Plain, "a\u{fffd}"),
            ("text/plain; charset=iso-8859-1", b"\xef\xbb\xbfa", BodyKind::Plain, "a"),
            ("application/json", b"{}", BodyKind::Plain, "{}"),
            ("application/ld+json", b"{}", BodyKind::Plain, "{}"),
            ("", b"  <!DOCTYPE html><p>", BodyKind::Html, "  <!DOCTYPE html><p>"),
            ("application/octet-stream", b"words", BodyKind::Plain, "words"),
        ] {
            let read = super::decode(body(content_type, "", bytes)).unwrap();
            assert_eq!((read.kind, read.text.as_str()), (kind, text), "{content_type}");
        }
        for (content_type, bytes, words) in [
            ("application/pdf", &b"%PDF"[..], "application/pdf"),
            ("image/png", b"\x89PNG", "image/png"),
            ("", b"a\0b", "not text"),
        ] {
            let why = super::decode(body(content_type, "", bytes)).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }

    #[test]
    fn only_what_begins_as_an_image_may_be_as_long_as_one() {
        for (start, most) in [
            (&b"\x89PNG\r\n\x1a\n"[..], IMAGE_MAX_BYTES),
            (b"\xff\xd8\xff\xe0", IMAGE_MAX_BYTES),
            (b"<svg xmlns", MAX_BYTES),
            (b"", MAX_BYTES),
        ] {
            assert_eq!(most_bytes(start), most, "{start:?}");
        }
    }

    #[test]
    fn what_is_packed_is_unpacked_within_the_bound() {
        let packed = gzip(b"words");
        assert_eq!(decode(body("text/plain", "gzip", &packed)).unwrap().text, "words");
        let mut packer = ZlibEncoder::new(Vec::new(), Compression::best());
        packer.write_all(b"words").unwrap();
        let deflated = packer.finish().unwrap();
        assert_eq!(decode(body("text/plain", "deflate", &deflated)).unwrap().text, "words");
        // A bomb of 64 MiB.
        let read = decode(body("text/plain", "gzip", &gzip(&vec![b'a'; 64 << 20]))).unwrap();
        assert_eq!((read.text.len(), read.cut), (MAX_BYTES, true));
        // What came of a longer one.
        let many: String = (0..4000).map(|number| (number * 7919 % 10_007).to_string()).collect();
        let packed = gzip(many.as_bytes());
        let half =
            PageBody { cut: true, ..body("text/plain", "gzip", &packed[..packed.len() / 2]) };
        assert!(decode(half).is_ok_and(|read| read.cut));
        for (packed, bytes, words) in
            [("gzip", &b"plain words"[..], "cannot be decompressed"), ("br", b"x", "not supported")]
        {
            let why = decode(body("text/plain", packed, bytes)).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }
}
