//! The limit of a session's cost: it can hold only if all costs are known. Used by the session opener
//! and where the model changes.

use crate::open_failure::OpenFailure;
use protocol::client::{ModelFacts, RequestFailure};
use protocol::error_chain::chain;
use std::path::Path;

/// Checks that a limit can hold for the answers of this model.
///
/// # Errors
/// A message with a remedy.
pub fn check_price(limit: Option<u64>, model: &str, facts: ModelFacts) -> Result<(), OpenFailure> {
    match (limit, facts.prices) {
        (Some(_), None) => Err(OpenFailure::new(
            RequestFailure::Configuration,
            format!(
                "the price of {model} is not known, so the limit of --max-cost cannot hold; give \
                 it with `price` in a table [models.NAME], or choose another model"
            ),
        )),
        (Some(_), Some(_)) | (None, _) => Ok(()),
    }
}

/// Checks that the costs of all earlier answers are known.
///
/// # Errors
/// A message with a remedy.
pub fn check_earlier_costs(session_dir: &Path) -> Result<(), OpenFailure> {
    let unknown = journal::unknown_costs(session_dir).map_err(|error| {
        OpenFailure::new(
            RequestFailure::Disk,
            format!("its records cannot be read: {}", chain(&error)),
        )
    })?;
    match unknown {
        0 => Ok(()),
        count => Err(OpenFailure::new(
            RequestFailure::Usage,
            format!(
                "the cost of {count} earlier answers of this session is not known, so the limit of \
                 --max-cost cannot hold; start a new session, or leave --max-cost out"
            ),
        )),
    }
}
