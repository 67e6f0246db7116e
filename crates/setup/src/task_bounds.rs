//! The rights that bound a sub-agent: those that its parent had when it began, and those that its parent
//! has now. A parent's change reaches its sub-agents at once. Pure. Used by the settings of a session.

use journal::{StoredPath, TaskRights};
use protocol::client::SettingChange;
use protocol::confinement::{FilePath, Network};
use protocol::hosts::HostRule;
use protocol::judgement::{PermissionMode, Rule, RuleEffect};

/// Rights of a session, as far as its sub-agents are bound by them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskBounds {
    pub(crate) mode: PermissionMode,
    pub(crate) network: Network,
    pub(crate) hosts: Vec<HostRule>,
    pub(crate) added: Vec<FilePath>,
    /// Rules of flags, which no file has: those that deny or ask.
    pub(crate) rules: Vec<Rule>,
}

impl TaskBounds {
    /// The rights in a sub-agent's first record. A word that this build does not know allows nothing.
    pub fn recorded(rights: &TaskRights) -> Self {
        Self {
            mode: PermissionMode::parse(&rights.mode).unwrap_or(PermissionMode::Plan),
            network: Network::parse(&rights.network).unwrap_or(Network::Off),
            hosts: rights.hosts.iter().filter_map(|host| host.parse().ok()).collect(),
            added: rights.added.iter().map(|dir| FilePath::from(&dir.0)).collect(),
            rules: Vec::new(),
        }
    }

    /// For a sub-agent's first record.
    pub(crate) fn to_record(&self, mode: PermissionMode, uncaged: bool) -> TaskRights {
        TaskRights {
            mode: mode.name().to_owned(),
            network: self.network.name().to_owned(),
            hosts: self.hosts.iter().map(ToString::to_string).collect(),
            added: self.added.iter().map(|dir| StoredPath(dir.to_path())).collect(),
            uncaged,
        }
    }

    /// These rights after changes that the session recorded.
    pub fn after<'a>(mut self, changes: impl IntoIterator<Item = &'a SettingChange>) -> Self {
        for change in changes {
            match change {
                SettingChange::Mode(mode) => self.mode = *mode,
                SettingChange::Network(network) => self.network = *network,
                SettingChange::Host(host) => {
                    self.network = Network::Listed;
                    if !self.hosts.contains(host) {
                        self.hosts.push(host.clone());
                    }
                }
                SettingChange::AddDirectory(dir) => self.added.push(dir.clone()),
                SettingChange::Model(_)
                | SettingChange::Pin(_)
                | SettingChange::Unpin(_)
                | SettingChange::AppendedSystem(_)
                | SettingChange::CostLimit(_)
                | SettingChange::Flag(..)
                | SettingChange::Name(_) => {}
            }
        }
        self
    }

    /// These rights, as far as the others have them too.
    pub fn within(self, other: &Self) -> Self {
        let hosts = match (self.network, other.network) {
            (_, Network::On) => self.hosts,
            (Network::On, Network::Listed) => other.hosts.clone(),
            (Network::Off | Network::Listed, _) | (Network::On, Network::Off) => {
                let listed = |host: &HostRule| other.hosts.iter().any(|other| other.covers(host));
                self.hosts.into_iter().filter(listed).collect()
            }
        };
        let mut rules = self.rules;
        let more: Vec<_> =
            other.rules.iter().filter(|rule| !rules.contains(rule)).cloned().collect();
        rules.extend(more);
        Self {
            mode: self.mode.stricter(other.mode),
            network: narrower(self.network, other.network),
            hosts,
            added: self.added.into_iter().filter(|dir| other.added.contains(dir)).collect(),
            rules,
        }
    }

    /// True if these rights have everything that this change would give.
    pub(crate) fn admit(&self, change: &SettingChange) -> bool {
        match change {
            SettingChange::Mode(mode) => mode.is_within(self.mode),
            SettingChange::Network(network) => narrower(*network, self.network) == *network,
            SettingChange::Host(host) => match self.network {
                Network::On => true,
                Network::Listed => self.hosts.iter().any(|listed| listed.covers(host)),
                Network::Off => false,
            },
            SettingChange::AddDirectory(dir) => self.added.contains(dir),
            SettingChange::Model(_)
            | SettingChange::Pin(_)
            | SettingChange::Unpin(_)
            | SettingChange::AppendedSystem(_)
            | SettingChange::CostLimit(_)
            | SettingChange::Flag(..)
            | SettingChange::Name(_) => true,
        }
    }
}

