//! `agentd`: the command line. Reads the arguments, runs the command, and maps every end to an exit
//! code.

mod acp;
mod acp_setup;
mod answer_schema;
mod attach_services;
mod audit;
mod cli;
mod cli_error;
mod cli_exit;
mod context;
mod daemon;
mod demo;
mod describe;
mod doctor;
mod export;
mod fleet_commands;
mod fleet_seat;
mod handed_servers;
mod help;
mod init;
mod instructions_note;
mod interactive;
mod last_message;
mod logs;
mod ls;
mod man_page;
mod mcp;
mod memory;
mod model_context;
mod no_key;
mod open_port;
mod open_request;
mod output;
mod own_git;
mod program_input;
mod prompt;
mod prompt_history;
mod ps;
mod query;
mod restart;
mod resumed;
mod review;
mod rules;
mod run;
mod sdk;
mod search;
mod session_commands;
mod sessions;
mod settings;
mod show;
mod signals;
mod systemd_units;
mod table;
mod tools_page;
mod worktree;

use cli::{AuditCommand, AuditFilter, Cli, CliCommand, Redact};
use cli_error::CliError;
use cli_exit::CliExit;
use demo::Afterwards;
use logs::FollowMode;
use protocol::client::{ClientRights, OtherClients, SessionEnding};
use session_commands::ForkEnd;
use show::CallDetail;
use std::io::Write;
use std::process::ExitCode;

/// The program.
pub fn main() -> ExitCode {
    let cli = match Cli::read(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => return unparsed(&error),
    };
    match dispatch(cli) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            // A closed standard error is not an error.
            let _ = writeln!(
                std::io::stderr(),
                "{}",
                protocol::hidden::on_screen(&failure.to_string())
            );
            failure.code().into()
        }
    }
}

fn unparsed(error: &clap::Error) -> ExitCode {
    // A closed pipe is quiet, so this is not `error.exit()`.
    let _ = error.print();
    if error.use_stderr() { CliExit::Usage.into() } else { CliExit::Done.into() }
}

fn dispatch(cli: Cli) -> Result<CliExit, CliError> {
    match (cli.command, cli.print) {
        (None, Some(prompt)) => run::main(Some(&prompt), &worktree::entered_by_run(cli.flags)?),
        (None, None) => interactive::here(&worktree::entered_by_run(cli.flags)?),
        (Some(CliCommand::New { prompt, worktree, flags }), _) => {
            interactive::new(prompt, &worktree::entered(flags, worktree.as_deref())?)
        }
        (Some(CliCommand::Attach { session, read_only, detach_others, flags }), _) => {
            let rights = if read_only { ClientRights::ReadOnly } else { ClientRights::Full };
            let others = if detach_others { OtherClients::Detach } else { OtherClients::Stay };
            interactive::attach(session.as_deref(), &flags, rights, others)
        }
        (Some(CliCommand::Review { base, flags }), _) => review::main(base.as_deref(), flags),
        (Some(CliCommand::Acp { setup: true, .. }), _) => acp_setup::main(),
        (Some(CliCommand::Acp { flags, setup: false }), _) => acp::main(&flags),
        (Some(CliCommand::Sdk { flags }), _) => sdk::main(*flags),
        (Some(CliCommand::Open { session, port, here, call }), _) => {
            open_port::main(&session, open_port::Ports { port, here: here.unwrap_or(port), call })
        }
        (Some(CliCommand::GuardTerminal), _) => match terminal::guard_terminal() {
            Ok(()) => Ok(CliExit::Done),
            Err(error) => Err(CliError::user(format!("there is no terminal: {error}"))),
        },
        (Some(CliCommand::Ls { search: None, json }), _) => ls::main(json),
        (Some(CliCommand::Ls { search: Some(words), json }), _) => search::main(&words, json),
        (Some(CliCommand::Show { session, calls, json }), _) => {
            show::show(&session, if calls { CallDetail::Full } else { CallDetail::Line }, json)
        }
        (Some(CliCommand::Export { session, format, redact }), _) => show::export(
            &session,
            format,
            if redact { Redact::KnownShapes } else { Redact::Nothing },
        ),
        (Some(CliCommand::Logs { session, follow }), _) => logs::main(
            session.as_deref(),
            if follow { FollowMode::Follow } else { FollowMode::End },
        ),
        (Some(CliCommand::Stop { session }), _) => {
            session_commands::end(&session, SessionEnding::Stop)
        }
        (Some(CliCommand::Kill { session }), _) => {
            session_commands::end(&session, SessionEnding::Kill)
        }
        (Some(CliCommand::Rm { session }), _) => session_commands::remove(&session),
        (Some(CliCommand::Fork { session, at, before, json }), _) => {
            let end = match (at, before) {
                (_, Some(prompt)) => ForkEnd::BeforePrompt(prompt),
                (Some(seq), None) => ForkEnd::Record(seq),
                (None, None) => ForkEnd::LastTurn,
            };
            session_commands::fork(&session, end, json)
        }
        (Some(CliCommand::Completions { shell }), _) => Ok(man_page::completions(shell)),
        (Some(CliCommand::Man { name }), _) => man_page::man(name.as_deref()),
        (Some(CliCommand::Run { prompt, flags }), _) => {
            run::main(prompt.as_deref(), &worktree::entered_by_run(flags)?)
        }
        (Some(CliCommand::Audit { command }), _) => {
            let all = AuditCommand::Ls { filter: AuditFilter::default(), json: false };
            audit::main(command.unwrap_or(all))
        }
        (Some(CliCommand::Ps { json }), _) => ps::main(json),
        (Some(CliCommand::Restart { session }), _) => restart::main(&session),
        (Some(CliCommand::Context { session, json }), _) => model_context::main(&session, json),
        (Some(CliCommand::Daemon { command }), _) => daemon::main(&command),
        (Some(CliCommand::Doctor { act: Some(act), .. }), _) => doctor::act(&act),
        (Some(CliCommand::Doctor { json, project: Some(project), .. }), _) => {
            doctor::project::main(&project, json)
        }
        (Some(CliCommand::Doctor { json, attempts, project: None, act: None }), _) => {
            let depth =
                if attempts { doctor::DoctorDepth::Attempts } else { doctor::DoctorDepth::Steps };
            doctor::main(json, depth)
        }
        (Some(CliCommand::Config { command }), _) => settings::main(&command),
        (Some(CliCommand::Rules { command }), _) => rules::main(&command),
        (Some(CliCommand::Mcp { command }), _) => mcp::main(command),
        (Some(CliCommand::Memory { command }), _) => memory::main(&command),
        (Some(CliCommand::Fleet { .. } | CliCommand::Submit(_) | CliCommand::Tasks { .. }), _) => {
            fleet_commands::main()
        }
        (Some(CliCommand::Tools { name }), _) => tools_page::main(name.as_deref()),
        (Some(CliCommand::Sandbox), _) => help::main(&["sandbox".to_owned()]),
        (Some(CliCommand::Help { words }), _) => help::main(&words),
        (Some(CliCommand::Init { plugin_dir: Some(dir), .. }), _) => init::trust_plugin(&dir),
        (Some(CliCommand::Init { project, trust: true, .. }), _) => init::trust(&project),
        (Some(CliCommand::Init { project, .. }), _) => init::main(&project),
        (Some(CliCommand::Demo { keep: _, reach: Some(address) }), _) => Ok(demo::reach(address)),
        (Some(CliCommand::Demo { keep, reach: None }), _) => {
            demo::main(if keep { Afterwards::Keep } else { Afterwards::Remove })
        }
    }
}
