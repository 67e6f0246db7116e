fn main() -> std::process::ExitCode {
    session_worker::main()
}
