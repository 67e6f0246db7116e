//! Why an object store did not do its part.

/// Why the object store did not do its part.
#[derive(Debug, thiserror::Error)]
#[error("the object store {store} {why}")]
pub(crate) struct ObjectsError {
    pub(crate) store: String,
    pub(crate) why: String,
    /// It may succeed later, or on another host.
    pub(crate) is_passing: bool,
}

impl ObjectsError {
    /// This host has no object store, and the task needs it.
    pub(crate) fn unnamed() -> Self {
        let why = "of this task is not named on this host: set AGENTD_FLEET_OBJECTS".to_owned();
        Self { store: "with the files".to_owned(), why, is_passing: true }
    }
}
