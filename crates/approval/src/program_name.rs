//! Names of programs: without their directory, and as globs.

/// The part after the last slash.
pub(crate) fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// True if a shell could expand this word to other names.
pub(crate) fn has_glob(word: &str) -> bool {
    word.contains(['*', '?', '['])
}

/// True if the shell's glob `word` could expand to `name`; a `[…]` counts as any letter.
pub(crate) fn glob_could_be(word: &str, name: &str) -> bool {
    if !has_glob(word) {
        return false;
    }
    let mut glob: Vec<char> = Vec::new();
    let mut letters = word.chars();
    while let Some(c) = letters.next() {
        if c == '[' && letters.as_str().contains(']') {
            letters.by_ref().find(|c| *c == ']');
            glob.push('?');
        } else {
            glob.push(c);
        }
    }
    let name: Vec<char> = name.chars().collect();
    let (mut at, mut in_name, mut star) = (0, 0, None);
    while in_name < name.len() {
        match glob.get(at) {
            Some('*') => {
                star = Some((at, in_name));
                at += 1;
            }
            Some(c) if *c == '?' || *c == name[in_name] => {
                at += 1;
                in_name += 1;
            }
            Some(_) | None => {
                let Some((star_at, taken)) = star else { return false };
                star = Some((star_at, taken + 1));
                at = star_at + 1;
                in_name = taken + 1;
            }
        }
    }
    glob[at..].iter().all(|c| *c == '*')
}
