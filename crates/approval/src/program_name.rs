//! Names of programs without their directory.

/// The part after the last slash.
pub(crate) fn base_name(program: &str) -> &str {
    let behind = program.bytes().rposition(|byte| byte == b'/').map_or(0, |slash| slash + 1);
    &program[behind..]
}
