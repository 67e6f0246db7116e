//! Sessions without a sandbox: only on hosts where no cage can be built, only for clients that ask
//! for it explicitly, and without features that rely on a cage. Used by the session specification.

use crate::open_failure::OpenFailure;
use config::Config;
use protocol::client::{RequestFailure, SessionRequest, Unsandboxed};
use protocol::confinement::{Level, Tier};
use protocol::error_chain::chain;
use protocol::judgement::PermissionMode;

/// Shown in questions and in the session's description.
pub(super) const DESCRIPTION: &str =
    "this runs without any sandbox: it may do everything that you may; network: on";

const RELIES_ON_CAGE: &str = "relies on the cage, and this session has none: choose ask, \
                              accept-edits, plan or dont-ask, and allow commands by rules";

/// Checks that the host, the request and the permission mode fit together.
///
/// # Errors
/// A message with a remedy.
pub(super) fn check_cage(
    opening: &SessionRequest,
    host: Tier,
    config: &Config,
) -> Result<(), OpenFailure> {
    match (host, opening.uncaged) {
        (Tier::A | Tier::B, Unsandboxed::Refused) => Ok(()),
        (Tier::C, Unsandboxed::Refused) => Err(OpenFailure::new(
            RequestFailure::SandboxUnavailable,
            "no cage can be made on this machine, so no tool may run. `agentd doctor` shows which \
             step fails and how to fix it; --unsafe-no-sandbox runs calls without any",
        )),
        (Tier::A | Tier::B, Unsandboxed::Accepted) => Err(OpenFailure::new(
            RequestFailure::Usage,
            format!(
                "--unsafe-no-sandbox is for machines on which no cage can be made, and on this one \
                 tier {} can: leave the flag out",
                host.name()
            ),
        )),
        (Tier::C, Unsandboxed::Accepted) => {
            // Without a cage neither value can be enforced.
            for (key, word) in [("sandbox.level", "best-effort"), ("net.mode", "on")] {
                config.managed.check(key, word).map_err(|error| {
                    let why = format!("--unsafe-no-sandbox is refused: {}", chain(&error));
                    OpenFailure::new(RequestFailure::Configuration, why)
                })?;
            }
            check_mode(Level::Uncaged, config.permissions.mode)
        }
    }
}

/// Checks that a session of this level can use this mode.
///
/// # Errors
/// A message with a remedy.
pub(super) fn check_mode(level: Level, mode: PermissionMode) -> Result<(), OpenFailure> {
    match (level, mode) {
        (Level::Uncaged, PermissionMode::Auto | PermissionMode::Sandboxed) => {
            let why = format!("the mode {} {RELIES_ON_CAGE}", mode.name());
            Err(OpenFailure::new(RequestFailure::Usage, why))
        }
        (Level::Uncaged | Level::Required | Level::BestEffort, _) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use config::{Environment, Sources, Trust};
    use protocol::client::{ProjectTrust, SessionStart};
    use protocol::confinement::FilePath;
    use protocol::judgement::Audience;
    use std::path::Path;

    fn managed(dir: &Path, text: &str) -> Config {
        let managed = dir.join("managed.toml");
        std::fs::write(&managed, text).unwrap();
        Config::load(&Sources {
            managed,
            user: None,
            project: dir.to_owned(),
            environment: Environment::default(),
            flags: Vec::new(),
            trust: Trust::Trusted,
            plugin_trust: config::TrustStore::at(dir.join("trust")),
            claude_rules: approval::claude_rule,
        })
        .unwrap()
    }

    #[test]
    fn no_session_goes_without_a_cage_where_the_administrator_requires_what_only_a_cage_enforces() {
        let dir = tempfile::tempdir().unwrap();
        let opening = SessionRequest {
            project: FilePath::from(dir.path()),
            named: None,
            added: Vec::new(),
            start: SessionStart::New,
            env: Vec::new(),
            settings: Vec::new(),
            mode: None,
            network: None,
            trust: ProjectTrust::AsRecorded,
            audience: Audience::Person,
            papers: Vec::new(),
            uncaged: Unsandboxed::Accepted,
            conversation: protocol::client::ConversationFlags::default(),
            agents: None,
            umask: 0o022,
            seat: None,
        };
        let checked = |text: &str| check_cage(&opening, Tier::C, &managed(dir.path(), text));
        for loose in ["", "net.mode = 'on'\nsandbox.level = 'best-effort'\n"] {
            checked(loose).unwrap();
        }
        for tight in ["sandbox.level = 'required'", "net.mode = 'off'", "net.mode = 'allow'"] {
            let failure = checked(tight).unwrap_err();
            assert!(failure.message.contains("managed.toml:1"), "{failure}");
        }
    }
}
