//! Built-in facts about models: the table in `config/models.toml`.

use protocol::client::{ImageLimits, ModelFacts, Prices};
use toml::de::{DeTable, DeValue};

/// The table's text.
const TABLE: &str = include_str!("../../../config/models.toml");

/// The facts about a model by its vendor's name; empty for a model that is not in the table.
#[must_use]
pub fn facts(model: &str) -> ModelFacts {
    let Ok(table) = DeTable::parse(TABLE) else { return ModelFacts::default() };
    let models = table.get_ref().get("model").and_then(|models| models.get_ref().as_table());
    let found = models.and_then(|models| {
        models.iter().find(|(name, _)| is_edition(name.get_ref(), model))?.1.get_ref().as_table()
    });
    found.map_or_else(ModelFacts::default, |row| ModelFacts {
        context: row.get("context").and_then(|value| whole(value.get_ref())),
        prices: prices(row),
        vision: row.get("vision").and_then(|value| value.get_ref().as_bool()),
        json_schema: row.get("json_schema").and_then(|value| value.get_ref().as_bool()),
        images: ImageLimits::default(),
    })
}

/// True for a word that stands for a model in files for agents and commands.
#[must_use]
pub fn is_model_alias(word: &str) -> bool {
    let Ok(table) = DeTable::parse(TABLE) else { return false };
    let words = field(table.get_ref(), "alias").and_then(|alias| alias.get("words"));
    let mut words = words.and_then(|words| words.get_ref().as_array()).into_iter().flatten();
    words.any(|known| matches!(known.get_ref(), DeValue::String(known) if **known == *word))
}

/// The model for which a word stands at a vendor.
#[must_use]
pub fn aliased_model(vendor: &str, word: &str) -> Option<String> {
    let table = DeTable::parse(TABLE).ok()?;
    let alias = field(table.get_ref(), "alias").and_then(|alias| field(alias, vendor))?;
    match alias.get(word)?.get_ref() {
        DeValue::String(model) => Some(model.to_string()),
        DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_)
        | DeValue::Array(_)
        | DeValue::Table(_) => None,
    }
}

fn field<'a, 'b>(table: &'a DeTable<'b>, name: &str) -> Option<&'a DeTable<'b>> {
    table.get(name)?.get_ref().as_table()
}

/// Prices from a table; none where reading and writing are not both priced.
pub(crate) fn prices(row: &DeTable<'_>) -> Option<Prices> {
    let price = |name: &str| row.get(name).and_then(|value| micros(value.get_ref()));
    Some(Prices {
        input: price("input")?,
        output: price("output")?,
        cache_read: price("cache_read"),
        cache_write: price("cache_write"),
    })
}

/// A whole number.
pub(crate) fn whole(value: &DeValue<'_>) -> Option<u64> {
    let DeValue::Integer(number) = value else { return None };
    u64::from_str_radix(number.as_str(), number.radix()).ok()
}

/// An amount of dollars in millionths.
pub(crate) fn micros(value: &DeValue<'_>) -> Option<u64> {
    let dollars: f64 = match value {
        DeValue::Float(number) => number.as_str().parse().ok()?,
        DeValue::Integer(number) => number.as_str().parse().ok()?,
        DeValue::String(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_)
        | DeValue::Array(_)
        | DeValue::Table(_) => return None,
    };
    (0.0..1e6).contains(&dollars).then(|| (dollars * 1e6).round() as u64)
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
        let table = DeTable::parse(TABLE).unwrap();
        let section =
            |name: &str| table.get_ref().get(name).unwrap().get_ref().as_table().unwrap().clone();
        let sources = section("source");
        for (name, row) in section("model") {
            let row = row.get_ref().as_table().unwrap();
            let DeValue::String(source) = row.get("source").unwrap().get_ref() else { panic!() };
            let source = sources.get(source.as_ref()).unwrap_or_else(|| panic!("{name:?}"));
            let source = source.get_ref().as_table().unwrap();
            assert!(source.contains_key("page") && source.contains_key("read"));
            for (field, value) in row.iter().filter(|(field, _)| field.get_ref() != "source") {
                let known = match field.get_ref().as_ref() {
                    "context" => whole(value.get_ref()).is_some(),
                    "vision" | "json_schema" => value.get_ref().as_bool().is_some(),
                    "input" | "output" | "cache_read" | "cache_write" => {
                        micros(value.get_ref()).is_some()
                    }
                    _ => false,
                };
                assert!(known, "{name:?}: {field:?}");
            }
            assert_ne!(facts(name.get_ref()), ModelFacts::default(), "{name:?}");
        }
    }
}
