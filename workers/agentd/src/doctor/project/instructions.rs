//! `AGENTS.md` and `CLAUDE.md`: the first with text is the first instructions of the model. Also those of the repository around.

use super::{PartState, ProjectReport};
use crate::context::TrustFlag;
use prompts::{
    DeniedReads, INSTRUCTION_BYTES, INSTRUCTION_NAMES, ImportOutcome, directories_around,
    instructions_of,
};
use protocol::judgement::Audience;
use sandbox::{EnclosingRepo, GitElsewhere};
use std::path::{Path, PathBuf};

/// Files of Claude Code with further instructions.
const OTHERS: [&str; 2] = ["CLAUDE.local.md", ".claude/CLAUDE.md"];

pub(super) fn look(report: &mut ProjectReport<'_>) {
    around(report);
    let mut used = None;
    for name in INSTRUCTION_NAMES {
        match prompts::read_text(&report.project.join(name), INSTRUCTION_BYTES) {
            Ok(None) => {}
            Err(why) => report.ignored(name, why),
            Ok(Some(text)) if text.trim().is_empty() => report.ignored(name, "it is empty"),
            Ok(Some(_)) if used.is_some() => {
                report.ignored(name, format!("{} holds", INSTRUCTION_NAMES[0]));
            }
            Ok(Some(_)) => {
                report.add(PartState::Used, name, "the model's first instructions");
                left_out(report, name);
                imports(report);
                used = Some(name);
            }
        }
    }
    for name in OTHERS {
        if report.project.join(name).symlink_metadata().is_ok() {
            report.ignored(
                name,
                format!("instructions are read from {} alone", INSTRUCTION_NAMES.join(" or ")),
            );
        }
    }
}

/// The repository around the project, and the instructions in its directories.
fn around(report: &mut ProjectReport<'_>) {
    let home = report.context.environment.get("HOME").map(PathBuf::from);
    if let Some(found) = sandbox::git_elsewhere(report.project, home.as_deref()) {
        let (GitElsewhere::Directory(place) | GitElsewhere::Objects(place)) = &found;
        let place = place.display();
        let text =
            format!("git needs {place}, which calls do not see; `--add-dir {place}` grants it");
        report.ignored(".git", text);
    }
    match sandbox::enclosing_repo(report.project, home.as_deref()) {
        EnclosingRepo::Absent => {}
        EnclosingRepo::LeftOut { tree, why } => {
            let text = format!("git finds no repository in calls, since {why}");
            report.ignored(&tree.join(".git").display().to_string(), text);
        }
        EnclosingRepo::Used(tree) => {
            let text = "the repository that this project is a part of: commands read it";
            report.add(PartState::Used, &tree.display().to_string(), text);
            for dir in directories_around(&tree, report.project) {
                let has_text = |name: &&&str| {
                    let found = prompts::read_text(&dir.join(name), INSTRUCTION_BYTES);
                    found.is_ok_and(|found| found.is_some_and(|text| !text.trim().is_empty()))
                };
                if let Some(name) = INSTRUCTION_NAMES.iter().find(has_text) {
                    let place = dir.join(name).display().to_string();
                    report.add(
                        PartState::Used,
                        &place,
                        "the model's instructions before the project's",
                    );
                }
            }
        }
    }
}

fn left_out(report: &mut ProjectReport<'_>, name: &str) {
    let length = std::fs::metadata(report.project.join(name)).map_or(0, |found| found.len());
    let more = length.saturating_sub(INSTRUCTION_BYTES as u64);
    if more > 0 {
        report.ignored(name, format!("the model gets its first 64 KiB: {more} bytes are left out"));
    }
}

/// The imports, such as `@docs/style.md`.
fn imports(report: &mut ProjectReport<'_>) {
    // An error of the settings is in the report already.
    let config = report.context.load(report.project, &[], TrustFlag::NotGiven).ok();
    let rules = config.map(|config| config.rule_set(report.project, Audience::Person));
    let denied = rules.as_ref().map(approval::read_denials);
    let why = |named: &Path, real: &Path| {
        denied.as_ref().and_then(|denied| approval::denied_read(denied, named, real))
    };
    let denied = DeniedReads::by(&why);
    let (found, _) = instructions_of(report.project, report.project, INSTRUCTION_BYTES, denied);
    for import in found.map_or_else(Vec::new, |found| found.imports) {
        let state = match import.outcome {
            ImportOutcome::Whole(_) | ImportOutcome::Cut(..) => PartState::Used,
            ImportOutcome::Refused(_) => PartState::Ignored,
        };
        let place = format!("{}:{}", import.by, import.line);
        let text = import.to_string();
        report.add(state, &place, text.trim_start_matches(&format!("{place}: ")));
    }
}
