//! The proxy of an allow-list: `CONNECT` for TLS, requests with an absolute URL for plain HTTP.
//!
//! Each request is checked separately, also several on one connection: its host name by the list,
//! then the resolved addresses by `blocked_ranges`. Only the request's target counts; the server
//! gets the approved name as `Host`. In TLS the proxy checks the server name, which is unencrypted
//! and must be the same host. It sees nothing else of TLS, except for hosts that it signs in to:
//! those connections end in `sign_in`.

mod counted;
mod hop;
mod sign_in;
pub(crate) mod target;

use crate::client_hello::{self, TunnelStart};
use crate::company_proxy::{self, WANTS_SIGN_IN};
use crate::decision_log::{ByteCounts, DecisionLog, Novelty};
use crate::dial::{DialError, Dialled, dial};
use crate::proxy_listener::{ProxyListener, accept};
use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue, PROXY_AUTHORIZATION, TRANSFER_ENCODING};
use hyper::http::uri::{PathAndQuery, Uri};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use protocol::company_proxy::{CompanyProxy, ProxyEnvironment, WebScheme};
use protocol::confinement::{ConnectionOutcome, ProxyConnection};
use protocol::hosts::{DENIED, HostRule, NOT_LISTED};
use protocol::web::PrivateNetworks;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tool_specs::Restriction;

use counted::Counted;
use hop::strip;
pub use sign_in::Credentials;
use target::ProxyTarget;
use target::{PLAIN_REQUEST, TargetError, parse_target};

/// Limit of simultaneous connections, including tunnels. A wide parallel download fits, and this
/// process does not run out of descriptors. Further connections wait.
const MAX_CONNECTIONS: usize = 256;
/// Limits of a request head in bytes and lines: far above those of real programs.
const HEAD_BYTES: usize = 64 << 10;
const HEAD_LINES: usize = 100;
/// Timeout for a request head, and for an idle connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);
/// Pause after a failed `accept`, most likely for lack of descriptors.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);
/// Timeout for data that a command sent before its end: long for a live server, and short for those
/// who wait for the call.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

type ProxyBody = BoxBody<Bytes, hyper::Error>;

/// Receives the decisions so far, and the number of further ones.
type DecisionSink = dyn Fn(Vec<ProxyConnection>, u64) + Send + Sync;

/// The proxy of one command. Clones share it.
#[derive(Clone)]
pub struct Proxy {
    hosts: Arc<[HostRule]>,
    denied: Arc<[HostRule]>,
    private: Arc<[HostRule]>,
    credentials: Option<Arc<Credentials>>,
    /// The person's own proxies, which lead to the hosts.
    beyond: Arc<ProxyEnvironment>,
    decision_log: DecisionLog,
    on_decision: Arc<DecisionSink>,
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy").field("hosts", &self.hosts).finish_non_exhaustive()
    }
}

impl Proxy {
    /// A proxy for these hosts except denied ones; it signs in where it has credentials. `private` names those
    /// among them that may be in private networks.
    /// `on_decision` is called with all decisions whenever a new one was made.
    pub fn new(
        (hosts, denied): (Vec<HostRule>, Vec<HostRule>),
        private: Vec<HostRule>,
        (credentials, beyond): (Option<Credentials>, ProxyEnvironment),
        told: impl Fn(Vec<ProxyConnection>, u64) + Send + Sync + 'static,
    ) -> Self {
        let (hosts, denied) = (hosts.into(), denied.into());
        let credentials = credentials.map(Arc::new);
        Self {
            hosts,
            denied,
            private: private.into(),
            credentials,
            beyond: Arc::new(beyond),
            decision_log: DecisionLog::default(),
            on_decision: Arc::new(told),
        }
    }

    /// The decisions so far, and the number of further ones.
    #[must_use]
    pub fn decided(&self) -> (Vec<ProxyConnection>, u64) {
        self.decision_log.read()
    }

