//! What a session and its project keep beside the conversation: memory, skills, and what the
//! project says to whoever works in it. Used by `agentd-store` only.
//!
//! [`Store::step`] takes a word of the supervisor and says what follows. The files: `database` is
//! one SQLite file that is never in the way, `memory` the three scopes of it, `instructions` and
//! `skills` are read from `texts` that people wrote, with `front` before them; `terms` is what is
//! looked for, `undo` the copies of what file tools change, `found` how they are made, `commands` what
//! commands changed, by the `snapshot` that was made before them, `cache` what
//! queries were answered before, `fresh` the proof that it still holds, `failure` what a call is told
//! that could not be done.
//!
//! What always holds: a call is done once, however often it is asked for, since what it changed
//! and what it came to are written together under its name; a file that is damaged is set aside
//! and never overwritten; nothing of one project is seen from another, which has its own directory.

mod cache;
mod commands;
mod database;
mod failure;
mod found;
mod fresh;
mod front;
mod instructions;
mod memory;
mod skills;
mod snapshot;
mod terms;
mod texts;
mod undo;

use cache::Cache;
use commands::Commands;
use failure::{Code, Failure};
use memory::Memory;
use protocol::call::{Call, Outcome, ToolResult};
use protocol::store::{FromStore, StoreSetup, ToStore};
use protocol::upkeep::{LogLevel, LogLine};
use skills::Skills;
use std::path::PathBuf;
use undo::Undo;

/// Everything that one session's store holds.
#[derive(Debug)]
pub struct Store {
    memory: Memory,
    skills: Skills,
    undo: Undo,
    commands: Commands,
    cache: Cache,
    project: PathBuf,
}

/// What a call came to that could be done.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Answer {
    /// For the model.
    text: String,
    /// One short line for the screen.
    summary: String,
}

impl Store {
    /// Opens nothing yet: what is not asked for is not made.
    #[must_use]
    pub fn new(setup: &StoreSetup) -> Self {
        let project = setup.confinement.project.to_path();
        let home = setup.confinement.home.as_ref().map(|home| home.to_path());
        let skills = Skills::of(project.clone(), home);
        let (memory, undo, cache) = (Memory::of(setup), Undo::of(setup), Cache::of(setup));
        Self { memory, skills, undo, commands: Commands::of(setup), cache, project }
    }

    /// What the model is told beside the system prompt, and what of it could not be read.
    #[must_use]
    pub fn foreword(&self) -> Vec<FromStore> {
        let (instructions, mut troubles) = instructions::of(&self.project);
        let (skills, others) = self.skills.told();
        troubles.extend(others);
        let parts: Vec<String> = [instructions, skills].into_iter().flatten().collect();
        let text = terms::visible(&parts.join("\n"));
        troubles.into_iter().map(warn).chain([FromStore::Foreword(text)]).collect()
    }

