//! Rights that one call requests and its session lacks: network, hosts, one more directory, git's
//! own settings, git signatures. The user grants them, or a rule that names them (`git-admin:git
//! remote *`, `host:*.crates.io`). Neither a rule for the command nor a mode does. Each host is a
//! separate right; rules for the network cover all of them. For `session_rules`, and [`grants_all`]
//! for the supervisor.

use super::match_target::MatchTarget;
use super::session_rules::SessionRules;
use crate::judge::effects;
use crate::judge::messages::{self, RefusalRemedy};
use crate::judge::suggestions;
use crate::judge::widening::split_rights;
use crate::rule::path_pattern::RulePath;
use crate::rule::rule_pattern::{self, CallPattern};
use crate::rule::rule_target::{self, MatchedBy};
use protocol::call::{Call, CallOrigin};
use protocol::confinement::{FilePath, Network};
use protocol::hosts::HostRule;
use protocol::ids::{CallId, SessionId};
use protocol::judgement::{
    Audience, Basis, EffectReach, ExtraRight, JudgedCall, PermissionMode, Rule, RuleEffect,
    RuleSet, ToolKind, Verdict,
};
use protocol::web::{HostRight, RedirectScope, WebAddress};
use std::path::Path;

/// No directory that is asked for lies in the project, which a call has already.
const NOWHERE: &str = "\u{0}";

/// True if these rules grant all requested rights: one rule for each right, in order.
#[must_use]
pub fn grants_all(
    rules: &[Rule],
    (tool, page): (&str, Option<&WebAddress>),
    widens: &[ExtraRight],
) -> bool {
    let asked = split_rights(widens);
    let gives = |(rule, right)| grants(rule, (tool, page), right);
    rules.len() == asked.len() && rules.iter().zip(&asked).all(gives)
}

/// The right that a session with this network and these hosts lacks to read this page.
#[must_use]
pub fn right_to_read(
    page: &WebAddress,
    network: Network,
    hosts: &[HostRule],
) -> Option<ExtraRight> {
    let within = match network {
        Network::On => true,
        Network::Listed => hosts.iter().any(|host| host.covers(&page.server)),
        Network::Off => false,
    };
    (!within).then(|| ExtraRight::Hosts(vec![page.server.clone()]))
}

/// True if a call of this tool may follow a redirect from its page to this one. The page is judged
/// like one of a new call.
#[must_use]
pub fn may_follow_redirect(onward: &RedirectScope, tool: &str, page: &WebAddress) -> bool {
    let Ok(rules) = SessionRules::new(&onward.rules) else { return false };
    let widens = match onward.host {
        HostRight::Given => Vec::new(),
        HostRight::ByRule => vec![ExtraRight::Hosts(vec![page.server.clone()])],
    };
    let id = CallId { session: SessionId(String::new()), number: 0 };
    let (origin, input) = (CallOrigin::model("redirect"), "{}".to_owned());
    let case = JudgedCall {
        call: Call { id, origin, tool: tool.to_owned(), input },
        kind: ToolKind::Query,
        command: None,
        page: Some(Box::new(page.clone())),
        probe: None,
        confinement: String::new(),
        extra_rights: widens,
        configured: None,
        tampered: Box::default(),
        asked: None,
        typed_by: None,
        reach: EffectReach::Unknown,
    };
    matches!(rules.judge(&case), Verdict::Allow(_))
}

/// True if an allow rule for pages names this host, instead of all hosts.
#[must_use]
pub fn is_host_named(rules: &[Rule], page: &WebAddress) -> bool {
    let allowing = rules.iter().filter(|rule| rule.effect == RuleEffect::Allow);
    allowing.map(|rule| rule_pattern::parse(rule).map(|parsed| parsed.pattern)).any(|pattern| {
        match pattern {
            Ok(CallPattern::Host(own)) => own.covers(&page.server),
            Ok(CallPattern::Page(own)) => own.covers(page),
            Ok(
                CallPattern::Anything
                | CallPattern::Words(_)
                | CallPattern::Path(_)
                | CallPattern::ServerTool(_)
                | CallPattern::MemoryScope(_),
            )
            | Err(_) => false,
        }
    })
}

