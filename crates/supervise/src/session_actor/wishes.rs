//! Input of people besides answers: prompts, which wait on disk while a turn runs, and changed
//! settings, which hold for later calls.

use super::pinning;
use super::server_prompts::{NamedServers, ServerParts};
use super::state::SessionActorState;
use crate::messages::{ClientMsg, SessionMsg};
use crate::person_prompt::PersonPrompt;
use crate::records::encode;
use config::is_model_alias;
use protocol::client::{AnswerForm, ClientEvent, RequestFailure, SettingChange, ToClient};
use protocol::error_chain::chain;
use protocol::session::{ExpandedPrompt, PinnedNews, PromptPart, ToSession};
use protocol::undo_prompt::{is_rewind, is_undo};
use ractor::ActorRef;
use setup::open_failure::OpenFailure;
use setup::prompt_images::{self, ImageContext};
use setup::session_spec::check_price;
use setup::slash_command::{self, Expansion};
use std::time::Duration;

/// Most pinned files: each costs a read after every round of calls that change, and its tokens in every
/// request.
const MOST_PINNED: usize = 50;
/// Longest wait for the files that a prompt names.
const SLASH_COMMANDS: Duration = Duration::from_secs(5);

impl SessionActorState {
    pub(super) async fn prompt(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        client: &ActorRef<ClientMsg>,
        text: String,
        form: Option<AnswerForm>,
    ) {
        if let Some(why) = self.degraded() {
            return self.show_degraded(Some(why));
        }
        if self.clients.any_prompt_waits() {
            return self.wait_behind(client, text, form);
        }
        let servers = match self.servers_in(&text) {
            Ok(NamedServers::Starting(server)) => {
                return self.wait_for_server((client, text, form), &server);
            }
            Ok(NamedServers::Ready(parts)) => Ok(parts),
            Err(why) => Err(why),
        };
        let expanded = match self.turn.router.must_queue() && is_rewind(&text) {
            true => Err(format!(
                "`{text}` does not wait behind a turn, whose changes it would take back too: stop the turn \
                 or wait for its end, then choose the place again"
            )),
            false => match servers {
                Ok(servers) => self.expand(&text, form, servers).await,
                Err(why) => Err(why),
            },
        };
        let prompt = match expanded {
            Ok(prompt) => prompt,
            Err(why) => {
                fail(client, RequestFailure::Usage, why);
                // The person still has the text.
                let message =
                    ToClient::TakenBack { session: self.spec.id.clone(), texts: vec![text] };
                let _ = client.send_message(ClientMsg::Send(message));
                return;
            }
        };
        self.begin_work(myself).await;
        if self.turn.router.must_queue() || self.closing.holds_turns() {
            // All clients see a disk failure, and the person still has the text.
            let records = self.turn.router.queued_with(&prompt).into_iter();
            let records = records.map(encode::queued).collect();
            if self.record(records).await.is_ok() {
                self.turn.router.enqueue(prompt);
                self.show_queue();
            }
            return;
        }
        let steps = self.turn.router.prompt(prompt);
        self.carry_out(myself, steps).await;
        self.workers.ping_later();
    }

