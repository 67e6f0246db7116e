//! A server's refusals that a log-in helps against (401, and 403 for a scope that is missing), noticed
//! below the library's transport. Used by the transport over HTTP and for the answers of calls.

use crate::reconnects::Reconnects;
use crate::renewal::Renewal;
use futures_util::stream::BoxStream;
use protocol::hidden::line_for_model;
use protocol::mcp::ServerFault;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, InsufficientScopeError, SseError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse, StreamableHttpResponseLimits,
};
use sse_stream::Sse;
use std::collections::HashMap;
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most characters of a scope that a message shows.
const SCOPE: usize = 200;

/// What a server wants before it answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Challenge {
    /// The value of its header `WWW-Authenticate`.
    pub(crate) header: String,
    pub(crate) wants: Wants,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wants {
    /// A log-in, or a new one.
    LogIn,
    /// A log-in with these scopes, where it names them.
    Scope(Option<String>),
}

/// What the server was shown when it refused.
#[derive(Debug, Clone)]
pub(crate) enum Shown {
    Nothing,
    /// The token of the configuration.
    Token,
    /// A token of a log-in, and how its last renewal went.
    LogIn(Renewal),
}

impl Challenge {
    /// The challenge in this error or one of its causes.
    pub(crate) fn of(error: &(dyn Error + 'static)) -> Option<Self> {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if let Some(refused) = error.downcast_ref::<AuthRequiredError>() {
                return Some(Self::log_in(refused));
            }
            if let Some(refused) = error.downcast_ref::<InsufficientScopeError>() {
                return Some(Self::scope(refused));
            }
            cause = error.source();
        }
        None
    }

    fn log_in(refused: &AuthRequiredError) -> Self {
        Self { header: refused.www_authenticate_header.clone(), wants: Wants::LogIn }
    }

    fn scope(refused: &InsufficientScopeError) -> Self {
        let wants = Wants::Scope(refused.required_scope.clone());
        Self { header: refused.www_authenticate_header.clone(), wants }
    }

    /// The same as the reason why the server is of no use.
    pub(crate) fn fault(&self, server: &str, shown: &Shown) -> ServerFault {
        let why = self.advice(server, shown);
        match (&self.wants, shown) {
            (Wants::LogIn, Shown::Nothing | Shown::LogIn(_)) => ServerFault::WantsLogIn(why),
            // No log-in helps against the token of the configuration, and one call that wants a scope does
            // not end the server.
            (Wants::LogIn, Shown::Token) | (Wants::Scope(_), _) => ServerFault::Other(why),
        }
    }

    /// The way on, for a person.
    pub(crate) fn advice(&self, server: &str, shown: &Shown) -> String {
        match (&self.wants, shown) {
            (Wants::LogIn, Shown::Token) => {
                format!("the server refuses the token of its configuration; see [mcp.{server}]")
            }
            (Wants::LogIn, Shown::Nothing) => {
                format!("the server wants a log-in; run `agentd mcp login {server}`")
            }
            (Wants::LogIn, Shown::LogIn(renewal)) => match renewal.failure() {
                Some(failure) => failure.advice(server),
                None => format!(
                    "the server does not accept the log-in any more; run `agentd mcp login {server}`"
                ),
            },
            (Wants::Scope(scope), Shown::Token) => format!(
                "the token of the configuration does not have the scope{}; see [mcp.{server}]",
                named(scope.as_deref())
            ),
            (Wants::Scope(scope), Shown::Nothing | Shown::LogIn(_)) => format!(
                "the server wants a log-in with the scope{0}; run `agentd mcp login {server}{1}`",
                named(scope.as_deref()),
                flag(scope.as_deref())
            ),
        }
    }
}

fn named(scope: Option<&str>) -> String {
    scope.map(|scope| format!(" {}", short(scope))).unwrap_or_default()
}

