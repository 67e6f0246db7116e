//! The administrator's limits: values of the managed file that no other layer, flag or session command
//! may loosen.

use crate::error::ConfigError;
use crate::keys;
use crate::origin::ValueOrigin;
use crate::schema::UntrustedMay;
use crate::settings::{SettingEntry, compare};
use crate::value::ConfigValue;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Values of the managed file for keys that can be tightened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ManagedLimits(BTreeMap<&'static str, (ConfigValue, ValueOrigin)>);

impl ManagedLimits {
    pub(crate) fn of(entries: &[SettingEntry]) -> Self {
        let tightens = |entry: &&SettingEntry| match entry.key.project {
            UntrustedMay::Tighten(_) => true,
            UntrustedMay::Anything | UntrustedMay::Nothing | UntrustedMay::Misplaced(_) => false,
        };
        let limit = |entry: &SettingEntry| (entry.key.name, (entry.value.clone(), entry.origin()));
        Self(entries.iter().filter(tightens).map(limit).collect())
    }

    /// Checks that a word is not looser than the administrator's value of this key.
    ///
    /// # Errors
    /// [`ConfigError::Managed`], which names the file and the line.
    pub fn check(&self, key: &str, word: &str) -> Result<(), ConfigError> {
        self.check_value(key, &ConfigValue::Text(word.to_owned()))
    }

    pub(crate) fn check_value(&self, name: &str, value: &ConfigValue) -> Result<(), ConfigError> {
        let (Some(key), Some((limit, origin))) = (keys::find(name), self.0.get(name)) else {
            return Ok(());
        };
        let UntrustedMay::Tighten(order) = key.project else { return Ok(()) };
        if compare(order, key.kind, value, limit) != Ordering::Less {
            return Ok(());
        }
        Err(ConfigError::Managed {
            key: key.name,
            found: value.written(key.kind),
            limit: limit.written(key.kind),
            origin: origin.clone(),
        })
    }
}
