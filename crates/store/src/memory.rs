//! Texts that the model was asked to remember, in three scopes: session, project, user. Each scope
//! is a file of its own, so that no project can reach another's. `kept` is for a person without a session.

mod kept;

pub use kept::KeptMemories;

use crate::StoreResult;
use crate::database::{Database, Durable, now};
use crate::failure::{StoreError, StoreErrorCode, arguments};
use crate::search_terms::query;
use protocol::call::Call;
use protocol::hidden::line;
use protocol::store::StoreSetup;
use rusqlite::{Connection, OptionalExtension, Transaction, params};
use serde::Deserialize;
use std::path::Path;

/// Maximum length of a text in characters. Longer texts are documents and belong in files.
const LONGEST: usize = 4_000;
/// Most texts of a scope. A search shows twenty.
const MOST: u32 = 10_000;
/// Results of a search that does not say how many.
const FOUND: u32 = 10;
/// Most results of a search.
const FOUND_MOST: u32 = 20;

const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS memory (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    time INTEGER NOT NULL,
    text TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS origin (
    id INTEGER PRIMARY KEY,
    project TEXT NOT NULL
);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(
    text, content='memory', content_rowid='id', tokenize='porter unicode61'
);
CREATE TRIGGER IF NOT EXISTS added AFTER INSERT ON memory BEGIN
    INSERT INTO words (rowid, text) VALUES (new.id, new.text);
END;
CREATE TRIGGER IF NOT EXISTS removed AFTER DELETE ON memory BEGIN
    INSERT INTO words (words, rowid, text) VALUES ('delete', old.id, old.text);
    DELETE FROM origin WHERE id = old.id;
END;";

/// Where something is remembered, the narrowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum MemoryScope {
    Session,
    Project,
    User,
}

const SCOPES: [MemoryScope; 3] = [MemoryScope::Session, MemoryScope::Project, MemoryScope::User];

impl MemoryScope {
    fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Project => "project",
            Self::User => "user",
        }
    }

    /// Before the number, so that an id says where it belongs.
    fn letter(self) -> char {
        match self {
            Self::Session => 's',
            Self::Project => 'p',
            Self::User => 'u',
        }
    }

    /// Its file in this directory.
    fn database(self, directory: &Path) -> Database {
        let what = match self {
            Self::Session => "this session's memory",
            Self::Project => "this project's memory",
            Self::User => "the person's memory",
        };
        Database::at(directory.join("memory.db"), SCHEMA, what, Durable::Always)
    }
}

#[derive(Debug, Deserialize)]
struct MemoryAdd {
    text: String,
    scope: Option<MemoryScope>,
}

#[derive(Debug, Deserialize)]
struct MemoryRemove {
    id: String,
}

#[derive(Debug, Deserialize)]
struct MemorySearch {
    query: String,
    scope: Option<MemoryScope>,
    limit: Option<u32>,
}

/// One text that was found.
#[derive(Debug, Clone, PartialEq)]
struct MemoryHit {
    scope: MemoryScope,
    id: i64,
    text: String,
    /// The day on which it was saved, and the project, where that is on record.
    saved: (String, Option<String>),
    /// The better the lower.
    rank: f64,
}

impl MemoryHit {
    /// For the model: a memory of all projects names the one that it is from.
    fn shown(&self) -> String {
        let Self { scope, id, text, saved: (day, project), rank: _ } = self;
        let from = match (scope, project) {
            (MemoryScope::Session | MemoryScope::Project, _) => String::new(),
            (MemoryScope::User, Some(project)) => format!(", saved {day} in {project}"),
            (MemoryScope::User, None) => format!(", saved {day} in a project not on record"),
        };
        format!("{}{id} ({}){from}: {text}\n", scope.letter(), scope.name())
    }
}

/// The three files.
#[derive(Debug)]
pub(crate) struct Memory {
    /// The project's path, for memories of all projects.
    origin: String,
    session: Database,
    project: Database,
    user: Database,
}

impl Memory {
    pub(crate) fn of(setup: &StoreSetup) -> Self {
        let project = setup.project_store.to_path();
        let session = project.join("sessions").join(&setup.session.0);
        Self {
            origin: setup.confinement.project.to_path().display().to_string(),
            session: MemoryScope::Session.database(&session),
            project: MemoryScope::Project.database(&project),
            user: MemoryScope::User.database(&setup.user_store.to_path()),
        }
    }

    fn file(&mut self, scope: MemoryScope) -> &mut Database {
        match scope {
            MemoryScope::Session => &mut self.session,
            MemoryScope::Project => &mut self.project,
            MemoryScope::User => &mut self.user,
        }
    }

    /// Notes about damaged files that were moved aside, for people; returned once.
    pub(crate) fn damages(&mut self) -> Vec<String> {
        SCOPES.into_iter().flat_map(|scope| self.file(scope).damages()).collect()
    }

    pub(crate) fn add(&mut self, call: &Call) -> Result<StoreResult, StoreError> {
        let MemoryAdd { text, scope } = arguments(&call.input)?;
        let (text, scope) = (storable(&text)?, scope.unwrap_or(MemoryScope::Project));
        let origin = self.origin.clone();
        self.file(scope).once(&call.id, |transaction| {
            let number = insert(transaction, scope, text, &origin)?;
            let id = format!("{}{number}", scope.letter());
            Ok(StoreResult {
                text: format!("remembered as {id} ({})\n", scope.name()),
                summary: format!("{id} ({}): {}", scope.name(), line(text, 60)),
            })
        })
    }

