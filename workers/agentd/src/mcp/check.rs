//! `agentd mcp check`: starts the servers of a project in a session without a model, shows what they offer,
//! and ends it.

use crate::cli::SessionFlags;
use crate::cli_error::CliError;
use crate::cli_exit::CliExit;
use crate::context::CliContext;
use crate::open_request::{KeyNeed, open_request};
use crate::output::{print, print_json};
use crate::query;
use client::{SupervisorConnection, servers_text};
use protocol::client::{
    BacklogFrom, ClientRights, FromClient, OtherClients, SessionEnding, SessionQuery, SessionStart,
    ToClient,
};
use protocol::hidden::on_screen;
use protocol::ids::SessionId;
use protocol::judgement::Audience;
use protocol::mcp::{ServerReport, ServerState};
use serde_json::json;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The pause between two questions.
const PAUSE: Duration = Duration::from_millis(50);
/// The longest time that a server may have to start: `startup_timeout_sec` at its most.
const LONGEST_START: Duration = Duration::from_secs(600);
/// How much longer than its own time a server is awaited.
const MARGIN: Duration = Duration::from_secs(5);
/// A recording without an answer stands in for the model.
const NO_MODEL: &str = "/dev/null";

pub(super) fn main(
    mut flags: SessionFlags,
    names: &[String],
    json: bool,
) -> Result<CliExit, CliError> {
    let context = CliContext::of_process()?;
    flags.recording.replay = Some(NO_MODEL.into());
    let request =
        open_request(&context, &flags, SessionStart::New, Audience::Person, KeyNeed::WhereSet)?;
    let (reports, warnings) =
        query::by_private_supervisor(|connection| checked(connection, request, names))?;
    let is_unknown = |name: &&String| !reports.iter().any(|report| report.name == **name);
    if let Some(name) = names.iter().find(is_unknown) {
        let why = format!("this project starts no MCP server {name}");
        return Err(CliError::user(why).hint("`agentd mcp ls` lists them, with the reasons"));
    }
    match json {
        true => print_json(&reports.iter().map(object).collect::<String>()),
        false => {
            // Those about servers say why one is not among them.
            for warning in warnings.iter().filter(|warning| warning.contains("MCP server")) {
                eprintln!("agentd: {}", on_screen(warning));
            }
            print(&format!("{}\n", servers_text(&reports).trim_end()));
        }
    }
    let is_ready = |report: &ServerReport| matches!(report.state, ServerState::Ready { .. });
    Ok(if reports.iter().all(is_ready) { CliExit::Done } else { CliExit::Failed })
}

type Opening = (protocol::client::SessionRequest, Vec<std::os::fd::OwnedFd>);

/// The reports of these servers, and the session's warnings. The session is gone afterwards.
fn checked(
    connection: &mut SupervisorConnection,
    (opening, papers): Opening,
    names: &[String],
) -> Result<(Vec<ServerReport>, Vec<String>), CliError> {
    let answer = query::opened(connection, opening, &papers)?;
    let ToClient::Opened { session, warnings, .. } = answer else {
        return Err(query::unexpected(&answer));
    };
    let reports = settled(connection, &session, names);
    let ending = SessionEnding::Kill;
    for word in [
        FromClient::End { session: session.clone(), ending },
        FromClient::Remove { session: session.clone() },
    ] {
        connection.send(&word, &[]).map_err(|error| query::lost(&error))?;
        while answer_of(connection)? != ToClient::Done {}
    }
    Ok((reports?, warnings))
}

/// Asks until each server is ready or has ended once, or its time is over.
fn settled(
    connection: &mut SupervisorConnection,
    session: &SessionId,
    names: &[String],
) -> Result<Vec<ServerReport>, CliError> {
    let watch = FromClient::Attach {
        session: session.clone(),
        from: BacklogFrom::Newest(0),
        rights: ClientRights::ReadOnly,
        others: OtherClients::Stay,
    };
    connection.send(&watch, &[]).map_err(|error| query::lost(&error))?;
    let until = Instant::now() + LONGEST_START + MARGIN;
    let mut seen: Vec<ServerReport> = Vec::new();
    loop {
        let word = FromClient::Query { session: session.clone(), query: SessionQuery::Servers };
        connection.send(&word, &[]).map_err(|error| query::lost(&error))?;
        let servers = loop {
            if let ToClient::Servers { servers, .. } = answer_of(connection)? {
                break servers;
            }
        };
        let wanted = servers.into_iter();
        let wanted = wanted.filter(|report| names.is_empty() || names.contains(&report.name));
        // The first end of a server counts, though it starts again.
        let new: Vec<ServerReport> = wanted
            .map(|report| {
                let known = seen.iter().find(|known| known.name == report.name);
                match known {
                    Some(known) if is_settled(known) => known.clone(),
                    Some(_) | None => report,
                }
            })
            .collect();
        seen = new;
        let is_over = Instant::now() >= until;
        if is_over || seen.iter().all(is_settled) {
            return Ok(seen);
        }
        sleep(PAUSE);
    }
}

/// True if more questions would bring nothing new. The sandbox of a server that is ready at once follows.
fn is_settled(report: &ServerReport) -> bool {
    match report.state {
        ServerState::Starts => false,
        ServerState::Ready { .. } => report.sandbox.is_some(),
        ServerState::Ended(_) => true,
    }
}

/// The next message; a refusal is an error.
fn answer_of(connection: &mut SupervisorConnection) -> Result<ToClient, CliError> {
    query::checked(connection.recv().map_err(|error| query::lost(&error))?)
}

fn object(report: &ServerReport) -> String {
    let (state, after_ms, why) = match &report.state {
        ServerState::Starts => ("starts", None, None),
        ServerState::Ready { after_ms } => ("ready", Some(after_ms), None),
        ServerState::Ended(why) => ("ended", None, Some(why)),
    };
    let tools = report.tools.iter();
    let tools = tools.map(
        |tool| json!({"name": tool.name, "description": tool.description, "marked": tool.marked}),
    );
    let line = json!({
        "name": report.name,
        "place": report.place,
        "sandbox": report.sandbox,
        "state": state,
        "ready_after_ms": after_ms,
        "why": why,
        "tools": tools.collect::<Vec<_>>(),
    });
    format!("{line}\n")
}
