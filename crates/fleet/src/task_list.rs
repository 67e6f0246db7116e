//! The tasks of a submission, from flags or from a file of JSON lines. Pure.

use crate::{HostLoss, SubmitArgs};
use serde::{Deserialize, Serialize};

/// The most tasks of one submission.
const MOST: usize = 100_000;

/// A task, as the database takes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewTask {
    /// An address, or a directory.
    pub repo: String,
    /// Branch, tag or commit.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The prompt.
    pub prompt: String,
    /// Flags of the run, as `agentd -p` takes them.
    pub flags: Vec<String>,
    /// Labels that its host must have.
    pub labels: Vec<String>,
    /// Longest time of a run, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Higher ones begin first.
    pub priority: i32,
    /// If its host is lost.
    pub on_host_loss: HostLoss,
    /// True if questions wait for a person.
    pub ask: bool,
}

/// Why there are no tasks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskListError {
    /// A line is no task.
    #[error("line {line}: {why}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// The reason.
        why: String,
    },
    /// There is none.
    #[error("the file has no task")]
    Empty,
    /// There are too many.
    #[error("{0} tasks are more than one submission takes, which is {MOST}")]
    TooMany(usize),
}

/// A line of the file. What it leaves out, the flags give.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    repo: Option<String>,
    #[serde(rename = "ref")]
    reference: Option<String>,
    prompt: Option<String>,
    labels: Option<Vec<String>>,
    priority: Option<i32>,
    timeout: Option<u32>,
    max_cost: Option<serde_json::Number>,
    max_turns: Option<u32>,
    model: Option<String>,
    permission_mode: Option<String>,
    allowed_tools: Option<Vec<String>>,
    on_host_loss: Option<HostLoss>,
    ask: Option<bool>,
}

/// The tasks of this submission. `file` is the text of `--file`, if there is one.
///
/// # Errors
/// A line that is no task, with its number; no task; too many.
pub fn tasks_of(args: &SubmitArgs, file: Option<&str>) -> Result<Vec<NewTask>, TaskListError> {
    let mut tasks = Vec::new();
    match file {
        None => tasks.push(task(args, Line::default()).map_err(|why| at(1, why))?),
        Some(text) => {
            for (n, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
                let read = serde_json::from_str(line).map_err(|error| at(n + 1, error.to_string()));
                tasks.push(task(args, read?).map_err(|why| at(n + 1, why))?);
            }
        }
    }
    if let Some(times) = args.array {
        tasks = tasks.iter().flat_map(|task| copies(task, times)).collect();
    }
    match tasks.len() {
        0 => Err(TaskListError::Empty),
        many if many > MOST => Err(TaskListError::TooMany(many)),
        _ => Ok(tasks),
    }
}

/// True for an address with a password before its host.
fn has_password(repo: &str) -> bool {
    let Some((_, rest)) = repo.split_once("://") else { return false };
    let authority = rest.split('/').next().unwrap_or_default();
    authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
}

fn at(line: usize, why: impl Into<String>) -> TaskListError {
    TaskListError::Line { line, why: why.into() }
}

fn copies(task: &NewTask, times: u32) -> impl Iterator<Item = NewTask> {
    let task = task.clone();
    (1..=times).map(move |n| NewTask {
        prompt: task.prompt.replace("{n}", &n.to_string()),
        ..task.clone()
    })
}

