//! The sub-agents of the flag `--agents`: one JSON object, an agent for each name, in Claude Code's spelling.
//! Pure. Used where a session is specified.

use prompts::{AgentFile, PromptOwner, check_agent_name};
use protocol::hidden::line;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// Longest text in bytes: it goes with each request for the session.
const LONGEST: usize = 256 << 10;
/// Longest description in characters.
const DESCRIPTION: usize = 400;

/// An agent, as the flag has it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct FlagAgent {
    description: String,
    prompt: String,
    tools: Option<Names>,
    disallowed_tools: Option<Names>,
    model: Option<String>,
    permission_mode: Option<String>,
    max_turns: Option<u32>,
    isolation: Option<String>,
    skills: Option<Names>,
    background: Option<bool>,
    #[serde(flatten)]
    unused: BTreeMap<String, Value>,
}

/// The agents in their order. A map would keep the last of equal names alone.
struct Named(Vec<(String, FlagAgent)>);

impl<'de> Deserialize<'de> for Named {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Entries)
    }
}

struct Entries;

impl<'de> Visitor<'de> for Entries {
    type Value = Named;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with an agent for each name")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Named, A::Error> {
        let mut agents = Vec::new();
        while let Some(entry) = map.next_entry()? {
            agents.push(entry);
        }
        Ok(Named(agents))
    }
}

/// Names in a list, or separated by commas.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Names {
    List(Vec<String>),
    Text(String),
}

impl Names {
    fn list(self) -> Vec<String> {
        match self {
            Self::List(names) => names,
            Self::Text(text) => {
                let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
                names.map(str::to_owned).collect()
            }
        }
    }
}

/// Reads the flag.
///
/// # Errors
/// The place and the reason.
pub(crate) fn parse(text: &str) -> Result<Vec<AgentFile>, String> {
    if text.len() > LONGEST {
        return Err(format!("it is longer than {} KiB", LONGEST >> 10));
    }
    let example = r#"write it as {"NAME": {"description": "…", "prompt": "…"}}"#;
    let Named(agents) =
        serde_json::from_str(text).map_err(|error| format!("{error}; {example}"))?;
    for (at, (name, _)) in agents.iter().enumerate() {
        if let Some((other, _)) = agents[..at].iter().find(|(it, _)| it.eq_ignore_ascii_case(name))
        {
            return Err(format!("two agents have the names {other} and {name}; rename one"));
        }
    }
    agents.into_iter().map(|(name, agent)| file(name, agent)).collect()
}

fn file(name: String, agent: FlagAgent) -> Result<AgentFile, String> {
    check_agent_name(&name)?;
    for (key, text) in [("description", &agent.description), ("prompt", &agent.prompt)] {
        if text.trim().is_empty() {
            return Err(format!("{name}: its {key} is empty"));
        }
    }
    Ok(AgentFile {
        name,
        owner: PromptOwner::User,
        file: PathBuf::from("--agents"),
        description: line(&agent.description, DESCRIPTION),
        tools: agent.tools.map(Names::list),
        disallowed: agent.disallowed_tools.map(Names::list).unwrap_or_default(),
        model: agent.model,
        mode: agent.permission_mode,
        max_turns: agent.max_turns.map(|most| most.to_string()),
        isolation: agent.isolation,
        skills: agent.skills.map(Names::list).unwrap_or_default(),
        background: agent.background.map(|given| given.to_string()),
        unused: agent.unused.into_keys().map(|key| line(&key, 64)).collect(),
        body: agent.prompt.trim().to_owned(),
        hides: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_name_is_an_agent() {
        let text = r#"{"look": {"description": "Looks.", "prompt": " Look well. ",
            "tools": ["Read", "Grep"], "model": "haiku", "maxTurns": 4, "background": true, "memory": "user"},
            "plain": {"description": "x", "prompt": "y", "tools": "Read, Bash"}}"#;
        let agents = parse(text).unwrap();
        let [look, plain] = &agents[..] else { panic!("{agents:?}") };
        assert_eq!((look.name.as_str(), look.body.as_str()), ("look", "Look well."));
        assert_eq!(look.tools.as_deref().unwrap(), ["Read", "Grep"]);
        assert_eq!((look.model.as_deref(), look.max_turns.as_deref()), (Some("haiku"), Some("4")));
        assert_eq!(look.background.as_deref(), Some("true"));
        assert_eq!(look.unused, ["memory"]);
        assert_eq!(plain.tools.as_deref().unwrap(), ["Read", "Bash"]);
    }

    #[test]
    fn a_text_that_is_wrong_says_where() {
        for (text, why) in [
            ("{", "line 1 column 1"),
            (r#"{"a": {"prompt": "x"}}"#, "missing field `description`"),
            (r#"{"a": {"description": "x", "prompt": " "}}"#, "a: its prompt is empty"),
            (
                r#"{"look": {"description": "x", "prompt": "y"}, "Look": {"description": "x", "prompt": "z"}}"#,
                "the names look and Look",
            ),
            (
                r#"{"a": {"description": "x", "prompt": "y"}, "a": {"description": "x", "prompt": "z"}}"#,
                "the names a and a",
            ),
            (r#"{"a b": {"description": "x", "prompt": "y"}}"#, "its name \"a b\""),
        ] {
            let said = parse(text).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
    }
}
