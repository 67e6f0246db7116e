//! Git as the tools for it call it: the program itself, without what a repository's own settings
//! would make it run. For the `git_*` tools.
//!
//! A repository may come from anywhere, and its settings name programs: hooks, pagers, external
//! diffs, text conversions, filters, monitors, ssh. None of those is run here; the cage is that of a
//! command without network and holds beside it.

use crate::answer::Answer;
use crate::arguments::Facts;
use crate::command::{self, Wanted};
use crate::failure::{Code, Failure};
use crate::site::Site;
use protocol::confinement::Network;

/// Longest time of one call in milliseconds.
const TIME_MS: u64 = 120_000;

/// Settings that hold whatever the repository's say, each with what it keeps from running.
const SETTINGS: &[&str] = &[
    // Programs run beside git's own work.
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.alternateRefsCommand=",
    "gc.auto=0",
    "maintenance.auto=false",
    // Programs that show something, or ask for it.
    "core.pager=cat",
    "core.editor=false",
    "core.askPass=",
    "credential.helper=",
    "interactive.diffFilter=",
    // Programs that sign, or look at signatures.
    "gpg.program=false",
    "gpg.ssh.program=false",
    "gpg.x509.program=false",
    "gpg.ssh.defaultKeyCommand=",
    // A format of the repository's own may ask for them.
    "format.pretty=medium",
    "commit.gpgSign=false",
    "log.showSignature=false",
    // Programs that fetch what a partial clone lacks.
    "core.sshCommand=false",
    "protocol.allow=never",
    // Other repositories, whose settings are their own.
    "submodule.recurse=false",
    "status.submoduleSummary=false",
    "diff.submodule=short",
    // Names of files as they are, and nobody's name made up.
    "core.quotePath=false",
    "color.ui=false",
    "user.useConfigOnly=true",
];

/// Filters that the repository's own settings name are made empty, under whatever names they have.
/// Those of the person's settings stay: what they keep in large files would differ without them.
///
/// All settings are read at once, as git will: whether one file includes another may hang on a third.
const WITHOUT_FILTERS: &str = r#"set -f; n=0; tab=$(printf '\t')
found=$(git config --show-scope --name-only --get-regexp '^filter\..*\.(clean|smudge|process|required)$')
code=$?; [ $code -le 1 ] || exit $code
IFS='
'
for key in $found; do
  case $key in local"$tab"*|worktree"$tab"*) ;; *) continue ;; esac
  export "GIT_CONFIG_KEY_$n=${key#*"$tab"}" "GIT_CONFIG_VALUE_$n="; n=$((n + 1))
done
export GIT_CONFIG_COUNT=$n
[ $n = 0 ] || echo 'agentd: filters that the settings of the repository name were not run' >&2
exec git "$@""#;

/// Whether a call of git changes anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// It looks, and nobody is asked: filters of the repository do not run.
    Looks,
    /// It was allowed as the command that it is: what is added has gone through its filters.
    Changes,
}

/// What a verdict needs to know about a call of git: it is judged as the command that it is.
pub(crate) fn facts(words: &[String]) -> Facts {
    Facts {
        command: Some(format!("git {}", command::in_words(words))),
        network: Some(Network::Off),
        ..Facts::default()
    }
}

/// Runs git with these words in the project directory.
pub(crate) fn run(words: Vec<String>, work: Work, site: &mut Site<'_>) -> Result<Answer, Failure> {
    if words.iter().any(|word| word.contains('\0')) {
        return Err(Failure::new(
            Code::InvalidArguments,
            "an argument contains a NUL character",
            "",
        ));
    }
    let text = format!("git {}", command::in_words(&words));
    let mut argv: Vec<String> = match work {
        Work::Looks => ["/bin/sh", "-c", WITHOUT_FILTERS].map(str::to_owned).into(),
        Work::Changes => Vec::new(),
    };
    argv.push("git".to_owned());
    for setting in SETTINGS {
        argv.extend(["-c".to_owned(), (*setting).to_owned()]);
    }
    argv.extend(["--no-pager".to_owned(), "--literal-pathspecs".to_owned()]);
    argv.extend(words);
    command::run(
        Wanted {
            argv,
            text,
            env: variables(work),
            without: Some("GIT_"),
            timeout_ms: Some(TIME_MS),
        },
        site,
    )
}

fn variables(work: Work) -> Vec<(String, String)> {
    let locks = match work {
        // A look takes no lock and writes no index.
        Work::Looks => "0",
        Work::Changes => "1",
    };
    [
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_NO_LAZY_FETCH", "1"),
        ("GIT_ALLOW_PROTOCOL", ""),
        ("GIT_OPTIONAL_LOCKS", locks),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

/// A path that stays in scope, as git shall be given it: a link is itself, not what it leads to.
pub(crate) fn path(named: &str, site: &Site<'_>) -> Result<String, Failure> {
    site.resolve(named)?;
    Ok(named.to_owned())
}
