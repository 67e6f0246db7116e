//! `agentd-session`: one conversation in a process that has nothing but its channel.

use anyhow::bail;
use ipc::ChannelError;
use protocol::session::{SessionLink, ToSession};
use session::Session;
use std::process::ExitCode;

/// The program.
pub fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The only place left: the channel may be what failed.
            eprintln!("agentd-session: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    let (mut words, say) = ipc::worker::<SessionLink>()?;
    let mut session = match words.recv() {
        Ok(ToSession::Begin(setup)) => Session::new(setup),
        Err(ChannelError::Closed) => return Ok(()),
        Ok(_) => bail!("a word came before Begin"),
        Err(error) => return Err(error.into()),
    };
    loop {
        let word = match words.recv() {
            Ok(word) => word,
            Err(ChannelError::Closed) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        for said in session.step(word) {
            say.send(&said)?;
        }
    }
}
