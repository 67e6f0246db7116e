//! Which messages of a command reach the person's ssh agent: signatures of git's, by the keys that the
//! person's settings name. Pure. The protocol is draft-ietf-sshm-ssh-agent, the signed data are those of
//! OpenSSH's PROTOCOL.sshsig. A login signs data of another form, so it cannot pass.

use super::fields::{WireReader, put};
use protocol::tool::SigningKey;

const FAILURE: u8 = 5;
const REQUEST_IDENTITIES: u8 = 11;
const IDENTITIES_ANSWER: u8 = 12;
const SIGN_REQUEST: u8 = 13;
const SIGN_RESPONSE: u8 = 14;

/// Begins the data of each signature that is not a login.
const MAGIC: &[u8] = b"SSHSIG";
/// The namespace of git's signatures. Signatures of files and mails have others.
const NAMESPACE: &[u8] = b"git";
/// The hashes of that format, with their length.
const HASHES: [(&[u8], usize); 2] = [(b"sha256", 32), (b"sha512", 64)];
/// None, and the two by which a key of RSA signs with SHA-256 or SHA-512.
const FLAGS: [u32; 3] = [0, 2, 4];

/// A message that a command may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentRequest {
    /// Which keys there are.
    Identities,
    /// A signature by the key with this index.
    Sign(usize),
}

/// Why a message was not passed on, or not answered with a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each says what it is")]
pub enum RequestRefusal {
    #[error("ssh agent messages of type {0} are not forwarded")]
    Kind(u8),
    #[error("the data to sign is not a git commit or tag")]
    NotGit,
    #[error("user.signingKey of the user's git settings names another key")]
    OtherKey,
    #[error("the message is malformed")]
    Malformed,
    #[error("the message is too long")]
    TooLong,
    #[error("the call has reached its limit of signatures")]
    TooMany,
    #[error("the ssh agent did not sign")]
    ByAgent,
}

/// Judges a message, given without its length.
pub fn judge(message: &[u8], keys: &[SigningKey]) -> Result<AgentRequest, RequestRefusal> {
    match message.split_first() {
        None => Err(RequestRefusal::Malformed),
        Some((&REQUEST_IDENTITIES, [])) => Ok(AgentRequest::Identities),
        Some((&REQUEST_IDENTITIES, _)) => Err(RequestRefusal::Malformed),
        Some((&SIGN_REQUEST, rest)) => sign(rest, keys).map(AgentRequest::Sign),
        Some((&kind, _)) => Err(RequestRefusal::Kind(kind)),
    }
}

fn sign(rest: &[u8], keys: &[SigningKey]) -> Result<usize, RequestRefusal> {
    let mut fields = WireReader::new(rest);
    let read = (fields.string(), fields.string(), fields.number());
    let (Some(key), Some(data), Some(flags)) = read else { return Err(RequestRefusal::Malformed) };
    if !fields.is_at_end() || !FLAGS.contains(&flags) {
        return Err(RequestRefusal::Malformed);
    }
    if !is_of_git(data) {
        return Err(RequestRefusal::NotGit);
    }
    keys.iter().position(|known| known.blob == key).ok_or(RequestRefusal::OtherKey)
}

fn is_of_git(data: &[u8]) -> bool {
    let Some(rest) = data.strip_prefix(MAGIC) else { return false };
    let mut fields = WireReader::new(rest);
    let (namespace, reserved) = (fields.string(), fields.string());
    let (hash, digest) = (fields.string(), fields.string());
    let is_hash = HASHES
        .iter()
        .any(|(name, length)| hash == Some(name) && digest.map(<[u8]>::len) == Some(*length));
    namespace == Some(NAMESPACE) && reserved == Some(b"") && is_hash && fields.is_at_end()
}

/// The answer to a message that was not passed on.
pub fn failure() -> Vec<u8> {
    vec![FAILURE]
}

/// The answer to `Allowed::Identities`.
pub fn identities(keys: &[SigningKey]) -> Vec<u8> {
    let mut answer = vec![IDENTITIES_ANSWER];
    answer.extend(u32::try_from(keys.len()).unwrap_or_default().to_be_bytes());
    for key in keys {
        put(&mut answer, &key.blob);
        put(&mut answer, key.comment.as_bytes());
    }
    answer
}

/// Asks an agent which keys it has.
pub fn identities_request() -> Vec<u8> {
    vec![REQUEST_IDENTITIES]
}

/// The keys that an agent says it has; `None` where that is no answer.
pub fn listed(answer: &[u8]) -> Option<Vec<&[u8]>> {
    let rest = answer.strip_prefix(&[IDENTITIES_ANSWER])?;
    let mut fields = WireReader::new(rest);
    let count = fields.number()?;
    let mut keys = Vec::new();
    for _ in 0..count {
        keys.push(fields.string()?);
        fields.string()?;
    }
    fields.is_at_end().then_some(keys)
}

