//! Puts a digest of the wire files into `AGENTD_WIRES`, the second half of the build id.

use std::hash::{DefaultHasher, Hasher};
use std::{env, fs, path::Path};

fn main() {
    let source = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("set by cargo")).join("src");
    let mut files: Vec<_> = fs::read_dir(&source)
        .expect("the crate has sources")
        .map(|entry| entry.expect("a readable entry").path())
        .collect();
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        hasher.write(&fs::read(&file).expect("a readable source"));
    }
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rustc-env=AGENTD_WIRES={:016x}", hasher.finish());
}
