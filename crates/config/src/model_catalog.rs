//! Built-in facts about models: the table in `config/models.toml`.

use protocol::client::{ImageLimits, KnownModel, ModelFacts, Prices};
use serde::Deserialize;
use toml::{Table, Value};

/// The table's text.
const TABLE: &str = include_str!("../../../config/models.toml");

/// A row of the table.
#[derive(Deserialize)]
struct Row {
    context: Option<u64>,
    vision: Option<bool>,
    json_schema: Option<bool>,
    #[serde(flatten)]
    price: Option<WrittenPrices>,
}

/// Dollars for a million tokens.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenPrices {
    input: Dollars,
    output: Dollars,
    cache_read: Option<Dollars>,
    cache_write: Option<Dollars>,
}

/// An amount of dollars in millionths.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "f64")]
struct Dollars(u64);

impl TryFrom<f64> for Dollars {
    type Error = &'static str;

    fn try_from(dollars: f64) -> Result<Self, Self::Error> {
        match (0.0..1e6).contains(&dollars) {
            true => Ok(Self((dollars * 1e6).round() as u64)),
            false => Err("no price"),
        }
    }
}

impl From<WrittenPrices> for Prices {
    fn from(written: WrittenPrices) -> Self {
        Self {
            input: written.input.0,
            output: written.output.0,
            cache_read: written.cache_read.map(|price| price.0),
            cache_write: written.cache_write.map(|price| price.0),
        }
    }
}

/// A part of the table: the rows of models, or the words that stand for some.
fn part(name: &str) -> Table {
    let mut all: Table = TABLE.parse().unwrap_or_default();
    match all.remove(name) {
        Some(Value::Table(part)) => part,
        _ => Table::default(),
    }
}

/// The facts about a model by its vendor's name; empty for a model that is not in the table.
#[must_use]
pub fn facts(model: &str) -> ModelFacts {
    let row = part("model").into_iter().find(|(name, _)| is_edition(name, model));
    let row = row.and_then(|(_, row)| row.try_into::<Row>().ok());
    row.map_or_else(ModelFacts::default, |row| ModelFacts {
        context: row.context,
        prices: row.price.map(Prices::from),
        vision: row.vision,
        json_schema: row.json_schema,
        images: ImageLimits::default(),
    })
}

/// The models of a vendor, as its own server knows them.
pub(crate) fn models_of(vendor: &str) -> Vec<KnownModel> {
    // A vendor may have several interfaces: `openai`, `openai-chat`.
    let its = |source: &str| vendor.starts_with(source);
    let is_its = |row: &Value| row.get("source").and_then(Value::as_str).is_some_and(its);
    let names = part("model").into_iter().filter(|(_, row)| is_its(row)).map(|(name, _)| name);
    names.map(|name| KnownModel { facts: facts(&name), name }).collect()
}

/// True for a word that stands for a model in files for agents and commands.
#[must_use]
pub fn is_model_alias(word: &str) -> bool {
    let alias = part("alias");
    let words = alias.get("words").and_then(Value::as_array);
    words.is_some_and(|words| words.iter().any(|known| known.as_str() == Some(word)))
}

/// The model for which a word stands at a vendor.
#[must_use]
pub fn aliased_model(vendor: &str, word: &str) -> Option<String> {
    let model = part("alias").get(vendor)?.get(word)?.as_str()?.to_owned();
    Some(model)
}

/// True if `model` is this model or a dated edition of it.
fn is_edition(name: &str, model: &str) -> bool {
    let Some(rest) = model.strip_prefix(name) else { return false };
    let is_date =
        |date: &str| date.len() >= 8 && date.chars().all(|c| c.is_ascii_digit() || c == '-');
    rest.is_empty() || rest.strip_prefix('-').is_some_and(is_date)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_models_of_a_vendor_are_its_own() {
        let names = |vendor| models_of(vendor).into_iter().map(|model| model.name);
        assert!(names("anthropic").any(|name| name == "claude-sonnet-4-5"));
        assert!(names("anthropic").all(|name| name.starts_with("claude-")));
        assert!(names("openai").any(|name| name == "gpt-5"));
        assert!(names("openai-chat").any(|name| name == "gpt-5"));
        assert!(names("gemini").any(|name| name == "gemini-2.5-pro"));
        assert_eq!(names("nobody").count(), 0);
    }

    #[test]
    fn a_model_is_known_by_its_name_and_by_its_dated_editions() {
        let known = facts("claude-sonnet-4-5");
        assert_eq!((known.context, known.vision), (Some(200_000), Some(true)));
        assert_eq!(known.json_schema, Some(true));
        let prices = known.prices.unwrap();
        assert_eq!((prices.input, prices.output), (3_000_000, 15_000_000));
        assert_eq!((prices.cache_read, prices.cache_write), (Some(300_000), Some(3_750_000)));
        assert_eq!(facts("claude-sonnet-4-5-20250929"), known);
        for stranger in ["claude-sonnet-4-5-thinking", "gpt-5-mini", "gpt-5.4", "", "llama3"] {
            assert_eq!(facts(stranger), ModelFacts::default(), "{stranger}");
        }
    }

    #[test]
    fn words_stand_for_models_that_the_table_has() {
        for word in ["sonnet", "opus", "haiku"] {
            let model = aliased_model("anthropic", word).unwrap();
            assert!(is_model_alias(word) && facts(&model).context.is_some(), "{word}: {model}");
            assert_eq!(aliased_model("openai", word), None);
        }
        assert!(is_model_alias("inherit") && aliased_model("anthropic", "inherit").is_none());
        assert!(!is_model_alias("claude-sonnet-5-5") && !is_model_alias(""));
    }

    #[test]
    fn every_row_is_sound_and_names_a_source_with_its_date() {
        let sources = part("source");
        for (name, row) in part("model") {
            let source = sources[row["source"].as_str().unwrap()].as_table().unwrap();
            assert!(source.contains_key("page") && source.contains_key("read"));
            let facts = facts(&name);
            for field in row.as_table().unwrap().keys().filter(|field| *field != "source") {
                let known = match field.as_str() {
                    "context" => facts.context.is_some(),
                    "vision" => facts.vision.is_some(),
                    "json_schema" => facts.json_schema.is_some(),
                    "input" | "output" => facts.prices.is_some(),
                    "cache_read" => facts.prices.unwrap().cache_read.is_some(),
                    "cache_write" => facts.prices.unwrap().cache_write.is_some(),
                    _ => false,
                };
                assert!(known, "{name:?}: {field:?}");
            }
            assert_ne!(facts, ModelFacts::default(), "{name:?}");
        }
    }
}
