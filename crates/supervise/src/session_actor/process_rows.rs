//! The processes of a session, for `agentd ps`: each actor that has one describes it.

use super::links::Workers;
use super::session_calls::SessionCalls;
use protocol::client::ProcessRow;
use tokio::sync::oneshot;

/// Asks all who know, without waiting for them here.
pub(super) fn describe(
    workers: &Workers,
    calls: &SessionCalls,
    reply: oneshot::Sender<Vec<ProcessRow>>,
) {
    let asked = workers.describe();
    let mut of_calls = calls.running.describe();
    of_calls.extend(calls.reserve.describe());
    let cage = calls.cages.tier();
    tokio::spawn(async move {
        let mut answers = Vec::new();
        for answer in asked {
            answers.extend(answer.await);
        }
        for answer in of_calls {
            answers.extend(answer.await.unwrap_or_default());
        }
        answers.iter_mut().for_each(|row| row.cage = Some(cage));
        let _ = reply.send(answers);
    });
}
