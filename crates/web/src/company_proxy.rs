//! The words spoken with the proxy of the person's environment: a tunnel by `CONNECT`, and its errors.
//! Used by `dial`, `proxy` and `fetch`. A password goes to the proxy and into no error.

use crate::tls::connector;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::HeaderValue;
use protocol::company_proxy::CompanyProxy;
use rustls::pki_types::ServerName;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Timeout for the answer to `CONNECT`: the proxy resolves the name and connects first.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Limit of the head of that answer in bytes.
const HEAD_BYTES: usize = 16 << 10;

/// A connection, also one in TLS.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// Has the proxy connect to this host.
pub(crate) async fn open_tunnel(
    stream: &mut Box<dyn Duplex>,
    proxy: &CompanyProxy,
    (name, port): (&str, u16),
) -> Result<(), String> {
    let place = match name.contains(':') {
        true => format!("[{name}]:{port}"),
        false => format!("{name}:{port}"),
    };
    let sign_in = basic(proxy).map(|basic| format!("proxy-authorization: {basic}\r\n"));
    let request =
        format!("CONNECT {place} HTTP/1.1\r\nhost: {place}\r\n{}\r\n", sign_in.unwrap_or_default());
    let answered = async {
        stream.write_all(request.as_bytes()).await?;
        head(stream).await
    };
    match timeout(ANSWER_TIMEOUT, answered).await {
        Ok(Ok(head)) => judge(&head).map_err(|why| failed(proxy, &why)),
        Ok(Err(error)) => Err(failed(proxy, &format!("closed the connection: {error}"))),
        Err(_) => Err(failed(proxy, &format!("sent nothing for {} s", ANSWER_TIMEOUT.as_secs()))),
    }
}

/// TLS to the proxy itself, verified as any server.
pub(crate) async fn in_tls(
    stream: TcpStream,
    proxy: &CompanyProxy,
) -> Result<Box<dyn Duplex>, String> {
    let no_tls = |why: String| failed(proxy, &format!("could not be spoken with in TLS: {why}"));
    let connector = connector().map_err(|error| no_tls(error.to_string()))?;
    let name = ServerName::try_from(proxy.host.clone()).map_err(|e| no_tls(e.to_string()))?;
    match timeout(ANSWER_TIMEOUT, connector.connect(name, stream)).await {
        Ok(Ok(stream)) => Ok(Box::new(stream)),
        Ok(Err(error)) => Err(no_tls(error.to_string())),
        Err(_) => Err(no_tls(format!("no answer in {} s", ANSWER_TIMEOUT.as_secs()))),
    }
}

/// The header that signs in to the proxy.
pub(crate) fn authorization(proxy: &CompanyProxy) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(basic(proxy)?).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn basic(proxy: &CompanyProxy) -> Option<String> {
    let (user, password) = proxy.sign_in()?;
    Some(format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))))
}

/// An error of the proxy, with the way on.
pub(crate) fn failed(proxy: &CompanyProxy, why: &str) -> String {
    format!(
        "your proxy {proxy} {why}. A person can correct {}, or name the host in NO_PROXY to reach it \
         without the proxy",
        proxy.variable
    )
}

/// What a proxy says that wants a sign-in.
pub(crate) const WANTS_SIGN_IN: &str =
    "wants another user or password (407), given as http://USER:PASSWORD@HOST:PORT";

/// The head of an answer, and nothing behind it: those bytes are the server's.
async fn head(stream: &mut Box<dyn Duplex>) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && !head.ends_with(b"\n\n") && head.len() < HEAD_BYTES {
        head.push(stream.read_u8().await?);
        // A server of another protocol.
        if head.len() == 5 && head != b"HTTP/" {
            break;
        }
    }
    Ok(head)
}

/// Why an answer to `CONNECT` opens no tunnel.
fn judge(head: &[u8]) -> Result<(), String> {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.trim().splitn(3, ' ');
    let status = match (words.next(), words.next()) {
        (Some(version), Some(status)) if version.starts_with("HTTP/1") => status,
        (_, _) => return Err("does not answer in HTTP".to_owned()),
    };
    let said: String = words.next().unwrap_or_default().chars().take(100).collect();
    match status {
        "407" => Err(WANTS_SIGN_IN.to_owned()),
        status if status.len() == 3 && status.starts_with('2') => Ok(()),
        status => Err(format!(
            "refused to connect: {} {}",
            protocol::hidden::line_for_model(status),
            protocol::hidden::line_for_model(&said)
        )),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_a_success_opens_a_tunnel() {
        for (head, said) in [
            (&b"HTTP/1.1 200 Connection established\r\n\r\n"[..], None),
            (b"HTTP/1.0 200 OK\n\n", None),
            (b"HTTP/1.1 407 Proxy Authentication Required\r\n", Some("(407)")),
            (b"HTTP/1.1 502 Bad\x1b Gateway\r\n", Some("refused to connect: 502 Bad")),
            (b"HTTP/1.1 302 Found\r\n", Some("302 Found")),
            (b"<html", Some("does not answer in HTTP")),
            (b"", Some("does not answer in HTTP")),
        ] {
            let judged = judge(head).err();
            assert_eq!(judged.is_some(), said.is_some(), "{judged:?}");
            let (judged, said) = (judged.unwrap_or_default(), said.unwrap_or_default());
            assert!(judged.contains(said) && !judged.contains('\x1b'), "{judged}");
        }
    }

    #[test]
    fn no_error_has_the_password() {
        let proxy = CompanyProxy::parse("HTTPS_PROXY", "http://ann:secret@p:1").unwrap();
        let error = failed(&proxy, WANTS_SIGN_IN);
        assert!(error.starts_with("your proxy http://p:1 (HTTPS_PROXY) wants another"), "{error}");
        assert!(!error.contains("secret"), "{error}");
        assert_eq!(authorization(&proxy).unwrap(), "Basic YW5uOnNlY3JldA==");
    }
}
