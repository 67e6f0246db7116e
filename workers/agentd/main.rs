fn main() -> std::process::ExitCode {
    agentd_worker::main()
}
