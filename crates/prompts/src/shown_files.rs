//! The images that a prompt shows: `@shot.png`, or the path that a terminal pastes when a file is dropped
//! on it. Used by the supervisor. Pure: it touches no file.

/// The endings of files that a prompt shows.
const ENDINGS: [&str; 5] = [".png", ".jpg", ".jpeg", ".gif", ".webp"];

/// A file that a prompt names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownFile {
    /// Its path: relative, absolute, or from `~/` on.
    pub path: String,
    /// How the prompt names it.
    pub by: NamedBy,
}

/// How a prompt names a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedBy {
    /// `@PATH`: the person wants it shown.
    At,
    /// A whole path among the words, which may stand for nothing.
    Path,
}

/// The images that the prompt names, each once, in order.
#[must_use]
pub fn shown_files(prompt: &str) -> Vec<ShownFile> {
    let mut files: Vec<ShownFile> = Vec::new();
    let mut rest = prompt;
    while let Some(start) = rest.find(|c: char| !c.is_whitespace()) {
        let (word, behind) = word(&rest[start..]);
        rest = behind;
        if let Some(file) = shown(&word)
            && files.iter().all(|known| known.path != file.path)
        {
            files.push(file);
        }
    }
    files
}

/// The file that a word names, if it has the ending of an image.
fn shown(word: &str) -> Option<ShownFile> {
    let word = word.trim_start_matches('(');
    let word = word.trim_end_matches(['.', ',', ';', ':', '!', '?', ')']);
    let (path, by) = match word.strip_prefix('@') {
        Some(path) => (path.to_owned(), NamedBy::At),
        None => match word.strip_prefix("file://") {
            Some(address) => {
                (decoded(address.strip_prefix("localhost").unwrap_or(address)), NamedBy::Path)
            }
            None => (word.to_owned(), NamedBy::Path),
        },
    };
    let is_whole = path.starts_with('/') || path.starts_with("~/");
    let lower = path.to_ascii_lowercase();
    let name = lower.rsplit('/').next().unwrap_or_default();
    let ends = ENDINGS.iter().any(|ending| name.len() > ending.len() && name.ends_with(ending));
    (ends && (by == NamedBy::At || is_whole)).then_some(ShownFile { path, by })
}

/// The first word, without its quotes and backslashes, and the rest. A quote that does not close is a
/// letter, as in `don't`.
pub(crate) fn word(text: &str) -> (String, &str) {
    let mut word = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' | '\'' if word.is_empty() || word == "@" => {
                let inside = &text[at + 1..];
                match inside.find(letter) {
                    Some(end) => {
                        word.push_str(&inside[..end]);
                        return (word, &inside[end + 1..]);
                    }
                    None => word.push(letter),
                }
            }
            '\\' => match letters.clone().next() {
                Some((_, escaped)) if !escaped.is_alphanumeric() => {
                    word.push(escaped);
                    letters.next();
                }
                Some(_) | None => word.push(letter),
            },
            letter if letter.is_whitespace() => return (word, &text[at..]),
            letter => word.push(letter),
        }
    }
    (word, "")
}

/// The path of an address, its `%20` and the like decoded.
fn decoded(address: &str) -> String {
    let mut bytes = Vec::with_capacity(address.len());
    let mut rest = address.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let hex = behind.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match (first, hex.and_then(|hex| u8::from_str_radix(hex, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            (_, _) => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| address.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(prompt: &str) -> Vec<String> {
        shown_files(prompt).into_iter().map(|file| file.path).collect()
    }

    #[test]
    fn an_image_is_named_with_at_or_by_its_whole_path() {
        for (prompt, expected) in [
            ("what is in @shot.png?", &["shot.png"][..]),
            ("@a.PNG and (@b/c.jpeg), @a.PNG", &["a.PNG", "b/c.jpeg"]),
            (r#"@"my shot.png" @'x y.gif'"#, &["my shot.png", "x y.gif"]),
            (r"/home/u/my\ shot.png", &["/home/u/my shot.png"]),
            ("'/home/u/my shot.webp' see", &["/home/u/my shot.webp"]),
            ("file:///tmp/a%20b.jpg", &["/tmp/a b.jpg"]),
            ("~/x.png", &["~/x.png"]),
            ("see shot.png and @src/main.rs:1-2", &[]),
            ("mail me@a.png", &[]),
            ("don't read @it.png", &["it.png"]),
            ("@.png @/.gif", &[]),
            ("", &[]),
        ] {
            assert_eq!(paths(prompt), expected, "{prompt}");
        }
    }

    #[test]
    fn only_at_says_that_the_person_wants_it() {
        let by = |prompt: &str| shown_files(prompt)[0].by;
        assert_eq!((by("@/a.png"), by("/a.png")), (NamedBy::At, NamedBy::Path));
    }
}
