//! Declares parts of the configuration: structs whose fields are keys, and how each field gets its value. `keys` has
//! the declarations.

use crate::error::{ABSOLUTE_PATH, ConfigError};
use crate::origin::Layer;
use crate::schema::ConfigKey;
use crate::settings::LayeredSettings;
use crate::sources::{Sources, key_path};
use crate::value::{ConfigValue, ListItem};
use crate::vendors::{NONE, ProviderName};
use protocol::hosts::HostRule;
use std::path::PathBuf;

/// The keys of a part of the configuration, and the struct that they are read into. `section!` implements it.
pub(crate) trait Section: Sized {
    /// Those with a field of its own.
    const KEYS: &'static [ConfigKey];

    /// The merged values.
    fn read(settings: &LayeredSettings, sources: &Sources) -> Result<Self, ConfigError>;
}

/// Declares a struct whose fields are configuration keys: `field: Type = key(name, default, kind, changes of a project),`
/// with the meaning of the key as its doc comment. `with` adds fields that are sections of their own. `of` reads into
/// a struct of another crate.
macro_rules! section {
    (
        $(#[$about:meta])+
        $vis:vis struct $name:ident {
            $($(#[doc = $meaning:literal])+
              $field:ident: $type:ty = key($key:literal, $default:tt, $kind:expr, $may:expr),)+
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
                $($(#[doc = $meaning])+ $field: $type = key($key, $default, $kind, $may),)+
            }
            $(with { $($part),+ })?
        }
    };
    (
        of $name:ident {
            $($(#[doc = $meaning:literal])+
              $field:ident: $type:ty = key($key:literal, $default:tt, $kind:expr, $may:expr),)+
        }
        $(with { $($part:ident),+ })?
    ) => {
        impl $crate::section::Section for $name {
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
                    $($field: $crate::section::field::<$type>($key, settings, sources)?,)+
                    $($($part: $crate::section::Section::read(settings, sources)?,)+)?
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
        impl $crate::section::Worded for $type {
            const WORDS: &'static [&'static str] = &[$($word),+];
            const VALUES: &'static [Self] = &[$($value),+];
        }
    };
}
pub(crate) use words;

/// The merged value of a key, as its field has it.
pub(crate) fn field<T: FieldType>(
    key: &'static str,
    settings: &LayeredSettings,
    sources: &Sources,
) -> Result<T, ConfigError> {
    let (value, _) = settings.get(key)?;
    let unmeant = |item: &&ListItem| directory(item, sources).is_none();
    T::of(value, sources).ok_or_else(|| {
        match value.items().and_then(|all| all.iter().find(unmeant)) {
            // Its text was sound when it was read, but it is no directory here.
            Some(ListItem { text, origin, .. }) => {
                ConfigError::unfit(origin, key, text, ABSOLUTE_PATH)
            }
            None => ConfigError::Incomplete { key },
        }
    })
}

/// The type of a key's field. A value was checked against the kind of its key when its source was read.
pub(crate) trait FieldType: Sized {
    fn of(value: &ConfigValue, sources: &Sources) -> Option<Self>;
}

impl FieldType for u64 {
    fn of(value: &ConfigValue, _: &Sources) -> Option<Self> {
        value.number()
    }
}

impl FieldType for u32 {
    fn of(value: &ConfigValue, _: &Sources) -> Option<Self> {
        value.number()?.try_into().ok()
    }
}

/// 0 is no bound.
impl FieldType for Option<u32> {
    fn of(value: &ConfigValue, sources: &Sources) -> Option<Self> {
        Some(Some(u32::of(value, sources)?).filter(|number| *number > 0))
    }
}

impl FieldType for String {
    fn of(value: &ConfigValue, _: &Sources) -> Option<Self> {
        value.text().map(str::to_owned)
    }
}

/// "none" is none.
impl FieldType for Option<String> {
    fn of(value: &ConfigValue, sources: &Sources) -> Option<Self> {
        Some(Some(String::of(value, sources)?).filter(|text| text != NONE))
    }
}

impl<T: Worded> FieldType for T {
    fn of(value: &ConfigValue, _: &Sources) -> Option<Self> {
        let text = value.text()?;
        let at = T::WORDS.iter().position(|word| *word == text)?;
        T::VALUES.get(at).copied()
    }
}

impl FieldType for ProviderName {
    fn of(value: &ConfigValue, _: &Sources) -> Option<Self> {
        Self::parse(value.text()?)
    }
}

impl FieldType for Vec<ListItem> {
    fn of(value: &ConfigValue, _: &Sources) -> Option<Self> {
        value.items().map(<[ListItem]>::to_vec)
    }
}

impl FieldType for Vec<String> {
    fn of(value: &ConfigValue, _: &Sources) -> Option<Self> {
        Some(value.items()?.iter().map(|item| item.text.clone()).collect())
    }
}

/// Each host once.
impl FieldType for Vec<HostRule> {
    fn of(value: &ConfigValue, _: &Sources) -> Option<Self> {
        let mut found = Self::new();
        for item in value.items()? {
            let rule = item.text.parse().ok()?;
            if !found.contains(&rule) {
                found.push(rule);
            }
        }
        Some(found)
    }
}

impl FieldType for Vec<PathBuf> {
    fn of(value: &ConfigValue, sources: &Sources) -> Option<Self> {
        value.items()?.iter().map(|item| directory(item, sources)).collect()
    }
}

/// An absolute directory: `~/` is the caller's home, and a project's file may say it relative to the project.
/// Elsewhere a relative path would mean another directory in every shell.
fn directory(item: &ListItem, sources: &Sources) -> Option<PathBuf> {
    let of_project = matches!(item.origin.layer, Layer::Project | Layer::Local);
    let relative = of_project && !item.text.starts_with("~/");
    key_path(&item.text, sources).or_else(|| relative.then(|| sources.project.join(&item.text)))
}
