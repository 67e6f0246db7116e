//! The person's browser, where there is a screen for one. Used by `--login`.

use reqwest::Url;
use std::process::{Command, Stdio};
use std::thread;

/// Has the address opened. It is https, or of this machine; the person sees it too.
pub(crate) fn open(address: &Url) {
    let mut command = Command::new("xdg-open");
    command.arg(address.as_str());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Without the program, the address is on the screen.
    if let Ok(mut child) = command.spawn() {
        thread::spawn(move || child.wait());
    }
}
