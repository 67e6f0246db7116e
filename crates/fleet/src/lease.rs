//! Until when a host may run calls, by its own clock. Pure: times are milliseconds of `CLOCK_BOOTTIME`,
//! which counts the time that a machine sleeps and that no administrator sets.
//!
//! The database gives a lease away once it ran out and a margin passed, by its own clock. A host counts
//! from the moment before it asked, so that its time is over first.

/// The length of leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseTimes {
    /// For how long a lease holds without a renewal, in milliseconds.
    pub lease_ms: u64,
}

impl LeaseTimes {
    /// Between two renewals: a third of the lease.
    #[must_use]
    pub fn renew_every(self) -> u64 {
        (self.lease_ms / 3).max(1)
    }

    /// The lease that a request got which was sent at this time.
    #[must_use]
    pub fn asked_at(self, now: u64) -> Lease {
        Lease {
            freeze_at: now.saturating_add(self.lease_ms / 3 * 2),
            // Time to kill a cage and to see it empty.
            kill_at: now.saturating_add(self.lease_ms - self.lease_ms / 10),
        }
    }
}

/// A lease by the clock of its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// From here on nothing new begins, and running calls are frozen.
    pub freeze_at: u64,
    /// From here on running calls are killed.
    pub kill_at: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_stops_before_the_database_gives_the_task_away() {
        let times = LeaseTimes { lease_ms: 30_000 };
        assert_eq!(times.renew_every(), 10_000);
        let lease = times.asked_at(1_000);
        assert_eq!(lease, Lease { freeze_at: 21_000, kill_at: 28_000 });
        assert!(lease.kill_at < 1_000 + times.lease_ms);
    }
}
