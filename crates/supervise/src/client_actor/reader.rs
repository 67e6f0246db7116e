//! The task that reads a client's requests and passes them to its actor.

use super::connection::ClientReader;
use super::feed::{Feed, to_bytes};
use crate::messages::{ClientMsg, ClientRequest};
use ipc::ChannelError;
use protocol::client::{FromClient, ToClient};
use ractor::ActorRef;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Requests of one client that are read and not yet handled.
const PENDING_REQUESTS: usize = 64;

/// Reads requests until the connection, or the process that opened it, ends.
pub(super) async fn read_requests(
    mut reader: ClientReader,
    actor: ActorRef<ClientMsg>,
    outbox: Feed,
) {
    let opener = Arc::clone(&reader.opener);
    let why = tokio::select! {
        why = read_until_error(&mut reader, &actor, &outbox) => why,
        () = opener.exited() => "the process that opened its connection has ended".to_owned(),
    };
    let _ = actor.send_message(ClientMsg::Gone(why));
}

/// Returns the error that ended the reading. A request is read only when the actor has room for it.
async fn read_until_error(
    reader: &mut ClientReader,
    actor: &ActorRef<ClientMsg>,
    outbox: &Feed,
) -> String {
    let room = Arc::new(Semaphore::new(PENDING_REQUESTS));
    let error = loop {
        let msg = match reader.recv().await {
            Ok(msg) => msg,
            Err(error) => break error,
        };
        // Answered here, since the actor may be waiting for a session to open.
        if let FromClient::Ping(number) = msg {
            if let Ok(pong) = to_bytes(&[ToClient::Pong(number)]) {
                let _ = outbox.put(pong);
            }
            continue;
        }
        let passed_fds = match reader.passed_fds(&msg).await {
            Ok(passed_fds) => passed_fds,
            Err(error) => break error,
        };
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else {
            break ChannelError::Closed;
        };
        let request = ClientRequest { msg, passed_fds, _permit: permit };
        if actor.send_message(ClientMsg::Request(Box::new(request))).is_err() {
            break ChannelError::Closed;
        }
    };
    error.to_string()
}
