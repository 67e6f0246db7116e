//! A log-in at a server by OAuth 2.1: what is asked for, the address that a person opens, and the tokens
//! for the answer. Used by `--login` and by the client of `tests/conformance`; tokens are refreshed by [`resume`].
//!
//! Discovery, PKCE, resource indicators, the check of the issuer and the refresh are the library's.

use crate::challenge::Challenge;
use crate::credentials::LogInFile;
use crate::endpoint::{ServerNetwork, host_and_port};
use crate::grantor::Grantor;
use crate::http_client;
use crate::redirect::Redirected;
use crate::renewal::{Renewal, RenewalFailure};
use oauth2::TokenResponse;
use protocol::hidden::line;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, ClientBuilder, Url};
use rmcp::transport::auth::{
    AuthorizationManager, AuthorizationMetadata, CredentialStore, OAuthClientConfig,
    OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest,
};
use std::sync::Arc;
use std::time::Duration;

/// Longest time of a request.
const REQUEST: Duration = Duration::from_secs(30);
/// Most bytes of an answer.
const ANSWER: usize = 1 << 20;
/// Endpoints in errors.
pub(crate) const TOKENS: &str = "the address for tokens";
const REVOCATIONS: &str = "the address for revocations";
/// Most characters of an error.
const ERROR: usize = 1000;

/// What a log-in is for.
pub(crate) struct LogIn<'a> {
    /// The server.
    pub(crate) url: &'a str,
    /// Its refusal, which names its metadata and the scopes that it wants.
    pub(crate) challenge: Option<&'a Challenge>,
    /// Scopes beside those: the ones granted before, and those that a person asks for.
    pub(crate) scopes: Vec<String>,
    pub(crate) identity: ClientIdentity,
    /// Where the browser is sent with the answer.
    pub(crate) redirect: &'a str,
}

/// What the authorization server may know agentd by. Without any, agentd registers.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClientIdentity {
    /// Registered before, by a person.
    pub(crate) id: Option<String>,
    pub(crate) secret: Option<String>,
    /// The address of a client-id metadata document.
    pub(crate) metadata_url: Option<String>,
}

/// A log-in that waits for the person's answer.
pub(crate) struct Pending {
    manager: AuthorizationManager,
    address: Url,
    grantor: Grantor,
    hosts: Vec<String>,
}

impl Pending {
    /// Asks the server's metadata where to log in, and makes agentd known there.
    ///
    /// # Errors
    /// The server offers no log-in, or none that agentd may use.
    pub(crate) async fn begin(login: LogIn<'_>) -> Result<Self, String> {
        let url = safe("the server's address", login.url)?;
        let network = ServerNetwork::of(&url).await;
        let manager = if network.is_private() {
            AuthorizationManager::new_allowing_private_addresses(url.clone()).await
        } else {
            AuthorizationManager::new(url.clone()).await
        };
        let mut manager = manager.map_err(|error| said(&error))?;
        let header = login.challenge.map(|challenge| challenge.header.as_str());
        let found =
            manager.resolve_metadata_from_challenge(header).await.map_err(|error| said(&error))?;
        if !found.source.is_discovered() {
            return Err("the server publishes no address for a log-in (OAuth metadata)".to_owned());
        }
        // The library checks the addresses that it connects to; a browser does not.
        let token_endpoint = endpoint(network, TOKENS, &found.metadata.token_endpoint).await?;
        if let Some(place) = &found.metadata.registration_endpoint {
            endpoint(network, "the address for registration", place).await?;
        }
        manager.set_metadata(found.metadata.clone());
        let scopes = scopes(&manager, login.scopes).await;
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let client =
            known_as(&mut manager, (&found.metadata, login.identity), login.redirect, &scopes);
        let client = client.await?;
        let address = manager.get_authorization_url(&scopes).await.map_err(|error| said(&error))?;
        let address = endpoint(network, "the log-in's address", &address).await?;
        let resource = parameter(&address, "resource").unwrap_or_else(|| login.url.to_owned());
        let grantor = Grantor {
            resource,
            redirect: login.redirect.to_owned(),
            client_secret: client.client_secret,
            metadata: found.metadata,
        };
        let mut hosts: Vec<String> =
            [&token_endpoint, &url].into_iter().filter_map(host_and_port).collect();
        hosts.dedup();
        Ok(Self { manager, address, grantor, hosts })
    }

    /// The address that the person opens.
    pub(crate) fn address(&self) -> &Url {
        &self.address
    }

    /// The mark by which the answer to this log-in is known.
    pub(crate) fn state(&self) -> String {
        parameter(&self.address, "state").unwrap_or_default()
    }

