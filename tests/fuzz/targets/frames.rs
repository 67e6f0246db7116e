//! Any bytes as the frames of a peer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| agentd_fuzz::frames(data));
