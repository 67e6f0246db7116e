//! The executable `agentd-provider`; the program is the library beside it.
fn main() -> std::process::ExitCode {
    provider_worker::main()
}
