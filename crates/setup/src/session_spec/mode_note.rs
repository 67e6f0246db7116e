//! The note of a session in the mode `sandboxed` in which it asks about more than its name promises.

use super::SessionSpec;
use protocol::confinement::{Confinement, Network, Tier};
use protocol::judgement::PermissionMode;

impl SessionSpec {
    /// Why each command is asked about although the mode is `sandboxed`, in one sentence.
    pub fn mode_note(&self) -> Option<String> {
        (self.rules.mode == PermissionMode::Sandboxed)
            .then(|| why_commands_ask(&self.confinement))
            .flatten()
            .map(|why| format!("the mode sandboxed asks about {why}"))
    }

    /// That each command is asked about although the mode is `sandboxed`, since undo covers none, and why it does not.
    pub fn without_undo_note(&self, why: Option<&str>) -> Option<String> {
        let why = why.filter(|_| self.rules.mode == PermissionMode::Sandboxed)?;
        Some(format!(
            "the mode sandboxed asks about each command here: undo covers none, since {why}"
        ))
    }
}

fn why_commands_ask(confinement: &Confinement) -> Option<String> {
    let added = confinement.added.first().map(|dir| dir.to_path());
    match (confinement.highest_tier, confinement.network, added) {
        (Tier::B | Tier::C, _, _) => {
            let tier = confinement.highest_tier.name();
            Some(format!(
                "every change and every command here, as ask does: the sandbox is tier {tier}"
            ))
        }
        (Tier::A, Network::On, _) => Some("each command while the network is on".to_owned()),
        (Tier::A, Network::Listed, _) => {
            Some("each command while commands can reach hosts".to_owned())
        }
        (Tier::A, Network::Off, Some(dir)) => {
            Some(format!("each command, since it could write in {} too", dir.display()))
        }
        (Tier::A, Network::Off, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::confinement::Profile;

    #[test]
    fn a_session_says_why_it_asks_about_commands() {
        let full = Confinement::closed(Profile::Session, "/p", "/t");
        assert_eq!(why_commands_ask(&full), None);
        let said = |cage: Confinement| why_commands_ask(&cage).unwrap_or_default();
        let weaker = Confinement { highest_tier: Tier::B, ..full.clone() };
        assert!(said(weaker).contains("tier B"));
        assert!(said(Confinement { network: Network::On, ..full.clone() }).contains("network"));
        assert!(said(Confinement { network: Network::Listed, ..full.clone() }).contains("hosts"));
        assert!(said(Confinement { added: vec!["/srv".into()], ..full }).contains("/srv"));
    }
}
