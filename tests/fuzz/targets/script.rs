//! Any text as a command that rules judge.
#![no_main]

#[path = "../src/script.rs"]
mod script;

libfuzzer_sys::fuzz_target!(|data: &[u8]| script::script(data));
