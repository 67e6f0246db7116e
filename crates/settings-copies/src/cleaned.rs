//! A settings file without secrets.

/// A settings file without secrets.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct CleanedSettings {
    pub(crate) text: String,
    /// Names of omitted settings.
    pub(crate) left_out: Vec<String>,
}
