//! The inputs of a configuration.

use crate::environment::Environment;
use crate::trust::TrustStore;
use protocol::judgement::RuleEffect;
use std::path::PathBuf;

/// Writes a rule of Claude Code as rules of agentd, or says why it cannot. `approval::claude_rule` does.
pub type ClaudeRuleSpelling = fn(&str, RuleEffect) -> Result<Vec<String>, String>;

/// Everything that configuration is made from.
#[derive(Debug, Clone)]
pub struct Sources {
    /// The administrator's file, `/etc/agentd/config.toml`.
    pub managed: PathBuf,
    /// The user's file, [`crate::Dirs::user_file`].
    pub user: Option<PathBuf>,
    /// The project directory, a real path.
    pub project: PathBuf,
    /// The calling client's environment.
    pub environment: Environment,
    /// Configuration key and value of each flag that sets one.
    pub flags: Vec<(String, String)>,
    /// Which of the project's files may loosen restrictions.
    pub trust: Trust,
    /// Which plugins the user trusts.
    pub plugin_trust: TrustStore,
    /// How a rule of Claude Code is written as a rule of agentd.
    pub claude_rules: ClaudeRuleSpelling,
}

/// Trust in the project's files. Only trusted files may loosen restrictions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// All, by a flag of this run.
    Trusted,
    /// Files are trusted if the user's record holds their present content.
    AsRecorded(TrustStore),
}

/// The absolute path of a key file; `~/` is the client's home.
pub(crate) fn key_path(path: &str, sources: &Sources) -> Option<PathBuf> {
    match path.strip_prefix("~/") {
        Some(below) => sources.environment.absolute("HOME").map(|home| home.join(below)),
        None => Some(PathBuf::from(path)).filter(|path| path.is_absolute()),
    }
}
