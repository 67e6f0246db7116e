//! Selects which of the user's git settings commands get: an allow-list of keys whose values name
//! neither keys nor programs. A key on no list is omitted, so that new keys of git or other
//! programs are safe.

use config::secrets::{carries_secret, names_token, signs_in, without_sign_in};
use sandbox::GitSetting;
use std::ffi::OsStr;
use std::path::Path;

/// Action for a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GitSettingAction {
    /// Copied unchanged.
    Copy,
    /// Copied with this value, because its own contains a password.
    Replace(String),
    /// Names a file with more settings.
    Include,
    /// Names a file that git reads.
    File,
    /// Omitted silently: it matters only for a person at a screen.
    Skip,
    /// Omitted, and listed in the note.
    Omit,
    /// An omitted filter, listed in the note. Git must fail where it needs the filter, because it
    /// would store or write other content without it.
    Block,
}

/// Keys whose values are files: `a.b` is a key, `a.*.b` a key of a section with a name, `*` at the
/// end any key.
const FILES: &[&str] = &[
    "core.excludesfile",
    "core.attributesfile",
    "commit.template",
    "blame.ignorerevsfile",
    "mailmap.file",
    "http.sslcainfo",
    "http.*.sslcainfo",
];

/// Screens, editors and browsers: commands have none, or get others by their environment.
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

/// Omitted keys of sections that are otherwise copied.
const NOT: &[&str] = &[
    // Programs; a text diff does not need them.
    "diff.external",
    "diff.*.command",
    "diff.*.textconv",
    // Commands have no keys to sign with.
    "push.gpgsign",
    "tag.gpgsign",
    "tag.forcesignannotated",
    "format.headers",
    "format.to",
    "format.cc",
];

/// Copied keys. Filters and merge drivers are programs too; known ones are copied, because without
/// them git would store other content than the user's git does. Commands run them in their cage;
/// git's tools that only read or commit run none.
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

/// Filter programs without keys among their arguments.
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

/// The action for a setting.
pub(crate) fn action_for(setting: &GitSetting) -> GitSettingAction {
    let key = in_words(setting);
    let on = |list: &[&str]| list.iter().any(|pattern| matches(pattern, &key));
    let lossy = |bytes: &Option<Vec<u8>>| {
        bytes.as_deref().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    };
    let (name, value) = (lossy(&setting.name), lossy(&setting.value).unwrap_or_default());
    // A pattern for remotes such as `hasconfig:remote.*.url:git@host:team/**` is no sign-in.
    if name.is_some_and(|name| signs_in(&name) || names_token(&name)) {
        return GitSettingAction::Omit;
    }
    if ["include.path", "includeif.*.path"].contains(&key.as_str()) {
        return GitSettingAction::Include;
    }
    if on(FILES) {
        return GitSettingAction::File;
    }
    if on(UNNEEDED) {
        return GitSettingAction::Skip;
    }
    if on(NOT) || !on(KEPT) {
        return GitSettingAction::Omit;
    }
    match (setting.section.as_str(), setting.key.as_str()) {
        ("filter", "clean" | "smudge" | "process") if !is_known_filter(&value) => {
            GitSettingAction::Block
        }
        // Git's default. It must not undo the block of an omitted filter.
        ("filter", "required") if ["false", "no", "off", "0", ""].contains(&&*value) => {
            GitSettingAction::Skip
        }
        ("alias", _) if value.starts_with('!') || carries_secret(&value) || sets_other(&value) => {
            GitSettingAction::Omit
        }
        ("merge", "driver") if carries_secret(&value) => GitSettingAction::Omit,
        _ if names_token(&value) => GitSettingAction::Omit,
        _ => match without_sign_in(&setting.key, &value) {
            None => GitSettingAction::Copy,
            Some(clean) if setting.key == "proxy" => GitSettingAction::Replace(clean),
            Some(_) => GitSettingAction::Omit,
        },
    }
}

/// True if an alias sets an option for one run that commands would not get as a setting.
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
            !matches!(action_for(&setting), GitSettingAction::Copy | GitSettingAction::Skip)
        })
}

/// True if a filter is a known program with plain options that have no values.
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
    rest.len() <= 4 && rest.iter().all(is_plain) && !rest.iter().any(|word| carries_secret(word))
}

