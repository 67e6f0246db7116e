//! How far a memory reaches, and the subject of a call that changes one: rules are matched with it, and
//! a person reads it in the question.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where something is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
#[allow(missing_docs, reason = "a model would get the documentation with every request")]
pub enum MemoryScope {
    // Until this session is removed.
    Session,
    // In every session of this project.
    Project,
    // In every project of this person.
    User,
}

impl MemoryScope {
    const ALL: [Self; 3] = [Self::Session, Self::Project, Self::User];

    /// As rules and arguments name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Project => "project",
            Self::User => "user",
        }
    }

    /// The scope of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }

    /// The scope of the memory with this id. The store refuses an id of no scope, so that no later
    /// session is concerned.
    pub(crate) fn of_id(id: &str) -> Self {
        match id.chars().next() {
            Some('p') => Self::Project,
            Some('u') => Self::User,
            Some(_) | None => Self::Session,
        }
    }

    /// The subject of a call: its scope, then its text.
    pub(crate) fn subject(self, text: &str) -> String {
        format!("{}: {text}", self.name())
    }

    /// The scope in the subject of a call.
    #[must_use]
    pub fn of_subject(subject: &str) -> Option<Self> {
        Self::parse(subject.split(':').next()?)
    }
}
