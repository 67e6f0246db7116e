//! Public keys in `.pub` files and in git's settings. Pure.

use super::fields::WireReader;
use data_encoding::{BASE64, BASE64_NOPAD};
use protocol::hidden::line_for_model;
use protocol::tool::SigningKey;
use sha2::{Digest, Sha256};

/// Longest comment that is kept.
const COMMENT_CHARS: usize = 100;

/// The public key of a line: `ssh-ed25519 AAAA… comment`. `None` for any other text.
#[must_use]
pub fn signing_key(line: &str) -> Option<SigningKey> {
    let mut words = line.trim().splitn(3, [' ', '\t']);
    let (kind, text) = (words.next()?, words.next()?);
    let blob = BASE64.decode(text.as_bytes()).ok()?;
    let named = WireReader::new(&blob).string()?;
    let comment: String = line_for_model(words.next().unwrap_or_default().trim())
        .chars()
        .take(COMMENT_CHARS)
        .collect();
    (named == kind.as_bytes()).then_some(SigningKey { blob, comment })
}

/// The key as git's `user.signingKey` takes it in place of a file.
#[must_use]
pub fn literal(key: &SigningKey) -> String {
    let kind = WireReader::new(&key.blob).string().unwrap_or_default();
    format!("key::{} {}", String::from_utf8_lossy(kind), BASE64.encode(&key.blob))
}

/// The key as `ssh-keygen -l` names it.
#[must_use]
pub fn fingerprint(key: &SigningKey) -> String {
    format!("SHA256:{}", BASE64_NOPAD.encode(&Sha256::digest(&key.blob)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const KEY: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";

    #[test]
    fn a_public_key_is_read_named_and_written_again() {
        let key = signing_key(&format!("{KEY} ann@host two\n")).unwrap();
        assert_eq!(key.comment, "ann@host two");
        assert_eq!(literal(&key), format!("key::{KEY}"));
        // GitHub's published fingerprint of this key.
        assert_eq!(fingerprint(&key), "SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU");
    }

    #[test]
    fn no_other_text_is_a_public_key() {
        for text in [
            "",
            "ssh-ed25519",
            "-----BEGIN OPENSSH PRIVATE KEY-----",
            "ssh-rsa AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl",
            "ssh-ed25519 not-base64!",
            "3AA5C34371567BD2",
        ] {
            assert_eq!(signing_key(text), None, "{text}");
        }
    }
}
