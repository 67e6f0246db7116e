//! Random names and secrets.

use crate::error::FleetError;
use data_encoding::HEXLOWER;

/// 64 random hex digits.
pub(crate) fn secret() -> Result<String, FleetError> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| FleetError::Host(error.to_string()))?;
    Ok(HEXLOWER.encode(&bytes))
}

/// A random UUID, version 4.
pub(crate) fn uuid() -> Result<String, FleetError> {
    let hex = secret()?;
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    let (a, b, c, d, e) = (part(0, 8), part(8, 12), part(13, 16), part(17, 20), part(20, 32));
    Ok(format!("{a}-{b}-4{c}-8{d}-{e}"))
}
