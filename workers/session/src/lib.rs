//! Placeholder of the worker's program.

/// The program.
pub fn main() -> std::process::ExitCode {
    std::process::ExitCode::SUCCESS
}
