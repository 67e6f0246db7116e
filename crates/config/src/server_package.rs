//! The package of an MCP server that `agentd mcp install` fetched: the key `package` of `[mcp.NAME]`. Pure.
//! For `mcp`, `edit_servers`, `agentd mcp` and the supervisor, which compares the lock before each start.

use data_encoding::HEXLOWER;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Length of a digest in hexadecimal digits, and of its beginning in the name of a directory.
const DIGITS: usize = 64;
pub(crate) const IN_NAME: usize = 16;

/// Where packages come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackageSource {
    /// npm's registry.
    Npm,
    /// Python's package index.
    Pypi,
}

impl PackageSource {
    const ALL: [Self; 2] = [Self::Npm, Self::Pypi];

    /// As it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pypi => "pypi",
        }
    }

    /// The one of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.name() == name)
    }

    /// The name of the file with the hashes of all packages, in the package's directory.
    #[must_use]
    pub fn lock_file(self) -> &'static str {
        match self {
            Self::Npm => "package-lock.json",
            Self::Pypi => "requirements.lock",
        }
    }
}

/// A package as it was installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerPackage {
    /// Where it is from.
    pub source: PackageSource,
    /// Its name there.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The SHA-256 digest of its lock file.
    pub lock: String,
}

/// The fields of the key.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    from: String,
    name: String,
    version: String,
    lock: String,
}

impl ServerPackage {
    /// The value of the key.
    ///
    /// # Errors
    /// The form that it should have.
    pub(crate) fn read(value: &Value) -> Result<Self, String> {
        let wanted = |why: &str| format!("a server whose `package` is as installed: {why}");
        let written: Written =
            serde_json::from_value(value.clone()).map_err(|error| wanted(&error.to_string()))?;
        let source = PackageSource::parse(&written.from);
        let source = source.ok_or_else(|| wanted("`from` is \"npm\" or \"pypi\""))?;
        let is_digest = written.lock.len() == DIGITS && written.lock.bytes().all(is_digit);
        let Written { name, version, lock, .. } = written;
        match is_digest {
            true => Ok(Self { source, name, version, lock }),
            false => Err(wanted("`lock` is a SHA-256 digest of 64 hexadecimal digits")),
        }
    }

    /// The digest of a lock file with this text.
    #[must_use]
    pub fn digest(lock: &[u8]) -> String {
        HEXLOWER.encode(&Sha256::digest(lock))
    }

    /// The name of its directory, for the server of this name.
    #[must_use]
    pub fn dir_name(&self, server: &str) -> String {
        format!("{server}-{}", self.lock.get(..IN_NAME).unwrap_or(&self.lock))
    }

    /// `npm:name@version`.
    #[must_use]
    pub fn in_words(&self) -> String {
        format!("{}:{}@{}", self.source.name(), self.name, self.version)
    }
}

/// True if a directory of this name has a package for this server.
pub(crate) fn is_dir_of(server: &str, dir: &str) -> bool {
    let digest = dir.strip_prefix(server).and_then(|rest| rest.strip_prefix('-'));
    digest.is_some_and(|digest| digest.len() == IN_NAME && digest.bytes().all(is_digit))
}

fn is_digit(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn a_package_is_read_in_full_or_not_at_all() {
        let lock = ServerPackage::digest(b"");
        let good = json!({"from": "npm", "name": "@a/b", "version": "1.2.3", "lock": lock});
        let package = ServerPackage::read(&good).unwrap();
        assert_eq!(package.in_words(), "npm:@a/b@1.2.3");
        assert_eq!(package.dir_name("x"), format!("x-{}", &lock[..16]));
        for (key, value, why) in [
            ("from", json!("cargo"), "\"npm\" or \"pypi\""),
            ("lock", json!("../../etc"), "64 hexadecimal digits"),
            ("lock", json!("é".repeat(32)), "64 hexadecimal digits"),
            ("version", Value::Null, "expected a string"),
            ("dir", json!("/"), "dir"),
        ] {
            let mut bad = good.clone();
            bad[key] = value;
            let said = ServerPackage::read(&bad).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn a_directory_belongs_to_the_server_of_its_name_alone() {
        assert!(is_dir_of("a", "a-0123456789abcdef"));
        for other in ["a", "a-", "a-0123456789abcde", "a-b-0123456789abcdef", "a-0123456789ABCDEF"]
        {
            assert!(!is_dir_of("a", other), "{other}");
        }
        assert!(is_dir_of("a-b", "a-b-0123456789abcdef"));
    }
}
