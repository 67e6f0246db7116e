//! `agentd context`: what fills the model's context in a session that runs.

use crate::cli_error::{CliError, chain};
use crate::cli_exit::CliExit;
use crate::output::{print, print_json};
use crate::restart::find_running;
use client::{ChannelError, context_text};
use protocol::client::{
    BacklogFrom, ClientRights, FromClient, OtherClients, SessionQuery, ToClient,
};
use protocol::context::ContextReport;
use serde_json::json;

pub(crate) fn main(beginning: &str, json: bool) -> Result<CliExit, CliError> {
    let hint = "only a session that runs has a model's context: `agentd attach` opens one";
    let (mut connection, session) = find_running(beginning, hint)?;
    let lost = |error: ChannelError| {
        CliError::internal(chain(&error)).exit(CliExit::SupervisorUnreachable)
    };
    let watch = FromClient::Attach {
        session: session.clone(),
        from: BacklogFrom::Newest(0),
        rights: ClientRights::ReadOnly,
        others: OtherClients::Stay,
    };
    let question = FromClient::Query { session, query: SessionQuery::Context };
    for word in [watch, question] {
        connection.send(&word, &[]).map_err(lost)?;
    }
    // Events of the session may come first.
    let report = loop {
        match connection.recv().map_err(lost)? {
            ToClient::Context { session: _, report } => {
                break report.map_err(CliError::internal)?;
            }
            ToClient::Failed { kind: _, message } => return Err(CliError::internal(message)),
            ToClient::Detached { reason, .. } => return Err(CliError::user(reason)),
            ToClient::Welcome { .. }
            | ToClient::Refused { .. }
            | ToClient::Opened { .. }
            | ToClient::Attached { .. }
            | ToClient::Behind { .. }
            | ToClient::Page { .. }
            | ToClient::Changes { .. }
            | ToClient::Servers { .. }
            | ToClient::TakenBack { .. }
            | ToClient::Sessions(_)
            | ToClient::Status(_)
            | ToClient::Done
            | ToClient::Event { .. }
            | ToClient::NetworkOpened { .. }
            | ToClient::NetworkClosed { .. }
            | ToClient::Processes(_)
            | ToClient::Pong(_) => {}
        }
    };
    match json {
        true => print_json(&format!("{}\n", object(&report))),
        false => {
            let width = usize::from(client::terminal_size().0);
            print(&format!("{}\n", context_text(&report, width)));
        }
    }
    Ok(CliExit::Done)
}

/// The report for programs.
fn object(report: &ContextReport) -> serde_json::Value {
    let part = |part: &protocol::context::ContextPart| json!({ "kind": part.kind.name(), "count": part.count, "estimated_tokens": part.tokens });
    json!({
        "model": report.model,
        "context": report.window,
        "used": report.used(),
        "free": report.window.map(|window| window.saturating_sub(report.used())),
        "counted": report.counted,
        "estimated": report.estimated,
        "max_tokens": report.answer,
        "unread_pinned_files": report.unread,
        "parts": report.parts.iter().map(part).collect::<Vec<_>>(),
    })
}
