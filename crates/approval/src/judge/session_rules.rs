//! The judgement of one call by the rules of its session.

use super::allow_command;
use super::match_target::MatchTarget;
use super::messages::{self, RefusalRemedy};
use super::plan;
use crate::rule::error::{RuleError, RuleFault};
use crate::rule::rule_index::{RuleFit, RuleIndex, RuleNumber, ToolRules};
use crate::rule::rule_pattern::{self, ParsedRule};
use crate::rule::rule_target::{self, MatchedBy, RuleDepth, TargetRules};
use protocol::hidden::visible;
use protocol::judgement::{
    ASK_USER, Ask, Audience, Basis, EXIT_PLAN, JudgedCall, PermissionMode, Question, Rule,
    RuleEffect, RuleSet, ToolKind, Verdict,
};
use protocol::mcp::{self, SERVER_TOOLS};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tool_specs::MemoryScope;

/// The rules of a session, ready to judge. Sessions with the same rules share them.
#[derive(Debug)]
pub struct SessionRules {
    pub(crate) rules: Arc<[Rule]>,
    pub(crate) deny: Arc<RuleIndex>,
    pub(crate) ask: Arc<RuleIndex>,
    pub(super) allow: Arc<RuleIndex>,
    pub(crate) mode: PermissionMode,
    pub(crate) audience: Audience,
    pub(crate) project: PathBuf,
}

/// Everything that is wrong with these rules, in their order; for `config check`.
#[must_use]
pub fn check(rules: &[Rule]) -> Vec<RuleError> {
    rules.iter().filter_map(|rule| rule_pattern::parse(rule).err()).collect()
}

/// True if a call of this tool must be probed before it is judged: a mutation of paths always, a
/// query only if a rule could deny one.
#[must_use]
pub fn needs_probe(rules: &RuleSet, tool: &str, kind: ToolKind) -> bool {
    let known = rule_target::find(tool).filter(|known| known.name == tool);
    match (known.map(|known| known.matched_by), kind) {
        (
            Some(
                MatchedBy::Command
                | MatchedBy::Host
                | MatchedBy::Page
                | MatchedBy::ServerTool
                | MatchedBy::MemoryScope
                | MatchedBy::Nothing,
            ),
            _,
        )
        | (None, ToolKind::Query) => false,
        (Some(MatchedBy::Path(_)) | None, ToolKind::Mutation) => true,
        (Some(MatchedBy::Path(_)), ToolKind::Query) => rules
            .rules
            .iter()
            .filter(|rule| rule.effect == RuleEffect::Deny)
            // A rule that cannot be parsed may be for this tool.
            .any(|rule| {
                rule_pattern::tool_of(rule).is_none_or(|of| {
                    known.into_iter().any(|known| {
                        known.applied_rules(RuleEffect::Deny).any(|by| by.tool == of.name)
                    })
                })
            }),
    }
}

impl SessionRules {
    /// Reads the rules.
    ///
    /// # Errors
    /// The first rule that cannot be followed, with its place.
    pub fn new(set: &RuleSet) -> Result<Self, RuleError> {
        let mut by_effect: [Vec<(RuleNumber, ParsedRule)>; 3] = Default::default();
        for (index, rule) in set.rules.iter().enumerate() {
            let at = match rule.effect {
                RuleEffect::Deny => 0,
                RuleEffect::Ask => 1,
                RuleEffect::Allow => 2,
            };
            by_effect[at].push((index, rule_pattern::parse(rule)?));
        }
        let rule_index = |effect, rules| {
            let index = RuleIndex::new(effect, rules);
            index.map(Arc::new).map_err(|error| combined_glob_error(set, &error))
        };
        let [deny, ask, allow] = by_effect;
        Ok(Self {
            deny: rule_index(RuleEffect::Deny, deny)?,
            ask: rule_index(RuleEffect::Ask, ask)?,
            allow: rule_index(RuleEffect::Allow, allow)?,
            rules: set.rules.as_slice().into(),
            mode: set.mode,
            audience: set.audience,
            project: PathBuf::from(&set.project),
        })
    }

