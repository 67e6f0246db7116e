//! How long a command may take.

/// Longest time that a call can ask for, in milliseconds.
pub const LONGEST_MS: u64 = 600_000;

/// Longest time of a command in the background, in milliseconds: a day.
pub const BACKGROUND_MS: u64 = 86_400_000;
