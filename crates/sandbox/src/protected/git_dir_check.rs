//! Decides if a git directory that a command made may stay: its settings may contain only keys that
//! name no program and no other folder, and its hooks must be samples. Settings are judged from
//! their text.

use super::git_config::GitConfig;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Settings that choose how git works and nothing that it runs. `*` is a name in quotes.
const HARMLESS_KEYS: [&str; 49] = [
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
    "push.autosetupremote",
    "fetch.prune",
    "gc.auto",
    "advice.detachedhead",
    "remote.*.url",
    "remote.pushdefault",
    "remote.*.pushurl",
    "remote.*.prune",
    "remote.*.fetch",
    "remote.*.tagopt",
    "remote.*.promisor",
    "remote.*.partialclonefilter",
    "branch.*.remote",
    "branch.*.pushremote",
    "branch.*.description",
    "branch.*.merge",
    "branch.*.rebase",
    "submodule.*.url",
    "submodule.*.active",
];

/// True if every setting is harmless, both in a plain reading of the lines and in git's reading.
/// `is_worktree` judges `core.worktree`, by which a submodule's git directory names its working
/// tree. `inside` judges addresses that are paths.
pub(super) fn are_harmless(
    settings: &str,
    is_worktree: impl Fn(&str) -> bool,
    inside: impl Fn(&str) -> bool,
) -> bool {
    let known = |known: &SettingCheck<'_>, key: &str, value: &str| match key {
        "core.worktree" => is_worktree(value),
        _ => known.is_harmless(key, value),
    };
    suspicious_lines(settings, &inside, known)
        .is_some_and(|(plain, of_git)| plain.is_empty() && of_git.is_empty())
}

/// True if only harmless settings changed: all other lines are in both texts, in the same order.
/// Settings for signing commits may not change. `inside` judges addresses that are paths.
pub(crate) fn changes_harmlessly(before: &str, now: &str, inside: impl Fn(&str) -> bool) -> bool {
    let known = |known: &SettingCheck<'_>, key: &str, value: &str| {
        known.is_harmless(key, value) && !key.ends_with(".gpgsign")
    };
    let before = suspicious_lines(before, &inside, known);
    before.is_some() && before == suspicious_lines(now, &inside, known)
}

/// Context for judging one setting.
struct SettingCheck<'a> {
    /// The names of remotes that these settings say the address of.
    remotes: Vec<Vec<u8>>,
    /// True if a path leads to a repository that is checked after each command.
    inside: &'a dyn Fn(&str) -> bool,
}

impl SettingCheck<'_> {
    /// True if this setting starts no program and names no other folder.
    fn is_harmless(&self, key: &str, value: &str) -> bool {
        match key {
            "remote.*.url" | "remote.*.pushurl" | "submodule.*.url" => self.is_address(value),
            // By any other name git reads `.git/remotes`, or takes it for an address.
            "remote.pushdefault" | "branch.*.remote" | "branch.*.pushremote" => {
                let is_remote = self.remotes.iter().any(|remote| remote == value.as_bytes());
                value == "." || is_remote || self.is_address(value)
            }
            key => HARMLESS_KEYS.contains(&key),
        }
    }

    /// True for an address of a server or of a repository in the project. A repository elsewhere on
    /// this machine may belong to a command, and the user's next push would run its hooks. `ext::`
    /// and similar prefixes run programs; a leading dash is an option of a program.
    fn is_address(&self, value: &str) -> bool {
        const SCHEMES: [&str; 6] =
            ["https://", "http://", "ssh://", "git://", "git+ssh://", "ssh+git://"];
        if value.contains("::") || value.starts_with('-') {
            return false;
        }
        let place = |rest: &str| rest.split('/').next().unwrap_or_default().to_owned();
        let server = match SCHEMES.iter().find_map(|scheme| value.strip_prefix(scheme)) {
            Some(rest) => place(rest),
            None if value.contains("://") => return false,
            None => match value.split_once(':') {
                Some((server, _)) if !server.contains('/') => server.to_owned(),
                Some(_) | None => return (self.inside)(value),
            },
        };
        server.rsplit('@').all(|part| !part.is_empty() && !part.starts_with('-'))
    }
}

