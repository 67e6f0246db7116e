//! The session of a sub-agent: its bounds, which are those of its parent or narrower, and how they are kept
//! whoever opens it.
//!
//! The first record of its journal holds the bounds. They are applied whenever the session is opened, also by
//! a person's terminal with other flags, and no later change of a setting exceeds them.

use super::{SessionSpec, SystemTexts};
use crate::agents::{Agent, AgentCatalog, FileTrust, stricter};
use crate::open_failure::OpenFailure;
use config::Config;
use journal::{StoredPath, TaskHeader};
use prompts::{AgentList, PromptPlaces};
use protocol::client::{RequestFailure, SessionRequest, SettingChange, Unsandboxed};
use protocol::confinement::{Confinement, FilePath, Network};
use protocol::ids::SessionId;
use protocol::judgement::{EXIT_PLAN, PermissionMode, Rule, RuleEffect, RuleSet};
use protocol::session::{OfferedTool, SessionBounds, SessionSetup, TaskUse};
use std::path::PathBuf;
use tools::TaskRequest;

/// The tool that starts sub-agents.
pub(crate) const TASK: &str = "task";
/// Says to a sub-agent what it is.
const PREAMBLE: &str = "You are a sub-agent: another agent gave you the task in the first message. It sees nothing of \
     your work but your last answer, so put everything that it needs there.";

/// The name of the session that works for a call.
pub(crate) fn session_of(parent: &SessionId, call: u32) -> SessionId {
    SessionId(format!("{parent}-{call}"))
}

/// The bounds of a sub-agent that come from its parent's budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TaskShare {
    /// Most calls.
    pub(crate) calls: Option<u32>,
    /// Most cost, in millionths of a US dollar.
    pub(crate) cost: Option<u64>,
}

impl TaskShare {
    /// The part that one of so many possible sub-agents gets of what is neither used nor given to one that
    /// works.
    pub(crate) fn of(
        bounds: SessionBounds,
        used: TaskUse,
        given: &[Self],
        possible: u32,
    ) -> Result<Self, &'static str> {
        let calls_given: u32 = given.iter().filter_map(|share| share.calls).sum();
        let cost_given: u64 = given.iter().filter_map(|share| share.cost).sum();
        let left = |most: u32| most.saturating_sub(used.calls).saturating_sub(calls_given);
        let calls = bounds.calls.map(|most| left(most) / possible.max(1));
        if calls == Some(0) {
            return Err("the tool calls of this session are used up");
        }
        let left = |most: u64, spent| most.saturating_sub(spent).saturating_sub(cost_given);
        let cost = match (bounds.cost, used.cost) {
            (None, _) => None,
            (Some(_), None) => return Err("the cost of this session is not known"),
            (Some(most), Some(spent)) => Some(left(most, spent) / u64::from(possible.max(1))),
        };
        match cost {
            Some(0) => Err("the session has reached the limit of its cost"),
            cost => Ok(Self { calls, cost }),
        }
    }
}

/// Reads the sub-agents of a session.
pub(super) fn catalog(places: &PromptPlaces, config: &Config, depth: u32) -> AgentCatalog {
    if depth == 0 {
        return AgentCatalog::default();
    }
    let trust = match config.project_is_trusted {
        true => FileTrust::Trusted,
        false => FileTrust::Untrusted,
    };
    AgentCatalog::of(AgentList::read(places), trust)
}

/// Levels of sub-agents that a session may have.
pub(super) fn depth(config: &Config, task: Option<&TaskHeader>) -> u32 {
    let most = config.budget.agents.depth;
    task.map_or(most, |task| task.depth.min(most))
}

/// The request with the flags that a sub-agent's session may have.
pub(super) fn narrowed(opening: &SessionRequest, task: Option<&TaskHeader>) -> SessionRequest {
    let mut opening = opening.clone();
    if task.is_some_and(|task| !task.uncaged) {
        opening.uncaged = Unsandboxed::Refused;
    }
    opening
}

