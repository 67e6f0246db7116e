//! `agentd init`: a commented configuration for this project, trusted from the start.

use crate::exit::Exit;
use crate::failure::{Failure, chain};
use crate::output::print;
use crate::place::{Place, real_dir};
use config::{InitError, TrustStore, init_project};
use std::path::Path;

pub(crate) fn main(project: &Path) -> Result<Exit, Failure> {
    let project = real_dir(project, "the project directory")?;
    let place = Place::of_process()?;
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
            Ok(Exit::Done)
        }
        Err(error) => {
            let message = chain(&error);
            Err(match error {
                InitError::Exists(_) | InitError::Link { .. } => {
                    Failure::user(message).exit(Exit::Failed)
                }
                InitError::Unwritable { .. } | InitError::Trust(_) => {
                    Failure::config(message).exit(Exit::Failed)
                }
            })
        }
    }
}
