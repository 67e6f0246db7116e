//! The words of a text as a person reads them, whatever letters it is written in: compatibility forms,
//! accents, letters of other scripts that look like Latin ones, and digits in the place of letters. Pure.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Fewest single letters in a row that are a spaced word: `p i n`.
const SPACED: usize = 3;

/// Digits and signs that stand for letters inside a word.
const LEET: [(char, char); 8] = [
    ('0', 'o'),
    ('3', 'e'),
    ('4', 'a'),
    ('5', 's'),
    ('7', 't'),
    ('8', 'b'),
    ('@', 'a'),
    ('$', 's'),
];

/// Letters and the Latin ones that they look like or stand for, after lower case. A part of Unicode's
/// confusables.txt (UTS #39), and Latin letters without a decomposition.
const LOOK_ALIKES: [(&str, &str); 26] = [
    ("аɑαᴀ", "a"),
    ("вʙβ", "b"),
    ("сᴄϲ", "c"),
    ("ԁᴅđ", "d"),
    ("еєᴇε", "e"),
    ("ꜰ", "f"),
    ("ɡɢցʛ", "g"),
    ("һнհʜ", "h"),
    ("іıιɪӏɩ", "i"),
    ("јյᴊϳ", "j"),
    ("кκᴋ", "k"),
    ("ʟłǀ", "l"),
    ("мᴍ", "m"),
    ("ոɴη", "n"),
    ("оοօᴏσø", "o"),
    ("рρᴘ", "p"),
    ("ԛզ", "q"),
    ("гʀ", "r"),
    ("ѕꜱ", "s"),
    ("тτᴛ", "t"),
    ("υսᴜ", "u"),
    ("νѵᴠ", "v"),
    ("ԝωᴡ", "w"),
    ("хχ", "x"),
    ("уγʏ", "y"),
    ("ᴢ", "z"),
];

/// The words of a text in each of its readings: as it is, and with digits as letters.
pub(super) fn readings(text: &str) -> Vec<Vec<String>> {
    let text: String = text.nfkc().collect();
    let mut readings = vec![words(&text)];
    for one in ['i', 'l'] {
        let reading = words(&with_letters(&text, one));
        if !readings.contains(&reading) {
            readings.push(reading);
        }
    }
    readings
}

/// A word in lower case without accents, in Latin letters where it looks like these.
pub(super) fn fold(word: &str) -> String {
    let lower = word.chars().flat_map(char::to_lowercase).nfkd();
    let mut folded = String::new();
    for c in lower.filter(|c| !is_combining_mark(*c)) {
        match LOOK_ALIKES.iter().find(|(alike, _)| alike.contains(c)) {
            Some((_, latin)) => folded.push_str(latin),
            None if c == 'ß' => folded.push_str("ss"),
            None => folded.push(c),
        }
    }
    folded
}

/// The text with digits as letters, in words that have letters too.
fn with_letters(text: &str, one: char) -> String {
    let letter = |c: char| match c {
        '1' => one,
        _ => LEET.iter().find(|(digit, _)| *digit == c).map_or(c, |(_, letter)| *letter),
    };
    let read = |word: &str| match word.chars().any(char::is_alphabetic) {
        true => word.chars().map(letter).collect(),
        false => word.to_owned(),
    };
    text.split(' ').map(read).collect::<Vec<String>>().join(" ")
}

/// The folded words of a name or a sentence: `apiKey`, `API_KEY`, `APIKey` and `API key` are the same.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    let mut letters = text.chars().peekable();
    while let Some(c) = letters.next() {
        let is_part = |c: char| c.is_alphanumeric() || is_combining_mark(c);
        let ends_capitals = !before.is_lowercase()
            && before.is_alphanumeric()
            && letters.peek().is_some_and(|next| next.is_lowercase());
        if !is_part(c) || (c.is_uppercase() && (before.is_lowercase() || ends_capitals)) {
            words.push(String::new());
        }
        if let (true, Some(word)) = (is_part(c), words.last_mut()) {
            word.push(c);
        }
        before = c;
    }
    words.retain(|word| !word.is_empty());
    let mut joined: Vec<String> = Vec::new();
    let is_single = |word: &String| word.chars().count() == 1;
    for run in words.chunk_by(|one, other| is_single(one) && is_single(other)) {
        match run.len() >= SPACED && run.iter().all(is_single) {
            true => joined.push(fold(&run.concat())),
            false => joined.extend(run.iter().map(|word| fold(word))),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_the_same_in_every_spelling() {
        for text in [
            "password",
            "Password",
            "ｐａｓｓｗｏｒｄ",
            "P4ssw0rd",
            "pa$$word",
            "p@ssw0rd",
            "раѕѕԝоrd",
            "pässwórd",
            "p a s s w o r d",
            "p.a.s.s.w.o.r.d",
            "𝐩𝐚𝐬𝐬𝐰𝐨𝐫𝐝",
        ] {
            let found = readings(text).concat();
            assert!(found.contains(&"password".to_owned()), "{text}: {found:?}");
        }
        assert_eq!(readings("apiKey API_KEY APIKey")[0], ["api", "key"].repeat(3));
        assert_eq!(readings("page 404"), [["page", "404"]], "a number stays one");
        assert_eq!(readings("Straße")[0], ["strasse"]);
    }
}
