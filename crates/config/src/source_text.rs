//! The text of one TOML file, and the places of its values.

use crate::error::{ConfigError, SourceLine};
use crate::origin::{Layer, ValueOrigin};
use crate::schema::{ListKind, ValueKind};
use crate::value::{self, ConfigValue, ListExample, ListItem, ValueError, kind_of};
use protocol::judgement::ExampleVerdict;
use std::ops::Range;
use std::str::Split;
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
    ends: Vec<usize>,
}

impl<'s> IndexedSource<'s> {
    pub(crate) fn of(source: FileSource<'s>) -> Self {
        let ends = source.text.match_indices('\n').map(|(at, _)| at).collect();
        Self { source, ends }
    }

    pub(crate) fn table<'a, 'b>(
        &self,
        name: &str,
        value: &'a Spanned<DeValue<'b>>,
    ) -> Result<&'a DeTable<'b>, ConfigError> {
        let wanted = || format!("a table, written [{name}]");
        value.get_ref().as_table().ok_or_else(|| self.unfit(name, value, wanted()))
    }

    /// The value of a key, or of a field of this kind.
    pub(crate) fn value(
        &self,
        name: &str,
        kind: ValueKind,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<ConfigValue, ConfigError> {
        let ValueKind::List(of) = kind else {
            return value::read(kind, value.get_ref()).map_err(|ValueError { found, wanted }| {
                self.bad(name, value.span(), found, wanted)
            });
        };
        let array = value.get_ref().as_array();
        let array = array.ok_or_else(|| self.unfit(name, value, value::wanted(kind)))?;
        let mut items = Vec::new();
        for element in array.iter() {
            let (element, examples) = match (of, element.get_ref()) {
                (ListKind::Rules, DeValue::Table(table)) => {
                    self.with_examples(name, element, table)?
                }
                (_, _) => (element, Vec::new()),
            };
            let text = self.text(name, kind, element)?;
            let line = self.place(&element.span()).line;
            let FileSource { layer, file, .. } = self.source;
            let origin = ValueOrigin { layer, file: file.into(), line };
            items.push(ListItem { text, origin, examples });
        }
        Ok(ConfigValue::List(items))
    }

    /// A value of a kind that is a text, or one element of a list.
    fn text(
        &self,
        name: &str,
        kind: ValueKind,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<String, ConfigError> {
        match value::read(kind, value.get_ref()) {
            Ok(ConfigValue::Text(text)) => Ok(text),
            Ok(ConfigValue::Number(_) | ConfigValue::List(_)) => {
                Err(self.unfit(name, value, value::wanted(kind)))
            }
            Err(ValueError { found, wanted }) => Err(self.bad(name, value.span(), found, wanted)),
        }
    }

    /// `{ rule = "…", fits = ["…"], not = ["…"] }`
    fn with_examples<'t, 'd>(
        &self,
        key: &str,
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
                    let hint = ". Beside a rule stand `rule`, `fits` and `not`";
                    return Err(self.unknown(word, other, hint));
                }
            };
            let bad = |value| {
                self.unfit(word.get_ref(), value, "a list of calls such as [\"cargo test\"]")
            };
            for call in value.get_ref().as_array().ok_or_else(|| bad(value))?.iter() {
                let what = call.get_ref().as_str().ok_or_else(|| bad(call))?.to_owned();
                examples.push(ListExample { said, what, line: self.place(&call.span()).line });
            }
        }
        let rule = rule.ok_or_else(|| self.unfit(key, element, "one with a `rule` in it"))?;
        Ok((rule, examples))
    }

    /// A key or a field that does not exist.
    pub(crate) fn unknown<T>(
        &self,
        word: &Spanned<T>,
        key: impl Into<String>,
        hint: impl Into<String>,
    ) -> ConfigError {
        ConfigError::UnknownKey {
            place: self.place(&word.span()),
            key: key.into(),
            hint: hint.into(),
        }
    }

    /// A value of another type than wanted.
    pub(crate) fn unfit(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        wanted: impl Into<String>,
    ) -> ConfigError {
        self.bad(key, value.span(), kind_of(value.get_ref()), wanted)
    }

    pub(crate) fn bad(
        &self,
        key: &str,
        span: Range<usize>,
        found: impl Into<String>,
        wanted: impl Into<String>,
    ) -> ConfigError {
        ConfigError::BadValue {
            place: self.place(&span),
            key: key.into(),
            found: found.into(),
            wanted: wanted.into(),
        }
    }

    /// The place of the value to which these names and numbers lead, as far as there are any.
    pub(crate) fn place_at(&self, way: &str) -> Option<SourceLine> {
        let table = DeTable::parse(self.source.text).ok()?.into_inner();
        Some(self.place(&span_at(0..0, &DeValue::Table(table), way.split('/'))))
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

/// The place of a value below this one, whose own is `span`. That of a table is its name.
fn span_at(span: Range<usize>, value: &DeValue<'_>, mut way: Split<'_, char>) -> Range<usize> {
    let below = match (value, way.next()) {
        (DeValue::Table(table), Some(name)) => table.get_key_value(name).map(|(name, value)| {
            let is_table = value.get_ref().is_table();
            (if is_table { name.span() } else { value.span() }, value)
        }),
        (DeValue::Array(all), Some(number)) => {
            let value = number.parse().ok().and_then(|at: usize| all.get(at));
            value.map(|value| (value.span(), value))
        }
        (_, _) => None,
    };
    match below {
        Some((span, value)) => span_at(span, value.get_ref(), way),
        None => span,
    }
}
