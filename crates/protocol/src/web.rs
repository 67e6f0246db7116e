//! Types of the web tools: the address that a call requests, as rules match it, and the person's
//! settings.

use crate::judgement::RuleSet;
pub use crate::web_address::WebAddress;
use crate::{Decode, Encode};

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
