//! `verify`: what a person had configured to be run after edits, in each package that was edited.
//! The conversation calls it on its own account; no model is told of it.

use crate::answer::Answer;
use crate::arguments::Facts;
use crate::command::{self, Wanted};
use crate::control::visible_lines;
use crate::failure::{Code, Failure};
use crate::site::Site;
use crate::spec::{Alias, Caller, Tool};
use protocol::call::Outcome;
use protocol::confinement::{Network, Profile};
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Most packages of one round. Who edits more of them runs the command on all.
const PACKAGES: usize = 20;
/// Most characters of errors that the model is shown: the first lead to the others.
const SHOWN: usize = 4_000;
/// What a shell answers where the program is not there, or cannot be executed.
const NOT_RUN: [i32; 2] = [126, 127];

pub(super) struct Verify;

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// What to run, for a shell.
    command: String,
    /// The file that marks a package: the command is run where the nearest one lies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    package: Option<String>,
    /// The files that were edited.
    paths: Vec<String>,
}

impl Tool for Verify {
    type Input = Input;
    const NAME: &'static str = "verify";
    // Never run again by itself: what build scripts do is not known.
    const KIND: ToolKind = ToolKind::Mutation;
    const PROFILE: Profile = Profile::Verify;
    const CALLER: Caller = Caller::Conversation;
    const DESCRIPTION: &'static str = "Run what was configured to be run after edits.";
    const ALIASES: &'static [Alias] = &[];

    fn facts(input: &Input) -> Facts {
        Facts {
            command: Some(input.command.clone()),
            network: Some(Network::Off),
            ..Facts::default()
        }
    }

    fn run(input: Input, site: &mut Site<'_>) -> Result<Answer, Failure> {
        let Input { command, package, paths } = input;
        let dirs = packages(package.as_deref(), &paths, site)?;
        let target = site.place.temp.join("verify").to_string_lossy().into_owned();
        let answer = command::run(
            Wanted {
                argv: vec!["/bin/sh".to_owned(), "-c".to_owned(), script(&command, &dirs)],
                text: command.clone(),
                // Cargo would wait for a build of the person's, and theirs for this.
                env: vec![("CARGO_TARGET_DIR".to_owned(), target)],
                without: None,
                timeout_ms: None,
            },
            site,
        )?;
        told(&command, answer)
    }
}

/// Where the command is to be run, each place once.
fn packages(
    package: Option<&str>,
    paths: &[String],
    site: &Site<'_>,
) -> Result<Vec<PathBuf>, Failure> {
    let Some(marker) = package else { return Ok(vec![site.place.project.clone()]) };
    let mut dirs: Vec<PathBuf> = Vec::new();
    for path in paths {
        let real = site.resolve(path)?.real;
        let above = real.ancestors().skip(1).take_while(|dir| site.place.contains(dir));
        let found = above.into_iter().find(|dir| dir.join(marker).is_file()).map(Path::to_owned);
        dirs.extend(found.filter(|found| !dirs.contains(found)));
    }
    dirs.truncate(PACKAGES);
    match dirs.is_empty() {
        true => Err(Failure::new(
            Code::NotFound,
            format!("no {marker} lies above {}", paths.join(", ")),
            "",
        )),
        false => Ok(dirs),
    }
}

/// The command in each of these directories; it ends as the last did that failed.
fn script(command: &str, dirs: &[PathBuf]) -> String {
    let mut script = "code=0\n".to_owned();
    for dir in dirs {
        let dir = command::in_words(&[dir.to_string_lossy().into_owned()]);
        script.push_str(&format!("(cd {dir} && {command}\n) || code=$?\n"));
    }
    script.push_str("exit $code\n");
    script
}

/// What the model is told of it.
///
/// # Errors
/// Where it came to no finding.
fn told(command: &str, answer: Answer) -> Result<Answer, Failure> {
    let Outcome::Exited { code } = answer.outcome else { return Ok(answer) };
    if code == 0 {
        let body = format!("verifier: `{command}`: no errors");
        return Ok(Answer { summary: "no errors".to_owned(), body, footer: Vec::new(), ..answer });
    }
    let found = Found::in_output(&answer.body);
    if NOT_RUN.contains(&code) || (asks_cargo(command) && !found.ended) {
        let why = found.text.lines().find(|line| !line.trim().is_empty()).unwrap_or("it failed");
        let why: String = why.trim().chars().take(300).collect();
        return Err(Failure::new(Code::NotFound, why, ""));
    }
    let (text, count) = match found.errors.len() {
        0 => (found.text, String::new()),
        1 => (found.errors.concat(), "1 error, ".to_owned()),
        n => (found.errors.concat(), format!("{n} errors, ")),
    };
    let text = visible_lines(&text);
    let mut shown: String = text.trim_end().chars().take(SHOWN).collect();
    let left = text.trim_end().chars().count().saturating_sub(SHOWN);
    if left > 0 {
        shown.push_str(&format!("\n[… {left} more characters; run it with bash to see them]"));
    }
    let mut footer = answer.footer;
    footer.pop();
    Ok(Answer {
        body: format!("verifier: `{command}`: {count}exit code {code}\n{shown}"),
        summary: format!("{count}exit code {code}"),
        footer,
        ..answer
    })
}

/// What a command printed.
struct Found {
    /// Errors of compilers, as cargo passes them on.
    errors: Vec<String>,
    /// Whether cargo says that the build ended: where it does not, a crate is missing or a manifest is
    /// wrong, and nothing was found out about the edit.
    ended: bool,
    /// All else.
    text: String,
}

impl Found {
    /// Lines of cargo's `--message-format json` are read, others are text.
    fn in_output(output: &str) -> Self {
        let mut found = Self { errors: Vec::new(), ended: false, text: String::new() };
        for line in output.lines().filter(|line| *line != "--- stderr ---") {
            let message: Option<Value> =
                Some(line).filter(|line| line.starts_with('{')).and_then(parsed);
            let Some(message) = message else {
                found.text.push_str(line);
                found.text.push('\n');
                continue;
            };
            match message["reason"].as_str() {
                Some("build-finished") => found.ended = true,
                Some("compiler-message") if message["message"]["level"] == "error" => {
                    let rendered = message["message"]["rendered"].as_str().unwrap_or_default();
                    found.errors.push(rendered.to_owned());
                }
                Some(_) | None => {}
            }
        }
        found
    }
}

/// Whether the command is cargo's and asks it for its own format.
fn asks_cargo(command: &str) -> bool {
    let mut words = command.split_whitespace();
    words.next() == Some("cargo")
        && words.any(|word| word == "json" || word == "--message-format=json")
}

fn parsed(line: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(line).ok()?;
    value["reason"].is_string().then_some(value)
}
