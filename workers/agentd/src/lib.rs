//! The command people type.

use std::process::ExitCode;

/// The program.
#[must_use]
pub fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("demo") => {
            println!("agentd {}", env!("CARGO_PKG_VERSION"));
            println!("The wires stand; there is nothing to show yet.");
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("agentd: only `agentd demo` exists so far");
            ExitCode::from(2)
        }
    }
}
