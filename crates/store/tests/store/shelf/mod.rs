//! Stores of several projects and sessions over one directory.
#![allow(dead_code, clippy::unwrap_used)]

use protocol::call::{Call, CallOrigin, ToolResult};
use protocol::confinement::{Confinement, FilePath, Profile};
use protocol::ids::{CallId, SessionId};
use protocol::store::{ForkedFrom, FromStore, StoreSetup, ToStore};
use serde_json::Value;
use std::path::PathBuf;
use store::Store;
use tempfile::TempDir;

/// A person's machine in small.
pub struct Shelf {
    root: TempDir,
}

/// One session's store, with what it has logged.
pub struct Kept {
    store: Store,
    session: SessionId,
    next: u32,
    pub logged: Vec<String>,
}

impl Shelf {
    pub fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap() }
    }

    pub fn project(&self, name: &str) -> PathBuf {
        let project = self.root.path().canonicalize().unwrap().join("projects").join(name);
        std::fs::create_dir_all(&project).unwrap();
        project
    }

    pub fn home(&self) -> PathBuf {
        let home = self.root.path().canonicalize().unwrap().join("home");
        std::fs::create_dir_all(&home).unwrap();
        home
    }

    pub fn project_store(&self, name: &str) -> PathBuf {
        self.root.path().join("store").join(name)
    }

    pub fn setup(&self, project: &str, session: &str) -> StoreSetup {
        StoreSetup {
            confinement: Confinement {
                home: Some(FilePath::from(self.home())),
                ..Confinement::closed(
                    Profile::Store,
                    FilePath::from(self.project(project)),
                    FilePath::from("/"),
                )
            },
            session: SessionId(session.to_owned()),
            project_store: FilePath::from(self.project_store(project)),
            user_store: FilePath::from(self.root.path().join("store/user")),
            plugins: Vec::new(),
            denied_reads: protocol::judgement::RuleSet::empty(),
            forked_from: None,
        }
    }

    pub fn store(&self, project: &str, session: &str) -> Kept {
        self.store_of(self.setup(project, session))
    }

    /// That of a copy of `of`, which shares the calls up to the last one with it.
    pub fn copy(&self, project: &str, session: &str, of: &str, last_call: u32) -> Kept {
        let session_of = SessionId(of.to_owned());
        let forked_from = Some(ForkedFrom { session: session_of, last_call });
        self.store_of(StoreSetup { forked_from, ..self.setup(project, session) })
    }

    fn store_of(&self, setup: StoreSetup) -> Kept {
        let session = setup.session.clone();
        Kept { store: Store::new(&setup), session, next: 100_000, logged: Vec::new() }
    }
}

impl Kept {
    /// A call of its own.
    pub fn call(&mut self, tool: &str, input: Value) -> ToolResult {
        self.next += 1;
        self.call_as(self.next, tool, input)
    }

    pub fn call_as(&mut self, number: u32, tool: &str, input: Value) -> ToolResult {
        let id = CallId { session: self.session.clone(), number };
        let (tool, input) = (tool.to_owned(), input.to_string());
        let call = Call { id: id.clone(), origin: CallOrigin::model("toolu"), tool, input };
        let mut answer = None;
        for said in self.store.step(ToStore::Do(call)) {
            match said {
                FromStore::Answered { call, result } => {
                    assert_eq!(call, id);
                    assert!(answer.replace(result).is_none(), "one answer");
                }
                FromStore::Log(line) => self.logged.push(line.text),
                FromStore::Ready
                | FromStore::Instructions { .. }
                | FromStore::BackedUp { .. }
                | FromStore::ChangesRecorded(_)
                | FromStore::BackupsFetched { .. }
                | FromStore::ChangesFetched { .. }
                | FromStore::CacheAnswer { .. }
                | FromStore::UndoCovers { .. }
                | FromStore::Pong(_) => {}
            }
        }
        answer.expect("an answer")
    }
}

impl Kept {
    /// Does what is to be done while nobody asks for anything, to its end.
    pub fn works(&mut self) {
        while self.store.has_work() {
            assert_eq!(self.store.work(), []);
        }
    }

    /// Its session ends.
    pub fn ends(&mut self) {
        self.store.end();
    }

    /// A word, and all that is said to it.
    pub fn say(&mut self, word: ToStore) -> Vec<FromStore> {
        self.store.step(word)
    }

    /// What the model is told first, and what is logged of it.
    pub fn foreword(&self) -> (String, Vec<String>) {
        let (mut told, mut troubles) = (String::new(), Vec::new());
        for said in self.store.foreword(store::DeniedReads::NONE) {
            match said {
                FromStore::Instructions { text, notes, .. } => {
                    told = text;
                    troubles.splice(0..0, notes);
                }
                FromStore::Log(line) => troubles.push(line.text),
                FromStore::Ready
                | FromStore::Answered { .. }
                | FromStore::BackedUp { .. }
                | FromStore::ChangesRecorded(_)
                | FromStore::BackupsFetched { .. }
                | FromStore::ChangesFetched { .. }
                | FromStore::CacheAnswer { .. }
                | FromStore::UndoCovers { .. }
                | FromStore::Pong(_) => {}
            }
        }
        (told, troubles)
    }
}
