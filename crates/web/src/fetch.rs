//! Engine of the web tools: one request to a named server for the approved page. The request
//! carries only the URL: no cookies, no key, no referrer.

use crate::blocked_ranges::blocked_reason;
use crate::body::{self, BodyKind, PageBody};
use crate::company_proxy::{self, WANTS_SIGN_IN};
use crate::dial::{self, CheckedResolver, DialError};
use crate::page;
use crate::results::results;
use protocol::company_proxy::{CompanyProxy, ProxyEnvironment, WebScheme};
use protocol::web::{PrivateNetworks, WebAddress, WebSettings};
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderName, LOCATION,
};
use reqwest::{Client, Response};
use std::error::Error;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};
use tool_specs::{FailureCode, NUMERIC_ADDRESS_REFUSED, numeric_address, web_address, web_url};
use tools::{Cancel, EngineError, SearchHit, WebEngine, WebPage};
use url::Url;

/// Timeouts of a page.
#[derive(Debug, Clone, Copy)]
struct FetchTimes {
    /// From the name lookup to the last byte.
    download: Duration,
    /// Extraction of the text.
    extraction: Duration,
}

const TIMES: FetchTimes =
    FetchTimes { download: Duration::from_secs(15), extraction: Duration::from_secs(10) };
/// Stack for code that recurses over the tree of a page, which may be arbitrarily deep.
const STACK: usize = 256 << 20;
/// Limit of redirects.
const MAX_REDIRECTS: usize = 3;
/// Interval at which a loading page checks for cancellation.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Remedy for a URL with an IP address.
const BY_NAME: &str = "Fetch it by the name of its host.";
/// User agent sent to servers.
const AGENT: &str = concat!("agentd/", env!("CARGO_PKG_VERSION"));

/// Judges pages by the session's rules.
pub trait Judge {
    /// True if the call may follow a redirect to this page of the same host.
    fn may_follow(&self, page: &WebAddress) -> bool;

    /// True if a rule names the page's host explicitly.
    fn is_named_by_a_rule(&self, page: &WebAddress) -> bool;
}

/// Fetches for one call.
#[derive(Debug)]
pub struct Fetcher<J> {
    settings: WebSettings,
    judge: J,
    proxies: ProxyEnvironment,
    times: FetchTimes,
}

impl<J: Judge> Fetcher<J> {
    /// A fetcher that has not connected to anything.
    #[must_use]
    pub fn new(settings: WebSettings, judge: J, proxies: ProxyEnvironment) -> Self {
        Self { settings, judge, proxies, times: TIMES }
    }

    /// The text at this URL.
    fn text(&self, url: &Url, cancel: &Cancel) -> Result<(Url, body::PageText), EngineError> {
        let (at, body) = self.body(url, cancel)?;
        let text = decode(&at, body)?;
        Ok((at, text))
    }

