//! The environment of commands and the shell that runs them. Used by the session specification.

use protocol::confinement::Confinement;
use std::path::{Path, PathBuf};

/// Search path if the client has none.
const PLAIN_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Directories of bash besides those in PATH.
const BASH_PLACES: [&str; 3] = ["/bin", "/usr/bin", "/usr/local/bin"];

/// The shell of a host without bash; POSIX requires one there.
const PLAIN_SHELL: &str = "/bin/sh";

/// The shell that runs the scripts of the tool `bash`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CommandShell {
    /// Bash, by its real path.
    Bash(String),
    /// [`PLAIN_SHELL`].
    Plain,
}

impl CommandShell {
    /// The first bash in PATH that a command can start, then one in the system's directories. A
    /// bash that a command can write is skipped: a model could have put it there.
    pub(crate) fn find(env: &[(String, String)], wanted: &Confinement) -> Self {
        let path = value(env, "PATH").unwrap_or(PLAIN_PATH);
        Self::among(std::env::split_paths(path).chain(BASH_PLACES.map(PathBuf::from)), wanted)
    }

    fn among(folders: impl Iterator<Item = PathBuf>, wanted: &Confinement) -> Self {
        let own = || [&wanted.project, &wanted.temp].into_iter().chain(&wanted.added);
        let writable = |real: &Path| own().any(|dir| real.starts_with(dir.to_path()));
        let mut found = folders
            .filter(|folder| folder.is_absolute())
            .filter_map(|folder| sandbox::startable(wanted, &folder.join("bash")))
            .filter(|real| !writable(real))
            // A multi-call program acts by the name it is called by.
            .filter(|real| named_bash(real))
            .filter_map(|real| real.into_os_string().into_string().ok());
        found.next().map_or(Self::Plain, Self::Bash)
    }

    /// Its path.
    pub(crate) fn path(&self) -> &str {
        match self {
            Self::Bash(path) => path,
            Self::Plain => PLAIN_SHELL,
        }
    }

    /// The sentence about it in the tool's description.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Bash(path) => format!("The shell is bash ({path}), run with -c."),
            Self::Plain => format!(
                "The shell is {PLAIN_SHELL}, run with -c, since commands cannot start a bash here: \
                 write for a POSIX shell."
            ),
        }
    }
}

fn named_bash(real: &Path) -> bool {
    real.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("bash"))
}

fn value<'a>(env: &'a [(String, String)], wanted: &str) -> Option<&'a str> {
    env.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
}

/// The whole environment of a command: the client's variables that it may see, then those with the
/// same value in every command. `added` names more variables that the user's configuration passes.
pub(crate) fn command_env(
    (env, added): (&[(String, String)], &[String]),
    wanted: &Confinement,
    shell: &CommandShell,
) -> Vec<(String, String)> {
    let temp = wanted.temp_in(wanted.highest_tier);
    let may_see = |name: &str, value: &str| {
        config::command_may_see(name, value) || config::is_added(added, name, value)
    };
    let mut reduced: Vec<_> =
        env.iter().filter(|(name, value)| may_see(name, value)).cloned().collect();
    // Tier A shows the home only at its real path.
    let home = wanted.home.as_ref().map(|home| home.to_path().display().to_string());
    let named = reduced.iter_mut().find(|(name, _)| name == "HOME");
    if let (Some((_, value)), Some(home)) = (named, home) {
        *value = home;
    }
    if value(&reduced, "PATH").is_none() {
        reduced.push(("PATH".into(), PLAIN_PATH.into()));
    }
    let path = reduced.iter_mut().find(|(name, _)| name == "PATH");
    path.into_iter().for_each(|(_, path)| *path = shown(path, wanted));
    let fixed = config::FOR_COMMANDS.map(|(name, value)| (name.to_owned(), value.to_owned()));
    // Programs split the value at blanks or pass it to a shell. With `sh` in front the editor also
    // starts from a directory that is mounted `noexec`.
    let editor = format!("{PLAIN_SHELL} {}", editor(&temp).display());
    let editors = EDITORS.map(|name| (name.to_owned(), editor.clone()));
    let own = [
        ("SHELL".to_owned(), shell.path().to_owned()),
        ("TMPDIR".to_owned(), temp.display().to_string()),
        ("AI_AGENT".to_owned(), "agentd".to_owned()),
    ];
    let ours: Vec<_> = fixed.into_iter().chain(editors).chain(own).collect();
    // If a variable is set twice, most programs use the first value.
    reduced.retain(|(name, _)| !ours.iter().any(|(own, _)| own == name));
    reduced.into_iter().chain(ours).collect()
}

/// A search path with links resolved: a link to a program directory may lie where commands see
/// nothing. The system's links (`/bin`) exist in each tier.
fn shown(path: &str, wanted: &Confinement) -> String {
    let places = sandbox::runnable_paths(wanted);
    let real = |dir: &str| {
        let dir = Path::new(dir);
        let is_deep = dir.is_absolute() && dir.components().count() > 2;
        let real = is_deep.then(|| dir.canonicalize().ok()).flatten()?;
        let is_run = places.iter().any(|place| real.starts_with(place));
        real.into_os_string().into_string().ok().filter(|real| is_run && !real.contains(':'))
    };
    let dirs = path.split(':').map(|dir| real(dir).unwrap_or_else(|| dir.to_owned()));
    dirs.collect::<Vec<_>>().join(":")
}

/// Variables that name an editor.
const EDITORS: [&str; 4] = ["EDITOR", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "VISUAL"];

