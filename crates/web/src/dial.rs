//! Connects to a named host: resolves the name once, checks every address, and connects to one of
//! these, or to the proxy of the person's environment. The only file of this crate that opens
//! connections.

use crate::blocked_ranges::blocked_reason;
use crate::company_proxy::{self, Duplex};
use protocol::company_proxy::{CompanyProxy, ProxyEnvironment, WebScheme};
use protocol::web::PrivateNetworks;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

/// Timeout of a name lookup.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);
/// The same where a proxy looks the name up too. Behind some proxies no name server answers.
const PROXIED_LOOKUP_TIMEOUT: Duration = Duration::from_secs(2);
/// Timeout for each address.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Limit of addresses that are tried.
const MAX_ADDRESSES: usize = 4;

/// Why there is no connection.
#[derive(Debug, Clone)]
pub(crate) enum DialError {
    /// The name resolves to a blocked address.
    Blocked(String),
    /// The name or the host does not answer.
    Failed(String),
}

impl fmt::Display for DialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blocked(why) | Self::Failed(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for DialError {}

/// Resolver for an HTTP client, which then connects only to checked addresses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CheckedResolver(pub PrivateNetworks);

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let private = self.0;
        Box::pin(async move {
            // The client adds the port.
            let addresses = look_up(name.as_str(), 0, private).await?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

/// A connection to a host.
pub(crate) struct Dialled {
    pub(crate) stream: Box<dyn Duplex>,
    /// The address that was dialed, or the proxy, for people.
    pub(crate) peer: String,
    /// The proxy that reads the requests of this connection, for [`WebScheme::Http`].
    pub(crate) through: Option<CompanyProxy>,
}

/// Resolves a name and connects, or has the person's proxy do so.
pub(crate) async fn dial(
    (name, port): (&str, u16),
    private: PrivateNetworks,
    (proxies, scheme): (&ProxyEnvironment, WebScheme),
) -> Result<Dialled, DialError> {
    let name = name.trim_matches(['[', ']']);
    if let Some(proxy) = proxy_of((name, port), private, (proxies, scheme)).await? {
        let mut stream = reach(proxy).await?;
        let through = match scheme {
            WebScheme::Http => Some(proxy.clone()),
            WebScheme::Https => {
                let opened = company_proxy::open_tunnel(&mut stream, proxy, (name, port)).await;
                opened.map_err(DialError::Failed)?;
                None
            }
        };
        return Ok(Dialled { stream, peer: proxy.to_string(), through });
    }
    let addresses = look_up(name, port, private).await?;
    let (stream, address) = connect(addresses).await.map_err(DialError::Failed)?;
    Ok(Dialled { stream: Box::new(stream), peer: address.to_string(), through: None })
}

/// The proxy that leads to a host. The name is judged here too, if it can be resolved here; the proxy
/// resolves it again. A name of this machine itself is reached without it.
pub(crate) async fn proxy_of<'a>(
    (name, port): (&str, u16),
    private: PrivateNetworks,
    (proxies, scheme): (&'a ProxyEnvironment, WebScheme),
) -> Result<Option<&'a CompanyProxy>, DialError> {
    let found = proxies.proxy_for(scheme, name, port);
    let Some(proxy) = found.map_err(|error| DialError::Failed(error.to_string()))? else {
        return Ok(None);
    };
    match timeout(PROXIED_LOOKUP_TIMEOUT, look_up(name, port, private)).await {
        Ok(Err(error @ DialError::Blocked(_))) => Err(error),
        Ok(Ok(addresses)) if addresses.iter().all(|address| address.ip().is_loopback()) => Ok(None),
        Ok(Ok(_) | Err(DialError::Failed(_))) | Err(_) => Ok(Some(proxy)),
    }
}

/// Connects to a proxy, wherever it is.
pub(crate) async fn reach(proxy: &CompanyProxy) -> Result<Box<dyn Duplex>, DialError> {
    let reached = async {
        let host = proxy.host.as_str();
        let addresses = look_up(host, proxy.port, PrivateNetworks::Reached).await;
        connect(addresses.map_err(|error| error.to_string())?).await
    };
    let (stream, _) = reached.await.map_err(|why| {
        DialError::Failed(company_proxy::failed(proxy, &format!("is not reached: {why}")))
    })?;
    match proxy.scheme {
        WebScheme::Http => Ok(Box::new(stream)),
        WebScheme::Https => company_proxy::in_tls(stream, proxy).await.map_err(DialError::Failed),
    }
}

async fn connect(addresses: Vec<SocketAddr>) -> Result<(TcpStream, SocketAddr), String> {
    let mut last = String::new();
    for address in addresses.into_iter().take(MAX_ADDRESSES) {
        match timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok((stream, address)),
            Ok(Err(error)) => last = format!("{address}: {error}"),
            Err(_) => last = format!("{address} did not answer in {} s", CONNECT_TIMEOUT.as_secs()),
        }
    }
    Err(last)
}

/// All addresses of a name, checked. If one is blocked, the whole name is refused: a mix of public
/// and blocked addresses is suspicious.
async fn look_up(
    name: &str,
    port: u16,
    private: PrivateNetworks,
) -> Result<Vec<SocketAddr>, DialError> {
    let failed = |why: String| DialError::Failed(format!("the name cannot be looked up: {why}"));
    let found = match timeout(LOOKUP_TIMEOUT, lookup_host((name, port))).await {
        Ok(found) => found.map_err(|error| failed(error.to_string()))?,
        Err(_) => return Err(failed(format!("no answer in {} s", LOOKUP_TIMEOUT.as_secs()))),
    };
    let addresses: Vec<SocketAddr> = found.collect();
    let barred = match private {
        PrivateNetworks::Refused => first_blocked(&addresses),
        PrivateNetworks::Reached => None,
    };
    match barred {
        Some(why) => Err(DialError::Blocked(why)),
        None if addresses.is_empty() => Err(failed("it has no address".to_owned())),
        None => Ok(addresses),
    }
}

/// The first blocked address with the reason.
fn first_blocked(addresses: &[SocketAddr]) -> Option<String> {
    addresses.iter().find_map(|address| {
        blocked_reason(address.ip()).map(|why| format!("it resolves to {}, {why}", address.ip()))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn one_address_that_is_not_fit_bars_the_name() {
        let addresses = |texts: &[&str]| -> Vec<SocketAddr> {
            texts.iter().map(|text| text.parse().unwrap()).collect()
        };
        assert_eq!(first_blocked(&addresses(&["93.184.216.34:443", "[2606:2800::1]:443"])), None);
        let why = first_blocked(&addresses(&["93.184.216.34:443", "10.0.0.7:443"])).unwrap();
        assert_eq!(why, "it resolves to 10.0.0.7, a private network");
    }
}
