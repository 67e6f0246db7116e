//! Files that a rule keeps from being read. Imports of instructions leave them out; the caller has the rules.
//! Pure.

use std::fmt;
use std::path::Path;

/// Says why a file is not read, by the path that names it and by its real path.
#[derive(Clone, Copy)]
pub struct DeniedReads<'a>(&'a dyn Fn(&Path, &Path) -> Option<String>);

impl<'a> DeniedReads<'a> {
    /// No file.
    pub const NONE: DeniedReads<'static> = DeniedReads(&|_, _| None);

    /// These files.
    #[must_use]
    pub fn by(why: &'a dyn Fn(&Path, &Path) -> Option<String>) -> Self {
        Self(why)
    }

    /// The rule that denies it; none if the file may be read.
    #[must_use]
    pub fn why(self, named: &Path, real: &Path) -> Option<String> {
        (self.0)(named, real)
    }
}

impl fmt::Debug for DeniedReads<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeniedReads(…)")
    }
}
