//! Tells a connection to the database from one to a pooler that lends its connections for a transaction each,
//! as PgBouncer does with `pool_mode = transaction`. Settings of a connection would come and go there, and
//! notifications would be lost. `database` asks it for each connection.
//!
//! A connection gives a random text with its start. The database has it as a setting of the session; a pooler
//! refuses it, drops it, or has that of another client. Then a second connection shows the mode of the pooler.

use crate::error::code_of;
use std::time::Duration;
use tokio_postgres::{Client, Error, SimpleQueryMessage};

/// The setting that has the text.
const SETTING: &str = "agentd.connection";
/// How often a second connection tries to get the session of the first, which other clients may take too.
const ROUNDS: usize = 3;
/// How long a pooler may take for an answer. One without a free connection lets its clients wait.
const ANSWER: Duration = Duration::from_secs(2);

/// The options with which a connection starts: those of its address, these settings and this text.
pub(crate) fn options(given: Option<&str>, settings: &[&str], text: &str) -> String {
    let own = format!("{SETTING}={text}");
    let words = settings.iter().copied().chain([own.as_str()]).map(|it| format!("-c {it}"));
    let words: Vec<String> = given.map(str::to_owned).into_iter().chain(words).collect();
    words.join(" ")
}

/// True if a pooler refuses a connection for its options.
pub(crate) fn refuses_options(error: &Error) -> bool {
    code_of(error) == Some("08P01")
}

/// True if the session of this connection began with this text, so that no pooler is between.
pub(crate) async fn is_direct(client: &Client, text: &str) -> Result<bool, Error> {
    let found = one_value(client, &format!("select current_setting('{SETTING}', true)")).await?;
    Ok(found.as_deref() == Some(text))
}

/// True if a transaction of the other connection, which is idle, can have the session of this one.
pub(crate) async fn lends_sessions(own: &Client, other: &Client) -> Result<bool, Error> {
    const PROCESS: &str = "select pg_backend_pid()";
    for _ in 0..ROUNDS {
        let before = one_value(own, PROCESS).await?;
        let begun = one_value(other, "begin; select pg_backend_pid()");
        let theirs = match tokio::time::timeout(ANSWER, begun).await {
            Ok(Ok(process)) => process,
            // A pooler that lends for a statement each refuses transactions.
            Ok(Err(error)) if error.as_db_error().is_some() => return Ok(true),
            Ok(Err(error)) => return Err(error),
            // Every session is taken.
            Err(_) => None,
        };
        let Ok(after) = tokio::time::timeout(ANSWER, one_value(own, PROCESS)).await else {
            return Ok(true);
        };
        let Some(theirs) = theirs else { return Ok(after? != before) };
        other.batch_execute("rollback").await?;
        if before.as_ref() == Some(&theirs) || after? != before {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The last value that these statements give. Nothing is prepared, since poolers lose that too.
async fn one_value(client: &Client, statements: &str) -> Result<Option<String>, Error> {
    let answers = client.simple_query(statements).await?;
    let value = answers.iter().rev().find_map(|answer| {
        let SimpleQueryMessage::Row(row) = answer else { return None };
        Some(row.get(0).map(str::to_owned))
    });
    Ok(value.flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_address_stay() {
        let options = options(Some("-c statement_timeout=5s"), &["jit=off"], "x");
        assert_eq!(options, "-c statement_timeout=5s -c jit=off -c agentd.connection=x");
    }
}