    /// These rules for another session, if they are its rules.
    #[must_use]
    pub fn shared_with(&self, set: &RuleSet) -> Option<Self> {
        let Self { rules, deny, ask, allow, .. } = self;
        (**rules == *set.rules).then(|| Self {
            rules: Arc::clone(rules),
            deny: Arc::clone(deny),
            ask: Arc::clone(ask),
            allow: Arc::clone(allow),
            mode: set.mode,
            audience: set.audience,
            project: PathBuf::from(&set.project),
        })
    }

    /// Checks a rule that a person wrote at a question about this call: it has to allow the call by itself.
    ///
    /// # Errors
    /// Why it does not count, for the person.
    pub fn takes_rule(&self, case: &JudgedCall, text: &str) -> Result<(), String> {
        let shown = visible(text);
        if text.trim() != text || text.chars().any(char::is_control) {
            return Err(format!(
                "`{shown}` is no rule: it has control characters, or blanks around it"
            ));
        }
        let set = RuleSet {
            rules: vec![remembered_rule(text)],
            mode: PermissionMode::Ask,
            audience: Audience::Person,
            project: self.project.to_string_lossy().into_owned(),
        };
        let alone = Self::new(&set).map_err(|error| format!("`{shown}` is not kept: {error}"))?;
        let is_wide =
            alone.allow.applied_to(&case.call.tool).any(|(rules, _)| rules.fits_each_call());
        if is_wide || begins_anywhere(text) {
            return Err(format!(
                "`{shown}` is not kept: it allows each call of the tool, or nearly; write it into config.toml yourself"
            ));
        }
        match alone.judge(case) {
            Verdict::Allow(Basis::Rule(_)) => Ok(()),
            Verdict::Allow(_) | Verdict::Deny(..) | Verdict::Ask(_) => {
                Err(format!("the rule `{shown}` does not allow this call, so it is not kept"))
            }
        }
    }

    /// The verdict on a call.
    #[must_use]
    pub fn judge(&self, case: &JudgedCall) -> Verdict {
        let target = match MatchTarget::of(case, &self.deny, &self.project) {
            Ok(target) => target,
            Err(why) => {
                return Verdict::Deny(Basis::Unjudgeable(why.clone()), messages::unjudgeable(&why));
            }
        };
        let denial = self.fits(&self.deny, &case.call.tool, &target);
        // A call that the user configured or typed raises no question, so a literal match denies it.
        let raises_none = case.configured.is_some() || case.typed_by.is_some();
        let literal = denial.literal.filter(|_| raises_none);
        if let Some((index, what)) = denial.certain.or(literal) {
            let rule = &self.rules[index];
            return Verdict::Deny(Basis::Rule(rule.clone()), messages::denied(rule, &what));
        }
        if let Some(by) = case.typed_by.as_deref().filter(|_| case.extra_rights.is_empty()) {
            // Rules that ask, modes and hooks that ask are there so that this person decides.
            let typed = Verdict::Allow(Basis::Typed(by.to_owned()));
            // What this person may not know is asked even so.
            let verdict = self.verdict_if_tampered(case, &target, typed);
            return self.verdict_if_doubted(case, denial.perhaps, verdict);
        }
        if case.call.tool == EXIT_PLAN {
            return plan::verdict(case, self.mode, self.audience);
        }
        if case.call.tool == ASK_USER {
            return crate::user_question::verdict(case, self.mode, self.audience);
        }
        // Rights come before queries, rules and modes: a rule that lets a call run grants no more
        // rights than the session has.
        let granted = match self.granted(case, &target) {
            Ok(granted) => granted,
            Err(verdict) => return self.verdict_if_doubted(case, denial.perhaps, *verdict),
        };
        let verdict = self.verdict_if_tampered(case, &target, self.within_rights(case, &target));
        let verdict = self.verdict_if_doubted(case, denial.perhaps, verdict);
        match self.verdict_if_asked(case, verdict) {
            verdict if granted.is_empty() => verdict,
            // The record must name the rules that granted the rights.
            Verdict::Allow(_) => Verdict::Allow(Basis::Rights(granted)),
            // The answer is for this call, since its rights are.
            Verdict::Ask(question) => Verdict::Ask(for_this_call(question)),
            denied @ Verdict::Deny(..) => denied,
        }
    }

