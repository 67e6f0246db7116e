//! Hooks at events of a session, in Claude Code's format: from `[hooks]` of our own files and from
//! `hooks` of `.claude/settings.json`. Pure; `load` reads the files.

use crate::error::{ConfigError, SourceLine};
use crate::hook_form::{self, BadField, HookForm};
use crate::origin::{Layer, ValueOrigin};
use crate::source_text::{FileSource, IndexedSource};
use crate::warning::ConfigWarning;
use protocol::hook::HookEvent;
use protocol::judgement::{Rule, RuleEffect};
use serde::Deserialize;
use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

/// The table of our own files, and the field of Claude Code's.
pub(crate) const TABLE: &str = "hooks";
/// Keys of our own table that are no events.
const SETTINGS: [&str; 2] = ["claude_files", "idle_after"];
/// Fields of a matcher with its hooks.
const GROUP: [&str; 2] = ["matcher", "hooks"];
/// Seconds that a hook takes at most, where it names none. As Claude Code has it.
const SECONDS: u64 = 60;
/// Most seconds that a hook may take.
const MOST_SECONDS: u64 = 600;

/// A hook of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredEventHook {
    /// Its event.
    pub event: HookEvent,
    /// The regular expression over the names of its subjects; empty for all.
    pub matcher: String,
    /// The one name that it is for beside its matcher, by its `if`.
    pub only: Option<String>,
    /// For a shell.
    pub command: String,
    /// Why it cannot be run as it is written. Such a hook never starts, and counts as failed.
    pub broken: Option<String>,
    /// Longest time of one run.
    pub timeout_ms: u64,
    /// The setting and its place, as the rule that allows the command.
    pub by: Rule,
    /// The layer of its file.
    pub layer: Layer,
}

impl ConfiguredEventHook {
    /// True if its matcher covers this name. The expression has to fit the whole name.
    #[must_use]
    pub fn covers(&self, name: &str) -> bool {
        if self.only.as_ref().is_some_and(|only| only != name) {
            return false;
        }
        match pattern(&self.matcher) {
            Ok(None) => true,
            Ok(Some(pattern)) => pattern.is_match(name),
            // It was compiled when its file was read.
            Err(_) => true,
        }
    }

    /// True if its matcher is left out.
    #[must_use]
    pub fn covers_all(&self) -> bool {
        self.only.is_none() && matches!(self.matcher.trim(), "" | "*")
    }

    pub(crate) fn origin(&self) -> ValueOrigin {
        ValueOrigin { layer: self.layer, file: self.by.file.clone(), line: self.by.line }
    }

    /// Event, matcher and command in one line.
    #[must_use]
    pub fn in_words(&self) -> String {
        let matcher = if self.covers_all() { "*" } else { &self.matcher };
        format!("{} {matcher}: {}", self.event.name(), self.command)
    }
}

/// All hooks of a session's files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventHookConfig {
    /// In the order in which they run.
    pub commands: Vec<ConfiguredEventHook>,
    /// The wait for a prompt after which hooks of `Notification` run.
    pub idle_ms: u64,
}

/// The hooks of one file.
#[derive(Debug, Default)]
pub(crate) struct FileHooks {
    pub hooks: Vec<ConfiguredEventHook>,
    /// Parts of it that have no effect.
    pub warnings: Vec<ConfigWarning>,
    /// The file switches all hooks of Claude Code's files off.
    pub disables_all: DisablesAll,
}

/// `disableAllHooks` of Claude Code's settings.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DisablesAll {
    #[default]
    No,
    Yes,
}

/// Those of a file of Claude Code.
pub(crate) fn of_claude(source: FileSource<'_>) -> Result<FileHooks, ConfigError> {
    let value = json_of(source.file, source.text)?;
    let mut found = match value.get(TABLE) {
        None | Some(Value::Null) => FileHooks::default(),
        Some(hooks) => read(source, hooks)?,
    };
    if value.get("disableAllHooks") == Some(&Value::Bool(true)) {
        found.disables_all = DisablesAll::Yes;
    }
    Ok(found)
}

