//! Tunnels to hosts for which the proxy has a key. TLS ends here; each request is forwarded
//! separately, and requests that only read get the key. The server is verified in the same way as
//! by the web tools.

use super::{
    ConnectionPermits, Counted, PLAIN_REQUEST, Proxy, ProxyBody, ProxyTarget, for_server, requests,
    strip, text_response,
};
use crate::client_hello::{self, TunnelStart};
use crate::credentials::HostCredential;
use crate::dial::Dialled;
use crate::signable::{RequestBody, RequestHead, SignedIn};
use crate::tls::{HTTP_1, connector};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use protocol::company_proxy::WebScheme;
use protocol::confinement::ConnectionOutcome;
use protocol::tool::{SignIn, SignInAccount, TlsIdentity};
use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use std::convert::Infallible;
use std::io::Cursor;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// Attempts for a request that its server did not accept.
const MAX_ATTEMPTS: usize = 3;

/// The keys of one proxy.
pub struct Credentials {
    all: Vec<HostCredential>,
    acceptor: TlsAcceptor,
    /// The reason if no server can be verified.
    connector: Result<TlsConnector, String>,
}

impl Credentials {
    /// Reads the keys, one descriptor for each account in order.
    ///
    /// # Errors
    /// Why the identity is invalid.
    pub fn read(sign_in: SignIn, keys: Vec<OwnedFd>) -> Result<Self, String> {
        let SignIn { identity, accounts } = sign_in;
        let failed = |error: rustls::Error| format!("no TLS: {error}");
        let (acceptor, connector) =
            (acceptor(identity).map_err(failed)?, connector().map_err(failed));
        let read = |(account, key): (SignInAccount, OwnedFd)| HostCredential::read(account, key);
        Ok(Self { all: accounts.into_iter().zip(keys).map(read).collect(), acceptor, connector })
    }

    /// Index of the credential for this host.
    fn find(&self, name: &str, port: u16) -> Option<usize> {
        self.all.iter().position(|credential| credential.is_for(name, port))
    }
}

