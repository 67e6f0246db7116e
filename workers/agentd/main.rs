//! The executable `agentd`; the program is the library beside it.
fn main() -> std::process::ExitCode {
    agentd_worker::main()
}
