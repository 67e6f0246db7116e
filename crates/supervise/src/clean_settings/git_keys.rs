//! Which of a person's settings of git a command is given: a list of keys whose values name no key and
//! no program. What is on no list stays out, so that a new key of git's or of another program's can
//! carry nothing in.

use super::url::{carries_key, signs_in, without_sign_in_of};
use sandbox::GitSetting;
use std::ffi::OsStr;
use std::path::Path;

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
    /// A filter that is not given, which is said: git refuses where it would need it, for without it git
    /// would store or write other content.
    Refused,
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

/// What is given. Filters and merge drivers are programs too, and are given where they are known: without
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

/// Programs of filters, which have no key among their words.
const FILTERS: [&str; 10] = [
    "git-lfs",
    "git-crypt",
    "git-annex",
    "git-agecrypt",
    "nbstripout",
    "clang-format",
    "dos2unix",
    "expand",
    "unexpand",
    "cat",
];

/// What becomes of it.
pub(super) fn fate(setting: &GitSetting) -> Fate {
    let key = in_words(setting);
    let on = |list: &[&str]| list.iter().any(|pattern| matches(pattern, &key));
    let lossy = |bytes: &Option<Vec<u8>>| {
        bytes.as_deref().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    };
    let (name, value) = (lossy(&setting.name), lossy(&setting.value).unwrap_or_default());
    if name.is_some_and(|name| signs_in(&name) || config::names_token(&name)) {
        return Fate::LeftOut;
    }
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
    match (setting.section.as_str(), setting.key.as_str()) {
        ("filter", "clean" | "smudge" | "process") if !is_known_filter(&value) => Fate::Refused,
        // As it is where nothing says so; it must not undo the refusal of a filter that is not given.
        ("filter", "required") if ["false", "no", "off", "0", ""].contains(&&*value) => {
            Fate::Unneeded
        }
        ("alias", _) if value.starts_with('!') || carries_key(&value) || sets_other(&value) => {
            Fate::LeftOut
        }
        ("merge", "driver") if carries_key(&value) => Fate::LeftOut,
        _ if config::names_token(&value) => Fate::LeftOut,
        _ => match without_sign_in_of(&setting.key, &value) {
            None => Fate::Kept,
            Some(clean) if setting.key == "proxy" => Fate::Without(clean),
            Some(_) => Fate::LeftOut,
        },
    }
}

/// Whether words of an alias give git a setting for one run that a command would not be given.
fn sets_other(alias: &str) -> bool {
    let words: Vec<&str> = alias.split_whitespace().collect();
    let given = words.windows(2).filter(|pair| pair.first() == Some(&"-c"));
    let given = given.filter_map(|pair| pair.get(1)?.trim_matches(['"', '\'']).split_once('='));
    alias.contains("--config-env")
        || given.into_iter().any(|(key, value)| {
            let Some((section, rest)) = key.split_once('.') else { return false };
            let (name, key) =
                rest.rsplit_once('.').map_or((None, rest), |(name, key)| (Some(name), key));
            let setting = GitSetting {
                section: section.to_ascii_lowercase(),
                name: name.map(|name| name.as_bytes().to_vec()),
                key: key.to_ascii_lowercase(),
                value: Some(value.as_bytes().to_vec()),
            };
            !matches!(fate(&setting), Fate::Kept | Fate::Unneeded)
        })
}

/// Whether a filter is a known program by itself, with names of its own and options that have no value.
fn is_known_filter(command: &str) -> bool {
    let words: Vec<&str> =
        command.split_whitespace().map(|word| word.trim_matches(['"', '\''])).collect();
    let file = |word: &str| Path::new(word).file_name().and_then(OsStr::to_str).map(str::to_owned);
    let name = words.first().and_then(|word| file(word)).unwrap_or_default();
    let is_python = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') == "python";
    let rest = match words.get(1..).unwrap_or_default() {
        ["lfs", rest @ ..] if name == "git" => rest,
        ["-m", "nbstripout", rest @ ..] if is_python => rest,
        rest if FILTERS.contains(&name.as_str()) => rest,
        [] if command.is_empty() => return true,
        _ => return false,
    };
    let is_plain = |word: &&str| {
        let option = word.trim_start_matches('-');
        let letters = option.chars().all(|c| c.is_ascii_lowercase() || c == '-');
        ["%f", "-"].contains(word) || (letters && option.len() <= 24)
    };
    rest.len() <= 4 && rest.iter().all(is_plain) && !rest.iter().any(|word| carries_key(word))
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
            ("filter.process", "lfs", "git-lfs filter-process", Fate::Kept),
            ("filter.smudge", "lfs", "git-lfs smudge --skip -- %f", Fate::Kept),
            ("filter.clean", "crypt", "\"git-crypt\" clean", Fate::Kept),
            ("filter.clean", "nb", "\"/usr/bin/python3.11\" -m nbstripout", Fate::Kept),
            ("filter.smudge", "nb", "cat", Fate::Kept),
            ("filter.clean", "annex", "git-annex smudge --clean -- %f", Fate::Kept),
            ("filter.required", "lfs", "true", Fate::Kept),
            ("filter.required", "pw", "false", Fate::Unneeded),
            ("filter.clean", "pw", "sed s/realpassword/XXX/", Fate::Refused),
            ("filter.smudge", "pw", "sed 's/XXX/hunter/'", Fate::Refused),
            ("filter.clean", "pw", "git-crypt clean --key-name=x", Fate::Refused),
            ("filter.clean", "pw", "openssl enc -k hunter", Fate::Refused),
            ("filter.clean", "pw", "git-lfs clean; sed s/x/y/", Fate::Refused),
            ("filter.clean", "pw", "python3 -c x", Fate::Refused),
            ("merge.driver", "x", "merge-x --token=a %O %A %B", Fate::LeftOut),
            ("merge.driver", "x", "merge-x %O %A %B", Fate::Kept),
            ("alias.f", "", "-c http.extraHeader='A: t' fetch", Fate::LeftOut),
            ("alias.f", "", "-c http.https://x.example/.extraheader=\"A t\" fetch", Fate::LeftOut),
            ("alias.f", "", "-c core.sshCommand=x fetch", Fate::LeftOut),
            ("alias.f", "", "-c http.proxy=ann:pw@proxy fetch", Fate::LeftOut),
            ("alias.f", "", "--config-env=http.x=Y fetch", Fate::LeftOut),
            ("alias.f", "", "-c color.ui=never diff", Fate::Kept),
            ("alias.f", "", "commit -c HEAD", Fate::Kept),
            ("alias.command", "f", "-c http.extraHeader=x fetch", Fate::LeftOut),
            ("http.proxy", "", "ann:pw@proxy:3128", without("proxy:3128")),
            ("http.proxy", "https://x.example", "ann:pw@proxy", without("proxy")),
            ("http.proxy", "", "proxy:3128", Fate::Kept),
            ("url.insteadof", "https://x.example/a8Kd92kdkdjK3x0q/", "https://y/", Fate::LeftOut),
            ("url.insteadof", "https://x.example/?t=x", "https://y/", Fate::LeftOut),
            ("includeif.path", "hasconfig:remote.*.url:https://t@x.example/**", "x", Fate::LeftOut),
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
