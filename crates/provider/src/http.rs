//! The only file that opens connections: one POST whose answer is read piece by piece, under two
//! clocks and no total timeout. Used by [`crate::Provider`] alone.

use crate::anthropic;
use crate::api::{self, OldThinking};
use crate::fault::{AttemptFault, FaultCause, HEADERS, HttpRefusal};
use crate::key::ApiKey;
use crate::secrets::Secrets;
use protocol::provider::{Api, ModelServer, ProviderTimeouts};
use reqwest::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Proxy, Response, StatusCode, Url};
use std::error::Error;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

/// Most of an error's body that is read.
const ERROR_BODY_CAP: usize = 64 << 10;

/// How long, and how far, a body is read after its terminal event, so that the connection can be
/// used again.
const DRAIN_TIME: Duration = Duration::from_millis(50);
const DRAIN_CAP: usize = 64 << 10;

/// After this many small pieces in quick succession, the reader waits a moment for more bytes. A
/// server that sends byte by byte then does not cost one wake-up a byte, and the delay is not
/// noticeable.
const FLOOD: u32 = 16;
const SOON: Duration = Duration::from_millis(2);
const LULL: Duration = Duration::from_millis(8);
const SMALL: usize = 1 << 10;

/// Most that is handed on at once.
const PIECE: usize = 16 << 10;

/// Where requests go.
#[derive(Debug)]
pub struct Endpoint {
    client: Client,
    /// The base URL; the path of the interface comes behind it.
    url: Url,
    server: ModelServer,
    headers: HeaderMap,
    secrets: Arc<Secrets>,
    old_thinking: OldThinking,
    /// Tools that the server refused, by their names.
    left_out: Vec<String>,
    /// The address of the proxy, without its password.
    proxy: Option<String>,
    byte_clock: Duration,
    progress_clock: Duration,
}

/// An answer while it comes.
#[derive(Debug)]
pub struct BodyStream {
    response: Response,
    /// The server's number of the request.
    pub request_id: Option<String>,
    byte_clock: Duration,
    progress_clock: Duration,
    progress: Instant,
    /// When the last piece was handed on, and how many small ones came in a row, without a pause.
    handed: Instant,
    in_a_row: u32,
    /// The end of the body, if it was reached while earlier bytes were returned.
    end: Option<Result<(), AttemptFault>>,
}

