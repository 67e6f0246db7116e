//! Several files changed together: where one cannot be, those before it become what they were. For
//! `apply_patch`.

use crate::failure::{Code, Failure};
use crate::remove;
use crate::replace::{Before, LOADED_MAX, before, replace};
use crate::site::{Account, Site, Target};
use crate::syntax::Engine;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A file as it was found, and as it will be.
#[derive(Debug)]
pub(crate) struct Change {
    pub target: Target,
    /// Absent where nothing was there.
    pub before: Option<Before>,
    /// What it will hold; absent where nothing will be there.
    pub after: Option<Vec<u8>>,
    /// The permissions that it will have, where they are not those that it has.
    pub mode: Option<u32>,
    /// Directories that will be made for it, the deepest first.
    made: Vec<PathBuf>,
}

impl Change {
    /// A file as it is: nothing will change yet.
    ///
    /// # Errors
    /// As [`before`]; `too_large` where it could not be held to be put back.
    pub fn of(target: Target, site: &Site<'_>) -> Result<Self, Failure> {
        let before = before(site, &target)?;
        if let Some(Before { bytes: None, size, .. }) = &before {
            return Err(Failure::new(
                Code::TooLarge,
                format!(
                    "{:?} has {size} bytes; a file of a patch may have {LOADED_MAX}",
                    target.named
                ),
                "Nothing was changed. Use delete or bash for it.",
            ));
        }
        let after = before.as_ref().and_then(|before| before.bytes.clone());
        let mode = before.as_ref().map(Before::mode);
        let missing = |dir: &&Path| dir.symlink_metadata().is_err();
        let made =
            target.real.ancestors().skip(1).take_while(missing).map(Path::to_owned).collect();
        Ok(Self { target, before, after, mode, made })
    }

    fn changes(&self) -> bool {
        self.before.as_ref().and_then(|before| before.bytes.as_ref()) != self.after.as_ref()
    }

    fn forward(&self) -> Result<(), Failure> {
        match (&self.before, &self.after) {
            (before, Some(after)) => {
                replace(&self.target, before.as_ref(), after)?;
                match (before, self.mode) {
                    // A file that moves keeps its permissions.
                    (None, Some(mode)) => permit(&self.target, mode),
                    (None, None) | (Some(_), _) => Ok(()),
                }
            }
            (Some(before), None) => remove::file(&self.target, before),
            (None, None) => Ok(()),
        }
    }

    /// Whether the file is as it was found.
    fn is_as_before(&self, plain: &Site<'_>) -> bool {
        let now = self.now(plain).and_then(|target| before(plain, &target));
        let bytes = |found: &Option<Before>| found.as_ref().and_then(|found| found.bytes.clone());
        now.is_ok_and(|now| bytes(&now) == bytes(&self.before))
    }

    fn now(&self, plain: &Site<'_>) -> Result<Target, Failure> {
        plain.resolve(&self.target.recorded())
    }

    fn back(&self, plain: &Site<'_>) -> Result<(), Failure> {
        let target = self.now(plain)?;
        let there = before(plain, &target)?;
        match (&self.before, there) {
            (Some(found), there) => {
                replace(&target, there.as_ref(), found.bytes.as_deref().unwrap_or_default())?;
                permit(&target, found.mode())
            }
            (None, Some(there)) => {
                remove::file(&target, &there)?;
                for dir in &self.made {
                    // One that holds something else by now stays.
                    let _ = std::fs::remove_dir(dir);
                }
                Ok(())
            }
            (None, None) => Ok(()),
        }
    }
}

fn permit(target: &Target, mode: u32) -> Result<(), Failure> {
    let mode = std::fs::Permissions::from_mode(mode & 0o777);
    std::fs::set_permissions(&target.real, mode)
        .map_err(|error| Failure::io("set the permissions of", &target.named, error))
}

/// Makes all of them, or none: what is written before what is removed, so that nothing is gone while
/// something can still fail for want of space.
///
/// # Errors
/// Of the first that cannot be made. The message says what could not be put back.
pub(crate) fn carry_out(changes: &[Change], site: &Site<'_>) -> Result<(), Failure> {
    let written = changes.iter().filter(|change| change.changes() && change.after.is_some());
    let removed = changes.iter().filter(|change| change.changes() && change.after.is_none());
    let mut done: Vec<&Change> = Vec::new();
    for change in written.chain(removed) {
        done.push(change);
        let Err(failure) = site.go_on().and_then(|()| change.forward()) else { continue };
        let plain = Site {
            place: site.place,
            judged: &[],
            cancel: site.cancel,
            command: None,
            engine: Engine::Without,
            max_chars: site.max_chars,
            account: Account::default(),
        };
        let stuck: Vec<&str> = done
            .iter()
            .rev()
            .filter(|change| !change.is_as_before(&plain))
            .filter_map(|change| change.back(&plain).err().map(|_| change.target.named.as_str()))
            .collect();
        let all = match stuck.is_empty() {
            true => "nothing was changed".to_owned(),
            false => format!("changed all the same, look at them: {}", stuck.join(", ")),
        };
        return Err(match failure.code == Code::Stale && stuck.is_empty() {
            true => failure,
            false => Failure { message: format!("{}; {all}", failure.message), ..failure },
        });
    }
    Ok(())
}
