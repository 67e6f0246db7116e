//! Git's settings as git reads them, byte for byte, for the few keys that are looked for. `vet` is
//! stricter: it believes nothing that could be read in two ways. For `led`, `filters` and `vet`, which asks both.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// In order.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct GitConfig(Vec<ConfigEntry>);

/// One setting.
#[derive(Debug, PartialEq, Eq)]
struct ConfigEntry {
    section: ConfigSection,
    /// In lower case.
    key: Vec<u8>,
    value: Vec<u8>,
    /// True for a key without `=`, which switches an option on.
    bare: bool,
}

/// One setting of git's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitSetting {
    /// In lower case.
    pub section: String,
    /// The name in quotes after the section.
    pub name: Option<Vec<u8>>,
    /// In lower case.
    pub key: String,
    /// `None` where the key stands alone, by which a switch is on.
    pub value: Option<Vec<u8>>,
}

/// A section header.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct ConfigSection {
    /// In lower case.
    kind: Vec<u8>,
    /// The name in quotes. `[section "name"]` and `[section]` are different sections.
    name: Option<Vec<u8>>,
}

impl GitConfig {
    /// Parses settings up to the first syntax error, where git stops too.
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let mut text = ConfigReader { bytes, at: 0 };
        let mut found = Vec::new();
        let mut section = ConfigSection::default();
        while let Some(byte) = text.next() {
            match byte {
                b'#' | b';' => text.end_of_line(),
                b'[' => match text.section() {
                    Some(name) => section = name,
                    None => break,
                },
                first if first.is_ascii_alphabetic() => match text.entry(first) {
                    Some((key, value)) => {
                        let (of, bare) = (section.clone(), value.is_none());
                        found.push(ConfigEntry {
                            section: of,
                            key,
                            value: value.unwrap_or_default(),
                            bare,
                        });
                    }
                    None => break,
                },
                other if is_space(other) => {}
                _ => break,
            }
        }
        Self(found)
    }

    /// All values of a key. Other files, which are not read, decide which of them git uses.
    pub(super) fn values(&self, section: &str, key: &str) -> Vec<&[u8]> {
        let wanted = |entry: &&ConfigEntry| {
            let ConfigSection { kind, name } = &entry.section;
            kind == section.as_bytes() && name.is_none() && entry.key == key.as_bytes()
        };
        self.0.iter().filter(wanted).map(|entry| entry.value.as_slice()).collect()
    }

    /// Drops the settings that match. The key is in lower case, with a `*` for a name in quotes or
    /// in the old notation.
    pub(super) fn without(mut self, so: impl Fn(&str, &[u8]) -> bool) -> Self {
        self.0.retain(|entry| !so(&entry.full_key(), &entry.value));
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each as it is written, but for a section named by the old way to write one.
    pub(super) fn written(&self) -> impl Iterator<Item = GitSetting> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.0.iter().map(move |ConfigEntry { section: of, key, value, bare }| {
            let kind = text(&of.kind);
            let (section, name) = match (&of.name, kind.split_once('.')) {
                (None, Some((kind, name))) => (kind.to_owned(), Some(name.as_bytes().to_vec())),
                (name, _) => (kind.clone(), name.clone()),
            };
            let value = (!bare).then(|| value.clone());
            GitSetting { section, name, key: text(key), value }
        })
    }

    /// The names in quotes of all sections of this kind that have one of these keys.
    pub(super) fn names(&self, section: &str, keys: &[&str]) -> Vec<Vec<u8>> {
        // An old way to write it, by which the name is in lower case.
        let old = format!("{section}.");
        let name = |of: &ConfigSection| match &of.name {
            Some(name) => (of.kind == section.as_bytes()).then(|| name.clone()),
            None => of.kind.strip_prefix(old.as_bytes()).map(<[u8]>::to_vec),
        };
        let has = |entry: &&ConfigEntry| keys.iter().any(|key| entry.key == key.as_bytes());
        self.0.iter().filter(has).filter_map(|entry| name(&entry.section)).collect()
    }

    /// Included files, some of them conditional.
    pub(super) fn included(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().filter(|entry| entry.includes()).map(|entry| entry.value.as_slice())
    }
}

impl ConfigEntry {
    fn full_key(&self) -> String {
        let kind = String::from_utf8_lossy(&self.section.kind);
        let key = String::from_utf8_lossy(&self.key);
        match (&self.section.name, kind.split_once('.')) {
            (Some(_), _) => format!("{kind}.*.{key}"),
            (None, Some((kind, _))) => format!("{kind}.*.{key}"),
            (None, None) => format!("{kind}.{key}"),
        }
    }

