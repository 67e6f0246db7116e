//! Directories that no call is ever given, even with approval: those with keys, and agentd's own.
//! They become deny rules of the broker, so that a refusal is recorded like any other, and they are
//! checked when a directory is added to a session. Used by the session specification.

use crate::open_failure::OpenFailure;
use config::{CredentialPaths, every_path};
use protocol::client::RequestFailure;
use protocol::confinement::FilePath;
use protocol::judgement::{Rule, RuleEffect};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Directories of the system: passwords and keys, other processes, devices, sockets of services.
const OF_SYSTEM: [&str; 5] = ["/etc", "/proc", "/sys", "/dev", "/boot"];
/// Sockets and state of running services. Only users' removable disks in it may be given, which are
/// two levels down in `MEDIA`.
const RUN: &str = "/run";
const MEDIA: &str = "/run/media";
/// The same as rules: every other name in `RUN`, and patterns that would match more than one disk.
const RULES_OF_RUN: [&str; 2] = [
    "directory:/run/{[!m]*,m,m[!e]*,me,me[!d]*,med,med[!i]*,medi,medi[!a]*,media?*}",
    r"directory:/run/media/*/\*",
];

/// The forbidden paths by their origin.
#[derive(Debug, Clone, Default)]
pub struct ForbiddenDirs {
    /// Keys of the user and of other users.
    pub(crate) keys: CredentialPaths,
    /// Agentd's own directories.
    pub(crate) withheld: Vec<FilePath>,
    /// The user's configuration file, which may be a link to a directory with such files.
    pub(crate) user_file: Option<PathBuf>,
    /// Files with keys of model APIs.
    pub(crate) key_files: Vec<PathBuf>,
    /// The configured rules: a denial of a directory holds for sessions as it does for calls.
    pub(crate) rules: Vec<Rule>,
    /// Folders of plugins: calls may read them, and write nothing there.
    pub(crate) plugins: Vec<PathBuf>,
    /// Packages of MCP servers: their servers alone may read them, and no call writes there.
    pub(crate) packages: Vec<PathBuf>,
}

impl ForbiddenDirs {
    /// Checks that a directory, given by its real path, may be added to a session: it must neither
    /// contain a forbidden path nor be inside one, and no configured rule may deny it.
    ///
    /// # Errors
    /// The path, the reason and a remedy.
    pub fn check_added(&self, dir: &Path) -> Result<(), OpenFailure> {
        let reached = |place: &PathBuf| dir.starts_with(place) || place.starts_with(dir);
        match self.paths().into_iter().chain(reached_in_run(dir)).find(reached) {
            None => {
                self.check_packages(dir)?;
                self.check_plugins(dir).and_then(|()| self.check_rules(dir))
            }
            Some(place) => Err(OpenFailure::new(
                RequestFailure::Usage,
                format!(
                    "the directory {} cannot be added: it overlaps {}, and no tool gets access to \
                     keys, passwords, or directories of the system and of agentd. Add another \
                     directory, or copy the files you need into the project",
                    dir.display(),
                    place.display()
                ),
            )),
        }
    }

    fn check_packages(&self, dir: &Path) -> Result<(), OpenFailure> {
        let meets = |package: &&PathBuf| package.starts_with(dir) || dir.starts_with(package);
        match self.packages.iter().find(meets) {
            None => Ok(()),
            Some(package) => Err(OpenFailure::new(
                RequestFailure::Usage,
                format!(
                    "the directory {} cannot be added: it overlaps {}, the package of an MCP server of \
                     this session, and calls could change it. Add another directory",
                    dir.display(),
                    package.display()
                ),
            )),
        }
    }

