//! Files of a project that snapshots leave out, by the rules of the file-finding tools: `.ignore`,
//! `.gitignore` and `.git/info/exclude`. For `tree`.

use data_encoding::HEXLOWER;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use sha2::{Digest, Sha256};
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::rc::Rc;

/// Always left out, whatever an ignore file says.
pub(super) const ALWAYS: [&str; 3] = ["node_modules", ".git", ".agentd"];
/// Ignore files of a directory; for `.git`, the one inside it.
pub(super) const RULES: [&str; 3] = [".ignore", ".gitignore", ".git"];
/// A larger ignore file was not written by a person and is skipped.
const RULES_BYTES: u64 = 1 << 20;

/// The rules of a directory, and of those above it.
#[derive(Debug)]
pub(super) struct IgnoreRules {
    above: Option<Rc<IgnoreRules>>,
    ignore: Gitignore,
    git: Gitignore,
    exclude: Gitignore,
    /// Rules of git from further up end at a repository of its own.
    repository: bool,
}

impl IgnoreRules {
    /// The rules of a directory with any of these files, and a digest of them.
    pub(super) fn of(directory: &Path, above: Option<Rc<Self>>) -> (Self, String) {
        let mut sum = Sha256::new();
        let mut read = |name: &str| {
            let path = directory.join(name);
            let mut builder = GitignoreBuilder::new(directory);
            if let Some(text) = text_of(&path) {
                sum.update(name.as_bytes());
                sum.update(text.as_bytes());
                for line in text.lines() {
                    // A line that is no pattern is passed over, as git does.
                    let _ = builder.add_line(None, line);
                }
            }
            builder.build().unwrap_or_else(|_| Gitignore::empty())
        };
        let (ignore, git) = (read(".ignore"), read(".gitignore"));
        let exclude = read(".git/info/exclude");
        let repository = directory.join(".git").symlink_metadata().is_ok();
        sum.update([u8::from(repository)]);
        let sum = HEXLOWER.encode(&sum.finalize());
        (Self { above, ignore, git, exclude, repository }, sum)
    }

    /// By the nearest rule; `.ignore` files of any level are stronger than git's.
    pub(super) fn ignored(&self, path: &Path, is_directory: bool) -> bool {
        let levels = || std::iter::successors(Some(self), |rules| rules.above.as_deref());
        let beyond = levels().position(|rules| rules.repository).map_or(usize::MAX, |at| at + 1);
        let of_git = || levels().take(beyond);
        nearest(levels().map(|rules| &rules.ignore), path, is_directory)
            .or_else(|| nearest(of_git().map(|rules| &rules.git), path, is_directory))
            .or_else(|| nearest(of_git().map(|rules| &rules.exclude), path, is_directory))
            .unwrap_or(false)
    }
}

/// True if the first of `rules` that matches a path ignores it.
fn nearest<'a>(
    mut rules: impl Iterator<Item = &'a Gitignore>,
    path: &Path,
    is_directory: bool,
) -> Option<bool> {
    rules.find_map(|rules| match rules.matched(path, is_directory) {
        Match::None => None,
        Match::Ignore(_) => Some(true),
        Match::Whitelist(_) => Some(false),
    })
}

/// The text of an ignore file. Anything but a regular file is skipped without blocking.
fn text_of(path: &Path) -> Option<String> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).ok()?;
    let meta = file.metadata().ok()?;
    if !meta.is_file() || meta.len() > RULES_BYTES {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(RULES_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