/// A key in the form of the lists, also for the note.
pub(crate) fn in_words(GitSetting { section, name, key, .. }: &GitSetting) -> String {
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
        let without = |text: &str| GitSettingAction::Replace(text.to_owned());
        for (key, name, value, expected) in [
            ("user.name", "", "Ann", GitSettingAction::Copy),
            ("alias.co", "", "checkout", GitSettingAction::Copy),
            ("alias.token", "", "!curl -H 'X: t' host", GitSettingAction::Omit),
            ("core.autocrlf", "", "input", GitSettingAction::Copy),
            ("core.excludesfile", "", "~/.ignore", GitSettingAction::File),
            ("core.sshcommand", "", "ssh -i key", GitSettingAction::Omit),
            ("core.hookspath", "", "~/hooks", GitSettingAction::Omit),
            ("core.fsmonitor", "", "true", GitSettingAction::Omit),
            ("core.editor", "", "vim", GitSettingAction::Skip),
            ("credential.helper", "", "store", GitSettingAction::Omit),
            ("credential.helper", "https://github.com", "!gh auth", GitSettingAction::Omit),
            ("github.token", "", "ghp_x", GitSettingAction::Omit),
            ("commit.gpgsign", "", "true", GitSettingAction::Omit),
            ("user.signingkey", "", "AB", GitSettingAction::Omit),
            ("gpg.program", "", "gpg2", GitSettingAction::Omit),
            ("http.extraheader", "", "Authorization: Bearer t", GitSettingAction::Omit),
            ("http.extraheader", "https://x.example", "A: t", GitSettingAction::Omit),
            ("http.cookiefile", "", "~/c", GitSettingAction::Omit),
            ("http.proxy", "", "http://proxy:3128", GitSettingAction::Copy),
            ("http.proxy", "", "http://ann:pw@proxy:3128", without("http://proxy:3128")),
            ("http.sslcainfo", "", "~/ca.pem", GitSettingAction::File),
            ("http.sslkey", "", "~/key.pem", GitSettingAction::Omit),
            ("url.insteadof", "git@github.com:", "https://github.com/", GitSettingAction::Copy),
            (
                "url.insteadof",
                "https://t@github.com/",
                "https://github.com/",
                GitSettingAction::Omit,
            ),
            (
                "url.insteadof",
                "https://github.com/",
                "https://t@github.com/",
                GitSettingAction::Omit,
            ),
            ("filter.clean", "lfs", "git-lfs clean -- %f", GitSettingAction::Copy),
            ("filter.process", "lfs", "git-lfs filter-process", GitSettingAction::Copy),
            ("filter.smudge", "lfs", "git-lfs smudge --skip -- %f", GitSettingAction::Copy),
            ("filter.clean", "crypt", "\"git-crypt\" clean", GitSettingAction::Copy),
            ("filter.clean", "nb", "\"/usr/bin/python3.11\" -m nbstripout", GitSettingAction::Copy),
            ("filter.smudge", "nb", "cat", GitSettingAction::Copy),
            ("filter.clean", "annex", "git-annex smudge --clean -- %f", GitSettingAction::Copy),
            ("filter.required", "lfs", "true", GitSettingAction::Copy),
            ("filter.required", "pw", "false", GitSettingAction::Skip),
            ("filter.clean", "pw", "sed s/realpassword/XXX/", GitSettingAction::Block),
            ("filter.smudge", "pw", "sed 's/XXX/hunter/'", GitSettingAction::Block),
            ("filter.clean", "pw", "git-crypt clean --key-name=x", GitSettingAction::Block),
            ("filter.clean", "pw", "openssl enc -k hunter", GitSettingAction::Block),
            ("filter.clean", "pw", "git-lfs clean; sed s/x/y/", GitSettingAction::Block),
            ("filter.clean", "pw", "python3 -c x", GitSettingAction::Block),
            ("merge.driver", "x", "merge-x --token=a %O %A %B", GitSettingAction::Omit),
            ("merge.driver", "x", "merge-x %O %A %B", GitSettingAction::Copy),
            ("alias.f", "", "-c http.extraHeader='A: t' fetch", GitSettingAction::Omit),
            (
                "alias.f",
                "",
                "-c http.https://x.example/.extraheader=\"A t\" fetch",
                GitSettingAction::Omit,
            ),
            ("alias.f", "", "-c core.sshCommand=x fetch", GitSettingAction::Omit),
            ("alias.f", "", "-c http.proxy=ann:pw@proxy fetch", GitSettingAction::Omit),
            ("alias.f", "", "--config-env=http.x=Y fetch", GitSettingAction::Omit),
            ("alias.f", "", "-c color.ui=never diff", GitSettingAction::Copy),
            ("alias.f", "", "commit -c HEAD", GitSettingAction::Copy),
            ("alias.command", "f", "-c http.extraHeader=x fetch", GitSettingAction::Omit),
            ("http.proxy", "", "ann:pw@proxy:3128", without("proxy:3128")),
            ("http.proxy", "https://x.example", "ann:pw@proxy", without("proxy")),
            ("http.proxy", "", "proxy:3128", GitSettingAction::Copy),
            (
                "url.insteadof",
                "https://x.example/a8Kd92kdkdjK3x0q/",
                "https://y/",
                GitSettingAction::Omit,
            ),
            ("url.insteadof", "https://x.example/?t=x", "https://y/", GitSettingAction::Omit),
            (
                "includeif.path",
                "hasconfig:remote.*.url:https://t@x.example/**",
                "x",
                GitSettingAction::Omit,
            ),
            ("diff.textconv", "pdf", "pdftotext", GitSettingAction::Omit),
            ("diff.algorithm", "", "histogram", GitSettingAction::Copy),
            ("merge.tool", "", "meld", GitSettingAction::Skip),
            ("safe.directory", "", "*", GitSettingAction::Copy),
            ("include.path", "", "x", GitSettingAction::Include),
            ("includeif.path", "gitdir:~/work/", "x", GitSettingAction::Include),
            ("unheard.of", "", "x", GitSettingAction::Omit),
        ] {
            let (section, key) = key.split_once('.').unwrap_or_default();
            let setting = GitSetting {
                section: section.to_owned(),
                name: (!name.is_empty()).then(|| name.as_bytes().to_vec()),
                key: key.to_owned(),
                value: Some(value.as_bytes().to_vec()),
            };
            assert_eq!(action_for(&setting), expected, "{setting:?}");
        }
    }
}
