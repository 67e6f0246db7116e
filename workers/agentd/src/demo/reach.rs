//! The one thing of the demo that runs inside a cage: an honest attempt to connect.

use crate::cli_exit::CliExit;
use crate::output::print;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longest attempt.
const PATIENCE: Duration = Duration::from_secs(5);

/// Tries to connect and prints the outcome.
pub(super) fn main(address: SocketAddr) -> CliExit {
    match TcpStream::connect_timeout(&address, PATIENCE) {
        Ok(_) => {
            print(&format!("reach: connected to {address}\n"));
            CliExit::Done
        }
        Err(error) => {
            print(&format!("reach: could not connect to {address}: {error}\n"));
            CliExit::Failed
        }
    }
}
