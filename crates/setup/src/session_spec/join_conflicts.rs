//! Flags of a joining client that conflict with the session, which another client opened or whose
//! settings have changed since. The client gets a note for each, or may not join.

use super::SessionSpec;
use crate::open_failure::OpenFailure;
use protocol::client::{RequestFailure, SessionRequest, SettingChange, Unsandboxed};
use protocol::confinement::{FilePath, Level};

impl SessionSpec {
    /// One sentence for each flag that is ignored.
    pub fn ignored_flags(&self, wanted: &SessionRequest) -> Vec<String> {
        let known = self.present_flags();
        // No command changes what the administrator's file forbids.
        let way_of = |change: SettingChange, command: String| match self.check_managed(&change) {
            Ok(()) => format!("`{command}` changes that"),
            Err(failure) => failure.message,
        };
        let mut said = Vec::new();
        let mut say = |flag: String, way: &str| {
            said.push(format!(
                "{flag} is ignored: session {} keeps its own settings; {way}",
                self.id
            ));
        };
        let again = format!("`agentd stop {}` first, and open it again", self.id);
        for (key, value) in &wanted.settings {
            if known.iter().any(|(other, own)| (other, own) == (key, value)) {
                continue;
            }
            match key.as_str() {
                "provider.model" if *value == self.setup.model => {}
                "provider.model" => {
                    say(format!("--model {value}"), &format!("`:model {value}` changes that"));
                }
                "context.files" if self.setup.pinned.contains(value) => {}
                "context.files" => {
                    say(format!("--context {value}"), &format!("`:add {value}` pins it"));
                }
                other => say(format!("the flag for {other} ({value})"), &again),
            }
        }
        let appended = wanted.conversation.appended_system.as_ref();
        if appended.is_some_and(|text| *text != self.texts.appended) {
            say("--append-system-prompt".to_owned(), &again);
        }
        if wanted.agents.is_some() && wanted.agents != self.origin.opening.agents {
            say("--agents".to_owned(), &again);
        }
        for added in &wanted.added {
            if !self.confinement.added.contains(added) {
                let named = FilePath::to_path(added).display().to_string();
                let way = match self.forbidden.check_rules(&added.to_path()) {
                    Ok(()) => format!("`:add-dir {named}` adds it"),
                    Err(failure) => failure.message,
                };
                say(format!("--add-dir {named}"), &way);
            }
        }
        if let Some(mode) = wanted.mode.filter(|mode| *mode != self.rules.mode) {
            let name = mode.name();
            let way = way_of(SettingChange::Mode(mode), format!(":mode {name}"));
            say(format!("--permission-mode {name}"), &way);
        }
        if let Some(network) = wanted.network.filter(|network| *network != self.confinement.network)
        {
            let name = network.name();
            let way = way_of(SettingChange::Network(network), format!(":net {name}"));
            say(format!("--net {name}"), &way);
        }
        said
    }

    /// Checks that a joining client wants no other limit. A limit that is ignored would cost money.
    ///
    /// # Errors
    /// A message with a remedy.
    pub fn check_joined_limit(&self, opening: &SessionRequest) -> Result<(), OpenFailure> {
        match opening.conversation.cost_limit {
            wanted @ Some(_) if wanted != self.setup.max_session.cost => Err(OpenFailure::new(
                RequestFailure::Usage,
                format!(
                    "session {id} is running, and --max-cost is set when it is opened: \
                     `agentd stop {id}` first, and open it again",
                    id = self.id
                ),
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// Checks that a client with this request may join. A client that expects a cage is not
    /// admitted to a session without one.
    ///
    /// # Errors
    /// A message with a remedy.
    pub fn check_join(&self, opening: &SessionRequest) -> Result<(), OpenFailure> {
        match (self.confinement.level, opening.uncaged) {
            (Level::Uncaged, Unsandboxed::Refused) => Err(OpenFailure::new(
                RequestFailure::SandboxUnavailable,
                format!(
                    "session {} runs without any sandbox; --unsafe-no-sandbox joins it anyway",
                    self.id
                ),
            )),
            (Level::Uncaged | Level::Required | Level::BestEffort, _) => Ok(()),
        }
    }
}
