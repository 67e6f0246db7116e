//! The directories of `PATH` that commands are not granted, with reasons. For `doctor` only.

use super::DoctorFinding;
use crate::context::CliContext;
use config::{CredentialPaths, Environment, PathPolicy, TOOL_HOMES};
use protocol::confinement::{Confinement, FilePath, Profile};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The remedy for each of them.
const WAY_ON: &str =
    "install the program in a directory of its own, or add its directory with --add-dir";

/// A note on each such directory; one line where commands get all.
pub(super) fn findings(context: &CliContext, here: &Path) -> Vec<DoctorFinding> {
    let path = value(&context.environment, "PATH").unwrap_or_default();
    let home = context.environment.absolute("HOME").and_then(|home| home.canonicalize().ok());
    let keys = CredentialPaths::of(&context.passed(None, &[]), home.as_deref()).places();
    let own =
        [Some(&context.dirs.state), Some(&context.dirs.runtime), context.dirs.config.as_ref()];
    let kept: Vec<PathBuf> = own.into_iter().flatten().cloned().chain(keys).collect();
    let person = nix::unistd::getuid().as_raw();
    let owner = home.as_ref().and_then(|home| home.metadata().ok()).map(|found| found.uid());
    let ground = PathPolicy {
        home: home.as_deref(),
        known: &sandbox::runnable_paths(&wanted(context, here, home.as_deref())),
        kept: &kept,
        writable: &[here.to_owned()],
        elsewhere: &[],
        is_led_by: sandbox::is_led_by_commands,
        persons: [person, owner.unwrap_or(person)],
    };
    let refused = config::refused_path_dirs(&path, &ground);
    if refused.is_empty() {
        return vec![DoctorFinding::ok(
            "PATH",
            "commands can use the programs of all its directories",
        )];
    }
    let text =
        |(dir, why): &(PathBuf, &str)| format!("commands are not granted {}: {why}", dir.display());
    refused.iter().map(|one| DoctorFinding::note("PATH", text(one)).hint(WAY_ON)).collect()
}

fn value(environment: &Environment, name: &str) -> Option<String> {
    environment.get(name).and_then(|value| value.to_str()).map(str::to_owned)
}

/// A command's confinement in this directory, with the fields that decide about programs.
fn wanted(context: &CliContext, here: &Path, home: Option<&Path>) -> Confinement {
    let homes = TOOL_HOMES.into_iter().filter_map(|name| {
        let path = context.environment.absolute(name)?;
        Some((name.to_owned(), FilePath::from(path)))
    });
    Confinement {
        home: home.map(FilePath::from),
        tool_homes: homes.collect(),
        ..Confinement::closed(
            Profile::Command,
            FilePath::from(here),
            FilePath::from(context.dirs.runtime.join("temp")),
        )
    }
}