    /// Takes a word and answers it.
    pub fn step(&mut self, word: ToStore) -> Vec<FromStore> {
        match word {
            ToStore::Begin(_) => vec![warn("a second Begin was ignored".to_owned())],
            ToStore::Do(call) => self.answer(&call),
            ToStore::Keep { call, tool, paths } => {
                let kept = self.undo.keep(&call, &tool, &paths);
                self.said(kept, FromStore::Kept(call))
            }
            ToStore::Ended { call, did } => {
                let ended = self.undo.ended(&call, did.as_ref());
                self.said(ended, FromStore::Settled(call))
            }
            ToStore::Prepare => {
                let ready = self.commands.prepare();
                self.followed(ready, None)
            }
            ToStore::KeepAll(command) => {
                let kept = self.commands.before(&command);
                self.followed(kept, Some(FromStore::Kept(command.call)))
            }
            ToStore::Ran { command, ended, before } => {
                let found = self.commands.after(&mut self.undo, &command, ended, before);
                self.followed(found, Some(FromStore::Settled(command.call)))
            }
            ToStore::Running(calls) => {
                let settled = self.commands.running(&mut self.undo, &calls);
                self.followed(settled, None)
            }
            ToStore::Fetch(call) => {
                let cover = self.commands.cover();
                let files =
                    self.undo.fetch(&call, &cover).map_err(|why| result(&call.tool, Err(why)));
                vec![FromStore::Fetched { call: call.id, files }]
            }
            ToStore::Recall(asked) => {
                let found = self.cache.recall(&asked);
                let call = asked.call.id;
                match found {
                    Ok(found) => {
                        let found = found.map(Box::new);
                        self.noted(Ok(()), Some(FromStore::Recalled { call, found }))
                    }
                    Err(why) => {
                        self.noted(Err(why), Some(FromStore::Recalled { call, found: None }))
                    }
                }
            }
            ToStore::Remember { asked, report } => {
                let kept = self.cache.remember(&asked, report);
                self.noted(kept, None)
            }
            ToStore::Outdate(changed) => {
                let outdated = self.cache.outdate(&changed);
                self.noted(outdated, None)
            }
            ToStore::Ping(number) => vec![FromStore::Pong(number)],
        }
    }

    /// Whether there is something to be done while nobody asks for anything.
    #[must_use]
    pub fn has_work(&self) -> bool {
        self.commands.has_work()
    }

    /// Does some of it; what there is to say of that.
    pub fn work(&mut self) -> Vec<FromStore> {
        let done = self.commands.work();
        self.followed(done, None)
    }

    /// The session ends, and so does this process.
    pub fn end(&mut self) {
        self.commands.end();
    }

    /// The answer to what has to do with commands.
    fn followed(&mut self, done: Result<(), Failure>, answer: Option<FromStore>) -> Vec<FromStore> {
        let failed = done.err().map(|failure| format!("what commands change: {failure}"));
        let damages = self.commands.damages().into_iter().chain(self.undo.damages());
        damages.chain(failed).map(warn).chain(answer).collect()
    }

    /// The answer to what no call waits for: what went wrong is for the log.
    fn said(&mut self, done: Result<(), Failure>, answer: FromStore) -> Vec<FromStore> {
        let failed = done.err().map(|failure| format!("what could be undone: {failure}"));
        let said = self.undo.damages().into_iter().chain(failed).map(warn);
        said.chain([answer]).collect()
    }

    /// The same, of answers that are kept.
    fn noted(&mut self, done: Result<(), Failure>, answer: Option<FromStore>) -> Vec<FromStore> {
        let failed = done.err().map(|failure| format!("what was read before: {failure}"));
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
            other => Err(Failure::new(
                Code::UnknownTool,
                format!("{other} is no tool of the store"),
                "This is a fault of agentd; go on without it.",
            )),
        };
        let mut result = result(&call.tool, done);
        let mut said = Vec::new();
        for damage in self.memory.damages().into_iter().chain(self.undo.damages()) {
            // Whoever asked is told, and so is the log.
            result.text = format!("Note: {damage}\n{}", result.text);
            said.push(warn(damage));
        }
        said.push(FromStore::Answered { call: call.id.clone(), result });
        said
    }
}

fn result(tool: &str, done: Result<Answer, Failure>) -> ToolResult {
    match done {
        Ok(Answer { text, summary }) => {
            let (text, summary) = (terms::visible(&text), terms::visible(&summary));
            ToolResult { outcome: Outcome::Done, text, summary, is_error: false, code: None }
        }
        Err(Failure { code, message, hint }) => ToolResult {
            outcome: Outcome::Failed,
            text: terms::visible(&format!(
                "Error [{}] {tool}: {message}\nHint: {hint}",
                code.name()
            )),
            summary: terms::visible(&format!("{tool}: {message}")),
            is_error: true,
            code: Some(code.name().to_owned()),
        },
    }
}

fn warn(text: String) -> FromStore {
    FromStore::Log(LogLine { level: LogLevel::Warn, text })
}
