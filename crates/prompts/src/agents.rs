//! Sub-agents that people keep in Markdown files: who does a part of the work in a session of its own. A
//! project's agent hides a person's of the same name.

use crate::front_matter;
use crate::markdown_files::{self, FoundFiles};
use crate::plugin_place::PluginPlace;
use crate::prompt_list::PromptPlaces;
use crate::prompt_owner::PromptOwner;
use protocol::hidden::line;
use std::path::{Path, PathBuf};

/// Places of agents below a project; the first that has a name holds.
const OF_PROJECT: [&str; 3] = [".agentd/agents", ".agents/agents", ".claude/agents"];
/// The same below a home directory.
const OF_HOME: [&str; 2] = [".agents/agents", ".claude/agents"];
/// Below agentd's own configuration directory.
const OF_CONFIG: &str = "agents";
/// Below a plugin.
const OF_PLUGIN: &str = "agents";
/// Longest description in characters.
const DESCRIPTION: usize = 400;
/// Longest name in bytes.
const LONGEST_NAME: usize = 64;
/// The keys of a file that have an effect.
pub const AGENT_KEYS: [&str; 10] = [
    "name",
    "description",
    "tools",
    "disallowedTools",
    "model",
    "permissionMode",
    "maxTurns",
    "isolation",
    "skills",
    "background",
];

/// An agent, as its file or a flag describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFile {
    /// Its name.
    pub name: String,
    /// Whose it is.
    pub owner: PromptOwner,
    /// The file; or the flag that gave it.
    pub file: PathBuf,
    /// The work that it is for, on one line.
    pub description: String,
    /// Tools that it may call; all of its parent's where absent.
    pub tools: Option<Vec<String>>,
    /// Tools that it may not call.
    pub disallowed: Vec<String>,
    /// The model that it wants.
    pub model: Option<String>,
    /// The permission mode that it wants.
    pub mode: Option<String>,
    /// Most requests to the model.
    pub max_turns: Option<String>,
    /// The place in which it works: `worktree` for a copy of its own.
    pub isolation: Option<String>,
    /// Skills whose text it is given at its start.
    pub skills: Vec<String>,
    /// Whether its parent goes on while it works: `true` or `false`.
    pub background: Option<String>,
    /// Keys that have no effect.
    pub unused: Vec<String>,
    /// Its instructions.
    pub body: String,
    /// Files of the same name that it hides.
    pub hides: Vec<PathBuf>,
}

/// The agents of a session, as their files are now.
#[derive(Debug, Default)]
pub struct AgentList {
    /// By name.
    pub agents: Vec<AgentFile>,
    /// Files that cannot be used, a sentence each with the place.
    pub troubles: Vec<String>,
}

impl AgentList {
    /// Reads all places.
    #[must_use]
    pub fn read(places: &PromptPlaces) -> Self {
        let PromptPlaces { project, home, config, plugins } = places;
        let mut list = Self::default();
        let real = project.canonicalize().unwrap_or_else(|_| project.clone());
        for place in OF_PROJECT {
            let whose = (PromptOwner::Project, Some(real.as_path()));
            list.add_place(&project.join(place), whose, plugins);
        }
        let of_config = config.iter().map(|config| config.join(OF_CONFIG));
        let of_home = home.iter().flat_map(|home| OF_HOME.map(|place| home.join(place)));
        // A project that is the home directory has them already.
        for place in of_config.chain(of_home.filter(|_| home.as_ref() != Some(project))) {
            list.add_place(&place, (PromptOwner::User, None), plugins);
        }
        for plugin in plugins {
            let place = plugin.root.join(OF_PLUGIN);
            let take = |path: &Path, _: &str, text: &str| {
                let agent = agent(PromptOwner::Plugin, path, text)?;
                Ok(AgentFile { name: plugin.full_name(&agent.name), ..agent })
            };
            list.add(markdown_files::find(&place, Some(&plugin.root), &take));
        }
        list.agents.sort_by(|a, b| a.name.cmp(&b.name));
        list
    }

    fn add_place(
        &mut self,
        place: &Path,
        (owner, within): (PromptOwner, Option<&Path>),
        plugins: &[PluginPlace],
    ) {
        let take = |path: &Path, _: &str, text: &str| {
            let agent = agent(owner, path, text)?;
            match plugins.iter().find(|plugin| plugin.has_name(&agent.name)) {
                Some(plugin) => Err(plugin.refuses(&agent.name)),
                None => Ok(agent),
            }
        };
        self.add(markdown_files::find(place, within, &take));
    }

    fn add(&mut self, found: FoundFiles<AgentFile>) {
        self.troubles.extend(found.troubles);
        for agent in found.files {
            match self.agents.iter_mut().find(|known| known.name == agent.name) {
                Some(known) => known.hides.push(agent.file),
                None => self.agents.push(agent),
            }
        }
    }
}

