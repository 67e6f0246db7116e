//! Denials and questions of `permissions` in Claude Code's settings files. They count in every project, trusted or not,
//! since they only take rights away. `load_hooks` reads the files.

use crate::event_hooks::json_of;
use crate::source_text::FileSource;
use crate::sources::Sources;
use crate::warning::ConfigWarning;
use protocol::judgement::{Rule, RuleEffect};
use serde_json::Value;
use std::path::Path;

/// Most rules of one list. The files of a project that nobody trusts are read too.
const MOST: usize = 200;
/// Most warnings of one list.
const MOST_WARNINGS: usize = 10;

/// The lists that count.
const LISTS: [(&str, RuleEffect); 2] = [("deny", RuleEffect::Deny), ("ask", RuleEffect::Ask)];

/// Tools of Claude Code whose rules name paths.
const OF_PATHS: [&str; 8] =
    ["Read", "Edit", "Write", "MultiEdit", "NotebookEdit", "Glob", "Grep", "LS"];

/// A rule of Claude Code with the path that it means: `~/` is the home directory, `//` the root, and a
/// single `/` the project.
#[must_use]
pub fn with_real_path(text: &str, project: &Path, home: Option<&Path>) -> String {
    let of_path = text.split_once('(').filter(|(tool, _)| OF_PATHS.contains(tool));
    let Some((tool, path)) = of_path else { return text.to_owned() };
    let below = |base: &Path, rest: &str| format!("{tool}({}/{rest}", base.display());
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => below(home, rest),
        _ if path.starts_with("//") => format!("{tool}({}", &path[1..]),
        _ => match path.strip_prefix('/') {
            Some(rest) => below(project, rest),
            None => text.to_owned(),
        },
    }
}

/// The rules of one file.
#[derive(Debug, Default)]
pub(crate) struct ClaudeRules {
    pub rules: Vec<Rule>,
    /// Those that agentd cannot follow.
    pub warnings: Vec<ConfigWarning>,
}

impl ClaudeRules {
    /// Adds those of a file. One that is no JSON has none: an error of its hooks, if it is trusted.
    pub(crate) fn add(&mut self, source: FileSource<'_>, sources: &Sources) {
        if let Ok(settings) = json_of(source.file, source.text) {
            let home = sources.environment.absolute("HOME");
            let spelling = |text: &str, effect| {
                (sources.claude_rules)(
                    &with_real_path(text, &sources.project, home.as_deref()),
                    effect,
                )
            };
            let more = of_settings(source, &settings, spelling);
            self.rules.extend(more.rules);
            self.warnings.extend(more.warnings);
        }
    }
}

fn of_settings(
    source: FileSource<'_>,
    settings: &Value,
    spelling: impl Fn(&str, RuleEffect) -> Result<Vec<String>, String>,
) -> ClaudeRules {
    let mut found = ClaudeRules::default();
    for (list, effect) in LISTS {
        let key = format!("permissions.{list}");
        let texts = match settings.pointer(&format!("/permissions/{list}")) {
            None | Some(Value::Null) => continue,
            Some(Value::Array(texts)) => texts,
            Some(_) => {
                found.warnings.push(source.warning(
                    list,
                    key,
                    "is no list: no rule of it holds".into(),
                ));
                continue;
            }
        };
        if texts.len() > MOST {
            let text = format!(
                "has {} rules, of which the first {MOST} hold; write fewer, with patterns",
                texts.len()
            );
            found.warnings.push(source.warning(list, key.clone(), text));
        }
        let mut refused = 0;
        for text in texts.iter().take(MOST) {
            let written = text.as_str().map_or_else(|| text.to_string(), str::to_owned);
            match spelling(&written, effect) {
                Ok(texts) => found.rules.extend(texts.into_iter().map(|text| Rule {
                    effect,
                    text,
                    file: source.file.to_owned(),
                    line: source.line_of(&written),
                })),
                Err(_) if refused == MOST_WARNINGS => {}
                Err(why) => {
                    refused += 1;
                    let text = format!("has the rule {written:?}, which does not hold here: {why}");
                    found.warnings.push(source.warning(&written, key.clone(), text));
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::origin::Layer;
    use crate::sources::ClaudeRuleSpelling;

    fn read(text: &str) -> ClaudeRules {
        let source = FileSource { layer: Layer::Project, file: "settings.json", text };
        let spelling: ClaudeRuleSpelling = |text, _| match text {
            "Mcp" => Err("no such tool".into()),
            text => Ok(vec![text.to_lowercase(), "more".into()]),
        };
        of_settings(source, &json_of("settings.json", text).unwrap(), spelling)
    }

    #[test]
    fn denials_and_questions_become_rules_with_their_lines() {
        let found = read(
            "{\"permissions\": {\n\"allow\": [\"Read\"],\n\"deny\": [\"Bash\"],\n\"ask\": [\"Edit\"]}}",
        );
        let rules: Vec<_> =
            found.rules.iter().map(|rule| (rule.effect, rule.text.as_str(), rule.line)).collect();
        let expected = [
            (RuleEffect::Deny, "bash", 3),
            (RuleEffect::Deny, "more", 3),
            (RuleEffect::Ask, "edit", 4),
            (RuleEffect::Ask, "more", 4),
        ];
        assert_eq!(rules, expected);
        assert!(found.warnings.is_empty());
    }

    #[test]
    fn a_path_means_the_home_directory_the_root_or_the_project() {
        for (text, wanted) in [
            ("Read(~/.ssh/**)", "Read(/home/me/.ssh/**)"),
            ("Edit(//etc/hosts)", "Edit(/etc/hosts)"),
            ("Read(/secrets/**)", "Read(/p/secrets/**)"),
            ("Read(./.env)", "Read(./.env)"),
            ("Read", "Read"),
            ("Bash(/bin/ls:*)", "Bash(/bin/ls:*)"),
        ] {
            let real = with_real_path(text, Path::new("/p"), Some(Path::new("/home/me")));
            assert_eq!(real, wanted);
        }
        assert_eq!(with_real_path("Read(~/x)", Path::new("/p"), None), "Read(~/x)");
    }

    #[test]
    fn a_list_without_end_is_cut_and_said_to_be() {
        let list = vec!["Bash"; 300];
        let found = read(&serde_json::json!({"permissions": {"deny": list}}).to_string());
        assert_eq!(found.rules.len(), 2 * MOST);
        assert!(found.warnings[0].text.contains("has 300 rules"), "{:?}", found.warnings);
        let list = vec!["Mcp"; 100];
        let found = read(&serde_json::json!({"permissions": {"deny": list}}).to_string());
        assert_eq!(found.warnings.len(), MOST_WARNINGS);
    }

    #[test]
    fn a_denial_that_cannot_hold_is_named() {
        for (text, said) in [
            ("{\"permissions\": {\"deny\": [\"Mcp\"]}}", "no such tool"),
            ("{\"permissions\": {\"deny\": [{\"a\": 1}, \"Mcp\"]}}", "no such tool"),
            ("{\"permissions\": {\"ask\": \"Bash\"}}", "is no list"),
        ] {
            let found = read(text);
            assert!(found.warnings.iter().any(|it| it.text.contains(said)), "{text}: {found:?}");
        }
    }
}
