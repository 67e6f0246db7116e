//! The bytes of every word of every wire, compared with those on record.
//!
//! A word that changes its bytes, a new one and one that is gone all fail here, so that no wire
//! changes by accident. After a change that is meant:
//! `UPDATE_GOLDEN=1 cargo test -p protocol --test golden`, and look at the difference.

#![allow(clippy::unwrap_used)]

use ipc::codec::{decode, encode};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs;
use std::path::Path;

const RECORD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/words.txt");

/// One word with its name `wire::Enum::Variant`.
struct Golden {
    name: String,
    bytes: Vec<u8>,
    /// Whether these bytes are that word again.
    is_read_from: ReadBack,
}

type ReadBack = Box<dyn Fn(&[u8]) -> bool>;

fn golden<W>(name: &str, word: W) -> Golden
where
    W: bincode::Encode + bincode::Decode<()> + PartialEq + Debug + 'static,
{
    let bytes = encode(&word).unwrap();
    let is_read_from = Box::new(move |bytes: &[u8]| decode::<W>(bytes).unwrap() == word);
    Golden { name: name.to_owned(), bytes, is_read_from }
}

/// Lists one word of each variant. A variant that is not listed does not compile, and a word that
/// stands under another variant's name panics.
macro_rules! goldens {
    ($($wire:ident::$Enum:ident { $($Variant:ident => $word:expr,)+ })+) => {
        pub fn goldens_of_all() -> Vec<crate::Golden> {
            let mut all = Vec::new();
            $({
                use protocol::$wire::$Enum;
                let variant_of = |word: &$Enum| match word {
                    $($Enum::$Variant { .. } => stringify!($Variant),)+
                };
                $({
                    let word: $Enum = $word;
                    assert_eq!(variant_of(&word), stringify!($Variant));
                    let path = [stringify!($wire), stringify!($Enum), stringify!($Variant)];
                    all.push(crate::golden(&path.join("::"), word));
                })+
            })+
            all
        }

        /// The enums above, as `wire::Enum`.
        pub const ENUMS: &[&str] = &[$(concat!(stringify!($wire), "::", stringify!($Enum))),+];
    };
}

#[path = "golden/samples.rs"]
mod samples;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes_of(hex: &str) -> Vec<u8> {
    hex.as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn on_record() -> BTreeMap<String, String> {
    let text = fs::read_to_string(RECORD).unwrap_or_else(|error| panic!("{RECORD}: {error}"));
    text.lines()
        .map(|line| line.split_once(' ').unwrap_or_else(|| panic!("no golden: {line}")))
        .map(|(name, hex)| (name.to_owned(), hex.to_owned()))
        .collect()
}

#[test]
fn every_word_has_the_bytes_on_record() {
    let words = samples::goldens_of_all();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let lines: String =
            words.iter().map(|word| format!("{} {}\n", word.name, hex(&word.bytes))).collect();
        fs::write(RECORD, lines).unwrap();
    }
    let mut recorded = on_record();
    let mut changed = Vec::new();
    for word in &words {
        match recorded.remove(&word.name) {
            Some(bytes) if bytes == hex(&word.bytes) => {
                assert!((word.is_read_from)(&bytes_of(&bytes)), "{}", word.name);
            }
            Some(bytes) => {
                changed.push(format!("{}: {} was {bytes}", word.name, hex(&word.bytes)));
            }
            None => changed.push(format!("{}: is not on record", word.name)),
        }
    }
    changed.extend(recorded.keys().map(|name| format!("{name}: is gone")));
    assert!(
        changed.is_empty(),
        "if this is meant, see the top of this file:\n{}",
        changed.join("\n")
    );
}

#[test]
fn every_enum_of_the_wires_is_among_the_words() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let of_wires = fs::read_dir(here.join("src")).unwrap();
    // The values of records that the wires have too, each under the wire that gives it a name.
    let of_records = fs::read_dir(here.join("../journal/src/values")).unwrap();
    let mut missing = Vec::new();
    for file in of_wires.chain(of_records) {
        let path = file.unwrap().path();
        let is_of_record = path.components().any(|part| part.as_os_str() == "values");
        let wire = match path.file_stem().unwrap().to_str().unwrap() {
            // These files hold types of the client's wire, and of the conversation's.
            "session_request" | "status" => "client".to_owned(),
            "offered_tool" | "open_turn" => "session".to_owned(),
            wire => wire.to_owned(),
        };
        let mut derives = String::new();
        for line in fs::read_to_string(&path).unwrap().lines() {
            if line.starts_with("#[derive(") {
                line.clone_into(&mut derives);
            }
            // What is never put into bytes has no golden.
            if !derives.contains("Encode") {
                continue;
            }
            // The wires' own names have no words.
            let Some(name) = line.strip_prefix("pub enum ").filter(|rest| !rest.ends_with("{}"))
            else {
                continue;
            };
            let name = name.trim_end_matches(" {");
            let is_it = |known: &&str| {
                let (its_wire, its_name) = known.split_once("::").unwrap();
                its_name == name && (is_of_record || its_wire == wire)
            };
            if !samples::ENUMS.iter().any(is_it) {
                missing.push(format!("{wire}::{name}"));
            }
        }
    }
    assert!(missing.is_empty(), "no goldens for {missing:?}");
    assert!(samples::ENUMS.len() > 30, "the sources were not found");
}

#[test]
fn no_two_words_of_a_wire_have_the_same_bytes() {
    let mut seen = BTreeMap::new();
    for word in samples::goldens_of_all() {
        let wire = word.name.rsplit_once("::").unwrap().0.to_owned();
        let twin = seen.insert((wire, word.bytes), word.name.clone());
        assert_eq!(twin, None, "{} has the same bytes", word.name);
    }
}