    /// Serves connections from these listeners until the command ends. Data that the command sent
    /// before its end is then still forwarded, within a timeout.
    pub async fn serve<T>(&self, doors: Vec<ProxyListener>, over: impl Future<Output = T>) -> T {
        let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let sending = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let carry = async {
            loop {
                let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
                match accept(&doors).await {
                    Ok((stream, host)) => self.start_connection(stream, host, place, &sending),
                    Err(_) => tokio::time::sleep(ACCEPT_RETRY).await,
                }
            }
        };
        let why = tokio::select! {
            why = over => why,
            // The loop never ends.
            () = carry => std::future::pending().await,
        };
        let last = async {
            // Pending connections were made by the command; no further ones come.
            while let Ok(Ok((stream, host))) = timeout(Duration::ZERO, accept(&doors)).await {
                let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
                self.start_connection(stream, host, place, &sending);
            }
            // Having all permits means that no data is in flight.
            let _ = sending.acquire_many(MAX_CONNECTIONS as u32).await;
        };
        // Data that a server does not accept in this time is lost.
        let _ = timeout(DRAIN_TIMEOUT, last).await;
        why
    }

    fn start_connection(
        &self,
        stream: TcpStream,
        host: Option<&ProxyTarget>,
        place: OwnedSemaphorePermit,
        sending: &Arc<Semaphore>,
    ) {
        // There are as many permits as connections, so one is free.
        let Ok(sends) = Arc::clone(sending).try_acquire_owned() else { return };
        let proxy = self.clone();
        let held = ConnectionPermits { place: Arc::new(place), sending: Arc::new(sends) };
        match host.cloned() {
            Some(host) => tokio::spawn(async move { proxy.redirect(stream, host, held).await }),
            None => tokio::spawn(async move { proxy.serve_requests(stream, held).await }),
        };
    }

    /// Serves a program that connected to the proxy as if it were the host. A refused connection is
    /// closed, because the protocol is unknown.
    async fn redirect(&self, stream: TcpStream, host: ProxyTarget, held: ConnectionPermits) {
        if let Ok((server, address, _)) = self.reach(&host, WebScheme::Https).await {
            self.relay(stream, (server, address), host, held).await;
        }
    }

    /// Serves all requests of one connection.
    async fn serve_requests(&self, stream: TcpStream, held: ConnectionPermits) {
        let answer =
            service_fn(|request| async { Ok::<_, Infallible>(self.answer(request, &held).await) });
        // The command sees errors on its own connection. It may have closed its side after a
        // request.
        let _ = requests().serve_connection(TokioIo::new(stream), answer).with_upgrades().await;
    }

    async fn answer(
        &self,
        request: Request<Incoming>,
        held: &ConnectionPermits,
    ) -> Response<ProxyBody> {
        let numbers = match self.private.is_empty() {
            true => PrivateNetworks::Refused,
            false => PrivateNetworks::Reached,
        };
        let target = match parse_target(&request, numbers) {
            Ok(target) => target,
            Err(TargetError::Refused(place, why)) => return self.refused(&place, why),
            Err(TargetError::NotProxyRequest) => {
                return text_response(StatusCode::BAD_REQUEST, PLAIN_REQUEST);
            }
        };
        let scheme = match *request.method() == Method::CONNECT {
            true => WebScheme::Https,
            false => WebScheme::Http,
        };
        let (stream, address, through) = match self.reach(&target, scheme).await {
            Ok(made) => made,
            Err(ReachError::Refused(why)) => return refusal(&target.place, &why),
            Err(ReachError::Failed(why)) => {
                return text_response(
                    StatusCode::BAD_GATEWAY,
                    &format!("{}: {why}\n", target.place),
                );
            }
        };
        match scheme {
            WebScheme::Https => self.tunnel(request, (stream, address), target, held.clone()),
            WebScheme::Http => self.forward(request, (stream, address), &target, through).await,
        }
    }

    async fn dial(&self, target: &ProxyTarget, scheme: WebScheme) -> Result<Dialled, DialError> {
        let host = (target.name.as_str(), target.port);
        dial(host, self.private_at(target), (&self.beyond, scheme)).await
    }

    /// Whether this host may be in a private network.
    fn private_at(&self, target: &ProxyTarget) -> PrivateNetworks {
        match self.private.iter().any(|rule| rule.admits(&target.name, target.port)) {
            true => PrivateNetworks::Reached,
            false => PrivateNetworks::Refused,
        }
    }

