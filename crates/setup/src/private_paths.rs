//! Where the private directories of a session lie, and where its commands see them. Used by the session
//! specification, and where the directories are made and removed.

use protocol::confinement::{Confinement, FilePath, PrivateDir, TEMPORARY};
use std::path::{Path, PathBuf};

/// Prefix of the directory of a session; the session's id follows.
pub const PREFIX: &str = "agentd-";
/// The private directory that commands see at `/tmp`; each name is one within the session's directory.
pub const TMP: &str = "tmp";
/// The one at `/var/tmp`.
pub const VAR_TMP: &str = "var-tmp";
/// The one at the home.
pub const HOME: &str = "home";
/// Copies of the owner's settings, which no call writes.
pub const SETTINGS: &str = "settings";

/// The preferred path of the session's directory.
pub fn session_dir_path(root: &Path, session: &str) -> PathBuf {
    root.join(format!("{PREFIX}{session}"))
}

/// Mount points of tier A. The home is mounted only if it is a directory of its own: `/` contains
/// everything, and a home in `/tmp` or `/var/tmp` is private with it.
pub(crate) fn mounts(path: &Path, home: Option<&Path>) -> Vec<PrivateDir> {
    let of_machine = TEMPORARY.map(Path::new).into_iter().zip([TMP, VAR_TMP]);
    let apart = |home: &&Path| {
        let meets = |dir: &Path| home.starts_with(dir) || dir.starts_with(home);
        home.parent().is_some() && !TEMPORARY.map(Path::new).into_iter().any(meets)
    };
    let home = home.filter(apart).map(|home| (home, HOME));
    let dir = |(shown_at, name): (&Path, &str)| PrivateDir {
        shown_at: FilePath::from(shown_at),
        kept_at: FilePath::from(path.join(name)),
    };
    of_machine.chain(home).map(dir).collect()
}

/// Sets the path that the session's directory has.
pub fn set_location(made: &Path, confinement: &mut Confinement) {
    let private = confinement.private.iter_mut().map(|dir| &mut dir.kept_at);
    for kept_at in std::iter::once(&mut confinement.temp).chain(private) {
        let old = kept_at.to_path();
        *kept_at = FilePath::from(made.join(old.file_name().unwrap_or_default()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_is_shown_where_it_is_a_place_by_itself() {
        for (home, own) in [
            (Some("/home/ann"), true),
            (Some("/tmpfs/ann"), true),
            (Some("/"), false),
            (Some("/tmp"), false),
            (Some("/var/tmp/ann"), false),
            (Some("/var"), false),
            (None, false),
        ] {
            let shown = mounts(Path::new("/tmp/agentd-1"), home.map(Path::new));
            assert_eq!(shown.len(), if own { 3 } else { 2 }, "{home:?}");
        }
    }
}
