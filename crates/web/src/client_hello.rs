//! Checks the start of a tunnel: the server name in a TLS ClientHello. Pure, except
//! `check_first_message`.
//!
//! The name (SNI) is sent unencrypted. It selects the server at a shared address, so it must be the
//! host that was approved. Other protocols pass, and so does a hello without a name. The `Host:`
//! header inside the tunnel and an encrypted hello (ECH) cannot be checked.
//!
//! `rustls::server::Acceptor` reads such a hello too, but hides an address in place of the name, so that the
//! hello would pass, and knows no name of a client that sends no signature algorithms.

use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

/// Limit of a ClientHello in bytes, with the record headers: ten times one with post-quantum key
/// exchange.
const MAX_BYTES: usize = 32 << 10;
/// Lengths of a record header, and of the message header in it.
const RECORD_HEAD: usize = 5;
const MESSAGE_HEAD: usize = 4;
/// Codes of record, message and extension.
const HANDSHAKE: u8 = 0x16;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const HOST_NAME: u8 = 0;

/// Classification of the first bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ClientHello {
    /// Incomplete so far, or empty.
    Part,
    /// Another protocol.
    NotTls,
    /// A complete hello, with its name.
    Whole(Option<String>),
    /// Starts like a hello but cannot be parsed.
    Malformed,
}

/// Decision on the start of a tunnel.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TunnelStart {
    /// These bytes may be forwarded: another protocol, an end, or TLS for the right host.
    Allowed(Vec<u8>),
    /// The reason of the refusal.
    Refused(String),
}

/// Reads until the first bytes can be classified. A client that sends nothing may wait for its
/// server, without a limit; once it started a hello, it has `time` for the rest.
pub(crate) async fn check_first_message(
    from: &mut (impl AsyncRead + Unpin),
    host: &str,
    time: Duration,
) -> std::io::Result<TunnelStart> {
    let mut bytes = Vec::new();
    if from.read_buf(&mut bytes).await? == 0 {
        return Ok(TunnelStart::Allowed(bytes));
    }
    let whole = async {
        while read(&bytes) == ClientHello::Part {
            // A server ignores an incomplete hello.
            if from.read_buf(&mut bytes).await? == 0 {
                break;
            }
        }
        Ok::<_, std::io::Error>(bytes)
    };
    let Ok(bytes) = timeout(time, whole).await else {
        return Ok(TunnelStart::Refused(
            "it did not send the host name of its TLS connection in time".to_owned(),
        ));
    };
    let bytes = bytes?;
    Ok(match read(&bytes) {
        ClientHello::Part | ClientHello::NotTls | ClientHello::Whole(None) => {
            TunnelStart::Allowed(bytes)
        }
        ClientHello::Whole(Some(name)) if is_same(&name, host) => TunnelStart::Allowed(bytes),
        ClientHello::Whole(Some(name)) => {
            TunnelStart::Refused(format!("its TLS connection asks for another host, {name}"))
        }
        ClientHello::Malformed => TunnelStart::Refused(
            "the first message of its TLS connection cannot be \
                                  parsed"
                .to_owned(),
        ),
    })
}

fn is_same(name: &str, host: &str) -> bool {
    name.strip_suffix('.').unwrap_or(name).eq_ignore_ascii_case(host)
}

/// Classifies the first bytes of a client.
pub(crate) fn read(bytes: &[u8]) -> ClientHello {
    match bytes {
        [] | [HANDSHAKE] => return ClientHello::Part,
        [HANDSHAKE, 3, ..] => {}
        _ => return ClientHello::NotTls,
    }
    match message(bytes) {
        HandshakeMessage::Part if bytes.len() > MAX_BYTES => ClientHello::Malformed,
        HandshakeMessage::Part => ClientHello::Part,
        HandshakeMessage::Whole(body) => match server_name(&body) {
            Some(name) => ClientHello::Whole(name),
            None => ClientHello::Malformed,
        },
        HandshakeMessage::Malformed => ClientHello::Malformed,
    }
}

