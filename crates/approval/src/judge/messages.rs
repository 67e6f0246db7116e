//! Messages for the user and the model: the reason for a refusal or a question, and a remedy.

use crate::judge::suggestions::{self, sayable};
use crate::judge::widening;
use crate::rule::path_pattern::RulePath;
use crate::rule::rule_target::{self, MatchedBy};
use crate::rule::server_tool_pattern::name_of;
use crate::shell::grammar;
use crate::shell::script::{ArgWord, ScriptError, SimpleCommand};
use protocol::call::ProbedPath;
use protocol::hidden::visible;
use protocol::judgement::{ExtraRight, JudgedCall, NO_RULE, Rule};
use protocol::mcp;
use std::path::Path;
use tool_specs::MemoryScope;

/// A rule with its place.
#[must_use]
pub fn rule_with_place(rule: &Rule) -> String {
    match rule.line {
        0 => format!("`{}` ({})", rule.text, rule.file),
        line => format!("`{}` ({}:{line})", rule.text, rule.file),
    }
}

/// For the model: a rule denies, because of these words or this path.
pub(crate) fn denied(rule: &Rule, what: &str) -> String {
    let because =
        if what.is_empty() { String::new() } else { format!(", because of `{}`", visible(what)) };
    format!(
        "Not run: the rule {} forbids it{because}. Find another way without this call, or tell the user what you need and why.",
        rule_with_place(rule)
    )
}

/// Why a command is asked about that a rule perhaps denies.
pub(crate) fn perhaps_denied(rule: &Rule, why: &str) -> String {
    format!("the rule {} may forbid it, because {}", rule_with_place(rule), visible(why))
}

/// Why a command is asked about that a rule perhaps asks about.
pub(crate) fn perhaps_asks(rule: &Rule, why: &str) -> String {
    format!("the rule {} may ask about it, because {}", rule_with_place(rule), visible(why))
}

/// Most protected names of one question.
const TAMPERED_NAMED: usize = 8;

/// For the model, after the reason: the session is non-interactive.
pub(crate) const NON_INTERACTIVE: &str =
    "this session is non-interactive, so it cannot be approved";

/// For the model, behind the reason: the mode refuses.
pub(crate) const MODE_REFUSES: &str =
    "the permission mode is `dont-ask`, which refuses instead of asking";

/// For the model, in a non-interactive session.
pub(crate) const CONTINUE_WITHOUT: &str =
    "Continue without it, or tell the user what you need and why.";

/// How the user could let a call run that is not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RefusalRemedy {
    /// A rule that allows it.
    Rule,
    /// Only by approving it: an `ask` rule matches, and no other rule overrides it.
    Person,
    /// Other words: of these no rule knows enough.
    Plain,
    /// Rights that the session lacks.
    Rights,
    /// Only by approving it, after a warning that protected files were changed.
    Tampered,
}

/// For the model: how it could be had.
pub(crate) fn remedy(remedy: RefusalRemedy, case: &JudgedCall, project: &Path) -> String {
    match remedy {
        RefusalRemedy::Rule => remedy_by_rule(case, project),
        RefusalRemedy::Person => {
            "Only a person can approve it: in an interactive session, or by removing \
                            that rule from permissions.ask."
                .to_owned()
        }
        RefusalRemedy::Plain => "Write it as plain commands.".to_owned(),
        RefusalRemedy::Rights => remedy_for_rights(case, project),
        RefusalRemedy::Tampered => {
            "A person must check and repair these files. Commands run again once \
                         a person approves one in an interactive session."
                .to_owned()
        }
    }
}

/// For the model: the mode lets nothing change.
pub(crate) fn read_only_mode(mode: &str) -> String {
    format!(
        "Not run: in permission mode `{mode}` nothing may be changed. Use read-only tools, and describe the changes that you would make."
    )
}

/// For the model: the call cannot be judged.
pub(crate) fn unjudgeable(why: &str) -> String {
    format!("Not run: {why}.")
}

