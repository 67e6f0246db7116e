//! Which of a person's settings of git a command is given: a list of keys whose values name no key and
//! no program. What is on no list stays out, so that a new key of git's or of another program's can
//! carry nothing in.

use super::url::{signs_in, without_sign_in};
use sandbox::GitSetting;

/// What becomes of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    /// As it is.
    Kept,
    /// With this value, since its own holds a password.
    Without(String),
    /// It names more settings.
    Include,
    /// It names a file that git reads.
    File,
    /// Not given, and nothing is lost: it serves a person before a screen.
    Unneeded,
    /// Not given, which is said.
    LeftOut,
}

/// Of files: `a.b` is a key, `a.*.b` one of a section with a name, `*` at the end any key.
const FILES: &[&str] = &[
    "core.excludesfile",
    "core.attributesfile",
    "commit.template",
    "blame.ignorerevsfile",
    "mailmap.file",
    "http.sslcainfo",
    "http.*.sslcainfo",
];

/// Screens, editors and browsers, which a command's environment replaces or nobody sees.
const UNNEEDED: &[&str] = &[
    "core.editor",
    "core.pager",
    "core.askpass",
    "sequence.editor",
    "interactive.difffilter",
    "pager.*",
    "delta.*",
    "delta.*.*",
    "diff.tool",
    "diff.guitool",
    "difftool.*",
    "difftool.*.*",
    "merge.tool",
    "merge.guitool",
    "mergetool.*",
    "mergetool.*.*",
    "gui.*",
    "guitool.*.*",
    "gitk.*",
    "web.*",
    "browser.*.*",
    "man.*",
    "man.*.*",
    "help.browser",
    "help.format",
    "instaweb.*",
    "lfs.*.*",
    "maintenance.repo",
];

/// What stays out of sections that are given.
const NOT: &[&str] = &[
    // Programs, which a text diff does without.
    "diff.external",
    "diff.*.command",
    "diff.*.textconv",
    // No command has the keys to sign with.
    "push.gpgsign",
    "tag.gpgsign",
    "tag.forcesignannotated",
    "format.headers",
    "format.to",
    "format.cc",
];

/// What is given. Filters and merge drivers are programs too, and are given all the same: without
/// them git would store other content than the person's git does. Commands run them in their cage;
/// git's tools run none that look or commit.
const KEPT: &[&str] = &[
    "user.name",
    "user.email",
    "user.useconfigonly",
    "author.*",
    "committer.*",
    "init.defaultbranch",
    "init.defaultobjectformat",
    "init.defaultrefformat",
    "core.abbrev",
    "core.autocrlf",
    "core.bigfilethreshold",
    "core.checkstat",
    "core.commentchar",
    "core.commentstring",
    "core.compression",
    "core.deltabasecachelimit",
    "core.eol",
    "core.filemode",
    "core.fsyncmethod",
    "core.fsync",
    "core.ignorecase",
    "core.logallrefupdates",
    "core.longpaths",
    "core.multipackindex",
    "core.commitgraph",
    "core.packedgitlimit",
    "core.packedgitwindowsize",
    "core.precomposeunicode",
    "core.preloadindex",
    "core.protecthfs",
    "core.protectntfs",
    "core.quotepath",
    "core.safecrlf",
    "core.symlinks",
    "core.trustctime",
    "core.untrackedcache",
    "core.warnambiguousrefs",
    "core.whitespace",
    "add.*",
    "advice.*",
    "alias.*",
    "alias.*.*",
    "am.*",
    "apply.*",
    "blame.*",
    "branch.*",
    "branch.*.*",
    "checkout.*",
    "clone.*",
    "color.*",
    "color.*.*",
    "column.*",
    "commit.cleanup",
    "commit.status",
    "commit.verbose",
    "commitgraph.*",
    "diff.*",
    "diff.*.*",
    "feature.*",
    "fetch.*",
    "filter.*.*",
    "format.*",
    "gc.*",
    "grep.*",
    "help.autocorrect",
    "http.followredirects",
    "http.lowspeedlimit",
    "http.lowspeedtime",
    "http.maxrequests",
    "http.postbuffer",
    "http.proxy",
    "http.*.proxy",
    "http.sslverify",
    "http.*.sslverify",
    "http.version",
    "i18n.*",
    "index.*",
    "interactive.singlekey",
    "lfs.concurrenttransfers",
    "lfs.fetchexclude",
    "lfs.fetchinclude",
    "log.*",
    "mailmap.blob",
    "merge.*",
    "merge.*.*",
    "notes.*",
    "pack.*",
    "pretty.*",
    "protocol.*",
    "protocol.*.*",
    "pull.*",
    "push.*",
    "rebase.*",
    "receive.*",
    "remote.pushdefault",
    "remote.*.prune",
    "remote.*.prunetags",
    "rerere.*",
    "safe.*",
    "show.*",
    "stash.*",
    "status.*",
    "submodule.*",
    "tag.*",
    "transfer.*",
    "url.*.insteadof",
    "url.*.pushinsteadof",
    "versionsort.*",
    "worktree.*",
];

