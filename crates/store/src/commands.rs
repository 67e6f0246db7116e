//! What commands changed, kept so that it can be taken back: a snapshot before each, and a comparison
//! after it, which becomes a change like those of file tools. For `Store`.
//!
//! A command that could not be followed stands in the list with the reason; that it cannot be taken
//! back is never silent.

use crate::failure::Failure;
use crate::snapshot::{Open, Snapshot};
use crate::terms::line;
use crate::undo::{End, Ran, Undo};
use protocol::store::{Before, Command, StoreSetup};
use std::time::{Duration, Instant};

/// How long a command waits for copies that are not made yet.
const COPYING: Duration = Duration::from_millis(500);
/// Of a command whose end nobody saw: whose changes they are cannot be told.
const END_UNSEEN: &str = "not covered: agentd was killed while this command ran: what was changed since \
     may be yours";
/// Characters of a command in the list.
const WORDS: usize = 60;

/// The commands of one session.
#[derive(Debug)]
pub(crate) struct Commands {
    snapshot: Snapshot,
    /// The command before which the snapshot failed, and why.
    missed: Option<(u32, String)>,
    /// What could not be written to the list: it is shown there for as long as this life lasts.
    unwritten: Vec<(u32, String)>,
}

/// What the list says of all commands.
#[derive(Debug)]
pub(crate) struct Cover {
    /// Why no command is covered here.
    pub(crate) unable: Option<&'static str>,
    /// What of the project is not looked at.
    pub(crate) gap: Option<String>,
    /// Commands that are not in the list for want of a disk that takes them.
    pub(crate) unwritten: Vec<(u32, String)>,
}

impl Commands {
    pub(crate) fn of(setup: &StoreSetup) -> Self {
        let directory = setup.project_store.to_path().join("sessions").join(&setup.session.0);
        let snapshot = Snapshot::of(&directory, setup.confinement.project.to_path());
        Self { snapshot, missed: None, unwritten: Vec::new() }
    }

    /// What was set aside, for people; said once.
    pub(crate) fn damages(&mut self) -> Vec<String> {
        self.snapshot.damages()
    }

    pub(crate) fn cover(&self) -> Cover {
        let unwritten = self.unwritten.clone();
        Cover { unable: self.snapshot.unable(), gap: self.snapshot.gap(), unwritten }
    }

    pub(crate) fn prepare(&mut self) -> Result<(), Failure> {
        self.snapshot.prepare()
    }

    pub(crate) fn has_work(&self) -> bool {
        self.snapshot.has_work()
    }

    pub(crate) fn work(&mut self) -> Result<(), Failure> {
        self.snapshot.work()
    }

    /// A command is about to run.
    pub(crate) fn before(&mut self, command: &Command) -> Result<(), Failure> {
        self.missed = None;
        if self.snapshot.unable().is_some() {
            return Ok(());
        }
        let number = command.call.number;
        let open = Open::new(number, &command.tool, &line(&command.text, WORDS));
        let kept = self.snapshot.before(open, Instant::now() + COPYING);
        kept.map(drop).inspect_err(|why| self.missed = Some((number, why.message.clone())))
    }

    /// A command is over.
    pub(crate) fn after(
        &mut self,
        undo: &mut Undo,
        command: &Command,
        ended: i64,
        before: Before,
    ) -> Result<(), Failure> {
        if self.snapshot.unable().is_some() {
            return Ok(());
        }
        let words = line(&command.text, WORDS);
        let ran = Ran { call: command.call.number, tool: &command.tool, words: &words };
        let found = self.find(undo, ran, ended, before);
        self.written(ran, found)
    }

    /// Done with it once it is on the list; where that fails it is shown there all the same.
    fn written(&mut self, ran: Ran<'_>, done: Result<(), Failure>) -> Result<(), Failure> {
        match done {
            Ok(()) => self.snapshot.close(),
            Err(why) => {
                let Ran { call, tool, words } = ran;
                let line = format!("{call} {tool} `{words}`: not covered: {}", why.message);
                self.unwritten.push((call, line));
                self.snapshot.step_back();
                Err(why)
            }
        }
    }

    fn find(
        &mut self,
        undo: &mut Undo,
        ran: Ran<'_>,
        ended: i64,
        before: Before,
    ) -> Result<(), Failure> {
        let number = ran.call;
        let missed = self.missed.take_if(|(missed, _)| *missed == number).map(|(_, why)| why);
        let open = self.snapshot.open()?.filter(|open| open.call == number);
        match (before, open, missed) {
            (Before::Looked, Some(open), None) => self.settle(undo, &open, Some(ended)),
            (before, _, missed) => {
                let why = match (before, missed) {
                    (_, Some(why)) => why,
                    (Before::Late, None) => "the look at the project took too long".to_owned(),
                    (Before::Looked, None) => {
                        "what the project was before it is not known any more".to_owned()
                    }
                };
                undo.not_followed(ran, &why)
            }
        }
    }

    /// These are under way. One that is not, and was when an earlier life ended, was cut short.
    pub(crate) fn running(&mut self, undo: &mut Undo, calls: &[u32]) -> Result<(), Failure> {
        match self.snapshot.open()? {
            Some(open) if !calls.contains(&open.call) => {
                let settled = self.settle(undo, &open, None);
                let ran = Ran { call: open.call, tool: &open.tool, words: &open.words };
                self.written(ran, settled)
            }
            Some(_) | None => Ok(()),
        }
    }

    fn settle(&mut self, undo: &mut Undo, open: &Open, ended: Option<i64>) -> Result<(), Failure> {
        let found = self.snapshot.after(open, ended)?;
        let mut notes = Vec::new();
        if ended.is_none() {
            notes.push(END_UNSEEN.to_owned());
        }
        if found.uncertain > 0 {
            notes.push(format!(
                "not covered: {} new names that may have been there before, ignored or not looked at",
                found.uncertain
            ));
        }
        if let Some(gap) = self.snapshot.gap() {
            notes.push(format!("not covered: {gap}"));
        }
        let ran = Ran { call: open.call, tool: &open.tool, words: &open.words };
        match found.changed.is_empty() && found.uncertain == 0 {
            true => undo.changed_nothing(open.call),
            false => {
                let end = if ended.is_some() { End::Seen } else { End::Unseen };
                undo.record(ran, end, &notes.join("; "), &found.changed)
            }
        }
    }

    /// The session ends: what no command waits for is not kept for the next.
    pub(crate) fn end(&mut self) {
        if matches!(self.snapshot.open(), Ok(None)) {
            self.snapshot.remove();
        }
    }
}