    pub(crate) fn remove(&mut self, call: &Call) -> Result<StoreResult, StoreError> {
        let MemoryRemove { id } = arguments(&call.input)?;
        let (scope, number) = parse(&id)?;
        let unknown = || {
            StoreError::new(
                StoreErrorCode::NotFound,
                format!("nothing is remembered as {id}"),
                "memory_search shows the ids.",
            )
        };
        self.file(scope).once(&call.id, |transaction| {
            let text: Option<String> = transaction
                .query_row("DELETE FROM memory WHERE id = ?1 RETURNING text", [number], |row| {
                    row.get(0)
                })
                .optional()?;
            let text = text.ok_or_else(unknown)?;
            Ok(StoreResult {
                text: format!("forgot {id}: {text}\n"),
                summary: format!("forgot {id} ({}): {}", scope.name(), line(&text, 60)),
            })
        })
    }

    pub(crate) fn search(&mut self, call: &Call) -> Result<StoreResult, StoreError> {
        let MemorySearch { query: wanted, scope, limit } = arguments(&call.input)?;
        let Some(terms) = query(&wanted) else {
            return Err(StoreError::invalid(
                "query holds no word",
                "Give the words to search for.",
            ));
        };
        let limit = limit.unwrap_or(FOUND).clamp(1, FOUND_MOST);
        let mut found: Vec<MemoryHit> = Vec::new();
        for scope in SCOPES.into_iter().filter(|one| scope.is_none_or(|only| only == *one)) {
            found.extend(self.file(scope).look(|connection| texts(connection, scope, &terms))?);
        }
        // A stable sort: of two that fit as well, the narrower scope comes first.
        found.sort_by(|a, b| a.rank.total_cmp(&b.rank));
        let all = found.len();
        found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let mut text = match found.is_empty() {
            true => format!("nothing is remembered of {wanted:?}\n"),
            false => found.iter().map(MemoryHit::shown).collect(),
        };
        if all > found.len() {
            let more = all - found.len();
            text.push_str(&format!("[… {more} more left out; raise limit or say more …]\n"));
        }
        let summary = format!("{all} texts of {:?}", line(&wanted, 60));
        Ok(StoreResult { text, summary })
    }
}

/// The text as it is stored, if it may be.
fn storable(text: &str) -> Result<&str, StoreError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(StoreError::invalid("text is empty", "Give the text to remember."));
    }
    let length = text.chars().count();
    if length > LONGEST {
        return Err(StoreError::new(
            StoreErrorCode::TooLarge,
            format!("text has {length} characters; the most is {LONGEST}"),
            "Say it shorter, or write a file and remember where it is.",
        ));
    }
    Ok(text)
}

/// Stores a text that came from the project with this path, and returns its number.
fn insert(
    transaction: &Transaction<'_>,
    scope: MemoryScope,
    text: &str,
    origin: &str,
) -> Result<i64, StoreError> {
    let count: u32 = transaction.query_row("SELECT count(*) FROM memory", [], |row| row.get(0))?;
    if count >= MOST {
        return Err(StoreError::new(
            StoreErrorCode::TooLarge,
            format!("the memory of this {} holds {MOST} texts", scope.name()),
            "Find texts that are no longer useful with memory_search, and remove them.",
        ));
    }
    transaction.execute(
        "INSERT INTO memory (time, text) VALUES (?1, ?2)",
        params![i64::try_from(now()).unwrap_or(i64::MAX), text],
    )?;
    let number = transaction.last_insert_rowid();
    transaction
        .execute("INSERT INTO origin (id, project) VALUES (?1, ?2)", params![number, origin])?;
    Ok(number)
}

/// All texts of a scope that hold one of the terms.
fn texts(
    connection: &Connection,
    scope: MemoryScope,
    terms: &str,
) -> rusqlite::Result<Vec<MemoryHit>> {
    let mut rows = connection.prepare(
        "SELECT memory.id, memory.text, bm25(words), date(memory.time, 'unixepoch'), origin.project \
         FROM words JOIN memory ON memory.id = words.rowid LEFT JOIN origin ON origin.id = memory.id \
         WHERE words MATCH ?1 ORDER BY bm25(words) LIMIT ?2",
    )?;
    let found = rows.query_map(params![terms, MOST], |row| {
        let (id, text, rank) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(MemoryHit { scope, id, text, saved: (row.get(3)?, row.get(4)?), rank })
    })?;
    found.collect()
}

/// The scope and the number of an id.
fn parse(id: &str) -> Result<(MemoryScope, i64), StoreError> {
    let scope = SCOPES.into_iter().find(|scope| id.starts_with(scope.letter()));
    let number = id.get(1..).and_then(|number| number.parse().ok());
    scope.zip(number).ok_or_else(|| {
        StoreError::invalid(
            format!("{id:?} is no id"),
            "An id is a letter and a number, as p12; memory_search shows them.",
        )
    })
}
