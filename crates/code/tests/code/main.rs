//! The syntax tools on real files: results, each error by its code, each limit with its marker. No
//! sandbox here.
#![allow(clippy::unwrap_used)]

#[path = "../../../tools/tests/tools/project.rs"]
#[allow(dead_code)]
mod project;

mod rewrite;
mod scan;
mod scope;
mod summary;

use project::Project;

/// A project whose calls are run as `agentd-code` runs them.
fn project(files: &[(&str, &str)]) -> Project {
    let mut project = Project::with(files);
    project.engine = tools::Engine::Trees(&code::Trees);
    project
}
