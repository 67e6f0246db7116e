//! Events that the supervisor sees: a question, a notification, the end of the session. Their hooks run beside
//! the calls of the round, one after another for each event. Pure.

use protocol::hook::HookOccasion;
use protocol::ids::CallId;

/// An event whose hooks run.
#[derive(Debug)]
struct Aside {
    occasion: HookOccasion,
    open: OpenRun,
    /// The commands that have run for it.
    begun: Vec<String>,
}

/// The run of a hook for an event.
#[derive(Debug, PartialEq, Eq)]
enum OpenRun {
    None,
    /// It is due, and its call is named next.
    Due,
    Call(CallId),
}

/// All such events, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Asides(Vec<Aside>);

impl Asides {
    /// An event came to pass. The same question is put again after the death of a process.
    pub(super) fn occurred(&mut self, occasion: HookOccasion) {
        let is_same = |aside: &Aside| {
            aside.occasion.event == occasion.event && aside.occasion.call == occasion.call
        };
        if occasion.call.is_none() || !self.0.iter().any(is_same) {
            self.0.push(Aside { occasion, open: OpenRun::None, begun: Vec::new() });
        }
    }

    /// The first event without a running hook, and the commands that have run for it.
    pub(super) fn first_idle(&self) -> Option<(&HookOccasion, &[String])> {
        let idle = self.0.iter().find(|aside| aside.open == OpenRun::None)?;
        Some((&idle.occasion, &idle.begun))
    }

    /// A hook of that event begins: its call is named next.
    pub(super) fn begin(&mut self) {
        if let Some(idle) = self.0.iter_mut().find(|aside| aside.open == OpenRun::None) {
            idle.open = OpenRun::Due;
        }
    }

    /// That event is over.
    pub(super) fn end(&mut self) {
        if let Some(at) = self.0.iter().position(|aside| aside.open == OpenRun::None) {
            self.0.remove(at);
        }
    }

    /// A hook's call is named.
    pub(super) fn called(&mut self, call: &CallId, command: &str) {
        if let Some(due) = self.0.iter_mut().find(|aside| aside.open == OpenRun::Due) {
            due.begun.push(command.to_owned());
            due.open = OpenRun::Call(call.clone());
        }
    }

    /// True if the call runs a hook of an event.
    pub(super) fn runs(&self, call: &CallId) -> bool {
        self.0.iter().any(|aside| matches!(&aside.open, OpenRun::Call(open) if open == call))
    }

    /// A call ended.
    pub(super) fn ended(&mut self, call: &CallId) {
        let of_it = |aside: &&mut Aside| matches!(&aside.open, OpenRun::Call(open) if open == call);
        if let Some(aside) = self.0.iter_mut().find(of_it) {
            aside.open = OpenRun::None;
        }
    }

    /// The running hooks about calls.
    pub(super) fn open_about_calls(&self) -> Vec<CallId> {
        let about_calls = self.0.iter().filter(|aside| aside.occasion.call.is_some());
        let open = |aside: &Aside| match &aside.open {
            OpenRun::Call(call) => Some(call.clone()),
            OpenRun::None | OpenRun::Due => None,
        };
        about_calls.filter_map(open).collect()
    }
}
