//! The processes of a session, for `agentd ps`: each actor that has one describes it.

use super::state::{SessionCalls, SessionWorkers};
use crate::messages::{CallMsg, ReserveMsg};
use crate::worker::actor::WorkerMsg;
use protocol::client::ProcessRow;
use tokio::sync::oneshot;

/// Asks all who know, without waiting for them here.
pub(super) fn describe(
    workers: &SessionWorkers,
    calls: &SessionCalls,
    reply: oneshot::Sender<Vec<ProcessRow>>,
) {
    let (mut asked, mut answers) = (Vec::new(), Vec::new());
    let mut ask = |answer| asked.push(answer);
    let (row, answer) = oneshot::channel();
    let _ = workers.conversation.actor().send_message(WorkerMsg::Describe(row));
    ask(answer);
    let (row, answer) = oneshot::channel();
    let _ = workers.provider.actor().send_message(WorkerMsg::Describe(row));
    ask(answer);
    let (row, answer) = oneshot::channel();
    let _ = workers.store.actor().send_message(WorkerMsg::Describe(row));
    ask(answer);
    let of_calls = calls.running.values().map(|call| {
        let (rows, answer) = oneshot::channel();
        let _ = call.send_message(CallMsg::Describe(rows));
        answer
    });
    let mut of_calls: Vec<_> = of_calls.collect();
    if let Some(reserve) = &calls.reserve {
        let (rows, answer) = oneshot::channel();
        let _ = reserve.send_message(ReserveMsg::Describe(rows));
        of_calls.push(answer);
    }
    let cage = calls.tier;
    tokio::spawn(async move {
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
