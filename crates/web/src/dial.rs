//! Connects to a named host: resolves the name once, checks every address, and connects to one of
//! these. The only file of this crate that opens connections.

use crate::blocked_ranges::blocked_reason;
use protocol::web::PrivateNetworks;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

/// Timeout of a name lookup.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);
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

/// Resolves a name and connects.
pub(crate) async fn dial(
    name: &str,
    port: u16,
    private: PrivateNetworks,
) -> Result<(TcpStream, SocketAddr), DialError> {
    let addresses = look_up(name.trim_matches(['[', ']']), port, private).await?;
    let mut last = String::new();
    for address in addresses.into_iter().take(MAX_ADDRESSES) {
        match timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok((stream, address)),
            Ok(Err(error)) => last = format!("{address}: {error}"),
            Err(_) => last = format!("{address} did not answer in {} s", CONNECT_TIMEOUT.as_secs()),
        }
    }
    Err(DialError::Failed(last))
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
