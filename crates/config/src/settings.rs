//! Layers put on top of each other: what each key holds in the end, and from where.

use crate::error::{ConfigError, Place};
use crate::keys::{FromProject, Key, Kind, Order};
use crate::origin::{Layer, Origin};
use crate::value::{Item, Value};
use crate::vendors::{VENDORS_OWN, Vendor};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// One key set by one layer.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// Which key.
    pub key: &'static Key,
    /// What it is set to.
    pub value: Value,
    /// Where.
    pub place: Place,
    /// By which layer.
    pub layer: Layer,
}

impl Entry {
    /// Where it came from, for people.
    pub(crate) fn origin(&self) -> Origin {
        Origin { layer: self.layer, file: self.place.file.clone(), line: self.place.line }
    }
}

/// What each key holds by now.
#[derive(Debug, Default)]
pub(crate) struct Settings(BTreeMap<&'static str, (Value, Origin)>);

impl Settings {
    /// Puts one layer's entry on top: lists grow, anything else is replaced.
    pub(crate) fn put(&mut self, entry: Entry) {
        let origin = entry.origin();
        match (entry.value, self.0.get_mut(entry.key.name)) {
            (Value::List(more), Some((Value::List(items), _))) => items.extend(more),
            (value, _) => {
                self.0.insert(entry.key.name, (value, origin));
            }
        }
    }

    /// Puts the vendor's own where nobody named another.
    pub(crate) fn put_vendor(&mut self, vendor: &Vendor) {
        for (key, own) in
            [("provider.base_url", Some(vendor.base_url)), ("provider.model", vendor.model)]
        {
            if let Some((Value::Text(text), _)) = self.0.get_mut(key)
                && let (true, Some(own)) = (text == VENDORS_OWN, own)
            {
                own.clone_into(text);
            }
        }
    }

    /// Whether the entry would make its key looser than it is now, equal, or tighter. `None` for
    /// keys that have no such order.
    pub(crate) fn tightness(&self, entry: &Entry) -> Option<Ordering> {
        let FromProject::Tighten(order) = entry.key.project else { return None };
        let (now, _) = self.0.get(entry.key.name)?;
        Some(rank(order, entry.key.kind, &entry.value).cmp(&rank(order, entry.key.kind, now)))
    }

    /// The text of a key.
    pub(crate) fn text(&self, key: &'static str) -> Result<&str, ConfigError> {
        match self.0.get(key) {
            Some((Value::Text(text), _)) => Ok(text),
            Some((Value::Number(_) | Value::List(_), _)) | None => {
                Err(ConfigError::Incomplete { key })
            }
        }
    }

    /// The number of a key.
    pub(crate) fn number(&self, key: &'static str) -> Result<u64, ConfigError> {
        match self.0.get(key) {
            Some((Value::Number(number), _)) => Ok(*number),
            Some((Value::Text(_) | Value::List(_), _)) | None => {
                Err(ConfigError::Incomplete { key })
            }
        }
    }

    /// The list of a key.
    pub(crate) fn list(&self, key: &'static str) -> Result<&[Item], ConfigError> {
        match self.0.get(key) {
            Some((Value::List(items), _)) => Ok(items),
            Some((Value::Text(_) | Value::Number(_), _)) | None => {
                Err(ConfigError::Incomplete { key })
            }
        }
    }

    /// What a key holds and from where.
    pub(crate) fn get(&self, key: &'static str) -> Result<(&Value, &Origin), ConfigError> {
        self.0
            .get(key)
            .map(|(value, origin)| (value, origin))
            .ok_or(ConfigError::Incomplete { key })
    }
}

/// A number that grows with tightness.
fn rank(order: Order, kind: Kind, value: &Value) -> u64 {
    match (order, value, kind) {
        (Order::LaterWord, Value::Text(text), Kind::Word(words)) => {
            words.iter().position(|word| word == text).map_or(0, |at| at as u64)
        }
        (Order::Smaller, Value::Number(number), _) => u64::MAX - number,
        (Order::SmallerButZero, Value::Number(0), _) => 0,
        (Order::SmallerButZero, Value::Number(number), _) => u64::MAX - number,
        (Order::LaterWord | Order::Smaller | Order::SmallerButZero, _, _) => 0,
    }
}
