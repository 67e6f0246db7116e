//! Keys of the person's ssh agent that sign git's commits and tags for one call, and the agent's messages.
//! For `agentd-tool`, which serves the command, and for the supervisor, which asks the agent first.

pub mod fields;
pub mod filter;
mod key;

pub use key::{fingerprint, literal, signing_key};

use protocol::tool::SigningKey;
use std::io;
use std::os::unix::net::UnixStream;

/// Longest list of keys of an agent.
const LIST_BYTES: usize = 256 << 10;

/// Which of these keys the agent behind this connection has.
///
/// # Errors
/// The connection's, and `InvalidData` where no agent answers.
pub fn held_by(agent: &UnixStream, keys: &[SigningKey]) -> io::Result<Vec<SigningKey>> {
    fields::send(agent, &filter::identities_request())?;
    let answer = fields::receive(agent, LIST_BYTES)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let listed = filter::listed(&answer).ok_or(io::ErrorKind::InvalidData)?;
    let is_held = |key: &&SigningKey| listed.contains(&key.blob.as_slice());
    Ok(keys.iter().filter(is_held).cloned().collect())
}
