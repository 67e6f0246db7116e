//! A git configuration file that a command may change in harmless ways.

use std::path::PathBuf;

/// The file, and the paths by which a change of it is judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GitConfigFile {
    /// The file; a mount keeps it read-only.
    pub(crate) file: PathBuf,
    /// A directory of the same repository where the command cannot write. Without one the file is
    /// never replaced.
    pub(crate) staging_dir: Option<PathBuf>,
    /// The git directory that it belongs to.
    pub(crate) git_dir: PathBuf,
    /// The project and the added directories.
    pub(crate) roots: Vec<PathBuf>,
}
