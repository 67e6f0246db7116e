//! A changed setting of a session: its check, its records, and what follows from it. The session actor writes
//! the records first, then applies the change in memory and carries out the steps, so that a crash in between
//! finds the setting changed. A setting is changed by a person's wish, by an answer that holds longer than its
//! call, and by a model that does not answer.
//!
//! The rule of an answer is written to its file before the record. Other sessions read the person's files when
//! they are opened.

use super::models::{Recording, before_fallback, session_model, turn_model};
use super::pinning;
use crate::records::encode;
use journal::JournalRecord;
use protocol::client::{ClientEvent, RequestFailure, SettingChange};
use protocol::confinement::FilePath;
use protocol::error_chain::chain;
use protocol::judgement::{Audience, PersonAnswer, Rule};
use protocol::session::{ConversationSetting, PinnedNews, ToSession};
use protocol::session_name;
use setup::chosen_model::ChosenModel;
use setup::open_failure::OpenFailure;
use setup::session_spec::{SessionSpec, TaskBounds, real_dir};
use setup::settings::{LayerName, Settings};
use std::path::PathBuf;

/// A change that was checked and is on no disk yet.
pub(super) enum NewSetting {
    /// A person's, with the changes that it brings along before it.
    Changes(Vec<SettingChange>),
    /// A person chose this model by this name.
    Model(String, ChosenModel),
    /// A person's answer allows this from now on. If its file could not be written, the reason.
    Rule(Rule, Option<String>),
    /// The fallback model of this name takes over, with a notice.
    Fallback(String, ChosenModel, String),
    /// The fallback model failed too: the model before it is back, with a notice.
    NoFallback(String),
}

/// What follows from a setting that has changed.
pub(super) enum SettingStep {
    /// The cage of the next command's runner has other rights.
    DiscardReserve,
    /// The broker judges by the rules that hold now.
    SendRules,
    /// The conversation gets this.
    ToConversation(ToSession),
    /// The sub-agents are bound by the rights that hold now.
    BindTasks,
    /// The next request starts a new provider.
    OutdateProvider,
    Show(ClientEvent),
}

impl NewSetting {
    /// The change that a person wants.
    ///
    /// # Errors
    /// For the person.
    pub(super) async fn wished(
        spec: &SessionSpec,
        change: SettingChange,
        recording: Recording,
    ) -> Result<Self, OpenFailure> {
        spec.check_change(&change)?;
        let usage = |why: String| OpenFailure::new(RequestFailure::Usage, why);
        let change = match change {
            SettingChange::AddDirectory(path) => {
                SettingChange::AddDirectory(added_dir(spec, path).await?)
            }
            SettingChange::Pin(file) => {
                pinning::check_new(&spec.setup().pinned, &file).map_err(usage)?;
                pinning::can_be_shown(spec.confinement(), &file).await.map_err(usage)?;
                SettingChange::Pin(file)
            }
            SettingChange::Unpin(file) => {
                let checked = pinning::check_pinned(&spec.setup().pinned, &file);
                checked.map_err(|why| OpenFailure::new(RequestFailure::NotFound, why))?;
                SettingChange::Unpin(file)
            }
            SettingChange::Model(name) => {
                let model = session_model(spec, &name, recording).await?;
                return Ok(Self::Model(name, model));
            }
            change @ (SettingChange::Network(_)
            | SettingChange::Host(_)
            | SettingChange::Mode(_)
            | SettingChange::AppendedSystem(_)
            | SettingChange::CostLimit(_)
            | SettingChange::Flag(..)) => change,
            SettingChange::Name(name) => {
                SettingChange::Name(session_name::wanted(&name).map_err(usage)?)
            }
        };
        Ok(Self::Changes(spec.expand_change(change)))
    }

