//! Copies of the user's git settings: one cleaned copy for each file. It includes the copies of the
//! files that the original includes, so that git itself evaluates the conditions of `includeIf` in
//! each repository. If the settings sign by ssh, a second set of copies keeps that, for calls that
//! may sign.

use crate::git_keys::{GitSettingAction, action_for, in_words};
use crate::signing;
use crate::{SettingsCopies, SettingsOwner};
use sandbox::{GitSetting, git_path, git_settings};
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Limit of copied files; further includes are omitted.
const MAX_FILES: usize = 100;
/// Files that git reads by default if no setting names another.
const DEFAULT_FILES: [(&str, &str); 2] =
    [("excludesFile", "ignore"), ("attributesFile", "attributes")];

/// Makes the copies, if the user has git settings.
pub(crate) fn copy(person: &SettingsOwner<'_>, dir: &Path, into: &mut SettingsCopies) {
    if let Some(whole) = copy_into(person, dir, GitCopySet::Usual, into) {
        into.variables.push(("GIT_CONFIG_GLOBAL".to_owned(), whole.display().to_string()));
    }
    let mut copies = SettingsCopies::default();
    let whole = copy_into(person, dir, GitCopySet::Signing, &mut copies);
    into.signing = copies.signing;
    if into.signing.keys.is_empty() {
        return;
    }
    into.signing.settings = whole;
    into.files.extend(copies.files);
}

/// The two sets of copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GitCopySet {
    /// Without signatures.
    Usual,
    /// For calls that may sign.
    Signing,
}

impl GitCopySet {
    fn folder(self) -> &'static str {
        match self {
            Self::Usual => "git",
            Self::Signing => "git-sign",
        }
    }
}

/// Makes one set and returns the path of its first file.
fn copy_into(
    person: &SettingsOwner<'_>,
    dir: &Path,
    set: GitCopySet,
    into: &mut SettingsCopies,
) -> Option<PathBuf> {
    let of_git = person.config_home().join("git");
    let roots = match person.env.iter().find(|(name, _)| name == "GIT_CONFIG_GLOBAL") {
        Some((_, file)) => vec![PathBuf::from(file)],
        None => vec![of_git.join("config"), person.home.join(".gitconfig")],
    };
    let mut walk = GitSettingsCopier { person, dir, set, into, known: BTreeMap::new() };
    let mut text = Vec::new();
    for (key, name) in DEFAULT_FILES {
        let file = of_git.join(name);
        let copied = file.is_file().then(|| walk.file(&file)).flatten();
        if let Some(copied) = copied {
            text.extend_from_slice(b"[core]\n");
            line(&mut text, key, Some(copied.as_os_str().as_bytes()));
        }
    }
    for root in roots {
        if let Some(copied) = walk.settings(&root) {
            text.extend_from_slice(b"[include]\n");
            line(&mut text, "path", Some(copied.as_os_str().as_bytes()));
        }
    }
    if text.is_empty() {
        return None;
    }
    let name = PathBuf::from(set.folder()).join("config");
    let whole = dir.join(&name);
    into.files.push((name, text));
    Some(whole)
}

struct GitSettingsCopier<'a> {
    person: &'a SettingsOwner<'a>,
    dir: &'a Path,
    set: GitCopySet,
    into: &'a mut SettingsCopies,
    /// Original and copy of each file.
    known: BTreeMap<PathBuf, PathBuf>,
}

