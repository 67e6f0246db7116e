//! Chance that can be had again: a seed that is printed, and may be given.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

/// A source of numbers that follow from its seed.
#[derive(Debug)]
pub struct Dice {
    variable: &'static str,
    seed: u64,
    state: u64,
}

impl Dice {
    /// With the seed that this variable gives, or a new one. Prints it.
    pub fn seeded(variable: &'static str) -> Self {
        let given = std::env::var(variable).ok();
        let seed = match &given {
            Some(text) => text.parse().unwrap_or_else(|_| panic!("{variable}={text}: no number")),
            None => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
                u64::from(since.subsec_nanos()) ^ since.as_secs() << 20
            }
        };
        let dice = Self { variable, ..Self::of(seed) };
        println!("{dice}");
        dice
    }

    /// With this seed.
    pub fn of(seed: u64) -> Self {
        Self { variable: "seed", seed, state: seed }
    }

    /// Splitmix64: enough to choose by.
    pub fn roll(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number from 0 to one below this.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap();
        usize::try_from(self.roll() % end).unwrap()
    }
}

impl fmt::Display for Dice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.variable, self.seed)
    }
}
