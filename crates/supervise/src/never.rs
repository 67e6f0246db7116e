//! Directories that no call is ever given, whoever would say yes: where keys and our own files lie.
//! As rules of the broker's, so that the refusal of a call's wish is recorded like any other, and as an
//! answer to whoever adds a directory for a session. For `plan`, and for what changes it.

use crate::plan::OpenFailure;
use protocol::client::FailedKind;
use protocol::confinement::{Confinement, FilePath};
use protocol::judgement::{Rule, RuleEffect};
use std::path::{Path, PathBuf};

/// Below a home: what holds keys, or what the person's programs sign in with.
const IN_HOME: [&str; 29] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".cargo",
    ".password-store",
    ".mozilla",
    ".thunderbird",
    ".terraform.d",
    ".vault-token",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".git-credentials",
    ".claude",
    ".codex",
    ".gemini",
    ".config/gcloud",
    ".config/gh",
    ".config/git",
    ".config/op",
    ".config/google-chrome",
    ".config/chromium",
    ".config/containers",
    ".local/share/keyrings",
    ".local/share/kwalletd",
];
/// The system's: passwords and keys, other processes, devices, sockets of its services.
const OF_SYSTEM: [&str; 6] = ["/etc", "/proc", "/sys", "/dev", "/run", "/boot"];

/// What is known of where they lie.
pub(crate) struct Kept<'a> {
    pub(crate) home: Option<&'a Path>,
    /// Our own.
    pub(crate) withheld: &'a [FilePath],
    /// The person's settings, which may be a link to where they keep such files.
    pub(crate) user_file: Option<&'a Path>,
    /// Where the person keeps tool chains instead; cargo keeps its keys in its own.
    pub(crate) tool_homes: &'a [(String, FilePath)],
}

impl<'a> Kept<'a> {
    /// As a session knows it.
    pub(crate) fn of(
        confinement: &'a Confinement,
        home: Option<&'a Path>,
        user_file: Option<&'a Path>,
    ) -> Self {
        let Confinement { withheld, tool_homes, .. } = confinement;
        Self { home, withheld, user_file, tool_homes }
    }
}

/// Why a directory, by its real path, is added to no session: one of them lies in it, or it in one.
///
/// # Errors
/// What, why, and the way on.
pub(crate) fn added(
    dir: &Path,
    confinement: &Confinement,
    user_file: Option<&Path>,
) -> Result<(), OpenFailure> {
    let home = confinement.home.as_ref().map(FilePath::to_path);
    let kept = Kept::of(confinement, home.as_deref(), user_file);
    let reached = |place: &PathBuf| dir.starts_with(place) || place.starts_with(dir);
    match places(&kept).into_iter().find(reached) {
        None => Ok(()),
        Some(place) => Err(OpenFailure::new(
            FailedKind::Usage,
            format!(
                "the directory {} cannot be added: it reaches {}, and keys, passwords, the system's \
                 own places and agentd's are given to no tool. Add a directory beside it, or copy what \
                 is needed into the project",
                dir.display(),
                place.display()
            ),
        )),
    }
}

/// All of them, by every path that leads there.
fn places(kept: &Kept<'_>) -> Vec<PathBuf> {
    let in_home = kept.home.into_iter().flat_map(|home| IN_HOME.map(|name| home.join(name)));
    let withheld = kept.withheld.iter().map(FilePath::to_path);
    let cargo = kept.tool_homes.iter().filter(|(name, _)| name == "CARGO_HOME");
    let named: Vec<PathBuf> = in_home
        .chain(withheld)
        .chain(cargo.map(|(_, path)| path.to_path()))
        .chain(kept.user_file.map(Path::to_owned))
        .chain(OF_SYSTEM.map(PathBuf::from))
        .collect();
    // Calls ask by real paths, and any of these may be a link.
    let real: Vec<PathBuf> = named.iter().filter_map(|path| path.canonicalize().ok()).collect();
    real.into_iter().chain(named).collect()
}

/// The rules that deny them. Each holds for what is below it, and for what it is in.
pub(crate) fn given(kept: &Kept<'_>) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    for path in places(kept) {
        let text = rule_text(&path);
        if !rules.iter().any(|rule| rule.text == text) {
            rules.push(Rule { effect: RuleEffect::Deny, text, file: "built-in".into(), line: 0 });
        }
    }
    rules
}

/// A path that no rule can say denies all.
fn rule_text(path: &Path) -> String {
    let sayable = |text: &&str| text.starts_with('/') && !text.contains(char::is_control);
    let Some(text) = path.to_str().filter(sayable) else { return "directory".to_owned() };
    let mut rule = "directory:".to_owned();
    for c in text.trim_end().chars() {
        if "*?[]{}\\!".contains(c) {
            rule.push('\\');
        }
        rule.push(c);
    }
    rule
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn keys_are_denied_by_every_path_that_leads_to_them() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let home = base.join("ann [1]");
        std::fs::create_dir_all(home.join(".config")).unwrap();
        std::fs::create_dir(base.join("keys")).unwrap();
        std::os::unix::fs::symlink(base.join("keys"), home.join(".ssh")).unwrap();
        let withheld = [FilePath::from("/state/agentd")];
        let cargo = [("CARGO_HOME".to_owned(), FilePath::from("/opt/cargo"))];
        let (file, dotfile) = (home.join("config.toml"), base.join("dotfile"));
        std::fs::write(&dotfile, "").unwrap();
        std::os::unix::fs::symlink(&dotfile, &file).unwrap();
        let kept = Kept {
            home: Some(&home),
            withheld: &withheld,
            user_file: Some(&file),
            tool_homes: &cargo,
        };
        let rules = given(&kept);
        let has = |text: String| rules.iter().any(|rule| rule.text == text);
        assert!(has(format!("directory:{}/keys", base.display())));
        assert!(has(format!("directory:{}", dotfile.display())), "nor what leads to it");
        assert!(has(format!("directory:{}/ann \\[1\\]/.ssh", base.display())));
        assert!(has("directory:/state/agentd".into()) && has("directory:/opt/cargo".into()));
        assert_eq!(approval::check(&rules).len(), 0, "each can be followed");
    }

    #[test]
    fn where_a_path_cannot_be_said_nothing_is_given() {
        let withheld = [FilePath::from("/state/a\nb")];
        let kept = Kept { home: None, withheld: &withheld, user_file: None, tool_homes: &[] };
        assert!(given(&kept).iter().any(|rule| rule.text == "directory"));
    }
}
