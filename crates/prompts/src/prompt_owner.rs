//! Whose a prompt in a file is.

/// Whose a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptOwner {
    /// It lies in the project.
    Project,
    /// It lies in the person's home or configuration directory.
    User,
    /// It lies in a plugin, which the person trusts as it is.
    Plugin,
}

impl PromptOwner {
    /// For lists.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::User => "user",
            Self::Plugin => "plugin",
        }
    }
}