    /// The change that an answer brings which the broker accepted. Writes its rule to the person's file.
    pub(super) async fn answered(spec: &SessionSpec, answer: &PersonAnswer) -> Option<Self> {
        let (answer, _) = answer.clone().split_note();
        let (text, written) = match &answer {
            PersonAnswer::Once
            | PersonAnswer::Form(_)
            | PersonAnswer::Deny(_)
            | PersonAnswer::Noted(..)
            | PersonAnswer::Chosen(_)
            | PersonAnswer::Stop => return None,
            // The plan is approved, and the session leaves mode `plan`.
            PersonAnswer::Mode(mode) => {
                return Some(Self::Changes(vec![SettingChange::Mode(*mode)]));
            }
            PersonAnswer::Session(text) => (text, Ok(None)),
            PersonAnswer::Always(text) => {
                (text, write(spec.project_rules_file(), text.clone()).await.map(Some))
            }
            PersonAnswer::Everywhere(text) => {
                let file = spec.user_file().map(|file| (file, String::new()));
                (text, write(file, text.clone()).await.map(Some))
            }
        };
        let rule = approval::remembered_rule(text);
        Some(match written {
            Ok(None) => Self::Rule(rule, None),
            Ok(Some((file, line))) => Self::Rule(Rule { file, line, ..rule }, None),
            Err(why) => {
                tracing::warn!(session = %spec.id(), rule = %text, %why, "a rule was not written");
                Self::Rule(rule, Some(why))
            }
        })
    }

    /// The records that put it on disk. The model of a turn alone ends with the turn: no record changes that of
    /// the session for it.
    pub(super) fn records(&self, spec: &SessionSpec, by: &str) -> Vec<JournalRecord> {
        let of = |change: &SettingChange| encode::setting_change(change, by.to_owned());
        let of_model = |name: &str| of(&SettingChange::Model(name.to_owned()));
        match self {
            Self::Changes(changes) => changes.iter().map(of).collect(),
            Self::Model(name, _) => vec![of_model(name)],
            Self::Rule(rule, unwritten) => {
                vec![encode::learned_rule(rule, by.to_owned(), unwritten.clone())]
            }
            Self::Fallback(..) | Self::NoFallback(_) if spec.settings().has_turn_model() => {
                Vec::new()
            }
            Self::Fallback(name, ..) => vec![of_model(name)],
            Self::NoFallback(_) => vec![of_model(before_fallback(spec).model().name())],
        }
    }

    /// Changes the setting, whose records are on disk.
    pub(super) fn apply(self, spec: &mut SessionSpec) -> Vec<SettingStep> {
        let notice = |text| SettingStep::Show(ClientEvent::Notice { text });
        match self {
            Self::Changes(changes) => {
                changes.iter().for_each(|change| spec.apply_change(change));
                changes.last().map(|change| after_change(spec, change)).unwrap_or_default()
            }
            Self::Model(_, model) => {
                let doubt = model.doubt(spec.model().name());
                let mut steps = change_model(spec, |settings| settings.choose_model(model));
                steps.extend(doubt.map(notice));
                steps
            }
            Self::Rule(rule, _) => {
                spec.change_settings(|settings| settings.remember([rule]));
                vec![SettingStep::SendRules]
            }
            Self::Fallback(_, model, text) => {
                let changed = change_model(spec, |settings| settings.fall_back(model));
                std::iter::once(notice(text)).chain(changed).collect()
            }
            Self::NoFallback(text) => {
                let mut steps = change_model(spec, |settings| settings.clear(LayerName::Fallback));
                steps.push(notice(text));
                steps
            }
        }
    }
}

/// The next request uses the model that holds after this change of the settings.
fn change_model(spec: &mut SessionSpec, change: impl FnOnce(&mut Settings)) -> Vec<SettingStep> {
    let before = spec.model().source();
    spec.change_settings(change);
    let outdated = (before != spec.model().source()).then_some(SettingStep::OutdateProvider);
    let told = SettingStep::ToConversation(spec.model_message());
    outdated.into_iter().chain([told, SettingStep::Show(model_event(spec))]).collect()
}

/// A prompt is about to go to the conversation: its model comes first.
pub(super) async fn begin_turn_model(
    spec: &mut SessionSpec,
    message: &ToSession,
    recording: Recording,
) -> Vec<SettingStep> {
    let ToSession::Prompt { expanded: Some(prompt), .. } = message else { return Vec::new() };
    let Some(name) = &prompt.model else { return Vec::new() };
    if spec.settings().has_turn_model() {
        // It is sent again, to another process.
        return Vec::new();
    }
    match turn_model(spec, name, recording).await {
        Ok(model) => change_model(spec, |settings| settings.begin_turn_model(model)),
        Err(why) => {
            let now = &spec.setup().model;
            let text = format!("the model {name} of this turn cannot be used, {now} is: {why}");
            vec![SettingStep::Show(ClientEvent::Notice { text })]
        }
    }
}

/// The turn has ended: the session's model is used again.
pub(super) fn end_turn_model(spec: &mut SessionSpec) -> Vec<SettingStep> {
    match spec.settings().has_turn_model() {
        true => change_model(spec, Settings::end_turn_model),
        false => Vec::new(),
    }
}

