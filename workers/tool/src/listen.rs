//! The thread that hears the supervisor while the call runs.

use ipc::Receiver;
use protocol::tool::ToTool;
use std::thread;
use std::time::Duration;
use tools::Cancel;

/// A call whose supervisor is gone gets this long to end its processes and leave files whole.
/// Then the process goes down with what is left, which the kernel ends.
const LAST_RESORT: Duration = Duration::from_secs(10);

/// Asks `cancel` when the supervisor does, or is gone.
pub(crate) fn start(mut words: Receiver<ToTool>, cancel: Cancel) {
    thread::spawn(move || {
        while let Ok(ToTool::Cancel) = words.recv() {
            cancel.ask();
        }
        // A word out of turn, or the channel's end: nobody is left to work for.
        cancel.ask();
        thread::sleep(LAST_RESORT);
        std::process::exit(1);
    });
}
