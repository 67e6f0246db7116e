//! The executable `agentd-mcp`; the program is the library beside it.
fn main() -> std::process::ExitCode {
    mcp_worker::main()
}
