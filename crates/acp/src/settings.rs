//! The choices of a session that an editor shows: mode, model and network.
//! <https://agentclientprotocol.com/protocol/v1/session-config-options>

use crate::frame::RpcError;
use client::SessionFacts;
use protocol::client::SettingChange;
use protocol::confinement::Network;
use protocol::judgement::PermissionMode;
use serde_json::{Value, json};

/// Networks, by the words of the configuration.
const NETWORKS: [(Network, &str, &str); 3] = [
    (Network::Off, "off", "Commands reach no network"),
    (Network::Listed, "allow", "Commands reach the allowed hosts"),
    (Network::On, "on", "Commands reach the whole network"),
];

/// What a mode lets pass, for people.
fn describe(mode: PermissionMode) -> &'static str {
    match mode {
        PermissionMode::Ask => "Ask before changes and commands",
        PermissionMode::AcceptEdits => "Edits in the project pass, commands are asked about",
        PermissionMode::Plan => "Look and plan, change nothing",
        PermissionMode::Auto => "All that the sandbox allows passes",
        PermissionMode::DontAsk => "Refuse what would be asked about",
        PermissionMode::Sandboxed => "What the sandbox bounds and undo covers passes",
    }
}

/// The modes, of the older shape of the protocol.
pub(crate) fn modes(facts: &SessionFacts) -> Value {
    let mode = |mode: PermissionMode| json!({"id": mode.name(), "name": mode.name(), "description": describe(mode)});
    json!({
        "currentModeId": facts.mode.name(),
        "availableModes": PermissionMode::ALL.map(mode),
    })
}

/// All choices.
pub(crate) fn options(facts: &SessionFacts) -> Value {
    let mode = |mode: PermissionMode| json!({"value": mode.name(), "name": mode.name(), "description": describe(mode)});
    let mut models: Vec<&str> = facts.models.iter().map(|model| model.name.as_str()).collect();
    if !models.contains(&facts.model.as_str()) {
        models.insert(0, &facts.model);
    }
    let model = |name: &&str| json!({"value": name, "name": name});
    let network = |(_, word, text): (Network, &str, &str)| json!({"value": word, "name": word, "description": text});
    let present = NETWORKS.iter().find(|(network, ..)| *network == facts.network);
    json!([
        {
            "id": "mode", "name": "Permissions", "category": "mode", "type": "select",
            "currentValue": facts.mode.name(), "options": PermissionMode::ALL.map(mode),
        },
        {
            "id": "model", "name": "Model", "category": "model", "type": "select",
            "currentValue": facts.model, "options": models.iter().map(model).collect::<Vec<_>>(),
        },
        {
            "id": "network", "name": "Network of commands", "type": "select",
            "currentValue": present.map(|(_, word, _)| *word), "options": NETWORKS.map(network),
        },
    ])
}

/// What a choice changes.
///
/// # Errors
/// There is no such choice, or it has no such value.
pub(crate) fn change(choice: &str, value: &Value) -> Result<SettingChange, RpcError> {
    let word =
        value.as_str().ok_or_else(|| RpcError::params(format!("{choice:?} takes a text")))?;
    let unknown = |names: Vec<&str>| {
        RpcError::params(format!("{choice:?} is one of {}, not {word:?}", names.join(", ")))
    };
    match choice {
        "mode" => match PermissionMode::parse(word) {
            Some(mode) => Ok(SettingChange::Mode(mode)),
            None => Err(unknown(PermissionMode::ALL.map(PermissionMode::name).into())),
        },
        "model" => Ok(SettingChange::Model(word.to_owned())),
        "network" => match NETWORKS.iter().find(|(_, name, _)| *name == word) {
            Some((network, ..)) => Ok(SettingChange::Network(*network)),
            None => Err(unknown(NETWORKS.map(|(_, name, _)| name).into())),
        },
        _ => Err(RpcError::params(format!(
            "there is no choice {choice:?}; there are mode, model and network"
        ))),
    }
}

/// True if the session has this setting already, so that nothing would be heard of the change.
pub(crate) fn is_so(facts: &SessionFacts, change: &SettingChange) -> bool {
    match change {
        SettingChange::Mode(mode) => facts.mode == *mode,
        SettingChange::Model(model) => facts.model == *model,
        SettingChange::Network(network) => facts.network == *network,
        SettingChange::Host(_)
        | SettingChange::AddDirectory(_)
        | SettingChange::Pin(_)
        | SettingChange::Unpin(_)
        | SettingChange::AppendedSystem(_)
        | SettingChange::CostLimit(_)
        | SettingChange::Flag(..)
        | SettingChange::Name(_) => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn choices_are_known_words() {
        assert_eq!(
            change("mode", &"plan".into()).unwrap(),
            SettingChange::Mode(PermissionMode::Plan)
        );
        assert_eq!(change("network", &"on".into()).unwrap(), SettingChange::Network(Network::On));
        for (choice, value, named) in [
            ("mode", json!("yolo"), "accept-edits"),
            ("network", json!(true), "takes a text"),
            ("colour", json!("red"), "there are mode, model and network"),
        ] {
            let error = change(choice, &value).unwrap_err();
            assert!(error.message().contains(named), "{error:?}");
        }
    }
}
