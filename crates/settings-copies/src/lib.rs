//! Cleaned copies of the user's settings of git and of package managers. Commands and git's tools
//! get copies without keys and without names of programs, in a directory that no call can write.
//!
//! | File | Reads and cleans |
//! |---|---|
//! | `git`, `git_keys` | git's settings; which keys are copied, changed or left out |
//! | `signing` | git's settings for signatures |
//! | `packages`, `ini`, `toml` | the settings of npm, pip, cargo and uv |
//! | `certificates` | the authorities that commands trust |

mod certificates;
mod cleaned;
mod git;
mod git_keys;
mod ini;
mod packages;
mod signing;
mod toml;

use config::secrets::holds_private_key;
pub use signing::{CommitSigning, SigningSettings};
use std::collections::BTreeSet;
use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Most keys that the note lists.
const MAX_LISTED: usize = 8;

/// The owner of the settings.
#[derive(Debug)]
pub struct SettingsOwner<'a> {
    /// The client's environment.
    pub env: &'a [(String, String)],
    /// Its real path.
    pub home: PathBuf,
    /// Paths that commands can write. A model may have written a settings file in them, so files
    /// that it names are not copied.
    pub writable: Vec<PathBuf>,
    /// Paths that commands of other projects can write: no file is copied by a link in them.
    pub elsewhere: Vec<PathBuf>,
    /// Paths with keys or agentd's own files, which are not copied.
    pub forbidden: Vec<PathBuf>,
}

/// The copies of one session.
#[derive(Debug, Default, PartialEq, Eq)]
struct SettingsCopies {
    /// Path below the directory, and content.
    files: Vec<(PathBuf, Vec<u8>)>,
    /// Variables that point programs to the copies.
    variables: Vec<(String, String)>,
    /// Descriptions of omitted settings.
    left_out: BTreeSet<String>,
    /// Git's settings for signatures.
    signing: SigningSettings,
}

/// The copies as a session uses them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CopiedSettings {
    /// Variables that point programs to the copies.
    pub variables: Vec<(String, String)>,
    /// Settings in the home that may be read directly, with the names that policies use for them.
    pub readable_in_place: Vec<(&'static str, PathBuf)>,
    /// Git's settings for signatures.
    pub signing: SigningSettings,
    /// A sentence about omitted settings.
    pub note: Option<String>,
}

/// Reads the owner's settings and writes the copies into this directory, in place of older ones. If
/// proxies sign in, commands also get this authority to trust.
///
/// # Errors
/// If a copy cannot be written.
pub fn copy_settings(
    person: &SettingsOwner<'_>,
    dir: &Path,
    authority: Option<&str>,
) -> io::Result<CopiedSettings> {
    let mut copies = SettingsCopies::default();
    git::copy(person, dir, &mut copies);
    packages::copy(person, dir, &mut copies);
    if let Some(authority) = authority {
        certificates::add(person, dir, authority, &mut copies);
    }
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => DirBuilder::new().mode(0o700).create(dir)?,
    }
    for (name, bytes) in &copies.files {
        let path = dir.join(name);
        let folder = path.parent().unwrap_or(dir);
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(bytes)?;
    }
    let (as_they_are, closed) = packages::in_home(person);
    copies.left_out.extend(closed);
    let note = note(&copies.left_out);
    let SettingsCopies { variables, signing, .. } = copies;
    Ok(CopiedSettings { variables, readable_in_place: as_they_are, signing, note })
}

fn note(left_out: &BTreeSet<String>) -> Option<String> {
    let mut named: Vec<&str> = left_out.iter().take(MAX_LISTED).map(String::as_str).collect();
    let more = format!("{} more", left_out.len().saturating_sub(MAX_LISTED));
    if left_out.len() > MAX_LISTED {
        named.push(&more);
    }
    (!left_out.is_empty()).then(|| {
        format!(
            "commands get your settings without those that can hold keys or run programs: {}",
            named.join(", ")
        )
    })
}

impl SettingsOwner<'_> {
    /// The value of a variable that is set and not empty.
    fn value(&self, wanted: &str) -> Option<&str> {
        let found = self.env.iter().find(|(name, value)| name == wanted && !value.is_empty());
        found.map(|(_, value)| value.as_str())
    }

    /// The directory of programs' settings.
    fn config_home(&self) -> PathBuf {
        let moved = self.value("XDG_CONFIG_HOME").map(Path::new);
        let moved = moved.filter(|path| path.is_absolute()).map(Path::to_owned);
        moved.unwrap_or_else(|| self.home.join(".config"))
    }

    /// Content for the copy of a file; `None` if it must not be copied. Checked by the path that
    /// names it, because a command may have made a link on the way.
    fn to_copy(&self, file: &Path) -> Option<Vec<u8>> {
        if self.can_be_written(file) || self.is_forbidden(file) {
            return None;
        }
        // A certificate file may contain a private key.
        sandbox::small_file(file).filter(|bytes| !holds_private_key(bytes))
    }

    /// True if a command could have written the file, or redirected its path to another.
    fn can_be_written(&self, file: &Path) -> bool {
        sandbox::is_led_by_commands(file, &self.writable, &self.elsewhere)
    }

    /// A warning if a command could have redirected the path.
    fn link_warning(&self, file: &Path) -> Option<String> {
        let places = [&self.writable[..], &self.elsewhere].concat();
        let is_led = file.symlink_metadata().is_ok() && sandbox::is_redirectable_in(file, &places);
        is_led.then(|| format!("{} (commands can write a link on the way to it)", file.display()))
    }

    /// True if the file may contain keys. In git's configuration directory only `credentials*`
    /// files do.
    fn is_forbidden(&self, file: &Path) -> bool {
        let of_git = self.config_home().join("git");
        let found = of_git.canonicalize().ok().filter(|_| !self.can_be_written(&of_git));
        let of_git = found.unwrap_or(of_git);
        let real = file.canonicalize().unwrap_or_else(|_| file.to_owned());
        match real.strip_prefix(&of_git) {
            Ok(name) => name.starts_with("credentials"),
            Err(_) => self.lies_in(&self.forbidden, file),
        }
    }

    fn lies_in(&self, places: &[PathBuf], file: &Path) -> bool {
        let real = file.canonicalize().unwrap_or_else(|_| file.to_owned());
        places.iter().any(|place| real.starts_with(place) || file.starts_with(place))
    }
}
