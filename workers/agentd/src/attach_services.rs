//! What an attached terminal asks of the command line's side: audit records, openings of other
//! sessions, drafts.

use crate::audit;
use crate::cli::SessionFlags;
use crate::cli_error::chain;
use crate::context::CliContext;
use crate::interactive::resumed;
use crate::open_request::{KeyNeed, open_request};
use crate::sessions;
use client::AttachServices;
use journal::CallFilter;
use protocol::client::{ClientRights, SessionRequest};
use protocol::ids::SessionId;
use protocol::judgement::Audience;
use std::fs;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

/// The services of one command.
#[derive(Debug)]
pub(crate) struct CliServices<'a> {
    pub(crate) context: &'a CliContext,
    pub(crate) rights: ClientRights,
}

impl AttachServices for CliServices<'_> {
    fn audit(&self, session: &SessionId) -> String {
        let filter = CallFilter { session: Some(session.0.clone()), ..CallFilter::default() };
        match journal::calls(&self.context.audit_dir(), &filter) {
            Ok(calls) if calls.is_empty() => "no call yet".to_owned(),
            Ok(calls) => audit::table(&calls) + &audit::refusals(&calls),
            Err(error) => format!("the audit log cannot be read: {}", chain(&error)),
        }
    }

    fn opening(&self, session: &SessionId) -> Result<(SessionRequest, Vec<OwnedFd>), String> {
        let header = journal::header(&sessions::directory(self.context, session))
            .map_err(|error| chain(&error))?;
        // The flags of this command were given for another session.
        let flags = SessionFlags { project: Some(header.project.0), ..SessionFlags::default() };
        let start = resumed(session.clone(), self.rights);
        open_request(self.context, &flags, start, Audience::Person, KeyNeed::WhereSet)
            .map_err(|error| error.to_string())
    }

    fn draft(&self, session: &SessionId) -> Option<String> {
        fs::read_to_string(draft_file(self.context, session)).ok()
    }

    fn save_draft(&self, session: &SessionId, text: &str) -> Result<(), String> {
        let file = draft_file(self.context, session);
        write_draft(&file, text)
            .map_err(|error| format!("the draft cannot be saved in {}: {error}", file.display()))
    }
}

/// Where the unsent text of a session is saved. Only terminals use it, supervisors do not.
pub(crate) fn draft_file(context: &CliContext, session: &SessionId) -> PathBuf {
    context.dirs.state.join("drafts").join(&session.0)
}

fn write_draft(file: &PathBuf, text: &str) -> io::Result<()> {
    if text.is_empty() {
        return match fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        };
    }
    if let Some(dir) = file.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    // A reader finds the old text or the new one, never a part.
    let new = file.with_extension(format!("{}.new", std::process::id()));
    let mut options = fs::OpenOptions::new();
    let mut out = options.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    out.write_all(text.as_bytes())?;
    fs::rename(&new, file)
}
