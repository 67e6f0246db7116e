//! Models that the user defined: the `[models.NAME]` tables, which `--model NAME` chooses.

use crate::config::ProviderConfig;
use crate::error::ConfigError;
use crate::keys;
use crate::model_catalog::{self, WrittenPrices};
use crate::schema::ConfigKey;
use crate::settings::{LayeredSettings, SettingEntry};
use crate::source_text::IndexedSource;
use crate::value::{self, ConfigValue};
use crate::vendors::{NONE, VENDORS_OWN};
use protocol::client::{KnownModel, ModelFacts};
use protocol::provider::Effort;
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

/// The fields of a model, and the key that each stands for.
const FIELDS: [(&str, &str); 6] = [
    ("provider", "provider.name"),
    ("model", "provider.model"),
    ("base_url", "provider.base_url"),
    ("max_tokens", "provider.max_tokens"),
    ("key_file", "provider.key_file"),
    ("key_command", "provider.key_command"),
];

/// Headers that carry a key, which belongs into no file of settings.
const KEY_HEADERS: [&str; 5] =
    ["authorization", "proxy-authorization", "x-api-key", "x-goog-api-key", "api-key"];

/// One named model.
#[derive(Debug, Clone)]
pub(crate) struct NamedModel {
    /// The value of `--model`.
    pub name: String,
    /// Its settings, by configuration key; the vendor's name of the model is one of them.
    pub entries: Vec<SettingEntry>,
    /// Settings that have no configuration key.
    pub extras: ModelExtras,
}

/// Most images of a request that can be set: the largest bound of a vendor.
const MOST_IMAGES: u64 = 3000;

/// Settings that only a named model has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ModelExtras {
    /// Sent with each request.
    pub headers: Vec<(String, String)>,
    /// How long it shall think.
    pub effort: Option<Effort>,
    /// Its context size and prices, if given.
    pub facts: ModelFacts,
    /// The name of its table.
    pub table: Option<String>,
    /// Most images of a request, if given.
    pub images: Option<u32>,
}

/// The models of a file.
pub(crate) fn read(
    source: &IndexedSource<'_>,
    table: &DeTable<'_>,
) -> Result<Vec<NamedModel>, ConfigError> {
    let Some(models) = table.get("models") else { return Ok(Vec::new()) };
    let models = source.table("models", models)?;
    models.iter().map(|(name, fields)| model(source, name, fields)).collect()
}

fn model(
    source: &IndexedSource<'_>,
    name: &Spanned<std::borrow::Cow<'_, str>>,
    fields: &Spanned<DeValue<'_>>,
) -> Result<NamedModel, ConfigError> {
    let path = format!("models.{}", name.get_ref());
    let mut entries = Vec::new();
    let table = Some(name.get_ref().to_string());
    let mut extras = ModelExtras { table, ..ModelExtras::default() };
    let entry = |key: &'static ConfigKey, value, span: std::ops::Range<usize>| SettingEntry {
        key,
        value,
        place: source.place(&span),
        layer: source.source.layer,
    };
    for (field, value) in source.table(&path, fields)? {
        let at = format!("{path}.{}", field.get_ref());
        let unfit = |wanted: &str| source.unfit(&at, value, wanted);
        let key = FIELDS.iter().find(|(name, _)| *name == field.get_ref().as_ref());
        if let Some(key) = key.and_then(|(_, key)| keys::find(key)) {
            entries.push(entry(key, source.value(key.name, key.kind, value)?, field.span()));
            continue;
        }
        let number = |least, most, wanted: &str| {
            let number = value::whole(value.get_ref()).and_then(|number| number.try_into().ok());
            number.filter(|number| (least..=most).contains(number)).ok_or_else(|| unfit(wanted))
        };
        let switch = || value.get_ref().as_bool().ok_or_else(|| unfit("true or false"));
        match field.get_ref().as_ref() {
            "context" => {
                let wanted = "a number of tokens from 1000";
                extras.facts.context = Some(number(1000, u64::MAX, wanted)?);
            }
            "vision" => extras.facts.vision = Some(switch()?),
            "json_schema" => extras.facts.json_schema = Some(switch()?),
            "images" => {
                let wanted = format!("a number of images from 1 to {MOST_IMAGES}");
                extras.images = u32::try_from(number(1, MOST_IMAGES, &wanted)?).ok();
            }
            "effort" => {
                let words = ["low", "medium", "high"].into_iter();
                let mut efforts = words.zip([Effort::Low, Effort::Medium, Effort::High]);
                let said = efforts.find(|(word, _)| value.get_ref().as_str() == Some(*word));
                let wanted = "one of \"low\", \"medium\", \"high\"";
                extras.effort = Some(said.ok_or_else(|| unfit(wanted))?.1);
            }
            "price" => {
                let prices = WrittenPrices::deserialize(ValueDeserializer::from(value.clone()));
                let wanted = "a table of dollars for a million tokens: input and output, and \
                              cache_read and cache_write where they differ";
                extras.facts.prices = Some(prices.map_err(|_| unfit(wanted))?.into());
            }
            "headers" => {
                for (name, value) in source.table(&at, value)? {
                    extras.headers.push(header(source, &at, name.get_ref(), value)?);
                }
            }
            _ => {
                let hint = ". A model has provider, model, base_url, key_file, key_command, \
                           max_tokens, context, vision, images, json_schema, effort, headers and price";
                return Err(source.unknown(field, at, hint));
            }
        }
    }
    // Without another name it is the vendor's own.
    if let Some(key) = keys::find("provider.model")
        && !entries.iter().any(|entry| entry.key.name == key.name)
    {
        entries.push(entry(key, ConfigValue::Text(name.get_ref().to_string()), name.span()));
    }
    Ok(NamedModel { name: name.get_ref().to_string(), entries, extras })
}

