//! The process that gives a terminal back whose client was killed: it does nothing else, and ends with
//! the client.
//!
//! It restores the screen, the cursor, mouse and paste modes, and the line settings where they still are
//! those of the client. It cannot help where it was killed too, as by `kill -9 -1`; `reset` does.

use crate::tty;
use nix::sys::termios::{OutputFlags, SetArg, tcgetattr, tcsetattr};
use std::fs::OpenOptions;
use std::io::{self, Read, Write};

/// Remembers the terminal as it is, says so by one byte on standard output, and waits on standard input
/// for the client's end. A client that left in order writes a byte before.
///
/// # Errors
/// If there is no terminal.
pub fn guard_terminal() -> io::Result<()> {
    let mut terminal = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
    let before = tcgetattr(&terminal)?;
    // Signals of the terminal are for the client. In a session of its own this process may also change
    // the terminal while a shell has it again.
    let _ = nix::unistd::setsid();
    io::stdout().write_all(b".")?;
    io::stdout().flush()?;
    if io::stdin().read(&mut [0])? > 0 {
        return Ok(());
    }
    terminal.write_all(&tty::goodbye()?)?;
    terminal.flush()?;
    // A shell that reads a line already has set its own mode, in which output is processed.
    let mode = tcgetattr(&terminal)?;
    if !mode.output_flags.contains(OutputFlags::OPOST) {
        tcsetattr(&terminal, SetArg::TCSANOW, &before)?;
    }
    Ok(())
}