/// The first handshake message.
enum HandshakeMessage {
    Part,
    Whole(Vec<u8>),
    Malformed,
}

/// Joins the message, which may be split over several records.
fn message(bytes: &[u8]) -> HandshakeMessage {
    let mut joined = Vec::new();
    let mut rest = bytes;
    loop {
        if joined.first().is_some_and(|kind| *kind != CLIENT_HELLO) {
            return HandshakeMessage::Malformed;
        }
        if let [_, a, b, c, ..] = joined[..] {
            let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
            if length > MAX_BYTES {
                return HandshakeMessage::Malformed;
            }
            if let Some(body) = joined.get(MESSAGE_HEAD..MESSAGE_HEAD + length) {
                return HandshakeMessage::Whole(body.to_vec());
            }
        }
        let [kind, major, _, high, low, ..] = *rest else { return HandshakeMessage::Part };
        let length = usize::from(high) << 8 | usize::from(low);
        if kind != HANDSHAKE || major != 3 || length == 0 {
            return HandshakeMessage::Malformed;
        }
        let Some(payload) = rest.get(RECORD_HEAD..RECORD_HEAD + length) else {
            return HandshakeMessage::Part;
        };
        joined.extend_from_slice(payload);
        rest = &rest[RECORD_HEAD + length..];
    }
}

/// The host name in a ClientHello; `None` if it is malformed or names several.
fn server_name(hello: &[u8]) -> Option<Option<String>> {
    let mut hello = FieldReader(hello);
    // Version and random, session, ciphers, compressions.
    hello.take(2 + 32)?;
    hello.short()?;
    hello.long()?;
    hello.short()?;
    if hello.0.is_empty() {
        return Some(None);
    }
    let mut extensions = FieldReader(hello.long()?);
    let mut found = None;
    while !extensions.0.is_empty() {
        let (kind, body) = (extensions.number()?, extensions.long()?);
        if kind == SERVER_NAME {
            let mut names = FieldReader(FieldReader(body).long()?);
            while !names.0.is_empty() {
                let (kind, name) = (names.take(1)?[0], names.long()?);
                if kind != HOST_NAME || found.is_some() {
                    return None;
                }
                found = Some(String::from_utf8_lossy(name).into_owned());
            }
        }
    }
    Some(found)
}

/// Reads fields with a length prefix.
struct FieldReader<'a>(&'a [u8]);

