//! Sessions on other hosts, for `agentd ls` and `agentd show`.

use crate::error::FleetError;
use crate::schema::say;
use fleet::DatabaseArgs;
use std::path::Path;

/// Prints the sessions that hosts work for.
pub(crate) async fn list(database: &DatabaseArgs) -> Result<(), FleetError> {
    let client = crate::database::open(database).await?;
    let rows = client
        .query(
            "select l.session, t.id, t.prompt, t.repo, w.name,
                 extract(epoch from t.started)::float8,
                 (select j.line like '%\"kind\":\"ASKED\"%' from agentd.journal j
                  where j.session = l.session order by j.seq desc limit 1)
             from agentd.lease l join agentd.task t on t.session = l.session
             join agentd.worker w on w.id = l.worker
             where t.state = 'running' and l.until > clock_timestamp() order by t.id",
            &[],
        )
        .await?;
    let mut out = String::new();
    for row in rows {
        let line = serde_json::json!({
            "session_id": row.try_get::<_, String>(0)?,
            "task": row.try_get::<_, i64>(1)?,
            "title": row.try_get::<_, String>(2)?,
            "project": row.try_get::<_, String>(3)?,
            "host": row.try_get::<_, String>(4)?,
            "began": row.try_get::<_, Option<f64>>(5)?.map(|seconds| seconds * 1000.0),
            "state": match row.try_get::<_, Option<bool>>(6)? {
                Some(true) => "asking",
                _ => "working",
            },
        });
        out.push_str(&format!("{line}\n"));
    }
    say(&out)
}

/// Copies the records of a session into a directory of sessions, and prints its name.
pub(crate) async fn fetch(
    beginning: &str,
    directory: &Path,
    database: &DatabaseArgs,
) -> Result<(), FleetError> {
    let client = crate::database::open(database).await?;
    let found = client
        .query(
            "select distinct session from agentd.journal
             where session = $1 or left(session, length($1)) = $1
                 or session in (select session from agentd.task where id::text = $1)
             order by session limit 2",
            &[&beginning],
        )
        .await?;
    let name: String = match found.as_slice() {
        [] => {
            return Err(FleetError::Refused(format!(
                "there is no session {beginning:?} in this fleet"
            )));
        }
        [one] => one.try_get(0)?,
        [one, ..] if one.try_get::<_, String>(0)? == beginning => beginning.to_owned(),
        _ => return Err(FleetError::Refused(format!("several sessions begin with {beginning:?}"))),
    };
    let text = "select line from agentd.journal where session = $1 order by seq";
    let mut lines = Vec::new();
    for row in client.query(text, &[&name]).await? {
        lines.push(row.try_get::<_, String>(0)?);
    }
    let mut beside = Vec::new();
    for digest in lines.iter().flat_map(|line| journal::kept_beside(line)) {
        let text = "select bytes from agentd.blob where sha256 = decode($1, 'hex')";
        if let Some(row) = client.query_opt(text, &[&digest.to_string()]).await? {
            beside.push(row.try_get::<_, Vec<u8>>(0)?);
        }
    }
    journal::restore(directory, &name, &lines, &beside)
        .map_err(|error| FleetError::Host(error.to_string()))?;
    say(&format!("{name}\n"))
}