/// Why a command is asked about despite all rules and the mode. Names left out of this message
/// appear with the next command.
pub(crate) fn tampered(names: &[String]) -> String {
    let named: Vec<_> = names.iter().take(TAMPERED_NAMED).map(String::as_str).collect();
    let more = match names.len() - named.len() {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    format!(
        "an earlier call changed protected files that agentd could not restore: {}{more}",
        named.join("; ")
    )
}

/// Why a call without a rule is asked about.
pub(crate) fn no_rule(case: &JudgedCall) -> String {
    format!("{NO_RULE} `{}`", case.call.tool)
}

/// Why a call is asked about that changes the memory of later sessions.
pub(crate) fn no_rule_for_memory(case: &JudgedCall, scope: MemoryScope) -> String {
    let reach = match scope {
        MemoryScope::Session => "this session",
        MemoryScope::Project => "later sessions of this project",
        MemoryScope::User => "later sessions of all your projects",
    };
    format!("it concerns {reach}, and {}", no_rule(case))
}

/// Why a command of several is asked about: this one among them.
pub(crate) fn no_rule_for(simple: &SimpleCommand) -> String {
    let shown: String = visible(&simple.to_string()).chars().take(200).collect();
    format!("no rule allows the command `{shown}` in it")
}

/// Why no rule is offered for a command that runs a file.
pub(crate) fn runs_writable_file(file: &str) -> String {
    let file: String = visible(file).chars().take(200).collect();
    format!(
        "; it runs the file `{file}`, which calls can change, so an approval is for this call only"
    )
}

/// Why a command is asked about that no rule could allow.
pub(crate) fn unreadable_command(why: &ScriptError) -> String {
    format!("no rule can allow this command, because {}", visible(&why.to_string()))
}

/// A sentence on paths that the tool will refuse in any case; empty where there are none.
pub(crate) fn outside_project(case: &JudgedCall) -> String {
    let outside: Vec<_> = case
        .probe
        .iter()
        .flat_map(|probe| &probe.paths)
        .filter(|path| !path.in_scope)
        .map(|path| format!("`{}`", visible(&path.real)))
        .collect();
    match outside.len() {
        0 => String::new(),
        1 => format!(
            " ({} is outside the project: even if allowed, the tool answers ACCESS DENIED)",
            outside[0]
        ),
        _ => format!(
            " ({} are outside the project: even if allowed, the tool answers ACCESS DENIED)",
            outside.join(", ")
        ),
    }
}

/// Why a call that asks for more than the session has is a person's to decide.
pub(crate) fn exceeds_session(case: &JudgedCall) -> String {
    let asked: Vec<_> = case.extra_rights.iter().map(widening::describe).collect();
    format!("it requests rights that this session lacks ({})", asked.join(", "))
}

/// Which rule or flag would have given the rights.
fn remedy_for_rights(case: &JudgedCall, project: &Path) -> String {
    if let (Some(page), Some(rule)) = (&case.page, right_of_page(case)) {
        let site = page.site();
        return format!(
            "No permission mode grants that. A person can allow it with `{rule}` under permissions.allow, for one run with --allow-web {site}, or start agentd with `--net on`."
        );
    }
    let mut text = "No permission mode grants that, and no rule for the command itself.".to_owned();
    for widening in &widening::split_rights(&case.extra_rights) {
        let (field, flag) = match widening {
            ExtraRight::Network => ("network", ", or start agentd with `--net on`"),
            ExtraRight::Hosts(_) => ("hosts", ", or start agentd with `--allow-host`"),
            ExtraRight::Directory(_) => ("directory", ", or start agentd with `--add-dir`"),
            ExtraRight::GitAdmin => ("git_settings", ""),
            ExtraRight::GitSign => ("git_signing", ""),
        };
        let by_name = match right_for(widening, case, project) {
            Some(rule) => format!(
                "with `{rule}` under permissions.allow, or for one run with --allowed-tools '{rule}'"
            ),
            None => "if one plain command requests it".to_owned(),
        };
        text.push_str(&format!(
            " Leave `{field}` out; a person can allow it by name {by_name}{flag}."
        ));
    }
    text
}

/// The rule that lets a tool of the web read the pages of its host.
fn right_of_page(case: &JudgedCall) -> Option<String> {
    suggestions::of_page(case).into_iter().next()
}

/// The narrowest rule that gives exactly this right to this call.
fn right_for(widening: &ExtraRight, case: &JudgedCall, project: &Path) -> Option<String> {
    let right = rule_target::right(widening);
    match widening {
        ExtraRight::Hosts(hosts) => hosts.first().map(|host| format!("{right}:{host}")),
        ExtraRight::Network | ExtraRight::GitAdmin | ExtraRight::GitSign => {
            Some(format!("{right}:{}", rule_for(case, project)?.split_once(':')?.1))
        }
        ExtraRight::Directory(dir) => {
            let dir = dir.to_path();
            dir.to_str().filter(|dir| plain(dir)).map(|dir| format!("{right}:{dir}"))
        }
    }
}

/// Which rules or flags would have let the call run.
fn remedy_by_rule(case: &JudgedCall, project: &Path) -> String {
    if let Some(rule) = rule_for(case, project) {
        return format!(
            "A person can allow it with `{rule}` under permissions.allow, or for one run with --allowed-tools '{rule}'."
        );
    }
    match rules_of_parts(case) {
        Some(rules) => {
            let listed: Vec<_> = rules.iter().map(|rule| format!("`{rule}`")).collect();
            format!(
                "A person can allow it with {} under permissions.allow, or with --permission-mode auto.",
                listed.join(" and ")
            )
        }
        None => "No rule can allow it as it is; a person can run with --permission-mode auto, or you can ask for plain commands one at a time.".into(),
    }
}

/// The narrowest rule that allows exactly this call.
fn rule_for(case: &JudgedCall, project: &Path) -> Option<String> {
    let tool = &case.call.tool;
    if let Some(command) = case.command.as_deref().filter(|_| *tool == mcp::CALL) {
        return Some(name_of(command).to_owned());
    }
    if let Some(scope) = case.command.as_deref().and_then(MemoryScope::of_subject).filter(|_| {
        rule_target::find(tool).is_some_and(|it| it.matched_by == MatchedBy::MemoryScope)
    }) {
        return Some(format!("{tool}:{}", scope.name()));
    }
    if let Some(command) = &case.command {
        let [simple] = &grammar::read_plain(command).ok()?[..] else { return None };
        return exact_rule(tool, simple);
    }
    let [ProbedPath { real, in_scope: true, .. }] = &case.probe.as_ref()?.paths[..] else {
        return None;
    };
    let path = RulePath::new(real, project)?;
    let path = path.relative.map_or_else(|| real.clone(), |below| format!("./{below}"));
    plain(&path).then(|| format!("{tool}:{path}"))
}

/// The narrowest rules that together allow a command of several; each of them needs one.
fn rules_of_parts(case: &JudgedCall) -> Option<Vec<String>> {
    let script = grammar::read_plain(case.command.as_deref()?).ok()?;
    let mut rules = Vec::new();
    for simple in &script {
        let rule = exact_rule(&case.call.tool, simple)?;
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    (!rules.is_empty()).then_some(rules)
}

fn exact_rule(tool: &str, simple: &SimpleCommand) -> Option<String> {
    let words: Vec<&str> = simple.words.iter().map(ArgWord::known).collect::<Option<_>>()?;
    words.iter().all(|word| sayable(word)).then(|| format!("{tool}:{}", words.join(" ")))
}

/// True if a path contains no special character of a pattern.
fn plain(path: &str) -> bool {
    path.chars().all(|c| c.is_alphanumeric() || "/._-+@=, ".contains(c))
}
