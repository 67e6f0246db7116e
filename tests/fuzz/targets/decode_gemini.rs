//! Any bytes as a stream of this vendor's.
#![no_main]

#[path = "../src/decoders.rs"]
mod decoders;

libfuzzer_sys::fuzz_target!(|data: &[u8]| decoders::any(protocol::provider::Api::Gemini, data));
