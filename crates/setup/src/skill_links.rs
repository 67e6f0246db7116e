//! Skills of the person that lie elsewhere, behind links of the home. The session's store may read there, unless
//! commands decide where a link leads. Used by the session specification.

use crate::tool_homes::{WrittenPaths, reaches};
use protocol::confinement::FilePath;
use std::path::{Path, PathBuf};

/// The skills behind links.
#[derive(Debug, Default)]
pub(crate) struct LinkedSkills {
    /// The links whose ends the store may read, by the name that the policy has for them.
    pub(crate) granted: Vec<(String, FilePath)>,
    /// The others, a sentence each.
    pub(crate) left_out: Vec<(PathBuf, String)>,
}

/// Looks at the links in a home's directories of skills.
pub(crate) fn linked_skills(
    (project, home): (&Path, Option<&Path>),
    forbidden: &[PathBuf],
    written: &WrittenPaths,
) -> LinkedSkills {
    let mut found = LinkedSkills::default();
    for link in home.map(prompts::skill_links).unwrap_or_default() {
        let Ok(real) = link.canonicalize() else { continue };
        // The store reads the session's own project.
        if real.starts_with(project) && !sandbox::is_redirectable_in(&link, &written.own) {
            continue;
        }
        let why = if written.lead(&link) {
            "by a link that commands can write"
        } else if home.is_some_and(|home| home.starts_with(&real)) {
            "where much more lies"
        } else if forbidden.iter().any(|at| reaches(&real, at)) {
            "where keys or agentd's own files lie"
        } else {
            found.granted.push((config::SKILL_FOLDERS.to_owned(), FilePath::from(&link)));
            continue;
        };
        let said = format!(
            "the skill {} is left out: it leads to {}, {why}. Put a copy in its place",
            link.display(),
            real.display()
        );
        found.left_out.push((link, said));
    }
    found
}
