//! Notes for a person about the place of a project: below the root of a git repository, with git's data
//! elsewhere, or in another user's directory. Used when a session opens.

use protocol::confinement::FilePath;
use sandbox::{EnclosingRepo, GitElsewhere};
use std::path::Path;

/// How calls see the repository around the project; `None` where there is none.
pub(crate) fn enclosing_repo_note(project: &Path, repo: &EnclosingRepo) -> Option<String> {
    match repo {
        EnclosingRepo::Absent => None,
        EnclosingRepo::Used(tree) => {
            let inside = project.strip_prefix(tree).unwrap_or(project);
            Some(format!(
                "this project is {} of the git repository {}: commands read all of it, and write this \
                 project and git's own data. To let calls change other files too, open {}",
                inside.display(),
                tree.display(),
                tree.display()
            ))
        }
        EnclosingRepo::LeftOut { tree, why } => Some(format!(
            "git finds no repository in calls: {}, around this project, is left out, since {why}. See \
             `agentd help security`",
            tree.display()
        )),
    }
}

/// Says that calls cannot write in the project, since it is another user's.
pub(crate) fn other_owner_note(project: &Path) -> Option<String> {
    let owner = sandbox::unwritable_for_calls(project)?;
    Some(format!(
        "calls can change nothing in this project: its directory belongs to the user with the id {owner}, \
         and calls have no right of root to write there. Run agentd as that user, as in `setpriv --reuid \
         {owner} --regid {owner} --clear-groups agentd`, or give the project to the user who runs agentd"
    ))
}

/// Says where git's data lie if calls do not see them, and how a person grants the place; a place that is
/// granted is not named.
pub(crate) fn git_elsewhere_note(
    project: &Path,
    home: Option<&Path>,
    added: &[FilePath],
) -> Option<String> {
    let (what, place) = match sandbox::git_elsewhere(project, home)? {
        GitElsewhere::Directory(place) => ("git's data of this project lie in", place),
        GitElsewhere::Objects(place) => ("this project's repository borrows objects of", place),
    };
    if added.iter().any(|dir| place.starts_with(dir.to_path())) {
        return None;
    }
    let place = place.display();
    Some(format!(
        "{what} {place}, which calls do not see: git fails in them. `--add-dir {place}` grants it"
    ))
}