/// The path of the editor of commands in their temporary directory.
pub fn editor(temp: &Path) -> PathBuf {
    temp.join("no-editor")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use protocol::confinement::{FilePath, Level, Profile};
    use std::os::unix::fs::OpenOptionsExt;

    fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn bash_is_taken_only_from_where_a_command_can_start_and_not_change_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        let bash = |folder: &str, mode: u32| {
            std::fs::create_dir_all(at(folder)).unwrap();
            let mut options = std::fs::OpenOptions::new();
            options.write(true).create(true).mode(mode).open(at(folder).join("bash")).unwrap();
        };
        bash("project/bin", 0o755);
        bash("added", 0o755);
        bash("elsewhere", 0o755);
        bash("home/.nvm", 0o644);
        bash("home/.pyenv", 0o755);
        std::fs::write(at("home/.pyenv/busybox"), "").unwrap();
        std::fs::rename(at("home/.pyenv/bash"), at("home/.pyenv/busybox")).unwrap();
        std::os::unix::fs::symlink("busybox", at("home/.pyenv/bash")).unwrap();
        bash("home/.rbenv/versions", 0o755);
        std::fs::create_dir_all(at("profile")).unwrap();
        std::os::unix::fs::symlink(at("home/.rbenv/versions/bash"), at("profile/bash")).unwrap();
        let wanted = wanted(&root);
        let find = |folders: &[&str]| {
            CommandShell::among(folders.iter().map(|folder| at(folder)), &wanted).path().to_owned()
        };
        let refused = ["project/bin", "added", "elsewhere", "home/.nvm", "home/.pyenv", "nowhere"];
        for folder in refused {
            assert_eq!(find(&[folder]), "/bin/sh", "{folder}");
        }
        // A link leads from a directory outside of the cage to one inside.
        let real = at("home/.rbenv/versions/bash").display().to_string();
        assert_eq!(find(&[&refused[..], &["profile"]].concat()), real);
        let relative =
            CommandShell::among([PathBuf::from("home/.rbenv/versions")].into_iter(), &wanted);
        assert_eq!(relative, CommandShell::Plain);
        let uncaged = Confinement { level: Level::Uncaged, ..wanted };
        let found = CommandShell::among([at("elsewhere")].into_iter(), &uncaged);
        assert_eq!(found.path(), at("elsewhere/bash").display().to_string());
    }

    fn wanted(root: &Path) -> Confinement {
        let at = |name: &str| FilePath::from(root.join(name));
        Confinement {
            added: vec![at("added")],
            home: Some(at("home")),
            ..Confinement::closed(Profile::Command, at("project"), at("temp"))
        }
    }

    #[test]
    fn no_key_no_loader_variable_and_no_startup_file_reaches_a_command() {
        let given = owned(&[
            ("PATH", "/bin"),
            ("ANTHROPIC_API_KEY", "secret"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("LD_PRELOAD", "/x.so"),
            ("SSH_AUTH_SOCK", "/s"),
            ("BASH_ENV", "/h/.bashrc"),
            ("ENV", "/h/.shrc"),
            ("SHELLOPTS", "xtrace"),
            ("BASHOPTS", "extglob"),
            ("BASH_FUNC_ls%%", "() { :; }"),
            ("SSH_CLIENT", "1.2.3.4 5 6"),
            ("CDPATH", "/h"),
            ("POSIXLY_CORRECT", "1"),
            ("LC_ALL", "C"),
            ("HOME", "/h"),
            ("CI", "true"),
        ]);
        let env = command_env((&given, &[]), &wanted(Path::new("/")), &CommandShell::Plain);
        let names: Vec<_> = env.iter().map(|(name, _)| name.as_str()).collect();
        let fixed = config::FOR_COMMANDS.map(|(name, _)| name);
        let own = ["SHELL", "TMPDIR", "AI_AGENT"];
        let wanted = [&["PATH", "LC_ALL", "HOME", "CI"], &fixed[..], &EDITORS, &own].concat();
        assert_eq!(names, wanted);
    }

    #[test]
    fn a_person_s_editor_pager_and_terminal_are_not_a_command_s() {
        let given = owned(&[
            ("TERM", "xterm-256color"),
            ("EDITOR", "vi"),
            ("VISUAL", "code --wait"),
            ("GIT_EDITOR", "nano"),
            ("PAGER", "less"),
            ("GIT_PAGER", "delta"),
            ("GIT_ASKPASS", "/usr/bin/ksshaskpass"),
            ("SHELL", "/usr/bin/fish"),
        ]);
        let env = command_env((&given, &[]), &wanted(Path::new("/")), &CommandShell::Plain);
        for (name, wanted) in [
            ("TERM", "dumb"),
            ("PAGER", "cat"),
            ("GIT_PAGER", "cat"),
            ("GIT_ASKPASS", ""),
            ("EDITOR", "/bin/sh /temp/no-editor"),
            ("VISUAL", "/bin/sh /temp/no-editor"),
            ("GIT_EDITOR", "/bin/sh /temp/no-editor"),
            ("SHELL", "/bin/sh"),
        ] {
            let values: Vec<_> = env.iter().filter(|(other, _)| other == name).collect();
            assert_eq!(values, [&(name.to_owned(), wanted.to_owned())]);
        }
    }

    #[test]
    fn a_command_without_a_path_gets_a_plain_one() {
        let env = command_env((&[], &[]), &wanted(Path::new("/")), &CommandShell::Plain);
        assert!(env.contains(&("PATH".into(), PLAIN_PATH.into())));
    }
}
