//! The session of a sub-agent: its bounds, which are those of its parent or narrower, and how they are kept
//! whoever opens it.
//!
//! The first record of its journal holds the bounds. They are applied whenever the session is opened, also by
//! a person's terminal with other flags, and no later change of a setting exceeds them.

use super::{SessionSpec, SystemTexts, task_servers};
use crate::agent_skills;
use crate::agents::{Agent, AgentCatalog, FileTrust, Workplace};
use crate::agents_flag;
use crate::open_failure::OpenFailure;
use crate::skill_links::linked_skills;
use crate::task_bounds::TaskBounds;
use crate::task_worktree;
use crate::tool_homes::WrittenPaths;
use approval::ServerToolPattern;
use config::Config;
use journal::{TaskHeader, TaskLimits, TaskWorktree};
use prompts::{AgentList, PluginPlace, PromptPlaces};
use protocol::client::{RequestFailure, SessionRequest, SettingChange, Unsandboxed};
use protocol::confinement::{Confinement, FilePath};
use protocol::fleet::FleetSeat;
use protocol::ids::SessionId;
use protocol::judgement::{ASK_USER, EXIT_PLAN, Rule, RuleEffect, RuleSet};
use protocol::session::{OfferedTool, SessionBounds, SessionSetup, TaskUse};
use std::path::{Path, PathBuf};
use tool_specs::TaskRequest;

/// Says to a sub-agent what it is.
const PREAMBLE: &str = "You are a sub-agent: another agent gave you the task in the first message. It sees nothing of \
     your work but your last answer, so put everything that it needs there.";

/// The name of the session that works for a call.
pub fn session_of(parent: &SessionId, call: u32) -> SessionId {
    SessionId(format!("{parent}-{call}"))
}

/// True if this session belongs to a sub-agent of the other one, or to one of its sub-agents.
pub fn is_below(session: &SessionId, other: &SessionId) -> bool {
    let rest = session.0.strip_prefix(&other.0);
    rest.is_some_and(|rest| rest.starts_with('-'))
}

/// The bounds of a sub-agent that come from its parent's budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskShare {
    /// Most calls.
    pub calls: Option<u32>,
    /// Most cost, in millionths of a US dollar.
    pub cost: Option<u64>,
}

impl TaskShare {
    /// The share in a sub-agent's first record.
    pub fn recorded(limits: TaskLimits) -> Self {
        Self { calls: limits.calls, cost: limits.cost }
    }

