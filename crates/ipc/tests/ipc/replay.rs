//! The inputs that fuzzing found worth keeping, as an ordinary test: the same functions, no nightly
//! compiler. A crash that fuzzing finds is fixed and its input put into `tests/data/fuzz/<target>`.

use std::fs;
use std::path::PathBuf;

/// A fuzz target's name and what it holds any bytes to.
type Target = (&'static str, fn(&[u8]));

const TARGETS: [Target; 7] = [
    ("session", super::held::session),
    ("provider", super::held::provider),
    ("broker", super::held::broker),
    ("store", super::held::store),
    ("tool", super::held::tool),
    ("client", super::held::client),
    ("frames", super::held::frames),
];

fn at_the_top(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path)
}

#[test]
fn every_kept_input_holds() {
    for (name, holds) in TARGETS {
        let dir = at_the_top("tests/data/fuzz").join(name);
        let inputs =
            fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
        let mut count = 0;
        for input in inputs {
            holds(&fs::read(input.unwrap().path()).unwrap());
            count += 1;
        }
        assert!(count >= 10, "{} has only {count} inputs", dir.display());
    }
}

#[test]
fn every_kept_input_holds_with_any_byte_changed_and_at_any_length() {
    for (name, holds) in TARGETS {
        for input in fs::read_dir(at_the_top("tests/data/fuzz").join(name)).unwrap() {
            let mut bytes = fs::read(input.unwrap().path()).unwrap();
            for place in 0..bytes.len() {
                holds(&bytes[..place]);
                for value in [0, 1, 0x7f, 0xfa, 0xfb, 0xfd, 0xff] {
                    let kept = std::mem::replace(&mut bytes[place], value);
                    holds(&bytes);
                    bytes[place] = kept;
                }
            }
        }
    }
}

#[test]
fn every_fuzz_target_is_replayed() {
    let mut files: Vec<_> = fs::read_dir(at_the_top("tests/fuzz/targets"))
        .unwrap()
        .map(|file| file.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    // The reader of commands is replayed where it is: `crates/approval/tests/approval/replay.rs`.
    files.retain(|name| name != "script");
    // So are the vendors' decoders: `crates/provider/tests/provider/streams.rs`.
    files.retain(|name| !name.starts_with("decode_"));
    files.sort();
    let mut names: Vec<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    names.sort();
    assert_eq!(files, names);
}