fn header(
    source: &IndexedSource<'_>,
    table: &str,
    name: &str,
    value: &Spanned<DeValue<'_>>,
) -> Result<(String, String), ConfigError> {
    let at = format!("{table}.{name}");
    if KEY_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
        let wanted = "given as key_file or key_command, because a configuration never holds a key";
        return Err(source.bad(&at, value.span(), "a header that carries a key", wanted));
    }
    let is_name = !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    match value.get_ref().as_str() {
        Some(text) if is_name && text.bytes().all(|b| (b' '..0x7f).contains(&b)) => {
            Ok((name.to_owned(), text.to_owned()))
        }
        _ => Err(source.unfit(&at, value, "a header: letters, and one line of plain text")),
    }
}

/// The model that is meant, where one is: by its name in a flag, or in the files.
pub(crate) fn chosen<'a>(
    models: &'a [NamedModel],
    flags: &[(String, String)],
    settings: &LayeredSettings,
) -> Result<Option<&'a NamedModel>, ConfigError> {
    let flag = flags.iter().rev().find(|(key, _)| key == "provider.model");
    let name = match flag {
        Some((_, name)) => name,
        None => settings.text("provider.model")?,
    };
    Ok(models.iter().rev().find(|model| model.name == name))
}

/// The models to choose from.
pub(crate) fn known(named: &[NamedModel], provider: &ProviderConfig) -> Vec<KnownModel> {
    let mut known: Vec<KnownModel> = Vec::new();
    // Of two tables of one name the later one counts.
    for model in named.iter().rev() {
        if known.iter().all(|other| other.name != model.name) {
            known.push(KnownModel { name: model.name.clone(), facts: model.extras.facts });
        }
    }
    known.sort_by(|a, b| a.name.cmp(&b.name));
    let vendor = provider.name.vendor();
    if vendor.has_server(&provider.base_url) {
        known.extend(model_catalog::models_of(vendor.name));
    }
    known
}

/// Applies a chosen model. If it is of another provider and names no server or key, it gets that
/// provider's own: a key is never sent to another vendor's server.
pub(crate) fn put(model: &NamedModel, settings: &mut LayeredSettings) -> Result<(), ConfigError> {
    let sets = |key: &str| model.entries.iter().find(|entry| entry.key.name == key);
    let now = settings.text("provider.name")?.to_owned();
    let changes = sets("provider.name").is_some_and(|entry| entry.value.text() != Some(&now));
    let names_key = sets("provider.key_file").is_some() || sets("provider.key_command").is_some();
    for (key, none, clears) in [
        ("provider.base_url", VENDORS_OWN, changes),
        ("provider.key_file", NONE, changes || names_key),
        ("provider.key_command", NONE, changes || names_key),
    ] {
        if let (true, Some(key), Some(like)) = (clears, keys::find(key), model.entries.first()) {
            settings.put(SettingEntry {
                key,
                value: ConfigValue::Text(none.to_owned()),
                ..like.clone()
            });
        }
    }
    for entry in &model.entries {
        settings.put(entry.clone());
    }
    Ok(())
}
