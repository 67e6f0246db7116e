//! The rules of one flag: one rule as agentd writes it, or several names as Claude Code writes them.
//!
//! `Bash(git log:*),Edit` and `Read Write` are lists; each word becomes one rule. A rule of ours may
//! contain spaces (`bash:cargo test *`), so after a `tool:` only a comma before the next rule ends it.

use crate::rule::error::{RuleError, RuleFault};
use crate::rule::rule_target::MatchedBy;
use crate::rule::{rule_pattern, rule_target};
use protocol::judgement::{Rule, RuleEffect, ToolKind};

/// Where the rules are from, for messages.
const FLAG: &str = "flag";

/// Reads the rules of one flag. The result has agentd's own spelling.
///
/// # Errors
/// The first word that is no rule, with the reason.
pub fn rules_of_flag(text: &str, effect: RuleEffect) -> Result<Vec<String>, RuleError> {
    let mut rules = Vec::new();
    let mut rest = text.trim_matches(is_separator);
    if rest.is_empty() {
        return Err(error(text, RuleFault::NoRule));
    }
    while !rest.is_empty() {
        let (word, after) = rest.split_at(word_end(rest));
        for rule in translated(word.trim(), effect)? {
            let read = Rule { effect, text: rule.clone(), file: FLAG.to_owned(), line: 0 };
            // The word as the user wrote it, so that it is found in the command line.
            rule_pattern::parse(&read)
                .map_err(|failed| if rule == word { failed } else { error(word, failed.fault) })?;
            rules.push(rule);
        }
        rest = after.trim_start_matches(is_separator);
    }
    Ok(rules)
}

/// Writes a rule of Claude Code's settings as rules of agentd.
///
/// # Errors
/// Why there is no such rule here.
pub fn claude_rule(text: &str, effect: RuleEffect) -> Result<Vec<String>, String> {
    rules_of_flag(text, effect).map_err(|error| error.fault.to_string())
}

/// True if this rule, in agentd's spelling, gives calls a right beyond their session.
#[must_use]
pub fn gives_right(rule: &str) -> bool {
    let name = rule.split(|c| !is_name(c)).next().unwrap_or_default();
    tool_name(name).is_none_or(|name| rule_target::RIGHTS.iter().any(|right| right.name == name))
}

/// True if the mode auto allows all that this rule, in agentd's spelling, allows: commands, tools of
/// servers, and tools that only read files. Pages, memories, and files that programs run later are
/// asked about there too.
#[must_use]
pub fn adds_nothing_to_auto(rule: &str) -> bool {
    let name = rule.split(|c| !is_name(c)).next().unwrap_or_default();
    if name.starts_with("mcp__") {
        return true;
    }
    let target = tool_name(name).and_then(rule_target::find);
    target.is_some_and(|target| match target.matched_by {
        MatchedBy::Command | MatchedBy::ServerTool => true,
        MatchedBy::Path(_) => target.kind == ToolKind::Query,
        MatchedBy::Host | MatchedBy::Page | MatchedBy::MemoryScope | MatchedBy::Nothing => false,
    })
}

fn is_separator(c: char) -> bool {
    c == ',' || c.is_whitespace()
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// Where the first rule ends.
fn word_end(text: &str) -> usize {
    let name = text.find(|c| !is_name(c)).unwrap_or(text.len());
    if text[name..].starts_with(':') {
        return own_end(text);
    }
    let mut depth = 0_u32;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            c if depth == 0 && is_separator(c) => return at,
            _ => {}
        }
    }
    text.len()
}

/// Where a rule in agentd's spelling ends: at a comma before the next rule.
fn own_end(text: &str) -> usize {
    let begins_rule = |at: usize| {
        let next = text[at + 1..].trim_start();
        let end = next.find(|c| !is_name(c)).unwrap_or(next.len());
        let ends_name = next[end..].chars().next().is_none_or(|c| matches!(c, ':' | '(' | ','));
        ends_name && tool_name(&next[..end]).is_some()
    };
    text.match_indices(',').map(|(at, _)| at).find(|at| begins_rule(*at)).unwrap_or(text.len())
}

/// The name in rules of a tool or right, by its own or another agent's name.
fn tool_name(name: &str) -> Option<&'static str> {
    let own = rule_target::find(name).map(|target| target.name);
    own.or_else(|| {
        tool_specs::named(name).and_then(|tool| rule_target::find(tool.name)).map(|it| it.name)
    })
}

