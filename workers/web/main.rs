//! The executable `agentd-web`; the program is the library beside it.
fn main() -> std::process::ExitCode {
    web_worker::main()
}
