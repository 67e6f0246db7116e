//! `agentd init`: a commented configuration for this project, trusted from the start.

use crate::cli_error::{CliError, chain};
use crate::cli_exit::CliExit;
use crate::context::{CliContext, real_dir};
use crate::output::print;
use config::{InitError, TrustStore, init_project};
use std::path::Path;

pub(crate) fn main(project: &Path) -> Result<CliExit, CliError> {
    let project = real_dir(project, "the project directory")?;
    let place = CliContext::of_process()?;
    let store = TrustStore::at(place.dirs.trust_file());
    match init_project(&project, &store) {
        Ok(file) => {
            print(&format!(
                "wrote {} and recorded your trust in it\nedit it as you like; after a change, run \
                 with --trust-project or it may only tighten\nyour trust also lets what `verify.commands` \
                 and `format.commands` say run behind edits: unless you configured others, `cargo check` \
                 behind those of *.rs files, and with it build scripts\n",
                file.display()
            ));
            Ok(CliExit::Done)
        }
        Err(error) => {
            let message = chain(&error);
            Err(match error {
                InitError::Exists(_) | InitError::Link { .. } => {
                    CliError::user(message).exit(CliExit::Failed)
                }
                InitError::Unwritable { .. } | InitError::Trust(_) => {
                    CliError::config(message).exit(CliExit::Failed)
                }
            })
        }
    }
}
