//! Names of programs without their directory.

/// The part after the last slash.
pub(crate) fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}
