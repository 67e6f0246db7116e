//! The executable `agentd-store`; the program is the library beside it.
fn main() -> std::process::ExitCode {
    store_worker::main()
}
