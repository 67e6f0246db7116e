//! Git's settings as git reads them, byte for byte, for the few keys that are looked for. `vet` is
//! stricter: it believes nothing that could be read in two ways. For `led` only.

/// Sections and keys in lower case, and values, in order.
#[derive(Debug)]
pub(super) struct Settings(Vec<(Vec<u8>, Vec<u8>, Vec<u8>)>);

impl Settings {
    /// Reads them. What git would refuse ends the reading, as it ends git's.
    pub(super) fn of(bytes: &[u8]) -> Self {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let mut text = Text { bytes, at: 0 };
        let mut found = Vec::new();
        let mut section = Vec::new();
        while let Some(byte) = text.next() {
            match byte {
                b'#' | b';' => text.end_of_line(),
                b'[' => match text.section() {
                    Some(name) => section = name,
                    None => break,
                },
                first if first.is_ascii_alphabetic() => match text.entry(first) {
                    Some((key, value)) => found.push((section.clone(), key, value)),
                    None => break,
                },
                other if is_space(other) => {}
                _ => break,
            }
        }
        Self(found)
    }

    /// All values of a key: which of them holds depends on files that are not looked at.
    pub(super) fn values(&self, section: &str, key: &str) -> Vec<&[u8]> {
        let wanted = |(of, name, _): &&(Vec<u8>, Vec<u8>, Vec<u8>)| {
            of == section.as_bytes() && name == key.as_bytes()
        };
        self.0.iter().filter(wanted).map(|(_, _, value)| value.as_slice()).collect()
    }

    /// Whether others are to be read too.
    pub(super) fn includes(&self) -> bool {
        let including = |section: &[u8]| section == b"include" || section.starts_with(b"includeif");
        self.0.iter().any(|(section, key, _)| including(section) && key == b"path")
    }
}

/// What git takes for space.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// The bytes that are still to be read.
struct Text<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Text<'_> {
    /// The next one, where a line's end is one byte however it is written.
    fn next(&mut self) -> Option<u8> {
        let mut byte = *self.bytes.get(self.at)?;
        self.at += 1;
        if byte == b'\r' && self.bytes.get(self.at) == Some(&b'\n') {
            self.at += 1;
            byte = b'\n';
        }
        Some(byte)
    }

    /// A comment goes to the end of its line, a backslash there or not.
    fn end_of_line(&mut self) {
        while self.next().is_some_and(|byte| byte != b'\n') {}
    }

    /// A section's name, behind the `[`; `None` where git would refuse it.
    fn section(&mut self) -> Option<Vec<u8>> {
        let mut name = Vec::new();
        loop {
            match self.next()? {
                b']' => return Some(name),
                byte if is_space(byte) => break,
                byte if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.') => {
                    name.push(byte.to_ascii_lowercase());
                }
                _ => return None,
            }
        }
        // `[section "name"]` is another section than `[section]`.
        name.extend(b" *");
        while self.next()? != b'"' {}
        loop {
            match self.next()? {
                b'"' => break,
                b'\\' => drop(self.next()?),
                b'\n' => return None,
                _ => {}
            }
        }
        (self.next()? == b']').then_some(name)
    }

    /// A key and its value; `None` where git would refuse it.
    fn entry(&mut self, first: u8) -> Option<(Vec<u8>, Vec<u8>)> {
        let mut key = vec![first.to_ascii_lowercase()];
        let mut byte = self.next();
        while let Some(letter) = byte.filter(|it| it.is_ascii_alphanumeric() || *it == b'-') {
            key.push(letter.to_ascii_lowercase());
            byte = self.next();
        }
        while matches!(byte, Some(b' ' | b'\t')) {
            byte = self.next();
        }
        match byte {
            Some(b'=') => Some((key, self.value()?)),
            Some(b'\n') | None => Some((key, Vec::new())),
            Some(_) => None,
        }
    }

    /// A value without quotes, without space around it and without the comment behind it.
    fn value(&mut self) -> Option<Vec<u8>> {
        let mut value = Vec::new();
        // How much of it stays where nothing but space follows.
        let mut solid = 0;
        let mut quoted = false;
        loop {
            match self.next() {
                None | Some(b'\n') => break,
                Some(byte) if is_space(byte) && !quoted => {
                    if solid > 0 {
                        value.push(byte);
                    }
                    continue;
                }
                Some(b'#' | b';') if !quoted => {
                    self.end_of_line();
                    break;
                }
                Some(b'"') => quoted = !quoted,
                Some(b'\\') => match self.next()? {
                    b'\n' => continue,
                    b't' => value.push(b'\t'),
                    b'n' => value.push(b'\n'),
                    b'b' => value.push(8),
                    byte @ (b'\\' | b'"') => value.push(byte),
                    _ => return None,
                },
                Some(byte) => value.push(byte),
            }
            solid = value.len();
        }
        value.truncate(solid);
        (!quoted).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_hooks_is_found_however_it_is_written() {
        for text in [
            "[core]\n\thooksPath = .githooks\n",
            "[CORE]\nhookspath=.githooks\n",
            "[core] hooksPath = .githooks\n",
            "[core]\n\tbare = false\n\thooksPath = \".githooks\" # ours\n",
            "[core]\n\thooksPath = .git\\\nhooks\n",
            "[core]\r\n\thooksPath = .git\\\r\nhooks\r\n",
            "[user]\n\tname = a\n[core]\n\thooksPath = .githooks ; ours\n",
            "\u{feff}[core]\n\thooksPath = .githooks\n",
            "[core]\n# in C:\\x\\\n\thooksPath = .githooks\n",
            "[core]\n; in C:\\x\\\n\thooksPath = .githooks",
            "[user]\n\tname = a # C:\\\n[core]\n\thooksPath = .githooks\n",
            "[x \"a]\\\"b\"]\n\ty = a\\\\\n[core]\n\thooksPath = .githooks\n",
        ] {
            let read = Settings::of(text.as_bytes());
            assert_eq!(read.values("core", "hookspath"), [b".githooks"], "{text}");
        }
        for text in [
            "[core]\n\t# hooksPath = .githooks\n",
            "[core]\n\tbare = false \\\n\thooksPath = .githooks\n",
            "[core \"x\"]\n\thooksPath = .githooks\n",
            "[user]\n\thooksPath = .githooks\n",
            "[core]\n\tbad = \"\n\thooksPath = .githooks\n",
        ] {
            let read = Settings::of(text.as_bytes());
            assert!(read.values("core", "hookspath").is_empty(), "{text}");
        }
        let foreign = b"[user]\n\tname = J\xfcrgen\n[core]\n\thooksPath = H\xfc a\n";
        assert_eq!(Settings::of(foreign).values("core", "hookspath"), [b"H\xfc a"]);
        assert!(Settings::of(b"[include]\n\tpath = more\n").includes());
        assert!(Settings::of(b"[includeIf \"gitdir:/\"]\n\tpath = more\n").includes());
        assert!(!Settings::of(b"[core]\n\tpath = more\n").includes());
    }
}
