//! Walking a directory tree with the ignore rules that all tools share.

use ignore::{DirEntry, WalkBuilder};
use std::path::Path;

/// Never discovered, whatever an ignore file says; not re-includable.
pub(crate) const ALWAYS_IGNORED: [&str; 3] = ["node_modules", ".git", ".agentd"];

/// How far down a walk goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// The entries of the directory itself.
    OneLevel,
    /// Everything beneath.
    All,
}

/// What lies under `root`, sorted by name, links not followed, without `root` itself.
///
/// `root` is a real path that the call names: that it is itself ignored does not matter, what lies
/// beneath it is judged by the ignore files there and above. What cannot be read is passed over.
pub(crate) fn walk(root: &Path, depth: Depth) -> impl Iterator<Item = DirEntry> + use<> {
    let mut builder = WalkBuilder::new(root);
    builder
        .hidden(false)
        .parents(true)
        .ignore(true)
        .git_ignore(true)
        .git_exclude(true)
        .git_global(false)
        .require_git(false)
        .follow_links(false)
        .sort_by_file_name(Ord::cmp)
        .filter_entry(|entry| {
            entry.depth() == 0 || !ALWAYS_IGNORED.iter().any(|name| entry.file_name() == *name)
        });
    match depth {
        Depth::OneLevel => builder.max_depth(Some(1)),
        Depth::All => &mut builder,
    };
    builder.build().filter_map(Result::ok).filter(|entry| entry.depth() > 0)
}
