//! Settings from the environment and from flags, as entries like those of a file.

use crate::environment::Environment;
use crate::error::{ConfigError, SourceLine};
use crate::keys;
use crate::origin::{Layer, ValueOrigin};
use crate::schema::{ConfigKey, ValueKind};
use crate::settings::SettingEntry;
use crate::value::{self, ConfigValue, ListItem};
use crate::vendors::Vendor;
use crate::warning::ConfigWarning;
use protocol::provider::Api;
use toml::Spanned;
use toml::de::DeValue;

/// Settings from the environment: only the variables of the vendor in use. Variables with secrets,
/// proxies or directories are read elsewhere.
pub(crate) fn from_environment(
    environment: &Environment,
    vendor: &Vendor,
    warnings: &mut Vec<ConfigWarning>,
) -> Result<Vec<SettingEntry>, ConfigError> {
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
        let place = SourceLine { file: name.into(), line: 0, column: 0 };
        // OpenAI's own variable is written with it.
        if let Some(short) = text
            .trim_end_matches('/')
            .strip_suffix("/v1")
            .filter(|_| key.kind == ValueKind::Url && vendor.dialect == Api::Anthropic)
        {
            warnings.push(ConfigWarning {
                origin: ValueOrigin { layer: Layer::Environment, file: name.into(), line: 0 },
                key: key.name.into(),
                text: format!("is written without /v1 at its end; {short} is used"),
            });
            text = short.to_owned();
        }
        found.push(untyped(key, &text, place, Layer::Environment)?);
    }
    Ok(found)
}

/// Settings from flags, each a configuration key and a value. A flag for a list adds one element.
pub(crate) fn from_flags(flags: &[(String, String)]) -> Result<Vec<SettingEntry>, ConfigError> {
    let place = || SourceLine { file: "flag".into(), line: 0, column: 0 };
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
        None => Err(ConfigError::NotText {
            place: SourceLine { file: name.into(), line: 0, column: 0 },
        }),
    }
}

/// The text of a variable or a flag, which has no types, as the value of a key. It is one element of a list.
fn untyped(
    key: &'static ConfigKey,
    text: &str,
    place: SourceLine,
    layer: Layer,
) -> Result<SettingEntry, ConfigError> {
    let number = DeValue::parse(text).map(Spanned::into_inner).ok();
    let is_count = matches!(key.kind, ValueKind::Count(..));
    let number = number.filter(|number| is_count && number.is_integer());
    let written = number.unwrap_or_else(|| DeValue::String(text.into()));
    let value = value::read(key.kind, &written).map_err(|unfit| ConfigError::BadValue {
        place: place.clone(),
        key: key.name.into(),
        found: unfit.found,
        wanted: unfit.wanted,
    })?;
    let value = match (key.kind, value) {
        (ValueKind::List(_), ConfigValue::Text(text)) => ConfigValue::List(vec![ListItem {
            text,
            origin: ValueOrigin { layer, file: place.file.clone(), line: 0 },
            examples: Vec::new(),
        }]),
        (_, value) => value,
    };
    Ok(SettingEntry { key, value, place, layer })
}
