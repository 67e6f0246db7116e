//! The limits of a call, and a limit that was exceeded.

/// A resource with a limit per call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitKind {
    /// In bytes.
    Memory,
    /// Processes and threads at once.
    Processes,
    /// In seconds, over all CPUs.
    CpuTime,
}

/// A limit that a call exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitExceeded {
    /// The resource.
    pub bound: LimitKind,
    /// The amount found; equal to the limit if the kernel enforced it.
    pub used: u64,
    /// The limit.
    pub most: u64,
}