impl GitSettingsCopier<'_> {
    /// Copies a settings file and all that it includes; `None` if it is omitted.
    fn settings(&mut self, file: &Path) -> Option<PathBuf> {
        let real = file.canonicalize().ok()?;
        if self.is_led(file) {
            return None;
        }
        // Commands can read the original.
        if self.person.can_be_written(file) {
            return Some(real);
        }
        if let Some(copied) = self.known.get(&real) {
            return Some(copied.clone());
        }
        if self.person.is_forbidden(&real) {
            return None;
        }
        let settings = git_settings(&real)?;
        let copied = self.name(&real)?;
        let mut text = Vec::new();
        for setting in settings {
            self.setting(setting, (file, &real), &mut text);
        }
        self.put(&copied, text);
        Some(copied)
    }

    fn setting(&mut self, setting: GitSetting, by: (&Path, &Path), text: &mut Vec<u8>) {
        let GitSetting { section, name, key, value } = &setting;
        if self.set == GitCopySet::Signing && signing::is_signing_setting(&setting) {
            let value = signing::copied_value(&setting, by.0, self.person, &mut self.into.signing);
            if let Some(value) = value {
                head(text, section, None);
                line(text, key, Some(value.as_bytes()));
            }
            return;
        }
        let given = match action_for(&setting) {
            GitSettingAction::Copy => value.clone(),
            GitSettingAction::Replace(clean) => {
                self.into.left_out.insert(format!("a password in git's {}", in_words(&setting)));
                Some(clean.into_bytes())
            }
            GitSettingAction::Skip => return,
            GitSettingAction::Block => {
                self.into.left_out.insert(format!("git's {}", label(&setting)));
                head(text, section, name.as_deref());
                line(text, "required", Some(b"true"));
                return;
            }
            GitSettingAction::Omit => {
                self.into.left_out.insert(format!("git's {}", label(&setting)));
                return;
            }
            GitSettingAction::File => value.as_deref().map(|value| self.named(value, by.0)),
            GitSettingAction::Include => {
                let home = Some(self.person.home.as_path());
                let path = value.as_deref().and_then(|value| git_path(value, by.0, home));
                match path.and_then(|path| self.settings(&path)) {
                    Some(copied) => Some(copied.as_os_str().as_bytes().to_vec()),
                    None => return,
                }
            }
        };
        let name = name.as_deref().map(|name| match section.as_str() {
            "includeif" => condition(name, by.1, &self.person.home),
            _ => name.to_vec(),
        });
        head(text, section, name.as_deref());
        line(text, key, given.as_deref());
    }

    /// The path that a command gets for a file named in a setting. A relative path refers to the
    /// repository.
    fn named(&mut self, value: &[u8], by: &Path) -> Vec<u8> {
        let relative = !value.starts_with(b"/") && !value.starts_with(b"~");
        let path = git_path(value, by, Some(&self.person.home)).filter(|_| !relative);
        match path.map(|path| self.file(&path).unwrap_or(path)) {
            Some(path) => path.as_os_str().as_bytes().to_vec(),
            None => value.to_vec(),
        }
    }

    /// The copy of a file; `None` if it does not exist or must not be copied.
    fn file(&mut self, file: &Path) -> Option<PathBuf> {
        let real = file.canonicalize().ok()?;
        if self.is_led(file) {
            return None;
        }
        if let Some(copied) = self.known.get(&real) {
            return Some(copied.clone());
        }
        let bytes = self.person.to_copy(file)?;
        let copied = self.name(&real)?;
        self.put(&copied, bytes);
        Some(copied)
    }

    /// True if a command could have redirected the path; if so, the note lists it.
    fn is_led(&mut self, file: &Path) -> bool {
        let led = self.person.link_warning(file);
        let is_led = led.is_some();
        self.into.left_out.extend(led);
        is_led
    }

    /// The path for the copy of a file.
    fn name(&mut self, real: &Path) -> Option<PathBuf> {
        let number = self.known.len();
        let copied = self.dir.join(format!("{}/{number}", self.set.folder()));
        (number < MAX_FILES).then(|| self.known.insert(real.to_owned(), copied.clone()));
        self.known.get(real).cloned()
    }

    fn put(&mut self, copied: &Path, bytes: Vec<u8>) {
        let name = copied.strip_prefix(self.dir).unwrap_or(copied);
        self.into.files.push((name.to_owned(), bytes));
    }
}

/// Describes an omitted setting in the note.
fn label(setting: &GitSetting) -> String {
    match setting.section.as_str() {
        "alias" => "aliases with `!` or keys".to_owned(),
        _ => in_words(setting),
    }
}