/// The settings of a file of Claude Code. A byte order mark counts for nothing, and an empty file has
/// no settings.
pub(crate) fn json_of(file: &str, text: &str) -> Result<Value, ConfigError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    serde_json::from_str(text).map_err(|error| ConfigError::NotJson {
        place: SourceLine {
            file: file.into(),
            line: u32::try_from(error.line()).unwrap_or(u32::MAX),
            column: u32::try_from(error.column()).unwrap_or(u32::MAX),
        },
        message: error.to_string(),
    })
}

/// Those of one of our own files.
pub(crate) fn of_table(
    source: &IndexedSource<'_>,
    table: &DeTable<'_>,
) -> Result<FileHooks, ConfigError> {
    let Some(hooks) = table.get(TABLE) else { return Ok(FileHooks::default()) };
    for word in hooks.get_ref().as_table().into_iter().flat_map(|table| table.keys()) {
        let name = word.get_ref().as_ref();
        if !SETTINGS.contains(&name) && HookEvent::parse(name).is_none() {
            let all = HookEvent::ALL.map(HookEvent::name).join(", ");
            let hint = format!(". The events are {all}");
            return Err(source.unknown(word, format!("{TABLE}.{name}"), hint));
        }
    }
    let mut value = json(hooks);
    if let Value::Object(fields) = &mut value {
        SETTINGS.iter().for_each(|name| drop(fields.remove(*name)));
    }
    read(source.source, &value)
}

/// A part of one of our own files as a file of Claude Code would have it.
pub(crate) fn json(value: &Spanned<DeValue<'_>>) -> Value {
    Value::deserialize(ValueDeserializer::from(value.clone())).unwrap_or_default()
}

fn read(source: FileSource<'_>, hooks: &Value) -> Result<FileHooks, ConfigError> {
    let mut found = FileHooks::default();
    let table = hooks.as_object().ok_or_else(|| {
        source.bad(TABLE, TABLE, hooks, "a table with an event for each key, such as PreToolUse")
    })?;
    for (name, groups) in table {
        let key = format!("{TABLE}.{name}");
        let Some(event) = HookEvent::parse(name) else {
            let text = "is no event of agentd: its hooks do not run".to_owned();
            found.warnings.push(source.warning(name, key, text));
            continue;
        };
        let wanted = "a list such as [{\"matcher\": \"Bash\", \"hooks\": [{\"type\": \"command\", \
                      \"command\": \"./check.sh\"}]}]";
        let way = format!("{TABLE}/{name}");
        let groups = groups.as_array().ok_or_else(|| source.bad(&way, &key, groups, wanted))?;
        for (at, group) in groups.iter().enumerate() {
            let way = format!("{way}/{at}");
            let fields = group.as_object().ok_or_else(|| source.bad(&way, &key, group, wanted))?;
            let bad_matcher = |matcher: &Value, wanted: &str| {
                source.bad(&format!("{way}/matcher"), &format!("{key}.matcher"), matcher, wanted)
            };
            let matcher = match fields.get("matcher") {
                None | Some(Value::Null) => String::new(),
                Some(Value::String(text)) => text.clone(),
                Some(other) => return Err(bad_matcher(other, "a text")),
            };
            if let Err(why) = pattern(&matcher) {
                let wanted = format!("a regular expression over names of tools: {why}");
                return Err(bad_matcher(&Value::String(matcher), &wanted));
            }
            let unknown = fields.keys().find(|field| {
                let field = field.as_str();
                !GROUP.contains(&field) && !hook_form::HARMLESS.contains(&field)
            });
            let handlers = fields.get("hooks").and_then(Value::as_array);
            let handlers = handlers.ok_or_else(|| source.bad(&way, &key, group, wanted))?;
            for (at, handler) in handlers.iter().enumerate() {
                let way = format!("{way}/hooks/{at}");
                let handler =
                    handler.as_object().ok_or_else(|| source.bad(&way, &key, handler, wanted))?;
                // A condition of the whole group that agentd does not know is one of each hook.
                let mut handler = handler.clone();
                handler.extend(unknown.map(|field| (field.clone(), fields[field].clone())));
                one(source, &way, (event, &matcher), &handler, &mut found)?;
            }
        }
    }
    Ok(found)
}

