fn main() -> std::process::ExitCode {
    tool_worker::main()
}
