//! The look before a verdict: where a call's paths lead, what is there, what it would change.

use crate::arguments::interpret::interpret;
use crate::cancel::Cancel;
use crate::edit::remove;
use crate::engine::Engine;
use crate::failure::ToolFailure;
use crate::files::call_scope::CallScope;
use crate::files::path_trace::{TraceEnd, trace_path};
use crate::files::precondition;
use crate::files::resolved_path::ResolvedPath;
use crate::files::safe_open;
use crate::spec::ProbeMode;
use crate::tool::tool_impl;
use crate::tool_context::{ReportExtras, ToolContext};
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
    place: &CallScope,
    cancel: &Cancel,
    engine: Engine<'_>,
) -> Result<Probe, String> {
    let call =
        interpret(tool, input).map_err(|invalid| format!("{invalid}. {}", invalid.hint()))?;
    let works = tool_impl(call.spec.name).ok_or_else(|| format!("this build cannot run {tool}"))?;
    let paths: Vec<ProbedPath> = call
        .paths
        .iter()
        .flat_map(|named| probe_path(place, named, call.spec.kind, works.probe_mode))
        .collect();
    let diff = if paths.iter().all(|path| path.in_scope) {
        let extras = ReportExtras::default();
        let (command, max_chars) = (None, 0);
        let ctx =
            ToolContext { scope: place, judged: &[], cancel, command, max_chars, engine, extras };
        (works.preview)(&call.input, &ctx).unwrap_or_else(|failure| would_fail(&failure))
    } else {
        String::new()
    };
    Ok(Probe { paths, diff })
}

/// A call that cannot succeed shows why, so that nobody approves an empty diff.
fn would_fail(failure: &ToolFailure) -> String {
    format!("# This call would change nothing: {failure} ({})\n", failure.code.name())
}

fn probe_path(place: &CallScope, named: &str, kind: ToolKind, look: ProbeMode) -> Vec<ProbedPath> {
    let trace = trace_path(place, named);
    let in_scope = place.contains(&trace.real)
        && trace.real.to_str().is_some()
        && match trace.end {
            TraceEnd::Found
            | TraceEnd::Missing
            | TraceEnd::NotADirectory
            | TraceEnd::Unreadable(_) => true,
            TraceEnd::Dangling | TraceEnd::Circle => false,
        };
    let digest = match kind {
        ToolKind::Mutation if in_scope && trace.end == TraceEnd::Found => {
            let target =
                ResolvedPath { named: named.to_owned(), real: trace.real.clone(), exists: true };
            match look {
                ProbeMode::Removal if trace.real.is_dir() => remove::tree_digest(&trace.real).ok(),
                ProbeMode::Removal | ProbeMode::Content => safe_open::open_regular(&target)
                    .ok()
                    .and_then(|(file, _)| precondition::digest_reader(file).ok()),
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
        ProbeMode::Removal => remove::link_path(named, place).filter(|own| *own != trace.real),
        ProbeMode::Content => None,
    };
    let itself = link.map(|own| ProbedPath {
        named: named.to_owned(),
        real: own.to_string_lossy().into_owned(),
        in_scope: place.contains(&own) && own.to_str().is_some(),
        digest: remove::link_digest(&own),
    });
    std::iter::once(leads_to).chain(itself).collect()
}
