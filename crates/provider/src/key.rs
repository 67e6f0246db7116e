//! The key, held by this process alone: masked wherever it could be printed, wiped when dropped.

use std::fs::File;
use std::os::unix::fs::FileExt;
use zeroize::Zeroizing;

/// Longest key in bytes. No vendor's comes near it; it stops a wrong file from being read whole.
const KEY_CAP: usize = 16 << 10;

/// A key as it is read. It is wiped; its copy in the header, which the HTTP library keeps and frees,
/// is not.
pub struct ApiKey(Zeroizing<String>);

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The descriptor cannot be read.
    #[error("the key cannot be read from its descriptor")]
    Read(#[source] std::io::Error),
    /// Nothing but white space.
    #[error("the key is empty")]
    Empty,
    /// It cannot be a header.
    #[error("the key holds characters that no key has, or is longer than {KEY_CAP} bytes")]
    NotAKey,
}

impl ApiKey {
    /// Reads a key from the start of a file, whatever its offset: a restarted provider gets the
    /// same open file again. Surrounding white space is trimmed.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn read(file: &File) -> Result<Self, KeyError> {
        let mut bytes = Zeroizing::new(vec![0; KEY_CAP + 1]);
        let mut length = 0;
        while length < bytes.len() {
            match file.read_at(&mut bytes[length..], length as u64) {
                Ok(0) => break,
                Ok(more) => length += more,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(KeyError::Read(error)),
            }
        }
        let text = std::str::from_utf8(&bytes[..length]).map_err(|_| KeyError::NotAKey)?;
        let text = text.trim();
        if text.is_empty() {
            return Err(KeyError::Empty);
        }
        if length > KEY_CAP || !text.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(KeyError::NotAKey);
        }
        Ok(Self(Zeroizing::new(text.to_owned())))
    }

    /// For the one header it is sent in.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(…)")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::{Read, Write};

    fn file(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    #[test]
    fn a_key_is_read_from_the_beginning_twice_and_never_shown() {
        let mut file = file(b" sk-ant-1\n");
        for _ in 0..2 {
            let key = ApiKey::read(&file).unwrap();
            assert_eq!(key.expose(), "sk-ant-1");
            assert_eq!(format!("{key:?}"), "Key(…)");
        }
        assert_eq!(file.read(&mut [0; 1]).unwrap(), 0, "the offset is untouched");
    }

    #[test]
    fn what_is_no_key_is_refused() {
        assert!(matches!(ApiKey::read(&file(b" \n")), Err(KeyError::Empty)));
        for bytes in [&b"a b"[..], b"a\nb", b"\xff", &[b'k'; KEY_CAP + 1]] {
            assert!(matches!(ApiKey::read(&file(bytes)), Err(KeyError::NotAKey)));
        }
        assert!(ApiKey::read(&file(&[b'k'; KEY_CAP])).is_ok());
    }
}