impl Endpoint {
    /// Makes everything that needs files: certificates are read here, and only when the server or
    /// the proxy is reached over TLS. Opens no connection and starts no thread.
    ///
    /// # Errors
    /// When base URL, proxy, key or certificates are unusable.
    pub fn new(
        server: &ModelServer,
        key: Option<&ApiKey>,
        proxy: Option<&str>,
        patience: &ProviderTimeouts,
    ) -> Result<Self, AttemptFault> {
        let url = base_url(&server.base_url)?;
        let headers = headers(server, key)?;
        // Fails only when one is installed already, which is as good.
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .user_agent(concat!("agentd/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(Duration::from_millis(patience.connect_timeout_ms))
            .no_proxy();
        let mut tls = url.scheme() == "https";
        let proxy_place = proxy.and_then(proxy_place);
        if let Some(address) = proxy {
            let proxy = Proxy::all(address).map_err(|error| {
                setup(format!("the proxy's address is unusable: {}", innermost(&error)))
            })?;
            tls |= address.trim().to_ascii_lowercase().starts_with("https:");
            builder = builder.proxy(proxy);
        }
        if !tls {
            // No certificates: the client can make no TLS connection, and reads no file for one.
            builder = builder.tls_certs_only([]);
        }
        let client = builder.build().map_err(|error| {
            setup(format!(
                "no TLS: {}; certificates come from the system's store or the file named by SSL_CERT_FILE",
                innermost(&error)
            ))
        })?;
        Ok(Self {
            client,
            url,
            server: server.clone(),
            headers,
            secrets: Arc::new(Secrets::of(server, key, proxy)),
            old_thinking: OldThinking::Sent,
            left_out: Vec::new(),
            proxy: proxy_place,
            byte_clock: Duration::from_millis(patience.byte_timeout_ms),
            progress_clock: Duration::from_millis(patience.progress_timeout_ms),
        })
    }

    /// Sends a request and waits for the head of its answer.
    ///
    /// # Errors
    /// No connection, no answer in time, or an answer that is no stream.
    pub async fn post(&self, model: &str, body: String) -> Result<BodyStream, AttemptFault> {
        let url = address(&self.url, self.server.api, model);
        let request = self.client.post(url.clone()).headers(self.headers.clone()).body(body);
        let response = timeout(self.byte_clock, request.send())
            .await
            .map_err(|_| silent(self.byte_clock))?
            .map_err(|error| self.unsent(&error))?;
        if !response.status().is_success() {
            return Err(self.refused(response, &url).await);
        }
        if let Some(way) = header(response.headers(), CONTENT_ENCODING.as_str())
            && !way.trim().eq_ignore_ascii_case("identity")
        {
            return Err(AttemptFault::broken(format!(
                "the server compressed its answer ({way}), which it was not asked for"
            )));
        }
        let kind = header(response.headers(), CONTENT_TYPE.as_str()).unwrap_or_default();
        match kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
            "text/html" | "application/json" => {
                let fault = self.refused(response, &url).await;
                let words = format!("{}, which is no stream of events", fault.words);
                return Err(AttemptFault { words, cause: FaultCause::Broken, ..fault });
            }
            // Some compatible servers name the type wrongly, or not at all.
            _ => {}
        }
        Ok(BodyStream {
            request_id: ["request-id", "x-request-id"]
                .into_iter()
                .find_map(|name| header(response.headers(), name))
                .map(str::to_owned),
            response,
            byte_clock: self.byte_clock,
            progress_clock: self.progress_clock,
            progress: Instant::now(),
            handed: Instant::now(),
            in_a_row: 0,
            end: None,
        })
    }

    /// How the server treats thinking that it can no longer accept.
    pub fn old_thinking(&self) -> OldThinking {
        self.old_thinking
    }

    /// From now on each request asks the server to leave it out.
    pub fn leave_old_thinking_out(&mut self) {
        self.old_thinking = OldThinking::LeftOut;
        let (name, value) = anthropic::LEAVES_OUT;
        // In addition to such headers in the configuration.
        self.headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
    }

    /// The tools that no request has any more.
    pub(crate) fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// From now on no request has this tool.
    pub(crate) fn leave_out(&mut self, tool: String) {
        self.left_out.push(tool);
    }

    /// The secrets to redact in every text that leaves this process.
    pub(crate) fn secrets(&self) -> Arc<Secrets> {
        Arc::clone(&self.secrets)
    }

    /// How the server is spoken to.
    pub fn server(&self) -> &ModelServer {
        &self.server
    }

    async fn refused(&self, mut response: Response, url: &Url) -> AttemptFault {
        let mut body = Vec::new();
        // The body is optional: on a timeout, the part received so far is used.
        let _in_time = timeout(self.byte_clock, async {
            while let Ok(Some(bytes)) = response.chunk().await {
                body.extend_from_slice(&bytes);
                if body.len() > ERROR_BODY_CAP {
                    break;
                }
            }
        })
        .await;
        let mut fault = AttemptFault::refused(&HttpRefusal {
            status: response.status().as_u16(),
            headers: HEADERS.map(|name| header(response.headers(), name)),
            // Before anything is cut off.
            body: &self.secrets.redact_bytes(&body),
            now: jiff::Timestamp::now(),
        });
        if response.status() == StatusCode::NOT_FOUND {
            let host = url.host_str().unwrap_or_default();
            fault.words = format!("{} (asked {host} for {})", fault.words, url.path());
        }
        fault
    }

    fn unsent(&self, error: &reqwest::Error) -> AttemptFault {
        let host = self.url.host_str().unwrap_or("the server");
        let port = self.url.port_or_known_default().unwrap_or_default();
        let why = innermost(error);
        if error.is_connect() {
            let through = self.proxy.iter().map(|proxy| format!(" through the proxy {proxy}"));
            let through = through.collect::<String>();
            let words = format!("cannot connect to {host}:{port}{through}: {why}");
            return AttemptFault::new(FaultCause::Connect, words);
        }
        if error.is_builder() {
            return setup(why);
        }
        AttemptFault::broken(format!("the connection to {host}:{port} broke: {why}"))
    }
}

impl BodyStream {
    /// The next bytes, joined with those already received; `None` at the end of the body.
    ///
    /// # Errors
    /// When the connection breaks or one of the clocks runs out.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, AttemptFault> {
        if let Some(end) = self.end.take() {
            return end.map(|()| None);
        }
        let floods = self.in_a_row >= FLOOD;
        if floods {
            sleep_until(self.handed + LULL).await;
        }
        let asked = Instant::now();
        let bytes_by = asked + self.byte_clock;
        let progress_by = self.progress + self.progress_clock;
        let mut all = match timeout_at(bytes_by.min(progress_by), self.response.chunk()).await {
            Ok(Ok(Some(bytes))) => Vec::from(bytes),
            Ok(Ok(None)) => return Ok(None),
            Ok(Err(error)) => return Err(broke(&error)),
            Err(_) if progress_by < bytes_by => {
                return Err(AttemptFault::broken(format!(
                    "the stream made no progress for {:.1} s (provider.progress_timeout)",
                    self.progress_clock.as_secs_f64()
                )));
            }
            Err(_) => return Err(silent(self.byte_clock)),
        };
        let paused = asked.elapsed() > SOON;
        let mut asked_again = false;
        while all.len() < PIECE {
            match self.there().await {
                Poll::Ready(Ok(Some(bytes))) => all.extend_from_slice(bytes.as_ref()),
                Poll::Ready(Ok(None)) => {
                    self.end = Some(Ok(()));
                    return Ok(Some(all));
                }
                Poll::Ready(Err(error)) => {
                    self.end = Some(Err(broke(&error)));
                    return Ok(Some(all));
                }
                Poll::Pending if asked_again => break,
                Poll::Pending => {
                    let_others_run().await;
                    asked_again = true;
                    continue;
                }
            }
            asked_again = false;
        }
        let large = if floods { PIECE } else { SMALL };
        let flows = !paused && all.len() < large;
        self.in_a_row = if flows { self.in_a_row.saturating_add(1) } else { 0 };
        self.handed = Instant::now();
        Ok(Some(all))
    }

