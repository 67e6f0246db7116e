//! The first bytes of every connection. Their layout never changes, so that two different builds
//! recognize each other before they exchange any message.

use std::fmt;

/// Magic, process id, build id.
pub const HELLO_BYTES: usize = 8 + 4 + 52;
const MAGIC: &[u8; 8] = b"agentd\0\x01";

/// Who is at the other end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// The sender's process id as it sees itself.
    pub pid: u32,
    /// `protocol::BUILD_ID` of the sender.
    pub build: String,
}

/// Bytes that are no Hello, or one of another build.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HelloError {
    /// Not one of our processes.
    #[error("the peer does not speak agentd's protocol")]
    Foreign,
    /// One of ours, of another build.
    #[error("the peer is build {theirs}, this is build {ours}; install both from one build")]
    OtherBuild {
        /// The peer's.
        theirs: String,
        /// This process's.
        ours: String,
    },
}

impl Hello {
    /// This process.
    #[must_use]
    pub fn own() -> Self {
        Self { pid: std::process::id(), build: protocol::BUILD_ID.to_owned() }
    }

    /// For the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&self.pid.to_le_bytes());
        let build = &self.build.as_bytes()[..self.build.len().min(HELLO_BYTES - 12)];
        bytes[12..12 + build.len()].copy_from_slice(build);
        bytes
    }

    /// Decodes a handshake of any build.
    ///
    /// # Errors
    /// [`HelloError::Foreign`] for anything else.
    pub fn from_bytes(bytes: &[u8; HELLO_BYTES]) -> Result<Self, HelloError> {
        let (magic, rest) = bytes.split_at(8);
        let (pid, build) = rest.split_at(4);
        if magic != MAGIC {
            return Err(HelloError::Foreign);
        }
        let pid = u32::from_le_bytes(pid.try_into().map_err(|_| HelloError::Foreign)?);
        let end = build.iter().position(|&byte| byte == 0).unwrap_or(build.len());
        let build = std::str::from_utf8(&build[..end]).map_err(|_| HelloError::Foreign)?;
        Ok(Self { pid, build: build.to_owned() })
    }

    /// True if the peer's build matches this one.
    ///
    /// # Errors
    /// [`HelloError::OtherBuild`], naming both builds.
    pub fn check(&self) -> Result<(), HelloError> {
        if self.build == protocol::BUILD_ID {
            return Ok(());
        }
        let (theirs, ours) = (self.build.clone(), protocol::BUILD_ID.to_owned());
        Err(HelloError::OtherBuild { theirs, ours })
    }
}

impl fmt::Display for Hello {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} of build {}", self.pid, self.build)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_hello_survives_the_wire_and_a_foreign_one_is_told_apart() {
        let own = Hello::own();
        assert_eq!(Hello::from_bytes(&own.to_bytes()).unwrap(), own);
        own.check().unwrap();
        let other = Hello { build: "0.0.9-cafe".into(), ..own.clone() };
        let error = other.check().unwrap_err().to_string();
        assert!(error.contains("0.0.9-cafe") && error.contains(protocol::BUILD_ID));
        let mut bytes = own.to_bytes();
        bytes[0] ^= 1;
        assert_eq!(Hello::from_bytes(&bytes), Err(HelloError::Foreign));
    }

    #[test]
    fn this_build_fits_its_field() {
        assert!(protocol::BUILD_ID.len() <= HELLO_BYTES - 12);
    }
}
