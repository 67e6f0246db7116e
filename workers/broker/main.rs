fn main() -> std::process::ExitCode {
    broker_worker::main()
}
