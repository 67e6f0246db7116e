//! The executable `agentd-session`; the program is the library beside it.
fn main() -> std::process::ExitCode {
    session_worker::main()
}
