//! Merges the layers: the final value of each key, and its origin. `section!` reads it into the field of the key.

use crate::error::{ABSOLUTE_PATH, ConfigError, SourceLine};
use crate::origin::{Layer, ValueOrigin};
use crate::schema::{ConfigKey, Tightness, UntrustedMay, ValueKind};
use crate::sources::{Sources, key_path};
use crate::value::{ConfigValue, ListItem};
use crate::vendors::{NONE, ProviderName, VENDORS_OWN, Vendor};
use protocol::hosts::HostRule;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// One key set by one layer.
#[derive(Debug, Clone)]
pub(crate) struct SettingEntry {
    /// Which key.
    pub key: &'static ConfigKey,
    /// The value.
    pub value: ConfigValue,
    /// Where.
    pub place: SourceLine,
    /// By which layer.
    pub layer: Layer,
}

impl SettingEntry {
    /// Its origin, for messages.
    pub(crate) fn origin(&self) -> ValueOrigin {
        ValueOrigin { layer: self.layer, file: self.place.file.clone(), line: self.place.line }
    }
}

/// The value of each key after the layers merged so far.
#[derive(Debug, Default)]
pub(crate) struct LayeredSettings(BTreeMap<&'static str, (ConfigValue, ValueOrigin)>);

impl LayeredSettings {
    /// Puts one layer's entry on top: lists grow, anything else is replaced.
    pub(crate) fn put(&mut self, entry: SettingEntry) {
        let origin = entry.origin();
        match (entry.value, self.0.get_mut(entry.key.name)) {
            (ConfigValue::List(more), Some((ConfigValue::List(items), _))) => items.extend(more),
            (value, _) => {
                self.0.insert(entry.key.name, (value, origin));
            }
        }
    }

    /// Fills in the vendor's own server and model where no layer set others.
    pub(crate) fn put_vendor(&mut self, vendor: &Vendor) {
        for (key, own) in
            [("provider.base_url", Some(vendor.base_url)), ("provider.model", vendor.model)]
        {
            if let Some((ConfigValue::Text(text), _)) = self.0.get_mut(key)
                && let (true, Some(own)) = (text == VENDORS_OWN, own)
            {
                own.clone_into(text);
            }
        }
    }

    /// Compares the entry with the current value: looser, equal or tighter. `None` for keys without
    /// such an order.
    pub(crate) fn tightness(&self, entry: &SettingEntry) -> Option<Ordering> {
        let UntrustedMay::Tighten(order) = entry.key.project else { return None };
        let (now, _) = self.0.get(entry.key.name)?;
        Some(rank(order, entry.key.kind, &entry.value).cmp(&rank(order, entry.key.kind, now)))
    }

    /// The text of a key.
    pub(crate) fn text(&self, key: &'static str) -> Result<&str, ConfigError> {
        let (ConfigValue::Text(text), _) = self.get(key)? else {
            return Err(ConfigError::Incomplete { key });
        };
        Ok(text)
    }

    /// The value of a key as its field has it.
    pub(crate) fn read<T: FieldType>(
        &self,
        key: &'static str,
        sources: &Sources,
    ) -> Result<T, ConfigError> {
        let (value, _) = self.get(key)?;
        T::of(&Setting { key, value, sources })
    }

    /// The value of a key and its origin.
    pub(crate) fn get(
        &self,
        key: &'static str,
    ) -> Result<(&ConfigValue, &ValueOrigin), ConfigError> {
        self.0
            .get(key)
            .map(|(value, origin)| (value, origin))
            .ok_or(ConfigError::Incomplete { key })
    }
}

/// The keys of a part of the configuration, and the struct that they are read into. `section!` implements it.
pub(crate) trait Section: Sized {
    /// Those with a field of its own.
    const KEYS: &'static [ConfigKey];

    /// The merged values.
    fn read(settings: &LayeredSettings, sources: &Sources) -> Result<Self, ConfigError>;
}

/// Declares a struct whose fields are configuration keys: `field: Type = "key", default, kind, changes of a project;`
/// with the meaning of the key as its doc comment. `with` adds fields that are sections of their own. `of` reads into
/// a struct of another crate.
macro_rules! section {
    (
        $(#[$about:meta])+
        $vis:vis struct $name:ident {
            $($(#[doc = $meaning:literal])+
              $field:ident: $type:ty = $key:literal, $default:tt, $kind:expr, $may:expr;)+
        }
        $(with { $($(#[$part_about:meta])+ $part:ident: $part_type:ty),+ })?
    ) => {
        $(#[$about])+
        $vis struct $name {
            $($(#[doc = $meaning])+ pub $field: $type,)+
            $($($(#[$part_about])+ pub $part: $part_type,)+)?
        }
        section! {
            of $name {
                $($(#[doc = $meaning])+ $field: $type = $key, $default, $kind, $may;)+
            }
            $(with { $($part),+ })?
        }
    };
    (
        of $name:ident {
            $($(#[doc = $meaning:literal])+
              $field:ident: $type:ty = $key:literal, $default:tt, $kind:expr, $may:expr;)+
        }
        $(with { $($part:ident),+ })?
    ) => {
        impl $crate::settings::Section for $name {
            const KEYS: &'static [$crate::schema::ConfigKey] = &[$($crate::schema::ConfigKey {
                name: $key,
                meaning: &[$($meaning),+],
                default: stringify!($default),
                kind: $kind,
                project: $may,
            }),+];

            fn read(
                settings: &$crate::settings::LayeredSettings,
                sources: &$crate::sources::Sources,
            ) -> Result<Self, $crate::error::ConfigError> {
                Ok(Self {
                    $($field: settings.read::<$type>($key, sources)?,)+
                    $($($part: $crate::settings::Section::read(settings, sources)?,)+)?
                })
            }
        }
    };
}
pub(crate) use section;

/// A type whose values are words in a file.
pub(crate) trait Worded: Copy + 'static {
    /// The words.
    const WORDS: &'static [&'static str];
    /// The value of each.
    const VALUES: &'static [Self];
}

/// The words of a type: `"word" => value`.
macro_rules! words {
    ($type:ty: $($word:literal => $value:expr),+) => {
        impl $crate::settings::Worded for $type {
            const WORDS: &'static [&'static str] = &[$($word),+];
            const VALUES: &'static [Self] = &[$($value),+];
        }
    };
}
pub(crate) use words;

/// The merged value of a key, with all that its field's type may need.
pub(crate) struct Setting<'a> {
    key: &'static str,
    value: &'a ConfigValue,
    sources: &'a Sources,
}

/// The type of a key's field. A value was checked against the kind of its key when its source was read.
pub(crate) trait FieldType: Sized {
    fn of(setting: &Setting<'_>) -> Result<Self, ConfigError>;
}

impl Setting<'_> {
    fn number(&self) -> Result<u64, ConfigError> {
        let ConfigValue::Number(number) = self.value else { return Err(self.incomplete()) };
        Ok(*number)
    }

    fn text(&self) -> Result<&str, ConfigError> {
        let ConfigValue::Text(text) = self.value else { return Err(self.incomplete()) };
        Ok(text)
    }

    fn list(&self) -> Result<&[ListItem], ConfigError> {
        let ConfigValue::List(items) = self.value else { return Err(self.incomplete()) };
        Ok(items)
    }

    fn incomplete(&self) -> ConfigError {
        ConfigError::Incomplete { key: self.key }
    }
}

impl FieldType for u64 {
    fn of(setting: &Setting<'_>) -> Result<Self, ConfigError> {
        setting.number()
    }
}

impl FieldType for u32 {
    fn of(setting: &Setting<'_>) -> Result<Self, ConfigError> {
        Self::try_from(setting.number()?).map_err(|_| setting.incomplete())
    }
}

/// 0 is no bound.
impl FieldType for Option<u32> {
    fn of(setting: &Setting<'_>) -> Result<Self, ConfigError> {
        Ok(Some(u32::of(setting)?).filter(|number| *number > 0))
    }
}

impl FieldType for String {
    fn of(setting: &Setting<'_>) -> Result<Self, ConfigError> {
        Ok(setting.text()?.to_owned())
    }
}

/// "none" is none.
impl FieldType for Option<String> {
    fn of(setting: &Setting<'_>) -> Result<Self, ConfigError> {
        Ok(Some(setting.text()?).filter(|text| *text != NONE).map(str::to_owned))
    }
}

impl<T: Worded> FieldType for T {
    fn of(setting: &Setting<'_>) -> Result<Self, ConfigError> {
        let text = setting.text()?;
        let mut named = T::WORDS.iter().zip(T::VALUES);
        let (_, value) =
            named.find(|(name, _)| **name == text).ok_or_else(|| setting.incomplete())?;
        Ok(*value)
    }
}

impl FieldType for ProviderName {
    fn of(setting: &Setting<'_>) -> Result<Self, ConfigError> {
        Self::parse(setting.text()?).ok_or_else(|| setting.incomplete())
    }
}

impl FieldType for Vec<ListItem> {
    fn of(setting: &Setting<'_>) -> Result<Self, ConfigError> {
        Ok(setting.list()?.to_vec())
    }
}

impl FieldType for Vec<String> {
    fn of(setting: &Setting<'_>) -> Result<Self, ConfigError> {
        Ok(setting.list()?.iter().map(|item| item.text.clone()).collect())
    }
}

/// Each host once.
impl FieldType for Vec<HostRule> {
    fn of(setting: &Setting<'_>) -> Result<Self, ConfigError> {
        let mut found = Self::new();
        for item in setting.list()? {
            let rule = item.text.parse().map_err(|_| setting.incomplete())?;
            if !found.contains(&rule) {
                found.push(rule);
            }
        }
        Ok(found)
    }
}

/// Absolute directories: `~/` is the caller's home, and a project's file may say it relative to the
/// project. Elsewhere a relative path would mean another directory in every shell.
impl FieldType for Vec<PathBuf> {
    fn of(setting: &Setting<'_>) -> Result<Self, ConfigError> {
        let absolute = |ListItem { text, origin, .. }: &ListItem| {
            let of_project = matches!(origin.layer, Layer::Project | Layer::Local);
            let found = key_path(text, setting.sources).or_else(|| {
                (of_project && !text.starts_with("~/")).then(|| setting.sources.project.join(text))
            });
            found.ok_or_else(|| ConfigError::unfit(origin, setting.key, text, ABSOLUTE_PATH))
        };
        setting.list()?.iter().map(absolute).collect()
    }
}

/// A number that grows with tightness.
pub(crate) fn rank(order: Tightness, kind: ValueKind, value: &ConfigValue) -> u64 {
    match (order, value, kind) {
        (Tightness::LaterWord, ConfigValue::Text(text), ValueKind::Word(words)) => {
            words.iter().position(|word| word == text).map_or(0, |at| at as u64)
        }
        (Tightness::Smaller, ConfigValue::Number(number), _) => u64::MAX - number,
        (Tightness::SmallerButZero, ConfigValue::Number(0), _) => 0,
        (Tightness::SmallerButZero, ConfigValue::Number(number), _) => u64::MAX - number,
        (Tightness::LaterWord | Tightness::Smaller | Tightness::SmallerButZero, _, _) => 0,
    }
}