    /// The host that tokens come from, then the server's if it is another one, with their ports. Tokens
    /// are sent to these alone.
    pub(crate) fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// Gets tokens for the answer, and has them stored.
    ///
    /// # Errors
    /// The person or the server refused, or the answer comes from another issuer.
    pub(crate) async fn finish<S: CredentialStore + 'static>(
        mut self,
        answer: Redirected,
        store: impl FnOnce(Grantor) -> S,
    ) -> Result<AuthorizationManager, String> {
        let (code, state, issuer) = match answer {
            Redirected::Code { code, state, issuer } => (code, state, issuer),
            Redirected::Refused { error, .. } => {
                return Err(format!("the log-in was refused: {}", short(&error)));
            }
        };
        self.manager.set_credential_store(store(self.grantor));
        let tokens =
            self.manager.exchange_code_for_token_with_issuer(&code, &state, issuer.as_deref());
        tokens.await.map_err(|error| said(&error))?;
        Ok(self.manager)
    }
}

/// The tokens of an earlier log-in, which are refreshed over this client. `renewal` learns how that went.
///
/// # Errors
/// There are none, or not for this grantor.
pub(crate) async fn resume<S: CredentialStore + 'static>(
    client: Client,
    grantor: Grantor,
    store: S,
    renewal: Renewal,
) -> Result<AuthorizationManager, String> {
    let over = Arc::new(Direct { client, renewal });
    let manager = AuthorizationManager::new_with_oauth_http_client(&grantor.resource, over).await;
    let mut manager = manager.map_err(|error| said(&error))?;
    manager.set_metadata(grantor.metadata);
    let stored = store.load().await.map_err(|error| said(&error))?;
    manager.set_credential_store(store);
    if !manager.initialize_from_store().await.map_err(|error| said(&error))? {
        return Err("there is no log-in".to_owned());
    }
    if let (Some(secret), Some(stored)) = (grantor.client_secret, stored) {
        let config = OAuthClientConfig::new(stored.client_id, grantor.redirect);
        let config = config.with_client_secret(secret);
        manager.configure_client(config).map_err(|error| said(&error))?;
    }
    Ok(manager)
}

/// Has the tokens of this log-in revoked, within this time. False where the server does not offer that.
///
/// # Errors
/// The server names another host for it, was not reached, or refused.
pub(crate) async fn revoke(
    settings: ClientBuilder,
    file: &LogInFile,
    hosts: &[String],
    time: Duration,
) -> Result<bool, String> {
    let endpoint = file.grantor.metadata.additional_fields.get("revocation_endpoint");
    let Some(endpoint) = endpoint.and_then(serde_json::Value::as_str) else { return Ok(false) };
    let (endpoint, client) = own_endpoint(settings, REVOCATIONS, endpoint, (file, hosts)).await?;
    let Some(tokens) = &file.credentials.token_response else { return Ok(false) };
    let refresh = tokens.refresh_token().map(|token| ("refresh_token", token.secret()));
    let all = refresh.into_iter().chain([("access_token", tokens.access_token().secret())]);
    for (kind, token) in all {
        let mut form = vec![("token", token.as_str()), ("token_type_hint", kind)];
        let mut request = client.post(endpoint.clone()).timeout(time);
        match &file.grantor.client_secret {
            Some(secret) => request = request.basic_auth(&file.credentials.client_id, Some(secret)),
            None => form.push(("client_id", &file.credentials.client_id)),
        }
        let body = Url::parse_with_params("form:", form).map_err(|error| said(&error))?;
        let request = request
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(body.query().unwrap_or_default().to_owned());
        let answer = request.send().await.map_err(|error| said(&error.without_url()))?;
        if !answer.status().is_success() {
            return Err(format!("it answers {}", answer.status()));
        }
    }
    Ok(true)
}

/// An endpoint at one of the hosts of a log-in, and a client that connects to its checked addresses only.
/// The client of the server may have changed the file of the log-in, and did not change the hosts.
///
/// # Errors
/// Why no token may go there.
pub(crate) async fn own_endpoint(
    settings: ClientBuilder,
    what: &str,
    address: &str,
    (file, hosts): (&LogInFile, &[String]),
) -> Result<(Url, Client), String> {
    let url = safe(what, address)?;
    let host = host_and_port(&url).unwrap_or_default();
    if !hosts.contains(&host) {
        return Err(format!(
            "{what} is at {}, which is neither the server nor the host that gave the tokens ({}); \
             nothing was sent there",
            short(&host),
            hosts.join(", ")
        ));
    }
    let network = ServerNetwork::of(&safe("the server's address", &file.url)?).await;
    let addresses = network.reach(what, &url).await?;
    let name = url.host_str().unwrap_or_default();
    let settings = match addresses.is_empty() {
        true => settings,
        false => settings.resolve_to_addrs(name, &addresses),
    };
    Ok((url, http_client::built(settings)?))
}

