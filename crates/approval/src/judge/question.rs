//! The verdict on a call that no rule decides: by the mode, or as a question to the user.

use super::allow_command;
use super::digest::digest;
use super::effects;
use super::match_target::MatchTarget;
use super::messages::{self, RefusalRemedy};
use super::runs_file::runs_file;
use super::session_rules::{SessionRules, remembered_rule};
use super::suggestions;
use crate::rule::path_pattern::RulePath;
use crate::rule::rule_index::RuleIndex;
use crate::rule::rule_pattern;
use crate::rule::rule_target::RuleDepth;
use protocol::hidden::visible;
use protocol::judgement::{
    Ask, Audience, Basis, JudgedCall, NO_RULE, PermissionMode, Question, RuleEffect, Verdict,
};
use sandbox::{NameClass, ProtectedName};
use std::path::Path;
use tool_specs::MemoryScope;

/// The row of a file that projects want written and that a program runs later, at any depth.
fn asked_about(path: &Path) -> Option<&'static ProtectedName> {
    let parts = sandbox::name_parts(path);
    let is_at = |row: &&ProtectedName| {
        row.class == NameClass::Asked
            && (0..parts.len()).any(|from| sandbox::lies_at(&parts[from..], row.name))
    };
    sandbox::protected_names().iter().find(is_at)
}

/// The question about a file that a program runs later, though the mode asks about no edit.
fn runs_later(path: &RulePath) -> Option<String> {
    let named = path.relative.as_deref().unwrap_or(&path.absolute);
    let row = asked_about(Path::new(named))?;
    Some(format!("`{}` is a file of which {}", visible(named), row.why))
}

impl SessionRules {
    pub(super) fn by_mode(&self, case: &JudgedCall, target: &MatchTarget) -> Verdict {
        let in_scope =
            || case.probe.iter().flat_map(|probe| &probe.paths).all(|path| path.in_scope);
        if let (
            PermissionMode::Auto | PermissionMode::AcceptEdits | PermissionMode::Sandboxed,
            MatchTarget::Paths { call_paths },
        ) = (self.mode, target)
            && let Some(why) = call_paths.iter().find_map(|call_path| runs_later(&call_path.real))
        {
            let offers = self.suggestions(case, target);
            return self.ask(case, why, offers, RefusalRemedy::Rule);
        }
        match (self.mode, target) {
            (PermissionMode::Sandboxed, target) => match effects::bounds(case, target) {
                Ok(bounded) => Verdict::Allow(Basis::Sandboxed(bounded)),
                Err(why) => {
                    let why = why.unwrap_or_else(|| self.no_rule(case, target));
                    self.ask(case, why, self.suggestions(case, target), RefusalRemedy::Rule)
                }
            },
            (PermissionMode::Auto, MatchTarget::Command { runs, .. }) if runs.hidden.is_some() => {
                Verdict::Allow(Basis::Opaque(self.mode))
            }
            // The mode is the session's, and so is its reach: other projects are a person's to decide.
            (PermissionMode::Auto, target)
                if !matches!(target, MatchTarget::Memory(MemoryScope::User)) =>
            {
                Verdict::Allow(Basis::Mode(self.mode))
            }
            // A directory that goes with all that is in it is no edit.
            (PermissionMode::AcceptEdits, MatchTarget::Paths { call_paths })
                if in_scope()
                    && call_paths.iter().all(|call_path| call_path.depth == RuleDepth::Named) =>
            {
                Verdict::Allow(Basis::Mode(self.mode))
            }
            (
                PermissionMode::Ask
                | PermissionMode::AcceptEdits
                | PermissionMode::Plan
                | PermissionMode::Auto
                | PermissionMode::DontAsk,
                _,
            ) => {
                let why = self.no_rule(case, target);
                let verdict =
                    self.ask(case, why, self.suggestions(case, target), RefusalRemedy::Rule);
                self.offering_modes(verdict, case, target)
            }
        }
    }

    /// Offers the mode that asks about effects, where it would not ask about the cage and the paths of this call.
    fn offering_modes(
        &self,
        mut verdict: Verdict,
        case: &JudgedCall,
        target: &MatchTarget,
    ) -> Verdict {
        let is_offered = matches!(self.mode, PermissionMode::Ask | PermissionMode::AcceptEdits)
            && effects::stays_in_sandbox(case, target);
        if let Verdict::Ask(Question { ask: Ask::Call { modes, .. }, .. }) = &mut verdict
            && is_offered
        {
            modes.push(PermissionMode::Sandboxed);
        }
        verdict
    }

    /// Why a call is asked about of which no rule speaks.
    fn no_rule(&self, case: &JudgedCall, target: &MatchTarget) -> String {
        let file = match target {
            MatchTarget::Command { script: Ok(script), .. } => {
                let missing =
                    allow_command::not_allowed(self.allow.for_tool(&case.call.tool), script);
                missing.and_then(|simple| runs_file(simple, &self.project))
            }
            MatchTarget::Command { script: Err(_), .. }
            | MatchTarget::Paths { .. }
            | MatchTarget::Directory(_)
            | MatchTarget::Host(_)
            | MatchTarget::Page(_)
            | MatchTarget::ServerTool(_)
            | MatchTarget::Memory(_)
            | MatchTarget::Name => None,
        };
        let about = file.map(|file| messages::runs_writable_file(&file)).unwrap_or_default();
        format!("{}{about}", self.no_rule_for(case, target))
    }