/// The model that is asked now, for clients.
pub(super) fn model_event(spec: &SessionSpec) -> ClientEvent {
    let (name, provider) = (spec.setup().model.clone(), &spec.config().provider);
    ClientEvent::Model { name, facts: provider.facts, models: provider.models.clone() }
}

/// The parent of this sub-agent's session has these rights now. Calls that start later have them.
pub(super) fn bind_by_parent(spec: &mut SessionSpec, bounds: TaskBounds) -> Vec<SettingStep> {
    if !spec.set_parent_bounds(bounds) {
        return Vec::new();
    }
    let mut steps = vec![SettingStep::DiscardReserve, system(spec)];
    steps.extend(mode(spec));
    steps
}

/// These people can be asked from now on.
pub(super) fn change_audience(spec: &mut SessionSpec, audience: Audience) -> Vec<SettingStep> {
    spec.set_audience(audience);
    vec![SettingStep::SendRules]
}

fn after_change(spec: &SessionSpec, change: &SettingChange) -> Vec<SettingStep> {
    match change {
        SettingChange::Network(_) | SettingChange::Host(_) | SettingChange::AddDirectory(_) => {
            let denials = matches!(change, SettingChange::Network(_))
                .then(|| spec.ineffective_denials(spec.confinement()))
                .flatten();
            let notice = denials.map(|text| SettingStep::Show(ClientEvent::Notice { text }));
            let steps = [SettingStep::DiscardReserve, system(spec), SettingStep::BindTasks];
            steps.into_iter().chain(notice).chain(mode_note(spec)).collect()
        }
        SettingChange::Mode(_) => mode(spec).into_iter().chain(mode_note(spec)).collect(),
        SettingChange::Pin(_) | SettingChange::Unpin(_) => {
            let files = PinnedNews::Files(spec.setup().pinned.clone());
            vec![SettingStep::ToConversation(ToSession::Pinned(files))]
        }
        SettingChange::AppendedSystem(_) => vec![system(spec)],
        SettingChange::Model(_)
        | SettingChange::CostLimit(_)
        | SettingChange::Flag(..)
        | SettingChange::Name(_) => Vec::new(),
    }
}

fn system(spec: &SessionSpec) -> SettingStep {
    SettingStep::ToConversation(ToSession::System { text: spec.setup().system.clone() })
}

/// Says where the mode asks about more than its name promises.
fn mode_note(spec: &SessionSpec) -> Option<SettingStep> {
    spec.mode_note().map(|text| SettingStep::Show(ClientEvent::Notice { text }))
}

/// Broker and conversation decide by the mode: the conversation offers tools.
fn mode(spec: &SessionSpec) -> [SettingStep; 3] {
    let told = SettingStep::ToConversation(ToSession::Setting(ConversationSetting::Mode(
        spec.rules().mode,
    )));
    [SettingStep::SendRules, told, SettingStep::BindTasks]
}

/// The real path of a directory that a session may be given.
async fn added_dir(spec: &SessionSpec, path: FilePath) -> Result<FilePath, OpenFailure> {
    let (user_file, forbidden) = (spec.user_file(), spec.forbidden().clone());
    let real = tokio::task::spawn_blocking(move || {
        let real = real_dir(&path.to_path(), "the added directory")?;
        if let Some(Err(error)) =
            user_file.as_ref().map(|file| config::user_file_is_own(file, [&real]))
        {
            return Err(OpenFailure::new(RequestFailure::Configuration, chain(&error)));
        }
        forbidden.check_added(&real).map(|()| real)
    });
    let failed = |error: tokio::task::JoinError| {
        OpenFailure::new(RequestFailure::Internal, error.to_string())
    };
    real.await.map_err(failed)?.map(Into::into)
}

/// The place of the rule in the person's file, or why it could not be written.
async fn write(file: Option<(PathBuf, String)>, rule: String) -> Result<(String, u32), String> {
    let (file, head) = file.ok_or("your configuration file cannot be located: HOME is not set")?;
    let written =
        tokio::task::spawn_blocking(move || match config::append_allow_rule(&file, &head, &rule) {
            Ok(line) => Ok((file.display().to_string(), line)),
            Err(error) => Err(chain(&error)),
        });
    written.await.unwrap_or_else(|error| Err(error.to_string()))
}