    /// The part that one of so many possible sub-agents gets of what is neither used nor given to one that
    /// works.
    pub fn of(
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
pub(super) fn catalog(
    places: &PromptPlaces,
    config: &Config,
    flag: Option<&str>,
    depth: u32,
) -> Result<AgentCatalog, OpenFailure> {
    let wrong = |why| OpenFailure::new(RequestFailure::Usage, format!("--agents: {why}"));
    let given = flag.map_or(Ok(Vec::new()), agents_flag::parse).map_err(wrong)?;
    if depth == 0 {
        return Ok(AgentCatalog::default());
    }
    let trust = match config.project_is_trusted {
        true => FileTrust::Trusted,
        false => FileTrust::Untrusted,
    };
    AgentCatalog::of(AgentList::read(places), trust).with_flag(given).map_err(wrong)
}

/// Levels of sub-agents that a session may have.
pub(super) fn depth(config: &Config, task: Option<&TaskHeader>) -> u32 {
    let most = config.budget.agents.depth;
    task.map_or(most, |task| task.limits.depth.min(most))
}

/// The request with the flags that a sub-agent's session may have.
pub(super) fn narrowed(opening: &SessionRequest, task: Option<&TaskHeader>) -> SessionRequest {
    let mut opening = opening.clone();
    if let Some(worktree) = task.and_then(|task| task.worktree.as_ref()) {
        opening.project = FilePath::from(&worktree.project.0);
        opening.named = None;
    }
    if task.is_some_and(|task| !task.rights.uncaged) {
        opening.uncaged = Unsandboxed::Refused;
    }
    opening
}

/// The directory that a session works in: the project, or the worktree of a sub-agent.
pub(super) fn workplace(project: &Path, task: Option<&TaskHeader>) -> Result<PathBuf, OpenFailure> {
    match task.and_then(|task| task.worktree.as_ref()) {
        Some(worktree) => {
            task_worktree::check_place(worktree).map_err(|why| {
                let text = format!("the git worktree of the sub-agent cannot be used: {why}");
                OpenFailure::new(RequestFailure::Usage, text)
            })?;
            Ok(worktree.path.0.clone())
        }
        None => Ok(project.to_owned()),
    }
}

/// Applies the bounds of a sub-agent.
pub(super) fn narrow(
    task: &TaskHeader,
    (rules, confinement): (&mut RuleSet, &mut Confinement),
    setup: &mut SessionSetup,
    texts: &mut SystemTexts,
) {
    let own = TaskBounds {
        mode: rules.mode,
        network: confinement.network,
        hosts: std::mem::take(&mut confinement.hosts),
        added: std::mem::take(&mut confinement.added),
        rules: Vec::new(),
    };
    let bounds = own.within(&TaskBounds::recorded(&task.rights));
    (rules.mode, setup.mode) = (bounds.mode, bounds.mode);
    (confinement.network, confinement.hosts) = (bounds.network, bounds.hosts);
    confinement.added = bounds.added;
    rules.rules.extend(task.deny.iter().map(|text| Rule {
        effect: RuleEffect::Deny,
        text: text.clone(),
        file: format!("sub-agent {}", task.agent),
        line: 0,
    }));
    setup.max_rounds = setup.max_rounds.min(task.limits.rounds).max(1);
    let most = &mut setup.max_session;
    most.calls = lower(most.calls, task.limits.calls);
    most.cost = lower(most.cost, task.limits.cost);
    setup.tools.retain(|tool| is_offered(task, tool));
    let place = match &task.worktree {
        Some(worktree) if !is_own_worktree(task, worktree) => {
            " You work in the git worktree of the other agent.".to_owned()
        }
        Some(TaskWorktree { branch, .. }) => format!(
            " You work in a git worktree of your own, on branch {branch}: the other agent finds your changes \
             there."
        ),
        None => String::new(),
    };
    texts.agent = format!("{PREAMBLE}{place}\n\n{}", task.instructions);
}

fn is_own_worktree(task: &TaskHeader, worktree: &TaskWorktree) -> bool {
    let own = session_of(&SessionId(task.session.clone()), task.call);
    task_worktree::is_own(worktree, &own)
}

fn is_offered(task: &TaskHeader, tool: &OfferedTool) -> bool {
    let name = tool.spec.name.as_str();
    let denied = |name: &str| task.deny.iter().any(|rule| rule == name);
    let target = tool_specs::rule_targets().iter().find(|target| target.name == name);
    let inherits = target.is_some_and(|target| target.inherits.iter().any(|it| denied(it.tool)));
    gives(task, name) && !denied(name) && !inherits
}

fn gives(task: &TaskHeader, tool: &str) -> bool {
    // The answer to a plan would change the mode, which is the parent's matter. And the parent knows what the
    // person said already.
    tool != EXIT_PLAN
        && tool != ASK_USER
        && task.tools.as_ref().is_none_or(|tools| tools.iter().any(|given| given == tool))
}

/// True if these tools include this one, or this pattern for tools of servers.
fn has(tools: &[String], tool: &String) -> bool {
    let pattern = ServerToolPattern::of(tool);
    let patterns = tools.iter().filter_map(|text| ServerToolPattern::of(text));
    tools.contains(tool)
        || pattern.is_some_and(|it| patterns.into_iter().any(|own| own.includes(&it)))
}

/// The lower of two limits.
pub(super) fn lower<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

impl SessionSpec {
    /// The call that the session works for, if it is a sub-agent's.
    pub fn task(&self) -> Option<&TaskHeader> {
        self.origin.task.as_deref()
    }

    /// The sub-agents that it may start.
    pub fn agents(&self) -> &AgentCatalog {
        &self.origin.agents
    }

    /// Checks that a sub-agent was given this tool.
    ///
    /// # Errors
    /// The tools that it was given.
    pub fn check_given(&self, tool: &str) -> Result<(), String> {
        let Some(task) = self.task().filter(|task| !gives(task, tool)) else { return Ok(()) };
        let has = match task.tools.as_deref() {
            None => String::new(),
            Some([]) => "; it has none".to_owned(),
            Some(tools) => format!("; it has: {}", tools.join(", ")),
        };
        Err(format!("the sub-agent {} has no tool {tool}{has}", task.agent))
    }

    /// False for a tool of a server that the session's sub-agent was not given.
    pub fn has_server_tool(&self, tool: &str) -> bool {
        self.task().is_none_or(|task| task_servers::gives(task, tool))
    }

    /// The rights that bound its sub-agents.
    pub fn task_bounds(&self) -> TaskBounds {
        self.settings.effective().task_bounds()
    }

    /// Bounds a sub-agent's session by the rights that its parent has now. Returns true if its own change
    /// with that.
    pub fn set_parent_bounds(&mut self, parent: TaskBounds) -> bool {
        if self.task().is_none() {
            return false;
        }
        let before = self.task_bounds();
        self.change_settings(|settings| settings.set_parent(parent));
        before != self.task_bounds()
    }

    /// Sets what its sub-agents have used so far.
    pub fn set_use(&mut self, used: TaskUse) {
        self.setup.max_session.used = used;
    }

    /// Counts what a sub-agent has used.
    pub fn count_use(&mut self, new: &TaskUse) {
        let used = &mut self.setup.max_session.used;
        used.calls = used.calls.saturating_add(new.calls);
        used.cost = used.cost.zip(new.cost).map(|(all, new)| all.saturating_add(new));
    }

    /// Checks that a changed setting stays inside the bounds of a sub-agent.
    ///
    /// # Errors
    /// The bound, with a way on.
    pub(super) fn check_task_bounds(&self, change: &SettingChange) -> Result<(), OpenFailure> {
        let Some(task) = self.task() else { return Ok(()) };
        let first = TaskBounds::recorded(&task.rights);
        let most = match self.settings.parent() {
            Some(parent) => first.within(parent),
            None => first,
        };
        match most.admit(change) {
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

    /// The first record of a sub-agent's session.
    pub fn task_header(
        &self,
        agent: &Agent,
        call: u32,
        request: &TaskRequest,
        share: TaskShare,
    ) -> TaskHeader {
        let own = self.task();
        let from_flag = |rule: &&Rule| rule.effect == RuleEffect::Deny && rule.file == "flag";
        let flags = self.rules.rules.iter().filter(from_flag).map(|rule| rule.text.clone());
        let mode = agent.mode.map_or(self.rules.mode, |mode| mode.stricter(self.rules.mode));
        let both = |list: &Vec<String>| match own.and_then(|own| own.tools.as_ref()) {
            Some(own) => list.iter().filter(|tool| has(own, tool)).cloned().collect(),
            None => list.clone(),
        };
        let tools = match &agent.tools {
            Some(list) => Some(both(list)),
            None => own.and_then(|own| own.tools.clone()),
        };
        let own_denials = own.into_iter().flat_map(|own| own.deny.clone());
        let deny: Vec<String> = flags.chain(own_denials).chain(agent.deny.clone()).collect();
        let servers = self.servers().iter().map(|server| server.config.name.as_str());
        let servers = task_servers::given((tools.as_deref(), &deny), servers);
        let uncaged = self.origin.opening.uncaged == Unsandboxed::Accepted;
        TaskHeader {
            session: self.id.0.clone(),
            call,
            agent: agent.name.clone(),
            prompt: request.prompt.clone(),
            instructions: agent.instructions.clone(),
            model: agent.model.clone(),
            tools,
            deny,
            servers,
            rights: self.task_bounds().to_record(mode, uncaged),
            limits: TaskLimits {
                depth: depth(&self.config, own).saturating_sub(1),
                rounds: agent
                    .rounds
                    .unwrap_or(self.config.budget.rounds)
                    .min(self.setup.max_rounds),
                calls: share.calls,
                cost: share.cost,
            },
            worktree: match agent.workplace {
                // A sub-agent of one in a worktree works there too.
                Workplace::Project => own.and_then(|own| own.worktree.clone()),
                Workplace::Worktree => {
                    let project = self.confinement.project.to_path();
                    Some(task_worktree::planned(&project, &session_of(&self.id, call)))
                }
            },
        }
    }

    /// Its seat in a fleet, if it works for one.
    pub fn seat(&self) -> Option<&FleetSeat> {
        self.origin.opening.seat.as_deref()
    }

    /// The text of skills that an agent is given at its start.
    ///
    /// # Errors
    /// The skill that cannot be given, and why.
    pub fn skill_texts(&self, names: &[String]) -> Result<String, String> {
        if names.is_empty() {
            return Ok(String::new());
        }
        let PromptPlaces { project, home, plugins, .. } =
            places((&self.confinement, &self.config), None);
        let mut found = prompts::find_skills(&project, home.as_deref(), &plugins);
        let written = WrittenPaths::of(&self.confinement);
        let linked = linked_skills((&project, home.as_deref()), &self.forbidden.paths(), &written);
        for (link, said) in linked.left_out {
            let own = |skill: &prompts::Skill| link.starts_with(&skill.directory);
            found.skills.retain(|_, skill| !own(skill));
            found.troubles.push(said);
        }
        agent_skills::texts(&found, names)
    }

    /// The request that opens a sub-agent's session. Its first record bounds it.
    pub fn task_opening(&self, header: &TaskHeader) -> SessionRequest {
        let mut opening = self.origin.opening.clone();
        opening.settings = self.present_flags();
        opening.start = protocol::client::SessionStart::New;
        opening.seat = None;
        opening.added = self.confinement.added.clone();
        opening.audience = self.rules.audience;
        opening.mode = Some(self.rules.mode);
        opening.network = Some(self.confinement.network);
        opening.conversation.cost_limit = None;
        opening.conversation.appended_system =
            Some(self.texts.appended.clone()).filter(|text| !text.is_empty());
        if let Some(model) = &header.model {
            opening.settings.push(("provider.model".to_owned(), model.clone()));
        }
        opening
    }
}

/// Where the files of sub-agents lie.
pub(super) fn places(
    (confinement, settings): (&Confinement, &Config),
    config: Option<PathBuf>,
) -> PromptPlaces {
    let Confinement { project, home, .. } = confinement;
    let plugins = settings.plugins.iter();
    PromptPlaces {
        project: project.to_path(),
        home: home.as_ref().map(FilePath::to_path),
        config,
        plugins: plugins
            .map(|plugin| PluginPlace { name: plugin.name.clone(), root: plugin.root.clone() })
            .collect(),
    }
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
