//! A decoder that a hostile file took over, for tests: the file names a path and an address, and the
//! decoder reads the one and connects to the other. Compiled under `--cfg agentd_hooks` only; for
//! `image`.

use std::net::TcpStream;

/// Precedes the path and the address, a line each, behind the image.
const MARK: &str = "agentd_hook: taken over\n";

/// The outcome of both attempts; none for any other file.
pub(super) fn attempts(image: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(image);
    let (path, address) = text.split_once(MARK)?.1.split_once('\n')?;
    let read = std::fs::read_to_string(path).map_err(|error| error.to_string());
    let reached = TcpStream::connect(address).map(drop).map_err(|error| error.to_string());
    Some(format!("the decoder was taken over; secret: {read:?}; network: {reached:?}"))
}
