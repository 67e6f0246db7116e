//! Merges the layers: the final value of each key, and its origin.

use crate::error::{ConfigError, SourceLine};
use crate::origin::{Layer, ValueOrigin};
use crate::schema::{ConfigKey, Tightness, UntrustedMay, ValueKind};
use crate::value::ConfigValue;
use crate::vendors::{VENDORS_OWN, Vendor};
use protocol::judgement::PermissionMode;
use std::cmp::Ordering;
use std::collections::BTreeMap;

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
        Some(compare(order, entry.key.kind, &entry.value, now))
    }

    /// True if the current value is looser than the entry, in any way.
    pub(crate) fn is_looser_than(&self, entry: &SettingEntry) -> bool {
        let UntrustedMay::Tighten(order) = entry.key.project else { return false };
        let now = self.0.get(entry.key.name);
        now.is_some_and(|(now, _)| {
            compare(order, entry.key.kind, now, &entry.value) == Ordering::Less
        })
    }

    /// The text of a key.
    pub(crate) fn text(&self, key: &'static str) -> Result<&str, ConfigError> {
        self.get(key)?.0.text().ok_or(ConfigError::Incomplete { key })
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

/// A value beside another one: looser, equal or tighter. One that is tighter in one way and looser in another
/// counts as looser.
pub(crate) fn compare(
    order: Tightness,
    kind: ValueKind,
    value: &ConfigValue,
    other: &ConfigValue,
) -> Ordering {
    match (order, mode(value), mode(other)) {
        (Tightness::StricterMode, Some(value), Some(other)) if value == other => Ordering::Equal,
        (Tightness::StricterMode, Some(value), Some(other)) => match value.is_within(other) {
            true => Ordering::Greater,
            false => Ordering::Less,
        },
        (_, _, _) => rank(order, kind, value).cmp(&rank(order, kind, other)),
    }
}

fn mode(value: &ConfigValue) -> Option<PermissionMode> {
    PermissionMode::parse(value.text()?)
}

/// A number that grows with tightness.
fn rank(order: Tightness, kind: ValueKind, value: &ConfigValue) -> u64 {
    match (order, value, kind) {
        (Tightness::LaterWord, ConfigValue::Text(text), ValueKind::Word(words)) => {
            words.iter().position(|word| word == text).map_or(0, |at| at as u64)
        }
        (Tightness::Smaller, ConfigValue::Number(number), _) => u64::MAX - number,
        (Tightness::SmallerButZero, ConfigValue::Number(0), _) => 0,
        (Tightness::SmallerButZero, ConfigValue::Number(number), _) => u64::MAX - number,
        (
            Tightness::LaterWord
            | Tightness::StricterMode
            | Tightness::Smaller
            | Tightness::SmallerButZero,
            _,
            _,
        ) => 0,
    }
}
