//! The one list behind `/`: slash commands and skills of the project and of the person. A project's
//! hides a person's of the same name, and a skill hides a command beside it.

use crate::markdown_files::FoundFiles;
use crate::plugin_place::PluginPlace;
use crate::prompt_file::{AllowedTool, PromptFile, PromptKind};
use crate::prompt_owner::PromptOwner;
use crate::skills::{self, SkillCallers};
use crate::slash_commands;
use std::path::PathBuf;

/// Places of slash commands below a project; the first that has a name holds.
const OF_PROJECT: [&str; 3] = [".agentd/commands", ".agents/commands", ".claude/commands"];
/// The same below a home directory.
const OF_HOME: [&str; 2] = [".agents/commands", ".claude/commands"];
/// Below agentd's own configuration directory.
const OF_CONFIG: &str = "commands";

/// Below a plugin.
const OF_PLUGIN: &str = "commands";

/// Where to look.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptPlaces {
    /// The project directory.
    pub project: PathBuf,
    /// The person's home directory.
    pub home: Option<PathBuf>,
    /// agentd's configuration directory.
    pub config: Option<PathBuf>,
    /// Plugins.
    pub plugins: Vec<PluginPlace>,
}

/// Slash commands and skills, as they are now.
#[derive(Debug, Default)]
pub struct PromptList {
    /// By name.
    pub files: Vec<PromptFile>,
    /// Files that cannot be used, a sentence each with the place.
    pub troubles: Vec<String>,
}

/// Why a name leads to no file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameNotFound {
    /// Nothing has this name.
    Unknown,
    /// The last part of several names is this one.
    Ambiguous(Vec<String>),
    /// A file of this name cannot be used, and why.
    Broken(String),
}

impl PromptList {
    /// Reads all places.
    #[must_use]
    pub fn read(places: &PromptPlaces) -> Self {
        let PromptPlaces { project, home, config, plugins } = places;
        let mut list = Self::default();
        let found = skills::find(project, home.as_deref(), plugins);
        list.troubles.extend(found.troubles);
        let (mut of_project, mut of_user) = (Vec::new(), Vec::new());
        let mut of_plugins = Vec::new();
        let of_people = |(_, skill): &(String, skills::Skill)| skill.callers != SkillCallers::Model;
        for (name, skill) in found.skills.into_iter().filter(of_people) {
            let file = of_skill(name, skill);
            match file.owner {
                PromptOwner::Project => of_project.push(file),
                PromptOwner::User => of_user.push(file),
                PromptOwner::Plugin => of_plugins.push(file),
            }
        }
        list.add(of_project);
        let real = project.canonicalize().unwrap_or_else(|_| project.clone());
        for place in OF_PROJECT {
            let found =
                slash_commands::find(&project.join(place), PromptOwner::Project, Some(&real));
            list.add_own(found, plugins);
        }
        list.add(of_user);
        let of_config = config.iter().map(|config| config.join(OF_CONFIG));
        let of_home = home.iter().flat_map(|home| OF_HOME.map(|place| home.join(place)));
        // A project that is the home directory has them already.
        let of_user = of_config.chain(of_home.filter(|_| home.as_ref() != Some(project)));
        for place in of_user {
            list.add_own(slash_commands::find(&place, PromptOwner::User, None), plugins);
        }
        list.add(of_plugins);
        for plugin in plugins {
            let place = plugin.root.join(OF_PLUGIN);
            let mut found = slash_commands::find(&place, PromptOwner::Plugin, Some(&plugin.root));
            for file in &mut found.files {
                file.name = plugin.full_name(&file.name);
                file.plugin_root = Some(plugin.root.clone());
            }
            list.troubles.extend(found.troubles);
            list.add(found.files);
        }
        list.files.sort_by(|a, b| a.name.cmp(&b.name));
        list
    }

    /// Commands of the project or of the person.
    fn add_own(&mut self, found: FoundFiles<PromptFile>, plugins: &[PluginPlace]) {
        self.troubles.extend(found.troubles);
        for file in found.files {
            match plugins.iter().find(|plugin| plugin.has_name(&file.name)) {
                Some(plugin) => {
                    let why = plugin.refuses(&file.name);
                    self.troubles.push(format!("{}: {why}", file.file.display()));
                }
                None => self.add(vec![file]),
            }
        }
    }

    fn add(&mut self, files: Vec<PromptFile>) {
        for file in files {
            match self.files.iter_mut().find(|known| known.name == file.name) {
                Some(known) => known.hides.push(file.file),
                None => self.files.push(file),
            }
        }
    }

    /// The file of a name, or of the last part of a name if that is the only one.
    ///
    /// # Errors
    /// Why there is none.
    pub fn named(&self, name: &str) -> Result<&PromptFile, NameNotFound> {
        if let Some(file) = self.files.iter().find(|file| file.name == name) {
            return Ok(file);
        }
        let ends =
            |file: &&PromptFile| file.name.rsplit_once(':').is_some_and(|(_, last)| last == name);
        let found: Vec<&PromptFile> = self.files.iter().filter(ends).collect();
        match found.as_slice() {
            [file] => Ok(file),
            [] => Err(self.broken(name).map_or(NameNotFound::Unknown, NameNotFound::Broken)),
            several => {
                Err(NameNotFound::Ambiguous(several.iter().map(|it| it.name.clone()).collect()))
            }
        }
    }

    /// The problem of a file that would have this name.
    fn broken(&self, name: &str) -> Option<String> {
        let path = name.replace(':', "/");
        let ends = [format!("/{path}.md: "), format!("/{path}: ")];
        self.troubles.iter().find(|it| ends.iter().any(|end| it.contains(end))).cloned()
    }
}

fn of_skill(name: String, skill: skills::Skill) -> PromptFile {
    let skills::Skill { whose, directory, description, body, .. } = skill;
    let intro = format!(
        "Skill {name} ({}), in {}; files that it names lie there.",
        whose.name(),
        directory.display()
    );
    let tools = skill.allowed_tools.into_iter();
    PromptFile {
        body: format!("{intro}\n\n{}", body.trim()),
        kind: PromptKind::Skill,
        owner: whose,
        file: directory.join("SKILL.md"),
        description,
        argument_hint: skill.argument_hint,
        allowed_tools: tools.map(|it| AllowedTool { text: it.text, line: it.line }).collect(),
        model: skill.model,
        hides: Vec::new(),
        plugin_root: skill.plugin_root,
        name,
    }
}

/// The name and the arguments of a prompt that begins with a slash. A first word with another slash
/// is a path, and a prompt that begins with a space is text.
#[must_use]
pub fn parse_slash(prompt: &str) -> Option<(&str, &str)> {
    let rest = prompt.strip_prefix('/')?;
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let (name, arguments) = rest.split_at(end);
    (!name.is_empty() && !name.contains('/')).then_some((name, arguments.trim()))
}