/// Applies the bounds of a sub-agent.
pub(super) fn narrow(
    task: &TaskHeader,
    (rules, confinement): (&mut RuleSet, &mut Confinement),
    setup: &mut SessionSetup,
    texts: &mut SystemTexts,
) {
    rules.mode = stricter(rules.mode, loosest_mode(task));
    setup.mode = rules.mode;
    rules.rules.extend(task.deny.iter().map(|text| Rule {
        effect: RuleEffect::Deny,
        text: text.clone(),
        file: format!("sub-agent {}", task.agent),
        line: 0,
    }));
    confinement.network = narrower(confinement.network, loosest_network(task));
    confinement
        .hosts
        .retain(|host| task.network == Network::On.name() || lists(task, &host.to_string()));
    confinement.added.retain(|dir| adds(task, dir));
    setup.max_rounds = setup.max_rounds.min(task.rounds).max(1);
    setup.max_session.calls = match (setup.max_session.calls, task.calls) {
        (Some(own), Some(share)) => Some(own.min(share)),
        (own, share) => own.or(share),
    };
    setup.tools.retain(|tool| is_offered(task, tool));
    texts.agent = format!("{PREAMBLE}\n\n{}", task.instructions);
}

fn is_offered(task: &TaskHeader, tool: &OfferedTool) -> bool {
    let name = tool.spec.name.as_str();
    let denied = |name: &str| task.deny.iter().any(|rule| rule == name);
    let target = tools::rule_targets().iter().find(|target| target.name == name);
    let inherits = target.is_some_and(|target| target.inherits.iter().any(|it| denied(it.tool)));
    gives(task, name) && !denied(name) && !inherits
}

fn gives(task: &TaskHeader, tool: &str) -> bool {
    // The answer to a plan would change the mode, which is the parent's matter.
    tool != EXIT_PLAN
        && task.tools.as_ref().is_none_or(|tools| tools.iter().any(|given| given == tool))
}

/// A word that this build does not know allows nothing.
fn loosest_mode(task: &TaskHeader) -> PermissionMode {
    PermissionMode::parse(&task.mode).unwrap_or(PermissionMode::Plan)
}

fn loosest_network(task: &TaskHeader) -> Network {
    Network::parse(&task.network).unwrap_or(Network::Off)
}

fn lists(task: &TaskHeader, host: &str) -> bool {
    task.hosts.iter().any(|listed| listed == host)
}

fn adds(task: &TaskHeader, dir: &FilePath) -> bool {
    task.added.iter().any(|added| added.0 == dir.to_path())
}

fn narrower(one: Network, other: Network) -> Network {
    match (one, other) {
        (Network::Off, _) | (_, Network::Off) => Network::Off,
        (Network::Listed, _) | (_, Network::Listed) => Network::Listed,
        (Network::On, Network::On) => Network::On,
    }
}

impl SessionSpec {
    /// The call that the session works for, if it is a sub-agent's.
    pub(crate) fn task(&self) -> Option<&TaskHeader> {
        self.origin.task.as_deref()
    }

    /// The sub-agents that it may start.
    pub(crate) fn agents(&self) -> &AgentCatalog {
        &self.origin.agents
    }

    /// Checks that a sub-agent was given this tool.
    ///
    /// # Errors
    /// The tools that it was given.
    pub(crate) fn check_given(&self, tool: &str) -> Result<(), String> {
        let Some(task) = self.task().filter(|task| !gives(task, tool)) else { return Ok(()) };
        let has = match task.tools.as_deref() {
            None => String::new(),
            Some([]) => "; it has none".to_owned(),
            Some(tools) => format!("; it has: {}", tools.join(", ")),
        };
        Err(format!("the sub-agent {} has no tool {tool}{has}", task.agent))
    }

    /// Checks that a changed setting stays inside the bounds of a sub-agent.
    ///
    /// # Errors
    /// The bound, with a way on.
    pub(crate) fn check_task_bounds(&self, change: &SettingChange) -> Result<(), OpenFailure> {
        let Some(task) = self.task() else { return Ok(()) };
        let fits = match change {
            SettingChange::Mode(mode) => stricter(*mode, loosest_mode(task)) == *mode,
            SettingChange::Network(network) => {
                narrower(*network, loosest_network(task)) == *network
            }
            SettingChange::Host(host) => match loosest_network(task) {
                Network::On => true,
                Network::Listed => lists(task, &host.to_string()),
                Network::Off => false,
            },
            SettingChange::AddDirectory(dir) => adds(task, dir),
            SettingChange::Model(_)
            | SettingChange::Pin(_)
            | SettingChange::Unpin(_)
            | SettingChange::AppendedSystem(_)
            | SettingChange::CostLimit(_) => true,
        };
        match fits {
            true => Ok(()),
            false => Err(OpenFailure::new(
                RequestFailure::Usage,
                format!(
                    "this is the session of a sub-agent, whose rights only become fewer than those of its \
                     parent. Work on in session {}",
                    task.session
                ),
            )),
        }
    }