/// The rules for pages and their hosts.
#[must_use]
pub fn page_rules(rules: &RuleSet) -> RuleSet {
    let speaks = |rule: &&Rule| {
        rule_pattern::tool_of(rule).is_none_or(|known| match known.matched_by {
            MatchedBy::Page | MatchedBy::Host => true,
            MatchedBy::Command => known.name == "network",
            MatchedBy::Path(_)
            | MatchedBy::ServerTool
            | MatchedBy::MemoryScope
            | MatchedBy::Nothing => false,
        })
    };
    RuleSet { rules: rules.rules.iter().filter(speaks).cloned().collect(), ..rules.clone() }
}

/// The hosts that rules deny. They are denied even if a broader entry of the session's allow-list
/// includes them.
#[must_use]
pub fn denied_hosts(rules: &[Rule]) -> Vec<HostRule> {
    let of_hosts = |rule: &&Rule| {
        rule_pattern::tool_of(rule).is_some_and(|known| known.matched_by == MatchedBy::Host)
    };
    let denied = rules.iter().filter(|rule| rule.effect == RuleEffect::Deny).filter(of_hosts);
    let hosts =
        denied.filter_map(|rule| match rule_pattern::parse(rule).map(|parsed| parsed.pattern) {
            Ok(CallPattern::Host(host)) => Some(host),
            Ok(
                CallPattern::Anything
                | CallPattern::Words(_)
                | CallPattern::Path(_)
                | CallPattern::Page(_)
                | CallPattern::ServerTool(_)
                | CallPattern::MemoryScope(_),
            )
            | Err(_) => None,
        });
    hosts.collect()
}

/// The rule that denies calls this directory, which is given by its real path.
#[must_use]
pub fn denying_directory(rules: &[Rule], dir: &Path) -> Option<Rule> {
    let denies = |rule: &&Rule| {
        let right = rule_pattern::tool_of(rule).filter(|known| known.name == "directory");
        rule.effect == RuleEffect::Deny && right.is_some()
    };
    let denials: Vec<Rule> = rules.iter().filter(denies).cloned().collect();
    let first = denials.first().cloned()?;
    let (mode, audience) = (PermissionMode::Ask, Audience::Person);
    let denials = RuleSet { rules: denials, mode, audience, project: String::new() };
    let target = match_target(&ExtraRight::Directory(FilePath::from(dir)));
    // A path that no rule can match is denied, as it is to a call.
    let (Ok(denials), Ok(Some(target))) = (SessionRules::new(&denials), target) else {
        return Some(first);
    };
    let (index, _) = denials.first_match(&denials.deny, "directory", &target)?;
    denials.rules.get(index).cloned()
}

/// True if this rule grants this right.
fn grants(rule: &Rule, (tool, page): (&str, Option<&WebAddress>), widening: &ExtraRight) -> bool {
    let named = |right: &str| rule_pattern::tool_of(rule).is_some_and(|known| known.name == right);
    let hosts = match widening {
        ExtraRight::Hosts(hosts) => hosts,
        ExtraRight::Network
        | ExtraRight::Directory(_)
        | ExtraRight::GitAdmin
        | ExtraRight::GitSign => {
            return rule.effect == RuleEffect::Allow && named(rule_target::right(widening));
        }
    };
    let speaks = match rule_pattern::parse(rule).map(|parsed| parsed.pattern) {
        Ok(CallPattern::Host(own)) => hosts.iter().all(|host| own.covers(host)),
        Ok(CallPattern::Anything | CallPattern::Words(_)) => true,
        Ok(CallPattern::Page(own)) => {
            page.is_some_and(|page| own.covers(page) && hosts == std::slice::from_ref(&page.server))
        }
        Ok(CallPattern::Path(_) | CallPattern::ServerTool(_) | CallPattern::MemoryScope(_))
        | Err(_) => false,
    };
    // A tool of the web asks for no host but that of its page, so that a rule for it gives both.
    let of_web = rule_target::tool(tool).is_some_and(|known| known.matched_by == MatchedBy::Page);
    let by_name = named("host") || named("network") || (of_web && named(tool));
    rule.effect == RuleEffect::Allow && speaks && by_name
}