    /// The page at this URL, fetched within the download timeout.
    fn body(&self, url: &Url, cancel: &Cancel) -> Result<(Url, PageBody), EngineError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| client_error(&error.to_string()))?;
        let got = runtime.block_on(async {
            tokio::select! {
                got = tokio::time::timeout(self.times.download, self.get(url.clone())) => {
                    got.unwrap_or_else(|_| Err(timed_out(url, self.times.download)))
                }
                () = cancelled(cancel) => Err(interrupted()),
            }
        });
        // A pending name lookup must not delay the result.
        runtime.shutdown_background();
        got
    }

    /// Requests the URL and follows permitted redirects on the same host.
    async fn get(&self, mut url: Url) -> Result<(Url, PageBody), EngineError> {
        url.set_fragment(None);
        self.check_ip_address(&url)?;
        for _ in 0..=MAX_REDIRECTS {
            let proxy = self.proxy_of(&url).await?;
            let request = client(self.settings.private, url.scheme(), proxy)?
                .get(url.clone())
                .header(
                    ACCEPT,
                    "text/html, text/markdown;q=0.9, text/plain;q=0.9, \
                                 application/json;q=0.8, */*;q=0.5",
                )
                // A compressed body could expand a thousandfold.
                .header(ACCEPT_ENCODING, "identity");
            let response = match (request.send().await, proxy) {
                (Ok(response), _) => response,
                (Err(error), Some(proxy)) => return Err(proxy_error(&url, proxy, &error).await),
                (Err(error), None) => return Err(request_error(&url, &error)),
            };
            let status = response.status();
            if status.is_redirection() && response.headers().contains_key(LOCATION) {
                let next = redirect_target(&url, &response)?;
                if !self.may_redirect(&url, &next) {
                    return Err(misfit(
                        FailureCode::Redirected,
                        format!("{url} redirects to {next}"),
                        "Fetch that URL with a separate call.",
                    ));
                }
                url = next;
                continue;
            }
            if let (407, Some(proxy)) = (status.as_u16(), proxy) {
                let why = DialError::Failed(company_proxy::failed(proxy, WANTS_SIGN_IN));
                return Err(dial_error(&url, &why));
            }
            if !status.is_success() {
                let hint = match status.as_u16() {
                    404 | 410 => "Look for the right address with web_search.",
                    401 | 403 => "The page needs a login.",
                    429 | 500..=599 => "Try later.",
                    _ => "",
                };
                return Err(misfit(
                    FailureCode::HttpError,
                    format!("{url} answered {status}"),
                    hint,
                ));
            }
            return Ok((url.clone(), read(&url, response).await?));
        }
        Err(misfit(
            FailureCode::Redirected,
            format!("{url} leads further after {MAX_REDIRECTS} steps"),
            "",
        ))
    }

    /// The proxy that leads to this URL.
    async fn proxy_of(&self, url: &Url) -> Result<Option<&CompanyProxy>, EngineError> {
        let Some(page) = web_address(url) else { return Ok(None) };
        let host = (page.host.trim_matches(['[', ']']), page.port);
        let way = (&self.proxies, scheme(url));
        let found = dial::proxy_of(host, self.settings.private, way).await;
        found.map_err(|error| dial_error(url, &error))
    }

    /// True if a redirect leads to a page that the call may read, on the same server or on its TLS
    /// port. Any other redirect needs a call of its own.
    fn may_redirect(&self, from: &Url, to: &Url) -> bool {
        let (Some(one), Some(other)) = (web_address(from), web_address(to)) else { return false };
        let safer =
            (from.scheme(), one.port, to.scheme(), other.port) == ("http", 80, "https", 443);
        let way = safer || (from.scheme() == to.scheme() && one.port == other.port);
        let same_page = safer && from.path() == to.path() && from.query() == to.query();
        way && one.host == other.host && (same_page || self.judge.may_follow(&other))
    }

    /// A URL with an IP address involves no lookup, so it is checked here. A private address is
    /// allowed if the person permits private networks. A public address could bypass the rules for
    /// its name, so a rule must name it.
    fn check_ip_address(&self, url: &Url) -> Result<(), EngineError> {
        let Some(address) = numeric_address(url) else { return Ok(()) };
        let named = web_address(url).is_some_and(|page| self.judge.is_named_by_a_rule(&page));
        let (code, why, hint) = match (blocked_reason(address), self.settings.private) {
            (Some(_), PrivateNetworks::Reached) => return Ok(()),
            (None, _) if named => return Ok(()),
            (Some(why), PrivateNetworks::Refused) if named => (
                FailureCode::PrivateAddress,
                format!("{address} is not reached: {why}"),
                "A person can allow private networks: web.private_networks = \"allow\" in their \
                 own config.toml.",
            ),
            (_, PrivateNetworks::Refused) => {
                (FailureCode::InvalidArguments, format!("{url} {NUMERIC_ADDRESS_REFUSED}"), BY_NAME)
            }
            (None, PrivateNetworks::Reached) => (
                FailureCode::InvalidArguments,
                format!("{url} {NUMERIC_ADDRESS_REFUSED}, but those of private networks"),
                BY_NAME,
            ),
        };
        Err(misfit(code, why, hint))
    }
}

impl<J: Judge> WebEngine for Fetcher<J> {
    fn page(&self, url: &Url, cancel: &Cancel) -> Result<WebPage, EngineError> {
        let (at, body) = self.body(url, cancel)?;
        let url = at.to_string();
        if tools::is_image(&body.bytes) {
            return image(url, body);
        }
        let body::PageText { kind, text, cut } = decode(&at, body)?;
        let image = None;
        match kind {
            BodyKind::Plain => Ok(WebPage { url, title: String::new(), text, cut, image }),
            BodyKind::Html => {
                let at = url.clone();
                let prose =
                    run_bounded(cancel, self.times.extraction, move || page::prose(&text, &at))?
                        .map_err(|why| {
                            misfit(FailureCode::UnsupportedContent, format!("{url}: {why}"), "")
                        })?;
                Ok(WebPage { url, title: prose.title, text: prose.text, cut, image })
            }
        }
    }

