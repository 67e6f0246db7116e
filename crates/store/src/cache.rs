//! Cached results of queries: the newest in memory, and the most expensive ones in a file of the
//! session, which outlives the daemon.
//!
//! A result is returned only if every file it was made from is proven unchanged (`validate`).
//! Invalidation by reported changes only frees space from entries that could no longer be proven.

use crate::database::{Database, Durable};
use crate::failure::StoreError;
use crate::validate;
use protocol::call::{
    FileEffect, FileVersion, Outcome, ProbeReport, ProbedPath, ProcessUsage, ReadEvidence,
    ReadPart, ReadStamp, RunReport, ToolResult,
};
use protocol::store::{CacheKey, CachedResult, MayHaveChanged, StoreSetup};
use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// Most answers in memory, of which the one goes first that was not asked for the longest; and in the
/// file, of which the oldest does.
const IN_MEMORY: usize = 256;
const IN_FILE: u32 = 500;
/// Those whose answers go to the file: a walk through directories is soon made anew.
const FILED: [&str; 3] = ["read", "summary", "scan"];
/// Files that decide which files a directory walk finds.
const IGNORE_FILES: [&str; 3] = [".gitignore", ".ignore", "exclude"];

const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS known (
    at INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,
    real TEXT NOT NULL,
    entry TEXT NOT NULL
);";

/// The answers of one session.
#[derive(Debug)]
pub(crate) struct ResultCache {
    project: PathBuf,
    /// The filesystem, if changes can be detected on it.
    device: Option<u64>,
    memory: HashMap<String, (u64, CacheRow)>,
    /// Counts lookups.
    clock: u64,
    file: Database,
}

/// A row of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct CacheRow {
    real: String,
    by: u32,
    text: String,
    full: Option<String>,
    summary: String,
    seen: Vec<(String, String)>,
    began: i64,
    parts: Vec<(String, Option<Numbers>)>,
}

/// A stamp: filesystem, number, bytes, time of content, time of change.
type Numbers = (u64, u64, u64, i64, i64);

/// The key of a query: everything that its result depends on.
struct CacheQuery {
    key: String,
    named: String,
    real: String,
}

impl ResultCache {
    pub(crate) fn of(setup: &StoreSetup) -> Self {
        let session = setup.project_store.to_path().join("sessions").join(&setup.session.0);
        let path = session.join("cache.db");
        let project = setup.confinement.project.to_path();
        Self {
            device: validate::filesystem(&project),
            project,
            memory: HashMap::new(),
            clock: 0,
            file: Database::at(path, SCHEMA, "the result cache", Durable::UnlessPowerFails),
        }
    }

    /// Notes about damaged files that were moved aside, for people; returned once.
    pub(crate) fn damages(&mut self) -> Vec<String> {
        self.file.damages()
    }

    /// The answer, if it is known and holds.
    pub(crate) fn recall(&mut self, asked: &CacheKey) -> Result<Option<CachedResult>, StoreError> {
        let Some(query) = self.query(asked) else { return Ok(None) };
        let entry = match self.memory.get(&query.key) {
            Some((_, entry)) => Some(entry.clone()),
            None => self.filed(asked, &query)?,
        };
        let Some(entry) = entry else { return Ok(None) };
        if !validate::holds(&entry.evidence()) {
            self.memory.remove(&query.key);
            if is_filed(asked) {
                self.unfile("DELETE FROM known WHERE key = ?1", &query.key)?;
            }
            return Ok(None);
        }
        self.hold(query.key, entry.clone());
        Ok(Some(entry.recalled(query.named)))
    }

    /// Keeps an answer that can be proven later.
    pub(crate) fn remember(
        &mut self,
        asked: &CacheKey,
        report: RunReport,
    ) -> Result<(), StoreError> {
        let (Some(query), Some(device)) = (self.query(asked), self.device) else { return Ok(()) };
        let Some(entry) = CacheRow::of(&query, asked, report) else { return Ok(()) };
        let evidence = entry.evidence();
        // A link in the path may point elsewhere by now; the proof must cover the file that was
        // read.
        let about_it = |part: &ReadPart| part.path == query.real && part.was.is_some();
        if !evidence.parts.iter().any(about_it) {
            return Ok(());
        }
        if !validate::proves(&evidence, device) || !validate::holds(&evidence) {
            return Ok(());
        }
        let written = match is_filed(asked) {
            true => self.put_on_file(&query, &entry),
            false => Ok(()),
        };
        self.hold(query.key, entry);
        written
    }

    /// Invalidates results that a call may affect: those of its paths, of files below them, and of
    /// directories above them.
    pub(crate) fn outdate(&mut self, changed: &MayHaveChanged) -> Result<(), StoreError> {
        let paths = match changed {
            MayHaveChanged::Paths(paths)
                if !paths.iter().any(|path| decides_what_is_found(path)) =>
            {
                paths
            }
            MayHaveChanged::Paths(_) | MayHaveChanged::Anything => {
                self.memory.clear();
                return self.unfile("DELETE FROM known WHERE ?1 IS NOT NULL", "");
            }
        };
        let touches = |real: &str, path: &String| {
            Path::new(real).starts_with(path) || Path::new(path).starts_with(real)
        };
        self.memory.retain(|_, (_, entry)| !paths.iter().any(|path| touches(&entry.real, path)));
        paths.iter().try_for_each(|path| {
            self.unfile(
                "DELETE FROM known WHERE real = ?1 \
                 OR substr(real, 1, length(?1) + 1) = ?1 || '/' \
                 OR substr(?1, 1, length(real) + 1) = real || '/'",
                path,
            )
        })
    }

