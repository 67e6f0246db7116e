//! Describes a confinement for the model, for questions and for clients.

use super::{SessionSpec, unsandboxed};
use protocol::confinement::{Confinement, GitSettings, Level, Network, Profile, Tier};
use protocol::web::WebAddress;
use sandbox::CallScope;
use std::path::Path;
use tool_specs::InterpretedCall;

/// Describes the network of a command, for the model and for questions.
pub(super) fn describe_network(confinement: &Confinement) -> String {
    if confinement.level == Level::Uncaged {
        return "on, whatever was set: without a sandbox it cannot be blocked".to_owned();
    }
    match (confinement.network, confinement.hosts.as_slice()) {
        (Network::Off, _) => "off".to_owned(),
        (Network::On, _) => "on".to_owned(),
        (Network::Listed, []) => "off (its list of allowed hosts is empty)".to_owned(),
        (Network::Listed, hosts) => {
            let hosts: Vec<_> = hosts.iter().map(ToString::to_string).collect();
            format!("only {}, through a proxy", hosts.join(", "))
        }
    }
}

impl SessionSpec {
    /// Describes the confinement of a call for its question. A call of the web requests this page.
    pub fn describe_call(
        &self,
        confinement: &Confinement,
        (found, page): (&InterpretedCall, Option<&WebAddress>),
    ) -> String {
        let scope = CallScope::from(confinement);
        let named = scope.private_note(found.paths.iter().map(Path::new));
        let named = named.or_else(|| scope.private_note_of(found.command.as_deref()?));
        // A project in /tmp has its neighbours there for the person, and not for what writes.
        let writes = matches!(confinement.profile, Profile::Command | Profile::Mutate);
        let around = || {
            let parent = confinement.project.to_path().parent()?.to_owned();
            scope.private_note([parent.as_path()]).filter(|_| writes)
        };
        let place = named.or_else(around).map(|place| format!("; {place}")).unwrap_or_default();
        let described = describe_confinement(confinement) + &place;
        match (page, self.ineffective_denials(confinement)) {
            (Some(page), _) if confinement.joins.is_some() => {
                let site = page.site();
                format!(
                    "writes nothing; network: off, to request pages of {site}, a server of this session"
                )
            }
            (Some(page), _) if confinement.level != Level::Uncaged => {
                format!("writes nothing; network: on, to request pages of {} only", page.site())
            }
            (None, Some(denials)) => format!("{described}; {denials}"),
            (_, _) => described,
        }
    }

    /// The hosts that rules deny and that a command of this confinement can reach all the same: only
    /// the proxy of an allow-list sees hosts.
    pub fn ineffective_denials(&self, confinement: &Confinement) -> Option<String> {
        if confinement.profile != Profile::Command || confinement.network != Network::On {
            return None;
        }
        let denied = approval::denied_hosts(&self.rules.rules);
        let (first, others) = denied.split_first()?;
        let first = first.to_string();
        let first = first.trim_end_matches(":*");
        let more = match others.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let way_on = match confinement.highest_tier {
            Tier::A => "; `:net allow HOST` applies them",
            Tier::B | Tier::C => "",
        };
        Some(format!(
            "the rules that deny host:{first}{more} do not apply while the network is on{way_on}"
        ))
    }
}

/// Describes a call's confinement, for questions and the client's first line.
pub fn describe_confinement(confinement: &Confinement) -> String {
    if confinement.level == Level::Uncaged {
        return unsandboxed::DESCRIPTION.to_owned();
    }
    let others = confinement.added.len();
    let writes = match (confinement.profile, others) {
        (Profile::Mutate | Profile::Command | Profile::Hook | Profile::McpWrite, 0) => {
            "may write: this project".to_owned()
        }
        (Profile::Mutate | Profile::Command | Profile::Hook | Profile::McpWrite, more) => {
            format!("may write: this project and {more} added directories")
        }
        (Profile::Git, _) => "may write: this project".to_owned(),
        (Profile::Format, _) => "writes nothing; its output replaces the edited file".to_owned(),
        (
            Profile::Probe
            | Profile::Query
            | Profile::Session
            | Profile::Broker
            | Profile::Provider
            | Profile::Store
            | Profile::Web
            | Profile::Verify
            | Profile::GuardHook
            | Profile::Mcp
            | Profile::McpRemote
            | Profile::GitLook
            | Profile::Document,
            _,
        ) => "writes nothing".to_owned(),
    };
    let has_network = matches!(
        confinement.profile,
        Profile::Command | Profile::Mcp | Profile::McpWrite | Profile::McpRemote
    );
    let network = match has_network {
        true => describe_network(confinement),
        false => "off".to_owned(),
    };
    let git = match confinement.git {
        GitSettings::Kept | GitSettings::DirectoryKept => "",
        GitSettings::Writable => ", git's settings and hooks in it",
    };
    format!("{writes}{git}; network: {network}")
}
