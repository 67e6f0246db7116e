//! The executable `agentd-code`; the program is the library beside it.
fn main() -> std::process::ExitCode {
    code_worker::main()
}