/// One word in agentd's spelling; a denial or a question for several tools becomes several rules.
fn translated(word: &str, effect: RuleEffect) -> Result<Vec<String>, RuleError> {
    let end = word.find(|c| !is_name(c)).unwrap_or(word.len());
    let (name, rest) = word.split_at(end);
    if name.starts_with("mcp__") {
        return Ok(vec![word.to_owned()]);
    }
    let Some(tool) = tool_name(name) else { return Ok(vec![word.to_owned()]) };
    let rest = match rest.strip_prefix("(domain:") {
        Some(host) if tool == "web_fetch" => format!("({host}"),
        Some(_) | None => rest.to_owned(),
    };
    let is_theirs = rest.starts_with('(') && name.starts_with(|c: char| c.is_ascii_uppercase());
    // There, a path of Edit is for all tools that edit, and one of Read for all that read.
    let also: &[&str] = match (effect, tool) {
        (RuleEffect::Deny | RuleEffect::Ask, "edit") if is_theirs => &["write", "delete"],
        (RuleEffect::Deny | RuleEffect::Ask, "read") if is_theirs => &["ls", "glob"],
        (RuleEffect::Deny | RuleEffect::Ask | RuleEffect::Allow, _) => &[],
    };
    Ok(std::iter::once(&tool).chain(also).map(|tool| format!("{tool}{rest}")).collect())
}

fn error(word: &str, fault: RuleFault) -> RuleError {
    RuleError { file: FLAG.to_owned(), line: 0, text: word.to_owned(), at: 0, fault }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[track_caller]
    fn allowed(text: &str) -> Vec<String> {
        rules_of_flag(text, RuleEffect::Allow).unwrap()
    }

    #[test]
    fn lists_as_another_agent_writes_them() {
        let rules = ["bash(git log:*)", "edit", "read(./src/**)"];
        assert_eq!(allowed("Bash(git log:*),Edit,Read(./src/**)"), rules);
        let servers = ["mcp__github__*", "read", "mcp__files"];
        assert_eq!(allowed("mcp__github__*,Read mcp__files"), servers);
        assert_eq!(allowed(" Bash(git log:*) Edit  Read(./src/**) "), rules);
        assert_eq!(allowed("Bash(git log:*), Edit, Read(./src/**),"), rules);
        assert_eq!(
            allowed("MultiEdit WebFetch(domain:docs.rs) LS TodoWrite"),
            ["multi_edit", "web_fetch(docs.rs)", "ls", "checklist_create"]
        );
    }

    #[test]
    fn rules_of_ours_keep_their_spaces_and_commas() {
        for rule in
            ["bash:cargo test *", "bash:echo a,b", "write:src/{a,write}", "git-sign", "bash"]
        {
            assert_eq!(allowed(rule), [rule]);
        }
        let both = ["bash:cargo test *", "write:src/**", "read"];
        assert_eq!(allowed("bash:cargo test *,write:src/**, Read"), both);
        assert_eq!(allowed("Bash(ls),bash:cargo test *"), ["bash(ls)", "bash:cargo test *"]);
    }

    #[test]
    fn a_denied_path_is_denied_to_all_tools_of_its_kind() {
        let denied = |text| rules_of_flag(text, RuleEffect::Deny).unwrap();
        assert_eq!(denied("Edit(keys/**)"), ["edit(keys/**)", "write(keys/**)", "delete(keys/**)"]);
        assert_eq!(denied("Read(keys/**)"), ["read(keys/**)", "ls(keys/**)", "glob(keys/**)"]);
        let asked = rules_of_flag("Edit(src/**)", RuleEffect::Ask).unwrap();
        assert_eq!(asked, ["edit(src/**)", "write(src/**)", "delete(src/**)"]);
        assert_eq!(denied("Edit"), ["edit"]);
        assert_eq!(denied("edit:keys/**"), ["edit:keys/**"]);
        assert_eq!(allowed("Edit(src/**)"), ["edit(src/**)"], "nothing more is allowed");
    }

    #[test]
    fn a_word_that_is_no_rule_is_named_with_the_reason() {
        for (text, word, why) in [
            ("Read,mcp__github__a(x)", "`mcp__github__a(x)`", "its arguments are not matched"),
            ("Read NotebookEdit", "`NotebookEdit`", "there is no tool `NotebookEdit`"),
            ("Bsh(ls)", "`Bsh(ls)`", "did you mean `bash`?"),
            ("Read,Bash(git log", "`Bash(git log`", "the closing `)` is missing"),
            ("Bash(a && b)", "`Bash(a && b)`", "joins or redirects"),
            ("Read(~/notes)", "`Read(~/notes)`", "`~` is not expanded"),
            ("Bash(ls)x", "`Bash(ls)x`", "the closing `)` is missing"),
            (" , ", "` , `", "a rule is written"),
        ] {
            let said = rules_of_flag(text, RuleEffect::Allow).unwrap_err().to_string();
            assert!(said.starts_with("flag: rule ") && said.contains(word), "{text}: {said}");
            assert!(said.contains(why), "{text}: {said}");
        }
    }
}