    /// Checks that calls which may write in a directory change no plugin by that.
    ///
    /// # Errors
    /// The plugin's folder, the reason and a remedy.
    pub(crate) fn check_plugins(&self, dir: &Path) -> Result<(), OpenFailure> {
        let meets = |plugin: &&PathBuf| plugin.starts_with(dir) || dir.starts_with(plugin);
        match self.plugins.iter().find(meets) {
            None => Ok(()),
            Some(plugin) => Err(OpenFailure::new(
                RequestFailure::Configuration,
                format!(
                    "calls of this session may write in {}, and the plugin in {} lies there: they \
                     could change what you trusted, and its hooks would run it. Use a copy of the \
                     plugin elsewhere: cp -r it, then agentd init --plugin-dir COPY",
                    dir.display(),
                    plugin.display()
                ),
            )),
        }
    }

    /// Checks the configured rules only, without reading the disk.
    pub(crate) fn check_rules(&self, dir: &Path) -> Result<(), OpenFailure> {
        let Some(rule) = approval::denying_directory(&self.rules, dir) else { return Ok(()) };
        Err(OpenFailure::new(
            RequestFailure::Configuration,
            format!(
                "the directory {} cannot be added: the rule {} denies it. Add another directory",
                dir.display(),
                approval::rule_with_place(&rule)
            ),
        ))
    }

    /// All paths of keys with which a cage compares its grants: those of all accounts, those of model
    /// APIs and hosts, and those in the project and in added directories; existing or not.
    pub(crate) fn keys_for<'a>(&self, dirs: impl Iterator<Item = &'a FilePath>) -> Vec<FilePath> {
        let named = self.keys.key_paths().into_iter().chain(every_path(self.key_files.clone()));
        let named = named.map(FilePath::from).chain(dirs.flat_map(keys_below));
        let mut seen = HashSet::new();
        named.filter(|path| seen.insert(path.clone())).collect()
    }

    /// Note for a person whose project contains agentd's own directories.
    pub(crate) fn own_dirs_note(&self, project: &Path) -> Option<String> {
        let mut own = self.withheld.iter().map(FilePath::to_path);
        let within = own.find(|own| own.starts_with(project))?;
        Some(format!(
            "agentd's own directory {} is in this project: file tools are refused here, and so \
             are commands in tier B; in tier A commands see it empty. Work in a directory that does not contain it, or \
             move it with XDG_STATE_HOME, XDG_CONFIG_HOME or XDG_RUNTIME_DIR",
            within.display()
        ))
    }

    /// All forbidden paths except those in `RUN`, by every path that leads there.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.paths_with(self.keys.places())
    }

    /// The same with the paths of keys already resolved.
    pub(crate) fn paths_with(&self, keys: Vec<PathBuf>) -> Vec<PathBuf> {
        let named = (self.withheld.iter().map(FilePath::to_path))
            .chain(self.user_file.clone())
            .chain(self.key_files.iter().cloned())
            .chain(OF_SYSTEM.map(PathBuf::from));
        keys.into_iter().chain(every_path(named.collect())).collect()
    }
}

/// The deny rules for these paths. Each covers the paths below it and the directories that contain it.
pub(crate) fn deny_rules(paths: &[PathBuf]) -> Vec<Rule> {
    let texts = RULES_OF_RUN.map(str::to_owned).into_iter();
    let mut seen = HashSet::new();
    let texts = texts.chain(paths.iter().map(|path| rule_text(path)));
    let texts = texts.filter(|text| seen.insert(text.clone()));
    let rule = |text| Rule { effect: RuleEffect::Deny, text, file: "built-in".into(), line: 0 };
    texts.map(rule).collect()
}

/// Paths of keys in a project or an added directory, by the names that keys have in every home.
pub fn keys_below(dir: &FilePath) -> Vec<FilePath> {
    config::key_paths_in(&dir.to_path()).map(FilePath::from).collect()
}

/// The paths of keys in the project, existing or not, and those that contain the project. The person chose
/// the project, so it is not refused.
pub(crate) fn keys_near(project: &Path, keys: &[FilePath]) -> Vec<FilePath> {
    let near = |key: &&FilePath| {
        let key = key.to_path();
        key.starts_with(project) || project.starts_with(key)
    };
    keys.iter().filter(near).cloned().collect()
}