/// An endpoint of a server's metadata, if secrets and a browser may be sent there.
async fn endpoint(network: ServerNetwork, what: &str, address: &str) -> Result<Url, String> {
    let url = safe(what, address)?;
    network.reach(what, &url).await?;
    Ok(url)
}

/// The scopes to ask for: those of the challenge, or else those of the server's metadata, and these.
async fn scopes(manager: &AuthorizationManager, beside: Vec<String>) -> Vec<String> {
    let defaults: Vec<&str> = beside.iter().map(String::as_str).collect();
    let mut scopes = manager.select_initial_scopes(&defaults).await;
    for scope in beside {
        if !scopes.contains(&scope) {
            scopes.push(scope);
        }
    }
    scopes
}

/// Makes agentd known to the authorization server: by what was registered before, by a document, or by
/// registration.
async fn known_as(
    manager: &mut AuthorizationManager,
    (metadata, identity): (&AuthorizationMetadata, ClientIdentity),
    redirect: &str,
    scopes: &[&str],
) -> Result<OAuthClientConfig, String> {
    let reads_documents = metadata
        .additional_fields
        .get("client_id_metadata_document_supported")
        .and_then(serde_json::Value::as_bool)
        .unwrap_or_default();
    let config = match (identity.id, identity.metadata_url) {
        (Some(id), _) => {
            let config = OAuthClientConfig::new(id, redirect);
            match identity.secret {
                Some(secret) => config.with_client_secret(secret),
                None => config,
            }
        }
        (None, Some(document)) if reads_documents => OAuthClientConfig::new(document, redirect),
        (None, _) if metadata.registration_endpoint.is_none() => {
            let issuer = metadata.issuer.as_deref().unwrap_or("the authorization server");
            return Err(format!(
                "{} lets no client register itself; register agentd there by hand, with the redirect \
                 address http://127.0.0.1/callback, and name its id by `--client-id`",
                short(issuer)
            ));
        }
        (None, _) => {
            let registered = manager.register_client("agentd", redirect, scopes).await;
            return registered.map_err(|error| said(&error));
        }
    };
    manager.configure_client(config.clone()).map_err(|error| said(&error))?;
    Ok(config)
}

/// The address, if secrets and a browser may be sent there.
///
/// # Errors
/// Why they may not.
pub(crate) fn safe(what: &str, address: &str) -> Result<Url, String> {
    let url = Url::parse(address).map_err(|error| format!("{what}: {error}"))?;
    let here = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    match url.scheme() {
        "https" => Ok(url),
        "http" if here => Ok(url),
        "http" => Err(format!("{what} is not https: tokens would travel unencrypted")),
        scheme => Err(format!("{what} begins with {}: and not https:", short(scheme))),
    }
}

fn parameter(url: &Url, name: &str) -> Option<String> {
    url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

/// An error with its causes.
pub(crate) fn said(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    short(&without_types(&text))
}

/// The library names its own types in errors of a transport: `Transport [a::B<c::D>] error: HTTP 503`.
fn without_types(text: &str) -> String {
    let named = text.split_once("Transport [").and_then(|(before, rest)| {
        let (_, after) = rest.split_once("] error: ")?;
        Some(format!("{before}{after}"))
    });
    named.map_or_else(|| text.to_owned(), |rest| without_types(&rest))
}

fn short(text: &str) -> String {
    line(text, ERROR)
}

/// Sends requests for tokens over a client that its maker chose, which follows no redirect.
struct Direct {
    client: Client,
    renewal: Renewal,
}

impl OAuthHttpClient for Direct {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let mut sent = reqwest::Request::try_from(request.request)?;
            *sent.timeout_mut() = Some(request.timeout.map_or(REQUEST, |time| time.min(REQUEST)));
            let mut response = self.client.execute(sent).await.inspect_err(|error| {
                self.renewal.note(Some(RenewalFailure::without_answer(&said(error))));
            })?;
            let mut answer = ::http::Response::builder().status(response.status());
            for (name, value) in response.headers() {
                answer = answer.header(name, value);
            }
            let mut body = Vec::new();
            while let Some(piece) = response.chunk().await? {
                if body.len() + piece.len() > ANSWER {
                    return Err("the answer is too long".into());
                }
                body.extend_from_slice(&piece);
            }
            self.renewal.note(RenewalFailure::of_answer(response.status().as_u16(), &body));
            Ok(answer.body(body)?)
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn tokens_and_browsers_go_to_https_or_to_this_machine_only() {
        for address in ["https://a.example/x", "http://127.0.0.1:1/x", "http://localhost:1/x"] {
            assert!(safe("it", address).is_ok(), "{address}");
        }
        for address in ["http://a.example/x", "file:///etc/passwd", "javascript:alert(1)", "no"] {
            assert!(safe("it", address).is_err(), "{address}");
        }
    }
}
