//! Sub-agents of the project: each that can be used, its keys without effect, and each file that
//! cannot be used, with the reason.

use super::{PartState, ProjectReport};
use prompts::{AgentFile, AgentList, PromptPlaces};
use protocol::hidden::line;

pub(super) fn look(report: &mut ProjectReport<'_>) {
    let first = report.parts.len();
    let places = PromptPlaces {
        project: report.project.to_owned(),
        home: None,
        config: None,
        plugins: Vec::new(),
    };
    let list = AgentList::read(&places);
    for agent in &list.agents {
        one(report, agent);
    }
    for trouble in &list.troubles {
        // The path, then the reason.
        let (place, why) = trouble.split_once(": ").unwrap_or(("", trouble));
        report.ignored(place, why);
    }
    report.cap(first, "sub-agents");
}

fn one(report: &mut ProjectReport<'_>, agent: &AgentFile) {
    let place = agent.file.display().to_string();
    match left_out(agent) {
        Some(why) => report.ignored(&place, why),
        None => report.add(PartState::Used, &place, format!("sub-agent {}", agent.name)),
    }
    for hidden in &agent.hides {
        let text = format!("the sub-agent {} is {place}", agent.name);
        report.ignored(&hidden.display().to_string(), text);
    }
    if !agent.unused.is_empty() {
        report.ignored(&place, format!("no effect has: {}", agent.unused.join(", ")));
    }
}

/// Why a session leaves an agent out, where its file shows that.
fn left_out(agent: &AgentFile) -> Option<String> {
    if let Some(isolation) = agent.isolation.as_ref().filter(|it| *it != "worktree") {
        return Some(format!("isolation: {} is not possible here", line(isolation, 40)));
    }
    let mut names = agent.tools.iter().flatten().chain(&agent.disallowed);
    let pattern = names.find(|name| name.contains('('))?;
    Some(format!("`{}` names a tool with a pattern", line(pattern, 100)))
}
