//! Whether a git folder that a command made may stay: its settings hold only keys that name no
//! program and no other folder, its hooks are samples. Settings are judged from their text.

use std::path::{Path, PathBuf};

/// Settings that choose how git works and nothing that it runs. `*` is a name in quotes.
const KNOWN: [&str; 42] = [
    "core.repositoryformatversion",
    "core.filemode",
    "core.bare",
    "core.logallrefupdates",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.symlinks",
    "core.autocrlf",
    "core.eol",
    "core.safecrlf",
    "core.quotepath",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "index.sparse",
    "extensions.objectformat",
    "extensions.refstorage",
    "extensions.worktreeconfig",
    "extensions.partialclone",
    "init.defaultbranch",
    "user.name",
    "user.email",
    "author.name",
    "author.email",
    "committer.name",
    "committer.email",
    "commit.gpgsign",
    "tag.gpgsign",
    "pull.rebase",
    "pull.ff",
    "push.default",
    "gc.auto",
    "advice.detachedhead",
    "remote.*.url",
    "remote.*.fetch",
    "remote.*.tagopt",
    "remote.*.promisor",
    "remote.*.partialclonefilter",
    "branch.*.remote",
    "branch.*.merge",
    "branch.*.rebase",
    "submodule.*.url",
    "submodule.*.active",
];

/// Whether every line of these settings is known. `inside` answers for `core.worktree`, by which a
/// submodule's folder says where its files are.
pub(super) fn harmless(settings: &str, inside: impl Fn(&str) -> bool) -> bool {
    entries(settings).is_some_and(|entries| {
        entries.iter().all(|(key, value)| match key.as_str() {
            "core.worktree" => inside(value),
            // `ext::` and its like run programs, a dash is an option of one.
            "remote.*.url" | "submodule.*.url" => !value.contains("::") && !value.starts_with('-'),
            key => KNOWN.contains(&key),
        })
    })
}

/// The last value of a key without a name in quotes.
pub(super) fn value(settings: &str, section: &str, key: &str) -> Option<String> {
    let wanted = format!("{section}.{key}");
    entries(settings)?.into_iter().rev().find(|(key, _)| *key == wanted).map(|(_, value)| value)
}

/// Keys in lower case with a `*` for a name in quotes, and values; `None` where the text has
/// anything that git reads differently from this: then nobody should rely on it.
fn entries(settings: &str) -> Option<Vec<(String, String)>> {
    let mut entries = Vec::new();
    let mut section = String::new();
    for line in settings.lines() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if line.ends_with('\\') {
            return None;
        }
        if let Some(head) = line.strip_prefix('[') {
            let head = head.strip_suffix(']')?.to_lowercase();
            section = match head.split_once(" \"") {
                Some((section, name)) if name.ends_with('"') => format!("{section}.*"),
                Some(_) => return None,
                None => head,
            };
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, "true"));
        let key = format!("{section}.{}", key.trim().to_lowercase());
        entries.push((key, value.trim().trim_matches('"').to_owned()));
    }
    Some(entries)
}

/// The hooks that are no samples.
pub(super) fn live_hooks(hooks: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(hooks) else { return Vec::new() };
    let live = |path: &PathBuf| {
        let sample = path.extension().is_some_and(|end| end == "sample");
        !sample || path.symlink_metadata().is_ok_and(|found| found.is_dir())
    };
    entries.flatten().map(|entry| entry.path()).filter(live).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_itself_writes_is_known_and_what_runs_programs_is_not() {
        let init = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n";
        let cloned = format!(
            "{init}[remote \"origin\"]\n\turl = https://example.org/x.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n"
        );
        let no = |_: &str| false;
        assert!(harmless(init, no));
        assert!(harmless(&cloned, no));
        assert!(harmless("[User]\n name = Ann # her name\n", no));
        for evil in [
            "[core]\n\thooksPath = evil\n",
            "[core]\n\tfsmonitor = ./run\n",
            "[core] fsmonitor = ./run\n",
            "[core]\n\tbare = false\\\n",
            "[alias]\n\tst = !run\n",
            "[include]\n\tpath = evil\n",
            "[includeIf \"gitdir:/\"]\n\tpath = evil\n",
            "[filter \"x\"]\n\tclean = run\n",
            "[remote \"o\"]\n\turl = ext::sh -c run\n",
            "[remote \"o\"]\n\tuploadpack = run\n",
            "[core]\n\tworktree = /elsewhere\n",
            "[core\n\tbare = false\n",
            "fsmonitor = run\n",
        ] {
            assert!(!harmless(evil, no), "{evil}");
        }
        assert!(harmless("[core]\n\tworktree = ../../x\n", |_| true));
        assert_eq!(value("[core]\nworktree = ../x\n", "core", "worktree").as_deref(), Some("../x"));
    }
}
