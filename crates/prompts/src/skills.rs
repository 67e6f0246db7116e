//! Skills: instructions for one kind of task, each a directory with a `SKILL.md`. A project's skill
//! takes the place of a person's of the same name.

use crate::front_matter::{self, ListItem};
use crate::plugin_place::PluginPlace;
use crate::prompt_owner::PromptOwner;
use crate::read_text;
use protocol::hidden::line;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Longest `SKILL.md` in bytes.
const LONGEST: usize = 256 << 10;
/// Maximum number of skills read from one directory.
const MOST: usize = 200;
/// Longest description in characters.
const DESCRIPTION: usize = 400;
/// Where skills lie, the first that has a name holds. Relative to the project, then to the home.
const PLACES: [&str; 2] = [".agents/skills", ".claude/skills"];

/// The same below a plugin.
const OF_PLUGIN: &str = "skills";

/// A usable skill.
#[derive(Debug, Clone)]
pub struct Skill {
    /// Whose it is.
    pub whose: PromptOwner,
    /// Files that it names lie there.
    pub directory: PathBuf,
    /// What it is for, on one line.
    pub description: String,
    /// Its instructions.
    pub body: String,
    pub(crate) argument_hint: String,
    pub(crate) allowed_tools: Vec<ListItem>,
    pub(crate) model: Option<String>,
    /// Who may use it.
    pub callers: SkillCallers,
    /// The folder of its plugin, if it is of one.
    pub plugin_root: Option<PathBuf>,
}

/// Who may use a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkillCallers {
    /// The model and a person.
    All,
    /// A person alone, by `/NAME`.
    Person,
    /// The model alone.
    Model,
}

/// The skills of a search.
#[derive(Debug, Default)]
pub struct FoundSkills {
    /// By name.
    pub skills: BTreeMap<String, Skill>,
    /// Those that cannot be used, a sentence each.
    pub troubles: Vec<String>,
}

/// The skills of a project, a home directory and plugins, as they are now.
#[must_use]
pub fn find(project: &Path, home: Option<&Path>, plugins: &[PluginPlace]) -> FoundSkills {
    let mut found = FoundSkills::default();
    let real = project.canonicalize().ok();
    let home = home.map(|home| (PromptOwner::User, home));
    for (whose, root) in std::iter::once((PromptOwner::Project, project)).chain(home) {
        for place in PLACES {
            found.add_all(
                whose,
                &root.join(place),
                real.as_deref().filter(|_| whose == PromptOwner::Project),
            );
        }
    }
    for plugin in plugins {
        let taken = |name: &&String| plugin.has_name(name);
        let names: Vec<String> = found.skills.keys().filter(taken).cloned().collect();
        for name in names {
            if let Some(skill) = found.skills.remove(&name) {
                let why = plugin.refuses(&name);
                found.troubles.push(format!("{}: {why}", skill.directory.display()));
            }
        }
    }
    for plugin in plugins {
        let mut own = FoundSkills::default();
        own.add_all(PromptOwner::Plugin, &plugin.root.join(OF_PLUGIN), Some(&plugin.root));
        found.troubles.extend(own.troubles);
        for (name, skill) in own.skills {
            let skill = Skill { plugin_root: Some(plugin.root.clone()), ..skill };
            found.skills.entry(plugin.full_name(&name)).or_insert(skill);
        }
    }
    found
}

/// The links by which skills of a home lie elsewhere: of their directories, and of their files.
#[must_use]
pub fn links(home: &Path) -> Vec<PathBuf> {
    let entries = PLACES.iter().filter_map(|place| std::fs::read_dir(home.join(place)).ok());
    let skills = entries.flat_map(|entries| entries.flatten().take(MOST)).map(|entry| entry.path());
    let parts = skills.flat_map(|skill| [skill.join("SKILL.md"), skill]);
    parts.filter(|part| part.is_symlink()).collect()
}

impl FoundSkills {
    fn add_all(&mut self, whose: PromptOwner, place: &Path, project: Option<&Path>) {
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
            match within(project, &directory).and_then(|()| read(whose, &directory)) {
                Ok(Some((name, skill))) => {
                    self.skills.entry(name).or_insert(skill);
                }
                Ok(None) => {}
                Err(why) => self.troubles.push(format!("{}: {why}", directory.display())),
            }
        }
    }
}

/// Checks that the file of a project's skill lies in the project, wherever links lead.
fn within(project: Option<&Path>, directory: &Path) -> Result<(), String> {
    let (Some(project), Ok(real)) = (project, directory.join("SKILL.md").canonicalize()) else {
        return Ok(());
    };
    match real.starts_with(project) {
        true => Ok(()),
        false => Err(format!("it is a link to {}, outside of the project", real.display())),
    }
}

/// Who may use the skill, by the keys of Claude Code.
fn callers(front: &front_matter::FrontMatter<'_>) -> SkillCallers {
    let says = |key: &str, word: &str| front.text(key).is_some_and(|text| text.trim() == word);
    if says("disable-model-invocation", "true") {
        SkillCallers::Person
    } else if says("user-invocable", "false") {
        SkillCallers::Model
    } else {
        SkillCallers::All
    }
}

/// The skill in a directory; none where it holds no `SKILL.md`.
fn read(whose: PromptOwner, directory: &Path) -> Result<Option<(String, Skill)>, String> {
    let text = match directory.is_dir() {
        true => read_text::read(&directory.join("SKILL.md"), LONGEST)?,
        false => None,
    };
    let Some(text) = text else { return Ok(None) };
    let front = front_matter::split(&text)?
        .ok_or("it does not begin with a line --- and its name and description")?;
    let own = directory.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = front.text("name").or(own).unwrap_or_default();
    let plain = |letter: char| letter.is_alphanumeric() || "-_.:".contains(letter);
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
        return Err(format!(
            "its name {:?} is not made of letters, digits, - _ . :",
            line(&name, 64)
        ));
    }
    let Some(description) = front.text("description").filter(|text| !text.trim().is_empty()) else {
        return Err("it has no description, so its purpose is unknown".to_owned());
    };
    let skill = Skill {
        whose,
        directory: directory.to_owned(),
        description: line(&description, DESCRIPTION),
        body: front.body.to_owned(),
        argument_hint: line(&front.text("argument-hint").unwrap_or_default(), 80),
        allowed_tools: front.list("allowed-tools"),
        model: front.text("model"),
        callers: callers(&front),
        plugin_root: None,
    };
    Ok(Some((name, skill)))
}
