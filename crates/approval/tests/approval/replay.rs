//! Texts that fuzzing found worth keeping, as an ordinary test.

use std::fs;

const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/fuzz/script");

#[test]
fn every_kept_text_holds_also_cut_short_and_with_signs_of_the_shell_in_it() {
    let mut count = 0;
    for input in fs::read_dir(KEPT).unwrap() {
        let bytes = fs::read(input.unwrap().path()).unwrap();
        super::script::script(&bytes);
        for place in 0..bytes.len() {
            super::script::script(&bytes[..place]);
            for sign in [";", "&", "|", "\n", "'", "\"", "\\", "$", "(", ")", "`", "<", "#", "{"] {
                let text = [&bytes[..place], sign.as_bytes(), &bytes[place..]].concat();
                super::script::script(&text);
            }
        }
        count += 1;
    }
    assert!(count >= 10, "only {count} inputs");
}