fn acceptor(TlsIdentity { certificate, key }: TlsIdentity) -> Result<TlsAcceptor, rustls::Error> {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key));
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![CertificateDer::from(certificate)], key)?;
    config.alpn_protocols = vec![HTTP_1.to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// A tunnel, and the connection that forwards its requests.
struct Tunnel {
    proxy: Proxy,
    credentials: Arc<Credentials>,
    credential: usize,
    target: ProxyTarget,
    upstream: Mutex<Upstream>,
}

/// The connection to the server.
enum Upstream {
    /// Connected, nothing sent yet.
    Dialled(Counted, String),
    Open(SendRequest<Incoming>, String),
    Closed,
}

impl Proxy {
    /// The credential for a tunnel to this host.
    pub(super) fn credential_of(&self, target: &ProxyTarget) -> Option<(Arc<Credentials>, usize)> {
        let credentials = self.credentials.clone()?;
        let at = credentials.find(&target.name, target.port)?;
        Some((credentials, at))
    }

    /// Answers the requests inside a tunnel in place of the host.
    pub(super) async fn sign_in(
        &self,
        command: impl AsyncRead + AsyncWrite + Send + 'static,
        (stream, address): (Counted, String),
        target: ProxyTarget,
        (credentials, credential): (Arc<Credentials>, usize),
        held: ConnectionPermits,
    ) {
        let upstream = Mutex::new(Upstream::Dialled(stream, address));
        let tunnel = Tunnel { proxy: self.clone(), credentials, credential, target, upstream };
        tunnel.relay(command).await;
        drop(held);
    }
}

impl Tunnel {
    async fn relay(&self, command: impl AsyncRead + AsyncWrite + Send + 'static) {
        let (mut of_command, to_command) = tokio::io::split(command);
        let place = &self.target.place;
        let begun = match client_hello::check_first_message(
            &mut of_command,
            &self.target.name,
            super::HEAD_TIMEOUT,
        )
        .await
        {
            Ok(TunnelStart::Allowed(begun)) => begun,
            Ok(TunnelStart::Refused(why)) => {
                self.proxy.record(place, ConnectionOutcome::Refused(why));
                return;
            }
            Err(_) => return,
        };
        if begun.is_empty() {
            return;
        }
        let of_command = Cursor::new(begun).chain(of_command);
        let stream = tokio::io::join(of_command, to_command);
        let accepted = timeout(super::HEAD_TIMEOUT, self.credentials.acceptor.accept(stream)).await;
        let stream = match accepted {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                let why = format!(
                    "the TLS handshake between the command and the proxy, which signs in to this \
                     host, failed: {error}"
                );
                self.proxy.record(place, ConnectionOutcome::Failed(why));
                return;
            }
            Err(_) => return,
        };
        let answer =
            service_fn(|request| async { Ok::<_, Infallible>(self.answer(request).await) });
        let _ = requests().serve_connection(TokioIo::new(stream), answer).await;
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<ProxyBody> {
        let place = &self.target.place;
        let body = match request.body().is_end_stream() {
            true => RequestBody::None,
            false => RequestBody::Some,
        };
        if let Some(why) = head(&request, body).ambiguity() {
            let why = format!("the proxy, which signs in to this host, forwards no {why}");
            return self.proxy.refused(place, why);
        }
        let Some(mut request) = for_server(request, &self.target, 443) else {
            return text_response(StatusCode::BAD_REQUEST, PLAIN_REQUEST);
        };
        let credential = &self.credentials.all[self.credential];
        let signed = head(&request, body).signed(&credential.repositories);
        let mut repository = head(&request, body).repository();
        if let Err(why) = credential.apply(signed, request.headers_mut()) {
            let why = format!("{why}; a person can check net.credentials in their config.toml");
            return self.failed(why);
        }
        let mut upstream = self.upstream.lock().await;
        for _ in 0..MAX_ATTEMPTS {
            let (mut sender, address) = match self.sender(&mut upstream).await {
                Ok(made) => made,
                Err(why) => return self.failed(why),
            };
            // Recorded before it is sent: the server gets the key even if no answer comes.
            if signed == SignedIn::Yes {
                self.proxy.record(place, ConnectionOutcome::SignedIn(address.clone()));
            }
            match sender.try_send_request(request).await {
                Ok(mut response) => {
                    match body {
                        RequestBody::None => *upstream = Upstream::Open(sender, address),
                        // Bytes of a body that its server did not read could become the next
                        // request there, and take its key: the connection serves no other.
                        RequestBody::Some => *upstream = Upstream::Closed,
                    }
                    if let Some(at) = repository.take() {
                        credential.repositories.note(at, response.status(), response.headers());
                    }
                    strip(response.headers_mut());
                    signed.strip(response.headers_mut());
                    return response.map(|body| body.boxed());
                }
                // The server closed the connection just then, without reading the request.
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return self.failed(format!("{address}: {}", error.error())),
                },
            }
        }
        self.failed("its server closes every connection at once".to_owned())
    }

    /// A usable connection: the present one, or a new one if the server closed it.
    async fn sender(
        &self,
        upstream: &mut Upstream,
    ) -> Result<(SendRequest<Incoming>, String), String> {
        let (stream, address) = match std::mem::replace(upstream, Upstream::Closed) {
            Upstream::Open(mut sender, address) => match sender.ready().await {
                Ok(()) => return Ok((sender, address)),
                Err(_) => self.dial().await?,
            },
            Upstream::Dialled(stream, address) => (stream, address),
            Upstream::Closed => self.dial().await?,
        };
        let name = ServerName::try_from(self.target.name.clone()).map_err(|e| e.to_string())?;
        let connector = self.credentials.connector.as_ref().map_err(Clone::clone)?;
        let stream = match timeout(super::HEAD_TIMEOUT, connector.connect(name, stream)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(format!("TLS with {address}: {error}")),
            Err(_) => return Err(format!("{address} did not answer the TLS handshake")),
        };
        let (sender, connection) =
            handshake(TokioIo::new(stream)).await.map_err(|error| format!("{address}: {error}"))?;
        tokio::spawn(connection);
        Ok((sender, address))
    }

    async fn dial(&self) -> Result<(Counted, String), String> {
        let dialled = self.proxy.dial(&self.target, WebScheme::Https);
        let Dialled { stream, peer, .. } = dialled.await.map_err(|error| error.to_string())?;
        let made = ConnectionOutcome::Made(peer.clone());
        let carried = self.proxy.record(&self.target.place, made);
        Ok((Counted { stream, carried }, peer))
    }

    fn failed(&self, why: String) -> Response<ProxyBody> {
        let place = &self.target.place;
        let answer = text_response(StatusCode::BAD_GATEWAY, &format!("agentd: {place}: {why}\n"));
        self.proxy.record(place, ConnectionOutcome::Failed(why));
        answer
    }
}

fn head(request: &Request<Incoming>, body: RequestBody) -> RequestHead<'_> {
    let (method, target, headers) = (request.method(), request.uri(), request.headers());
    RequestHead { method, target, headers, body }
}