/// Rewrites a condition of `includeIf` so that it has the same meaning in another file and for
/// another home.
fn condition(name: &[u8], by: &Path, home: &Path) -> Vec<u8> {
    for kind in [&b"gitdir:"[..], b"gitdir/i:"] {
        let Some(rest) = name.strip_prefix(kind) else { continue };
        let base = match rest {
            [b'~', b'/', ..] => home,
            [b'.', b'/', ..] => by.parent().unwrap_or(by),
            _ => return name.to_vec(),
        };
        let mut whole = kind.to_vec();
        for byte in base.as_os_str().as_bytes() {
            // Git takes the replacement of `~` and `.` literally.
            if b"*?[]\\".contains(byte) {
                whole.push(b'\\');
            }
            whole.push(*byte);
        }
        whole.extend_from_slice(rest.get(1..).unwrap_or_default());
        return whole;
    }
    name.to_vec()
}

fn head(text: &mut Vec<u8>, section: &str, name: Option<&[u8]>) {
    text.push(b'[');
    text.extend_from_slice(section.as_bytes());
    if let Some(name) = name {
        text.extend_from_slice(b" \"");
        for byte in name {
            if b"\\\"".contains(byte) {
                text.push(b'\\');
            }
            text.push(*byte);
        }
        text.push(b'"');
    }
    text.extend_from_slice(b"]\n");
}