/// Note for a person whose project contains keys, from [`keys_near`].
pub(crate) fn keys_note(keys: &[FilePath]) -> Option<String> {
    let there = keys.iter().map(FilePath::to_path);
    let there: Vec<PathBuf> = there.filter(|path| path.symlink_metadata().is_ok()).collect();
    let first = there.first()?;
    let more = match there.len() {
        1 => String::new(),
        many => format!(" and {} more", many - 1),
    };
    Some(format!(
        "this project contains keys ({}{more}), which the model may read: each call's record \
         lists the keys within its reach",
        first.display()
    ))
}

/// The forbidden path in `RUN` that this directory would reach; `None` for a user's removable disk.
fn reached_in_run(dir: &Path) -> Option<PathBuf> {
    let disk = dir.strip_prefix(MEDIA).is_ok_and(|below| below.components().count() >= 2);
    (!disk).then(|| PathBuf::from(RUN))
}

/// A path that no rule can express denies every directory.
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
    use protocol::call::{Call, CallOrigin};
    use protocol::ids::{CallId, SessionId};
    use protocol::judgement::{
        Audience, EffectReach, ExtraRight, JudgedCall, PermissionMode, RuleSet, ToolKind, Verdict,
    };

    #[test]
    fn keys_are_denied_by_every_path_that_leads_to_them() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let home = base.join("ann [1]");
        std::fs::create_dir_all(home.join(".config")).unwrap();
        std::fs::create_dir(base.join("keys")).unwrap();
        std::os::unix::fs::symlink(base.join("keys"), home.join(".ssh")).unwrap();
        let env = [("CARGO_HOME".to_owned(), "/opt/cargo".to_owned())];
        let (file, dotfile) = (home.join("config.toml"), base.join("dotfile"));
        std::fs::write(&dotfile, "").unwrap();
        std::os::unix::fs::symlink(&dotfile, &file).unwrap();
        let kept = ForbiddenDirs {
            keys: CredentialPaths::of(&env, Some(&home)),
            withheld: vec![FilePath::from("/state/agentd")],
            user_file: Some(file),
            key_files: vec![base.join("model.key")],
            ..ForbiddenDirs::default()
        };
        let rules = deny_rules(&kept.paths());
        let has = |text: String| rules.iter().any(|rule| rule.text == text);
        assert!(has(format!("directory:{}/keys", base.display())));
        assert!(has(format!("directory:{}", dotfile.display())), "nor what leads to it");
        assert!(has(format!("directory:{}/ann \\[1\\]/.ssh", base.display())));
        assert!(has(format!("directory:{}/model.key", base.display())));
        assert!(has("directory:/state/agentd".into()) && has("directory:/opt/cargo".into()));
        assert_eq!(approval::check(&rules).len(), 0, "each can be followed");
    }

    #[test]
    fn of_a_home_of_cargo_in_the_project_only_its_keys_are_kept() {
        let env = [("CARGO_HOME", "/p/cargo"), ("KUBECONFIG", "/p/kube")];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let keys = CredentialPaths::of(&env, Some(Path::new("/h/ann")));
        let kept = ForbiddenDirs { keys, ..ForbiddenDirs::default() };
        let at = |project| keys_near(Path::new(project), &kept.keys_for([].into_iter()));
        let paths =
            |list: &[&str]| list.iter().map(|path| FilePath::from(*path)).collect::<Vec<_>>();
        assert_eq!(
            at("/p"),
            paths(&["/p/cargo/credentials.toml", "/p/cargo/credentials", "/p/kube"])
        );
        assert_eq!(at("/h/ann/.cargo/registry/src/x"), paths(&[]), "no keys lie there");
        assert_eq!(at("/h/ann/.ssh/x"), paths(&["/h/ann/.ssh"]));
        assert!(at("/h/ann").contains(&FilePath::from("/h/ann/.cargo/credentials.toml")));
    }

    #[test]
    fn a_directory_that_a_configured_rule_denies_is_not_added() {
        let rule = |effect, text: &str, line| Rule {
            effect,
            text: text.to_owned(),
            file: "mine.toml".to_owned(),
            line,
        };
        let with = |rules| ForbiddenDirs { rules, ..ForbiddenDirs::default() };
        let kept = with(vec![
            rule(RuleEffect::Ask, "directory:/srv", 1),
            rule(RuleEffect::Deny, "read:/opt", 2),
            rule(RuleEffect::Deny, "directory:/srv/keys", 3),
            rule(RuleEffect::Allow, "directory:/srv/keys/mine", 4),
        ]);
        for dir in ["/srv/keys", "/srv/keys/mine", "/srv"] {
            let failure = kept.check_added(Path::new(dir)).unwrap_err();
            let place = "the rule `directory:/srv/keys` (mine.toml:3) denies it";
            assert!(failure.message.contains(place), "{failure}");
        }
        let odd =
            Path::new(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"/o/\xff"));
        kept.check_added(odd).unwrap_err();
        for dir in ["/srv/data", "/srv/keys2", "/opt/x"] {
            kept.check_added(Path::new(dir)).unwrap();
        }
        // The controls: nothing is denied, and everything.
        let none = with(vec![rule(RuleEffect::Allow, "directory", 1)]);
        for dir in [Path::new("/srv/keys"), odd] {
            none.check_added(dir).unwrap();
            with(vec![rule(RuleEffect::Deny, "directory", 1)]).check_added(dir).unwrap_err();
        }
    }

    #[test]
    fn where_a_path_cannot_be_said_nothing_is_given() {
        let kept = ForbiddenDirs {
            withheld: vec![FilePath::from("/state/a\nb")],
            ..ForbiddenDirs::default()
        };
        assert!(deny_rules(&kept.paths()).iter().any(|rule| rule.text == "directory"));
    }

    #[test]
    fn of_what_services_keep_only_a_persons_disks_are_given() {
        let kept = ForbiddenDirs::default();
        let mut rules = deny_rules(&kept.paths());
        let (effect, text) = (RuleEffect::Allow, "directory".to_owned());
        rules.push(Rule { effect, text, file: "mine".into(), line: 1 });
        let (mode, audience, project) = (PermissionMode::Auto, Audience::Person, "/p".to_owned());
        let rules =
            approval::SessionRules::new(&RuleSet { rules, mode, audience, project }).unwrap();
        // To a session, and to one call.
        let given = |dir: &str| {
            let call = Call {
                id: CallId { session: SessionId("s".into()), number: 1 },
                origin: CallOrigin::PromptPart,
                tool: "bash".into(),
                input: r#"{"command":"ls"}"#.into(),
            };
            let verdict = rules.judge(&JudgedCall {
                call,
                kind: ToolKind::Mutation,
                command: Some("ls".into()),
                page: None,
                probe: None,
                confinement: String::new(),
                extra_rights: vec![ExtraRight::Directory(FilePath::from(dir))],
                configured: None,
                tampered: Box::default(),
                asked: None,
                typed_by: None,
                reach: EffectReach::Unknown,
            });
            (kept.check_added(Path::new(dir)).is_ok(), matches!(verdict, Verdict::Allow(_)))
        };
        for disk in ["/run/media/ann/DISK", "/run/media/ann/DISK/photos", "/run/media/m/.media"] {
            assert_eq!(given(disk), (true, true), "{disk}");
        }
        let none = ["/", "/run", "/run/user/7", "/run/m", "/run/medi", "/run/mediator/ann/DISK"];
        for other in none.into_iter().chain(["/run/media", "/run/media/ann", "/run/docker/a/b"]) {
            assert_eq!(given(other), (false, false), "{other}");
        }
    }
}