impl<'a> FieldReader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u16> {
        let bytes = self.take(2)?;
        Some(u16::from(bytes[0]) << 8 | u16::from(bytes[1]))
    }

    /// A field with a one-byte length.
    fn short(&mut self) -> Option<&'a [u8]> {
        let length = self.take(1)?[0];
        self.take(usize::from(length))
    }

    /// A field with a two-byte length.
    fn long(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.take(usize::from(length))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// The first bytes that a real client sends when it asks for this name.
    fn hello(name: &str) -> Vec<u8> {
        let config = rustls::ClientConfig::builder_with_provider(
            rustls::crypto::ring::default_provider().into(),
        )
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
        let name = rustls::pki_types::ServerName::try_from(name.to_owned()).unwrap();
        let mut client = rustls::ClientConnection::new(config.into(), name).unwrap();
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        bytes
    }

    /// The same in records of so many bytes.
    fn in_records(hello: &[u8], size: usize) -> Vec<u8> {
        let records = hello[RECORD_HEAD..].chunks(size).map(|chunk| {
            let length = u16::try_from(chunk.len()).unwrap().to_be_bytes();
            [&[HANDSHAKE, 3, 1][..], &length, chunk].concat()
        });
        records.collect::<Vec<_>>().concat()
    }

    fn judged(bytes: &[u8], host: &str) -> TunnelStart {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let mut from = bytes;
        runtime.block_on(check_first_message(&mut from, host, Duration::from_secs(60))).unwrap()
    }

    #[test]
    fn the_name_of_a_real_client_is_read_however_it_is_split() {
        let whole = hello("allowed.test");
        assert_eq!(read(&whole), ClientHello::Whole(Some("allowed.test".to_owned())));
        for length in 0..whole.len() {
            assert_eq!(read(&whole[..length]), ClientHello::Part, "{length}");
        }
        for size in [1, 2, 3, 7, 100] {
            let split = in_records(&whole, size);
            assert_eq!(read(&split), ClientHello::Whole(Some("allowed.test".to_owned())), "{size}");
            assert_eq!(read(&split[..split.len() - 1]), ClientHello::Part, "{size}");
        }
        // An address is no name: such a hello has none.
        assert_eq!(read(&hello("192.0.2.1")), ClientHello::Whole(None));
    }

    #[test]
    fn only_the_host_that_was_judged_is_asked_for() {
        let whole = hello("allowed.test");
        assert_eq!(judged(&whole, "allowed.test"), TunnelStart::Allowed(whole.clone()));
        let TunnelStart::Refused(why) = judged(&whole, "other.test") else { panic!("it passed") };
        assert!(why.contains("allowed.test"), "{why}");
        let split = in_records(&whole, 5);
        assert!(matches!(judged(&split, "other.test"), TunnelStart::Refused(_)));
        for other in [&b""[..], b"GET / HTTP/1.1\r\n", b"SSH-2.0-x\r\n", b"\x16", b"\x16\x02x"] {
            assert_eq!(judged(other, "other.test"), TunnelStart::Allowed(other.to_vec()));
        }
        for unclear in [
            &b"\x16\x03\x01\x00\x01\x02"[..],
            b"\x16\x03\x01\x00\x00",
            b"\x16\x03\x01\x00\x04\x01\xff\xff\xff",
        ] {
            assert!(
                matches!(judged(unclear, "other.test"), TunnelStart::Refused(_)),
                "{unclear:?}"
            );
        }
    }

    /// What a library for servers does not show of a hello.
    #[test]
    fn an_address_as_the_name_and_a_hello_without_signature_algorithms_are_judged_too() {
        let whole = hello("allowed.test");
        let at = whole.windows(12).position(|it| it == b"allowed.test").unwrap();
        let mut address = whole.clone();
        address[at..at + 12].copy_from_slice(b"192.168.10.1");
        let TunnelStart::Refused(why) = judged(&address, "allowed.test") else {
            panic!("it passed")
        };
        assert!(why.contains("192.168.10.1"), "{why}");
        let mut without = whole;
        let kind = without.windows(4).position(|it| it[..3] == [0, 13, 0]).unwrap();
        without[kind..kind + 2].copy_from_slice(&[0x7a, 0x7a]);
        assert_eq!(judged(&without, "allowed.test"), TunnelStart::Allowed(without.clone()));
        assert!(matches!(judged(&without, "other.test"), TunnelStart::Refused(_)));
    }

    #[test]
    fn two_names_are_none() {
        let whole = hello("allowed.test");
        let at = whole.windows(12).position(|it| it == b"allowed.test").unwrap();
        // The list of names, twice as an extension of its own, in place of all extensions.
        let extension = &whole[at - 9..at + 12];
        let extensions_at = {
            let mut rest = FieldReader(&whole[RECORD_HEAD + MESSAGE_HEAD..]);
            rest.take(34).unwrap();
            rest.short().unwrap();
            rest.long().unwrap();
            rest.short().unwrap();
            whole.len() - rest.0.len()
        };
        let both = [extension, extension].concat();
        let length = u16::try_from(both.len()).unwrap().to_be_bytes();
        let body = [&whole[RECORD_HEAD + MESSAGE_HEAD..extensions_at], &length, &both].concat();
        assert_eq!(server_name(&body), None);
        let length = u16::try_from(extension.len()).unwrap().to_be_bytes();
        let once = [&whole[RECORD_HEAD + MESSAGE_HEAD..extensions_at], &length, extension].concat();
        assert_eq!(server_name(&once), Some(Some("allowed.test".to_owned())));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_fail(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = read(&bytes);
            let _ = read(&[&[HANDSHAKE, 3, 1, 1, 0, 1, 0, 0, 200][..], &bytes].concat());
        }
    }
}
