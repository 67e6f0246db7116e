//! The last line of a file.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// Where the last line of the first `length` bytes begins, and its bytes with its line end, if it
/// has one. Reads from the end, in steps.
pub(super) fn last_line(mut file: &File, length: u64) -> io::Result<(u64, Vec<u8>)> {
    const STEP: u64 = 16 << 10;
    let mut tail = Vec::new();
    let mut start = length;
    while start > 0 {
        let step = STEP.min(start);
        start -= step;
        let mut chunk = vec![0; usize::try_from(step).unwrap_or_default()];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut chunk)?;
        chunk.append(&mut tail);
        tail = chunk;
        // The last line's end does not count as the end of the line before it.
        let searched = &tail[..tail.len() - 1];
        if let Some(position) = searched.iter().rposition(|byte| *byte == b'\n') {
            let line = tail.split_off(position + 1);
            return Ok((start + position as u64 + 1, line));
        }
    }
    Ok((0, tail))
}
