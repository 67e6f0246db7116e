//! Where a plugin lies, and which names are its own.

use std::path::PathBuf;

/// A folder of Claude Code's form. The names of its prompts begin with its own and a colon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginPlace {
    /// Its name.
    pub name: String,
    /// Its folder, a real path.
    pub root: PathBuf,
}

impl PluginPlace {
    /// The name of one of its prompts.
    pub(crate) fn full_name(&self, name: &str) -> String {
        format!("{}:{name}", self.name)
    }

    /// True for a name that only this plugin gives.
    pub(crate) fn has_name(&self, name: &str) -> bool {
        name.strip_prefix(&self.name).is_some_and(|rest| rest.starts_with(':'))
    }

    /// Why a file that is not the plugin's cannot have its name.
    pub(crate) fn refuses(&self, name: &str) -> String {
        let own = &self.name;
        format!("its name {name} begins like those of the plugin {own}; rename it")
    }
}
