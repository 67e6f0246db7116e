//! The executable `agentd-broker`; the program is the library beside it.
fn main() -> std::process::ExitCode {
    broker_worker::main()
}
