//! `agentd ps`: the processes of a running supervisor.

use crate::cli_error::CliError;
use crate::cli_exit::CliExit;
use crate::context::CliContext;
use crate::output::{print, print_json};
use crate::query;
use client::SupervisorConnection;
use protocol::client::{FromClient, ProcessRow, ToClient};
use protocol::confinement::Tier;
use serde_json::json;

pub(crate) fn main(json: bool) -> Result<CliExit, CliError> {
    let context = CliContext::of_process()?;
    let mut rows = Vec::new();
    let mut exit = CliExit::Done;
    for socket in query::sockets(&context.dirs.runtime) {
        let reached = query::connect_if_running(&socket);
        match reached.and_then(|found| found.map(|mut it| processes(&mut it)).transpose()) {
            Ok(found) => rows.extend(found.into_iter().flatten()),
            Err(failure) => {
                query::warn_no_answer(&failure);
                exit = failure.code();
            }
        }
    }
    if json {
        print_json(&lines(&rows));
    } else if !rows.is_empty() {
        print(&table(&rows));
    } else if exit == CliExit::Done {
        eprintln!("agentd: no supervisor is running; `agentd -p` starts one for each run");
    }
    Ok(exit)
}

pub(crate) fn processes(
    connection: &mut SupervisorConnection,
) -> Result<Vec<ProcessRow>, CliError> {
    let answer = query::ask_within_limit(connection, &FromClient::Ps)?;
    let ToClient::Processes(rows) = answer else { return Err(query::unexpected(&answer)) };
    Ok(rows)
}

fn lines(rows: &[ProcessRow]) -> String {
    let line = |row: &ProcessRow| {
        let line = json!({
            "worker": row.worker,
            "session": row.session.as_ref().map(|session| &session.0),
            "pid": row.pid,
            "generation": row.generation,
            "restarts": row.restarts,
            "last_cause": row.last_cause,
            "sandbox": row.cage.map(Tier::name),
        });
        format!("{line}\n")
    };
    rows.iter().map(line).collect()
}

fn table(rows: &[ProcessRow]) -> String {
    let mut text = format!(
        "{:<18} {:<12} {:>8} {:>5} {:>8} {:<7} {}\n",
        "WORKER", "SESSION", "PID", "LIFE", "RESTARTS", "SANDBOX", "LAST CAUSE"
    );
    for row in rows {
        text.push_str(&format!(
            "{:<18} {:<12} {:>8} {:>5} {:>8} {:<7} {}\n",
            row.worker,
            row.session.as_ref().map_or("-", |session| session.0.as_str()),
            row.pid,
            row.generation,
            row.restarts,
            row.cage.map_or("-", Tier::name),
            row.last_cause.as_deref().unwrap_or("-"),
        ));
    }
    text
}