    /// The first record of a sub-agent's session, and the request that opens it.
    pub(crate) fn task_session(
        &self,
        agent: &Agent,
        call: u32,
        request: &TaskRequest,
        share: TaskShare,
    ) -> (TaskHeader, SessionRequest) {
        let Confinement { network, hosts, added, .. } = &self.confinement;
        let own = self.task();
        let from_flag = |rule: &&Rule| rule.effect == RuleEffect::Deny && rule.file == "flag";
        let flags = self.rules.rules.iter().filter(from_flag).map(|rule| rule.text.clone());
        let mode = agent.mode.map_or(self.rules.mode, |mode| stricter(mode, self.rules.mode));
        let both = |list: &Vec<String>| match own.and_then(|own| own.tools.as_ref()) {
            Some(own) => list.iter().filter(|tool| own.contains(tool)).cloned().collect(),
            None => list.clone(),
        };
        let tools = match &agent.tools {
            Some(list) => Some(both(list)),
            None => own.and_then(|own| own.tools.clone()),
        };
        let header = TaskHeader {
            session: self.id.0.clone(),
            call,
            agent: agent.name.clone(),
            prompt: request.prompt.clone(),
            instructions: agent.instructions.clone(),
            depth: depth(&self.config, own).saturating_sub(1),
            tools,
            deny: flags
                .chain(own.iter().flat_map(|own| own.deny.clone()))
                .chain(agent.deny.clone())
                .collect(),
            mode: mode.name().to_owned(),
            network: network.name().to_owned(),
            hosts: hosts.iter().map(ToString::to_string).collect(),
            added: added.iter().map(|dir| StoredPath(dir.to_path())).collect(),
            rounds: agent.rounds.unwrap_or(self.config.budget.rounds).min(self.setup.max_rounds),
            calls: share.calls,
            uncaged: self.origin.opening.uncaged == Unsandboxed::Accepted,
        };
        let mut opening = self.origin.opening.clone();
        opening.start = protocol::client::SessionStart::New;
        opening.added = added.clone();
        opening.audience = self.rules.audience;
        opening.mode = Some(mode);
        opening.network = Some(*network);
        opening.conversation.cost_limit = share.cost;
        opening.conversation.appended_system =
            Some(self.texts.appended.clone()).filter(|text| !text.is_empty());
        if let Some(model) = &agent.model {
            opening.settings.push(("provider.model".to_owned(), model.clone()));
        }
        (header, opening)
    }
}

/// Where the files of sub-agents lie.
pub(super) fn places(confinement: &Confinement, config: Option<PathBuf>) -> PromptPlaces {
    let Confinement { project, home, .. } = confinement;
    PromptPlaces { project: project.to_path(), home: home.as_ref().map(FilePath::to_path), config }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_parts_of_several_sub_agents_are_never_more_than_what_is_left() {
        let used = TaskUse { calls: 3, cost: Some(2_000_000) };
        let bounds = SessionBounds {
            calls: Some(43),
            cost: Some(12_000_000),
            tasks: 4,
            used: TaskUse { calls: 0, cost: Some(0) },
        };
        let mut given = Vec::new();
        for possible in [4, 3, 2, 1] {
            given.push(TaskShare::of(bounds, used, &given, possible).unwrap());
        }
        let each = TaskShare { calls: Some(10), cost: Some(2_500_000) };
        assert_eq!(given, [each; 4]);
        assert_eq!(
            TaskShare::of(bounds, used, &given, 1),
            Err("the tool calls of this session are used up")
        );
        let unknown = TaskUse { cost: None, ..used };
        assert_eq!(
            TaskShare::of(bounds, unknown, &[], 4),
            Err("the cost of this session is not known")
        );
        let unbounded = SessionBounds { calls: None, cost: None, ..bounds };
        let all = TaskShare { calls: None, cost: None };
        assert_eq!(TaskShare::of(unbounded, unknown, &[], 4), Ok(all));
    }
}
