//! A settings file without secrets.

/// A settings file without secrets.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CleanedSettings {
    pub(super) text: String,
    /// Names of omitted settings.
    pub(super) left_out: Vec<String>,
}
