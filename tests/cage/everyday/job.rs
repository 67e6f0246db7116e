//! A row of the table: a job, and its outcome in each tier.

use serde::Deserialize;

/// One job. It is run plain first, as its control, then in tier A and in tier B.
///
/// In its texts `@HOME@` stands for the person's home and `@OUTSIDE@` for the folder around home and project.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Also the name of the folder that the job has for itself.
    pub name: String,
    /// The programs that it drives.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Run plain before the job, in its folder.
    #[serde(default)]
    pub prepare: String,
    /// Runs plain from before `prepare` until the end: a server or another process of the person.
    #[serde(default)]
    pub beside: String,
    pub script: String,
    /// Texts that the job's output must contain.
    #[serde(default)]
    pub expect: Vec<String>,
    #[serde(default)]
    pub code: i64,
    /// Run plain at the end: succeeds where the job had its effect on the person's things.
    #[serde(default)]
    pub effect: String,
    /// Its record names no refusal.
    #[serde(default)]
    pub silent: bool,
    /// Has a session to itself, and the project's own folder.
    #[serde(default)]
    pub alone: bool,
    #[serde(default)]
    pub user: User,
    #[serde(default)]
    pub tier_a: Wanted,
    #[serde(default)]
    pub tier_b: Wanted,
    /// Why tier A does not yet give the wanted outcome.
    pub known_a: Option<String>,
    /// Why tier B does not yet give the wanted outcome.
    pub known_b: Option<String>,
}

/// Who can do a job at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum User {
    #[default]
    Any,
    Root,
    /// Not root.
    Ordinary,
}

/// The expected outcome of a job in a tier.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub enum Wanted {
    #[default]
    Works,
    /// Refused by policy: it reads a secret, changes the person's files, or needs a right that was
    /// not granted.
    Refused,
    /// It harms no one, and this tier cannot have it, for this reason.
    Differs(String),
}

impl From<String> for Wanted {
    fn from(word: String) -> Self {
        match word.as_str() {
            "works" => Self::Works,
            "refused" => Self::Refused,
            other => Self::Differs(
                other
                    .strip_prefix("differs: ")
                    .unwrap_or_else(|| panic!("{other:?} is not works, refused or differs: WHY"))
                    .to_owned(),
            ),
        }
    }
}

/// Where a job runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Plain,
    TierA,
    TierB,
}

/// A job's output, its exit code, and the number of refusals in its record.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub code: Option<i64>,
    pub output: String,
    pub had_effect: bool,
    pub refusals: usize,
    pub took_ms: u64,
}

impl Job {
    /// The rows of a table for the user of this process.
    pub fn table(text: &str) -> Vec<Self> {
        #[derive(Deserialize)]
        struct Table {
            job: Vec<Job>,
        }
        let Table { mut job } = toml::from_str(text).unwrap();
        let left_out = if crate::support::is_root() { User::Ordinary } else { User::Root };
        job.retain(|job| job.user != left_out);
        job
    }

    pub fn wanted(&self, place: Place) -> &Wanted {
        match place {
            Place::Plain => &Wanted::Works,
            Place::TierA => &self.tier_a,
            Place::TierB => &self.tier_b,
        }
    }

    pub fn known(&self, place: Place) -> Option<&str> {
        match place {
            Place::Plain => None,
            Place::TierA => self.known_a.as_deref(),
            Place::TierB => self.known_b.as_deref(),
        }
    }

    pub fn worked(&self, outcome: &Outcome) -> bool {
        if !self.effect.is_empty() {
            return outcome.had_effect;
        }
        outcome.code == Some(self.code)
            && (!self.silent || outcome.refusals == 0)
            && self.expect.iter().all(|words| outcome.output.contains(words.as_str()))
    }

    /// The reason, if an outcome differs from the row.
    pub fn fault(&self, place: Place, outcome: &Outcome) -> Option<String> {
        let worked = self.worked(outcome);
        let wanted = *self.wanted(place) == Wanted::Works;
        let fault = match (self.known(place), worked == wanted) {
            (None, true) | (Some(_), false) => return None,
            (Some(_), true) => "is as wanted by now: take its `known` away",
            (None, false) if worked => "works",
            (None, false) => "does not work",
        };
        Some(fault.to_owned())
    }
}
