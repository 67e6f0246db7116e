//! Strings and numbers as ssh writes them (RFC 4251), and messages behind their length.

use std::io::{self, Read, Write};

/// Bytes that are read field by field.
#[derive(Debug, Clone, Copy)]
pub struct WireReader<'a>(&'a [u8]);

impl<'a> WireReader<'a> {
    /// From the first field.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next field as a number.
    pub fn number(&mut self) -> Option<u32> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_be_bytes(*number))
    }

    /// The next field as a string.
    pub fn string(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (string, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(string)
    }

    /// True behind the last field.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }
}

/// Appends a string.
pub fn put(bytes: &mut Vec<u8>, string: &[u8]) {
    let length = u32::try_from(string.len()).unwrap_or(u32::MAX);
    bytes.extend(length.to_be_bytes());
    bytes.extend_from_slice(string);
}

/// The next message; `None` at the end of the stream.
///
/// # Errors
/// The stream's, and `FileTooLarge` for a message of more than `most` bytes.
pub fn receive(mut from: impl Read, most: usize) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    match from.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let length = u32::from_be_bytes(length) as usize;
    if length > most {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut message = vec![0; length];
    from.read_exact(&mut message)?;
    Ok(Some(message))
}

/// Sends a message behind its length.
///
/// # Errors
/// The stream's.
pub fn send(mut to: impl Write, message: &[u8]) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(message.len() + 4);
    put(&mut bytes, message);
    to.write_all(&bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn messages_have_a_bound_and_an_end() {
        let mut bytes = Vec::new();
        send(&mut bytes, b"abc").unwrap();
        send(&mut bytes, b"").unwrap();
        let mut stream = bytes.as_slice();
        assert_eq!(receive(&mut stream, 3).unwrap().as_deref(), Some(&b"abc"[..]));
        assert_eq!(receive(&mut stream, 3).unwrap().as_deref(), Some(&b""[..]));
        assert_eq!(receive(&mut stream, 3).unwrap(), None);
        let error = receive(bytes.as_slice(), 2).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert!(receive(&bytes[..5], 3).is_err());
    }
}
