//! `.claude/settings.json` and `.claude/settings.local.json`: their hooks run, once the file is
//! trusted; their denials and questions hold; their other
//! settings are for Claude Code.

use super::{PartState, ProjectReport};
use crate::cli_error::chain;
use config::{ClaudeFile, ConfiguredEventHook, TrustStore};
use protocol::hook::HookEvent;
use protocol::judgement::RuleEffect;
use serde_json::{Map, Value};

/// The files, relative to the project.
const FILES: [&str; 2] = [".claude/settings.json", ".claude/settings.local.json"];
/// Settings that hooks follow, and one that only names a schema.
const USED: [&str; 3] = ["hooks", "disableAllHooks", "$schema"];
/// Settings of Claude Code that people look for, with agentd's way.
const WAYS: &[(&str, &str)] = &[
    ("env", "commands get the variables of `sandbox.env` in your own configuration"),
    ("model", "choose the model with --model, or `provider.model`"),
    ("additionalDirectories", "give --add-dir, or `tools.add_dirs`"),
    ("enabledPlugins", "agentd installs no plugins; --plugin-dir names a local one"),
    ("extraKnownMarketplaces", "agentd installs no plugins; --plugin-dir names a local one"),
    ("enableAllProjectMcpServers", "servers of a project run once you trust their file"),
    ("enabledMcpjsonServers", "servers of a project run once you trust their file"),
    ("apiKeyHelper", "`provider.key_command` names a program that prints the key"),
];
/// Most rules that are written out.
const RULES: usize = 12;

pub(super) fn look(report: &mut ProjectReport<'_>) {
    let first = report.parts.len();
    let mut read = Vec::new();
    for name in FILES {
        match ClaudeFile::read(&report.project.join(name)) {
            Ok(None) if report.project.join(name).is_symlink() => {
                report.ignored(name, "it is a link that leads nowhere");
            }
            Ok(None) => {}
            Err(error) => report.wrong(&chain(&error)),
            Ok(Some(file)) => read.push((name, file)),
        }
    }
    // One file switches the hooks of all off.
    let off = read.iter().find(|(_, file)| file.disables_hooks).map(|(name, _)| *name);
    for (name, file) in &read {
        one(report, name, file, off);
    }
    report.cap(first, ".claude");
}

/// The kind of thing that the matchers of an event choose from.
fn subject(event: HookEvent) -> &'static str {
    match event.is_about_call() {
        true => "tool",
        false => "cause of the event",
    }
}

/// True if its matcher fits nothing that agentd has, so that it never runs.
fn is_idle(hook: &ConfiguredEventHook) -> bool {
    let subjects = tool_specs::hook_subjects(hook.event, |name| hook.covers(name));
    subjects.is_some_and(|subjects| subjects.is_empty())
}

fn one(report: &mut ProjectReport<'_>, name: &str, file: &ClaudeFile, off: Option<&str>) {
    let Some(settings) = file.settings.as_object() else {
        return report.ignored(name, "it is no JSON object, so it has no settings");
    };
    if settings.is_empty() {
        report.ignored(name, "it has no settings");
    }
    let trust = TrustStore::at(report.context.dirs.trust_file());
    let held = trust.holds(&report.project.join(name), file.text.as_bytes());
    let (state, until) = match held {
        Ok(true) => (PartState::Used, ""),
        Ok(false) | Err(_) => {
            (PartState::Untrusted, "; give --trust-project once you have read it")
        }
    };
    for hook in &file.hooks {
        let place = format!("{name}:{}", hook.by.line);
        match off {
            Some(by) => {
                let text = format!("hook {}: {by} sets disableAllHooks", hook.in_words());
                report.ignored(&place, text);
            }
            None if is_idle(hook) => {
                let text = format!("hook {}: matches no {}", hook.in_words(), subject(hook.event));
                report.ignored(&place, text);
            }
            None => report.add(state, &place, format!("hook {}{until}", hook.in_words())),
        }
    }
    for warning in &file.warnings {
        // Such a hook was named with its event's reason.
        if !warning.text.starts_with("has hooks that do not run") {
            let place = format!("{name}:{}", warning.origin.line);
            report.ignored(&place, format!("`{}` {}", warning.key, warning.text));
        }
    }
    for (key, value) in settings.iter().filter(|(key, _)| !USED.contains(&key.as_str())) {
        match value.as_object().filter(|_| key == "permissions") {
            Some(lists) => permissions(report, name, lists),
            None => {
                let way = WAYS.iter().find(|(known, _)| known == key).map(|(_, way)| *way);
                let way = way.map_or_else(String::new, |way| format!(": {way}"));
                report.ignored(name, format!("`{key}` has no effect{way}"));
            }
        }
    }
}

/// The rules of Claude Code, and the same rules as agentd writes them.
fn permissions(report: &mut ProjectReport<'_>, name: &str, lists: &Map<String, Value>) {
    let home = report.context.environment.absolute("HOME");
    for (key, value) in lists {
        let effect = match key.as_str() {
            "allow" => RuleEffect::Allow,
            "ask" => RuleEffect::Ask,
            "deny" => RuleEffect::Deny,
            _ => {
                let way = match key.as_str() {
                    "defaultMode" => ": choose the mode with --permission-mode",
                    "additionalDirectories" => ": give --add-dir, or `tools.add_dirs`",
                    _ => "",
                };
                report.ignored(name, format!("`permissions.{key}` has no effect{way}"));
                continue;
            }
        };
        let Some(rules) = value.as_array() else {
            report.ignored(name, format!("`permissions.{key}` is no list"));
            continue;
        };
        if rules.is_empty() {
            continue;
        }
        let (mut own, mut unknown) = (Vec::new(), Vec::new());
        for rule in rules {
            let text = rule.as_str().unwrap_or_default();
            let real = match effect {
                // As a session reads it.
                RuleEffect::Deny | RuleEffect::Ask => {
                    config::with_real_path(text, report.project, home.as_deref())
                }
                RuleEffect::Allow => text.to_owned(),
            };
            match approval::claude_rule(&real, effect) {
                Ok(read) => own.extend(read),
                Err(why) => unknown.push((rule.to_string(), why)),
            }
        }
        match effect {
            // They only take rights away: no trust is needed.
            RuleEffect::Deny | RuleEffect::Ask if !own.is_empty() => {
                let (count, s) = (own.len(), if own.len() == 1 { "" } else { "s" });
                report.add(PartState::Used, name, format!("{count} {key} rule{s}"));
            }
            RuleEffect::Deny | RuleEffect::Ask => {}
            RuleEffect::Allow => report.ignored(name, not_allowed(&own)),
        }
        for (rule, why) in unknown {
            report.ignored(
                name,
                format!("{rule} of `permissions.{key}` is no rule of agentd: {why}"),
            );
        }
    }
}

/// Rules that allow are for agentd's own files: the same rules as these have them.
fn not_allowed(own: &[String]) -> String {
    let text = "`permissions.allow` does not apply here";
    if own.is_empty() {
        return text.to_owned();
    }
    let shown: Vec<String> = own.iter().take(RULES).map(|rule| format!("{rule:?}")).collect();
    let more = match own.len().saturating_sub(RULES) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    format!("{text}: write allow = [{}{more}] into .agentd/config.toml", shown.join(", "))
}
