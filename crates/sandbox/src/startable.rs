//! Finds the programs that a command could start, before a cage exists. A session offers only
//! these.

use crate::grants::{KeyPlaces, OpenedGrant, from_variable};
use crate::policy::{self, GrantTarget};
use crate::resolved_path::is_redirectable_in;
use nix::unistd::{AccessFlags, access};
use protocol::confinement::{Confinement, FilePath, Level};
use std::path::{Path, PathBuf};

/// The real path of `program`, if a command of this cage can start it by that path: it is
/// executable, and it is below a grant that allows execution.
///
/// The real path, since tier A shows a symbolic link only if the link itself is granted.
#[must_use]
pub fn startable(wanted: &Confinement, program: &Path) -> Option<PathBuf> {
    let real = program.canonicalize().ok()?;
    let executable = real.is_file() && access(&real, AccessFlags::X_OK).is_ok();
    let granted = || {
        wanted.level == Level::Uncaged
            || runnable_grants(wanted).any(|place| real.starts_with(place))
    };
    (executable && granted()).then_some(real)
}

/// True if a command of this cage can start the program with this name in this directory. Both the
/// directory and the target of a link in it must be below a grant that allows execution.
#[must_use]
pub fn startable_by_name(wanted: &Confinement, folder: &Path, name: &str) -> bool {
    let in_grants = || {
        let real = folder.canonicalize();
        real.is_ok_and(|real| runnable_grants(wanted).any(|place| real.starts_with(place)))
    };
    startable(wanted, &folder.join(name)).is_some()
        && (wanted.level == Level::Uncaged || in_grants())
}

/// The real paths below which commands of this cage can start programs.
#[must_use]
pub fn runnable_paths(wanted: &Confinement) -> Vec<PathBuf> {
    runnable_grants(wanted).collect()
}

fn runnable_grants(wanted: &Confinement) -> impl Iterator<Item = PathBuf> {
    let home = wanted.home.as_ref().map(FilePath::to_path);
    let rules = policy::of(wanted.profile).grants.iter().filter(|rule| rule.access.runs());
    let written = wanted.written();
    let elsewhere: Vec<_> = wanted.written_elsewhere.iter().map(FilePath::to_path).collect();
    let keys = KeyPlaces::of(wanted);
    let places = rules.flat_map(move |rule| {
        let named = match rule.at {
            GrantTarget::Project => vec![wanted.project.to_path()],
            GrantTarget::Temp => vec![wanted.temp.to_path()],
            GrantTarget::Added => wanted.added.iter().map(FilePath::to_path).collect(),
            GrantTarget::Caches => wanted.caches.iter().map(FilePath::to_path).collect(),
            // These have other paths outside the cage.
            GrantTarget::Git | GrantTarget::Private => Vec::new(),
            GrantTarget::Path(path) => vec![path.into()],
            GrantTarget::Home(rest) => home.iter().map(|home| home.join(rest)).collect(),
            GrantTarget::Variable { name, rest } => {
                let named = wanted.tool_homes.iter().filter(|(home, _)| home == name);
                let bases = named.map(|(_, base)| Some(base.to_path()));
                bases.filter_map(|base| from_variable(base, rest, home.as_deref())).collect()
            }
        };
        named.into_iter().map(|named| (rule.at, named))
    });
    // The cage leaves out a grant that is reached through a link that commands can write, or that
    // reaches keys.
    places.filter_map(move |(at, named)| {
        let of_home = matches!(at, GrantTarget::Home(_) | GrantTarget::Variable { .. });
        let is_led = is_redirectable_in(&named, &written)
            || (of_home && is_redirectable_in(&named, &elsewhere));
        let real = named.canonicalize().ok().filter(|_| !is_led)?;
        let grant = OpenedGrant { at, named: &named, real: &real };
        keys.reached_by(grant).is_none().then_some(real)
    })
}
