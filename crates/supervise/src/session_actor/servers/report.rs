//! The MCP servers of a session for people who ask: each with its state, its cage and its tools.

use super::RunningServer;
use crate::messages::ClientMsg;
use crate::session_actor::state::SessionActorState;
use protocol::client::ToClient;
use protocol::mcp::{ServedTool, ServerReport};
use ractor::ActorRef;
use setup::server_offers;
use setup::session_spec::SessionServer;

impl SessionActorState {
    pub(in crate::session_actor) fn report_servers(&self, client: &ActorRef<ClientMsg>) {
        let servers = self.spec.servers().iter().zip(&self.calls.servers);
        let servers = servers.map(|(server, running)| self.server_report(server, running));
        let (session, servers) = (self.spec.id.clone(), servers.collect());
        let _ = client.send_message(ClientMsg::Send(ToClient::Servers { session, servers }));
    }

    fn server_report(&self, server: &SessionServer, running: &RunningServer) -> ServerReport {
        let tools = running.tools.iter().map(|tool| ServedTool {
            name: tool.offer.spec.name.clone(),
            description: tool.description().to_owned(),
            marked: tool.marked.clone(),
        });
        let job = running.call.and_then(|call| self.calls.background.get(&call));
        ServerReport {
            name: server.config.name.clone(),
            place: server.config.place.words().join(" "),
            sandbox: job.map(|job| job.cage.clone()),
            state: running.life.state(),
            tools: tools.collect(),
            words: match &running.offers {
                Some(offers) => server_offers::words(&server.config.name, offers),
                None => Vec::new(),
            },
        }
    }
}
