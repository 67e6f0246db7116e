//! The sub-agents of a session: those in files, as the crate `prompts` reads them, with their tools, modes and
//! bounds in agentd's terms, and the built-in one. Pure. Used where a session is specified.
//!
//! A file can only take rights away from an agent. So a file of an untrusted project counts, but for its
//! model, which may cost more.

use approval::ServerToolPattern;
use prompts::{AgentFile, AgentList, PromptOwner};
use protocol::judgement::PermissionMode;
use protocol::mcp::PREFIX;
use std::path::Path;

/// The built-in agent.
pub(crate) const GENERAL: &str = "general";
/// Another agent's name for it.
const GENERAL_PURPOSE: &str = "general-purpose";
/// Keys that concern only another agent's display.
const COSMETIC: [&str; 1] = ["color"];
/// Most agents of a session: the description of each is sent with every request.
const MOST: usize = 50;

/// An agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    pub(crate) name: String,
    pub(crate) description: String,
    /// The tools that it may call; all where absent.
    pub(crate) tools: Option<Vec<String>>,
    /// Rules that deny calls.
    pub(crate) deny: Vec<String>,
    pub(crate) model: Option<String>,
    pub(crate) mode: Option<PermissionMode>,
    pub(crate) rounds: Option<u32>,
    /// Where it works.
    pub workplace: Workplace,
    /// Skills whose text it is given at its start.
    pub skills: Vec<String>,
    /// Its parent goes on while it works.
    pub background: bool,
    pub(crate) instructions: String,
}

/// Where an agent works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workplace {
    /// In the project itself.
    Project,
    /// In a git worktree of its own.
    Worktree,
}

/// The agents of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentCatalog {
    /// The agents.
    pub agents: Vec<Agent>,
    /// Notes for its person, a sentence each.
    pub(crate) notes: Vec<String>,
}

/// Trust in the project's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileTrust {
    Trusted,
    Untrusted,
}

impl AgentCatalog {
    /// The built-in agent, and those of the files.
    pub(crate) fn of(list: AgentList, trust: FileTrust) -> Self {
        let mut catalog = Self { agents: Vec::new(), notes: Vec::new() };
        let cannot = |why: String| format!("a sub-agent cannot be used: {why}");
        catalog.notes.extend(list.troubles.into_iter().map(cannot));
        let left_out = list.agents.len().saturating_sub(MOST);
        for file in list.agents.into_iter().take(MOST) {
            let place = shown(&file.file);
            match catalog.agent(&file, trust) {
                Ok(agent) => catalog.agents.push(agent),
                Err(why) => catalog.notes.push(cannot(format!("{place}: {why}"))),
            }
        }
        if left_out > 0 {
            catalog.notes.push(format!("{left_out} sub-agents are left out; the most is {MOST}"));
        }
        if !catalog.agents.iter().any(|agent| agent.name == GENERAL) {
            catalog.agents.insert(0, general());
        }
        catalog
    }

    /// Adds the agents of a flag, which hide others of the same names.
    ///
    /// # Errors
    /// Why one of them cannot be used.
    pub(crate) fn with_flag(mut self, given: Vec<AgentFile>) -> Result<Self, String> {
        for file in given {
            let agent = self.agent(&file, FileTrust::Trusted);
            let agent = agent.map_err(|why| format!("{}: {why}", file.name))?;
            self.agents.retain(|known| !known.name.eq_ignore_ascii_case(&agent.name));
            self.agents.push(agent);
        }
        match self.agents.len() > MOST + 1 {
            true => Err(format!("there are more than {MOST} sub-agents")),
            false => Ok(self),
        }
    }

    /// The agent of this name; without a name the built-in one.
    ///
    /// # Errors
    /// The names that there are.
    pub fn find(&self, name: Option<&str>) -> Result<&Agent, String> {
        let wanted = name.map_or(GENERAL, str::trim);
        let same = |agent: &&Agent| agent.name.eq_ignore_ascii_case(wanted);
        let found = self.agents.iter().find(same);
        let general = || {
            let is_general = wanted.is_empty() || wanted.eq_ignore_ascii_case(GENERAL_PURPOSE);
            self.agents.iter().find(|agent| is_general && agent.name == GENERAL)
        };
        found.or_else(general).ok_or_else(|| {
            let names: Vec<_> = self.agents.iter().map(|agent| agent.name.as_str()).collect();
            let wanted = protocol::hidden::line(wanted, 80);
            format!("there is no agent {wanted:?}; there are: {}", names.join(", "))
        })
    }

    /// The list of agents for the model.
    pub(crate) fn describe(&self) -> String {
        let lines =
            self.agents.iter().map(
                |Agent { name, description, background, .. }| match background {
                    true => format!("\n- {name}: {description} (in the background)"),
                    false => format!("\n- {name}: {description}"),
                },
            );
        format!("The agents (subagent_type):{}", lines.collect::<String>())
    }