    /// The verdict on a command while protected files are changed. No rule and no mode lets it run;
    /// the user is asked and told which files. A configured hook changes no files and still runs.
    fn verdict_if_tampered(
        &self,
        case: &JudgedCall,
        target: &MatchTarget,
        verdict: Verdict,
    ) -> Verdict {
        let runs = match target {
            MatchTarget::Command { .. } => true,
            MatchTarget::Memory(_) => false,
            MatchTarget::Paths { .. }
            | MatchTarget::Directory(_)
            | MatchTarget::Host(_)
            | MatchTarget::Page(_)
            | MatchTarget::ServerTool(_)
            | MatchTarget::Name => case.command.is_some(),
        };
        let held_back = runs && case.kind == ToolKind::Mutation && case.configured.is_none();
        if case.tampered.is_empty() || !held_back {
            return verdict;
        }
        let why = messages::tampered(&case.tampered);
        match verdict {
            Verdict::Allow(_) => self.ask(case, why, Vec::new(), RefusalRemedy::Tampered),
            Verdict::Ask(question) => {
                Verdict::Ask(Question { reason: format!("{}; {why}", question.reason), ..question })
            }
            denied @ Verdict::Deny(..) => denied,
        }
    }

    /// The verdict on a command that a rule perhaps denies: the user is asked, for this call. Of what
    /// the user configured the words that are not known are their own.
    fn verdict_if_doubted(
        &self,
        case: &JudgedCall,
        perhaps: Option<(RuleNumber, String)>,
        verdict: Verdict,
    ) -> Verdict {
        let Some((index, why)) = perhaps.filter(|_| case.configured.is_none()) else {
            return verdict;
        };
        let why = messages::perhaps_denied(&self.rules[index], &why);
        // Other words may help, unless the extra rights or a changed protected file are the reason.
        let words_matter = case.extra_rights.is_empty() && case.tampered.is_empty();
        match verdict {
            Verdict::Allow(_) => self.ask(case, why, Vec::new(), RefusalRemedy::Plain),
            Verdict::Deny(Basis::NobodyToAsk(_) | Basis::Mode(PermissionMode::DontAsk), _)
                if words_matter =>
            {
                self.ask(case, why, Vec::new(), RefusalRemedy::Plain)
            }
            Verdict::Ask(question) => Verdict::Ask(Question {
                reason: format!("{}; {why}", question.reason),
                ..for_this_call(question)
            }),
            denied @ Verdict::Deny(..) => denied,
        }
    }

    /// The verdict on a call that a hook wants a person to approve. The answer is for this call, since
    /// the hook decides about the next one again.
    fn verdict_if_asked(&self, case: &JudgedCall, verdict: Verdict) -> Verdict {
        let Some(why) = &case.asked else { return verdict };
        match verdict {
            Verdict::Allow(_) => self.ask(case, why.to_string(), Vec::new(), RefusalRemedy::Person),
            Verdict::Ask(question) => Verdict::Ask(Question {
                reason: format!("{}; {why}", question.reason),
                ..for_this_call(question)
            }),
            denied @ Verdict::Deny(..) => denied,
        }
    }

