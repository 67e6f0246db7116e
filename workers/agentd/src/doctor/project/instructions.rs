//! `AGENTS.md` and `CLAUDE.md`: the first that has text is what the model is told first.

use super::{PartState, ProjectReport};
use std::path::Path;

/// Longest text in bytes, as the store reads it.
const LONGEST: usize = 64 << 10;
/// The first that has text holds.
const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];
/// Files of Claude Code with further instructions.
const OTHERS: [&str; 2] = ["CLAUDE.local.md", ".claude/CLAUDE.md"];
/// Most imports that are named.
const IMPORTS: usize = 10;

pub(super) fn look(report: &mut ProjectReport<'_>) {
    let mut used = None;
    for name in NAMES {
        match prompts::read_text(&report.project.join(name), LONGEST) {
            Ok(None) => {}
            Err(why) => report.ignored(name, why),
            Ok(Some(text)) if text.trim().is_empty() => report.ignored(name, "it is empty"),
            Ok(Some(_)) if used.is_some() => {
                report.ignored(name, format!("{} holds", NAMES[0]));
            }
            Ok(Some(text)) => {
                report.add(PartState::Used, name, "the model's first instructions");
                left_out(report, name);
                imports(report, name, &text);
                used = Some(name);
            }
        }
    }
    for name in OTHERS {
        if report.project.join(name).symlink_metadata().is_ok() {
            report
                .ignored(name, format!("instructions are read from {} alone", NAMES.join(" or ")));
        }
    }
}

fn left_out(report: &mut ProjectReport<'_>, name: &str) {
    let length = std::fs::metadata(report.project.join(name)).map_or(0, |found| found.len());
    let more = length.saturating_sub(LONGEST as u64);
    if more > 0 {
        report.ignored(name, format!("the model gets its first 64 KiB: {more} bytes are left out"));
    }
}

/// Names lines such as `@docs/style.md`, which Claude Code replaces with that file.
fn imports(report: &mut ProjectReport<'_>, name: &str, text: &str) {
    let mut fenced = false;
    let mut found = Vec::new();
    for (line, number) in text.lines().zip(1_u32..) {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if !fenced {
            found.extend(line.split_whitespace().filter_map(import).map(|file| (number, file)));
        }
    }
    for (number, file) in found.iter().take(IMPORTS) {
        let text =
            format!("@{file} is not put in: the model gets these words, and can read the file");
        report.ignored(&format!("{name}:{number}"), text);
    }
    if found.len() > IMPORTS {
        report.ignored(name, format!("{} more imports are not put in", found.len() - IMPORTS));
    }
}

/// The file of a word that is an import: a path, not the name of a person or a package.
fn import(word: &str) -> Option<&str> {
    let file = word.strip_prefix('@')?.trim_end_matches(['.', ',', ';', ')', ':']);
    let is_path = file.starts_with(['~', '/', '.']) || Path::new(file).extension().is_some();
    (is_path && !file.contains(['`', '"'])).then_some(file)
}
