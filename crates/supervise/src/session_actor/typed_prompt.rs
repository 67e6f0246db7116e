//! A prompt as a person types it: the text that a slash command stands for, the images that it shows, its model, and
//! the resources and prompts of MCP servers, `@SERVER:URI` and `/mcp__SERVER__PROMPT`. All is checked before the
//! prompt counts. Reads files and settings; the session actor queues or sends what is returned here.

use super::configured_calls::server_env;
use super::models::{Recording, turn_model};
use super::services::Asker;
use super::services::servers::{Beginning, Offers, Servers};
use crate::person_prompt::PersonPrompt;
use config::is_model_alias;
use protocol::client::AnswerForm;
use protocol::judgement::{Rule, RuleEffect};
use protocol::mcp::{PREFIX, PROMPT, RESOURCE, ServerOffers};
use protocol::provider::PassedFd;
use protocol::session::{ExpandedPrompt, PromptPart};
use protocol::undo_prompt::{is_rewind, is_undo};
use setup::prompt_images::{self, ImageContext};
use setup::server_offers;
use setup::session_spec::{SessionServer, SessionSpec};
use setup::slash_command::{self, Expansion};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Longest wait for the files that a prompt names.
const SLASH_COMMANDS: Duration = Duration::from_secs(5);

/// A prompt that was read.
pub(super) enum TypedPrompt {
    /// With notices for the person.
    Ready { prompt: PersonPrompt, notes: Vec<String> },
    /// The server of this name starts: the prompt is read again then.
    WaitsFor(String),
}

/// The place of a prompt among the session's turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PromptPlace {
    /// It begins a turn.
    First,
    /// A turn runs, or other prompts wait.
    Behind,
}

/// What the words of a prompt may refer to.
pub(super) struct PromptSources<'a, A> {
    pub(super) spec: &'a SessionSpec,
    pub(super) servers: &'a Servers<A>,
    /// How far the start of the servers is.
    pub(super) beginning: Beginning,
    pub(super) passed_fds: &'a [(PassedFd, OwnedFd)],
}

/// The parts of a prompt that servers give.
#[derive(Debug, Default)]
struct ServerParts {
    /// The prompt is one of a server: its name.
    prompt: Option<String>,
    parts: Vec<PromptPart>,
    /// The person named them: they need no other approval.
    allow: Vec<Rule>,
}

/// The servers' parts of a prompt, or the server that they wait for.
enum NamedServers {
    Ready(ServerParts),
    Starting(String),
}