/// A sub-agent's session reads the same files; it does not have the flags of its parent's.
pub(crate) fn is_inherited(rule: &Rule) -> bool {
    let narrows = match rule.effect {
        RuleEffect::Deny | RuleEffect::Ask => true,
        RuleEffect::Allow => false,
    };
    narrows && rule.file == "flag"
}

fn narrower(one: Network, other: Network) -> Network {
    match (one, other) {
        (Network::Off, _) | (_, Network::Off) => Network::Off,
        (Network::Listed, _) | (_, Network::Listed) => Network::Listed,
        (Network::On, Network::On) => Network::On,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn bounds(mode: PermissionMode, network: Network, hosts: &[&str]) -> TaskBounds {
        let hosts = hosts.iter().map(|host| host.parse().unwrap()).collect();
        TaskBounds { mode, network, hosts, added: Vec::new(), rules: Vec::new() }
    }

    fn rule(effect: RuleEffect, text: &str) -> Rule {
        Rule { effect, text: text.to_owned(), file: "flag".to_owned(), line: 0 }
    }

    #[test]
    fn the_fewer_rights_of_two_hold() {
        use PermissionMode::{Ask, Auto, Plan};
        let own = bounds(Auto, Network::On, &[]);
        let parent = bounds(Ask, Network::Listed, &["*.example.org"]);
        assert_eq!(own.clone().within(&parent), parent);
        assert_eq!(parent.clone().within(&own), parent);
        let narrow = bounds(Plan, Network::Listed, &["a.example.org", "other.org"]);
        let both = narrow.clone().within(&parent);
        assert_eq!(both, bounds(Plan, Network::Listed, &["a.example.org"]));
        let off = narrow.within(&bounds(Auto, Network::Off, &[]));
        assert_eq!((off.network, off.hosts.len()), (Network::Off, 0));
        let denies = TaskBounds { rules: vec![rule(RuleEffect::Deny, "bash")], ..own.clone() };
        assert_eq!(own.within(&denies).rules, denies.rules);
    }

    #[test]
    fn recorded_changes_narrow_and_widen_in_their_order() {
        use PermissionMode::{Auto, Plan};
        let began = bounds(Auto, Network::On, &[]);
        let changes = [SettingChange::Mode(Plan), SettingChange::Network(Network::Off)];
        assert_eq!(began.clone().after(&changes), bounds(Plan, Network::Off, &[]));
        let back = [changes[0].clone(), SettingChange::Mode(Auto)];
        assert_eq!(began.clone().after(&back).mode, Auto);
    }

    #[test]
    fn a_change_is_admitted_up_to_the_bounds() {
        use PermissionMode::{Ask, Auto, Plan};
        let most = bounds(Ask, Network::Listed, &["*.example.org"]);
        let host = |name: &str| SettingChange::Host(name.parse().unwrap());
        for (change, fits) in [
            (SettingChange::Mode(Plan), true),
            (SettingChange::Mode(Auto), false),
            (SettingChange::Network(Network::Off), true),
            (SettingChange::Network(Network::On), false),
            (host("a.example.org"), true),
            (host("other.org"), false),
            (SettingChange::Model("any".to_owned()), true),
        ] {
            assert_eq!(most.admit(&change), fits, "{change:?}");
        }
    }
}
