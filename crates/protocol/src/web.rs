//! What tools of the web speak of: the address that a call asks for, as rules see it, and what the
//! person set for all of them.

use crate::hosts::HostRule;
use crate::{Decode, Encode};
use std::fmt;

/// The server that a call asks, and what for.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct WebAddress {
    /// Its name; it speaks of one name and of one port, or of those of the web.
    pub server: HostRule,
    /// In lower case, without a dot at its end.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Begins with `/`; percent signs only where they matter; without the query.
    pub path: String,
}

impl fmt::Display for WebAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.server, self.path)
    }
}

/// What holds for every call of these tools.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct WebSettings {
    /// The page that takes a search in its query `q`.
    pub search_url: String,
    /// Whether addresses of private networks and of this machine are connected to.
    pub private: PrivateNetworks,
}

/// Whether addresses of private networks and of this machine are connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum PrivateNetworks {
    /// They are not.
    Refused,
    /// They are, as any other: intranets, tests.
    Reached,
}
