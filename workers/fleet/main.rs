//! The executable `agentd-fleet`; the program is the library beside it.
fn main() -> std::process::ExitCode {
    fleet_worker::main()
}