fn one(
    source: FileSource<'_>,
    way: &str,
    (event, matcher): (HookEvent, &str),
    handler: &Map<String, Value>,
    found: &mut FileHooks,
) -> Result<(), ConfigError> {
    let key = format!("{TABLE}.{}", event.name());
    let bad = |field: &str, value: &Value, wanted: &str| {
        source.bad(&format!("{way}/{field}"), &format!("{key}.{field}"), value, wanted)
    };
    let HookForm { command, only, broken } = match hook_form::of(event, handler) {
        Ok(Some(form)) => form,
        Ok(None) => {
            let text = "has a hook with `if`, which only fits events of calls: it does not run";
            found.warnings.push(source.warning("if", key, text.to_owned()));
            return Ok(());
        }
        Err(BadField { field, wanted }) => {
            let value = handler.get(field).unwrap_or(&Value::Null);
            return Err(bad(field, value, wanted));
        }
    };
    let near = handler.get("command").or(handler.get("type")).and_then(Value::as_str);
    let near = near.unwrap_or(event.name());
    if let Some(why) = &broken {
        let text = format!(
            "has a hook that cannot be run as it is written ({why}). It counts as failed: a call or a prompt that it \
             would decide about does not run"
        );
        found.warnings.push(source.warning(near, key.clone(), text));
    }
    let seconds = match handler.get("timeout") {
        None | Some(Value::Null) => SECONDS,
        Some(value) => {
            let seconds = value.as_f64().filter(|seconds| *seconds > 0.0);
            let wanted = "a number of seconds above 0";
            let seconds = seconds.ok_or_else(|| bad("timeout", value, wanted))?.ceil();
            if seconds > MOST_SECONDS as f64 {
                let text = format!("has a timeout above {MOST_SECONDS} seconds, which is the most");
                found.warnings.push(source.warning(near, key.clone(), text));
            }
            seconds.min(MOST_SECONDS as f64) as u64
        }
    };
    found.hooks.push(ConfiguredEventHook {
        event,
        matcher: matcher.to_owned(),
        only,
        timeout_ms: seconds * 1000,
        by: Rule {
            effect: RuleEffect::Allow,
            text: format!("{key} = {command:?}"),
            file: source.file.to_owned(),
            line: source.line_of(near),
        },
        command,
        broken,
        layer: source.layer,
    });
    Ok(())
}

/// The expression of a matcher; none for all names.
fn pattern(matcher: &str) -> Result<Option<regex::Regex>, String> {
    match matcher.trim() {
        "" | "*" => Ok(None),
        text => regex::RegexBuilder::new(&format!("^(?:{text})$"))
            .size_limit(1 << 20)
            .build()
            .map(Some)
            .map_err(|error| error.to_string().lines().last().unwrap_or_default().to_owned()),
    }
}