    fn agent(&mut self, file: &AgentFile, trust: FileTrust) -> Result<Agent, String> {
        let place = shown(&file.file);
        let mut note = |text: String| self.notes.push(format!("{place}: {text}"));
        let unused: Vec<_> = file
            .unused
            .iter()
            .filter(|key| !COSMETIC.contains(&key.as_str()))
            .map(|key| format!("`{key}`"))
            .collect();
        if !unused.is_empty() {
            note(format!("{} of this sub-agent has no effect here", unused.join(", ")));
        }
        let mut unknown = Vec::new();
        let tools = match &file.tools {
            None => None,
            Some(names) => Some(allowed(names, &mut unknown)?),
        };
        let deny = denied(&file.disallowed, &mut unknown)?;
        if !unknown.is_empty() {
            note(format!("agentd has no tool {}; it is left out", unknown.join(", ")));
        }
        let model = file.model.clone().filter(|model| model != "inherit");
        let model = match (file.owner, trust) {
            (PromptOwner::Project, FileTrust::Untrusted) if model.is_some() => {
                note(
                    "`model` has no effect: this project is not trusted. Trust it with `agentd \
                     init`, or for one run with --trust-project"
                        .to_owned(),
                );
                None
            }
            (PromptOwner::Project | PromptOwner::User | PromptOwner::Plugin, _) => model,
        };
        let mode = match file.mode.as_deref() {
            None => None,
            Some(word) => Some(PermissionMode::parse_either(word).ok_or_else(|| {
                format!(
                    "permissionMode: {} is none of ask, sandboxed, accept-edits, plan, auto, dont-ask",
                    protocol::hidden::line(word, 40)
                )
            })?),
        };
        let rounds = match file.max_turns.as_deref() {
            None => None,
            Some(text) => {
                Some(text.parse().ok().filter(|rounds| *rounds > 0).ok_or_else(|| {
                    format!("maxTurns: {} is no number above 0", protocol::hidden::line(text, 40))
                })?)
            }
        };
        let workplace = match file.isolation.as_deref() {
            None => Workplace::Project,
            Some("worktree") => Workplace::Worktree,
            // Running it in the project itself would be less than the file asks for.
            Some(isolation) => {
                return Err(format!(
                    "isolation: {} is not possible here; use `worktree`, or leave the key out to let it \
                     work in the project",
                    protocol::hidden::line(isolation, 40)
                ));
            }
        };
        let background = match file.background.as_deref() {
            None | Some("false") => false,
            Some("true") => true,
            Some(word) => {
                return Err(format!(
                    "background: {} is neither true nor false",
                    protocol::hidden::line(word, 40)
                ));
            }
        };
        Ok(Agent {
            name: file.name.clone(),
            description: file.description.clone(),
            tools,
            deny,
            model,
            mode,
            rounds,
            workplace,
            skills: file.skills.clone(),
            background,
            instructions: file.body.clone(),
        })
    }
}

fn general() -> Agent {
    Agent {
        name: GENERAL.to_owned(),
        description: "Any work, with all of your tools.".to_owned(),
        tools: None,
        deny: Vec::new(),
        model: None,
        mode: None,
        rounds: None,
        workplace: Workplace::Project,
        skills: Vec::new(),
        background: false,
        instructions: String::new(),
    }
}

/// The tools that these names give.
fn allowed(names: &[String], unknown: &mut Vec<String>) -> Result<Vec<String>, String> {
    let mut tools: Vec<String> = Vec::new();
    for name in names {
        if name == "*" {
            let all =
                tool_specs::specs().iter().filter(|spec| spec.caller == tool_specs::Caller::Model);
            let of_servers = [format!("{PREFIX}*")];
            return Ok(all.map(|spec| spec.name.to_owned()).chain(of_servers).collect());
        }
        if ServerToolPattern::of(name).is_some() {
            tools.push(name.clone());
            continue;
        }
        let Some(tool) = named(name, unknown)? else { continue };
        let family: &[&str] = match tool {
            "edit" => &["edit", "multi_edit"],
            "bash" => &["bash", "bash_output", "bash_input", "bash_stop"],
            "checklist_create" | "checklist_update" => &["checklist_create", "checklist_update"],
            "skill_activate" => &["skill_activate", "skill_list"],
            tool => &[tool],
        };
        tools.extend(family.iter().map(|tool| (*tool).to_owned()));
    }
    Ok(tools)
}

/// Rules that deny these names.
fn denied(names: &[String], unknown: &mut Vec<String>) -> Result<Vec<String>, String> {
    let mut rules = Vec::new();
    for name in names {
        match ServerToolPattern::of(name) {
            Some(_) => rules.push(name.clone()),
            None => rules.extend(named(name, unknown)?.map(str::to_owned)),
        }
    }
    Ok(rules)
}

/// The tool of a name; a name that is none is added to the unknown ones.
fn named(name: &str, unknown: &mut Vec<String>) -> Result<Option<&'static str>, String> {
    if name.contains('(') {
        return Err(format!(
            "`{}` names a tool with a pattern; name the tool, and write the pattern as a rule of \
             permissions",
            protocol::hidden::line(name, 100)
        ));
    }
    let own = tool_specs::named(name).filter(|spec| spec.caller == tool_specs::Caller::Model);
    if own.is_none() {
        unknown.push(protocol::hidden::line(name, 60));
    }
    Ok(own.map(|spec| spec.name))
}

