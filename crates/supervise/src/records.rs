//! Conversion between wire messages and the records on disk.

pub(crate) mod audit;
pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod images;
pub(crate) mod origin;

/// The turn and round that a call belongs to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TurnRound {
    pub(crate) turn: u32,
    pub(crate) round: u32,
}