fn task(args: &SubmitArgs, line: Line) -> Result<NewTask, String> {
    let missing = |what: &str| format!("it has no {what}, and no flag gives one");
    let repo = line.repo.or_else(|| args.repo.clone()).ok_or_else(|| missing("repo"))?;
    let prompt = line.prompt.or_else(|| args.prompt.clone()).ok_or_else(|| missing("prompt"))?;
    if prompt.trim().is_empty() {
        return Err("its prompt is empty".to_owned());
    }
    if has_password(&repo) {
        return Err(
            "its repo holds a password, which everybody could read: let git on the hosts ask \
                    a credential helper"
                .to_owned(),
        );
    }
    if repo.starts_with('-') {
        return Err(format!("{repo:?} is no repository"));
    }
    let reference = line.reference.unwrap_or_else(|| args.reference.clone());
    if reference.starts_with('-') || reference.is_empty() {
        return Err(format!("{reference:?} is no branch, tag or commit"));
    }
    let labels = line.labels.unwrap_or_else(|| args.labels.clone());
    let cost = line.max_cost.map(|cost| cost.to_string()).or_else(|| args.run.max_cost.clone());
    let turns = line.max_turns.or(args.run.max_turns).map(|turns| turns.to_string());
    let mode = line.permission_mode.or_else(|| args.run.permission_mode.clone());
    let rules = line.allowed_tools.unwrap_or_else(|| args.run.allowed_tools.clone());
    let one = |name: &str, value: Option<String>| value.map(|value| format!("--{name}={value}"));
    let model = line.model.or_else(|| args.run.model.clone());
    let flags = [("max-cost", cost), ("max-turns", turns), ("model", model)];
    let flags = flags.into_iter().chain([("permission-mode", mode)]);
    let flags = flags.filter_map(|(name, value)| one(name, value));
    let flags = flags.chain(rules.iter().map(|rule| format!("--allowed-tools={rule}"))).collect();
    Ok(NewTask {
        repo,
        reference,
        prompt,
        flags,
        labels,
        timeout_ms: line.timeout.or(args.run.timeout).map(|seconds| u64::from(seconds) * 1000),
        priority: line.priority.unwrap_or(args.priority),
        on_host_loss: line.on_host_loss.unwrap_or(args.on_host_loss),
        ask: line.ask.unwrap_or(args.ask),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        args: SubmitArgs,
    }

    fn args(words: &[&str]) -> SubmitArgs {
        Words::parse_from(std::iter::once("submit").chain(words.iter().copied())).args
    }

    #[test]
    fn a_line_gives_what_it_names_and_the_flags_the_rest() {
        let args = args(&["-f", "x", "--repo", "/r", "--priority", "-2", "--model", "m"]);
        let text = "{\"prompt\":\"a\",\"max_cost\":0.5}\n\n{\"prompt\":\"b\",\"repo\":\"/s\",\
                    \"on_host_loss\":\"resume\",\"timeout\":9}\n";
        let tasks = tasks_of(&args, Some(text)).unwrap();
        assert_eq!(tasks.len(), 2);
        assert_eq!((tasks[0].repo.as_str(), tasks[0].priority), ("/r", -2));
        assert_eq!(tasks[0].flags, ["--max-cost=0.5", "--model=m"]);
        assert_eq!((tasks[1].repo.as_str(), tasks[1].timeout_ms), ("/s", Some(9000)));
        assert_eq!(tasks[1].on_host_loss, HostLoss::Resume);
    }

    #[test]
    fn a_bad_line_is_named_and_nothing_is_taken() {
        let args = args(&["-f", "x", "--repo", "/r"]);
        let at = |text| tasks_of(&args, Some(text)).unwrap_err().to_string();
        assert!(at("{\"prompt\":\"a\"}\n{\"promt\":\"a\"}").starts_with("line 2: unknown field"));
        assert_eq!(at("\n{}"), "line 2: it has no prompt, and no flag gives one");
        assert!(at("{\"prompt\":\"a\",\"repo\":\"--upload-pack=x\"}").starts_with("line 1: "));
        assert!(at("{\"prompt\":\"a\",\"repo\":\"https://u:p@h/r\"}").contains("password"));
        assert!(at("{\"prompt\":\"a\",\"ref\":\"-x\"}").starts_with("line 1: "));
        assert_eq!(at("\n"), "the file has no task");
    }

    #[test]
    fn an_array_counts_from_one() {
        let args = args(&["--repo", "/r", "--prompt", "part {n}", "--array", "3"]);
        let prompts: Vec<_> =
            tasks_of(&args, None).unwrap().into_iter().map(|task| task.prompt).collect();
        assert_eq!(prompts, ["part 1", "part 2", "part 3"]);
    }
}