/// A key with a value, escaped so that git reads these bytes.
fn line(text: &mut Vec<u8>, key: &str, value: Option<&[u8]>) {
    text.push(b'\t');
    text.extend_from_slice(key.as_bytes());
    if let Some(value) = value {
        text.extend_from_slice(b" = \"");
        for byte in value {
            match byte {
                b'\\' => text.extend_from_slice(b"\\\\"),
                b'"' => text.extend_from_slice(b"\\\""),
                b'\n' => text.extend_from_slice(b"\\n"),
                b'\t' => text.extend_from_slice(b"\\t"),
                8 => text.extend_from_slice(b"\\b"),
                other => text.push(*other),
            }
        }
        text.push(b'"');
    }
    text.push(b'\n');
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::copy_settings;

    /// The settings that git reads from the copies, run in the folder.
    fn read_by_git(dir: &Path, folder: &Path, words: &[&str]) -> String {
        let ran = std::process::Command::new("git")
            .args(words)
            .current_dir(folder)
            .env("GIT_CONFIG_GLOBAL", dir.join("git/config"))
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .env("HOME", "/nonexistent")
            .output()
            .expect("git is needed for this test");
        assert!(ran.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    }

    #[test]
    fn git_reads_the_copies_as_it_reads_the_person_s_own() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        let write = |name: &str, text: &str| {
            std::fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            std::fs::write(at(name), text).unwrap();
        };
        write(
            "home/.gitconfig",
            "[user]\n\tname = \"A \\\"B\\\" # \\\\ C\"\n\temail = old@x\n[core]\n\
             excludesFile = ~/lists/ignore\n[commit]\n\ttemplate = ~/lists/template\n\
             [fetch]\n\tprune\n[push]\n\tfollowTags =\n\
             [credential]\n\thelper = store\n[alias]\n\tco = checkout\n\tx = !curl -u token\n\
             [url \"https://token@github.com/\"]\n\tinsteadOf = https://github.com/\n\
             [http]\n\tproxy = http://ann:token@proxy:3128\n\
             [includeIf \"gitdir:~/wo[r]k/\"]\n\tpath = work.inc\n\
             [includeIf \"gitdir:./work/one/\"]\n\tpath = ~/one.inc\n\
             [include]\n\tpath = work/one/team.inc\n",
        );
        write("home/.config/git/config", "[user]\n\temail = first@x\n[color]\n\tui = never\n");
        write("home/.config/git/attributes", "*.x -diff\n");
        write("home/.config/git/credentials", "https://token@github.com\n");
        write("home/work.inc", "[user]\n\temail = work@x\n[github]\n\ttoken = token\n");
        write("home/one.inc", "[user]\n\temail = one@x\n[include]\n\tpath = .gitconfig\n");
        write("home/lists/ignore", ".env\n");
        write("home/lists/template", "Why:\n");
        write("home/work/one/team.inc", "[core]\n\tattributesFile = ~/.ssh/id\n");
        write("home/.ssh/id", "token\n");
        write("home/one.inc", "[user]\n\temail = one@x\n");
        let env = [("HOME".to_owned(), at("home").display().to_string())];
        let person = SettingsOwner {
            env: &env,
            home: at("home"),
            writable: vec![at("home/work/one")],
            elsewhere: Vec::new(),
            forbidden: vec![at("home/.ssh"), at("home/.config/git")],
        };
        let dir = at("dir");
        let given = copy_settings(&person, &dir, None).unwrap();
        let path = dir.join("git/config").display().to_string();
        assert_eq!(given.variables, [("GIT_CONFIG_GLOBAL".to_owned(), path)]);
        let note = given.note.unwrap();
        for said in ["credential.helper", "aliases with `!`", "url.*.insteadof", "http.proxy"] {
            assert!(note.contains(said), "{said}: {note}");
        }
        assert!(!note.contains("core.excludesfile"), "{note}");

        for (folder, email) in
            [("home/play", "old@x"), ("home/work/two", "work@x"), ("home/work/one", "one@x")]
        {
            std::fs::create_dir_all(at(folder)).unwrap();
            let git = |words: &[&str]| read_by_git(&dir, &at(folder), words);
            git(&["init", "-q", "."]);
            assert_eq!(git(&["config", "user.email"]), format!("{email}\n"), "{folder}");
            assert_eq!(git(&["config", "user.name"]), "A \"B\" # \\ C\n");
            assert_eq!(git(&["config", "--bool", "fetch.prune"]), "true\n");
            assert_eq!(git(&["config", "--bool", "push.followTags"]), "false\n");
            assert_eq!(git(&["config", "alias.co"]), "checkout\n");
            assert_eq!(git(&["config", "http.proxy"]), "http://proxy:3128\n");
            write(&format!("{folder}/.env"), "secret");
            write(&format!("{folder}/b"), "");
            assert_eq!(git(&["check-ignore", ".env"]), ".env\n");
        }
        let template = read_by_git(&dir, &at("home/play"), &["config", "commit.template"]);
        assert_eq!(std::fs::read_to_string(template.trim_end()).unwrap(), "Why:\n");
        for entry in std::fs::read_dir(dir.join("git")).unwrap() {
            let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            assert!(!text.contains("token"), "{text}");
        }
    }

    #[test]
    fn a_file_that_a_command_could_have_led_elsewhere_is_not_copied() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let at = |name: &str| root.join("home").join(name);
        let write = |name: &str, text: &str| {
            std::fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            std::fs::write(at(name), text).unwrap();
        };
        let copies = |person: &SettingsOwner<'_>| {
            let dir = root.join("dir");
            let given = copy_settings(person, &dir, None).unwrap();
            let mut text = String::new();
            let mut folders = vec![dir];
            while let Some(folder) = folders.pop() {
                for entry in std::fs::read_dir(folder).unwrap() {
                    let path = entry.unwrap().path();
                    match path.is_dir() {
                        true => folders.push(path),
                        false => text.push_str(&std::fs::read_to_string(path).unwrap()),
                    }
                }
            }
            (given, text)
        };
        write(
            ".gitconfig",
            "[core]\n\texcludesFile = ~/dotfiles/ignore\n[commit]\n\ttemplate = ~/outer\n\
             [include]\n\tpath = ~/dotfiles/inc\n[user]\n\tname = A\n",
        );
        write("private/notes", "private-notes\n");
        write("private/inc", "[user]\n\temail = private@x\n");
        write("private/git/attributes", "private-attributes\n");
        write("private/npmrc", "registry=https://private-registry.example/\n");
        write("private/cert", "private-certificate\n");
        write(".config/pip/pip.conf", "");
        std::fs::write(
            at(".config/pip/pip.conf"),
            format!("[global]\ncert = {}\n", at("led/cert").display()),
        )
        .unwrap();
        std::fs::create_dir_all(at("dotfiles")).unwrap();
        std::fs::create_dir_all(at(".m2")).unwrap();
        write("private/settings.xml", "<settings/>");
        for (to, link) in [
            ("private/notes", "dotfiles/ignore"),
            ("dotfiles/inner", "outer"),
            ("private/notes", "dotfiles/inner"),
            ("private/inc", "dotfiles/inc"),
            ("dotfiles/git", ".config/git"),
            ("private/git", "dotfiles/git"),
            ("private/npmrc", "dotfiles/npmrc"),
            ("dotfiles/npmrc", ".npmrc"),
            ("dotfiles/private", "led"),
            ("private", "dotfiles/private"),
            ("dotfiles/settings.xml", ".m2/settings.xml"),
            ("private/settings.xml", "dotfiles/settings.xml"),
        ] {
            std::os::unix::fs::symlink(at(to), at(link)).unwrap();
        }
        let env = [("HOME".to_owned(), at("").display().to_string())];
        let mut person = SettingsOwner {
            env: &env,
            home: root.join("home"),
            writable: vec![at("dotfiles")],
            elsewhere: Vec::new(),
            forbidden: vec![at(".ssh"), at(".config/git")],
        };
        let (given, text) = copies(&person);
        assert!(text.contains("name = \"A\""), "{text}");
        assert!(!text.contains("private-") && !text.contains("private@"), "{text}");
        assert_eq!(given.readable_in_place, []);
        let note = given.note.unwrap();
        assert!(note.contains("dotfiles/ignore (commands can write"), "{note}");
        // The control: by the same links, where no command can write them.
        person.writable = vec![at("elsewhere")];
        let (given, text) = copies(&person);
        for word in [
            "private-notes",
            "private@x",
            "private-attributes",
            "private-registry",
            "private-certificate",
        ] {
            assert!(text.contains(word), "{word}: {text}");
        }
        assert_eq!(given.readable_in_place, [(config::MAVEN_SETTINGS, at(".m2/settings.xml"))]);
    }

    #[test]
    fn git_refuses_where_a_filter_is_left_out() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let home = root.join("home");
        let folder = home.join("work");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(
            home.join(".gitconfig"),
            "[filter \"pw\"]\n\trequired = false\n\tclean = sed s/hunter/X/\n\
             [filter \"plain\"]\n\tclean = cat\n",
        )
        .unwrap();
        let person = SettingsOwner {
            env: &[],
            home,
            writable: Vec::new(),
            elsewhere: Vec::new(),
            forbidden: Vec::new(),
        };
        let dir = root.join("dir");
        let given = copy_settings(&person, &dir, None).unwrap();
        assert!(given.note.unwrap().contains("git's filter.*.clean"));
        read_by_git(&dir, &folder, &["init", "-q", "."]);
        for (name, text) in [
            (".gitattributes", "pw filter=pw\nplain filter=plain\n"),
            ("pw", "hunter\n"),
            ("plain", "a\n"),
        ] {
            std::fs::write(folder.join(name), text).unwrap();
        }
        read_by_git(&dir, &folder, &["add", "plain"]);
        let refused = std::process::Command::new("git")
            .args(["add", "pw"])
            .current_dir(&folder)
            .env("GIT_CONFIG_GLOBAL", dir.join("git/config"))
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .output()
            .unwrap();
        assert!(!refused.status.success());
        assert_eq!(read_by_git(&dir, &folder, &["ls-files"]), "plain\n");
        for entry in std::fs::read_dir(dir.join("git")).unwrap() {
            let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            assert!(!text.contains("hunter"), "{text}");
        }
    }

    #[test]
    fn who_has_no_settings_is_given_none() {
        let root = tempfile::tempdir().unwrap();
        let person = SettingsOwner {
            env: &[],
            home: root.path().to_owned(),
            writable: Vec::new(),
            elsewhere: Vec::new(),
            forbidden: Vec::new(),
        };
        let given = copy_settings(&person, &root.path().join("dir"), None).unwrap();
        assert_eq!(given, Default::default());
    }
}
