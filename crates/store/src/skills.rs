//! Skills: instructions for one kind of task, each a directory with a `SKILL.md`, loaded only when
//! the model asks for one. A project's skill takes the place of a person's of the same name.

use crate::StoreResult;
use crate::failure::{StoreError, StoreErrorCode, arguments};
use crate::front_matter::front;
use crate::read_text;
use crate::search_terms::line;
use protocol::call::Call;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Longest `SKILL.md` in bytes.
const LONGEST: usize = 256 << 10;
/// Maximum number of skills read from one directory.
const MOST: usize = 200;
/// Maximum number of skills in the text after the system prompt; the model finds the others with
/// `skill_list`.
const TOLD: usize = 40;
/// Longest description in characters.
const DESCRIPTION: usize = 400;
/// Where skills lie, the first that has a name holds. Relative to the project, then to the home.
const PLACES: [&str; 2] = [".agents/skills", ".claude/skills"];

/// Whose a skill is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SkillOwner {
    Project,
    User,
}

impl SkillOwner {
    fn name(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::User => "user",
        }
    }
}

/// A usable skill.
#[derive(Debug, Clone)]
struct Skill {
    whose: SkillOwner,
    directory: PathBuf,
    description: String,
    body: String,
}

/// The skills of a search.
#[derive(Debug, Default)]
struct FoundSkills {
    skills: BTreeMap<String, Skill>,
    troubles: Vec<String>,
}

/// Where to look.
#[derive(Debug)]
pub(crate) struct Skills {
    project: PathBuf,
    home: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
struct SkillActivate {
    name: String,
    arguments: Option<String>,
}

impl Skills {
    pub(crate) fn of(project: PathBuf, home: Option<PathBuf>) -> Self {
        Self { project, home }
    }

    /// Reads them as they are now.
    fn look(&self) -> FoundSkills {
        let mut shelf = FoundSkills::default();
        let home = self.home.iter().map(|home| (SkillOwner::User, home));
        for (whose, root) in std::iter::once((SkillOwner::Project, &self.project)).chain(home) {
            for place in PLACES {
                shelf.add_all(whose, &root.join(place));
            }
        }
        shelf
    }

    /// The section on skills in the text after the system prompt, and the problems of unusable
    /// skills.
    pub(crate) fn told(&self) -> (Option<String>, Vec<String>) {
        let FoundSkills { skills, troubles } = self.look();
        if skills.is_empty() {
            return (None, troubles);
        }
        let mut text = "# Skills\n\nInstructions for kinds of tasks. Where one fits, load it with \
                        skill_activate before you begin.\n\n"
            .to_owned();
        for (name, skill) in skills.iter().take(TOLD) {
            text.push_str(&format!("- {name}: {}\n", skill.description));
        }
        if skills.len() > TOLD {
            text.push_str(&format!("- … and {} more; see skill_list\n", skills.len() - TOLD));
        }
        (Some(text), troubles)
    }

    pub(crate) fn list(&self) -> StoreResult {
        let FoundSkills { skills, troubles } = self.look();
        let mut text: String = skills
            .iter()
            .map(|(name, skill)| {
                format!("{name} ({}): {}\n", skill.whose.name(), skill.description)
            })
            .collect();
        if skills.is_empty() {
            text.push_str(
                "there are no skills; one is a SKILL.md in a directory of its own below \
                 .agents/skills or .claude/skills of the project or the home directory\n",
            );
        }
        troubles.iter().for_each(|trouble| text.push_str(&format!("[not usable: {trouble}]\n")));
        StoreResult { text, summary: format!("{} skills", skills.len()) }
    }

    pub(crate) fn activate(&self, call: &Call) -> Result<StoreResult, StoreError> {
        let SkillActivate { name, arguments: given } = arguments(&call.input)?;
        let FoundSkills { skills, troubles } = self.look();
        let Some(skill) = skills.get(name.trim()) else {
            let known: Vec<&str> = skills.keys().map(String::as_str).take(TOLD).collect();
            let broken = troubles.iter().find(|trouble| trouble.contains(name.trim()));
            let why = match broken {
                Some(trouble) if !name.trim().is_empty() => format!("; {trouble}"),
                _ => String::new(),
            };
            let hint = match known.is_empty() {
                true => "There are none here.".to_owned(),
                false => format!("There are: {}.", known.join(", ")),
            };
            let message = format!("there is no skill {:?}{why}", line(&name, 60));
            return Err(StoreError::new(StoreErrorCode::NotFound, message, hint));
        };
        let given = given.unwrap_or_default();
        let body = match (skill.body.contains("$ARGUMENTS"), given.as_str()) {
            (true, given) => skill.body.replace("$ARGUMENTS", given),
            (false, "") => skill.body.clone(),
            (false, given) => format!("{}\n\nArguments: {given}", skill.body.trim_end()),
        };
        let text = format!(
            "Skill {name} ({}), in {}; files that it names lie there.\n\n{}\n",
            skill.whose.name(),
            skill.directory.display(),
            body.trim()
        );
        Ok(StoreResult { text, summary: format!("skill {}", line(&name, 60)) })
    }
}

impl FoundSkills {
    fn add_all(&mut self, whose: SkillOwner, place: &Path) {
        let entries = match std::fs::read_dir(place) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
            Err(error) => {
                return self.troubles.push(format!("{}: {error}", place.display()));
            }
        };
        let mut directories: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        directories.sort();
        if directories.len() > MOST {
            let more = directories.len() - MOST;
            self.troubles.push(format!("{}: {more} of its entries were not read", place.display()));
        }
        for directory in directories.into_iter().take(MOST) {
            match read(whose, &directory) {
                Ok(Some((name, skill))) => {
                    self.skills.entry(name).or_insert(skill);
                }
                Ok(None) => {}
                Err(why) => self.troubles.push(format!("{}: {why}", directory.display())),
            }
        }
    }
}

/// The skill in a directory; none where it holds no `SKILL.md`.
fn read(whose: SkillOwner, directory: &Path) -> Result<Option<(String, Skill)>, String> {
    let text = match directory.is_dir() {
        true => read_text::read(&directory.join("SKILL.md"), LONGEST)?,
        false => None,
    };
    let Some(text) = text else { return Ok(None) };
    let front = front(&text)?;
    let own = directory.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = front.name.or(own).unwrap_or_default();
    let plain = |letter: char| letter.is_alphanumeric() || "-_.:".contains(letter);
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
        return Err(format!(
            "its name {:?} is not made of letters, digits, - _ . :",
            line(&name, 64)
        ));
    }
    let Some(description) = front.description.filter(|text| !text.trim().is_empty()) else {
        return Err("it has no description, so its purpose is unknown".to_owned());
    };
    let description = line(&description, DESCRIPTION);
    let (directory, body) = (directory.to_owned(), front.body.to_owned());
    Ok(Some((name, Skill { whose, directory, description, body })))
}
