//! Puts a digest of the wire files into `AGENTD_WIRES`, the second half of the build id: the wires, and
//! the words of records that they are made of.

use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let package = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let mut hasher = DefaultHasher::new();
    for place in ["src", "../journal/src/values"] {
        for file in files(&package.join(place)) {
            hasher.write(&fs::read(&file).expect("a readable source"));
        }
        println!("cargo::rerun-if-changed={place}");
    }
    println!("cargo::rustc-env=AGENTD_WIRES={:016x}", hasher.finish());
}

fn files(source: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(source).expect("a directory of sources");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a readable entry").path()).collect();
    files.sort();
    files
}
