//! Words as a shell command line.

/// These words as a shell command line; rules are matched against it.
pub fn shell_words(argv: &[String]) -> String {
    let words: Vec<String> = argv.iter().map(|word| quoted(word)).collect();
    words.join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:,+@%".contains(c);
    // `name=value` in front of a command is no argument to a shell.
    let option = word.starts_with('-');
    if !word.is_empty() && word.chars().all(|c| plain(c) || (option && c == '=')) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_read_them_otherwise() {
        let words = |argv: &[&str]| {
            shell_words(&argv.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
        };
        for (argv, expected) in [
            (&["cargo", "test", "-p", "x"][..], "cargo test -p x"),
            (&["git", "log", "--format=%H"], "git log --format=%H"),
            (&["a=b", "c d", ""], "'a=b' 'c d' ''"),
            (
                &["echo", "it's", "$(id)", "x\ny", "~", "*"],
                "echo 'it'\\''s' '$(id)' 'x\ny' '~' '*'",
            ),
        ] {
            assert_eq!(words(argv), expected);
        }
    }
}
