fn main() -> std::process::ExitCode {
    provider_worker::main()
}
