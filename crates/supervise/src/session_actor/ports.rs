//! A port of the session's commands in the background that a person opens to this machine. The audit log has it
//! before the person's process gets the network, every terminal is told, and the process when the network's last command
//! has ended.

use super::clients::{fail, tell};
use super::events::SessionEvents;
use super::services::Services;
use crate::audit_actor::AuditMsg;
use crate::messages::{CallMsg, ClientMsg};
use journal::PortOpenedRecord;
use protocol::client::{RequestFailure, ToClient};
use protocol::ids::SessionId;
use ractor::{ActorRef, ActorStatus};
use tokio::sync::oneshot;

/// What an opened port concerns.
pub(super) struct Ports<'a> {
    pub(super) session: &'a SessionId,
    pub(super) services: &'a Services<ActorRef<CallMsg>>,
    pub(super) opened: &'a mut OpenedPorts,
    pub(super) audit: &'a ActorRef<AuditMsg>,
    pub(super) events: &'a SessionEvents,
}

/// The wish of a client.
pub(super) struct WantedPort {
    pub(super) port: u16,
    /// Of a command in the network; the newest network if none.
    pub(super) call: Option<u32>,
    pub(super) by: String,
}

/// The clients that serve ports. They need not be attached, since they are no person's terminal.
#[derive(Default)]
pub(super) struct OpenedPorts(Vec<OpenedPort>);

/// Tells its client that the network is gone when it is dropped, with the session too.
struct OpenedPort {
    client: ActorRef<ClientMsg>,
    /// The maker of the network.
    call: u32,
}

impl Drop for OpenedPort {
    fn drop(&mut self) {
        tell(&self.client, ToClient::NetworkClosed { call: self.call });
    }
}

impl OpenedPorts {
    /// Commands run in the networks of these makers alone.
    pub(super) fn keep(&mut self, makers: &[u32]) {
        self.0.retain(|opened| makers.contains(&opened.call));
    }

    /// The network of this maker is gone.
    pub(super) fn close(&mut self, maker: u32) {
        self.0.retain(|opened| opened.call != maker);
    }

    fn add(&mut self, client: ActorRef<ClientMsg>, call: u32) {
        let has_left = |client: &ActorRef<ClientMsg>| {
            matches!(client.get_status(), ActorStatus::Stopping | ActorStatus::Stopped)
        };
        self.0.retain(|opened| !has_left(&opened.client));
        self.0.push(OpenedPort { client, call });
    }
}

impl Ports<'_> {
    /// Gives a client the network, to serve this port of it.
    pub(super) async fn open(self, client: &ActorRef<ClientMsg>, wanted: WantedPort) {
        let session = self.session.0.clone();
        let WantedPort { port, call, by } = wanted;
        let makers = self.services.makers_of_networks();
        let Some(network) = self.services.network_of(call) else {
            let why = match (call, makers.as_slice()) {
                (Some(call), [_, ..]) => format!(
                    "call {call} of session {session} does not run in the background in a network of its own. \
                     These have one: {}",
                    in_words(&makers)
                ),
                (_, _) => format!(
                    "no command of session {session} runs in the background in a network of its own. A server that \
                     started after `:net on` is at this machine's port {port}; one that was given rights of its own \
                     is reached by none"
                ),
            };
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
        let others = makers.into_iter().filter(|maker| *maker != call).collect();
        let handed = ToClient::NetworkOpened { call, others, namespaces };
        let _ = client.send_message(ClientMsg::Hand(handed, descriptors));
        self.opened.add(client.clone(), call);
    }
}

fn in_words(calls: &[u32]) -> String {
    calls.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}
