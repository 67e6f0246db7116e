//! The look before a verdict: where a call's paths lead, what is there, what it would change.

use crate::arguments::interpret;
use crate::cancel::Cancel;
use crate::failure::Failure;
use crate::judged;
use crate::open;
use crate::remove;
use crate::scope::{End, Place, trace};
use crate::site::{Account, Site, Target};
use crate::spec::Look;
use crate::syntax::Engine;
use crate::tool::works;
use protocol::call::{Probe, ProbedPath};
use protocol::judgement::ToolKind;

/// Looks at the paths that a call names. Changes nothing.
///
/// Digests are made for mutations only: a query is judged by where it leads, and the file that it
/// reads may be of any size.
///
/// # Errors
/// In words, where the call is none, or where this build has no such tool.
pub fn probe(
    tool: &str,
    input: &str,
    place: &Place,
    cancel: &Cancel,
    engine: Engine<'_>,
) -> Result<Probe, String> {
    let call =
        interpret(tool, input).map_err(|invalid| format!("{invalid}. {}", invalid.hint()))?;
    let works = works(call.spec.name).ok_or_else(|| format!("this build cannot run {tool}"))?;
    let paths: Vec<ProbedPath> = call
        .paths
        .iter()
        .flat_map(|named| look(place, named, call.spec.kind, works.look))
        .collect();
    let diff = if paths.iter().all(|path| path.in_scope) {
        let account = Account::default();
        let (command, max_chars) = (None, 0);
        let site = Site { place, judged: &[], cancel, command, max_chars, engine, account };
        (works.preview)(&call.input, &site).unwrap_or_else(|failure| would_fail(&failure))
    } else {
        String::new()
    };
    Ok(Probe { paths, diff })
}

/// A call that cannot succeed shows why, so that nobody approves an empty diff.
fn would_fail(failure: &Failure) -> String {
    format!("# This call would change nothing: {failure} ({})\n", failure.code.name())
}

fn look(place: &Place, named: &str, kind: ToolKind, look: Look) -> Vec<ProbedPath> {
    let trace = trace(place, named);
    let in_scope = place.contains(&trace.real)
        && trace.real.to_str().is_some()
        && match trace.end {
            End::Found | End::Missing | End::NotADirectory | End::Unreadable(_) => true,
            End::Dangling | End::Circle => false,
        };
    let digest = match kind {
        ToolKind::Mutation if in_scope && trace.end == End::Found => {
            let target = Target { named: named.to_owned(), real: trace.real.clone(), exists: true };
            match look {
                Look::Removal if trace.real.is_dir() => remove::tree(&trace.real).ok(),
                Look::Removal | Look::Content => {
                    open::regular(&target).ok().and_then(|(file, _)| judged::digest_of(file).ok())
                }
            }
        }
        ToolKind::Mutation | ToolKind::Query => None,
    };
    let leads_to = ProbedPath {
        named: named.to_owned(),
        real: trace.real.to_string_lossy().into_owned(),
        in_scope,
        digest,
    };
    // A link that would go lies in another place than what it leads to, under rules of its own.
    let link = match look {
        Look::Removal => remove::own_place(named, place).filter(|own| *own != trace.real),
        Look::Content => None,
    };
    let itself = link.map(|own| ProbedPath {
        named: named.to_owned(),
        real: own.to_string_lossy().into_owned(),
        in_scope: place.contains(&own) && own.to_str().is_some(),
        digest: remove::link(&own),
    });
    std::iter::once(leads_to).chain(itself).collect()
}
