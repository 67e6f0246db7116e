//! Data that a session and its project keep besides the conversation: memory, skills, instructions,
//! undo and cached results. Used by `agentd-store` only.
//!
//! [`Store::step`] takes a message of the supervisor and returns the answers; [`KeptMemories`] is for `agentd memory`.
//! The files: `database`
//! is one SQLite file that cannot block a session; `memory` has three scopes; `instructions` and
//! `skills` give the model texts that people wrote; `search_terms` parses search terms; `undo` holds the copies for undoing file tools, made by `file_copy`; `commands`
//! records changes of commands, by the `snapshot` taken before them; `cache` holds results of
//! queries, and `validate` validates them; `failure` is the error of a call.
//!
//! Invariants: a call is done once, however often it is requested, since its changes and its result
//! are written together under its ID; a damaged file is moved aside and never overwritten; projects
//! have separate directories, so that no project sees another's data.

mod cache;
mod commands;
mod database;
mod failure;
mod file_copy;
mod instructions;
mod memory;
mod search_terms;
mod skills;
mod snapshot;
mod undo;
mod undo_coverage;
mod validate;

use cache::ResultCache;
use commands::CommandChanges;
use failure::{StoreError, StoreErrorCode};
pub use memory::KeptMemories;
use memory::Memory;
pub use prompts::DeniedReads;
use protocol::call::{Call, Outcome, ToolResult};
use protocol::confinement::FilePath;
use protocol::hidden::for_model;
use protocol::log::{LogLevel, LogLine};
use protocol::store::{FromStore, StoreSetup, ToStore, UndoCover, UndoScope};
use skills::Skills;
use std::path::PathBuf;
use undo::UndoStore;

/// Everything that one session's store holds.
#[derive(Debug)]
pub struct Store {
    memory: Memory,
    skills: Skills,
    undo: UndoStore,
    commands: CommandChanges,
    cache: ResultCache,
    project: PathBuf,
    /// The root of the repository around it.
    repository: Option<PathBuf>,
}

/// The result of a call that succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
struct StoreResult {
    /// For the model.
    text: String,
    /// One short line for the screen.
    summary: String,
}

impl Store {
    /// Opens no file yet: files are created at first use.
    #[must_use]
    pub fn new(setup: &StoreSetup) -> Self {
        let project = setup.confinement.project.to_path();
        let skills = Skills::of(setup);
        let (memory, undo, cache) =
            (Memory::of(setup), UndoStore::of(setup), ResultCache::of(setup));
        let repository = setup.confinement.repository.as_ref().map(FilePath::to_path);
        let commands = CommandChanges::of(setup);
        Self { memory, skills, undo, commands, cache, project, repository }
    }

    /// The text that follows the system prompt, and the files that could not be read. No denied file is
    /// imported.
    #[must_use]
    pub fn foreword(&self, denied: DeniedReads<'_>) -> Vec<FromStore> {
        let (instructions, notes) =
            instructions::of(&self.project, self.repository.as_deref(), denied);
        let (skills, troubles) = self.skills.told();
        let tools = skills.iter().map(|_| "skill_activate".to_owned()).collect();
        let parts: Vec<String> = [instructions, skills].into_iter().flatten().collect();
        let text = for_model(&parts.join("\n")).into_owned();
        let notes = notes.iter().map(|note| for_model(note).into_owned()).collect();
        let without_undo = self.commands.cover().unable.map(str::to_owned);
        let instructions = FromStore::Instructions { text, notes, tools, without_undo };
        troubles.into_iter().map(warn).chain([instructions]).collect()
    }

    /// Takes a word and answers it.
    pub fn step(&mut self, word: ToStore) -> Vec<FromStore> {
        self.undo.inherit();
        match word {
            ToStore::Begin(_) => vec![warn("a second Begin was ignored".to_owned())],
            ToStore::Do(call) => self.answer(&call),
            ToStore::BackUp { call, tool, paths } => {
                let (kept, cover) = settled(self.undo.keep(&call, &tool, &paths));
                self.said(kept, FromStore::BackedUp { call, cover })
            }
            ToStore::CallEnded { call, did } => {
                let ended = self.undo.ended(&call, did.as_ref());
                self.said(ended, FromStore::ChangesRecorded(call))
            }
            ToStore::PrepareSnapshot => {
                let ready = self.commands.prepare();
                self.followed(ready, None)
            }
            ToStore::TakeSnapshot(command) => {
                let (kept, cover) = settled(self.commands.before(&command));
                self.followed(kept, Some(FromStore::BackedUp { call: command.call, cover }))
            }
            ToStore::CommandEnded { command, ended, before } => {
                let found = self.commands.after(&mut self.undo, &command, ended, before);
                self.followed(found, Some(FromStore::ChangesRecorded(command.call)))
            }
            ToStore::RunningCommands(calls) => {
                let settled = self.commands.running(&mut self.undo, &calls);
                self.followed(settled, None)
            }
            ToStore::FetchBackups(call) => {
                let cover = self.commands.cover();
                let files =
                    self.undo.fetch(&call, &cover).map_err(|why| result(&call.tool, Err(why)));
                vec![FromStore::BackupsFetched { call: call.id, files }]
            }
            ToStore::FetchChanges { since } => {
                let cover = self.commands.cover();
                let changes = self.undo.change_set(since, &cover);
                let changes = changes.map_err(|why| result("changes", Err(why)).summary);
                vec![FromStore::ChangesFetched { since, changes }]
            }
            ToStore::CacheGet(asked) => {
                let found = self.cache.recall(&asked);
                let call = asked.call.id;
                match found {
                    Ok(found) => {
                        let found = found.map(Box::new);
                        self.noted(Ok(()), Some(FromStore::CacheAnswer { call, found }))
                    }
                    Err(why) => {
                        self.noted(Err(why), Some(FromStore::CacheAnswer { call, found: None }))
                    }
                }
            }
            ToStore::CachePut { asked, report } => {
                let kept = self.cache.remember(&asked, report);
                self.noted(kept, None)
            }
            ToStore::Invalidate(changed) => {
                let outdated = self.cache.outdate(&changed);
                self.noted(outdated, None)
            }
            ToStore::AskUndo { call, of } => {
                let cover = match of {
                    UndoScope::Paths(paths) => undo::covers(&paths),
                    UndoScope::Project => self.commands.covers(),
                };
                self.noted(Ok(()), Some(FromStore::UndoCovers { call, cover }))
            }
            ToStore::Ping(number) => vec![FromStore::Pong(number)],
        }
    }