    /// The verdict on a call whose rights are settled.
    fn within_rights(&self, case: &JudgedCall, target: &MatchTarget) -> Verdict {
        // A query is never asked about, except one that uses the network.
        if let MatchTarget::Page(_) = target
            && let Some((index, _)) = self.first_match(&self.ask, &case.call.tool, target)
        {
            let reason =
                format!("the rule {} asks about it", messages::rule_with_place(&self.rules[index]));
            return self.ask(case, reason, Vec::new(), RefusalRemedy::Person);
        }
        if case.kind == ToolKind::Query {
            return Verdict::Allow(Basis::Query);
        }
        // Neither a hook that decides nor a server for which the project is read-only changes anything.
        let reads = ["guard_hook", SERVER_TOOLS[0]].contains(&case.call.tool.as_str());
        let decides = case.configured.is_some() && reads;
        // Nor does a memory that ends with its session change anything for later ones.
        let ends_with_session = matches!(target, MatchTarget::Memory(MemoryScope::Session));
        if self.mode == PermissionMode::Plan && !decides && !ends_with_session {
            // Before rules that allow: they were written for sessions in which things are changed.
            return self.denied_by_plan_mode();
        }
        let asks = self.fits(&self.ask, &case.call.tool, target);
        if let Some((index, _)) = asks.certain {
            let rule = &self.rules[index];
            let reason = format!("the rule {} asks about it", messages::rule_with_place(rule));
            return match self.ask(case, reason, Vec::new(), RefusalRemedy::Person) {
                // The model does not wait for a hook, so the run does not fail without it.
                Verdict::Deny(Basis::NobodyToAsk(_), text) if case.configured.is_some() => {
                    Verdict::Deny(Basis::Rule(rule.clone()), text)
                }
                verdict @ (Verdict::Allow(_) | Verdict::Deny(..) | Verdict::Ask(_)) => verdict,
            };
        }
        if let Some(configured) = &case.configured {
            return Verdict::Allow(Basis::Rule(configured.clone()));
        }
        if let Some((index, why)) = asks.perhaps {
            let why = messages::perhaps_asks(&self.rules[index], &why);
            return self.ask(case, why, Vec::new(), RefusalRemedy::Plain);
        }
        if let Some(index) = self.allowed(&case.call.tool, target) {
            return Verdict::Allow(Basis::Rule(self.rules[index].clone()));
        }
        if ends_with_session {
            return Verdict::Allow(Basis::Query);
        }
        self.by_mode(case, target)
    }

    /// True if a rule denies each call of this tool, or of this tool of an MCP server, whatever its arguments.
    #[must_use]
    pub fn denies_each_call(&self, tool: &str) -> bool {
        match tool.starts_with(mcp::PREFIX) {
            true => {
                let mut rules = self.deny.applied_to(mcp::CALL);
                rules.any(|(rules, _)| rules.server_tool(tool).is_some())
            }
            false => self.deny.applied_to(tool).any(|(rules, _)| rules.fits_each_call()),
        }
    }

    /// The first rule of the index that matches any part of the call, and that part.
    pub(crate) fn first_match(
        &self,
        rule_index: &RuleIndex,
        tool: &str,
        target: &MatchTarget,
    ) -> Option<(RuleNumber, String)> {
        self.fits(rule_index, tool, target).certain
    }

    /// The first rules of the index that match any part of the call, and that perhaps do.
    pub(crate) fn fits(&self, rule_index: &RuleIndex, tool: &str, target: &MatchTarget) -> RuleFit {
        rule_index
            .applied_to(tool)
            .map(|(rules, rule_depth)| self.fits_by(rules, rule_depth, target))
            .fold(RuleFit::default(), RuleFit::or)
    }

