//! A port of the session's commands in the background that a person opens to this machine. The audit log has it
//! before the person's process gets the network, and every terminal is told.

use super::clients::fail;
use super::events::SessionEvents;
use crate::audit_actor::AuditMsg;
use crate::messages::ClientMsg;
use journal::PortOpenedRecord;
use launch::session_network::SessionNetwork;
use protocol::client::{RequestFailure, ToClient};
use protocol::ids::SessionId;
use ractor::ActorRef;
use tokio::sync::oneshot;

/// What an opened port concerns.
pub(super) struct Ports<'a> {
    pub(super) session: &'a SessionId,
    /// The newest network of the commands in the background.
    pub(super) network: Option<&'a SessionNetwork>,
    pub(super) audit: &'a ActorRef<AuditMsg>,
    pub(super) events: &'a SessionEvents,
}

impl Ports<'_> {
    /// Gives a client the network, to serve this port of it.
    pub(super) async fn open(self, client: &ActorRef<ClientMsg>, port: u16, by: String) {
        let session = self.session.0.clone();
        let Some(network) = self.network else {
            let why = format!(
                "no command of session {session} runs in the background in a network of its own. A server that \
                 started after `:net on` is at this machine's port {port}; one that was given rights of its own \
                 is reached by none"
            );
            return fail(client, RequestFailure::NotFound, why);
        };
        let call = network.call;
        let descriptors = match network.descriptors() {
            Ok(descriptors) => descriptors,
            Err(error) => {
                let why = format!("the network of call {call} is out of reach: {error}");
                return fail(client, RequestFailure::Internal, why);
            }
        };
        let notice = format!("port {port} of call {call} is open to this machine, by {by}");
        let opened = PortOpenedRecord { session, call, port, by };
        let (done, written) = oneshot::channel();
        let _ = self.audit.send_message(AuditMsg::PortOpened { opened, done });
        if let Err(why) = written.await.unwrap_or_else(|_| Err("it is gone".to_owned())) {
            let why =
                format!("port {port} stays closed, since the audit log takes no record: {why}");
            return fail(client, RequestFailure::Disk, why);
        }
        self.events.show_notice(notice);
        let (namespaces, descriptors) = descriptors.into_iter().unzip();
        let handed = ToClient::NetworkOpened { namespaces };
        let _ = client.send_message(ClientMsg::Hand(handed, descriptors));
    }
}
