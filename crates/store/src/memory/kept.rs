//! The memories of a project and of all projects, for a person who reads, adds and removes them while sessions run or
//! none does. Each is one line of JSON.

use super::{MemoryScope, insert, parse, storable};
use crate::database::Database;
use rusqlite::{OptionalExtension, Row};
use serde_json::json;
use std::path::Path;

/// The columns that `line` reads.
const COLUMNS: &str = "SELECT memory.id, memory.time, memory.text, origin.project \
     FROM memory LEFT JOIN origin ON origin.id = memory.id";

/// The two files.
#[derive(Debug)]
pub struct KeptMemories {
    project: Database,
    user: Database,
}

impl KeptMemories {
    /// Opens no file yet.
    #[must_use]
    pub fn of(project_store: &Path, user_store: &Path) -> Self {
        Self {
            project: MemoryScope::Project.database(project_store),
            user: MemoryScope::User.database(user_store),
        }
    }

    /// All of them: those of the project first, and the oldest first.
    ///
    /// # Errors
    /// A sentence for the person.
    pub fn list(&mut self) -> Result<String, String> {
        let mut lines = String::new();
        for (scope, file) in
            [(MemoryScope::Project, &mut self.project), (MemoryScope::User, &mut self.user)]
        {
            let found = file.look(|connection| {
                let mut rows = connection.prepare(&format!("{COLUMNS} ORDER BY memory.id"))?;
                rows.query_map([], |row| line(scope, row))?.collect::<rusqlite::Result<String>>()
            });
            lines.push_str(&found.map_err(|failure| failure.to_string())?);
            undamaged(file)?;
        }
        Ok(lines)
    }

    /// Stores a text that a person typed in the project with this path, and returns its line. The scope is `project`
    /// or `user`.
    ///
    /// # Errors
    /// A sentence for the person. Nothing was stored.
    pub fn add(&mut self, scope: &str, origin: &str, text: &str) -> Result<String, String> {
        let (scope, file) = match scope {
            "project" => (MemoryScope::Project, &mut self.project),
            "user" => (MemoryScope::User, &mut self.user),
            other => return Err(format!("a person stores no memory of the scope {other:?}")),
        };
        let text = storable(text).map_err(|failure| failure.to_string())?;
        let added = file.change(|transaction| {
            let number = insert(transaction, scope, text, origin)?;
            let one = format!("{COLUMNS} WHERE memory.id = ?1");
            Ok(transaction.query_row(&one, [number], |row| line(scope, row))?)
        });
        let added = added.map_err(|failure| failure.to_string())?;
        // A damaged file was moved aside, and the text is in the new one.
        file.damages().iter().for_each(|damage| eprintln!("agentd-store: {damage}"));
        Ok(added)
    }

    /// Removes one, and returns its line. It is empty if nothing has this ID.
    ///
    /// # Errors
    /// A sentence for the person. Nothing was removed.
    pub fn remove(&mut self, id: &str) -> Result<String, String> {
        let (scope, number) = parse(id).map_err(|failure| failure.to_string())?;
        let file = match scope {
            MemoryScope::Session => return Ok(String::new()),
            MemoryScope::Project => &mut self.project,
            MemoryScope::User => &mut self.user,
        };
        if !file.is_there() {
            return Ok(String::new());
        }
        let removed = file.change(|transaction| {
            let one = format!("{COLUMNS} WHERE memory.id = ?1");
            let found = transaction.query_row(&one, [number], |row| line(scope, row)).optional()?;
            transaction.execute("DELETE FROM memory WHERE id = ?1", [number])?;
            Ok(found.unwrap_or_default())
        });
        let removed = removed.map_err(|failure| failure.to_string())?;
        undamaged(file).map(|()| removed)
    }
}

/// The error of a file that was damaged and is moved aside.
fn undamaged(file: &mut Database) -> Result<(), String> {
    match file.damages().as_slice() {
        [] => Ok(()),
        damages => Err(damages.join("; ")),
    }
}

fn line(scope: MemoryScope, row: &Row<'_>) -> rusqlite::Result<String> {
    let (id, seconds): (i64, i64) = (row.get(0)?, row.get(1)?);
    let (text, project): (String, Option<String>) = (row.get(2)?, row.get(3)?);
    let line = json!({
        "id": format!("{}{id}", scope.letter()),
        "scope": scope.name(),
        "saved": seconds.saturating_mul(1000),
        "project": project,
        "text": text,
    });
    Ok(format!("{line}\n"))
}
