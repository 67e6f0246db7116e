//! Git's words: those before each command, which keep out the programs that a repository's own settings
//! name, and the facts about a call of git.

use crate::arguments::facts::JudgedFacts;
use crate::text::shell_words::shell_words;
use protocol::confinement::Network;

/// True for a tool that changes the git directory, which undo does not cover.
#[must_use]
pub fn changes_git_directory(tool: &str) -> bool {
    ["git_add", "git_commit"].contains(&tool)
}

/// Settings that override the repository's, grouped by the programs that they disable.
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
    // Programs that fetch missing objects of a partial clone.
    "core.sshCommand=false",
    "protocol.allow=never",
    // Other repositories, whose settings are their own.
    "submodule.recurse=false",
    "status.submoduleSummary=false",
    "diff.submodule=short",
    // File names unquoted, and no invented author name.
    "core.quotePath=false",
    "color.ui=false",
    "user.useConfigOnly=true",
];

/// The directory of a repository's worktrees that agentd makes, below its main working tree. A file in it has git
/// ignore it.
pub const WORKTREES: &str = ".worktrees";

/// The words before a git command that runs none of the programs in a repository's settings, but its
/// filters.
#[must_use]
pub fn git_words() -> Vec<String> {
    let settings = SETTINGS.iter().flat_map(|setting| ["-c".to_owned(), (*setting).to_owned()]);
    std::iter::once("git".to_owned()).chain(settings).collect()
}

/// The facts for the verdict on a git call: it is judged as its command line.
pub(crate) fn facts(words: &[String]) -> JudgedFacts {
    JudgedFacts {
        command: Some(format!("git {}", shell_words(words))),
        network: Some(Network::Off),
        ..JudgedFacts::default()
    }
}
