//! What environment and flags set, as entries like those of a file.

use crate::environment::Environment;
use crate::error::{ConfigError, Place};
use crate::keys::{self, Key, Kind};
use crate::origin::{Layer, Origin};
use crate::project::Warning;
use crate::settings::Entry;
use crate::value::{self, Item, Raw, Value};
use crate::vendors::Vendor;
use protocol::provider::Api;

/// The entries of the environment: of the variables that set keys, those that speak of the vendor
/// in use. Variables that carry secrets, proxies or directories are read elsewhere.
pub(crate) fn from_environment(
    environment: &Environment,
    vendor: &Vendor,
    warnings: &mut Vec<Warning>,
) -> Result<Vec<Entry>, ConfigError> {
    let mut found = Vec::new();
    let variables = [
        (vendor.base_url_variable, "provider.base_url"),
        (vendor.model_variable, "provider.model"),
        ("AGENTD_SANDBOX_TIER", "sandbox.tier"),
    ];
    for (name, key) in variables {
        let (Some(mut text), Some(key)) = (text_of(environment, name)?, keys::find(key)) else {
            continue;
        };
        if name == "AGENTD_SANDBOX_TIER" {
            text = text.to_ascii_lowercase();
        }
        let place = Place { file: name.into(), line: 0, column: 0 };
        // OpenAI's own variable is written with it.
        if let Some(short) = text
            .trim_end_matches('/')
            .strip_suffix("/v1")
            .filter(|_| key.kind == Kind::Url && vendor.api == Api::Anthropic)
        {
            warnings.push(Warning {
                origin: Origin { layer: Layer::Environment, file: name.into(), line: 0 },
                key: key.name.into(),
                text: format!("is written without /v1 at its end; {short} is used"),
            });
            text = short.to_owned();
        }
        found.push(untyped(key, &text, place, Layer::Environment)?);
    }
    Ok(found)
}

/// The entries of flags, each `key` and `value` in the words of the configuration. A list's flag
/// adds one element.
pub(crate) fn from_flags(flags: &[(String, String)]) -> Result<Vec<Entry>, ConfigError> {
    let place = || Place { file: "flag".into(), line: 0, column: 0 };
    let mut found = Vec::new();
    for (name, text) in flags {
        let Some(key) = keys::find(name) else {
            return Err(ConfigError::UnknownKey {
                place: place(),
                key: name.clone(),
                hint: keys::hint(name),
            });
        };
        found.push(untyped(key, text, place(), Layer::Flag)?);
    }
    Ok(found)
}

/// A variable's text; an error where it is no UTF-8.
pub(crate) fn text_of(
    environment: &Environment,
    name: &str,
) -> Result<Option<String>, ConfigError> {
    let Some(value) = environment.get(name) else { return Ok(None) };
    match value.to_str() {
        Some(text) => Ok(Some(text.to_owned())),
        None => {
            Err(ConfigError::NotText { place: Place { file: name.into(), line: 0, column: 0 } })
        }
    }
}

fn untyped(
    key: &'static Key,
    text: &str,
    place: Place,
    layer: Layer,
) -> Result<Entry, ConfigError> {
    let value = value::read(key, &Raw::Untyped(text)).map_err(|unfit| ConfigError::BadValue {
        place: place.clone(),
        key: key.name.into(),
        found: unfit.found,
        wanted: unfit.wanted,
    })?;
    let value = match (key.kind, value) {
        (
            Kind::Rules
            | Kind::Dirs
            | Kind::Files
            | Kind::Hosts
            | Kind::Variables
            | Kind::Verifiers
            | Kind::Formatters,
            Value::Text(text),
        ) => Value::List(vec![Item {
            text,
            origin: Origin { layer, file: place.file.clone(), line: 0 },
            examples: Vec::new(),
        }]),
        (_, value) => value,
    };
    Ok(Entry { key, value, place, layer })
}
