//! `agentd`: the command people type. Reads the command line, does what it says, and maps every
//! end to one exit code.

mod audit;
mod cli;
mod daemon;
mod demo;
mod doctor;
mod door;
mod ending;
mod exit;
mod failure;
mod init;
mod interactive;
mod logs;
mod ls;
mod manual;
mod opening;
mod output;
mod place;
mod prompt;
mod ps;
mod restart;
mod rules;
mod run;
mod sandbox_page;
mod sessions;
mod settings;
mod show;
mod signals;
mod table;
mod tools_page;

use clap::Parser;
use cli::{AuditCommand, AuditFilter, Cli, Command};
use demo::Afterwards;
use exit::Exit;
use failure::Failure;
use logs::Then;
use protocol::client::{Ending, Others, Rights};
use show::Calls;
use std::io::Write;
use std::process::ExitCode;

/// The program.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return unparsed(&error),
    };
    match dispatch(cli) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            // Standard error may be closed; there is nobody else to tell.
            let _ = writeln!(std::io::stderr(), "{failure}");
            failure.code().into()
        }
    }
}

fn unparsed(error: &clap::Error) -> ExitCode {
    // A closed pipe is quiet, so this is not `error.exit()`.
    let _ = error.print();
    if error.use_stderr() { Exit::Usage.into() } else { Exit::Done.into() }
}

fn dispatch(cli: Cli) -> Result<Exit, Failure> {
    match (cli.command, cli.print) {
        (None, Some(prompt)) => run::main(Some(&prompt), &cli.flags),
        (None, None) => interactive::here(&cli.flags),
        (Some(Command::New { prompt, flags }), _) => interactive::new(prompt, &flags),
        (Some(Command::Attach { session, read_only, detach_others, flags }), _) => {
            let rights = if read_only { Rights::ReadOnly } else { Rights::Full };
            let others = if detach_others { Others::Detach } else { Others::Stay };
            interactive::attach(session.as_deref(), &flags, rights, others)
        }
        (Some(Command::Ls { json }), _) => ls::main(json),
        (Some(Command::Show { session, calls, json }), _) => {
            show::show(&session, if calls { Calls::Whole } else { Calls::InALine }, json)
        }
        (Some(Command::Export { session, format }), _) => show::export(&session, format),
        (Some(Command::Logs { session, follow }), _) => {
            logs::main(session.as_deref(), if follow { Then::Follow } else { Then::End })
        }
        (Some(Command::Stop { session }), _) => ending::end(&session, Ending::Stop),
        (Some(Command::Kill { session }), _) => ending::end(&session, Ending::Kill),
        (Some(Command::Rm { session }), _) => ending::remove(&session),
        (Some(Command::Fork { session, at, json }), _) => ending::fork(&session, at, json),
        (Some(Command::Completions { shell }), _) => Ok(manual::completions(shell)),
        (Some(Command::Man { command }), _) => manual::man(command.as_deref()),
        (Some(Command::Run { prompt, flags }), _) => run::main(prompt.as_deref(), &flags),
        (Some(Command::Audit { command }), _) => {
            let all = AuditCommand::Ls { filter: AuditFilter::default(), json: false };
            audit::main(command.unwrap_or(all))
        }
        (Some(Command::Ps { json }), _) => ps::main(json),
        (Some(Command::Restart { session }), _) => restart::main(&session),
        (Some(Command::Daemon { command }), _) => daemon::main(&command),
        (Some(Command::Doctor { act: Some(act), .. }), _) => doctor::act(&act),
        (Some(Command::Doctor { json, attempts, act: None }), _) => {
            let depth = if attempts { doctor::Depth::Attempts } else { doctor::Depth::Steps };
            doctor::main(json, depth)
        }
        (Some(Command::Config { command }), _) => settings::main(&command),
        (Some(Command::Rules { command }), _) => rules::main(&command),
        (Some(Command::Tools { name }), _) => tools_page::main(name.as_deref()),
        (Some(Command::Sandbox), _) => Ok(sandbox_page::main()),
        (Some(Command::Init { project }), _) => init::main(&project),
        (Some(Command::Demo { keep: _, reach: Some(address) }), _) => Ok(demo::reach(address)),
        (Some(Command::Demo { keep, reach: None }), _) => {
            demo::main(if keep { Afterwards::Keep } else { Afterwards::Remove })
        }
    }
}
