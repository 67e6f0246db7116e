fn main() -> std::process::ExitCode {
    supervisor_worker::main()
}