    fn fits_by(&self, rules: &ToolRules, rule_depth: RuleDepth, target: &MatchTarget) -> RuleFit {
        let certain = match target {
            MatchTarget::Command { runs, .. } => return rules.fitting_command(runs),
            MatchTarget::Paths { call_paths } => call_paths
                .iter()
                .flat_map(|call_path| {
                    let given = std::iter::once(&call_path.real).chain(&call_path.named);
                    let copied = given.clone().filter_map(|it| it.original(&self.project));
                    let all = given.cloned().chain(copied);
                    all.map(|rule_path| (rule_path, call_path.depth)).collect::<Vec<_>>()
                })
                .filter_map(|(rule_path, depth)| {
                    let depth = if rule_depth == RuleDepth::Named { rule_depth } else { depth };
                    let index = rules.catching_path(&rule_path, depth, &self.project)?;
                    Some((index, format!("/{}", rule_path.absolute)))
                })
                .min_by_key(|(index, _)| *index),
            // Patterns for the project are ignored: for the part of the project in this directory,
            // the right adds nothing.
            MatchTarget::Directory(rule_path) => {
                let index = rules.catching_path(rule_path, RuleDepth::Below, Path::new(""));
                index.map(|index| (index, format!("/{}", rule_path.absolute)))
            }
            MatchTarget::Host(host) => {
                rules.catching_host(host).map(|index| (index, host.to_string()))
            }
            MatchTarget::Page(page) => {
                rules.catching_page(page).map(|index| (index, page.to_string()))
            }
            MatchTarget::ServerTool(name) => {
                rules.server_tool(name).map(|index| (index, name.clone()))
            }
            MatchTarget::Memory(scope) => {
                rules.memory(*scope).map(|index| (index, scope.name().to_owned()))
            }
            MatchTarget::Name => rules.anything().map(|index| (index, String::new())),
        };
        RuleFit { certain, ..RuleFit::default() }
    }

    /// The rule that allows the whole call: every command in it, or every path it names.
    pub(crate) fn allowed(&self, tool: &str, target: &MatchTarget) -> Option<RuleNumber> {
        self.allow.applied_to(tool).find_map(|(rules, _)| allowed_by(rules, target))
    }
}

/// A rule that a person gave as an answer.
#[must_use]
pub fn remembered_rule(text: &str) -> Rule {
    Rule { effect: RuleEffect::Allow, text: text.to_owned(), file: "this session".into(), line: 0 }
}

/// The rule that allows the whole call, among these.
fn allowed_by(rules: &ToolRules, target: &MatchTarget) -> Option<RuleNumber> {
    match target {
        MatchTarget::Command { script, .. } => allow_command::allowed(rules, script.as_ref().ok()?),
        MatchTarget::Paths { call_paths } => {
            let mut first = None;
            for call_path in call_paths {
                first = first.or(Some(rules.covering_path(&call_path.real)?));
            }
            first
        }
        MatchTarget::Directory(rule_path) => rules.covering_path(rule_path),
        MatchTarget::Host(host) => rules.covering_host(host),
        MatchTarget::Page(page) => rules.covering_page(page),
        MatchTarget::ServerTool(name) => rules.server_tool(name),
        MatchTarget::Memory(scope) => rules.memory(*scope),
        MatchTarget::Name => rules.anything(),
    }
}

/// The error for patterns that are valid one by one but too large together. It names the last rule,
/// since none is more at fault.
fn combined_glob_error(set: &RuleSet, error: &globset::Error) -> RuleError {
    let last = set.rules.last();
    RuleError {
        file: last.map_or_else(String::new, |rule| rule.file.clone()),
        line: last.map_or(0, |rule| rule.line),
        text: last.map_or_else(String::new, |rule| rule.text.clone()),
        at: 1,
        fault: RuleFault::Glob(error.to_string()),
    }
}

/// The question with answers for this call alone.
fn for_this_call(question: Question) -> Question {
    Question { ask: Ask::Call { rules: Vec::new(), modes: Vec::new() }, ..question }
}
/// True if the pattern of a rule names no program, or no directory above all that it covers.
fn begins_anywhere(rule: &str) -> bool {
    let pattern = rule.split_once(':').map_or("", |(_, pattern)| pattern.trim_start());
    let place = pattern.trim_start_matches(['/', '~']);
    place.starts_with(['*', '?', '['])
}
