//! The thread that reads the supervisor's messages while the call runs.

use ipc::Receiver;
use protocol::tool::{FromTool, ToTool};
use std::thread;
use std::time::Duration;
use tools::{Cancel, JobControl};

/// A call whose supervisor is gone gets this long to end its processes and finish its files. Then
/// the process exits, and the kernel ends the rest.
const LAST_RESORT: Duration = Duration::from_secs(10);

/// Asks `cancel` when the supervisor does, or is gone; passes on what it says to the command; answers it
/// that this process lives.
pub fn start(
    mut words: Receiver<ToTool>,
    (cancel, job): (Cancel, JobControl),
    say: super::SupervisorSender,
) {
    thread::spawn(move || {
        loop {
            match words.recv() {
                Ok(ToTool::Cancel) => cancel.request(),
                Ok(ToTool::Background) => job.move_to_background(),
                Ok(ToTool::Input { text, then }) => {
                    // A command that reads nothing must hold up no other message.
                    let (job, answers) = (job.clone(), say.clone());
                    let writer = thread::Builder::new().spawn(move || {
                        let taken = job.write(text.as_bytes(), then);
                        let taken = taken.map_err(|error| error.to_string());
                        drop(answers.send(&FromTool::InputTaken(taken)));
                    });
                    if let Err(error) = writer {
                        let why = format!("no thread can be started to write it: {error}");
                        drop(say.send(&FromTool::InputTaken(Err(why))));
                    }
                }
                // Should this fail, the channel's end comes in as the next word.
                Ok(ToTool::Ping(number)) => drop(say.send(&FromTool::Pong(number))),
                Ok(
                    ToTool::SessionLock
                    | ToTool::Overlays
                    | ToTool::Mounted
                    | ToTool::SaveProtected
                    | ToTool::Sign(_)
                    | ToTool::Confine(_)
                    | ToTool::Reserve(_)
                    | ToTool::Renew
                    | ToTool::Repair(_)
                    | ToTool::Go(_),
                )
                | Err(_) => break,
            }
        }
        // A message out of turn, or a closed channel: the call has no recipient any more.
        cancel.request();
        thread::sleep(LAST_RESORT);
        std::process::exit(1);
    });
}
