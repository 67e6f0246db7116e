//! Paths in JSON: text where they are UTF-8, hex where they are not, so that none is lost.

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A path as the kernel has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "PathSpelling", into = "PathSpelling")]
pub struct StoredPath(pub PathBuf);

/// The two spellings on disk.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum PathSpelling {
    Text(String),
    Hex { hex: String },
}

impl<P: AsRef<Path>> From<P> for StoredPath {
    fn from(path: P) -> Self {
        Self(path.as_ref().to_owned())
    }
}

impl From<StoredPath> for PathSpelling {
    fn from(path: StoredPath) -> Self {
        match path.0.into_os_string().into_string() {
            Ok(text) => Self::Text(text),
            Err(raw) => Self::Hex { hex: HEXLOWER.encode(raw.as_bytes()) },
        }
    }
}

impl TryFrom<PathSpelling> for StoredPath {
    type Error = String;

    fn try_from(written: PathSpelling) -> Result<Self, String> {
        match written {
            PathSpelling::Text(text) => Ok(Self(PathBuf::from(text))),
            PathSpelling::Hex { hex } => {
                let bytes = HEXLOWER_PERMISSIVE.decode(hex.as_bytes());
                let bytes = bytes.map_err(|_| "a path's hex digits are not pairs of 0 to f")?;
                Ok(Self(PathBuf::from(OsString::from_vec(bytes))))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_path_comes_back() {
        for bytes in [&b"/home/a b"[..], "/tmp/\u{fc}".as_bytes(), b"/tmp/\xff\xfe", b""] {
            let path = StoredPath(PathBuf::from(OsString::from_vec(bytes.to_vec())));
            let json = serde_json::to_string(&path).unwrap();
            assert_eq!(serde_json::from_str::<StoredPath>(&json).unwrap(), path, "{json}");
        }
    }
}