    /// Checks a host and connects to it, or to the person's proxy. Each decision is recorded.
    async fn reach(
        &self,
        target: &ProxyTarget,
        scheme: WebScheme,
    ) -> Result<(Counted, String, Option<CompanyProxy>), ReachError> {
        let ProxyTarget { place, name, port } = target;
        let named = |rules: &[HostRule]| rules.iter().any(|rule| rule.admits(name, *port));
        let refused = |why: String| {
            self.record(place, ConnectionOutcome::Refused(why.clone()));
            ReachError::Refused(why)
        };
        if !named(&self.hosts) {
            return Err(refused(NOT_LISTED.to_owned()));
        }
        if named(&self.denied) {
            return Err(refused(DENIED.to_owned()));
        }
        match self.dial(target, scheme).await {
            Ok(Dialled { stream, peer, through }) => {
                let carried = self.record(place, ConnectionOutcome::Made(peer.clone()));
                Ok((Counted { stream, carried }, peer, through))
            }
            Err(DialError::Blocked(why)) => Err(refused(why)),
            Err(DialError::Failed(why)) => {
                self.record(place, ConnectionOutcome::Failed(why.clone()));
                Err(ReachError::Failed(why))
            }
        }
    }

    /// Relays a connection after the answer to `CONNECT`. The tunnel outlives the request and keeps
    /// its permits.
    fn tunnel(
        &self,
        request: Request<Incoming>,
        server: (Counted, String),
        target: ProxyTarget,
        held: ConnectionPermits,
    ) -> Response<ProxyBody> {
        let proxy = self.clone();
        tokio::spawn(async move {
            let Ok(upgraded) = hyper::upgrade::on(request).await else { return };
            proxy.relay(TokioIo::new(upgraded), server, target, held).await;
        });
        Response::new(Empty::new().map_err(never).boxed())
    }

    /// Relays bytes both ways, except TLS to another host; where the proxy signs in, it relays
    /// requests.
    async fn relay(
        &self,
        command: impl AsyncRead + AsyncWrite + Send + 'static,
        (server, address): (Counted, String),
        target: ProxyTarget,
        held: ConnectionPermits,
    ) {
        if let Some(credential) = self.credential_of(&target) {
            return self.sign_in(command, (server, address), target, credential, held).await;
        }
        let ProxyTarget { place, name, .. } = target;
        let ConnectionPermits { place: _place, sending: sends } = held;
        let (mut of_command, mut to_command) = tokio::io::split(command);
        let (mut of_server, mut to_server) = tokio::io::split(server);
        let up = async move {
            let begun =
                match client_hello::check_first_message(&mut of_command, &name, HEAD_TIMEOUT).await
                {
                    Ok(TunnelStart::Allowed(begun)) => begun,
                    Ok(TunnelStart::Refused(why)) => {
                        self.record(&place, ConnectionOutcome::Refused(why));
                        return false;
                    }
                    Err(_) => return false,
                };
            let sent = to_server.write_all(&begun).await.is_ok()
                && tokio::io::copy(&mut of_command, &mut to_server).await.is_ok()
                && to_server.shutdown().await.is_ok();
            drop(sends);
            sent
        };
        let down = async move {
            let copied = tokio::io::copy(&mut of_server, &mut to_command).await;
            let _ = to_command.shutdown().await;
            if copied.is_err() {
                // The command no longer reads. Unread data would make the kernel drop what is still
                // in flight to the server.
                let _ = tokio::io::copy(&mut of_server, &mut tokio::io::sink()).await;
            }
        };
        tokio::pin!(up, down);
        // Sending continues without a reader for the answer; an answer needs an open connection to
        // the command.
        tokio::select! {
            sent = &mut up => if sent { down.await },
            () = &mut down => drop(up.await),
        }
    }

