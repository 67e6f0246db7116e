//! The thread that reads the supervisor's messages while the call runs.

use crate::SupervisorSender;
use ipc::{ChannelError, Receiver};
use protocol::tool::{FromCall, FromTool, ToCall, ToTool};
use sandbox::NetworkNamespace;
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;
use tools::{Cancel, JobControl};

/// A call whose supervisor is gone gets this long to end its processes and finish its files. Then
/// the process exits, and the kernel ends the rest.
const LAST_RESORT: Duration = Duration::from_secs(10);

/// What the supervisor can ask for during a call.
pub struct Listener {
    /// The call's end.
    pub cancel: Cancel,
    /// The running command.
    pub job: JobControl,
    /// The network that was made for the command.
    pub network: NetworkNamespace,
}

impl Listener {
    /// Reads the supervisor's messages in a thread: asks `cancel` when it does, or is gone; passes on
    /// what it says to the command; answers it that this process lives.
    pub fn start(self, mut words: Receiver<ToTool>, say: SupervisorSender) {
        thread::spawn(move || {
            let Self { cancel, job, network } = self;
            loop {
                match words.recv() {
                    Ok(ToTool::Cancel) => cancel.request(),
                    Ok(ToTool::Call(ToCall::Background)) => {
                        job.move_to_background();
                        // Should this fail, the channel's end comes in as the next word.
                        drop(pass_on(&network, &say));
                    }
                    Ok(ToTool::Call(ToCall::Input { text, then })) => {
                        // A command that reads nothing must hold up no other message.
                        let (job, answers) = (job.clone(), say.clone());
                        let writer = thread::Builder::new().spawn(move || {
                            let taken = job.write(text.as_bytes(), then);
                            let taken = taken.map_err(|error| error.to_string());
                            drop(answers.send(&input_taken(taken)));
                        });
                        if let Err(error) = writer {
                            let why = format!("no thread can be started to write it: {error}");
                            drop(say.send(&input_taken(Err(why))));
                        }
                    }
                    Ok(ToTool::Call(ToCall::Server(ask))) => job.ask(ask),
                    Ok(ToTool::Call(ToCall::Protected(order))) => job.order(order),
                    // Should this fail, the channel's end comes in as the next word.
                    Ok(ToTool::Ping(number)) => drop(say.send(&FromTool::Pong(number))),
                    Ok(ToTool::Handover(_) | ToTool::Begin(_) | ToTool::Renew | ToTool::Go(_))
                    | Err(_) => break,
                }
            }
            // A message out of turn, or a closed channel: the call has no recipient any more.
            cancel.request();
            thread::sleep(LAST_RESORT);
            std::process::exit(1);
        });
    }
}

/// Gives later commands of the session the network of this one, and says that it goes on.
fn pass_on(network: &NetworkNamespace, say: &SupervisorSender) -> Result<(), ChannelError> {
    for (kind, descriptor) in network.descriptors() {
        say.send(&FromTool::Call(FromCall::Namespace(kind)))?;
        say.send_fd(descriptor.as_fd())?;
    }
    say.send(&FromTool::Call(FromCall::InBackground))
}

fn input_taken(taken: Result<(), String>) -> FromTool {
    FromTool::Call(FromCall::InputTaken(taken))
}