impl<A: Asker> PromptSources<'_, A> {
    /// Reads a prompt. The error is for the person.
    pub(super) async fn read(
        &self,
        text: &str,
        form: Option<AnswerForm>,
        place: PromptPlace,
    ) -> Result<TypedPrompt, String> {
        let servers = match self.servers_in(text) {
            Ok(NamedServers::Starting(server)) => return Ok(TypedPrompt::WaitsFor(server)),
            Ok(NamedServers::Ready(parts)) => Ok(parts),
            Err(why) => Err(why),
        };
        if place == PromptPlace::Behind && is_rewind(text) {
            return Err(format!(
                "`{text}` does not wait behind a turn, whose changes it would take back too: stop the turn \
                 or wait for its end, then choose the place again"
            ));
        }
        self.expand(text, form, servers?).await
    }

    /// The prompt with the text that a slash command stands for, the images that it shows, and the form
    /// that is asked for; the error is for the person.
    async fn expand(
        &self,
        text: &str,
        form: Option<AnswerForm>,
        servers: ServerParts,
    ) -> Result<TypedPrompt, String> {
        let mut files = match is_undo(text) {
            true => Vec::new(),
            false => prompts::shown_files(text),
        };
        // An address of a server's resource may end as a file does.
        files.retain(|file| {
            let server = file.path.split_once(':').map(|(server, _)| server);
            server.is_none_or(|server| !self.has_server(server))
        });
        let form = form.filter(|_| !is_undo(text));
        let is_words = files.is_empty() && form.is_none() && servers.parts.is_empty();
        if prompts::parse_slash(text).is_none() && is_words {
            return Ok(TypedPrompt::Ready { prompt: text.into(), notes: Vec::new() });
        }
        // A prompt of a server is no file.
        let typed = if servers.prompt.is_some() { "" } else { text }.to_owned();
        let context = self.spec.slash_context();
        let images = ImageContext::of(self.spec.confinement(), context.places.home.clone());
        let reading = tokio::task::spawn_blocking(move || {
            let expanded = slash_command::expand(&context, &typed)?;
            Ok((expanded, prompt_images::check(&images, files)?))
        });
        // A file may lie on a disk that does not answer.
        let read = tokio::time::timeout(SLASH_COMMANDS, reading).await;
        let read: Result<_, String> = match read {
            Ok(Ok(read)) => read,
            Ok(Err(error)) => return Err(error.to_string()),
            Err(_) => {
                let seconds = SLASH_COMMANDS.as_secs();
                return Err(format!(
                    "the files that the prompt names were not found within {seconds} s; is their \
                     disk reachable?"
                ));
            }
        };
        let (expanded, images) = read?;
        let Expansion { mut prompt, mut notes } = expanded.unwrap_or_else(|| Expansion {
            prompt: ExpandedPrompt {
                file: servers.prompt.clone().unwrap_or_default(),
                parts: match servers.prompt {
                    Some(_) => Vec::new(),
                    None => vec![PromptPart::Text(text.to_owned())],
                },
                allow: Vec::new(),
                answer_schema: None,
                model: None,
                typed_by: None,
            },
            notes: Vec::new(),
        });
        if let Some(name) = prompt.model.clone() {
            match turn_model(self.spec, &name, Recording::of(self.passed_fds)).await {
                Ok(_) => notes.push(format!(
                    "this turn is for the model {name}, which {} names",
                    prompt.file
                )),
                // A file that was written for another provider.
                Err(why) if is_model_alias(&name) => {
                    let now = &self.spec.setup().model;
                    notes.push(format!(
                        "this turn stays with the model {now}: {why} ({})",
                        prompt.file
                    ));
                    prompt.model = None;
                }
                Err(why) => return Err(format!("`model: {name}` of {}: {why}", prompt.file)),
            }
        }
        let is_plain = prompt.file.is_empty()
            && images.parts.is_empty()
            && form.is_none()
            && servers.parts.is_empty();
        prompt.parts.extend(servers.parts);
        prompt.allow.extend(servers.allow);
        if let Some(AnswerForm { words, schema }) = form {
            prompt.parts.push(PromptPart::Text(format!("\n\n{words}")));
            prompt.answer_schema = Some(schema);
        }
        prompt.parts.extend(images.parts);
        notes.extend(images.notes);
        let expanded = (!is_plain).then(|| Box::new(prompt));
        let prompt = PersonPrompt { expanded, ..text.into() };
        Ok(TypedPrompt::Ready { prompt, notes })
    }

    /// The parts that servers give to a prompt. The error is for the person.
    fn servers_in(&self, text: &str) -> Result<NamedServers, String> {
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
        let Some((at, known)) = self.known().find(of) else {
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

    fn known(&self) -> impl Iterator<Item = (usize, &SessionServer)> {
        self.spec.servers().iter().enumerate()
    }

    fn server_named(&self, name: &str) -> Option<(usize, &SessionServer)> {
        self.known().find(|(_, known)| known.config.name == name)
    }

    /// True if a server of the session has this name.
    fn has_server(&self, name: &str) -> bool {
        self.server_named(name).is_some()
    }

    fn no_server(&self, name: &str, wanted: &str) -> String {
        let known: Vec<&str> = self.known().map(|(_, known)| known.config.name.as_str()).collect();
        let known = match known.is_empty() {
            true => "this session has none".to_owned(),
            false => format!("this session has {}", known.join(", ")),
        };
        let (name, wanted) =
            (protocol::hidden::line(name, 100), protocol::hidden::line(wanted, 200));
        format!("`{wanted}`: there is no MCP server {name}; {known}")
    }

    /// What a server offers; none yet where it starts.
    fn offers(&self, at: usize, known: &SessionServer) -> Result<Option<&ServerOffers>, String> {
        let offers = self.servers.offered(at, self.beginning);
        if let Offers::Known(offers) = offers {
            return Ok(Some(offers));
        }
        let name = &known.config.name;
        if let Err(why) = server_env(self.passed_fds, known) {
            return Err(format!("the MCP server {name} does not run: {why}"));
        }
        match offers {
            Offers::Starting => Ok(None),
            Offers::Absent | Offers::Known(_) => Err(format!("the MCP server {name} does not run")),
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