    /// Bytes already received; does not wait.
    async fn there(&mut self) -> Poll<reqwest::Result<Option<impl AsRef<[u8]> + use<>>>> {
        let mut chunk = pin!(self.response.chunk());
        poll_fn(|context| Poll::Ready(chunk.as_mut().poll(context))).await
    }

    /// Sets the progress clock back: an event other than a ping has come.
    pub fn progressed(&mut self) {
        self.progress = Instant::now();
    }

    /// The answer is whole: reads on a little, aside, so that the connection can be used again,
    /// then drops the body, also when the server leaves it open.
    pub fn let_go(mut self) {
        tokio::spawn(timeout(DRAIN_TIME, async move {
            let mut read = 0;
            while let Ok(Some(bytes)) = self.response.chunk().await {
                read += bytes.len();
                if read > DRAIN_CAP {
                    break;
                }
            }
        }));
    }
}

/// The connection is a separate task. It passes on one chunk at a time and prepares the next on
/// request, so it must run first.
async fn let_others_run() {
    let mut waited = false;
    poll_fn(|context| {
        if std::mem::replace(&mut waited, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

fn base_url(base_url: &str) -> Result<Url, AttemptFault> {
    match Url::parse(base_url.trim()) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(url),
        Ok(_) | Err(_) => Err(setup(format!(
            "the base URL `{base_url}` is no http or https address; \
             it looks like https://api.anthropic.com"
        ))),
    }
}

fn address(base: &Url, api: Api, model: &str) -> Url {
    let mut url = base.clone();
    let above = base.path().trim_end_matches('/');
    url.set_path(&format!("{above}{}", api::path(api, above, model)));
    url.set_query(api::query(api));
    url
}

fn headers(server: &ModelServer, key: Option<&ApiKey>) -> Result<HeaderMap, AttemptFault> {
    let mut headers = HeaderMap::from_iter([
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (ACCEPT, HeaderValue::from_static("text/event-stream")),
    ]);
    for (name, value) in api::headers(server.api) {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    for (name, value) in &server.headers {
        let bad = |_| setup(format!("the header `{name}` cannot be sent"));
        let mut value = HeaderValue::from_str(value).map_err(|_| bad(()))?;
        value.set_sensitive(true);
        headers.insert(HeaderName::try_from(name.as_str()).map_err(|_| bad(()))?, value);
    }
    if let (Some((name, before)), Some(key)) = (api::key_header(server.api, server.auth), key) {
        let value = zeroize::Zeroizing::new(format!("{before}{}", key.expose()));
        let mut value = HeaderValue::from_str(&value)
            .map_err(|_| setup("the key cannot be sent as a header"))?;
        value.set_sensitive(true);
        headers.insert(HeaderName::from_static(name), value);
    }
    Ok(headers)
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// The address of a proxy as people may see it.
fn proxy_place(address: &str) -> Option<String> {
    let url = Url::parse(address).ok()?;
    Some(format!("{}://{}:{}", url.scheme(), url.host_str()?, url.port_or_known_default()?))
}

fn setup(words: impl Into<String>) -> AttemptFault {
    AttemptFault::new(FaultCause::Setup, words)
}

fn silent(clock: Duration) -> AttemptFault {
    let seconds = clock.as_secs_f64();
    AttemptFault::broken(format!(
        "the server sent nothing for {seconds:.1} s (provider.byte_timeout)"
    ))
}

fn broke(error: &reqwest::Error) -> AttemptFault {
    AttemptFault::broken(format!("the stream broke: {}", innermost(error)))
}

/// The innermost cause, which names something that the user can fix; the outer errors repeat each
/// other.
fn innermost(error: &dyn Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
