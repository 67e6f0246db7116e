//! Resources and prompts of MCP servers in a person's prompt: `@SERVER:URI`, and `/mcp__SERVER__PROMPT`. Each is
//! checked before the prompt counts, and becomes a call of the conversation. Used by the session actor.

use super::clients::WaitingPrompt;
use super::configured_calls::server_env;
use super::services::servers::{Beginning, Offers};
use super::state::SessionActorState;
use crate::messages::{ClientMsg, ClientToSession};
use protocol::client::{AnswerForm, ClientEvent};
use protocol::judgement::{Rule, RuleEffect};
use protocol::mcp::{PREFIX, PROMPT, RESOURCE, ServerOffers};
use protocol::session::PromptPart;
use ractor::ActorRef;
use setup::server_offers;
use setup::session_spec::SessionServer;

/// The parts of a prompt that servers give.
#[derive(Debug, Default)]
pub(super) struct ServerParts {
    /// The prompt is one of a server: its name.
    pub(super) prompt: Option<String>,
    pub(super) parts: Vec<PromptPart>,
    /// The person named them: they need no other approval.
    pub(super) allow: Vec<Rule>,
}

/// The servers' parts of a prompt, or the server that they wait for.
pub(super) enum NamedServers {
    Ready(ServerParts),
    Starting(String),
}

impl SessionActorState {
    /// The parts that servers give to a prompt. The error is for the person.
    pub(super) fn servers_in(&self, text: &str) -> Result<NamedServers, String> {
        let mut found = ServerParts::default();
        for (server, uri) in prompts::server_resources(text) {
            let Some((at, known)) = self.server_named(&server) else {
                // Where there are servers, it is most likely a slip.
                if uri.contains("://") && !self.spec.servers().is_empty() {
                    return Err(self.no_server(&server, &format!("@{server}:{uri}")));
                }
                // It may be a word.
                continue;
            };
            match self.offers(at, known)? {
                None => return Ok(NamedServers::Starting(server)),
                Some(offers) => server_offers::check_resource(&server, &uri, offers)?,
            }
            let arguments = serde_json::json!({ "uri": uri });
            found.add(&server, RESOURCE, &arguments);
        }
        let Some((name, words)) = prompts::parse_slash(text) else {
            return Ok(NamedServers::Ready(found));
        };
        let Some(rest) = name.strip_prefix(PREFIX) else { return Ok(NamedServers::Ready(found)) };
        let of = |(_, known): &(usize, &SessionServer)| {
            rest.strip_prefix(&*known.config.name).is_some_and(|rest| rest.starts_with("__"))
        };
        let Some((at, known)) = self.servers().find(of) else {
            let server = rest.split("__").next().unwrap_or_default();
            return Err(self.no_server(server, &format!("/{name}")));
        };
        let server = &known.config.name;
        let prompt = &rest[server.len() + 2..];
        match self.offers(at, known)? {
            None => Ok(NamedServers::Starting(server.clone())),
            Some(offers) => {
                let arguments = server_offers::prompt_arguments(server, prompt, words, offers)?;
                // It stands before the resources.
                let resources = std::mem::take(&mut found.parts);
                found.add(server, PROMPT, &arguments);
                found.parts.extend(resources);
                found.prompt = Some(format!("/{name} of the MCP server {server}"));
                Ok(NamedServers::Ready(found))
            }
        }
    }

    fn servers(&self) -> impl Iterator<Item = (usize, &SessionServer)> {
        self.spec.servers().iter().enumerate()
    }

    fn server_named(&self, name: &str) -> Option<(usize, &SessionServer)> {
        self.servers().find(|(_, known)| known.config.name == name)
    }

    /// True if a server of the session has this name.
    pub(super) fn has_server(&self, name: &str) -> bool {
        self.server_named(name).is_some()
    }

    fn no_server(&self, name: &str, wanted: &str) -> String {
        let known: Vec<&str> =
            self.servers().map(|(_, known)| known.config.name.as_str()).collect();
        let known = match known.is_empty() {
            true => "this session has none".to_owned(),
            false => format!("this session has {}", known.join(", ")),
        };
        let (name, wanted) = (prompts::line(name, 100), prompts::line(wanted, 200));
        format!("`{wanted}`: there is no MCP server {name}; {known}")
    }

    /// What a server offers; none yet where it starts.
    fn offers(&self, at: usize, known: &SessionServer) -> Result<Option<&ServerOffers>, String> {
        let begins = match self.workers.conversation.has_begun() {
            true => Beginning::Over,
            false => Beginning::Ahead,
        };
        let offers = self.calls.services.servers.offered(at, begins);
        if let Offers::Known(offers) = offers {
            return Ok(Some(offers));
        }
        let name = &known.config.name;
        if let Err(why) = server_env(self.workers.provider.passed_fds(), known) {
            return Err(format!("the MCP server {name} does not run: {why}"));
        }
        match offers {
            Offers::Starting => Ok(None),
            Offers::Absent | Offers::Known(_) => Err(format!("the MCP server {name} does not run")),
        }
    }

    /// Keeps a prompt until the server is ready or has ended.
    pub(super) fn wait_for_server(
        &mut self,
        (client, text, form): (&ActorRef<ClientMsg>, String, Option<AnswerForm>),
        server: &str,
    ) {
        let notice = format!("the prompt waits for the MCP server {server} to start");
        self.show(&ClientEvent::Notice { text: notice });
        self.wait_behind(client, text, form);
    }

    /// Keeps a prompt behind those that wait.
    pub(super) fn wait_behind(
        &mut self,
        client: &ActorRef<ClientMsg>,
        text: String,
        form: Option<AnswerForm>,
    ) {
        let client = client.clone();
        self.clients.keep_prompt(WaitingPrompt { client, text, form });
    }

    /// A server is ready or has ended: the prompts that wait are looked at again, in their order.
    pub(super) fn send_waiting_prompts(&mut self) {
        for WaitingPrompt { client, text, form } in self.clients.take_prompts() {
            let again = ClientToSession::Prompt { client, text, form };
            let _ = self.own.send_message(again.into());
        }
    }
}

impl ServerParts {
    fn add(&mut self, server: &str, own: &str, arguments: &serde_json::Value) {
        let name = format!("{PREFIX}{server}__{own}");
        let rule = Rule {
            effect: RuleEffect::Allow,
            text: name.clone(),
            file: "the prompt".to_owned(),
            line: 0,
        };
        if !self.allow.contains(&rule) {
            self.allow.push(rule);
        }
        self.parts.push(PromptPart::Server { name, arguments: arguments.to_string() });
    }
}
