//! `AGENTS.md` and `CLAUDE.md`: the first that has text is what the model is told first.

use super::{PartState, ProjectReport};
use crate::context::TrustFlag;
use prompts::{DeniedReads, INSTRUCTION_BYTES, INSTRUCTION_NAMES, ImportOutcome, instructions_of};
use protocol::judgement::Audience;
use std::path::Path;

/// Files of Claude Code with further instructions.
const OTHERS: [&str; 2] = ["CLAUDE.local.md", ".claude/CLAUDE.md"];

pub(super) fn look(report: &mut ProjectReport<'_>) {
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
