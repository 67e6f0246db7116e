//! The models that a session may use: the one that a person chooses, and the one of a turn whose slash command or skill
//! names it. Reads the configuration. The layers of the settings have the model that the session goes back to.

use protocol::client::RequestFailure;
use protocol::provider::{PassedFd, ToProvider};
use setup::chosen_model::ChosenModel;
use setup::open_failure::OpenFailure;
use setup::session_spec::{SessionSpec, check_price};
use setup::settings::{LayerName, Settings};
use std::os::fd::OwnedFd;

/// A recording that the provider's process plays or makes. The process stays, because it knows how far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recording {
    Absent,
    InUse,
}

impl Recording {
    /// That of these descriptors.
    pub(super) fn of(passed_fds: &[(PassedFd, OwnedFd)]) -> Self {
        let is_one = |(kind, _): &(PassedFd, OwnedFd)| match kind {
            PassedFd::Key | PassedFd::Credential(_) | PassedFd::ServerVariable(_) => false,
            PassedFd::Replay | PassedFd::Record => true,
        };
        match passed_fds.iter().any(is_one) {
            true => Self::InUse,
            false => Self::Absent,
        }
    }
}

/// The settings without the fallback model.
pub(super) fn before_fallback(spec: &SessionSpec) -> Settings {
    let mut before = spec.settings().clone();
    before.clear(LayerName::Fallback);
    before
}

/// The model of this name, for a turn.
///
/// # Errors
/// Why it cannot be used, for the person.
pub(super) async fn turn_model(
    spec: &SessionSpec,
    name: &str,
    recording: Recording,
) -> Result<ChosenModel, String> {
    let model = find(spec, name).await.map_err(|no| no.message)?;
    if !model.is_known() && model.model() != spec.model().model() {
        return Err(format!(
            "no model of this name is configured. Name it in a table `[models.{name}]` of your \
             configuration, or write its vendor's name (`agentd help config`)"
        ));
    }
    check_cost(spec, &model).map_err(|no| no.message)?;
    match is_reached(spec, &model, recording) {
        true => Ok(model),
        false => Err(ELSEWHERE.to_owned()),
    }
}

/// The model that a person chooses for the session, by its name in the configuration or at its vendor. The next
/// request uses it. An open request goes on with the old one, unless its process ends: it is repeated with this one.
///
/// # Errors
/// Why it cannot be used, for the person.
pub(super) async fn session_model(
    spec: &SessionSpec,
    name: &str,
    recording: Recording,
) -> Result<ChosenModel, OpenFailure> {
    let model = find(spec, name).await?;
    check_cost(spec, &model)?;
    if is_reached(spec, &model, recording) {
        return Ok(model);
    }
    let why = "the session uses a recording, and this model is on another server";
    Err(OpenFailure::new(RequestFailure::Usage, why))
}

/// Reads the configuration.
pub(super) async fn find(spec: &SessionSpec, name: &str) -> Result<ChosenModel, OpenFailure> {
    let (own, named) = (spec.clone(), name.to_owned());
    let found = tokio::task::spawn_blocking(move || own.with_model(&named)).await;
    found.unwrap_or_else(|error| Err(OpenFailure::new(RequestFailure::Internal, error.to_string())))
}

pub(super) fn check_cost(spec: &SessionSpec, model: &ChosenModel) -> Result<(), OpenFailure> {
    check_price(spec.setup().max_session.cost, model.model(), model.facts())
}

pub(super) const ELSEWHERE: &str = "the session uses a recording, and it is on another server";

pub(super) fn is_reached(spec: &SessionSpec, model: &ChosenModel, recording: Recording) -> bool {
    recording == Recording::Absent || !spec.needs_new_provider(model)
}

/// True if the model can be sent a request with images, or one without them.
pub(super) fn sees_enough(model: &ChosenModel, with_images: bool) -> bool {
    model.facts().vision == Some(true) || !with_images
}

/// Puts the present model into a request. The conversation may have made it with the model of the turn
/// before, which is over: a summary follows a turn at once.
pub(super) fn put_present_model(spec: &SessionSpec, message: &mut ToProvider) {
    let ToProvider::Ask(request) = message else { return };
    let setup = spec.setup();
    if request.model != setup.model {
        request.model.clone_from(&setup.model);
        request.max_tokens = setup.max_tokens;
    }
}