    fn search(
        &self,
        query: &str,
        limit: usize,
        cancel: &Cancel,
    ) -> Result<Vec<SearchHit>, EngineError> {
        let mut url = web_url(&self.settings.search_url, self.settings.private).map_err(|why| {
            misfit(
                FailureCode::InvalidArguments,
                format!("web.search_url: {why}"),
                "Tell the person.",
            )
        })?;
        url.query_pairs_mut().append_pair("q", query);
        let (at, body::PageText { text, .. }) = self.text(&url, cancel)?;
        run_bounded(cancel, self.times.extraction, move || results(&text, limit))?.ok_or_else(
            || {
                let host = at.host_str().unwrap_or_default();
                let why = format!(
                    "{host} did not return a page of results; it may block automated \
                             requests"
                );
                misfit(FailureCode::HttpError, why, "Try later, or fetch a page that is known.")
            },
        )
    }

    /// Each fetch closes its connections at its end, so none is open.
    fn leave_network(&self) -> Result<(), EngineError> {
        sandbox::refuse_new_sockets().map_err(|error| {
            let why = format!("the image is not decoded: this process keeps the network: {error}");
            misfit(FailureCode::BadImage, why, "Save the file with a command, and read it.")
        })
    }
}

/// The text of a page.
fn decode(at: &Url, body: PageBody) -> Result<body::PageText, EngineError> {
    body::decode(body)
        .map_err(|why| misfit(FailureCode::UnsupportedContent, format!("{at}: {why}"), ""))
}

/// An image, whole; the tool decodes it.
fn image(url: String, body: PageBody) -> Result<WebPage, EngineError> {
    if body.cut {
        let why = format!("{url}: the image has more than {} MB", body.bytes.len() / 1_000_000);
        return Err(misfit(FailureCode::TooLarge, why, "Look for a smaller one."));
    }
    let (title, text) = (String::new(), String::new());
    Ok(WebPage { url, title, text, cut: false, image: Some(body.bytes) })
}

/// Runs work that a hostile page can make slow, with a stack that its depth cannot exhaust. Work
/// that is not done in time is abandoned: this process ends with the call.
fn run_bounded<T: Send + 'static>(
    cancel: &Cancel,
    time: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, EngineError> {
    let (say, said) = mpsc::channel();
    let worker = thread::Builder::new().stack_size(STACK).spawn(move || drop(say.send(work())));
    worker.map_err(|error| client_error(&error.to_string()))?;
    let end = Instant::now() + time;
    loop {
        match said.recv_timeout(POLL_INTERVAL) {
            Ok(done) => return Ok(done),
            Err(RecvTimeoutError::Timeout) if cancel.is_requested() => return Err(interrupted()),
            Err(RecvTimeoutError::Timeout) if Instant::now() < end => {}
            Err(RecvTimeoutError::Timeout) => {
                let why =
                    format!("no text could be extracted from the page in {} s", time.as_secs());
                return Err(misfit(FailureCode::TimedOut, why, "Go on without it."));
            }
            Err(RecvTimeoutError::Disconnected) => {
                let why = "the page could not be parsed".to_owned();
                return Err(misfit(FailureCode::UnsupportedContent, why, "Go on without it."));
            }
        }
    }
}

/// Makes a client that connects only to checked addresses, or to this proxy.
fn client(
    private: PrivateNetworks,
    scheme: &str,
    proxy: Option<&CompanyProxy>,
) -> Result<Client, EngineError> {
    let failed = |error: reqwest::Error| client_error(&innermost(&error).to_string());
    // Fails only if a provider is already installed, which is fine.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let builder =
        Client::builder().user_agent(AGENT).redirect(reqwest::redirect::Policy::none()).no_proxy();
    let mut builder = match proxy {
        Some(proxy) => builder.proxy(reqwest::Proxy::all(proxy.url()).map_err(failed)?),
        None => builder.dns_resolver(Arc::new(CheckedResolver(private))),
    };
    if scheme == "http" && proxy.is_none_or(|proxy| proxy.scheme == WebScheme::Http) {
        // Without certificates it can make no TLS connection and reads no file for one.
        builder = builder.tls_certs_only([]);
    }
    builder.build().map_err(failed)
}

fn scheme(url: &Url) -> WebScheme {
    match url.scheme() {
        "http" => WebScheme::Http,
        _ => WebScheme::Https,
    }
}

