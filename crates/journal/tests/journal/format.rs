//! The JSON of each kind of record and of each value in one, compared with that on record. Later builds read it,
//! so a change here is a change of the format.
//!
//! A line of `golden/format.txt` is a name and its JSON. After an addition, write its line there, and
//! `UPDATE_GOLDEN=1 cargo test -p journal --test journal format` brings each line into the form that this build writes.

use journal::{
    AuditRecord, BasisRecord, Bounded, CallProgress, CallSpan, ChainHead, CompactionCause,
    ConnectionOutcome, ContentBlock, DecisionRecord, JournalRecord, Level, Outcome,
    OwnOriginRecord, PathAct, ProcessAct, PromptPart, ProviderFailure, RefusalKind, RetentionBound,
    RuleEffect, SessionHeader, Subject, SummaryStep, Tier, ToolKind, TurnEnd,
};
use serde::{Serialize, de::DeserializeOwned};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const RECORD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/journal/golden/format.txt");

/// The files of `src` whose types are on disk.
const FILES: [&str; 11] = [
    "record.rs",
    "task.rs",
    "image.rs",
    "audit/entry.rs",
    "values/mod.rs",
    "values/cage.rs",
    "values/connection.rs",
    "values/content.rs",
    "values/expanded_prompt.rs",
    "values/refusal.rs",
    "values/summary_step.rs",
];

/// Types of those files that are not on disk.
const NOT_ON_DISK: [&str; 4] = ["JournalEntry", "AuditEntry", "ServerCall", "ImageBytes"];

/// The JSON that this build writes for the value that it reads from this JSON.
fn again(name: &str, json: &str) -> String {
    fn by<T: Serialize + DeserializeOwned>(json: &str) -> String {
        let value: T = serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"));
        serde_json::to_string(&value).unwrap()
    }
    let of_type = match name.split("::").next().unwrap() {
        "JournalRecord" => by::<JournalRecord>,
        "AuditRecord" => by::<AuditRecord>,
        "SummaryStep" => by::<SummaryStep>,
        "CompactionCause" => by::<CompactionCause>,
        "SessionHeader" => by::<SessionHeader>,
        "DecisionRecord" => by::<DecisionRecord>,
        "RetentionBound" => by::<RetentionBound>,
        "Level" => by::<Level>,
        "ConnectionOutcome" => by::<ConnectionOutcome>,
        "ToolKind" => by::<ToolKind>,
        "OwnOriginRecord" => by::<OwnOriginRecord>,
        "ContentBlock" => by::<ContentBlock>,
        "Outcome" => by::<Outcome>,
        "RuleEffect" => by::<RuleEffect>,
        "PromptPart" => by::<PromptPart>,
        "BasisRecord" => by::<BasisRecord>,
        "Bounded" => by::<Bounded>,
        "CallProgress" => by::<CallProgress>,
        "TurnEnd" => by::<TurnEnd>,
        "CallSpan" => by::<CallSpan>,
        "ProviderFailure" => by::<ProviderFailure>,
        "ChainHead" => by::<ChainHead>,
        "Tier" => by::<Tier>,
        "RefusalKind" => by::<RefusalKind>,
        "Subject" => by::<Subject>,
        "PathAct" => by::<PathAct>,
        "ProcessAct" => by::<ProcessAct>,
        other => panic!("no type {other}"),
    };
    of_type(json)
}

fn on_record() -> Vec<(String, String)> {
    let text = fs::read_to_string(RECORD).unwrap();
    let lines = text.lines().map(|line| line.split_once(' ').unwrap());
    lines.map(|(name, json)| (name.to_owned(), json.to_owned())).collect()
}

#[test]
fn every_value_is_written_as_it_is_on_record() {
    let mut lines = on_record();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        lines.iter_mut().for_each(|(name, json)| *json = again(name, json));
        let text: String = lines.iter().map(|(name, json)| format!("{name} {json}\n")).collect();
        // The other test reads it meanwhile.
        let new = format!("{RECORD}.new");
        fs::write(&new, text).unwrap();
        fs::rename(new, RECORD).unwrap();
    }
    for (name, json) in &lines {
        assert_eq!(again(name, json), *json, "{name}");
    }
}

/// A variant, or a field, that the sources declare: the item, and its name on disk.
fn declared(source: &str) -> Vec<(String, String)> {
    let (mut found, mut item, mut attributes) = (Vec::new(), None, String::new());
    let mut in_skipped = false;
    for line in source.lines() {
        let text = line.trim();
        if text.starts_with("#[") {
            attributes.push_str(text);
            continue;
        }
        let word = |rest: &str| -> String {
            rest.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect()
        };
        let kind = text.strip_prefix("pub enum ").or_else(|| text.strip_prefix("pub struct "));
        if let (Some(rest), true) = (kind, !line.starts_with(' ')) {
            let is_on_disk =
                attributes.contains("Serialize") && !NOT_ON_DISK.contains(&&*word(rest));
            item = (is_on_disk && rest.ends_with('{'))
                .then(|| (word(rest), text.starts_with("pub enum ")));
        } else if let Some((name, is_enum)) = &item
            && !text.is_empty()
            && !text.starts_with("//")
        {
            let is_variant = *is_enum && line.starts_with("    ") && !line.starts_with("     ");
            let text = text.strip_prefix("pub ").unwrap_or(text);
            let is_field = text.split_once(": ").is_some_and(|(field, _)| word(field) == field);
            let renamed = attributes
                .split_once("rename = \"")
                .map(|(_, rest)| word(rest.trim_start_matches('$')));
            let is_on_disk = !attributes.contains("(skip)") && !attributes.contains("untagged");
            // The fields of a variant that is not on disk follow it.
            in_skipped = !line.starts_with("    }") && (in_skipped || is_variant && !is_on_disk);
            let is_listed = is_on_disk && !in_skipped;
            if is_listed && is_variant && !word(text).is_empty() {
                found.push((name.clone(), format!("::{}", word(text))));
            } else if is_listed && is_field {
                found.push((name.clone(), renamed.unwrap_or_else(|| word(text))));
            }
        }
        if line == "}" {
            item = None;
        }
        if !text.starts_with("//") {
            attributes.clear();
        }
    }
    found
}

#[test]
fn every_variant_and_every_field_is_on_record() {
    let lines = on_record();
    let variants: BTreeSet<&str> = lines.iter().map(|(name, _)| name.as_str()).collect();
    let all: String = lines.iter().map(|(_, json)| json.replace("\"$", "\"")).collect();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut missing, mut count) = (Vec::new(), 0);
    for file in FILES {
        for (item, name) in declared(&fs::read_to_string(source.join(file)).unwrap()) {
            count += 1;
            let is_there = match name.starts_with("::") {
                true => variants.contains(&*format!("{item}{name}")),
                false => all.contains(&format!("\"{name}\":")),
            };
            if !is_there {
                missing.push(format!("{item} {name}"));
            }
        }
    }
    assert!(count > 200, "{count} found");
    assert!(missing.is_empty(), "no line for {missing:#?}");
}

#[test]
fn a_value_of_the_wires_alone_is_recorded_as_one_that_earlier_builds_read() {
    assert_eq!(serde_json::to_string(&Level::Uncaged).unwrap(), "\"best_effort\"");
    for kind in [ProviderFailure::ContextFull, ProviderFailure::BadRequest] {
        assert_eq!(serde_json::to_string(&kind).unwrap(), "\"rejected\"");
    }
}
