//! Whether all costs of a session are known.

use crate::{JournalRecord, ReadError, read};
use std::path::Path;

/// How many answers of the session in this directory have no known cost, those of sub-agents included.
///
/// # Errors
/// Where the journal cannot be read to its end.
pub fn unknown_costs(session_dir: &Path) -> Result<u32, ReadError> {
    let mut unknown = 0;
    for entry in read(session_dir)?.without_texts() {
        let record = entry?.record;
        let is_unknown = if let JournalRecord::Summary(summary) = &record {
            matches!(summary.use_of_model(), Some((_, None)))
        } else {
            matches!(
                record,
                JournalRecord::Answer { cost: None, .. } | JournalRecord::Spent { cost: None, .. }
            )
        };
        unknown += u32::from(is_unknown);
    }
    Ok(unknown)
}