    /// The query's path within the project. The path is resolved as the kernel would; the other
    /// arguments are sorted by name.
    fn query(&self, asked: &CacheKey) -> Option<CacheQuery> {
        let mut input: BTreeMap<String, Value> = serde_json::from_str(&asked.call.input).ok()?;
        let named = match input.get("path") {
            Some(path) => path.as_str()?.to_owned(),
            None => ".".to_owned(),
        };
        // Tools refuse these paths, so nothing is cached for them.
        if named.is_empty() || named.contains('\0') {
            return None;
        }
        let real = self.project.join(&named).canonicalize().ok()?;
        let real = real.starts_with(&self.project).then(|| real.to_str().map(str::to_owned))??;
        input.insert("path".to_owned(), Value::String(real.clone()));
        let input = serde_json::to_string(&input).ok()?;
        // Another build may say it in other words.
        let (build, max) = (protocol::BUILD_ID, asked.max_result_chars);
        let project = self.project.display();
        let key = format!("{build} {project} {} {max} {input}", asked.call.tool);
        Some(CacheQuery { key, named, real })
    }

    fn hold(&mut self, key: String, entry: CacheRow) {
        self.clock += 1;
        self.memory.insert(key, (self.clock, entry));
        if self.memory.len() > IN_MEMORY {
            let oldest = self.memory.iter().min_by_key(|(_, (at, _))| *at);
            if let Some(key) = oldest.map(|(key, _)| key.clone()) {
                self.memory.remove(&key);
            }
        }
    }

    fn filed(
        &mut self,
        asked: &CacheKey,
        query: &CacheQuery,
    ) -> Result<Option<CacheRow>, StoreError> {
        if !is_filed(asked) {
            return Ok(None);
        }
        let entry: Option<String> = self.file.look(|connection| {
            connection
                .query_row("SELECT entry FROM known WHERE key = ?1", [&query.key], |row| row.get(0))
                .optional()
        })?;
        Ok(entry.and_then(|entry| serde_json::from_str(&entry).ok()))
    }

    fn put_on_file(&mut self, query: &CacheQuery, entry: &CacheRow) -> Result<(), StoreError> {
        let Ok(text) = serde_json::to_string(entry) else { return Ok(()) };
        self.file.change(|transaction| {
            transaction.execute(
                "INSERT OR REPLACE INTO known (key, real, entry) VALUES (?1, ?2, ?3)",
                params![query.key, query.real, text],
            )?;
            transaction.execute(
                "DELETE FROM known WHERE at <= (SELECT max(at) FROM known) - ?1",
                [IN_FILE],
            )?;
            Ok(())
        })
    }

    fn unfile(&mut self, delete: &str, value: &str) -> Result<(), StoreError> {
        if !self.file.is_there() {
            return Ok(());
        }
        self.file.change(|transaction| {
            transaction.execute(delete, [value])?;
            Ok(())
        })
    }
}

impl CacheRow {
    fn of(query: &CacheQuery, asked: &CacheKey, report: RunReport) -> Option<Self> {
        let RunReport { result, full, seen, evidence, .. } = report;
        let ReadEvidence { began, parts } = evidence?;
        let done = result.outcome == Outcome::Done && !result.is_error;
        done.then(|| Self {
            real: query.real.clone(),
            by: asked.call.id.number,
            text: result.text,
            full,
            summary: result.summary,
            seen: seen.into_iter().map(|file| (file.path, file.digest)).collect(),
            began,
            parts: parts.into_iter().map(|part| (part.path, part.was.map(numbers))).collect(),
        })
    }

    fn evidence(&self) -> ReadEvidence {
        let parts = self.parts.iter().map(|(path, was)| ReadPart {
            path: path.clone(),
            was: was.map(|(device, inode, size, modified, changed)| ReadStamp {
                device,
                inode,
                size,
                modified,
                changed,
            }),
        });
        ReadEvidence { began: self.began, parts: parts.collect() }
    }

    fn recalled(self, named: String) -> CachedResult {
        let path = ProbedPath { named, real: self.real.clone(), in_scope: true, digest: None };
        let result = ToolResult {
            outcome: Outcome::Done,
            text: self.text,
            summary: self.summary,
            is_error: false,
            code: None,
            images: Vec::new(),
        };
        let seen = self.seen.into_iter().map(|(path, digest)| FileVersion { path, digest });
        CachedResult {
            probe: ProbeReport { paths: vec![path], diff: String::new() },
            by: self.by,
            report: RunReport {
                images: Vec::new(),
                result,
                full: self.full,
                effects: vec![FileEffect::Read(self.real)],
                seen: seen.collect(),
                // The call that filled the row gave them to this session's model.
                instructions: Vec::new(),
                evidence: None,
                refusals: Vec::new(),
                refusals_uncounted: 0,
                tampered: Vec::new(),
                usage: ProcessUsage::default(),
                command_pid: None,
            },
        }
    }
}

fn numbers(stamp: ReadStamp) -> Numbers {
    let ReadStamp { device, inode, size, modified, changed } = stamp;
    (device, inode, size, modified, changed)
}

fn is_filed(asked: &CacheKey) -> bool {
    FILED.contains(&asked.call.tool.as_str())
}

fn decides_what_is_found(path: &str) -> bool {
    let name = Path::new(path).file_name();
    IGNORE_FILES.iter().any(|ignore| name.is_some_and(|name| name == *ignore))
}
