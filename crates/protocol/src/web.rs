//! Types of the web tools: the address that a call requests, as rules match it, and the person's
//! settings.

use crate::hosts::{HostRule, host_name};
use crate::judgement::RuleSet;
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

/// Settings for every call of these tools.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct WebSettings {
    /// The page that takes a search in its query `q`.
    pub search_url: String,
    /// Policy for addresses of private networks and of this machine.
    pub private: PrivateNetworks,
}

/// Which other pages of its host a call may read, where the server leads there.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct RedirectScope {
    /// The session's rules, by which each page is judged.
    pub rules: RuleSet,
    /// The right by which the call may reach this host.
    pub host: HostRight,
}

/// The right by which a call may reach the host of its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum HostRight {
    /// The session has it, or a person gave it to this call.
    Given,
    /// A rule gave it for this page, and must give it for each other one.
    ByRule,
}

/// Policy for addresses of private networks and of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum PrivateNetworks {
    /// They are not.
    Refused,
    /// They are, as any other: intranets, tests.
    Reached,
}