/// A requested right: each name that rules use for it, with the target to match.
struct RequestedRight<'a> {
    by: Vec<(&'static str, &'a MatchTarget)>,
}

impl SessionRules {
    /// The rules that give the call each of the rights it asks for, in their order; none where it
    /// asks for none. Otherwise the verdict: no right is given in part.
    pub(crate) fn granted(
        &self,
        case: &JudgedCall,
        of_call: &MatchTarget,
    ) -> Result<Vec<Rule>, Box<Verdict>> {
        let rights = split_rights(&case.extra_rights);
        let targets = rights.iter().map(match_target).collect::<Result<Vec<_>, String>>();
        let targets = targets.map_err(|why| {
            let text = messages::unjudgeable(&why);
            Box::new(Verdict::Deny(Basis::Unjudgeable(why), text))
        })?;
        let asked = rights.iter().zip(&targets).map(|(right, own)| {
            let own = (rule_target::right(right), own.as_ref().unwrap_or(of_call));
            let all = matches!(right, ExtraRight::Hosts(_)).then_some(("network", of_call));
            let tool = rule_target::tool(&case.call.tool)
                .filter(|known| known.matched_by == MatchedBy::Page);
            let page = tool.map(|known| (known.name, of_call));
            RequestedRight { by: std::iter::once(own).chain(all).chain(page).collect() }
        });
        let asked: Vec<_> = asked.collect();
        let mut doubts = Vec::new();
        for (right, target) in asked.iter().flat_map(|asked| &asked.by) {
            let denial = self.fits(&self.deny, right, target);
            doubts.extend(denial.perhaps);
            if let Some((index, what)) = denial.certain {
                let rule = &self.rules[index];
                let text = messages::denied(rule, &what);
                return Err(Box::new(Verdict::Deny(Basis::Rule(rule.clone()), text)));
            }
        }
        let mut rules = Vec::new();
        for RequestedRight { by } in &asked {
            let asks = by.iter().any(|(right, own)| {
                let fit = self.fits(&self.ask, right, own);
                !doubts.is_empty() || fit.certain.is_some() || fit.perhaps.is_some()
            });
            let given = by.iter().find_map(|(right, own)| self.allowed(right, own));
            match given.filter(|_| !asks) {
                Some(index) => rules.push(self.rules[index].clone()),
                None => {
                    let reason = match self.mode {
                        PermissionMode::Sandboxed => effects::of_rights(&case.extra_rights),
                        PermissionMode::Ask
                        | PermissionMode::AcceptEdits
                        | PermissionMode::Plan
                        | PermissionMode::Auto
                        | PermissionMode::DontAsk => messages::exceeds_session(case),
                    };
                    // No allow rule overrides an ask rule.
                    let offers = if asks { Vec::new() } else { suggestions::of_page(case) };
                    return Err(Box::new(self.ask(case, reason, offers, RefusalRemedy::Rights)));
                }
            }
        }
        Ok(rules)
    }
}

/// The target of a right; `None` for a right that is matched by the command itself.
fn match_target(widening: &ExtraRight) -> Result<Option<MatchTarget>, String> {
    match widening {
        ExtraRight::Network | ExtraRight::GitAdmin | ExtraRight::GitSign => Ok(None),
        ExtraRight::Hosts(hosts) => Ok(hosts.first().cloned().map(MatchTarget::Host)),
        ExtraRight::Directory(dir) => {
            let real = dir.to_path();
            let rule_path = real.to_str().and_then(|real| RulePath::new(real, Path::new(NOWHERE)));
            let unfit =
                || format!("`{}` is not a path that can be shown and matched", real.display());
            rule_path.map(|rule_path| Some(MatchTarget::Directory(rule_path))).ok_or_else(unfit)
        }
    }
}