fn agent(owner: PromptOwner, path: &Path, text: &str) -> Result<AgentFile, String> {
    let front = front_matter::split(text).map_err(|why| format!("its front matter: {why}"))?;
    let front = front.ok_or("it does not begin with a line --- and its name and description")?;
    front.check().map_err(|why| format!("its front matter: {why}"))?;
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = front.text("name").or(stem).unwrap_or_default();
    check_name(&name)?;
    let Some(description) = front.text("description").filter(|text| !text.trim().is_empty()) else {
        return Err("it has no description, so its purpose is unknown".to_owned());
    };
    if front.body.trim().is_empty() {
        return Err("it has no text for the model".to_owned());
    }
    let names = |key: &str| front.list(key).into_iter().map(|item| item.text).collect::<Vec<_>>();
    let value = |key: &str| front.text(key).filter(|text| !text.trim().is_empty());
    let keys = front.keys();
    Ok(AgentFile {
        name,
        owner,
        file: path.to_owned(),
        description: line(&description, DESCRIPTION),
        // An empty list would read as "all tools".
        tools: keys.contains(&"tools").then(|| names("tools")),
        disallowed: names("disallowedTools"),
        model: value("model"),
        mode: value("permissionMode"),
        max_turns: value("maxTurns"),
        isolation: value("isolation"),
        skills: names("skills"),
        background: value("background"),
        unused: keys
            .into_iter()
            .filter(|key| !AGENT_KEYS.contains(key))
            .map(|key| line(key, LONGEST_NAME))
            .collect(),
        body: front.body.trim().to_owned(),
        hides: Vec::new(),
    })
}

/// Checks the name of an agent.
///
/// # Errors
/// Which letters it may have.
pub fn check_agent_name(name: &str) -> Result<(), String> {
    check_name(name)
}

fn check_name(name: &str) -> Result<(), String> {
    let plain = |letter: char| letter.is_alphanumeric() || "-_.:".contains(letter);
    match name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(plain) {
        true => Err(format!(
            "its name {:?} is not made of at most {LONGEST_NAME} letters, digits, - _ . :",
            line(name, LONGEST_NAME)
        )),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(text: &str) -> Result<AgentFile, String> {
        agent(PromptOwner::Project, Path::new("/p/.claude/agents/look.md"), text)
    }

    #[test]
    fn a_file_of_another_agent_is_read_and_unknown_keys_are_named() {
        let found = read(
            "---\nname: explore\ndescription: Finds code.\ntools: Read, Grep\n\
             disallowedTools: [Bash]\nmodel: haiku\npermissionMode: plan\nmaxTurns: 3\n\
             skills: tables, plots\nbackground: true\ncolor: blue\nmcpServers:\n  - x\n---\n\nLook well.\n",
        )
        .unwrap();
        assert_eq!((found.name.as_str(), found.description.as_str()), ("explore", "Finds code."));
        assert_eq!(found.tools.unwrap(), ["Read", "Grep"]);
        assert_eq!(found.disallowed, ["Bash"]);
        assert_eq!(found.model.as_deref(), Some("haiku"));
        assert_eq!(found.mode.as_deref(), Some("plan"));
        assert_eq!(found.max_turns.as_deref(), Some("3"));
        assert_eq!(found.skills, ["tables", "plots"]);
        assert_eq!(found.background.as_deref(), Some("true"));
        assert_eq!(found.unused, ["color", "mcpServers"]);
        assert_eq!(found.body, "Look well.");
        let plain = read("---\ndescription: x\n---\nDo.").unwrap();
        assert_eq!((plain.name.as_str(), plain.tools), ("look", None));
    }

    #[test]
    fn a_list_of_no_tools_is_not_a_list_of_all_tools() {
        let found = read("---\ndescription: x\ntools:\n---\nDo.").unwrap();
        assert_eq!(found.tools, Some(Vec::new()));
    }

    #[test]
    fn a_file_that_cannot_be_used_says_why() {
        for (text, why) in [
            ("Do.", "does not begin with a line ---"),
            ("---\nname: x\n---\nDo.", "no description"),
            ("---\ndescription: x\n---\n", "no text"),
            ("---\ndescription: x\nname: a b\n---\nDo.", "its name \"a b\""),
        ] {
            let said = read(text).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
    }

    #[test]
    fn a_projects_agent_hides_a_persons() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let text = |what: &str| format!("---\ndescription: {what}\n---\nDo.");
        for (place, name) in [
            ("project/.claude/agents/sub/a.md", "the project's"),
            ("home/.claude/agents/a.md", "the person's"),
            ("home/.claude/agents/b.md", "the other"),
        ] {
            let file = root.join(place);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text(name)).unwrap();
        }
        let list = AgentList::read(&PromptPlaces {
            project: root.join("project"),
            home: Some(root.join("home")),
            config: None,
            plugins: Vec::new(),
        });
        let named: Vec<_> =
            list.agents.iter().map(|it| (it.name.as_str(), it.description.as_str())).collect();
        assert_eq!(named, [("a", "the project's"), ("b", "the other")]);
        assert_eq!(list.agents[0].hides, [root.join("home/.claude/agents/a.md")]);
    }
}
