//! The executable `agentd-supervisor`; the program is the library beside it.
fn main() -> std::process::ExitCode {
    supervisor_worker::main()
}
