//! The probe before a verdict: the real paths of a call, the files there, and the change that the
//! call would make.

use crate::cancel::Cancel;
use crate::edit::remove;
use crate::engine::Engine;
use crate::failure::ToolFailure;
use crate::files::path_trace::{TraceEnd, trace_path};
use crate::files::precondition;
use crate::files::protected::ProtectedSearch;
use crate::files::read_set::ReadSet;
use crate::files::safe_open;
use crate::files::target_path::TargetPath;
use crate::spec::ProbeMode;
use crate::tool::tool_impl;
use crate::tool_context::{ReportExtras, ToolContext};
use prompts::DeniedReads;
use protocol::call::{ProbeReport, ProbedPath};
use protocol::judgement::ToolKind;
use sandbox::CallScope;
use tool_specs::interpret;

/// Inspects the paths that a call names. Changes nothing.
///
/// Digests are made for mutations only: a query is judged by where it leads, and the file that it
/// reads may be of any size.
///
/// # Errors
/// A message, if the call is not valid or this build does not include the tool.
pub fn probe(
    tool: &str,
    input: &str,
    scope: &CallScope,
    cancel: &Cancel,
    engine: Engine<'_>,
) -> Result<ProbeReport, String> {
    let call =
        interpret(tool, input).map_err(|invalid| format!("{invalid}. {}", invalid.hint()))?;
    let works =
        tool_impl(call.spec.name).ok_or_else(|| format!("this build does not include {tool}"))?;
    let paths: Vec<ProbedPath> = call
        .paths
        .iter()
        .flat_map(|named| probe_path(scope, named, call.spec.kind, works.probe_mode))
        .collect();
    let diff = if paths.iter().all(|path| path.in_scope) {
        let extras = ReportExtras::default();
        let (command, max_chars, protected) = (None, 0, ProtectedSearch::default());
        let (judged, denied) = (&[], DeniedReads::NONE);
        let ctx = ToolContext {
            scope,
            judged,
            cancel,
            command,
            max_chars,
            engine,
            denied,
            protected,
            extras,
        };
        (works.preview)(&call.typed, &ctx).unwrap_or_else(|failure| would_fail(&failure))
    } else {
        String::new()
    };
    Ok(ProbeReport { paths, diff })
}

/// A call that cannot succeed shows the reason, so that the user does not approve an empty diff.
fn would_fail(failure: &ToolFailure) -> String {
    format!("# This call would change nothing: {failure} ({})\n", failure.code.name())
}

fn probe_path(scope: &CallScope, named: &str, kind: ToolKind, look: ProbeMode) -> Vec<ProbedPath> {
    let trace = trace_path(scope, named);
    let in_scope = scope.contains(&trace.real)
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
                TargetPath { named: named.to_owned(), real: trace.real.clone(), exists: true };
            match look {
                ProbeMode::Removal if trace.real.is_dir() => remove::tree_digest(&trace.real).ok(),
                ProbeMode::Removal | ProbeMode::Content => {
                    safe_open::open_regular(&target, &ReadSet::unrecorded())
                        .ok()
                        .and_then(|(file, _)| precondition::digest_reader(file).ok())
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
    // A link that would be removed is in another place than its target, and other rules may apply
    // to it.
    let link = match look {
        ProbeMode::Removal => remove::link_path(named, scope).filter(|own| *own != trace.real),
        ProbeMode::Content => None,
    };
    let itself = link.map(|own| ProbedPath {
        named: named.to_owned(),
        real: own.to_string_lossy().into_owned(),
        in_scope: scope.contains(&own) && own.to_str().is_some(),
        digest: remove::link_digest(&own),
    });
    std::iter::once(leads_to).chain(itself).collect()
}
