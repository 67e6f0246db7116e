//! A server that is reached over HTTP: the transport, and how a refusal is told. Used by the engine and
//! by the client of `tests/conformance`; the caller makes the HTTP client, with its proxy and its certificates.

use crate::challenge::{Challenged, Shown, Watched};
use crate::client::converse;
use crate::readable::LONGEST_MESSAGE;
use crate::renewal::{Renewal, RenewalFailureKind};
use protocol::mcp::ServerFault;
use reqwest::Client;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::auth::{AuthClient, AuthorizationManager};
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpClientTransportConfig,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tools::ServerLink;

/// Most bytes of an error's text.
const ERROR: usize = 64 * 1024;

/// Longest pause before a stream is opened again that failed.
const RECONNECT: Duration = Duration::from_secs(60);

/// The library itself ends a request whose answer cannot be read.
fn nothing_unread() -> UnboundedReceiver<String> {
    unbounded_channel().1
}

/// A server with an address.
pub(crate) struct HttpServer {
    pub(crate) url: String,
    /// Sent with each request. Their values may be secrets.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) access: Access,
    /// The last request for a log-in that the server answered with.
    pub(crate) challenged: Challenged,
}

/// What a server is shown.
pub(crate) enum Access {
    Open,
    /// A token that does not change.
    Bearer(String),
    /// Tokens of a log-in, which are refreshed.
    LoggedIn(Box<AuthorizationManager>, Renewal),
}

/// Speaks with the server until `link.asks` has an end, or the server is of no use any more.
///
/// # Errors
/// Why it is of no use: the address, a header, no connection, no log-in, or it does not speak the
/// protocol.
pub(crate) fn serve(
    client: Client,
    server: HttpServer,
    link: ServerLink<'_>,
) -> Result<(), ServerFault> {
    let has_key = server.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
    let mut config = StreamableHttpClientTransportConfig::with_uri(server.url)
        .custom_headers(headers(server.headers)?)
        // It would send the request again that the server answers with 404, and that may have run.
        .reinit_on_expired_session(false)
        .max_sse_event_size(LONGEST_MESSAGE)
        .max_json_response_size(LONGEST_MESSAGE)
        .max_error_response_size(ERROR);
    let mut backoff = ExponentialBackoff::default();
    backoff.max_delay = Some(RECONNECT);
    config.retry_config = Arc::new(backoff);
    let name = link.name.to_owned();
    let challenged = server.challenged;
    let shown = match &server.access {
        Access::Open if has_key => Shown::Token,
        Access::Open => Shown::Nothing,
        Access::Bearer(_) => Shown::Token,
        Access::LoggedIn(_, renewal) => Shown::LogIn(renewal.clone()),
    };
    let ended = match server.access {
        Access::Open => converse(link, shown.clone(), nothing_unread(), async || {
            connect(&client, &challenged, &config)
        }),
        Access::Bearer(token) => {
            if HeaderValue::try_from(&token).is_err() {
                return Err("the token has letters that no header may have, such as a line's end"
                    .to_owned()
                    .into());
            }
            config = config.auth_header(token);
            converse(link, shown.clone(), nothing_unread(), async || {
                connect(&client, &challenged, &config)
            })
        }
        Access::LoggedIn(manager, _) => {
            let client = AuthClient::new(client, *manager);
            converse(link, shown.clone(), nothing_unread(), async || {
                connect(&client, &challenged, &config)
            })
        }
    };
    ended.map_err(|why| match challenged.last() {
        Some(challenge) => challenge.fault(&name, &shown),
        None => not_renewed(&name, &shown).unwrap_or(ServerFault::Other(why)),
    })
}

/// The fault of a server whose log-in could not be renewed.
fn not_renewed(server: &str, shown: &Shown) -> Option<ServerFault> {
    let Shown::LogIn(renewal) = shown else { return None };
    let failure = renewal.failure()?;
    let why = failure.advice(server);
    Some(match failure.kind {
        RenewalFailureKind::Refused => ServerFault::WantsLogIn(why),
        RenewalFailureKind::Other => ServerFault::Other(why),
    })
}

// One return type for the three kinds of access: the error lets them stand in one place.
#[allow(clippy::unnecessary_wraps)]
fn connect<C>(
    client: &C,
    challenged: &Challenged,
    config: &StreamableHttpClientTransportConfig,
) -> Result<StreamableHttpClientTransport<Watched<C>>, String>
where
    C: StreamableHttpClient + Sync,
{
    let client = Watched::new(client.clone(), challenged.clone());
    Ok(StreamableHttpClientTransport::with_client(client, config.clone()))
}

fn headers(listed: Vec<(String, String)>) -> Result<HashMap<HeaderName, HeaderValue>, String> {
    let one = |(name, value): (String, String)| {
        let header = HeaderName::try_from(&name)
            .map_err(|_| format!("{name:?} cannot be the name of a header"))?;
        // The value may be a secret, which no error shows.
        let mut value = HeaderValue::try_from(value)
            .map_err(|_| format!("the header {name} has letters that no header may have"))?;
        value.set_sensitive(true);
        Ok((header, value))
    };
    listed.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn of(name: &str, value: &str) -> Result<HashMap<HeaderName, HeaderValue>, String> {
        headers(vec![(name.to_owned(), value.to_owned())])
    }

    #[test]
    fn a_header_is_named_where_it_is_wrong_and_its_value_is_not_shown() {
        assert_eq!(of("x key", "a").unwrap_err(), "\"x key\" cannot be the name of a header");
        let error = of("x-key", "secret\nvalue").unwrap_err();
        assert_eq!(error, "the header x-key has letters that no header may have");
        let good = of("X-Key", "secret").unwrap();
        let (name, value) = good.iter().next().unwrap();
        assert_eq!((name.as_str(), value.as_bytes()), ("x-key", &b"secret"[..]));
        assert!(!format!("{value:?}").contains("secret"), "{value:?}");
    }
}
