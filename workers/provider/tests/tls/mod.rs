//! A server for one request over TLS, with a certificate of an authority that no system knows.
//!
//! `ca.pem`, `stranger.pem`, `leaf.pem` and `leaf.key` were made for these tests with `openssl`, are valid for
//! localhost and a hundred years, and protect nothing.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;

/// The authority's certificate.
pub const AUTHORITY: &str = include_str!("ca.pem");

/// Another authority's, which signed nothing.
pub const STRANGER: &str = include_str!("stranger.pem");

/// Answers one request with `text`; gives the port.
pub fn answer_once(text: &str) -> u16 {
    let chain = vec![CertificateDer::from_pem_slice(include_bytes!("leaf.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("leaf.key")).unwrap();
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(ring)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let body = format!(
        "data: {{\"type\":\"message_start\"}}\n\n\
         data: {{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{{\"type\":\"text\",\"text\":\"{text}\"}}}}\n\n\
         data: {{\"type\":\"content_block_stop\",\"index\":0}}\n\n\
         data: {{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":\"end_turn\"}}}}\n\n\
         data: {{\"type\":\"message_stop\"}}\n\n"
    );
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    std::thread::spawn(move || {
        // One connection a try, until a client trusts us far enough to send its request.
        for socket in listener.incoming().flatten() {
            let connection = ServerConnection::new(Arc::new(config.clone())).unwrap();
            let mut stream = StreamOwned::new(connection, socket);
            let mut request = [0; 16 << 10];
            if stream.read(&mut request).is_ok_and(|length| length > 0) {
                stream.write_all(answer.as_bytes()).ok();
                stream.flush().ok();
            }
        }
    });
    port
}