impl FileSource<'_> {
    /// The first line that has this text, as it is or as JSON writes it.
    pub(crate) fn line_of(&self, text: &str) -> u32 {
        let written = Value::String(text.to_owned()).to_string();
        let at = self.text.find(&written).or_else(|| self.text.find(text));
        let above = at.map_or(0, |at| self.text[..at].matches('\n').count());
        u32::try_from(above + 1).unwrap_or(u32::MAX)
    }

    pub(crate) fn warning(&self, near: &str, key: String, text: String) -> ConfigWarning {
        let (layer, file, line) = (self.layer, self.file.to_owned(), self.line_of(near));
        ConfigWarning { origin: ValueOrigin { layer, file, line }, key, text }
    }

    /// A value that its key cannot have. The names and numbers in `way` lead to it; in JSON its place is the line of
    /// the second.
    pub(crate) fn bad(&self, way: &str, key: &str, value: &Value, wanted: &str) -> ConfigError {
        let name = way.split('/').nth(1).unwrap_or(TABLE);
        let in_json = || SourceLine { file: self.file.into(), line: self.line_of(name), column: 1 };
        let mut found = value.to_string();
        if found.chars().count() > 60 {
            found = found.chars().take(60).collect::<String>() + "…";
        }
        ConfigError::BadValue {
            place: IndexedSource::of(*self).place_at(way).unwrap_or_else(in_json),
            key: key.to_owned(),
            found,
            wanted: wanted.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(text: &str) -> Result<FileHooks, ConfigError> {
        of_claude(FileSource { layer: Layer::Project, file: "settings.json", text })
    }

    fn hooked(event: &str, group: &str) -> Result<FileHooks, ConfigError> {
        read(&format!("{{\"hooks\": {{\n\"{event}\": [{group}]}}}}"))
    }

    #[test]
    fn a_hook_has_its_event_matcher_time_and_place() {
        let group = "{\"matcher\": \"Bash|Edit\",\n\"hooks\": [{\"type\": \"command\", \
                     \"command\": \"echo \\\"a\\\"\", \"timeout\": 1.5}]}";
        let found = hooked("PreToolUse", group).unwrap();
        assert!(found.warnings.is_empty(), "{found:?}");
        let [hook] = &found.hooks[..] else { panic!("{found:?}") };
        assert_eq!((hook.event, hook.command.as_str()), (HookEvent::PreToolUse, "echo \"a\""));
        assert_eq!((hook.timeout_ms, hook.by.line), (2000, 3));
        let covered = ["Bash", "Edit", "MultiEdit", "bash", "Bas"].map(|name| hook.covers(name));
        assert_eq!(covered, [true, true, false, false, false]);
        for all in [
            "{\"hooks\": [{\"type\":\"command\",\"command\":\"x\"}]}",
            "{\"matcher\": \"*\", \"hooks\": [{\"command\":\"x\"}]}",
        ] {
            let found = hooked("PostToolUse", all).unwrap();
            assert!(found.hooks[0].covers("mcp__a__b") && found.hooks[0].covers_all());
            assert_eq!(found.hooks[0].timeout_ms, 60_000);
        }
    }

    #[test]
    fn parts_without_effect_are_named() {
        let command = "{\"hooks\": [{\"type\": \"command\", \"command\": \"x\"}]}";
        for (event, group, said) in [
            ("WorktreeCreate", command, "no event of agentd"),
            ("Stop", "{\"hooks\": [{\"type\": \"prompt\", \"prompt\": \"x\"}]}", "\"prompt\""),
            ("Stop", "{\"hooks\": [{\"command\": \"x\", \"async\": true}]}", "`async`"),
            ("Stop", "{\"hooks\": [{\"command\": \"x\", \"if\": \"Bash\"}]}", "`if`"),
            ("Stop", "{\"hooks\": [{\"command\": \"x\"}], \"when\": 1}", "`when`"),
            ("Stop", "{\"hooks\": [{\"command\": \"x\", \"timeout\": 9999}]}", "above 600"),
        ] {
            let found = hooked(event, group).unwrap();
            let texts: Vec<String> = found.warnings.iter().map(ToString::to_string).collect();
            assert!(texts.iter().any(|text| text.contains(said)), "{event}: {texts:?}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_is_an_error_with_its_place() {
        for (text, said) in [
            ("{\n nonsense", "settings.json:2"),
            ("{\"hooks\": []}", "a table with an event"),
            ("{\"hooks\": {\"Stop\": {}}}", "a list such as"),
            ("{\"hooks\": {\"Stop\": [{}]}}", "a list such as"),
            ("{\"hooks\": {\"Stop\": [{\"matcher\": 1, \"hooks\": []}]}}", "a text"),
            ("{\"hooks\": {\"Stop\": [{\"matcher\": \"(\", \"hooks\": []}]}}", "regular"),
            ("{\"hooks\": {\"Stop\": [{\"hooks\": [{\"type\": \"command\"}]}]}}", "a shell"),
            (
                "{\"hooks\": {\"Stop\": [{\"hooks\": [{\"command\": \"x\", \"timeout\": 0}]}]}}",
                "above 0",
            ),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
        assert!(read("{\"permissions\": {}}").unwrap().hooks.is_empty());
        assert_eq!(read("{\"disableAllHooks\": true}").unwrap().disables_all, DisablesAll::Yes);
    }
}
