//! Texts that people wrote for models: read without waiting, never longer than is of use. Used by this
//! crate and by the instructions of the store.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Reads up to this many bytes of a regular file; a note in the text reports a truncation. `None`
/// if nothing is there; an error text if it cannot be used.
pub fn read(path: &Path, most: usize) -> Result<Option<String>, String> {
    Ok(read_cut(path, most)?.map(|(text, _)| text))
}

/// The same, with the number of bytes that were left out.
pub(crate) fn read_cut(path: &Path, most: usize) -> Result<Option<(String, u64)>, String> {
    // A link may point to the same kind of text under another name, but not to other files: no
    // person was asked whether those may be read.
    let real = path.canonicalize();
    if let Ok(real) = &real
        && path.is_symlink()
        && real.extension() != path.extension()
    {
        return Err(format!("it is a link to {}, which is no .md file", real.display()));
    }
    // Without waiting: a FIFO in its place would hold the store up for ever.
    let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
    let opened = real.and_then(|real| OpenOptions::new().read(true).custom_flags(flags).open(real));
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return match path.symlink_metadata() {
                Ok(_) => Err("it is a link that leads nowhere".to_owned()),
                Err(_) => Ok(None),
            };
        }
        Err(error) => return Err(format!("it cannot be read: {error}")),
    };
    let meta = file.metadata().map_err(|error| format!("it cannot be read: {error}"))?;
    if !meta.is_file() {
        return Err("it is no regular file".to_owned());
    }
    let mut bytes = Vec::new();
    let limit = u64::try_from(most).unwrap_or(u64::MAX);
    file.take(limit)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("it cannot be read: {error}"))?;
    let left_out = meta.len().saturating_sub(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
    if left_out > 0 {
        // Not in the middle of a letter.
        let whole = bytes.utf8_chunks().next().map_or(0, |chunk| chunk.valid().len());
        if bytes.len() - whole < 4 {
            bytes.truncate(whole);
        }
    }
    let mut text = String::from_utf8(bytes).map_err(|_| "it is no text in UTF-8".to_owned())?;
    if left_out > 0 {
        text.push_str(&format!("\n[… {left_out} bytes more are left out …]\n"));
    }
    Ok(Some((text.replace("\r\n", "\n"), left_out)))
}