/// True for an answer that holds a signature.
pub fn is_signature(answer: &[u8]) -> bool {
    answer.first() == Some(&SIGN_RESPONSE)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn keys() -> Vec<SigningKey> {
        [b"one", b"two"]
            .map(|blob| SigningKey { blob: blob.to_vec(), comment: String::new() })
            .into()
    }

    fn strings(parts: &[&[u8]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        parts.iter().for_each(|part| put(&mut bytes, part));
        bytes
    }

    fn signed(magic: &[u8], parts: &[&[u8]]) -> Vec<u8> {
        [magic, &strings(parts)].concat()
    }

    fn request(key: &[u8], data: &[u8], flags: u32) -> Vec<u8> {
        [&[SIGN_REQUEST][..], &strings(&[key, data]), &flags.to_be_bytes()].concat()
    }

    #[test]
    fn a_signature_of_git_s_by_a_listed_key_passes() {
        for (hash, length) in HASHES {
            let data = signed(MAGIC, &[b"git", b"", hash, &vec![7; length]]);
            for flags in FLAGS {
                assert_eq!(
                    judge(&request(b"two", &data, flags), &keys()),
                    Ok(AgentRequest::Sign(1))
                );
            }
        }
        assert_eq!(judge(&[REQUEST_IDENTITIES], &keys()), Ok(AgentRequest::Identities));
    }

    #[test]
    fn nothing_else_is_signed() {
        let hash = [7; 32];
        let good = signed(MAGIC, &[b"git", b"", b"sha256", &hash]);
        // As `ssh` asks for it: session, then SSH_MSG_USERAUTH_REQUEST.
        let login =
            [&strings(&[&hash])[..], &[50], &strings(&[b"ann", b"ssh-connection"])].concat();
        let cases: Vec<(&str, Vec<u8>)> = vec![
            ("a login", login),
            ("the namespace file", signed(MAGIC, &[b"file", b"", b"sha256", &hash])),
            ("a longer namespace", signed(MAGIC, &[b"git\0", b"", b"sha256", &hash])),
            ("a namespace in capitals", signed(MAGIC, &[b"GIT", b"", b"sha256", &hash])),
            ("no namespace", signed(MAGIC, &[b"", b"", b"sha256", &hash])),
            ("something reserved", signed(MAGIC, &[b"git", b"x", b"sha256", &hash])),
            ("another hash", signed(MAGIC, &[b"git", b"", b"sha1", &hash[..20]])),
            ("a short hash", signed(MAGIC, &[b"git", b"", b"sha256", &hash[..31]])),
            ("a hash of the other", signed(MAGIC, &[b"git", b"", b"sha512", &hash])),
            ("more behind it", [&good[..], b"x"].concat()),
            ("less of it", good[..good.len() - 1].to_vec()),
            ("another magic", signed(b"SSHSIH", &[b"git", b"", b"sha256", &hash])),
            ("nothing", Vec::new()),
        ];
        for (what, data) in cases {
            let judged = judge(&request(b"one", &data, 0), &keys());
            assert_eq!(judged, Err(RequestRefusal::NotGit), "{what}");
        }
        assert_eq!(judge(&request(b"three", &good, 0), &keys()), Err(RequestRefusal::OtherKey));
        assert_eq!(judge(&request(b"one", &good, 0), &[]), Err(RequestRefusal::OtherKey));
        for flags in [1, 3, 6, 8, u32::MAX] {
            let judged = judge(&request(b"one", &good, flags), &keys());
            assert_eq!(judged, Err(RequestRefusal::Malformed), "{flags}");
        }
        let whole = request(b"one", &good, 0);
        for end in 1..whole.len() {
            assert!(judge(&whole[..end], &keys()).is_err(), "{end}");
        }
        assert!(judge(&[&whole[..], b"x"].concat(), &keys()).is_err());
        assert!(judge(&[REQUEST_IDENTITIES, 0], &keys()).is_err());
    }

    /// Adding, removing and locking keys, smart cards, extensions: all other kinds.
    #[test]
    fn no_other_kind_of_message_passes() {
        for kind in (0..=u8::MAX).filter(|kind| ![11, 13].contains(kind)) {
            assert_eq!(judge(&[kind, 0, 0], &keys()), Err(RequestRefusal::Kind(kind)));
        }
    }

    #[test]
    fn the_keys_that_are_listed_are_read_again() {
        let keys = keys();
        let answer = identities(&keys);
        let blobs: Vec<&[u8]> = keys.iter().map(|key| key.blob.as_slice()).collect();
        assert_eq!(listed(&answer), Some(blobs));
        assert_eq!(listed(&answer[..answer.len() - 1]), None);
        assert_eq!(listed(&[IDENTITIES_ANSWER, 255, 255, 255, 255]), None);
        assert_eq!(listed(&failure()), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_judged(message in proptest::collection::vec(any::<u8>(), 0..200)) {
            let judged = judge(&message, &keys());
            prop_assert!(judged.is_err() || message == [REQUEST_IDENTITIES]);
            let _ = listed(&message);
        }

        #[test]
        fn what_passes_is_byte_for_byte_a_signature_of_git_s(
            at in any::<proptest::sample::Index>(), byte in any::<u8>()
        ) {
            let good = request(b"one", &signed(MAGIC, &[b"git", b"", b"sha256", &[7; 32]]), 0);
            let mut changed = good.clone();
            let at = at.index(changed.len());
            changed[at] = byte;
            // The hash may be any, and the flags one of three.
            let is_free = (good.len() - 36..good.len() - 4).contains(&at)
                || (at == good.len() - 1 && FLAGS.contains(&u32::from(byte)));
            prop_assert_eq!(judge(&changed, &keys()).is_ok(), is_free || changed == good);
        }
    }
}