    fn no_rule_for(&self, case: &JudgedCall, target: &MatchTarget) -> String {
        match target {
            MatchTarget::Command { script: Err(why), .. } => messages::unreadable_command(why),
            MatchTarget::Command { script: Ok(script), .. } if script.len() > 1 => {
                let rules = self.allow.for_tool(&case.call.tool);
                match allow_command::not_allowed(rules, script) {
                    Some(simple) => messages::no_rule_for(simple),
                    None => messages::no_rule(case),
                }
            }
            MatchTarget::Command { .. }
            | MatchTarget::Paths { .. }
            | MatchTarget::Directory(_)
            | MatchTarget::Host(_)
            | MatchTarget::Page(_)
            | MatchTarget::Name => messages::no_rule(case),
            MatchTarget::ServerTool(name) => format!("{NO_RULE} `{name}`"),
            MatchTarget::Memory(scope) => messages::no_rule_for_memory(case, *scope),
        }
    }

    /// Rules that would allow the whole call, for an answer that holds longer.
    fn suggestions(&self, case: &JudgedCall, target: &MatchTarget) -> Vec<String> {
        let missing = match target {
            MatchTarget::Command { script, .. } => {
                let Ok(script) = script else { return Vec::new() };
                let rules = self.allow.for_tool(&case.call.tool);
                let missing = allow_command::not_allowed(rules, script);
                let missing = missing.filter(|simple| runs_file(simple, &self.project).is_none());
                missing.map_or_else(Vec::new, suggestions::of_command)
            }
            MatchTarget::Paths { call_paths } => match &call_paths[..] {
                [call_path] => suggestions::of_path(&case.call.tool, &call_path.real),
                _ => Vec::new(),
            },
            MatchTarget::ServerTool(name) => suggestions::of_server_tool(name),
            MatchTarget::Memory(scope) => vec![format!("{}:{}", case.call.tool, scope.name())],
            MatchTarget::Directory(_)
            | MatchTarget::Host(_)
            | MatchTarget::Page(_)
            | MatchTarget::Name => Vec::new(),
        };
        missing.into_iter().filter(|rule| self.would_allow(rule, case, target)).collect()
    }

    /// True if one more rule, this one, would allow the call.
    fn would_allow(&self, text: &str, case: &JudgedCall, target: &MatchTarget) -> bool {
        let Ok(parsed) = rule_pattern::parse(&remembered_rule(text)) else { return false };
        let Ok(rule_index) = RuleIndex::new(RuleEffect::Allow, vec![(0, parsed)]) else {
            return false;
        };
        let Some((more, _)) = rule_index.applied_to(&case.call.tool).next() else { return false };
        match target {
            MatchTarget::Command { script: Ok(script), .. } => {
                allow_command::covered(self.allow.for_tool(&case.call.tool), more, script)
            }
            MatchTarget::Paths { call_paths } => {
                call_paths.iter().all(|call_path| more.covering_path(&call_path.real).is_some())
            }
            MatchTarget::ServerTool(name) => more.server_tool(name).is_some(),
            MatchTarget::Memory(scope) => more.memory(*scope).is_some(),
            MatchTarget::Command { script: Err(_), .. }
            | MatchTarget::Directory(_)
            | MatchTarget::Host(_)
            | MatchTarget::Page(_)
            | MatchTarget::Name => false,
        }
    }

    /// Asks the user, unless the mode or a non-interactive session forbids questions; then the call
    /// is refused.
    pub(crate) fn ask(
        &self,
        case: &JudgedCall,
        reason: String,
        rules: Vec<String>,
        remedy: RefusalRemedy,
    ) -> Verdict {
        let reason = format!("{reason}{}", messages::outside_project(case));
        let denial_text = |refused: &str| {
            let remedy = messages::remedy(remedy, case, &self.project);
            format!("Not run: {reason}, and {refused}. {remedy}")
        };
        match (self.mode, self.audience) {
            (PermissionMode::Plan, _) => self.denied_by_plan_mode(),
            (PermissionMode::DontAsk, _) => {
                Verdict::Deny(Basis::Mode(self.mode), denial_text(messages::MODE_REFUSES))
            }
            (
                PermissionMode::Ask
                | PermissionMode::AcceptEdits
                | PermissionMode::Sandboxed
                | PermissionMode::Auto,
                Audience::NonInteractive,
            ) => {
                let text = format!(
                    "{} {}",
                    denial_text(messages::NON_INTERACTIVE),
                    messages::CONTINUE_WITHOUT
                );
                Verdict::Deny(Basis::NobodyToAsk(reason), text)
            }
            (
                PermissionMode::Ask
                | PermissionMode::AcceptEdits
                | PermissionMode::Sandboxed
                | PermissionMode::Auto,
                Audience::Person,
            ) => Verdict::Ask(Question {
                call: case.call.id.clone(),
                tool: case.call.tool.clone(),
                input: case.call.input.clone(),
                preview: preview(case),
                confinement: case.confinement.clone(),
                reason,
                widens: case.extra_rights.clone(),
                ask: Ask::Call { rules, modes: Vec::new() },
                deadline: 0,
                digest: digest(case),
            }),
        }
    }

    pub(super) fn denied_by_plan_mode(&self) -> Verdict {
        Verdict::Deny(Basis::Mode(self.mode), messages::read_only_mode(self.mode.name()))
    }
}

fn preview(case: &JudgedCall) -> String {
    let diff = case.probe.as_ref().map(|probe| probe.diff.as_str()).filter(|diff| !diff.is_empty());
    visible(diff.or(case.command.as_deref()).unwrap_or_default())
}
