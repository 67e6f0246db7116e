//! What a call asks for beyond its session: which of it is more than the session has, and the cage
//! that it would have with it. For `calls`.

use crate::plan::{Plan, real_dir};
use protocol::call::{Outcome, ToolResult};
use protocol::confinement::{Confinement, FilePath, GitSettings, Network};
use protocol::judgement::Widening;
use std::path::{Path, PathBuf};
use tools::Interpreted;

/// The rights that are asked for, for this call alone, and the cage that holds them.
pub(super) async fn asked(
    plan: &Plan,
    found: &Interpreted,
) -> Result<(Vec<Widening>, Confinement), ToolResult> {
    let network = found.network.unwrap_or(plan.network);
    let (profile, git) = (found.spec.profile, found.git);
    let mut confinement = Confinement { profile, network, git, ..plan.confinement.clone() };
    let mut widens = Vec::new();
    match (network, plan.network) {
        (Network::On, Network::Off) => widens.push(Widening::Network),
        (Network::On | Network::Off, _) => {}
    }
    if let Some(named) = &found.directory {
        let real = resolved(plan, named).await?;
        let has = [&confinement.project, &confinement.temp];
        if !has.into_iter().chain(&confinement.added).any(|dir| real.starts_with(dir.to_path())) {
            let real = FilePath::from(&real);
            confinement.added.push(real.clone());
            widens.push(Widening::Directory(real));
        }
    }
    match git {
        GitSettings::Kept => {}
        GitSettings::Writable => widens.push(Widening::GitAdmin),
    }
    Ok((widens, confinement))
}

/// The directory itself, links followed: what is asked about is what is granted.
async fn resolved(plan: &Plan, named: &str) -> Result<PathBuf, ToolResult> {
    let confinement = &plan.confinement;
    let home = confinement.home.as_ref().map(FilePath::to_path);
    let path = match (named.strip_prefix("~/").or(named.strip_prefix("~")), home) {
        (Some(below), Some(home)) if named == "~" || named.starts_with("~/") => home.join(below),
        _ => confinement.project.to_path().join(Path::new(named)),
    };
    // A directory may lie on a disk that does not answer.
    let real = tokio::task::spawn_blocking(move || real_dir(&path, "the directory"));
    let found = real.await.map_err(|error| none(&error.to_string()))?;
    found.map_err(|failure| none(&failure.to_string()))
}

fn none(why: &str) -> ToolResult {
    let text = format!(
        "Error [invalid_arguments]: {why}.\nHint: nothing was run; `directory` takes the absolute \
         path of a directory that exists."
    );
    ToolResult {
        outcome: Outcome::Invalid,
        text,
        summary: why.to_owned(),
        is_error: true,
        code: Some("invalid_arguments".to_owned()),
    }
}
