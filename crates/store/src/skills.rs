//! Skills: instructions for one kind of task, each a directory with a `SKILL.md`, loaded only when
//! the model asks for one. The crate `prompts` finds them.

use crate::StoreResult;
use crate::failure::{StoreError, StoreErrorCode, arguments};
use prompts::{FoundSkills, PluginPlace, SkillCallers};
use protocol::call::Call;
use protocol::hidden::line;
use protocol::store::StoreSetup;
use serde::Deserialize;
use std::path::PathBuf;

/// Maximum number of skills in the text after the system prompt; the model finds the others with
/// `skill_list`.
const TOLD: usize = 40;

/// Where to look.
#[derive(Debug)]
pub(crate) struct Skills {
    project: PathBuf,
    home: Option<PathBuf>,
    plugins: Vec<PluginPlace>,
}

#[derive(Debug, Deserialize)]
struct SkillActivate {
    name: String,
    arguments: Option<String>,
}

impl Skills {
    pub(crate) fn of(setup: &StoreSetup) -> Self {
        let plugins = setup.plugins.iter();
        Self {
            project: setup.confinement.project.to_path(),
            home: setup.confinement.home.as_ref().map(|home| home.to_path()),
            plugins: plugins
                .map(|(name, root)| PluginPlace { name: name.clone(), root: root.to_path() })
                .collect(),
        }
    }

    /// Reads those for the model, as they are now.
    fn look(&self) -> FoundSkills {
        let mut found = prompts::find_skills(&self.project, self.home.as_deref(), &self.plugins);
        found.skills.retain(|_, skill| skill.callers != SkillCallers::Person);
        found
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
        let (root, given) = (skill.plugin_root.as_deref(), given.unwrap_or_default());
        let body = prompts::expand_text(&skill.body, root, &given).map_err(|why| {
            let message = format!("the skill {:?} cannot be used: {why}", line(&name, 60));
            StoreError::new(StoreErrorCode::TooLarge, message, "")
        })?;
        let text = format!(
            "Skill {name} ({}), in {}; files that it names lie there.\n\n{}\n",
            skill.whose.name(),
            skill.directory.display(),
            body.trim()
        );
        Ok(StoreResult { text, summary: format!("skill {}", line(&name, 60)) })
    }
}
