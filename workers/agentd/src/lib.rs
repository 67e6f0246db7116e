//! `agentd`: the command people type. Reads the command line, does what it says, and maps every
//! end to one exit code.

mod audit;
mod cli;
mod daemon;
mod demo;
mod doctor;
mod exit;
mod failure;
mod init;
mod output;
mod place;
mod prompt;
mod ps;
mod restart;
mod run;
mod settings;
mod signals;

use clap::Parser;
use cli::{AuditCommand, AuditFilter, Cli, Command};
use demo::Afterwards;
use exit::Exit;
use failure::Failure;
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
        (None, None) => Err(Failure::user("there is no prompt and no command").hint(
            "`agentd -p 'What is here?'` runs one prompt, `agentd demo` shows everything, `agentd \
             --help` lists the commands",
        )),
        (Some(Command::Run { prompt, flags }), _) => run::main(prompt.as_deref(), &flags),
        (Some(Command::Audit { command }), _) => {
            let all = AuditCommand::Ls { filter: AuditFilter::default(), json: false };
            audit::main(command.unwrap_or(all))
        }
        (Some(Command::Ps { json }), _) => ps::main(json),
        (Some(Command::Restart { session }), _) => restart::main(&session),
        (Some(Command::Daemon { command }), _) => daemon::main(&command),
        (Some(Command::Doctor { json }), _) => doctor::main(json),
        (Some(Command::Config { command }), _) => settings::main(&command),
        (Some(Command::Init { project }), _) => init::main(&project),
        (Some(Command::Demo { keep: _, reach: Some(address) }), _) => Ok(demo::reach(address)),
        (Some(Command::Demo { keep, reach: None }), _) => {
            demo::main(if keep { Afterwards::Keep } else { Afterwards::Remove })
        }
    }
}
