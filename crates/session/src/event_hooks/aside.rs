//! Hooks of events that the supervisor sees: a question, a notification, the end of the session. They
//! run beside the calls of the round, one after another for each event. Part of [`EventHooks`]. Pure.

use super::{EventHooks, about_call, arguments, of_event};
use crate::hook_answer::{HookAnswer, HookDecision};
use protocol::hook::{EventHook, HookEvent, HookOccasion, HookRefusal};
use protocol::ids::CallId;
use protocol::session::SessionSetup;
use serde_json::{Value, json};

/// An event whose hooks run.
#[derive(Debug)]
pub(crate) struct Aside {
    occasion: HookOccasion,
    /// The hook that runs.
    open: Option<CallId>,
    /// The commands that have run for it.
    begun: Vec<String>,
}

impl Aside {
    fn number(&self) -> Option<u32> {
        self.occasion.call.as_ref().map(|(number, _)| *number)
    }

    fn is_about(&self, occasion: &HookOccasion) -> bool {
        self.occasion.event == occasion.event && self.occasion.call == occasion.call
    }
}

/// The next step of an event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AsideStep {
    /// Run this hook: a tool and its arguments.
    Run(&'static str, String),
    /// All have ended, or one has blocked the step.
    Ended { event: HookEvent, call: Option<u32>, refusal: Option<HookRefusal> },
}

impl EventHooks {
    /// An event came to pass. The same question is put again after the death of a process.
    pub(crate) fn occurred(&mut self, occasion: HookOccasion) {
        let is_known =
            occasion.call.is_some() && self.asides.iter().any(|aside| aside.is_about(&occasion));
        if !is_known {
            self.asides.push(Aside { occasion, open: None, begun: Vec::new() });
        }
    }

    /// The next step of the events without a running hook.
    pub(crate) fn next_aside(&mut self, setup: &SessionSetup) -> Option<AsideStep> {
        let at = self.asides.iter().position(|aside| aside.open.is_none())?;
        let number = self.asides[at].number();
        let refusal = number.and_then(|number| self.refusal(number));
        let due = match refusal {
            Some(_) => None,
            None => self.due_aside(&self.asides[at], setup),
        };
        Some(match due {
            Some((command, tool, input)) => {
                self.asides[at].begun.push(command);
                AsideStep::Run(tool, input)
            }
            None => {
                let event = self.asides.remove(at).occasion.event;
                AsideStep::Ended { event, call: number, refusal }
            }
        })
    }

    /// The hook that was due has this name.
    pub(crate) fn aside_runs(&mut self, call: &CallId) {
        if let Some(aside) = self.asides.iter_mut().find(|aside| aside.open.is_none()) {
            aside.open = Some(call.clone());
        }
    }

    /// A call ended; true if it was a hook that ran beside the round.
    pub(crate) fn aside_ended(&mut self, call: &CallId) -> bool {
        let of_it = |aside: &&mut Aside| aside.open.as_ref() == Some(call);
        let aside = self.asides.iter_mut().find(of_it);
        aside.map(|aside| aside.open = None).is_some()
    }

    /// The running hooks about calls.
    pub(crate) fn open_about_calls(&self) -> Vec<CallId> {
        let about_call = |aside: &&Aside| aside.occasion.call.is_some();
        self.asides.iter().filter(about_call).filter_map(|aside| aside.open.clone()).collect()
    }

    /// The first hook that has not run for the event.
    fn due_aside(
        &self,
        aside: &Aside,
        setup: &SessionSetup,
    ) -> Option<(String, &'static str, String)> {
        let HookOccasion { event, subject, call, message } = &aside.occasion;
        let has_run = |hook: &EventHook| {
            // One about a call is not run again after a replay.
            aside.begun.contains(&hook.command)
                || call
                    .as_ref()
                    .is_some_and(|(number, _)| self.has_begun(hook, Some(*number), None))
        };
        let hook = of_event(setup, *event, subject).find(|hook| !has_run(hook))?;
        let about = match call {
            Some((number, input)) => {
                // The arguments of a tool of an MCP server are in the input of the one that stands for it.
                let is_of_server = subject.starts_with(protocol::mcp::PREFIX);
                let tool = if is_of_server { protocol::mcp::CALL } else { subject };
                about_call((*number, tool), input, None)
            }
            None => words(subject, message),
        };
        Some((hook.command.clone(), event.tool(), arguments(hook, setup, about)))
    }

    /// The first hook that denied a call in place of the person.
    fn refusal(&self, number: u32) -> Option<HookRefusal> {
        let blocks = |answer: &HookAnswer| {
            matches!(answer.verdict, HookDecision::Block | HookDecision::Stop)
        };
        self.ended.iter().find_map(|(run, answer)| {
            let of_it =
                run.event() == Some(HookEvent::PermissionRequest) && run.about.call == Some(number);
            let answer = answer.as_ref().ok().filter(|answer| of_it && blocks(answer))?;
            Some(HookRefusal { command: run.command.clone(), reason: answer.reason.clone() })
        })
    }
}

fn words(subject: &str, message: &str) -> Value {
    match message {
        "" => json!({ "word": subject }),
        message => json!({ "word": subject, "message": message }),
    }
}
