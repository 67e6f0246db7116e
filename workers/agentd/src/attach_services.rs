//! What an attached terminal asks of the command line's side: audit records, openings of other
//! sessions, drafts, the history of the input line.

use crate::audit;
use crate::cli::SessionFlags;
use crate::cli_error::chain;
use crate::context::CliContext;
use crate::instructions_note;
use crate::memory::{self, ProjectMemories};
use crate::open_request::{KeyNeed, open_request};
use crate::prompt_history::PromptHistory;
use crate::resumed::resumed;
use crate::sessions;
use client::{AttachServices, NotePlace, edit_file};
use journal::CallFilter;
use protocol::client::{ClientRights, SessionRequest};
use protocol::ids::SessionId;
use protocol::judgement::Audience;
use std::fs;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

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

    fn memories(&self, session: &SessionId) -> Result<String, String> {
        let memories = self.memories_of(session)?;
        memories
            .rows()
            .map(|rows| memory::listed(&rows, usize::MAX))
            .map_err(|error| error.to_string())
    }

    fn remove_memories(&self, session: &SessionId, ids: &[String]) -> Result<String, String> {
        let (memories, mut removed) = (self.memories_of(session)?, String::new());
        match memories.remove(ids, |line| removed.push_str(line)) {
            Ok(()) => Ok(removed),
            Err(error) => Err(removed + &error.to_string()),
        }
    }

    fn write_note(
        &self,
        session: &SessionId,
        place: NotePlace,
        text: &str,
    ) -> Result<String, String> {
        match place {
            NotePlace::Instructions => instructions_note::append(&self.project_of(session)?, text),
            NotePlace::Memory(reach) => {
                self.memories_of(session)?.add(reach, text).map_err(|error| error.to_string())
            }
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
        let own = own_draft(self.context, session);
        let all = drafts(self.context, session);
        // A terminal that is still there keeps its own; this one left the session and is back.
        let left = all.iter().find(|draft| **draft == own);
        let left = left.or_else(|| all.iter().find(|draft| !is_running(draft)))?;
        let text = fs::read_to_string(left).ok()?;
        fs::rename(left, &own).ok()?;
        Some(text)
    }

    fn history(&self, session: &SessionId) -> Vec<String> {
        self.history_of(session).map(|history| history.prompts()).unwrap_or_default()
    }

    fn add_to_history(&self, session: &SessionId, text: &str) -> Result<(), String> {
        let Some(history) = self.history_of(session) else { return Ok(()) };
        history
            .add(session, text)
            .map_err(|error| format!("the prompt is sent, but not in the history: {error}"))
    }

    fn edit(&self, session: &SessionId, text: &str) -> Result<String, String> {
        // Not the name of a draft: its ending is no number.
        let name = format!("{session}.{}.md", std::process::id());
        let file = drafts_dir(self.context).join(name);
        let edited = write_file(&file, text).and_then(|()| edit_file(&file));
        let edited = edited.and_then(|()| fs::read(&file));
        // What an editor saved before it failed stays there.
        edited
            .inspect(|_| drop(fs::remove_file(&file)))
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .map_err(|error| {
                format!("the text was not edited: {error}; what was saved is in {}", file.display())
            })
    }

    fn save_draft(&self, session: &SessionId, text: &str) -> Result<(), String> {
        let file = own_draft(self.context, session);
        write_draft(&file, text)
            .map_err(|error| format!("the draft cannot be saved in {}: {error}", file.display()))
    }
}

impl CliServices<'_> {
    /// The prompts of the session's project; none where the session is on another host.
    fn history_of(&self, session: &SessionId) -> Option<PromptHistory> {
        let header = journal::header(&sessions::directory(self.context, session)).ok()?;
        Some(PromptHistory::of(&self.context.dirs.state, &header.project.0))
    }

    /// The real path of the session's project.
    fn project_of(&self, session: &SessionId) -> Result<PathBuf, String> {
        let header = journal::header(&sessions::directory(self.context, session));
        header
            .map(|header| header.project.0)
            .map_err(|error| format!("the session's project is on its own host: {}", chain(&error)))
    }

    /// The memories of the session's project and of all projects.
    fn memories_of(&self, session: &SessionId) -> Result<ProjectMemories, String> {
        let project = self.project_of(session)?;
        ProjectMemories::of(self.context, &project).map_err(|error| error.to_string())
    }
}

/// Where this process saves the unsent text of a session. Only terminals use it, supervisors do not.
fn own_draft(context: &CliContext, session: &SessionId) -> PathBuf {
    drafts_dir(context).join(format!("{session}.{}", std::process::id()))
}

fn drafts_dir(context: &CliContext) -> PathBuf {
    context.dirs.state.join("drafts")
}

/// The drafts of a session, each named after the process that wrote it.
pub(crate) fn drafts(context: &CliContext, session: &SessionId) -> Vec<PathBuf> {
    let entries = fs::read_dir(drafts_dir(context)).into_iter().flatten().flatten();
    let of_session = |path: &PathBuf| {
        path.file_stem().is_some_and(|stem| stem == session.0.as_str())
            && path
                .extension()
                .is_some_and(|pid| pid.as_encoded_bytes().iter().all(u8::is_ascii_digit))
    };
    entries.map(|entry| entry.path()).filter(of_session).collect()
}

/// True if the process that a draft is named after is there.
fn is_running(draft: &Path) -> bool {
    draft.extension().is_some_and(|pid| Path::new("/proc").join(pid).exists())
}

fn write_draft(file: &Path, text: &str) -> io::Result<()> {
    if text.is_empty() {
        return match fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        };
    }
    write_file(file, text)
}

fn write_file(file: &Path, text: &str) -> io::Result<()> {
    if let Some(dir) = file.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    // A reader finds the old text or the new one, never a part.
    let new = file.with_extension(format!("{}-new", std::process::id()));
    let mut options = fs::OpenOptions::new();
    let mut out = options.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    out.write_all(text.as_bytes())?;
    fs::rename(&new, file)
}
