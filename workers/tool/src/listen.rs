//! The thread that reads the supervisor's messages while the call runs.

use ipc::Receiver;
use protocol::tool::{FromTool, ToTool};
use std::thread;
use std::time::Duration;
use tools::Cancel;

/// A call whose supervisor is gone gets this long to end its processes and finish its files. Then
/// the process exits, and the kernel ends the rest.
const LAST_RESORT: Duration = Duration::from_secs(10);

/// Asks `cancel` when the supervisor does, or is gone; answers it that this process lives.
pub fn start(mut words: Receiver<ToTool>, cancel: Cancel, say: super::SupervisorSender) {
    thread::spawn(move || {
        loop {
            match words.recv() {
                Ok(ToTool::Cancel) => cancel.request(),
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