    fn includes(&self) -> bool {
        let kind = &self.section.kind;
        (kind == b"include" || kind.starts_with(b"includeif")) && self.key == b"path"
    }
}

/// Git's whitespace.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// The bytes that are still to be read.
struct ConfigReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl ConfigReader<'_> {
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
    fn section(&mut self) -> Option<ConfigSection> {
        let mut kind = Vec::new();
        loop {
            match self.next()? {
                b']' => return Some(ConfigSection { kind, name: None }),
                byte if is_space(byte) => break,
                byte if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.') => {
                    kind.push(byte.to_ascii_lowercase());
                }
                _ => return None,
            }
        }
        let mut name = Vec::new();
        while self.next()? != b'"' {}
        loop {
            match self.next()? {
                b'"' => break,
                b'\\' => name.push(self.next()?),
                b'\n' => return None,
                byte => name.push(byte),
            }
        }
        (self.next()? == b']').then_some(ConfigSection { kind, name: Some(name) })
    }

    /// A key and its value; `None` where git would refuse it.
    fn entry(&mut self, first: u8) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
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
            Some(b'=') => Some((key, Some(self.value()?))),
            Some(b'\n') | None => Some((key, None)),
            Some(_) => None,
        }
    }

    /// A value without quotes, without space around it and without the comment behind it.
    fn value(&mut self) -> Option<Vec<u8>> {
        let mut value = Vec::new();
        // Length of the value without trailing space.
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

/// The path of an include; `None` if only git can resolve it.
pub(super) fn included_path(named: &[u8], by: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let path = |bytes| Path::new(OsStr::from_bytes(bytes));
    // Git's word for a path that need not exist.
    let named = named.strip_prefix(b":(optional)").unwrap_or(named);
    match named {
        [b'~', b'/', rest @ ..] => {
            let slashes = rest.iter().take_while(|byte| **byte == b'/').count();
            home.map(|home| home.join(path(rest.get(slashes..).unwrap_or_default())))
        }
        [b'~', ..] => None,
        _ if named.starts_with(b"%(prefix)") => None,
        relative => Some(by.parent()?.join(path(relative))),
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
            let read = GitConfig::parse(text.as_bytes());
            assert_eq!(read.values("core", "hookspath"), [b".githooks"], "{text}");
        }
        for text in [
            "[core]\n\t# hooksPath = .githooks\n",
            "[core]\n\tbare = false \\\n\thooksPath = .githooks\n",
            "[core \"x\"]\n\thooksPath = .githooks\n",
            "[user]\n\thooksPath = .githooks\n",
            "[core]\n\tbad = \"\n\thooksPath = .githooks\n",
        ] {
            let read = GitConfig::parse(text.as_bytes());
            assert!(read.values("core", "hookspath").is_empty(), "{text}");
        }
        let foreign = b"[user]\n\tname = J\xfcrgen\n[core]\n\thooksPath = H\xfc a\n";
        assert_eq!(GitConfig::parse(foreign).values("core", "hookspath"), [b"H\xfc a"]);
        let includes = |text: &[u8]| GitConfig::parse(text).included().count();
        assert_eq!(includes(b"[include]\n\tpath = more\n"), 1);
        assert_eq!(includes(b"[includeIf \"gitdir:/\"]\n\tpath = more\n"), 1);
        assert_eq!(includes(b"[core]\n\tpath = more\n"), 0);
    }

    #[test]
    fn names_in_quotes_are_as_git_has_them() {
        let text =
            b"[filter \"A \\\"b\\\\\"] clean = x\n[Filter.Old]\nSMUDGE=y\n[filter \"none\"]\n\
            [filter \"other\"]\ntext = z\n[filter]\nclean = q\n[x \"filter\"]\nclean = q\n";
        let read = GitConfig::parse(text);
        let names = read.names("filter", &["clean", "smudge"]);
        assert_eq!(names, [&b"A \"b\\"[..], b"old"]);
        assert_eq!(read.names("x", &["clean"]), [b"filter"]);
        let read = GitConfig::parse(b"[include]\npath = a\n[includeIf \"gitdir:/\"]\npath = b\n");
        assert_eq!(read.included().collect::<Vec<_>>(), [b"a", b"b"]);
    }
}
