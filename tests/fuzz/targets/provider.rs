//! Any bytes as a message of the provider wire, in both directions.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| agentd_fuzz::provider(data));
