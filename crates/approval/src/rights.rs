//! Rights beyond the session's that one call asks for: network, hosts, one more directory, git's own
//! settings, git's signatures. A person gives them, or a rule that names them (`git-admin:git remote *`,
//! `host:*.crates.io`); a rule for the command does not, nor does a mode. Each host is a right of its
//! own; rules about the network speak of all of them. For `rules`, and [`give`] for the supervisor.

use crate::offers;
use crate::paths::Spot;
use crate::pattern::{self, Pattern};
use crate::rules::{Matter, Rules};
use crate::subject::{self, Subject};
use crate::widening::each;
use crate::wording::{self, Way};
use protocol::call::Call;
use protocol::confinement::Network;
use protocol::hosts::HostRule;
use protocol::ids::{CallId, SessionId};
use protocol::judgement::ToolKind;
use protocol::judgement::{Basis, Case, Rule, RuleEffect, RuleSet, Verdict, Widening};
use protocol::web::{HostRight, Onward, WebAddress};
use std::path::Path;

/// No directory that is asked for lies in the project, which a call has already.
const NOWHERE: &str = "\u{0}";

/// Whether these rules give all that is asked for: one for each right, in their order.
#[must_use]
pub fn give(
    rules: &[Rule],
    (tool, page): (&str, Option<&WebAddress>),
    widens: &[Widening],
) -> bool {
    let asked = each(widens);
    let gives = |(rule, right)| gives(rule, (tool, page), right);
    rules.len() == asked.len() && rules.iter().zip(&asked).all(gives)
}

/// What reading this page needs beyond a session with this network and these hosts.
#[must_use]
pub fn to_read(page: &WebAddress, network: Network, hosts: &[HostRule]) -> Option<Widening> {
    let within = match network {
        Network::On => true,
        Network::Listed => hosts.iter().any(|host| host.covers(&page.server)),
        Network::Off => false,
    };
    (!within).then(|| Widening::Hosts(vec![page.server.clone()]))
}

/// Whether a call of this tool may read this page too, where its own page leads there: judged as a call
/// for this page would be.
#[must_use]
pub fn may_follow(onward: &Onward, tool: &str, page: &WebAddress) -> bool {
    let Ok(rules) = Rules::new(&onward.rules) else { return false };
    let widens = match onward.host {
        HostRight::Given => Vec::new(),
        HostRight::ByRule => vec![Widening::Hosts(vec![page.server.clone()])],
    };
    let id = CallId { session: SessionId(String::new()), number: 0 };
    let (use_id, input) = (String::new(), "{}".to_owned());
    let case = Case {
        call: Call { id, use_id, tool: tool.to_owned(), input },
        kind: ToolKind::Query,
        command: None,
        page: Some(Box::new(page.clone())),
        probe: None,
        confinement: String::new(),
        widens,
        configured: None,
        tampered: Box::default(),
    };
    matches!(rules.judge(&case), Verdict::Allow(_))
}

/// Whether a rule that allows pages names this host itself, as one that allows all hosts does not.
#[must_use]
pub fn is_named_by_a_rule(rules: &[Rule], page: &WebAddress) -> bool {
    let allowing = rules.iter().filter(|rule| rule.effect == RuleEffect::Allow);
    allowing.map(|rule| pattern::parse(rule).map(|parsed| parsed.pattern)).any(|pattern| {
        match pattern {
            Ok(Pattern::Host(own)) => own.covers(&page.server),
            Ok(Pattern::Page(own)) => own.is(page),
            Ok(Pattern::Anything | Pattern::Words(_) | Pattern::Path(_)) | Err(_) => false,
        }
    })
}

/// The rules that speak of pages and their hosts.
#[must_use]
pub fn about_pages(rules: &RuleSet) -> RuleSet {
    let speaks = |rule: &&Rule| {
        pattern::tool_of(rule).is_none_or(|known| match known.subject {
            Subject::Page | Subject::Host => true,
            Subject::Command => known.name == "network",
            Subject::Path(_) | Subject::Nothing => false,
        })
    };
    RuleSet { rules: rules.rules.iter().filter(speaks).cloned().collect(), ..rules.clone() }
}

/// The hosts that rules deny by name: what a session's list names more widely does not lead there.
#[must_use]
pub fn denied_hosts(rules: &[Rule]) -> Vec<HostRule> {
    let denied = rules.iter().filter(|rule| rule.effect == RuleEffect::Deny);
    let hosts = denied.filter_map(|rule| match pattern::parse(rule).map(|parsed| parsed.pattern) {
        Ok(Pattern::Host(host)) => Some(host),
        Ok(Pattern::Anything | Pattern::Words(_) | Pattern::Path(_) | Pattern::Page(_))
        | Err(_) => None,
    });
    hosts.collect()
}