fn flag(scope: Option<&str>) -> String {
    // A scope has no quotation marks and no backslash (RFC 6749, 3.3): others are not repeated.
    let plain = |letter: char| {
        letter == ' ' || letter.is_ascii_alphanumeric() || "-._~:/+*".contains(letter)
    };
    let scope = scope.filter(|scope| !scope.is_empty() && scope.chars().all(plain));
    scope.map(|scope| format!(" --scope '{}'", short(scope))).unwrap_or_default()
}

fn short(scope: &str) -> String {
    line_for_model(scope).chars().take(SCOPE).collect()
}

/// Keeps the last challenge, until a request that began after it ended otherwise. Several requests are under way
/// at once: the answer to an earlier one proves nothing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Challenged(Arc<Mutex<LastChallenge>>);

#[derive(Debug, Default)]
struct LastChallenge {
    /// Beginnings of requests and challenges so far.
    count: u64,
    /// The last challenge, with its place among those.
    last: Option<(u64, Challenge)>,
}

impl Challenged {
    fn lock(&self) -> MutexGuard<'_, LastChallenge> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request begins. Returns its place.
    fn begin(&self) -> u64 {
        let mut known = self.lock();
        known.count += 1;
        known.count
    }

    /// The request that began at this place has ended.
    fn end(&self, place: u64, challenge: Option<Challenge>) {
        let mut known = self.lock();
        match challenge {
            Some(challenge) => {
                known.count += 1;
                known.last = Some((known.count, challenge));
            }
            None => {
                known.last.take_if(|(challenged, _)| *challenged < place);
            }
        }
    }

    /// The last challenge, if no later request passed.
    pub(crate) fn last(&self) -> Option<Challenge> {
        self.lock().last.as_ref().map(|(_, challenge)| challenge.clone())
    }
}

/// A client whose challenges are kept, and whose streams are opened at a bounded pace.
#[derive(Clone)]
pub(crate) struct Watched<C> {
    client: C,
    challenged: Challenged,
    reconnects: Reconnects,
}

impl<C: StreamableHttpClient> Watched<C> {
    pub(crate) fn new(client: C, challenged: Challenged) -> Self {
        Self { client, challenged, reconnects: Reconnects::default() }
    }

    fn seen<T>(
        &self,
        place: u64,
        answer: Result<T, StreamableHttpError<C::Error>>,
    ) -> Result<T, StreamableHttpError<C::Error>> {
        // The library may add kinds of errors; all others are no challenge.
        #[allow(clippy::wildcard_enum_match_arm)]
        let (challenge, answer) = match answer {
            Err(StreamableHttpError::AuthRequired(refused)) => {
                (Some(Challenge::log_in(&refused)), Err(StreamableHttpError::AuthRequired(refused)))
            }
            Err(StreamableHttpError::InsufficientScope(refused)) => {
                let challenge = Challenge::scope(&refused);
                (Some(challenge), Err(StreamableHttpError::InsufficientScope(refused)))
            }
            // The library takes a 401 for a challenge only with the header that it has to have.
            Err(StreamableHttpError::UnexpectedServerResponse(text)) if is_bare(&text) => {
                let refused = AuthRequiredError::new(String::new());
                (Some(Challenge::log_in(&refused)), Err(StreamableHttpError::AuthRequired(refused)))
            }
            other => (None, other),
        };
        self.challenged.end(place, challenge);
        answer
    }
}

/// True for a 401 without a header, in the words of the library, which a test compares.
fn is_bare(text: &str) -> bool {
    text.starts_with("HTTP 401")
}

/// The library's headers of one request.
type Headers = HashMap<HeaderName, HeaderValue>;

