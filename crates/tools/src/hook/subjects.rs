//! The subjects of an event's hooks, which their matchers choose from. For sessions and reports.

use crate::hook::hook_names;
use crate::tool::specs;
use protocol::hook::HookEvent;

/// The subjects that a matcher covers; none where the event has no subjects, so that its hooks always run.
#[must_use]
pub fn hook_subjects(event: HookEvent, covers: impl Fn(&str) -> bool) -> Option<Vec<String>> {
    let of = |words: &[&str]| -> Option<Vec<String>> {
        Some(words.iter().filter(|word| covers(word)).map(|&word| word.to_owned()).collect())
    };
    match event {
        HookEvent::PreToolUse
        | HookEvent::PostToolUse
        | HookEvent::PostToolUseFailure
        | HookEvent::PermissionRequest => {
            let names = specs().iter().map(|spec| spec.name);
            let names = names.filter(|name| !HookEvent::is_run_by(name));
            let covered = |name: &&str| hook_names(name).iter().any(|one| covers(one));
            Some(names.filter(covered).map(str::to_owned).collect())
        }
        HookEvent::SessionStart => of(&["startup"]),
        HookEvent::SessionEnd => of(&["other"]),
        HookEvent::PreCompact => of(&["manual", "auto"]),
        HookEvent::Notification => of(&["permission_prompt", "idle_prompt"]),
        // The matcher of `SubagentStop` names an agent.
        HookEvent::UserPromptSubmit | HookEvent::Stop | HookEvent::SubagentStop => None,
    }
}
