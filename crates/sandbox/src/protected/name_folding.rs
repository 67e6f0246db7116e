//! Tells if a file system may treat two names as equal. The tools refuse protected names in every
//! spelling.
//!
//! Pure, and the same on every host. A project may lie on vfat, exFAT, NTFS, HFS+, SMB or ext4 with
//! case folding, each with spellings of its own. Names count as equal if any of these file systems
//! treats them so. On others a few harmless names are therefore refused too.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Code points that HFS+ and folding directories leave out when they compare (Unicode's
/// `Default_Ignorable_Code_Point`), first and last.
const IGNORED: [(u32, u32); 17] = [
    (0x00AD, 0x00AD),
    (0x034F, 0x034F),
    (0x061C, 0x061C),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFF8),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
];

/// Letters of a short name before its dot, and how many of the long name's begin it.
const SHORT: usize = 8;
const KEPT: usize = 6;

/// Characters that fold to ASCII. The dotted and the dotless i do so on some servers only.
const FOLDED: [(char, &str); 13] = [
    ('\u{212A}', "k"),
    ('ſ', "s"),
    ('ı', "i"),
    ('İ', "i"),
    ('ß', "ss"),
    ('ẞ', "ss"),
    ('ﬀ', "ff"),
    ('ﬁ', "fi"),
    ('ﬂ', "fl"),
    ('ﬃ', "ffi"),
    ('ﬄ', "ffl"),
    ('ﬅ', "st"),
    ('ﬆ', "st"),
];

/// The parts of a path, at backslashes too: NTFS and SMB separate there.
#[must_use]
pub fn name_parts(path: &Path) -> Vec<&OsStr> {
    path.as_os_str()
        .as_bytes()
        .split(|byte| matches!(byte, b'/' | b'\\'))
        .filter(|part| !matches!(*part, b"" | b"."))
        .map(OsStr::from_bytes)
        .collect()
}

/// True if these parts lie at or beneath a protected name, which may contain slashes.
#[must_use]
pub fn lies_at(parts: &[&OsStr], protected: &str) -> bool {
    let mut parts = parts.iter();
    protected.split('/').all(|name| parts.next().is_some_and(|part| is_same_name(part, name)))
}

/// True if one part of a path is a spelling of an ASCII name on some file system.
#[must_use]
pub fn is_same_name(name: &OsStr, protected: &str) -> bool {
    let name = folded(name);
    let protected = folded(OsStr::new(protected));
    name == protected || is_short_of(&name, &protected)
}

/// Removes the differences that file systems ignore: letter case, ignored code points, a stream
/// name after a colon, trailing dots and spaces.
fn folded(name: &OsStr) -> String {
    let text = name.to_string_lossy();
    let mut folded = String::with_capacity(text.len());
    for c in text.chars().take_while(|c| *c != ':').filter(|c| !is_ignored(*c)) {
        match FOLDED.iter().find(|(from, _)| *from == c) {
            Some((_, to)) => folded.push_str(to),
            None => folded.push(c.to_ascii_lowercase()),
        }
    }
    folded.truncate(folded.trim_end_matches(['.', ' ']).len());
    folded
}

fn is_ignored(c: char) -> bool {
    let point = u32::from(c);
    IGNORED.iter().any(|(first, last)| (*first..=*last).contains(&point))
}

/// True for a short name (`git~1`) that FAT, exFAT drivers or NTFS give a long name.
fn is_short_of(name: &str, long: &str) -> bool {
    let Some((base, extension)) = short(long) else { return false };
    let (stem, behind) = name.split_once('.').unwrap_or((name, ""));
    let Some((prefix, number)) = stem.split_once('~') else { return false };
    let counted = (1..=6).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit());
    if !counted || behind != extension {
        return false;
    }
    let kept = base.len().min(SHORT - 1 - number.len());
    // From the fifth (NTFS) or tenth (FAT) short name on, four digits of a checksum are inserted.
    let summed = |sum: &str| sum.len() == 4 && sum.bytes().all(|byte| byte.is_ascii_hexdigit());
    let by_sum = |kept| base.get(..kept).and_then(|kept| prefix.strip_prefix(kept));
    base.get(..kept) == Some(prefix) || [1, 2].into_iter().filter_map(by_sum).any(summed)
}

