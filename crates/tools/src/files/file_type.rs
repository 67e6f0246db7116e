//! The type of a file: by its file system entry, and by its first bytes.

use std::fs::FileType;
use std::os::unix::fs::FileTypeExt;

/// The way on from text in another encoding. Each of them decodes nearly any bytes, and the wrong one spoils the
/// text, so none is said to be the one.
pub(crate) const NOT_UTF8_HINT: &str = "It has another encoding. Find out which, for example by the language of \
    its text and with bash: iconv -f GB18030 -t UTF-8 FILE | head, the same with SHIFT_JIS, EUC-JP, BIG5, EUC-KR, \
    WINDOWS-1251 or WINDOWS-1252. Only where the text reads right, convert it into a new file; write it back in its \
    own encoding.";

/// Number of bytes that decide whether a file is text.
pub(crate) const SNIFFED: usize = 8 * 1024;

/// A type of the file system in words with its article.
pub(crate) fn describe(kind: FileType) -> &'static str {
    if kind.is_dir() {
        "a directory"
    } else if kind.is_symlink() {
        "a link"
    } else if kind.is_fifo() {
        "a FIFO"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_char_device() || kind.is_block_device() {
        "a device"
    } else {
        "a file"
    }
}

/// The letter of a type in a listing.
pub(crate) fn letter(kind: FileType) -> char {
    if kind.is_dir() {
        'd'
    } else if kind.is_symlink() {
        'l'
    } else if kind.is_fifo() {
        'p'
    } else if kind.is_socket() {
        's'
    } else if kind.is_char_device() {
        'c'
    } else if kind.is_block_device() {
        'b'
    } else {
        'f'
    }
}

/// First bytes that name a binary format, the longer before the shorter.
const SIGNATURES: &[(&[u8], &str)] = &[
    (b"SQLite format 3\0", "SQLite database"),
    (b"\x89PNG\r\n\x1a\n", "PNG image"),
    (b"!<arch>\n", "static library"),
    (b"GIF87a", "GIF image"),
    (b"GIF89a", "GIF image"),
    (b"\xfd7zXZ\0", "xz archive"),
    (b"7z\xbc\xaf\x27\x1c", "7-Zip archive"),
    (b"Rar!\x1a\x07", "RAR archive"),
    (b"%PDF-", "PDF document"),
    (b"\x7fELF", "ELF executable or library"),
    (b"\0asm", "WebAssembly module"),
    (b"PK\x03\x04", "ZIP archive (or a document in one)"),
    (b"\x28\xb5\x2f\xfd", "zstd archive"),
    (b"\xca\xfe\xba\xbe", "Java class or Mach-O file"),
    (b"\xcf\xfa\xed\xfe", "Mach-O executable"),
    (b"wOF2", "WOFF2 font"),
    (b"OggS", "Ogg media"),
    (b"fLaC", "FLAC audio"),
    (b"\0\0\x01\0", "icon"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"ID3", "MP3 audio"),
    (b"BZh", "bzip2 archive"),
    (b"\x1f\x8b", "gzip archive"),
];

/// True if a file begins with the byte order mark of UTF-16.
pub(crate) fn is_utf16(start: &[u8]) -> bool {
    start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff")
}

/// The type of a binary file by its first bytes; `None` for text.
pub(crate) fn binary_type(start: &[u8]) -> Option<&'static str> {
    let known =
        SIGNATURES.iter().find(|(bytes, _)| start.starts_with(bytes)).map(|(_, name)| *name);
    if start.starts_with(b"RIFF") && start.get(8..12) == Some(b"WEBP") {
        return Some("WebP image");
    }
    if is_utf16(start) {
        return Some("UTF-16 text");
    }
    match known {
        // Short text signatures count only together with a byte that text does not have.
        Some("bzip2 archive" | "MP3 audio" | "Ogg media" | "FLAC audio" | "WOFF2 font") => {
            start.contains(&0).then_some(known?)
        }
        Some(name) => Some(name),
        None if start.get(4..8) == Some(b"ftyp") && start.contains(&0) => Some("MP4 or HEIF media"),
        None if start.starts_with(b"MZ") && start.contains(&0) => Some("Windows executable"),
        None if start.contains(&0) => Some("unknown binary type"),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_files_by_their_first_bytes() {
        for (start, expected) in [
            (&b"fn main() {}"[..], None),
            (b"", None),
            (b"PK is short for", None),
            (b"ID3 tags are text here", None),
            (b"caf\xe9", None),
            (b"\x7fELF\x02", Some("ELF executable or library")),
            (b"\x89PNG\r\n\x1a\n", Some("PNG image")),
            (b"%PDF-1.7", Some("PDF document")),
            (b"a\0b", Some("unknown binary type")),
            (b"\xff\xfea\0", Some("UTF-16 text")),
            (b"MZ\0", Some("Windows executable")),
        ] {
            assert_eq!(binary_type(start), expected, "{start:?}");
        }
    }
}