impl<C: StreamableHttpClient + Sync> StreamableHttpClient for Watched<C> {
    type Error = C::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<C::Error>> {
        let place = self.challenged.begin();
        let posted = self.client.post_message(uri, message, session, token, headers).await;
        self.seen(place, posted)
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<C::Error>> {
        let place = self.challenged.begin();
        let post = self
            .client
            .post_message_with_response_limits(uri, message, session, token, headers, limits);
        self.seen(place, post.await)
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), StreamableHttpError<C::Error>> {
        self.client.delete_session(uri, session, token, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, StreamableHttpError<C::Error>> {
        self.reconnects.wait().await;
        self.client.get_stream(uri, session, last_event, token, headers).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
        most: usize,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, StreamableHttpError<C::Error>> {
        self.reconnects.wait().await;
        let stream = self
            .client
            .get_stream_with_max_sse_event_size(uri, session, last_event, token, headers, most);
        stream.await
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn scope(scope: &str) -> Challenge {
        let wants = Wants::Scope(Some(scope.to_owned()));
        Challenge { header: String::new(), wants }
    }

    #[test]
    fn the_advice_repeats_a_scope_only_where_a_shell_reads_it_as_one_word() {
        let advice =
            scope("files:read files:write").advice("drive", &Shown::LogIn(Renewal::default()));
        assert!(advice.ends_with("`agentd mcp login drive --scope 'files:read files:write'`"));
        let advice = scope("a'; rm -rf x; '").advice("drive", &Shown::LogIn(Renewal::default()));
        assert!(advice.ends_with("`agentd mcp login drive`"), "{advice}");
    }

    #[test]
    fn a_refused_token_leads_to_the_configuration_and_a_missing_one_to_the_log_in() {
        let challenge = Challenge { header: String::new(), wants: Wants::LogIn };
        assert!(matches!(
            challenge.fault("drive", &Shown::LogIn(Renewal::default())),
            ServerFault::WantsLogIn(_)
        ));
        assert!(matches!(challenge.fault("drive", &Shown::Token), ServerFault::Other(_)));
        assert!(challenge.advice("drive", &Shown::Token).ends_with("see [mcp.drive]"));
        assert!(challenge.advice("drive", &Shown::Nothing).ends_with("`agentd mcp login drive`"));
    }

    /// A server that answers its one request with this head.
    fn answers(head: &'static str) -> std::net::SocketAddr {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = socket.accept().unwrap();
            let mut request = [0; 4096];
            let _ = std::io::Read::read(&mut stream, &mut request).unwrap();
            let reply = format!("HTTP/1.1 {head}\r\nContent-Length: 0\r\n\r\n");
            std::io::Write::write_all(&mut stream, reply.as_bytes()).unwrap();
        });
        address
    }

    #[test]
    fn a_refusal_for_want_of_a_log_in_is_known_with_and_without_its_header() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let ping = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
        for (head, header) in [
            ("401 Unauthorized\r\nWWW-Authenticate: Bearer", Some("Bearer")),
            ("401 Unauthorized", Some("")),
            ("400 Bad Request", None),
            ("404 Not Found", None),
        ] {
            let challenged = Challenged::default();
            let client = crate::http_client::client_settings().no_proxy().build().unwrap();
            let client = Watched::new(client, challenged.clone());
            let url = format!("http://{}/", answers(head)).into();
            let message = serde_json::from_value(ping.clone()).unwrap();
            let posted = client.post_message(url, message, None, None, Headers::new());
            let error = runtime.block_on(posted).unwrap_err();
            let found = Challenge::of(&error).map(|challenge| challenge.header);
            assert_eq!(found.as_deref(), header, "{head}: {error}");
            assert_eq!(challenged.last().map(|it| it.header).as_deref(), header, "{head}");
        }
    }

    #[test]
    fn a_challenge_stays_until_a_later_request_passes() {
        let challenge = || Some(scope("a"));
        let challenged = Challenged::default();
        let (first, second) = (challenged.begin(), challenged.begin());
        challenged.end(first, challenge());
        challenged.end(second, None);
        assert_eq!(challenged.last(), challenge(), "it began before the refusal");
        let third = challenged.begin();
        challenged.end(third, None);
        assert_eq!(challenged.last(), None);
    }

    #[test]
    fn a_challenge_is_found_below_other_errors() {
        let refused = AuthRequiredError::new("Bearer realm=\"x\"".to_owned());
        let error = StreamableHttpError::<std::io::Error>::AuthRequired(refused);
        let challenge = Challenge::of(&error).unwrap();
        assert_eq!(challenge.header, "Bearer realm=\"x\"");
        assert!(Challenge::of(&std::io::Error::other("no")).is_none());
    }
}
