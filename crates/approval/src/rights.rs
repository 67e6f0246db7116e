//! Rights beyond the session's that one call asks for: network, one more directory, git's own
//! settings. A person gives them, or a rule that names them (`git-admin:git remote *`); a rule for
//! the command does not, nor does a mode. For `rules`, and [`gives`] for the supervisor.

use crate::paths::Spot;
use crate::rules::{Matter, Rules};
use crate::subject;
use crate::wording::{self, Way};
use protocol::judgement::{Basis, Case, Rule, RuleEffect, Verdict, Widening};
use std::path::Path;

/// No directory that is asked for lies in the project, which a call has already.
const NOWHERE: &str = "\u{0}";

/// Whether this rule is of those that give this right.
#[must_use]
pub fn gives(rule: &Rule, widening: &Widening) -> bool {
    rule.effect == RuleEffect::Allow
        && crate::pattern::tool_of(rule).is_some_and(|known| known.name == subject::right(widening))
}

impl Rules {
    /// The rules that give the call each of the rights it asks for, in their order; none where it
    /// asks for none. Otherwise the verdict: no right is given in part.
    pub(crate) fn granted(&self, case: &Case, of_call: &Matter) -> Result<Vec<Rule>, Box<Verdict>> {
        let asked: Vec<_> = case
            .widens
            .iter()
            .map(|widening| Ok((subject::right(widening), matter(widening)?)))
            .collect::<Result<_, String>>()
            .map_err(|why: String| {
                let text = wording::unjudgeable(&why);
                Box::new(Verdict::Deny(Basis::Unjudgeable(why), text))
            })?;
        let asked: Vec<_> =
            asked.iter().map(|(right, own)| (*right, own.as_ref().unwrap_or(of_call))).collect();
        for &(right, matter) in &asked {
            if let Some((index, what)) = self.caught(&self.deny, right, matter) {
                let rule = &self.rules[index];
                let text = wording::denied(rule, &what);
                return Err(Box::new(Verdict::Deny(Basis::Rule(rule.clone()), text)));
            }
        }
        let mut by = Vec::new();
        for &(right, matter) in &asked {
            let asks = self.caught(&self.ask, right, matter).is_some();
            match self.allowed(right, matter).filter(|_| !asks) {
                Some(index) => by.push(self.rules[index].clone()),
                None => {
                    let reason = wording::widens(case);
                    return Err(Box::new(self.ask(case, reason, Vec::new(), Way::Rights)));
                }
            }
        }
        Ok(by)
    }
}

/// What a right is matched by, where that is not the command which asks for it.
fn matter(widening: &Widening) -> Result<Option<Matter>, String> {
    let Widening::Directory(dir) = widening else { return Ok(None) };
    let real = dir.to_path();
    let spot = real.to_str().and_then(|real| Spot::new(real, Path::new(NOWHERE)));
    let unfit = || format!("`{}` is not a path that can be shown and matched", real.display());
    spot.map(|spot| Some(Matter::Directory(spot))).ok_or_else(unfit)
}