/// True if a path in this git directory's settings leads to a directory in one of the roots,
/// without a link.
pub(crate) fn leads_inside(git: &Path, path: &str, roots: &[PathBuf]) -> bool {
    let base = if git.ends_with(".git") { git.parent().unwrap_or(git) } else { git };
    let mut named = PathBuf::new();
    for part in base.join(path).components() {
        match part {
            Component::ParentDir => drop(named.pop()),
            Component::CurDir => {}
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => named.push(part),
        }
    }
    roots.iter().any(|root| named.starts_with(root))
        && named.canonicalize().is_ok_and(|real| real == named && real.is_dir())
}

/// The settings that are not harmless, in a plain reading and in git's reading; `None` if the plain
/// reading finds an ambiguity.
fn suspicious_lines(
    settings: &str,
    inside: &dyn Fn(&str) -> bool,
    known: impl Fn(&SettingCheck<'_>, &str, &str) -> bool,
) -> Option<(Vec<(String, String)>, GitConfig)> {
    // Git ends a name at a NUL when it compares it, and not when it reads it.
    let is_odd = |byte: u8| byte.is_ascii_control() && !matches!(byte, b'\t' | b'\n' | b'\r');
    if settings.bytes().any(is_odd) {
        return None;
    }
    let mut plain = entries(settings)?;
    let of_git = GitConfig::parse(settings.as_bytes());
    let by = SettingCheck { remotes: of_git.names("remote", &["url", "pushurl"]), inside };
    plain.retain(|(key, value)| !known(&by, key, value));
    let of_git = of_git.without(|key, value| known(&by, key, &String::from_utf8_lossy(value)));
    Some((plain, of_git))
}

/// The last value of a key without a name in quotes.
pub(super) fn value(settings: &str, section: &str, key: &str) -> Option<String> {
    let wanted = format!("{section}.{key}");
    entries(settings)?.into_iter().rev().find(|(key, _)| *key == wanted).map(|(_, value)| value)
}

/// Keys in lower case, with a `*` for a name in quotes, and values. `None` if git could read the
/// text differently: the result would be unreliable.
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
                Some((section, name)) if is_one_name(name) => format!("{section}.*"),
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

/// True for a single name in quotes, with the closing quote.
fn is_one_name(name: &str) -> bool {
    name.strip_suffix('"').is_some_and(|name| !name.contains(['"', '\\', '[', ']']))
}

/// Ways to merge that are git's own; by any other name git starts a program.
const STRATEGIES: [&str; 6] = ["ort", "recursive", "resolve", "octopus", "ours", "subtree"];

/// Programs that git would run by this file of a rebase, cherry-pick or merge in progress.
pub(super) fn programs_in(file: &Path, bytes: &[u8]) -> BTreeSet<Vec<u8>> {
    let other = |name: &[u8]| !STRATEGIES.iter().any(|known| known.as_bytes() == name);
    match file.file_name().and_then(|name| name.to_str()) {
        Some("strategy") => {
            let name = bytes.trim_ascii();
            other(name).then(|| name.to_vec()).into_iter().collect()
        }
        Some("opts") => {
            let settings = GitConfig::parse(bytes);
            let named = settings.values("options", "strategy");
            named.into_iter().filter(|name| other(name)).map(<[u8]>::to_vec).collect()
        }
        _ => exec_steps(bytes).into_iter().map(<[u8]>::to_vec).collect(),
    }
}

/// True if all recorded conflict files (`MERGE_RR`) lie in this working tree, without a link on the
/// way. Git writes to these files.
pub(super) fn stays_in(remembered: &[u8], tree: &Path) -> bool {
    let entries = remembered.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
    entries.into_iter().all(|entry| {
        let Some(at) = entry.iter().position(|byte| *byte == b'\t') else { return false };
        let path = Path::new(OsStr::from_bytes(&entry[at + 1..]));
        let mut real = tree.to_owned();
        path.components().all(|part| match part {
            Component::Normal(name) => {
                real.push(name);
                !real.is_symlink()
            }
            Component::CurDir => true,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => false,
        })
    })
}

/// The steps of a rebase at which git runs a program.
fn exec_steps(steps: &[u8]) -> BTreeSet<&[u8]> {
    let runs = |line: &&[u8]| {
        let rest = line.strip_prefix(b"exec").or_else(|| line.strip_prefix(b"x"));
        rest.is_some_and(|rest| rest.first().is_none_or(u8::is_ascii_whitespace))
    };
    steps.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(runs).collect()
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
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_steps_that_run_a_program_are_found_as_git_reads_them() {
        let steps = b"pick 1234 exec x\n# exec a\n  exec make test\nx\tid\r\nxylophone\nexec\nfixup -C 12\n";
        let found: Vec<&[u8]> = exec_steps(steps).into_iter().collect();
        assert_eq!(found, [&b"exec"[..], b"exec make test", b"x\tid"]);
    }

    #[test]
    fn a_strategy_that_is_none_of_git_s_own_is_a_program() {
        let programs = |file: &str, text: &str| programs_in(Path::new(file), text.as_bytes()).len();
        assert_eq!(programs("rebase-merge/strategy", "ort\n"), 0);
        assert_eq!(programs("rebase-merge/strategy", "x/../evil\n"), 1);
        assert_eq!(programs("sequencer/opts", "[options]\n\tstrategy = recursive\n"), 0);
        assert_eq!(programs("sequencer/opts", "[options]\n\tstrategy = evil\n"), 1);
        assert_eq!(programs("git-rebase-todo", "pick 1\nexec evil\n"), 1);
    }

    #[test]
    fn remembered_conflicts_stay_in_the_working_tree() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/", dir.path().join("out")).unwrap();
        let stays = |text: &str| stays_in(text.as_bytes(), dir.path());
        assert!(stays("") && stays("1234\ta/b\x005678\tc\0"));
        for evil in ["1\t/etc/x\0", "1\t../x\0", "1\ta\x002\tout/x\0", "1 x\0"] {
            assert!(!stays(evil), "{evil:?}");
        }
    }

    #[test]
    fn what_git_itself_writes_is_known_and_what_runs_programs_is_not() {
        let init = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n";
        let cloned = format!(
            "{init}[remote \"origin\"]\n\turl = https://example.org/x.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n"
        );
        let no = |_: &str| false;
        assert!(are_harmless(init, no, no));
        assert!(are_harmless(&cloned, no, no));
        assert!(are_harmless("[User]\n name = Ann # her name\n", no, no));
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
            "[remote \"x\"][core]fsmonitor=run;\"]\n",
            "[remote \"x\\\"]\"][core]fsmonitor=run\n",
            "[branch \"x\"] [core] fsmonitor=run #\"]\n",
            "[remote \"o\"]\n\turl = /srv/x.git\n",
            "[remote \"o.vcs\0\"]\n\turl = https://h/x\n",
        ] {
            assert!(!are_harmless(evil, no, no), "{evil}");
        }
        assert!(are_harmless("[core]\n\tworktree = ../../x\n", |_| true, no));
        assert_eq!(value("[core]\nworktree = ../x\n", "core", "worktree").as_deref(), Some("../x"));
    }

    #[test]
    fn a_path_leads_inside_by_no_link() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("p");
        std::fs::create_dir_all(root.join("there.git")).unwrap();
        std::fs::create_dir_all(root.join("mine/.git")).unwrap();
        std::fs::create_dir_all(root.with_file_name("out")).unwrap();
        std::os::unix::fs::symlink("there.git", root.join("link")).unwrap();
        let absolute = root.join("there.git").display().to_string();
        let roots = [root.clone()];
        let inside = |git: &str, path: &str| leads_inside(&root.join(git), path, &roots);
        assert!(inside(".git", "./there.git") && inside(".git", &absolute));
        assert!(inside("mine/.git", "../there.git") && inside("mine/.git", &absolute));
        assert!(inside("there.git", "../mine"), "a bare one's are from itself");
        for other in ["link", "none", "../out", "there.git/../../out", "/"] {
            assert!(!inside(".git", other), "{other}");
        }
    }

    #[test]
    fn a_change_is_harmless_where_all_that_changed_is_known() {
        let before = "[core]\n\tbare = false\n\thooksPath = mine\n[alias]\n\ta = !one\n\tb = !two\n\
                      [remote \"o\"]\n\turl = h:x\n\tuploadpack = up\n[branch \"a\"]\n\tremote = o\n";
        let inside = |path: &str| path == "./here";
        for (from, to) in [
            ("", ""),
            ("[branch \"a\"]", "[branch \"b\"]"),
            ("\turl = h:x\n", "\turl = https://h/y\n\tfetch = z\n\tpushurl = ssh://git@h:22/y\n"),
            ("\turl = h:x\n", "\turl = git@h:y/z\n[remote]\n\tpushdefault = o\n[remote \"o\"]\n"),
            ("\turl = h:x\n", "\turl = ./here\n"),
            ("\tremote = o\n", "\tremote = .\n\tdescription = said\n"),
            ("\tremote = o\n", "\tremote = h:z\n\tpushremote = o\n"),
            ("[core]", "# said\n[User]\n\tname = Ann\n[core]"),
        ] {
            let now = before.replacen(from, to, 1);
            assert!(changes_harmlessly(before, &now, inside), "{from:?} {to:?}");
        }
        for (from, to) in [
            ("[core]", "[core]\n\tfsmonitor = run\n"),
            ("[core]", "[user]\n\tname = Ann\n[alias]\n\tc = !run\n[core]"),
            ("hooksPath = mine", "hooksPath = theirs"),
            ("\thooksPath = mine\n", ""),
            ("\tbare = false\n", "\tbare = false\n\tworktree = x\n"),
            ("\ta = !one\n\tb = !two\n", "\tb = !two\n\ta = !one\n"),
            ("[remote \"o\"]", "[remote \"p\"]"),
            ("url = h:x", "url = ext::sh -c run"),
            ("remote = o", "remote = --upload-pack=run"),
            ("remote = o", "pushremote = ext::sh -c run"),
            ("url = h:x", "pushurl = ext::sh -c run"),
            ("url = h:x", "url = ./there"),
            ("url = h:x", "url = /srv/x.git"),
            ("url = h:x", "url = file:///srv/x.git"),
            ("url = h:x", "url = a/h:x"),
            ("url = h:x", "url = -oProxyCommand=run:x"),
            ("url = h:x", "url = ssh://-oProxyCommand=run/x"),
            ("url = h:x", "url = ssh://a@-oProxyCommand=run/x"),
            ("\turl = h:x\n", ""),
            ("remote = o", "remote = p"),
            ("remote = o", "pushremote = x.git"),
            ("[core]", "[remote]\n\tpushdefault = x.git\n[core]"),
            ("[remote \"o\"]", "[remote \"o.uploadpack\0\"]\n\turl = h:x\n[remote \"o\"]"),
            ("[core]", "[submodule \"x.update\0\"]\n\turl = h:x\n[core]"),
            ("[core]", "[branch \"x.remote\0\"]\n\tdescription = x\n[core]"),
            ("bare = false", "bare = false\u{7}"),
            ("[core]", "[remote]\n\tpushdefault = ext::sh -c run\n[core]"),
            ("bare = false", "bare = false\\"),
            ("[core]", "[commit]\n\tgpgsign = false\n[core]"),
            ("[core]", "[core"),
        ] {
            let now = before.replacen(from, to, 1);
            assert_ne!(now, before);
            assert!(!changes_harmlessly(before, &now, inside), "{from:?} {to:?}");
        }
    }
}