    /// True if there is background work.
    #[must_use]
    pub fn has_work(&self) -> bool {
        self.commands.has_work()
    }

    /// Does a piece of background work; returns its log messages.
    pub fn work(&mut self) -> Vec<FromStore> {
        let done = self.commands.work();
        self.followed(done, None)
    }

    /// The session ends, and so does this process.
    pub fn end(&mut self) {
        self.commands.end();
    }

    /// The answer to a message about commands.
    fn followed(
        &mut self,
        done: Result<(), StoreError>,
        answer: Option<FromStore>,
    ) -> Vec<FromStore> {
        let failed = done.err().map(|failure| format!("changes of commands: {failure}"));
        let damages = self.commands.damages().into_iter().chain(self.undo.damages());
        damages.chain(failed).map(warn).chain(answer).collect()
    }

    /// The answer to a message that no call waits for; errors go to the log.
    fn said(&mut self, done: Result<(), StoreError>, answer: FromStore) -> Vec<FromStore> {
        let failed = done.err().map(|failure| format!("undo: {failure}"));
        let said = self.undo.damages().into_iter().chain(failed).map(warn);
        said.chain([answer]).collect()
    }

    /// The same, of answers that are kept.
    fn noted(&mut self, done: Result<(), StoreError>, answer: Option<FromStore>) -> Vec<FromStore> {
        let failed = done.err().map(|failure| format!("the result cache: {failure}"));
        self.cache.damages().into_iter().chain(failed).map(warn).chain(answer).collect()
    }

    fn answer(&mut self, call: &Call) -> Vec<FromStore> {
        let done = match call.tool.as_str() {
            "memory_add" => self.memory.add(call),
            "memory_remove" => self.memory.remove(call),
            "memory_search" => self.memory.search(call),
            "undo_list" => self.undo.list(call, &self.commands.cover()),
            "skill_list" => Ok(self.skills.list()),
            "skill_activate" => self.skills.activate(call),
            other => Err(StoreError::new(
                StoreErrorCode::UnknownTool,
                format!("{other} is no tool of the store"),
                "This is a fault of agentd; go on without it.",
            )),
        };
        let mut result = result(&call.tool, done);
        let mut said = Vec::new();
        for damage in self.memory.damages().into_iter().chain(self.undo.damages()) {
            // The error goes to the caller and to the log.
            result.text = format!("Note: {damage}\n{}", result.text);
            said.push(warn(damage));
        }
        said.push(FromStore::Answered { call: call.id.clone(), result });
        said
    }
}

/// What the copies for a call cover: nothing where they failed.
fn settled(kept: Result<UndoCover, StoreError>) -> (Result<(), StoreError>, UndoCover) {
    match kept {
        Ok(cover) => (Ok(()), cover),
        Err(why) => {
            let cover = UndoCover::Leaves(why.message.clone());
            (Err(why), cover)
        }
    }
}

fn result(tool: &str, done: Result<StoreResult, StoreError>) -> ToolResult {
    match done {
        Ok(StoreResult { text, summary }) => {
            let (text, summary) = (for_model(&text).into_owned(), for_model(&summary).into_owned());
            ToolResult {
                outcome: Outcome::Done,
                text,
                summary,
                is_error: false,
                code: None,
                images: Vec::new(),
            }
        }
        Err(StoreError { code, message, hint }) => ToolResult {
            outcome: Outcome::Failed,
            text: for_model(&format!("Error [{}] {tool}: {message}\nHint: {hint}", code.name()))
                .into_owned(),
            summary: for_model(&format!("{tool}: {message}")).into_owned(),
            is_error: true,
            code: Some(code.name().to_owned()),
            images: Vec::new(),
        },
    }
}

fn warn(text: String) -> FromStore {
    FromStore::Log(LogLine { level: LogLevel::Warn, text })
}
