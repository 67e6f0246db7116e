//! `agentd daemon`: the daemon for all sessions of this user, started, asked and ended.

use crate::cli::DaemonCommand;
use crate::cli_error::CliError;
use crate::cli_exit::CliExit;
use crate::context::CliContext;
use crate::output::{print, print_json};
use crate::query;
use crate::systemd_units::{self, OwnUnits};
use client::{
    ConnectError, DaemonProcess, DaemonSource, SupervisorConnection, become_daemon,
    sibling_executable,
};
use protocol::client::{DaemonStatus, FromClient, OnUnfinished, ToClient};
use serde_json::json;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Longest time for a daemon to end: its calls and workers have theirs.
const END: Duration = Duration::from_secs(30);

pub(crate) fn main(command: &DaemonCommand) -> Result<CliExit, CliError> {
    let context = CliContext::of_process()?;
    let executable = sibling_executable("agentd-supervisor")?;
    match command {
        DaemonCommand::Start => {
            context.writable_state()?;
            let connection = of(&context, &executable)?.find_or_start()?;
            eprintln!("agentd: the daemon is running (process {})", connection.supervisor_pid());
            Ok(CliExit::Done)
        }
        DaemonCommand::Stop { force } => stop(&of(&context, &executable)?, unfinished(*force)),
        DaemonCommand::Restart { force } => {
            let daemon = of(&context, &executable)?;
            stop(&daemon, unfinished(*force))?;
            let connection = daemon.find_or_start()?;
            eprintln!("agentd: the daemon is running (process {})", connection.supervisor_pid());
            Ok(CliExit::Done)
        }
        DaemonCommand::Status { json } => status(&of(&context, &executable)?, *json),
        DaemonCommand::Install => {
            if of(&context, &executable)?.find()?.is_some() {
                let text = "a daemon runs already, and systemd would take its socket away";
                return Err(CliError::user(text).hint("end it first: `agentd daemon stop`"));
            }
            systemd_units::install(&context)?;
            Ok(CliExit::Done)
        }
        DaemonCommand::Uninstall { force } => {
            let Some(units) = OwnUnits::find(&context)? else {
                eprintln!("agentd: there are no units of agentd's");
                return Ok(CliExit::Done);
            };
            // First of all, since systemd ends the service with its socket, turns or not.
            stop(&of(&context, &executable)?, unfinished(*force))?;
            units.stop_listening()?;
            units.remove()?;
            Ok(CliExit::Done)
        }
        DaemonCommand::Run => {
            context.writable_state()?;
            context.dirs.socket()?;
            Err(become_daemon(&query::launch(&executable)).into())
        }
    }
}

/// The way to the daemon of this user; nothing is started by asking for it.
pub(crate) fn of<'a>(
    context: &CliContext,
    executable: &'a Path,
) -> Result<DaemonSource<'a>, CliError> {
    Ok(DaemonSource::at(context.dirs.socket()?, query::launch(executable)))
}

fn unfinished(force: bool) -> OnUnfinished {
    if force { OnUnfinished::Interrupt } else { OnUnfinished::Refuse }
}

fn stop(daemon: &DaemonSource<'_>, unfinished: OnUnfinished) -> Result<CliExit, CliError> {
    let found = match (daemon.find(), unfinished) {
        // There is no speaking to it, but it is this user's process and heeds TERM.
        (
            Err(ConnectError::OtherBuild { .. } | ConnectError::Silent { .. }),
            OnUnfinished::Interrupt,
        ) => {
            return daemon.terminate(END).map(|()| CliExit::Done).map_err(|error| {
                CliError::internal(format!("the daemon cannot be stopped: {error}"))
            });
        }
        (found, _) => found?,
    };
    let Some(mut connection) = found else {
        eprintln!("agentd: no daemon is running");
        return Ok(CliExit::Done);
    };
    let ended = |error| CliError::internal(format!("the daemon did not end: {error}"));
    let process = DaemonProcess::of(&connection).map_err(ended)?;
    let _ = connection.send(&FromClient::Shutdown { unfinished }, &[]);
    loop {
        match connection.recv() {
            Ok(ToClient::Failed { kind: _, message }) if unfinished == OnUnfinished::Refuse => {
                return Err(CliError::user(message).exit(CliExit::Failed));
            }
            Ok(_) => {}
            // The end of the connection is the beginning of the daemon's.
            Err(_) => break,
        }
    }
    process.wait_for_end(END).map_err(ended)?;
    eprintln!("agentd: the daemon has ended; its sessions are on disk");
    Ok(CliExit::Done)
}

fn status(daemon: &DaemonSource<'_>, json: bool) -> Result<CliExit, CliError> {
    let Some(connection) = daemon.find()? else {
        if json {
            print_json(&format!("{}\n", json!({ "running": false })));
        } else {
            eprintln!("agentd: no daemon is running; `agentd daemon start` starts one");
        }
        return Ok(CliExit::SupervisorUnreachable);
    };
    let status = ask(connection)?;
    match json {
        true => print_json(&line(&status)),
        false => print(&words(&status)),
    }
    Ok(CliExit::Done)
}

/// The daemon's status. Starts nothing.
pub(crate) fn ask(mut connection: SupervisorConnection) -> Result<DaemonStatus, CliError> {
    let answer = query::ask_within_limit(&mut connection, &FromClient::Status)?;
    let ToClient::Status(status) = answer else { return Err(query::unexpected(&answer)) };
    Ok(status)
}

fn line(status: &DaemonStatus) -> String {
    let line = json!({
        "running": true,
        "pid": status.pid,
        "build": status.build,
        "began": status.began,
        "sandbox": status.sandbox,
        "sessions": status.sessions,
        "working": status.working,
        "room": status.room,
        "limit": status.limit,
        "clients": status.clients,
        "troubles": status.troubles,
    });
    format!("{line}\n")
}

fn words(status: &DaemonStatus) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let now = u64::try_from(now).unwrap_or(u64::MAX);
    let mut text = format!(
        "process   {}, for {}\nbuild     {}\ncage      {}\nsessions  {}, {} at work, room for {} by {}\nclients   {}\n",
        status.pid,
        since(now.saturating_sub(status.began) / 1000),
        status.build,
        status.sandbox,
        status.sessions,
        status.working,
        status.room,
        status.limit,
        status.clients,
    );
    for trouble in &status.troubles {
        text.push_str(&format!("trouble   {trouble}\n"));
    }
    text
}

fn since(seconds: u64) -> String {
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min", seconds / 60),
        7200..=172_799 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}