    /// Forwards one request on a separate connection, and returns its response.
    async fn forward(
        &self,
        request: Request<Incoming>,
        (stream, address): (Counted, String),
        target: &ProxyTarget,
        through: Option<CompanyProxy>,
    ) -> Response<ProxyBody> {
        let failed = |error: hyper::Error| {
            let text = format!("{} at {address}: {error}\n", target.place);
            text_response(StatusCode::BAD_GATEWAY, &text)
        };
        let (mut sender, connection) =
            match hyper::client::conn::http1::handshake(TokioIo::new(stream)).await {
                Ok(made) => made,
                Err(error) => return failed(error),
            };
        tokio::spawn(connection);
        let Some(mut request) = for_server(request, target, 80) else {
            return text_response(StatusCode::BAD_REQUEST, PLAIN_REQUEST);
        };
        if let Some(proxy) = &through {
            let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
            match format!("http://{}{}", host.unwrap_or_default(), request.uri()).parse() {
                Ok(uri) => *request.uri_mut() = uri,
                Err(_) => return text_response(StatusCode::BAD_REQUEST, PLAIN_REQUEST),
            }
            let sign_in = company_proxy::authorization(proxy);
            sign_in.map(|value| request.headers_mut().insert(PROXY_AUTHORIZATION, value));
        }
        let mut response = match sender.send_request(request).await {
            Ok(response) => response,
            Err(error) => return failed(error),
        };
        // The command has no sign-in for the person's proxy.
        if let (Some(proxy), StatusCode::PROXY_AUTHENTICATION_REQUIRED) =
            (&through, response.status())
        {
            let why = company_proxy::failed(proxy, WANTS_SIGN_IN);
            let answer = format!("agentd: {}: {why}\n", target.place);
            self.record(&target.place, ConnectionOutcome::Failed(why));
            return text_response(StatusCode::BAD_GATEWAY, &answer);
        }
        strip(response.headers_mut());
        response.map(|body| body.boxed())
    }

    fn refused(&self, place: &str, why: String) -> Response<ProxyBody> {
        let answer = refusal(place, &why);
        self.record(place, ConnectionOutcome::Refused(why));
        answer
    }

    fn record(&self, place: &str, decision: ConnectionOutcome) -> Arc<ByteCounts> {
        let (known, carried) = self.decision_log.add(place, decision);
        if known == Novelty::New {
            let (connections, uncounted) = self.decision_log.read();
            (self.on_decision)(connections, uncounted);
        }
        carried
    }
}

/// The response to a refused request.
fn refusal(place: &str, why: &str) -> Response<ProxyBody> {
    // If the host is already on the list, allowing it again does not help.
    let way_on = match why == NOT_LISTED {
        true => format!(" {}", Restriction::Host.hint_sentence()),
        false => String::new(),
    };
    text_response(StatusCode::FORBIDDEN, &format!("agentd: {place} was refused: {why}.{way_on}\n"))
}

/// Why a host was not reached.
enum ReachError {
    Refused(String),
    Failed(String),
}

/// HTTP server for connections from a command.
fn requests() -> hyper::server::conn::http1::Builder {
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES)
        .max_headers(HEAD_LINES)
        .half_close(true);
    builder
}

/// Permits of a connection, shared with its tunnel.
#[derive(Clone)]
struct ConnectionPermits {
    place: Arc<OwnedSemaphorePermit>,
    /// Held until all data from the command was forwarded.
    sending: Arc<OwnedSemaphorePermit>,
}

/// Rewrites a request for the server: a path as target, and the approved name as `Host`, with the
/// port unless it is the default.
fn for_server(
    mut request: Request<Incoming>,
    target: &ProxyTarget,
    usual: u16,
) -> Option<Request<Incoming>> {
    let root = PathAndQuery::from_static("/");
    let path = request.uri().path_and_query().cloned().unwrap_or(root);
    *request.uri_mut() = Uri::from(path);
    strip(request.headers_mut());
    if request.body().size_hint().exact().is_none() {
        // Otherwise the body of a GET, which has no length, would be omitted.
        let chunked = HeaderValue::from_static("chunked");
        request.headers_mut().insert(TRANSFER_ENCODING, chunked);
    }
    let host = match target.port {
        port if port == usual => target.name.clone(),
        port => format!("{}:{port}", target.name),
    };
    request.headers_mut().insert(HOST, HeaderValue::from_str(&host).ok()?);
    Some(request)
}

fn text_response(status: StatusCode, text: &str) -> Response<ProxyBody> {
    let body = Full::new(Bytes::copy_from_slice(text.as_bytes())).map_err(never).boxed();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

fn never(never: Infallible) -> hyper::Error {
    match never {}
}
