//! Hooks before a call: each decides about it before the rules do. Part of [`EventHooks`]. Pure.

use super::{EventHooks, FILES, about_call, arguments, files, of_event, run_of, subject};
use crate::hook_answer::HookDecision;
use crate::tool_lookup::Reader;
use protocol::call::Call;
use protocol::hook::HookEvent;
use protocol::session::SessionSetup;

/// What hooks let a call do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Guarded {
    /// This run comes first: a tool and its arguments.
    Behind(&'static str, String),
    /// It may be judged, with these arguments.
    Open {
        input: String,
        /// A hook wants a person to approve it, and why.
        asked: Option<String>,
        /// Which hook changed the arguments, for the result.
        note: Option<String>,
    },
    /// It does not run, and why.
    Blocked(String),
}

impl EventHooks {
    /// The next step of a call that is about to be judged.
    pub(crate) fn guard(&self, call: &Call, setup: &SessionSetup, reader: Reader) -> Guarded {
        let mut input = call.input.clone();
        let (mut asked, mut note) = (None, None);
        if !call.origin.is_model() {
            return Guarded::Open { input, asked, note };
        }
        let event = HookEvent::PreToolUse;
        let (shown, _) = subject(&call.tool, &call.input);
        for hook in of_event(setup, event, &shown) {
            let files = files(call, &input, setup, reader);
            if files.len() > FILES {
                return Guarded::Blocked(format!(
                    "the call names {} files, and hooks are run for at most {FILES}; split it",
                    files.len()
                ));
            }
            for file in &files {
                let key = run_of(hook, Some(call.id.number), file.as_deref());
                let Some((_, answer)) = self.ended.iter().find(|(run, _)| *run == key) else {
                    let about = about_call((call.id.number, &call.tool), &input, file.as_deref());
                    return Guarded::Behind(event.tool(), arguments(hook, setup, about));
                };
                let from = || format!("{} ({})", key.label(), hook.file);
                let answer = match answer {
                    Ok(answer) => answer,
                    Err(why) => {
                        return Guarded::Blocked(format!(
                            "{} failed: {why}. A hook that decides about a call and fails lets it \
                             not run",
                            from()
                        ));
                    }
                };
                match answer.verdict {
                    HookDecision::Block | HookDecision::Stop => {
                        return Guarded::Blocked(format!("{}: {}", from(), answer.reason));
                    }
                    HookDecision::Ask => {
                        let reason = answer.reason.as_str();
                        let because = if reason.is_empty() { "" } else { ": " };
                        asked.get_or_insert_with(|| {
                            format!("{} asks about it{because}{reason}", from())
                        });
                    }
                    HookDecision::Pass => {}
                }
                if let Some(updated) = &answer.updated_input {
                    match reader(&shown, updated, &setup.project) {
                        Ok(read) if read.tool == call.tool && files.len() == 1 => {
                            input = read.input;
                            note = Some(format!("[{} changed the arguments]", key.label()));
                        }
                        Ok(_) => {
                            return Guarded::Blocked(format!(
                                "{} changes the input of a call of several files",
                                from()
                            ));
                        }
                        Err(no) => {
                            return Guarded::Blocked(format!(
                                "{} changes the input to arguments that are none of {}: {}",
                                from(),
                                shown,
                                no.result.text
                            ));
                        }
                    }
                }
            }
        }
        Guarded::Open { input, asked, note }
    }
}
