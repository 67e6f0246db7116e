//! The one loop of a client that has a session open: it waits for inputs, has silent supervisors pinged, and
//! passes each input to its [`SessionUser`], a terminal (`attach`) or a script (`one_shot`).

use crate::session_connection::{LoopInput, PingWhen, SessionConnection, Waited};
use std::ops::ControlFlow;
use std::time::Duration;

/// Inputs that are handled before the user of the session prepares the next wait.
const BATCH: usize = 1024;
/// Note to the user, printed once while a supervisor gets more time.
const SLOW_NOTE: &str =
    "agentd-supervisor does not answer; agentd waits for it before it starts another";

/// The longest time of the next wait, and when a silent supervisor is pinged meanwhile.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NextWait {
    pub(crate) most: Option<Duration>,
    pub(crate) ping: PingWhen,
}

/// Who uses a session.
pub(crate) trait SessionUser<'a> {
    /// Its inputs.
    type Input: LoopInput;
    /// How it leaves the session.
    type End;

    fn connection(&mut self) -> &mut SessionConnection<'a, Self::Input>;

    /// Does what is due, before the loop waits.
    fn prepare(&mut self) -> ControlFlow<Self::End, NextWait>;

    /// Handles one input.
    fn take(&mut self, input: Self::Input) -> ControlFlow<Self::End>;

    /// Shows a note of this program.
    fn note(&mut self, text: &str);
}

/// Runs until the user leaves the session.
pub(crate) fn follow<'a, U: SessionUser<'a>>(user: &mut U) -> U::End {
    loop {
        let ControlFlow::Break(end) = follow_once(user) else { continue };
        return end;
    }
}

fn follow_once<'a, U: SessionUser<'a>>(user: &mut U) -> ControlFlow<U::End> {
    let wait = user.prepare()?;
    let mut next = match user.connection().next(wait.most, wait.ping) {
        Waited::Input(input) => Some(input),
        Waited::Nothing => None,
        Waited::Slow => {
            user.note(SLOW_NOTE);
            None
        }
    };
    for _ in 0..BATCH {
        let Some(input) = next else { break };
        user.take(input)?;
        next = user.connection().try_next();
    }
    ControlFlow::Continue(())
}