/// Whether this rule is of those that give this right.
fn gives(rule: &Rule, (tool, page): (&str, Option<&WebAddress>), widening: &Widening) -> bool {
    let named = |right: &str| pattern::tool_of(rule).is_some_and(|known| known.name == right);
    let hosts = match widening {
        Widening::Hosts(hosts) => hosts,
        Widening::Network | Widening::Directory(_) | Widening::GitAdmin | Widening::GitSign => {
            return rule.effect == RuleEffect::Allow && named(subject::right(widening));
        }
    };
    let speaks = match pattern::parse(rule).map(|parsed| parsed.pattern) {
        Ok(Pattern::Host(own)) => hosts.iter().all(|host| own.covers(host)),
        Ok(Pattern::Anything | Pattern::Words(_)) => true,
        Ok(Pattern::Page(own)) => {
            page.is_some_and(|page| own.is(page) && hosts == std::slice::from_ref(&page.server))
        }
        Ok(Pattern::Path(_)) | Err(_) => false,
    };
    // A tool of the web asks for no host but that of its page, so that a rule for it gives both.
    let of_web = subject::tool(tool).is_some_and(|known| known.subject == Subject::Page);
    let by_name = named("host") || named("network") || (of_web && named(tool));
    rule.effect == RuleEffect::Allow && speaks && by_name
}

/// A right that is asked for, by each name that rules have for it, and what they are matched by.
struct Asked<'a> {
    by: Vec<(&'static str, &'a Matter)>,
}

impl Rules {
    /// The rules that give the call each of the rights it asks for, in their order; none where it
    /// asks for none. Otherwise the verdict: no right is given in part.
    pub(crate) fn granted(&self, case: &Case, of_call: &Matter) -> Result<Vec<Rule>, Box<Verdict>> {
        let rights = each(&case.widens);
        let matters = rights.iter().map(matter).collect::<Result<Vec<_>, String>>();
        let matters = matters.map_err(|why| {
            let text = wording::unjudgeable(&why);
            Box::new(Verdict::Deny(Basis::Unjudgeable(why), text))
        })?;
        let asked = rights.iter().zip(&matters).map(|(right, own)| {
            let own = (subject::right(right), own.as_ref().unwrap_or(of_call));
            let all = matches!(right, Widening::Hosts(_)).then_some(("network", of_call));
            let tool =
                subject::tool(&case.call.tool).filter(|known| known.subject == Subject::Page);
            let page = tool.map(|known| (known.name, of_call));
            Asked { by: std::iter::once(own).chain(all).chain(page).collect() }
        });
        let asked: Vec<_> = asked.collect();
        for (right, matter) in asked.iter().flat_map(|asked| &asked.by) {
            if let Some((index, what)) = self.caught(&self.deny, right, matter) {
                let rule = &self.rules[index];
                let text = wording::denied(rule, &what);
                return Err(Box::new(Verdict::Deny(Basis::Rule(rule.clone()), text)));
            }
        }
        let mut rules = Vec::new();
        for Asked { by } in &asked {
            let asks = by.iter().any(|(right, own)| self.caught(&self.ask, right, own).is_some());
            let given = by.iter().find_map(|(right, own)| self.allowed(right, own));
            match given.filter(|_| !asks) {
                Some(index) => rules.push(self.rules[index].clone()),
                None => {
                    let reason = wording::widens(case);
                    // No rule takes the place of one that asks.
                    let offers = if asks { Vec::new() } else { offers::of_page(case) };
                    return Err(Box::new(self.ask(case, reason, offers, Way::Rights)));
                }
            }
        }
        Ok(rules)
    }
}

/// What a right is matched by, where that is not the command which asks for it.
fn matter(widening: &Widening) -> Result<Option<Matter>, String> {
    match widening {
        Widening::Network | Widening::GitAdmin | Widening::GitSign => Ok(None),
        Widening::Hosts(hosts) => Ok(hosts.first().cloned().map(Matter::Host)),
        Widening::Directory(dir) => {
            let real = dir.to_path();
            let spot = real.to_str().and_then(|real| Spot::new(real, Path::new(NOWHERE)));
            let unfit =
                || format!("`{}` is not a path that can be shown and matched", real.display());
            spot.map(|spot| Some(Matter::Directory(spot))).ok_or_else(unfit)
        }
    }
}