    /// The prompt with the text that a slash command stands for, the images that it shows, and the form
    /// that is asked for; the error is for the person.
    async fn expand(
        &self,
        text: &str,
        form: Option<AnswerForm>,
        servers: ServerParts,
    ) -> Result<PersonPrompt, String> {
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
            return Ok(text.into());
        }
        // A prompt of a server is no file.
        let typed = if servers.prompt.is_some() { "" } else { text }.to_owned();
        let context = self.spec.slash_context();
        let images = ImageContext::of(&self.spec.confinement, context.places.home.clone());
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
            },
            notes: Vec::new(),
        });
        if let Some(name) = prompt.model.clone() {
            match self.usable_model(&name).await {
                Ok(_) => notes.push(format!(
                    "this turn is for the model {name}, which {} names",
                    prompt.file
                )),
                // A file that was written for another provider.
                Err(why) if is_model_alias(&name) => {
                    let now = &self.spec.setup.model;
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
        notes.into_iter().for_each(|text| self.show(&ClientEvent::Notice { text }));
        let expanded = (!is_plain).then(|| Box::new(prompt));
        Ok(PersonPrompt { text: text.to_owned(), expanded })
    }

    /// Begins the turn of the prompt that waited longest, if it is its turn.
    pub(super) async fn start_next_turn(&mut self, myself: &ActorRef<SessionMsg>) {
        if self.closing.holds_turns() {
            return;
        }
        if let (Some(audience), false) = (self.turn.next_audience, self.turn.router.is_busy()) {
            self.set_audience(audience);
        }
        if self.tasks.own.is_awaited() {
            // Its parent asked while no turn could begin.
            self.begin_work(myself).await;
        }
        if let Some(steps) = self.turn.router.next_queued() {
            self.show_queue();
            self.carry_out(myself, steps).await;
            self.workers.ping_later();
        }
        self.retire_if_unused();
    }

    /// Takes back this prompt alone; of several with the same text, the newest.
    pub(super) async fn withdraw(&mut self, client: &ActorRef<ClientMsg>, text: &str) {
        let mut texts = Vec::new();
        let mut rest = self.turn.router.queue();
        if let Some(place) = rest.iter().rposition(|waiting| waiting.text == text) {
            rest.remove(place);
            // All are taken back on disk, and the others wait again behind that.
            let again = rest.iter().cloned().map(encode::queued);
            let records = std::iter::once(encode::taken_back()).chain(again).collect();
            if self.record(records).await.is_ok() {
                texts.push(text.to_owned());
                self.turn.router.requeue(rest);
                self.show_queue();
            }
        }
        let message = ToClient::TakenBack { session: self.spec.id.clone(), texts };
        let _ = client.send_message(ClientMsg::Send(message));
    }

    pub(super) async fn take_back(&mut self, client: &ActorRef<ClientMsg>) {
        let mut texts = Vec::new();
        if !self.turn.router.queue().is_empty()
            && self.record(vec![encode::taken_back()]).await.is_ok()
        {
            texts = self.turn.router.take_back();
            self.show_queue();
        }
        let message = ToClient::TakenBack { session: self.spec.id.clone(), texts };
        let _ = client.send_message(ClientMsg::Send(message));
    }

    fn show_queue(&self) {
        self.show(&ClientEvent::Queue { texts: self.queued_texts() });
    }

    /// The prompts that wait, as they were typed.
    pub(super) fn queued_texts(&self) -> Vec<String> {
        self.turn.router.queue().into_iter().map(|prompt| prompt.text).collect()
    }

    /// Changes a setting, first on disk.
    pub(super) async fn change(
        &mut self,
        client: &ActorRef<ClientMsg>,
        change: SettingChange,
        by: String,
    ) {
        if let Err(failure) = self.spec.check_change(&change) {
            return fail(client, failure.kind, failure.message);
        }
        let change = match change {
            SettingChange::AddDirectory(path) => {
                let user_file = self.spec.user_file();
                let forbidden = self.spec.forbidden.clone();
                let real = tokio::task::spawn_blocking(move || {
                    let real =
                        setup::session_spec::real_dir(&path.to_path(), "the added directory")?;
                    if let Some(Err(error)) =
                        user_file.as_ref().map(|file| config::user_file_is_own(file, [&real]))
                    {
                        return Err(OpenFailure::new(RequestFailure::Configuration, chain(&error)));
                    }
                    forbidden.check_added(&real).map(|()| real)
                });
                match real.await {
                    Ok(Ok(real)) => SettingChange::AddDirectory(real.into()),
                    Ok(Err(failure)) => {
                        return fail(client, failure.kind, failure.message);
                    }
                    Err(error) => return fail(client, RequestFailure::Internal, error.to_string()),
                }
            }
            SettingChange::Pin(file) => {
                let may = self.may_be_pinned(&file);
                let shown = match may {
                    Ok(()) => pinning::can_be_shown(&self.spec.confinement, &file).await,
                    no => no,
                };
                match shown {
                    Ok(()) => SettingChange::Pin(file),
                    Err(why) => return fail(client, RequestFailure::Usage, why),
                }
            }
            SettingChange::Unpin(file) => match self.is_pinned(&file) {
                Ok(()) => SettingChange::Unpin(file),
                Err(why) => return fail(client, RequestFailure::NotFound, why),
            },
            SettingChange::Model(name) => return self.on_chosen_model(client, name, by).await,
            change @ (SettingChange::Network(_)
            | SettingChange::Host(_)
            | SettingChange::Mode(_)
            | SettingChange::AppendedSystem(_)
            | SettingChange::CostLimit(_)
            | SettingChange::Flag(..)) => change,
        };
        let changes = self.spec.expand_change(change.clone());
        let records =
            changes.iter().map(|change| encode::setting_change(change, by.clone())).collect();
        if self.record(records).await.is_err() {
            return;
        }
        changes.iter().for_each(|change| self.spec.apply_change(change));
        match change {
            SettingChange::Network(_) | SettingChange::Host(_) | SettingChange::AddDirectory(_) => {
                self.calls.reserve.discard();
                let text = self.spec.setup.system.clone();
                let message = ToSession::System { text };
                self.workers.conversation.send(message);
                self.pass_bounds_on();
                if let (SettingChange::Network(_), Some(text)) =
                    (&change, self.spec.ineffective_denials(&self.spec.confinement))
                {
                    self.show(&ClientEvent::Notice { text });
                }
            }
            SettingChange::Mode(_) => self.send_mode(),
            SettingChange::Pin(_) | SettingChange::Unpin(_) => {
                let files = self.spec.setup.pinned.clone();
                self.workers.conversation.send(ToSession::Pinned(PinnedNews::Files(files)));
            }
            SettingChange::AppendedSystem(_) => {
                let text = self.spec.setup.system.clone();
                self.workers.conversation.send(ToSession::System { text });
            }
            SettingChange::Model(_) | SettingChange::CostLimit(_) | SettingChange::Flag(..) => {}
        }
    }

    /// Changes the model, by its name in the configuration or at its vendor. The next request uses
    /// it; an open request goes on with the old one.
    async fn on_chosen_model(&mut self, client: &ActorRef<ClientMsg>, name: String, by: String) {
        let (plan, named) = (self.spec.clone(), name.clone());
        let model = tokio::task::spawn_blocking(move || plan.with_model(&named)).await;
        let model = match model {
            Ok(Ok(model)) => model,
            Ok(Err(failure)) => return fail(client, failure.kind, failure.message),
            Err(error) => return fail(client, RequestFailure::Internal, error.to_string()),
        };
        let limit = self.spec.setup.max_session.cost;
        if let Err(failure) = check_price(limit, model.model(), model.facts()) {
            return fail(client, failure.kind, failure.message);
        }
        if self.spec.needs_new_provider(&model) && !self.workers.provider.may_suspend() {
            let why = "the session uses a recording, and this model is on another server";
            return fail(client, RequestFailure::Usage, why.to_owned());
        }
        if self
            .record(vec![encode::setting_change(&SettingChange::Model(name.clone()), by)])
            .await
            .is_err()
        {
            return;
        }
        let doubt = model.doubt(self.spec.model().name());
        self.change_model(|settings| settings.choose_model(model));
        if let Some(text) = doubt {
            self.show(&ClientEvent::Notice { text });
        }
    }

    /// Checks that the file is not pinned and that one more may be.
    fn may_be_pinned(&self, file: &str) -> Result<(), String> {
        let pinned = &self.spec.setup.pinned;
        if file.trim().is_empty() || file.len() > 4096 || file.contains(char::is_control) {
            return Err("name a file on one line".to_owned());
        }
        if pinned.iter().any(|other| other == file) {
            return Err(format!("{file} is pinned already"));
        }
        if pinned.len() >= MOST_PINNED {
            return Err(format!(
                "{MOST_PINNED} files are pinned already, each sent with every request; unpin one \
                 with :drop"
            ));
        }
        Ok(())
    }

    fn is_pinned(&self, file: &str) -> Result<(), String> {
        let pinned = &self.spec.setup.pinned;
        match pinned.is_empty() {
            _ if pinned.iter().any(|other| other == file) => Ok(()),
            true => Err("no file is pinned".to_owned()),
            false => Err(format!("{file} is not pinned; these are: {}", pinned.join(", "))),
        }
    }
}

fn fail(client: &ActorRef<ClientMsg>, kind: RequestFailure, message: String) {
    let _ = client.send_message(ClientMsg::Send(ToClient::Failed { kind, message }));
}