/// The letters that the short names of a name begin with, and their extension; `None` where the name
/// is short itself.
fn short(long: &str) -> Option<(String, String)> {
    let bare = long.trim_start_matches('.');
    let (stem, extension) = bare.rsplit_once('.').unwrap_or((bare, ""));
    if bare.len() == long.len()
        && stem.len() <= SHORT
        && extension.len() <= 3
        && !stem.contains('.')
    {
        return None;
    }
    let letters = stem.chars().filter(|c| !matches!(c, '.' | ' '));
    Some((letters.take(KEPT).collect(), extension.chars().take(3).collect()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn spellings_that_some_file_system_takes_for_a_name() {
        for (protected, spellings) in [
            (
                ".git",
                &[
                    ".git",
                    ".GIT",
                    ".gIt",
                    // NTFS.
                    "git~1",
                    "GIT~1",
                    "GIT~12",
                    "gi7d29~1",
                    ".git ",
                    ".git.",
                    ".git . .",
                    ".git:x",
                    ".git::$INDEX_ALLOCATION",
                    "git~1 .::$INDEX_ALLOCATION",
                    // HFS+.
                    ".g\u{200c}it",
                    "\u{200d}.git",
                    ".gi\u{feff}t\u{206f}",
                    // ext4 with folding directories.
                    ".g\u{ad}it",
                    ".gıt",
                ][..],
            ),
            (
                ".envrc",
                &[
                    ".ENVRC",
                    ".Envrc.",
                    "envrc~1",
                    "ENVRC~9",
                    "envrc~10",
                    "en1a2b~1",
                    ".env\u{200b}rc",
                ],
            ),
            (".mcp.json", &[".MCP.JSON", "mcp~1.jso", "MCP~2.JSO", ".mcp.jſon", ".mcp.json:a"]),
            (".claude", &[".CLAUDE", "claude~1", "claud~10", ".claude. "]),
            (".vscode", &[".VsCode", "vscode~1"]),
            ("tasks.json", &["TASKS.JSON", "tasks~1.jso", "taſKs.json", "tas\u{212a}s.json"]),
            ("config", &["CONFIG", "conﬁg", "config.", "config::$DATA"]),
            ("config.worktree", &["Config.WorkTree", "config~1.wor"]),
            ("commondir", &["COMMONDIR", "common~1"]),
            ("hooks", &["HOOKS", "hooKs", "hoo\u{212a}s"]),
            ("modules", &["MODULES", "moduleſ"]),
        ] {
            for spelling in spellings {
                assert!(is_same_name(OsStr::new(spelling), protected), "{spelling:?}: {protected}");
            }
        }
    }

    #[test]
    fn other_names_stay_other_names() {
        for (protected, others) in [
            (
                ".git",
                &[
                    "git",
                    ".gitignore",
                    ".git-x",
                    " .git",
                    "..git",
                    ".gi",
                    "g~1",
                    "git~",
                    "git~x",
                    "gist~1",
                    ".ġit",
                    "",
                ][..],
            ),
            (".envrc", &[".envrc.example", "envrc", ".env", ".envrcs", "envrc~1.txt", "x:.envrc"]),
            (".mcp.json", &["mcp.json", ".mcp.jso", "mcp~1", "mcp~1.js", ".mcp"]),
            ("config", &["config~1", "configuration", "con", "config.x", "ﬁg"]),
            ("hooks", &["hook", "hooks~1", "hooks2"]),
            (".agentd", &[".agents", "agent"]),
        ] {
            for other in others {
                assert!(!is_same_name(OsStr::new(other), protected), "{other:?}: {protected}");
            }
        }
        let bytes = OsStr::from_bytes(b".gi\xfft");
        assert!(!is_same_name(bytes, ".git"), "no letter is left out that is none");
    }

    #[test]
    fn a_path_lies_at_a_name_part_by_part() {
        let at = |path: &str, protected| lies_at(&name_parts(Path::new(path)), protected);
        for path in [
            ".git/config",
            ".GIT/Config",
            ".git\\config",
            "GIT~1/config:x",
            ".git//./CONFIG/x",
            ".git.\\\\conﬁg",
        ] {
            assert!(at(path, ".git/config"), "{path}");
        }
        for path in [".git", "config", ".git/x/config", ".gitconfig", "x/.git/config"] {
            assert!(!at(path, ".git/config"), "{path}");
        }
    }
}
