//! What the end of a run of `agentd -p` means for its task. Pure. `agentd-fleet` asks it.

/// How often hosts may take a task and give it back because of themselves.
const MOST_EPOCHS: i32 = 30;

/// How far the turn of the task's prompt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnProgress {
    /// Its prompt is on record, and its end is not.
    Open,
    /// It ended.
    Ended,
    /// Nothing is on record.
    NotBegun,
}

/// What becomes of the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterRun {
    /// It has an answer.
    Done,
    /// It ended without one.
    Failed,
    /// A person cancelled it.
    Cancelled,
    /// The host failed it: another one, or this one later, goes on with its turn.
    GiveBack,
}

/// Decides by the exit code of a run of a task that hosts took so often. `-1` is a run that a signal ended.
#[must_use]
pub fn after_run(code: i32, turn: TurnProgress, epoch: i32) -> AfterRun {
    match (code, turn) {
        (0, _) => AfterRun::Done,
        // An error, a full disk that takes no record of a sandbox, no daemon, a session in other hands: unless
        // the turn ended they are this host's.
        (-1 | 1 | 11 | 15 | 75, TurnProgress::Open | TurnProgress::NotBegun) => give_back(epoch),
        _ => AfterRun::Failed,
    }
}

/// Decides on a task that this host cannot begin, for a reason of its own.
#[must_use]
pub fn give_back(epoch: i32) -> AfterRun {
    if epoch < MOST_EPOCHS { AfterRun::GiveBack } else { AfterRun::Failed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_run_whose_turn_has_no_end_is_given_back() {
        for code in [-1, 1, 11, 15, 75] {
            assert_eq!(after_run(code, TurnProgress::Open, 1), AfterRun::GiveBack);
            assert_eq!(after_run(code, TurnProgress::NotBegun, 1), AfterRun::GiveBack);
            assert_eq!(after_run(code, TurnProgress::Ended, 1), AfterRun::Failed);
        }
        for code in [2, 10, 12, 13, 14, 16, 17, 18, 124, 130, 143] {
            assert_eq!(after_run(code, TurnProgress::Open, 1), AfterRun::Failed);
            assert_eq!(after_run(code, TurnProgress::NotBegun, 1), AfterRun::Failed);
        }
        assert_eq!(after_run(0, TurnProgress::Open, 1), AfterRun::Done);
    }

    #[test]
    fn a_task_that_no_host_can_run_fails_in_the_end() {
        assert_eq!(give_back(1), AfterRun::GiveBack);
        assert_eq!(give_back(MOST_EPOCHS), AfterRun::Failed);
        assert_eq!(after_run(1, TurnProgress::Open, MOST_EPOCHS), AfterRun::Failed);
    }
}
