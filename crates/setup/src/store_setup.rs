//! Setup of a session's store: a directory for each project and one for the user. Stores of other projects
//! cannot reach them. Used by the session specification.

use config::Plugin;
use protocol::confinement::{Confinement, FilePath, Profile};
use protocol::ids::SessionId;
use protocol::judgement::RuleSet;
use protocol::store::StoreSetup;
use std::path::Path;

/// Setup of a session's store.
pub(crate) fn store_setup(
    session: &SessionId,
    state: &Path,
    of: &Confinement,
    plugins: &[Plugin],
    skills: Vec<(String, FilePath)>,
) -> StoreSetup {
    let project = of.project.to_path();
    let (project_store, user_store) = config::store_dirs(state, &project);
    // A project that contains agentd's own directories is not readable: the store would see other
    // sessions.
    let holds_ours = of.withheld.iter().any(|own| own.to_path().starts_with(&project));
    let readable = if holds_ours { FilePath::from(&project_store) } else { of.project.clone() };
    let confinement = Confinement {
        added: vec![FilePath::from(&project_store), FilePath::from(&user_store)],
        home: of.home.clone(),
        tool_homes: plugin_homes(plugins).into_iter().chain(skills).collect(),
        keys: of.keys.clone(),
        written_elsewhere: of.written_elsewhere.clone(),
        repository: of.repository.clone().filter(|tree| {
            !of.withheld.iter().any(|own| own.to_path().starts_with(tree.to_path()))
        }),
        umask: 0o077,
        level: of.level,
        // Not granted. The root would make each link of the home one that commands can write.
        ..Confinement::closed(Profile::Store, readable, FilePath::from(&project_store))
    };
    StoreSetup {
        confinement,
        session: session.clone(),
        project_store: FilePath::from(&project_store),
        user_store: FilePath::from(&user_store),
        plugins: plugins
            .iter()
            .map(|plugin| (plugin.name.clone(), FilePath::from(&plugin.root)))
            .collect(),
        denied_reads: RuleSet::empty(),
        forked_from: None,
    }
}

/// The folders of plugins, by the name that the policies have for them.
pub(crate) fn plugin_homes(plugins: &[Plugin]) -> Vec<(String, FilePath)> {
    let home = |plugin: &Plugin| (config::PLUGIN_FOLDERS.to_owned(), FilePath::from(&plugin.root));
    plugins.iter().map(home).collect()
}
