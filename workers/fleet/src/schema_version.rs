//! The versions of the schema, and the check that a database has the wanted one.

use crate::error::{FleetError, code_of};
use tokio_postgres::Client;

/// Each version's changes, in order. One that was released is never edited.
pub(crate) const VERSIONS: [&str; 1] = [include_str!("../schema/0001.sql")];

/// The version that this program works with.
pub(crate) fn wanted() -> i32 {
    i32::try_from(VERSIONS.len()).unwrap_or(i32::MAX)
}

/// Refuses a database without a fleet, and one of another version.
pub(crate) async fn check(client: &Client) -> Result<(), FleetError> {
    let found = client.query_one("select agentd.version()", &[]).await;
    let found: i32 = match found {
        Ok(row) => row.try_get(0)?,
        // No such schema, no such function.
        Err(error) if matches!(code_of(&error), Some("3F000" | "42883")) => {
            return Err(FleetError::NotInitialised);
        }
        Err(error) => return Err(error.into()),
    };
    if found == 0 {
        return Err(FleetError::NotInitialised);
    }
    match found == wanted() {
        true => Ok(()),
        false => Err(FleetError::Schema { found, wanted: wanted() }),
    }
}
