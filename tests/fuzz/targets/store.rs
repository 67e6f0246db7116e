//! Any bytes as a message of the store wire, in both directions.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| agentd_fuzz::store(data));
