//! The addresses that a server's metadata name for a log-in: where requests with secrets may go.
//!
//! A server in the public internet leads no request into a network of the person or to this machine, by
//! an address or by a name that resolves to one. Used by `oauth` and `login`.

use reqwest::Url;
use std::net::{IpAddr, SocketAddr};

/// Where an address lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AddressClass {
    Public,
    /// A network of the person's.
    Private,
    /// This machine.
    Loopback,
    /// Where no server of a log-in is: link-local addresses, where clouds publish credentials, and others.
    Special,
}

impl AddressClass {
    fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            address if address.is_loopback() => Self::Loopback,
            IpAddr::V4(address) if address.is_private() => Self::Private,
            // Carrier-grade NAT, which private overlay networks use too.
            IpAddr::V4(address) if matches!(address.octets(), [100, 64..=127, ..]) => Self::Private,
            IpAddr::V6(address) if address.is_unique_local() => Self::Private,
            address if web::blocked_reason(address).is_none() => Self::Public,
            IpAddr::V4(_) | IpAddr::V6(_) => Self::Special,
        }
    }
}

/// The network of a server, which decides where its endpoints may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServerNetwork(AddressClass);

impl ServerNetwork {
    /// That of the server at this address. A name with a public address beside a private one counts as
    /// public, and so does one that cannot be resolved here.
    pub(crate) async fn of(server: &Url) -> Self {
        Self::among(&addresses(server).await)
    }

    fn among(addresses: &[SocketAddr]) -> Self {
        let mut classes = addresses.iter().map(|address| AddressClass::of(address.ip()));
        let first = classes.next().unwrap_or(AddressClass::Public);
        let is_own = matches!(first, AddressClass::Private | AddressClass::Loopback)
            && classes.all(|class| class == first);
        Self(if is_own { first } else { AddressClass::Public })
    }

    pub(crate) fn is_private(self) -> bool {
        self.0 == AddressClass::Private
    }

    /// The addresses of an endpoint that this server's metadata name, to connect to these alone. None if
    /// its name cannot be resolved here.
    ///
    /// # Errors
    /// Why no request may go there.
    pub(crate) async fn reach(self, what: &str, endpoint: &Url) -> Result<Vec<SocketAddr>, String> {
        let found = addresses(endpoint).await;
        self.judge(&found).map_err(|address| {
            format!(
                "{what} leads to {address}, which is not in the public internet, as the server is; nothing \
                 was sent there"
            )
        })?;
        Ok(found)
    }

    /// The first address that the server may not name.
    fn judge(self, addresses: &[SocketAddr]) -> Result<(), IpAddr> {
        let is_fit = |class| class == AddressClass::Public || class == self.0;
        let misfit = addresses.iter().find(|address| !is_fit(AddressClass::of(address.ip())));
        misfit.map_or(Ok(()), |address| Err(address.ip()))
    }
}

/// Host and port of an address, as they are recorded.
pub(crate) fn host_and_port(url: &Url) -> Option<String> {
    Some(format!("{}:{}", url.host_str()?, url.port_or_known_default()?))
}

async fn addresses(url: &Url) -> Vec<SocketAddr> {
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
        return Vec::new();
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    tokio::net::lookup_host((host, port)).await.map(Iterator::collect).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn all(addresses: &[&str]) -> Vec<SocketAddr> {
        addresses.iter().map(|it| SocketAddr::new(it.parse().unwrap(), 443)).collect()
    }

    #[test]
    fn a_server_is_in_a_network_only_with_all_of_its_addresses() {
        for private in [
            &["10.0.0.1"][..],
            &["192.168.1.1", "fd00::1"],
            &["::ffff:172.16.0.1"],
            &["100.64.0.1"],
        ] {
            assert!(ServerNetwork::among(&all(private)).is_private(), "{private:?}");
        }
        for other in [
            &["10.0.0.1", "93.184.216.34"][..],
            &["10.0.0.1", "127.0.0.1"],
            &["169.254.169.254"],
            &["127.0.0.1"],
            &["2001:db8::1"],
            &[],
        ] {
            assert!(!ServerNetwork::among(&all(other)).is_private(), "{other:?}");
        }
    }

    #[test]
    fn an_endpoint_is_public_or_in_the_server_s_own_network() {
        let (public, private, here) = ("93.184.216.34", "10.0.0.1", "127.0.0.1");
        for (server, endpoint, is_fit) in [
            (public, &[public][..], true),
            (public, &["151.101.1.69"], true),
            (public, &[private], false),
            (public, &[here], false),
            (public, &["::1"], false),
            (public, &["::ffff:127.0.0.1"], false),
            (public, &["64:ff9b::7f00:1"], false),
            (public, &["0.0.0.0"], false),
            (public, &["169.254.169.254"], false),
            (public, &[public, private], false),
            (private, &["192.168.0.9"], true),
            (private, &[public], true),
            (private, &[here], false),
            (private, &["169.254.169.254"], false),
            (here, &["::1"], true),
            (here, &[private], false),
        ] {
            let network = ServerNetwork::among(&all(&[server]));
            assert_eq!(network.judge(&all(endpoint)).is_ok(), is_fit, "{server} {endpoint:?}");
        }
    }
}
