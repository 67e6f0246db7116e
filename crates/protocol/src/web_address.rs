//! The address of the web that a call requests, as rules match it.

use crate::hosts::{HostRule, host_name};
use crate::{Decode, Encode};
use std::fmt;
use std::net::IpAddr;

/// The server that a call contacts, and the purpose.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct WebAddress {
    /// Its host and port, as the call requests them.
    pub server: HostRule,
    /// In lower case, without a dot at its end; an address in its place as URLs write it.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Begins with `/`; percent signs only where they matter; without the query.
    pub path: String,
}

impl WebAddress {
    /// True if it has a host name instead of a numeric address.
    #[must_use]
    pub fn is_named(&self) -> bool {
        host_name(&self.host).is_some()
    }

    /// True if it means the machine on which it is looked up.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let number = self.host.trim_matches(['[', ']']).parse::<IpAddr>();
        self.host == "localhost" || number.is_ok_and(|address| address.is_loopback())
    }

    /// The server as people write it: without a port that is the web's own.
    #[must_use]
    pub fn site(&self) -> String {
        match self.port {
            80 | 443 => self.host.clone(),
            _ => self.server.to_string(),
        }
    }
}

impl fmt::Display for WebAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.site(), self.path)
    }
}