/// What becomes of it.
pub(super) fn fate(setting: &GitSetting) -> Fate {
    let key = in_words(setting);
    let on = |list: &[&str]| list.iter().any(|pattern| matches(pattern, &key));
    if ["include.path", "includeif.*.path"].contains(&key.as_str()) {
        return Fate::Include;
    }
    if on(FILES) {
        return Fate::File;
    }
    if on(UNNEEDED) {
        return Fate::Unneeded;
    }
    if on(NOT) || !on(KEPT) {
        return Fate::LeftOut;
    }
    let lossy = |bytes: &Option<Vec<u8>>| {
        bytes.as_deref().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    };
    let (name, value) = (lossy(&setting.name), lossy(&setting.value).unwrap_or_default());
    let runs = setting.section == "alias" && value.starts_with('!');
    if runs || name.is_some_and(|name| signs_in(&name)) {
        return Fate::LeftOut;
    }
    match without_sign_in(&value) {
        None => Fate::Kept,
        // Such as `ann:password@proxy:3128`.
        Some(clean) if key.ends_with(".proxy") => Fate::Without(clean),
        Some(_) => Fate::LeftOut,
    }
}

/// A key as the lists have it, and as a person is told.
pub(super) fn in_words(GitSetting { section, name, key, .. }: &GitSetting) -> String {
    match name {
        Some(_) => format!("{section}.*.{key}"),
        None => format!("{section}.{key}"),
    }
}

fn matches(pattern: &str, key: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(section) => key.strip_prefix(section).is_some_and(|rest| !rest.contains('.')),
        None => pattern == key,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_keys_or_runs_programs_is_not_given() {
        let without = |text: &str| Fate::Without(text.to_owned());
        for (key, name, value, expected) in [
            ("user.name", "", "Ann", Fate::Kept),
            ("alias.co", "", "checkout", Fate::Kept),
            ("alias.token", "", "!curl -H 'X: t' host", Fate::LeftOut),
            ("core.autocrlf", "", "input", Fate::Kept),
            ("core.excludesfile", "", "~/.ignore", Fate::File),
            ("core.sshcommand", "", "ssh -i key", Fate::LeftOut),
            ("core.hookspath", "", "~/hooks", Fate::LeftOut),
            ("core.fsmonitor", "", "true", Fate::LeftOut),
            ("core.editor", "", "vim", Fate::Unneeded),
            ("credential.helper", "", "store", Fate::LeftOut),
            ("credential.helper", "https://github.com", "!gh auth", Fate::LeftOut),
            ("github.token", "", "ghp_x", Fate::LeftOut),
            ("commit.gpgsign", "", "true", Fate::LeftOut),
            ("user.signingkey", "", "AB", Fate::LeftOut),
            ("gpg.program", "", "gpg2", Fate::LeftOut),
            ("http.extraheader", "", "Authorization: Bearer t", Fate::LeftOut),
            ("http.extraheader", "https://x.example", "A: t", Fate::LeftOut),
            ("http.cookiefile", "", "~/c", Fate::LeftOut),
            ("http.proxy", "", "http://proxy:3128", Fate::Kept),
            ("http.proxy", "", "http://ann:pw@proxy:3128", without("http://proxy:3128")),
            ("http.sslcainfo", "", "~/ca.pem", Fate::File),
            ("http.sslkey", "", "~/key.pem", Fate::LeftOut),
            ("url.insteadof", "git@github.com:", "https://github.com/", Fate::Kept),
            ("url.insteadof", "https://t@github.com/", "https://github.com/", Fate::LeftOut),
            ("url.insteadof", "https://github.com/", "https://t@github.com/", Fate::LeftOut),
            ("filter.clean", "lfs", "git-lfs clean -- %f", Fate::Kept),
            ("diff.textconv", "pdf", "pdftotext", Fate::LeftOut),
            ("diff.algorithm", "", "histogram", Fate::Kept),
            ("merge.tool", "", "meld", Fate::Unneeded),
            ("safe.directory", "", "*", Fate::Kept),
            ("include.path", "", "x", Fate::Include),
            ("includeif.path", "gitdir:~/work/", "x", Fate::Include),
            ("unheard.of", "", "x", Fate::LeftOut),
        ] {
            let (section, key) = key.split_once('.').unwrap_or_default();
            let setting = GitSetting {
                section: section.to_owned(),
                name: (!name.is_empty()).then(|| name.as_bytes().to_vec()),
                key: key.to_owned(),
                value: Some(value.as_bytes().to_vec()),
            };
            assert_eq!(fate(&setting), expected, "{setting:?}");
        }
    }
}
