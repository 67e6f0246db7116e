//! Prompts, and changed settings. Prompts wait on disk while a turn runs; `typed_prompt` reads them. A setting is
//! changed first on disk, then in memory, and holds for later calls; `new_setting` checks and applies it. The model
//! of a turn and the fallback model are changed likewise; `models` finds them.

use super::clients::{WaitingPrompt, fail};
use super::fallback::{AfterMessage, after_message};
use super::models::Recording;
use super::new_setting::{NewSetting, SettingStep};
use super::services::servers::Beginning;
use super::state::SessionActorState;
use super::typed_prompt::{PromptPlace, PromptSources, TypedPrompt};
use super::{rules, waiting_prompts};
use crate::messages::{ClientMsg, RootMsg};
use crate::person_prompt::PersonPrompt;
use protocol::client::{SettingChange, WhileBusy};
use protocol::provider::FromProvider;
use ractor::ActorRef;

impl SessionActorState {
    pub(super) async fn prompt(&mut self, prompt: WaitingPrompt<ActorRef<ClientMsg>>) {
        if self.events.degraded().is_some() {
            return self.events.show_degraded();
        }
        if self.events.clients.any_prompt_waits() {
            return self.events.clients.keep_prompt(prompt);
        }
        let place = match self.turn.router.must_queue() {
            true => PromptPlace::Behind,
            false => PromptPlace::First,
        };
        let sources = PromptSources {
            spec: &self.spec,
            servers: &self.calls.services.servers,
            beginning: match self.workers.conversation.has_begun() {
                true => Beginning::Over,
                false => Beginning::Ahead,
            },
            passed_fds: self.workers.provider.passed_fds(),
        };
        let busy = prompt.busy;
        match sources.read(&prompt.text, prompt.form.clone(), place).await {
            Ok(TypedPrompt::Ready { prompt, notes }) => {
                notes.into_iter().for_each(|text| self.events.show_notice(text));
                let joins = busy == WhileBusy::Steer && waiting_prompts::may_join(self);
                let prompt = if joins { prompt.steering() } else { prompt };
                self.begin_or_queue(prompt).await;
            }
            Ok(TypedPrompt::WaitsFor(server)) => {
                self.events
                    .show_notice(format!("the prompt waits for the MCP server {server} to start"));
                self.events.clients.keep_prompt(prompt);
            }
            Err(why) => self.events.clients.refuse_text(&prompt.client, why, prompt.text),
        }
    }

    /// Runs a person's own command, or queues it as a prompt.
    pub(super) async fn run_typed(&mut self, client: &ActorRef<ClientMsg>, typed: PersonPrompt) {
        if self.events.degraded().is_some() {
            return self.events.show_degraded();
        }
        match self.events.clients.why_not_run(&typed) {
            Some(why) => self.events.clients.refuse_text(client, why.to_owned(), typed.text),
            None => self.begin_or_queue(typed).await,
        }
    }

    async fn begin_or_queue(&mut self, prompt: PersonPrompt) {
        self.begin_work().await;
        if self.turn.router.must_queue() || self.closing.holds_turns() {
            return waiting_prompts::add(self, prompt).await;
        }
        self.begin_turn(prompt).await;
    }

    /// Sends a prompt that begins a turn.
    pub(super) async fn begin_turn(&mut self, prompt: impl Into<PersonPrompt>) {
        self.route(|router| router.prompt(prompt)).await;
        self.workers.ping_later();
    }

    /// Begins the turn of the prompt that waited longest, if it is its turn.
    pub(super) async fn start_next_turn(&mut self) {
        if self.closing.holds_turns() {
            return;
        }
        if let (Some(audience), false) = (self.turn.next_audience, self.turn.router.is_busy()) {
            self.set_audience(audience);
        }
        if self.events.own_task.is_awaited() {
            // Its parent asked while no turn could begin.
            self.begin_work().await;
        }
        if let Some(steps) = self.turn.router.next_queued() {
            waiting_prompts::show(self);
            self.carry_out(steps).await;
            self.workers.ping_later();
        }
        self.retire_if_unused();
    }

    /// A person wants another setting.
    pub(super) async fn change(
        &mut self,
        client: &ActorRef<ClientMsg>,
        change: SettingChange,
        by: &str,
    ) {
        let recording = Recording::of(self.workers.provider.passed_fds());
        match NewSetting::wished(&self.spec, change, recording).await {
            // A disk failure is shown to all clients.
            Ok(new) => drop(self.adopt(new, by).await),
            Err(failure) => fail(client, failure.kind, failure.message),
        }
    }

    /// Changes a setting, first on disk.
    pub(super) async fn adopt(&mut self, new: NewSetting, by: &str) -> Result<(), String> {
        let records = new.records(&self.spec, by);
        if !records.is_empty() {
            self.events.record(records, &mut self.calls.running).await?;
        }
        let steps = new.apply(&mut self.spec);
        self.carry_out_settings(steps);
        Ok(())
    }

    pub(super) fn carry_out_settings(&mut self, steps: Vec<SettingStep>) {
        for step in steps {
            match step {
                SettingStep::DiscardReserve => self.calls.reserve.discard(),
                SettingStep::SendRules => self.workers.broker.send(rules(&self.spec)),
                SettingStep::ToConversation(message) => self.workers.conversation.send(message),
                SettingStep::BindTasks => {
                    let (parent, bounds) = (self.spec.id().clone(), self.spec.task_bounds());
                    let bounds = Box::new(bounds);
                    let _ = self.root.send_message(RootMsg::NarrowTasks { parent, bounds });
                }
                SettingStep::OutdateProvider => self.workers.provider.outdate(),
                SettingStep::Show(event) => self.events.show(&event),
            }
        }
    }

    /// Sends a request that failed for want of its model to another model; false if there is none, or
    /// if it cannot be used.
    pub(super) async fn fall_back(&mut self, message: &FromProvider) -> bool {
        let recording = Recording::of(self.workers.provider.passed_fds());
        let after = after_message(&mut self.spec, &self.turn.router, message, recording).await;
        let AfterMessage { notice, change, again } = after;
        notice.into_iter().for_each(|text| self.events.show_notice(text));
        if let Some((new, by)) = change
            && self.adopt(new, by).await.is_err()
        {
            return false;
        }
        let Some(reason) = again else { return false };
        let setup = self.spec.setup();
        let (model, limits) = (setup.model.clone(), (setup.max_tokens, setup.facts));
        self.route(|router| router.ask_another(model, limits, reason)).await;
        true
    }
}
