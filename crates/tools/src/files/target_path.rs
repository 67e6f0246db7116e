//! A path that a tool may use, and the failures for paths that it may not use or that do not exist.

use crate::failure::{FailureCode, ToolFailure};
use crate::refusal_hints;
use protocol::did_you_mean::nearest;
use sandbox::CallScope;
use std::path::{Path, PathBuf};
use tool_specs::{Restriction, closed_temp};

/// Limit for the names of a directory that are compared with a wrong one.
const NAMES_COMPARED: usize = 2000;

/// A path that a tool may use.
#[derive(Debug)]
pub(crate) struct TargetPath {
    /// As the call wrote it.
    pub named: String,
    /// Where it leads.
    pub real: PathBuf,
    /// True if the path exists.
    pub exists: bool,
}

impl TargetPath {
    /// As the record has it.
    pub fn recorded(&self) -> String {
        self.real.to_string_lossy().into_owned()
    }
}

/// Nothing at this path, with the names beside it that may have been meant.
pub(crate) fn not_found(target: &TargetPath) -> ToolFailure {
    let wrong = target.real.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let beside: Vec<String> = target
        .real
        .parent()
        .and_then(|parent| parent.read_dir().ok())
        .into_iter()
        .flatten()
        .take(NAMES_COMPARED)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    let near = nearest(wrong, beside.iter().map(String::as_str));
    let hint = if near.is_empty() {
        "Find the right path with ls or glob.".to_owned()
    } else {
        format!("Similar names in the same directory: {}.", near.join(", "))
    };
    ToolFailure::new(FailureCode::NotFound, format!("there is no {:?}", target.named), hint)
}

/// Why a path that leads out of the granted directories is not used.
pub(crate) fn access_denied(scope: &CallScope, real: &Path, named: &str, why: &str) -> ToolFailure {
    let message = format!("ACCESS DENIED: {named:?} {why}");
    let hint = Restriction::Path.hint_sentence();
    let hint = match refusal_hints::is_closed_temp(real, scope) {
        true => format!("{} {hint}", closed_temp(&scope.temp)),
        false => hint,
    };
    ToolFailure::new(FailureCode::AccessDenied, message, hint)
}