fn shown(path: &Path) -> String {
    protocol::hidden::line(&path.display().to_string(), 300)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn file() -> AgentFile {
        AgentFile {
            name: "look".to_owned(),
            owner: PromptOwner::Project,
            file: "/p/.claude/agents/look.md".into(),
            description: "Looks.".to_owned(),
            tools: None,
            disallowed: Vec::new(),
            model: None,
            mode: None,
            max_turns: None,
            isolation: None,
            skills: Vec::new(),
            background: None,
            unused: Vec::new(),
            body: "Look.".to_owned(),
            hides: Vec::new(),
        }
    }

    fn catalog(file: AgentFile, trust: FileTrust) -> AgentCatalog {
        AgentCatalog::of(AgentList { agents: vec![file], troubles: Vec::new() }, trust)
    }

    fn names(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn tools_of_another_agents_file_are_ours() {
        let listed = AgentFile {
            tools: Some(names(&["Read", "Edit", "Bash", "NotebookEdit", "mcp__docs"])),
            disallowed: names(&["WebFetch", "mcp__docs__delete_*"]),
            ..file()
        };
        let catalog = catalog(listed, FileTrust::Trusted);
        let agent = catalog.find(Some("Look")).unwrap();
        let tools = agent.tools.clone().unwrap();
        let wanted =
            "read edit multi_edit bash bash_output bash_input bash_stop mcp__docs".split(' ');
        assert_eq!(tools, wanted.collect::<Vec<_>>());
        assert_eq!(agent.deny, ["web_fetch", "mcp__docs__delete_*"]);
        assert_eq!(
            catalog.notes,
            ["/p/.claude/agents/look.md: agentd has no tool NotebookEdit; it is left out"]
        );
    }

    #[test]
    fn a_file_never_gives_more_than_it_says() {
        for (file, why) in [
            (
                AgentFile { tools: Some(names(&["Bash(git log:*)"])), ..file() },
                "names a tool with a pattern",
            ),
            (AgentFile { isolation: Some("remote".to_owned()), ..file() }, "isolation: remote"),
            (AgentFile { mode: Some("free".to_owned()), ..file() }, "permissionMode: free is none"),
            (AgentFile { max_turns: Some("0".to_owned()), ..file() }, "maxTurns: 0 is no number"),
            (
                AgentFile { background: Some("later".to_owned()), ..file() },
                "background: later is neither true nor false",
            ),
        ] {
            let catalog = catalog(file, FileTrust::Trusted);
            assert!(catalog.notes[0].contains(why), "{:?}", catalog.notes);
            assert!(catalog.find(Some("look")).is_err());
            assert_eq!(catalog.find(None).unwrap().name, GENERAL);
        }
        let none = AgentFile { tools: Some(Vec::new()), ..file() };
        assert_eq!(catalog(none, FileTrust::Trusted).agents[1].tools, Some(Vec::new()));
    }

    #[test]
    fn a_worktree_of_its_own_is_possible() {
        let own = AgentFile { isolation: Some("worktree".to_owned()), ..file() };
        let catalog = catalog(own, FileTrust::Trusted);
        assert_eq!(catalog.find(Some("look")).unwrap().workplace, Workplace::Worktree);
        assert_eq!(catalog.find(None).unwrap().workplace, Workplace::Project, "the control");
    }

    #[test]
    fn a_model_needs_trust_and_a_key_without_effect_is_named() {
        let wants = AgentFile {
            model: Some("opus".to_owned()),
            unused: names(&["color", "memory"]),
            ..file()
        };
        let trusted = catalog(wants.clone(), FileTrust::Trusted);
        assert_eq!(trusted.agents[1].model.as_deref(), Some("opus"));
        assert_eq!(
            trusted.notes,
            ["/p/.claude/agents/look.md: `memory` of this sub-agent has no effect here"]
        );
        let untrusted = catalog(wants, FileTrust::Untrusted);
        assert_eq!(untrusted.agents[1].model, None);
        assert!(untrusted.notes[1].contains("not trusted"), "{:?}", untrusted.notes);
    }

    #[test]
    fn the_stricter_mode_holds() {
        use PermissionMode::{AcceptEdits, Ask, Auto, Plan, Sandboxed};
        for (one, other, expected) in [
            (Ask, Auto, Ask),
            (Auto, Plan, Plan),
            (AcceptEdits, Ask, Ask),
            (Auto, Auto, Auto),
            (Auto, Sandboxed, Sandboxed),
            (Sandboxed, Ask, Ask),
            // A sub-agent gets neither the edits of the one nor the commands of the other.
            (Sandboxed, AcceptEdits, Ask),
            (AcceptEdits, Sandboxed, Ask),
        ] {
            assert_eq!(one.stricter(other), expected, "{one:?} {other:?}");
        }
    }
}
