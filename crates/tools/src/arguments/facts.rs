//! The facts about a call that a verdict needs; each tool derives them from its arguments.

use crate::arguments::command_rights::GitSigning;
use protocol::confinement::{GitSettings, Network};
use protocol::hosts::HostRule;
use protocol::web::WebAddress;

/// The facts about a call that a verdict needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct JudgedFacts {
    /// The paths it names, as it names them.
    pub paths: Vec<String>,
    /// The paths among them that the call removes.
    pub removed: Vec<String>,
    /// The command it runs.
    pub command: Option<String>,
    /// The network it asks for; `None` is the session's.
    pub network: Option<Network>,
    /// Hosts that it asks for beside the session's.
    pub hosts: Vec<HostRule>,
    /// Access to git's settings that it requests; `None` requests none.
    pub git: Option<GitSettings>,
    /// The signatures of git's commits and tags that it asks for.
    pub signing: GitSigning,
    /// One more directory that it asks for, as it names it.
    pub directory: Option<String>,
    /// The page that it asks for.
    pub page: Option<WebAddress>,
}
