//! The executable `agentd-tool`; the program is the library beside it.
fn main() -> std::process::ExitCode {
    tool_worker::main()
}
