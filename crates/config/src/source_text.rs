//! The text of one TOML file, and the places of its values.

use crate::error::{ConfigError, SourceLine};
use crate::origin::{Layer, ValueOrigin};
use crate::schema::{ConfigKey, ListKind, ValueKind};
use crate::value::{self, ConfigValue, ListExample, ListItem, RawValue, ValueError};
use protocol::judgement::ExampleVerdict;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A file's text, its name and its layer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileSource<'a> {
    /// Which layer.
    pub layer: Layer,
    /// As shown in errors and origins.
    pub file: &'a str,
    /// The text.
    pub text: &'a str,
}

/// A source with the places of its line breaks, so that each of many rules finds its line at once.
pub(crate) struct IndexedSource<'a> {
    pub(crate) source: FileSource<'a>,
    pub(crate) ends: Vec<usize>,
}

impl IndexedSource<'_> {
    pub(crate) fn table<'a, 'b>(
        &self,
        name: &str,
        value: &'a Spanned<DeValue<'b>>,
    ) -> Result<&'a DeTable<'b>, ConfigError> {
        value.get_ref().as_table().ok_or_else(|| {
            let found = kind_of(value.get_ref()).into();
            let unfit = ValueError { found, wanted: format!("a table, written [{name}]") };
            self.bad(name, &value.span(), unfit)
        })
    }

    pub(crate) fn value(
        &self,
        key: &'static ConfigKey,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<ConfigValue, ConfigError> {
        let ValueKind::List(kind) = key.kind else {
            return value::read(key, &raw(value.get_ref()))
                .map_err(|unfit| self.bad(key.name, &value.span(), unfit));
        };
        let Some(array) = value.get_ref().as_array() else {
            let found = kind_of(value.get_ref()).into();
            let unfit = ValueError { found, wanted: value::wanted(key.kind) };
            return Err(self.bad(key.name, &value.span(), unfit));
        };
        let mut items = Vec::new();
        for element in array.iter() {
            let (element, examples) = match (kind, element.get_ref()) {
                (ListKind::Rules, DeValue::Table(table)) => {
                    self.with_examples(key, element, table)?
                }
                (_, _) => (element, Vec::new()),
            };
            match value::read(key, &raw(element.get_ref())) {
                Ok(ConfigValue::Text(text)) => {
                    let line = self.place(&element.span()).line;
                    items.push(ListItem {
                        text,
                        origin: ValueOrigin {
                            layer: self.source.layer,
                            file: self.source.file.into(),
                            line,
                        },
                        examples,
                    });
                }
                Ok(ConfigValue::Number(_) | ConfigValue::List(_)) => {}
                Err(unfit) => return Err(self.bad(key.name, &element.span(), unfit)),
            }
        }
        Ok(ConfigValue::List(items))
    }

    /// `{ rule = "…", fits = ["…"], not = ["…"] }`
    fn with_examples<'t, 'd>(
        &self,
        key: &'static ConfigKey,
        element: &Spanned<DeValue<'d>>,
        table: &'t DeTable<'d>,
    ) -> Result<(&'t Spanned<DeValue<'d>>, Vec<ListExample>), ConfigError> {
        let mut rule = None;
        let mut examples = Vec::new();
        for (word, value) in table {
            let said = match word.get_ref().as_ref() {
                "rule" => {
                    rule = Some(value);
                    continue;
                }
                "fits" => ExampleVerdict::Fits,
                "not" => ExampleVerdict::Not,
                other => {
                    return Err(ConfigError::UnknownKey {
                        place: self.place(&word.span()),
                        key: other.into(),
                        hint: ". Beside a rule stand `rule`, `fits` and `not`".into(),
                    });
                }
            };
            let unfit = |value: &DeValue<'_>| ValueError {
                found: kind_of(value).into(),
                wanted: "a list of calls such as [\"cargo test\"]".into(),
            };
            let bad = |value: &Spanned<DeValue<'_>>| {
                self.bad(word.get_ref(), &value.span(), unfit(value.get_ref()))
            };
            let calls = value.get_ref().as_array().ok_or_else(|| bad(value))?;
            for call in calls.iter() {
                let what = call.get_ref().as_str().ok_or_else(|| bad(call))?.to_owned();
                examples.push(ListExample { said, what, line: self.place(&call.span()).line });
            }
        }
        let rule = rule.ok_or_else(|| {
            let wanted = "one with a `rule` in it".into();
            self.bad(key.name, &element.span(), ValueError { found: "a table".into(), wanted })
        })?;
        Ok((rule, examples))
    }

    pub(crate) fn bad(&self, key: &str, span: &Range<usize>, unfit: ValueError) -> ConfigError {
        ConfigError::BadValue {
            place: self.place(span),
            key: key.into(),
            found: unfit.found,
            wanted: unfit.wanted,
        }
    }

    pub(crate) fn place(&self, span: &Range<usize>) -> SourceLine {
        let above = self.ends.partition_point(|end| *end < span.start);
        let begin = above.checked_sub(1).map_or(0, |last| self.ends[last] + 1);
        let before = self.source.text.get(begin..span.start).unwrap_or_default();
        let narrow = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        SourceLine {
            file: self.source.file.into(),
            line: narrow(above + 1),
            column: narrow(before.chars().count() + 1),
        }
    }
}

fn raw<'a>(value: &'a DeValue<'_>) -> RawValue<'a> {
    match value {
        DeValue::String(text) => RawValue::Text(text),
        DeValue::Integer(number) => i128::from_str_radix(number.as_str(), number.radix())
            .map_or(RawValue::Other("a number too large"), RawValue::Number),
        DeValue::Boolean(on) => RawValue::Switch(*on),
        DeValue::Float(_) | DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => {
            RawValue::Other(kind_of(value))
        }
    }
}

pub(crate) fn kind_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
