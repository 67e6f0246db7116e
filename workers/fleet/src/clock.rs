//! The clock of leases.

use rustix::time::{ClockId, clock_gettime};

/// Milliseconds of `CLOCK_BOOTTIME`, which counts while the machine sleeps and cannot be set.
pub(crate) fn boot_ms() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let ms = now.tv_sec.saturating_mul(1000).saturating_add(now.tv_nsec / 1_000_000);
    u64::try_from(ms).unwrap_or_default()
}
