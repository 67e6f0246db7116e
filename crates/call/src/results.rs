//! Results of calls that did not run to their end, as the model and people read them.

use crate::effect::Cut;
use protocol::call::{Outcome, TamperedFile, ToolResult};
use protocol::judgement::{Basis, PermissionMode};

pub(crate) fn failed(tool: &str, outcome: Outcome, code: &str, text: String) -> ToolResult {
    let summary = text.lines().next().unwrap_or_default().to_owned();
    ToolResult { summary, ..ToolResult::error(outcome, code, tool, &text, "") }
}

/// The result of a call that needs a store and has none.
pub(crate) fn no_store(tool: &str, cause: &str) -> ToolResult {
    let text = format!("nothing was done: agentd-store {cause}");
    let hint = "Go on without it, and tell the person: `agentd restart` starts the store again.";
    ToolResult::error(Outcome::Failed, "store_unavailable", tool, &text, hint)
}

/// The result of a call about a background command that did not wait for its answer.
pub(crate) fn not_awaited(tool: &str) -> ToolResult {
    let text = "Stopped by a person before the background command answered. It goes on; bash_input \
                may have reached it.";
    failed(tool, Outcome::Interrupted, "interrupted", text.to_owned())
}

/// The result of an edit whose file has changed since the model read it.
pub(crate) fn stale(tool: &str, named: &str) -> ToolResult {
    let text = format!(
        "{named:?} changed on disk since you last read or wrote it; this call changed nothing"
    );
    let hint = "Read it again, then repeat the call.";
    let result = ToolResult::error(Outcome::Failed, "stale", tool, &text, hint);
    let summary = format!("{tool}: {named:?} changed on disk since it was read");
    ToolResult { summary, ..result }
}

/// The result of a call that was not allowed.
pub(crate) fn denial(tool: &str, basis: &Basis, text: String) -> ToolResult {
    match basis {
        Basis::Person(_) | Basis::NotedByPerson { .. } | Basis::Answered { .. } => {
            failed(tool, Outcome::Denied, "denied", text)
        }
        Basis::Rule(rule) => {
            failed(tool, Outcome::Refused { rule: rule.text.clone() }, "denied", text)
        }
        Basis::Mode(mode) | Basis::Opaque(mode) => {
            let rule = format!("mode {}", mode.name());
            failed(tool, Outcome::Refused { rule }, "denied", text)
        }
        Basis::Sandboxed(_) => {
            let rule = format!("mode {}", PermissionMode::Sandboxed.name());
            failed(tool, Outcome::Refused { rule }, "denied", text)
        }
        Basis::NobodyToAsk(_) => {
            let rule = "nobody to ask".to_owned();
            failed(tool, Outcome::Refused { rule }, "nobody_to_ask", text)
        }
        Basis::Rights(_) | Basis::Query | Basis::Typed(_) | Basis::Unjudgeable(_) => {
            failed(tool, Outcome::Refused { rule: "not judgeable".into() }, "denied", text)
        }
    }
}

/// The result of a call that was cut short.
pub fn interruption(cut: &Cut, tool: &str, names: impl IntoIterator<Item = String>) -> ToolResult {
    // Only `delete` of several names moves each of them aside first.
    let aside = match tool {
        "delete" => {
            " Of several names, those already moved aside are beside their place as \
             `.agentd-….NAME.gone`; rename such a file to have it back, unless it was deleted."
        }
        _ => "",
    };
    let (outcome, mut text) = match cut {
        Cut::AfterGo { cause } => (
            Outcome::Interrupted,
            format!(
                "interrupted: may have run. The process of this call {cause} before it could \
                 report; its work may be done, half done or not done. Check before you repeat \
                 it.{aside}"
            ),
        ),
        Cut::BeforeGo { cause } => {
            (Outcome::NeverStarted, format!("interrupted: never started ({cause})."))
        }
        Cut::No => (Outcome::Interrupted, "interrupted".to_owned()),
    };
    for name in names {
        text.push_str(&format!("\n[a protected name: {name}]"));
    }
    failed(tool, outcome, "interrupted", text)
}

/// The protected files that a call changed, each as text for screens and models.
pub fn tampered_in_words<'a>(files: impl IntoIterator<Item = &'a TamperedFile>) -> Vec<String> {
    files
        .into_iter()
        .map(|file| protocol::hidden::line_for_model(&file.to_string()).into_owned())
        .collect()
}