/// The target of a redirect.
fn redirect_target(url: &Url, response: &Response) -> Result<Url, EngineError> {
    let target = response.headers().get(LOCATION).map(|value| value.as_bytes());
    let target = String::from_utf8_lossy(target.unwrap_or_default());
    let next = url.join(&target).map_err(|error| error.to_string());
    // Redirects stay on the requested host, so a private address is acceptable here.
    next.and_then(|next| web_url(next.as_str(), PrivateNetworks::Reached)).map_err(|why| {
        misfit(FailureCode::Redirected, format!("{url} redirects to {target:?}: {why}"), "")
    })
}

async fn read(url: &Url, mut response: Response) -> Result<PageBody, EngineError> {
    let mut body = PageBody {
        content_type: header(&response, CONTENT_TYPE),
        content_encoding: header(&response, CONTENT_ENCODING),
        ..PageBody::default()
    };
    while let Some(piece) = response.chunk().await.map_err(|error| request_error(url, &error))? {
        let start = if body.bytes.is_empty() { &piece[..] } else { &body.bytes };
        let room = body::most_bytes(start).saturating_sub(body.bytes.len());
        body.bytes.extend_from_slice(&piece[..piece.len().min(room)]);
        if piece.len() > room {
            body.cut = true;
            break;
        }
    }
    Ok(body)
}

fn header(response: &Response, name: HeaderName) -> String {
    let value = response.headers().get(name).map(|value| value.as_bytes());
    String::from_utf8_lossy(value.unwrap_or_default()).chars().take(2000).collect()
}

/// Completes when the call is cancelled. A page takes seconds, so polling is enough.
async fn cancelled(cancel: &Cancel) {
    while !cancel.is_requested() {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

fn request_error(url: &Url, error: &reqwest::Error) -> EngineError {
    let mut source: Option<&(dyn Error + 'static)> = error.source();
    while let Some(cause) = source {
        if let Some(blocked @ DialError::Blocked(_)) = cause.downcast_ref() {
            return dial_error(url, blocked);
        }
        source = cause.source();
    }
    dial_error(url, &DialError::Failed(innermost(error).to_string()))
}

/// The client does not tell why a proxy makes no connection. It is asked again for the reason.
async fn proxy_error(url: &Url, proxy: &CompanyProxy, error: &reqwest::Error) -> EngineError {
    let asked = async {
        let mut stream = dial::reach(proxy).await?;
        match (scheme(url), web_address(url)) {
            (WebScheme::Https, Some(page)) => {
                let host = (page.host.trim_matches(['[', ']']), page.port);
                company_proxy::open_tunnel(&mut stream, proxy, host)
                    .await
                    .map_err(DialError::Failed)
            }
            (WebScheme::Http | WebScheme::Https, _) => Ok(()),
        }
    };
    match asked.await {
        Err(why) => dial_error(url, &why),
        Ok(()) => {
            let why = format!("{}, through your proxy {proxy}", innermost(error));
            dial_error(url, &DialError::Failed(why))
        }
    }
}

fn dial_error(url: &Url, error: &DialError) -> EngineError {
    let host = url.host_str().unwrap_or_default();
    match error {
        DialError::Blocked(why) => misfit(
            FailureCode::PrivateAddress,
            format!("{host} is not reached: {why}"),
            "A person can allow such pages: web.private_networks = \"allow\".",
        ),
        DialError::Failed(why) => misfit(
            FailureCode::Unreachable,
            format!("{host} cannot be read: {why}"),
            "Check the address, or go on without it.",
        ),
    }
}

fn interrupted() -> EngineError {
    misfit(FailureCode::Interrupted, "the call was cancelled before it finished".to_owned(), "")
}

fn timed_out(url: &Url, time: Duration) -> EngineError {
    let why = format!("{url} was not complete after {} s", time.as_secs());
    misfit(FailureCode::TimedOut, why, "Go on without it, or try later.")
}

fn client_error(why: &str) -> EngineError {
    misfit(FailureCode::Io, format!("no HTTP client could be created: {why}"), "Tell the person.")
}

fn misfit(code: FailureCode, message: String, hint: &str) -> EngineError {
    EngineError { code, message, hint: hint.to_owned() }
}

fn innermost(error: &reqwest::Error) -> &dyn Error {
    let mut last: &dyn Error = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    last
}

#[cfg(test)]
#[path = "fetch_tests.rs"]
mod tests;
