//! Keys of a proxy for hosts, added to the requests that `signable` names. Pure, except that keys
//! are read from descriptors.

use crate::signable::{Repositories, SignedIn, strip_rerouters};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue, SET_COOKIE};
use protocol::hosts::HostPort;
use protocol::tool::SignInAccount;
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use zeroize::Zeroizing;

/// Limit of a key in bytes, so that a wrong file is not read whole.
const CAP: usize = 16 << 10;
/// The authorization header for one host, or why there is none.
pub(crate) struct HostCredential {
    host: HostPort,
    header: Result<HeaderValue, String>,
    /// Git repositories of the host that answered through this proxy.
    pub(crate) repositories: Repositories,
}

impl HostCredential {
    /// Reads the key of an account from its sealed memory file.
    pub(crate) fn read(account: SignInAccount, key: OwnedFd) -> Self {
        let SignInAccount { host, user } = account;
        let header = read(&File::from(key)).and_then(|key| header(user.as_deref(), &key));
        Self { host, header, repositories: Repositories::default() }
    }

    pub(crate) fn is_for(&self, name: &str, port: u16) -> bool {
        self.host.is(name, port)
    }

    /// Removes the command's own authorization, and adds the key to a request that may have it.
    ///
    /// # Errors
    /// Why there is no key.
    pub(crate) fn apply(&self, signed: SignedIn, headers: &mut HeaderMap) -> Result<(), String> {
        headers.remove(AUTHORIZATION);
        match signed {
            SignedIn::Yes => {
                strip_rerouters(headers);
                headers.insert(AUTHORIZATION, self.header.clone()?);
            }
            SignedIn::No => {}
        }
        Ok(())
    }
}

impl SignedIn {
    /// Removes cookies from the response: they would authorize later requests, also ones that
    /// write.
    pub(crate) fn strip(self, answer: &mut HeaderMap) {
        if self == Self::Yes {
            answer.remove(SET_COOKIE);
        }
    }
}

fn read(file: &File) -> Result<Zeroizing<String>, String> {
    let mut bytes = Zeroizing::new(vec![0; CAP + 1]);
    let mut length = 0;
    // Read from the start: the offset is shared by all processes that have the descriptor.
    while length < bytes.len() {
        match file.read_at(&mut bytes[length..], length as u64) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(format!("its key cannot be read: {error}")),
        }
    }
    let text = std::str::from_utf8(&bytes[..length]).unwrap_or_default().trim();
    match text.bytes().all(|byte| byte.is_ascii_graphic()) && length <= CAP && !text.is_empty() {
        true => Ok(Zeroizing::new(text.to_owned())),
        false => Err("its key is empty, longer than 16 KiB, or has characters that are not \
                 allowed"
            .into()),
    }
}

fn header(user: Option<&str>, key: &str) -> Result<HeaderValue, String> {
    let text = Zeroizing::new(match user {
        None => format!("Bearer {key}"),
        Some(user) => {
            let both = Zeroizing::new(format!("{user}:{key}"));
            format!("Basic {}", STANDARD.encode(both.as_bytes()))
        }
    });
    let mut value =
        HeaderValue::from_str(&text).map_err(|_| "its key is not valid in a header".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::Write;

    fn credential(user: Option<&str>, key: &[u8]) -> HostCredential {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(key).unwrap();
        let host = "npm.example.org".parse().unwrap();
        HostCredential::read(SignInAccount { host, user: user.map(str::to_owned) }, file.into())
    }

    #[test]
    fn a_request_has_the_key_or_no_authorization() {
        let credential = credential(None, b" s3cret\n");
        for (signed, wanted) in [(SignedIn::Yes, &["Bearer s3cret"][..]), (SignedIn::No, &[])] {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer own"));
            headers.append(AUTHORIZATION, HeaderValue::from_static("Bearer more"));
            headers.insert("x-original-url", HeaderValue::from_static("/admin"));
            credential.apply(signed, &mut headers).unwrap();
            let sent: Vec<_> = headers.get_all(AUTHORIZATION).iter().collect();
            assert_eq!(sent, wanted, "{signed:?}");
            // A request without the key is left as it is otherwise.
            assert_eq!(headers.contains_key("x-original-url"), signed == SignedIn::No);
            assert!(!format!("{headers:?}").contains("s3cret"), "{headers:?}");
        }
    }

    #[test]
    fn an_answer_to_the_key_signs_in_no_later_request() {
        for (signed, left) in [(SignedIn::Yes, 0), (SignedIn::No, 2)] {
            let mut answer = HeaderMap::new();
            answer.append(SET_COOKIE, HeaderValue::from_static("session=1"));
            answer.append(SET_COOKIE, HeaderValue::from_static("more=2"));
            signed.strip(&mut answer);
            assert_eq!(answer.len(), left, "{signed:?}");
        }
    }

    #[test]
    fn a_user_makes_it_basic() {
        let mut headers = HeaderMap::new();
        credential(Some("ann"), b"s3cret").apply(SignedIn::Yes, &mut headers).unwrap();
        assert_eq!(headers[AUTHORIZATION], "Basic YW5uOnMzY3JldA==");
    }

    #[test]
    fn what_is_no_key_is_sent_nowhere() {
        for key in [&b""[..], b" \n", b"two words", b"two\nlines", b"\xff", &[b'k'; CAP + 1]] {
            let mut headers = HeaderMap::new();
            let put = credential(None, key).apply(SignedIn::Yes, &mut headers);
            assert!(put.is_err() && headers.is_empty(), "{put:?}");
        }
    }

    #[test]
    fn it_is_for_one_host_at_one_port() {
        let credential = credential(None, b"s3cret");
        assert!(credential.is_for("npm.example.org", 443));
        assert!(!credential.is_for("npm.example.org", 80));
        assert!(!credential.is_for("example.org", 443));
        assert!(!credential.is_for("a.npm.example.org", 443));
    }
}
