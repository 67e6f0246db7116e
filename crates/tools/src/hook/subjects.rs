//! The subjects of an event's hooks, which their matchers choose from. For sessions and reports.

use crate::hook::hook_names;
use crate::tool::specs;
use protocol::hook::{HookEvent, MatcherSubjects};

/// The subjects that a matcher covers; none where the event has no subjects, so that its hooks always run.
#[must_use]
pub fn hook_subjects(event: HookEvent, covers: impl Fn(&str) -> bool) -> Option<Vec<String>> {
    match event.row().matcher {
        MatcherSubjects::Tools => {
            let names = specs().iter().map(|spec| spec.name);
            let names = names.filter(|name| !HookEvent::is_run_by(name));
            let covered = |name: &&str| hook_names(name).iter().any(|one| covers(one));
            Some(names.filter(covered).map(str::to_owned).collect())
        }
        MatcherSubjects::Words(words) => {
            Some(words.iter().filter(|word| covers(word)).map(|&word| word.to_owned()).collect())
        }
        // A matcher for an agent is compared once, when the session begins.
        MatcherSubjects::Agent | MatcherSubjects::Nothing => None,
    }
}
