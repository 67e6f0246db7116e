//! Keys for hosts that commands reach through the proxy: the `[net.credentials."HOST"]` tables of the
//! person's own file, or of the administrator's.

use crate::did_you_mean::nearest;
use crate::error::{ConfigError, SourceLine};
use crate::keys::names_a_key;
use crate::origin::{Layer, ValueOrigin};
use crate::ownership::KeyFile;
use crate::source_text::{IndexedSource, kind_of};
use crate::sources::{Sources, key_path};
use crate::value::ValueError;
use protocol::hosts::{HostPort, HostRule};
use std::path::PathBuf;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The table that holds them.
pub(crate) const TABLE: &str = "net.credentials";
/// The fields of a table.
const FIELDS: [&str; 3] = ["key_file", "key_command", "user"];
/// Most of a session. Each is a descriptor that its client passes, and a program that it may start.
const CAP: usize = 32;

/// A key for one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialConfig {
    /// The host.
    pub host: HostPort,
    /// The user of `Basic`; without one the key is sent as `Bearer`.
    pub user: Option<String>,
    /// Where the key is.
    pub key: CredentialKey,
    /// The setting that names it.
    pub origin: ValueOrigin,
}

/// Where the key of a credential is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialKey {
    /// In a file that only its owner can read: an absolute path.
    File(PathBuf),
    /// The output of this shell command.
    Command(String),
}

/// A credential as written in a file.
#[derive(Debug, Clone)]
pub(crate) struct WrittenCredential {
    host: HostPort,
    user: Option<String>,
    key: (WrittenKey, SourceLine),
    place: SourceLine,
    layer: Layer,
}

#[derive(Debug, Clone)]
enum WrittenKey {
    File(String),
    Command(String),
}

/// Those of a file.
pub(crate) fn read(
    source: &IndexedSource<'_>,
    table: &DeTable<'_>,
) -> Result<Vec<WrittenCredential>, ConfigError> {
    let Some(net) = table.get("net") else { return Ok(Vec::new()) };
    let Some(all) = source.table("net", net)?.get("credentials") else { return Ok(Vec::new()) };
    let layer = source.source.layer;
    if matches!(layer, Layer::Project | Layer::Local) {
        return Err(ConfigError::Misplaced {
            place: source.place(&all.span()),
            key: TABLE.into(),
            reason:
                "a project's file would choose which of your keys a command uses; set it in your \
                     own configuration file"
                    .into(),
        });
    }
    let all = source.table(TABLE, all)?;
    all.iter().map(|(host, fields)| one(source, host, fields)).collect()
}

fn one(
    source: &IndexedSource<'_>,
    name: &Spanned<std::borrow::Cow<'_, str>>,
    fields: &Spanned<DeValue<'_>>,
) -> Result<WrittenCredential, ConfigError> {
    let path = format!("{TABLE}.{:?}", name.get_ref());
    let host = name.get_ref().parse::<HostPort>().map_err(|_| {
        let wanted = "one host, such as \"npm.example.org\" or \"npm.example.org:8443\"".into();
        source.bad(
            TABLE,
            &name.span(),
            ValueError { found: format!("{:?}", name.get_ref()), wanted },
        )
    })?;
    let (mut user, mut key) = (None, None);
    for (field, value) in source.table(&path, fields)? {
        let at = format!("{path}.{}", field.get_ref());
        if !FIELDS.contains(&field.get_ref().as_ref()) {
            return Err(ConfigError::UnknownKey {
                place: source.place(&field.span()),
                hint: hint(field.get_ref()),
                key: at,
            });
        }
        let text = text(value.get_ref()).ok_or_else(|| {
            let wanted = "one line of text".into();
            source.bad(
                &at,
                &value.span(),
                ValueError { found: kind_of(value.get_ref()).into(), wanted },
            )
        })?;
        let place = source.place(&field.span());
        let said = match field.get_ref().as_ref() {
            "user" if text.contains(':') => {
                let wanted = "a name without a colon, which would end it".into();
                let unfit = ValueError { found: format!("{text:?}"), wanted };
                return Err(source.bad(&at, &value.span(), unfit));
            }
            "user" => {
                user = Some(text);
                continue;
            }
            "key_file" => WrittenKey::File(text),
            _ => WrittenKey::Command(text),
        };
        if key.replace((said, place)).is_some() {
            let wanted = "left out: a key has one source, key_file or key_command".into();
            let unfit = ValueError { found: "a second source of the key".into(), wanted };
            return Err(source.bad(&at, &value.span(), unfit));
        }
    }
    let key = key.ok_or_else(|| {
        let wanted = "one with key_file or key_command in it".into();
        source.bad(
            &path,
            &name.span(),
            ValueError { found: "a table without a key".into(), wanted },
        )
    })?;
    let (place, layer) = (source.place(&name.span()), source.source.layer);
    Ok(WrittenCredential { host, user, key, place, layer })
}

fn hint(field: &str) -> String {
    if names_a_key(field) {
        return ": a configuration never holds a key. Name a file or a command that has it in key_file or \
                key_command"
            .into();
    }
    match nearest(field, FIELDS) {
        Some(meant) => format!("; did you mean `{meant}`?"),
        None => ". A credential has key_file or key_command, and user".into(),
    }
}

fn text(value: &DeValue<'_>) -> Option<String> {
    let DeValue::String(text) = value else { return None };
    let fits = !text.trim().is_empty() && text.len() <= 4096 && !text.contains(char::is_control);
    fits.then(|| text.to_string())
}

/// The credentials in force: for one host, the later of two.
pub(crate) fn all(
    written: Vec<WrittenCredential>,
    sources: &Sources,
) -> Result<Vec<CredentialConfig>, ConfigError> {
    let mut found: Vec<CredentialConfig> = Vec::new();
    for WrittenCredential { host, user, key: (key, at), place, layer } in written {
        let key = match key {
            WrittenKey::Command(line) => CredentialKey::Command(line),
            WrittenKey::File(path) => {
                CredentialKey::File(key_path(&path, sources).ok_or_else(|| {
                    ConfigError::BadValue {
                        place: at,
                        key: format!("{TABLE}.\"{host}\".key_file"),
                        found: format!("{path:?}"),
                        wanted: "an absolute path, or one that begins with ~/ where HOME is set"
                            .into(),
                    }
                })?)
            }
        };
        let origin = ValueOrigin { layer, file: place.file.clone(), line: place.line };
        found.retain(|other| other.host != host);
        if found.len() == CAP {
            return Err(ConfigError::BadValue {
                place,
                key: TABLE.into(),
                found: format!("more than {CAP} hosts"),
                wanted: format!("a table of at most {CAP} hosts"),
            });
        }
        found.push(CredentialConfig { host, user, key, origin });
    }
    Ok(found)
}

impl CredentialConfig {
    /// True if these rules of an allow-list include its host. Otherwise its key is not used.
    #[must_use]
    pub fn is_listed(&self, hosts: &[HostRule]) -> bool {
        hosts.iter().any(|rule| rule.admits(&self.host.name, self.host.port))
    }

    /// As a file would say it; the key itself is nowhere in it.
    pub(crate) fn in_words(&self) -> String {
        let key = match &self.key {
            CredentialKey::File(path) => format!("key_file = {path:?}"),
            CredentialKey::Command(line) => format!("key_command = {line:?}"),
        };
        let user = self.user.as_ref().map(|user| format!(", user = {user:?}"));
        format!("\"{}\" = {{ {key}{} }}", self.host, user.unwrap_or_default())
    }

    /// Its key's file, which no call may read.
    pub(crate) fn file(&self, withheld: Option<PathBuf>) -> Option<KeyFile> {
        match &self.key {
            CredentialKey::File(path) => Some(KeyFile {
                path: path.clone(),
                setting: format!("{TABLE}.\"{}\".key_file", self.host),
                origin: self.origin.clone(),
                withheld,
            }),
            CredentialKey::Command(_) => None,
        }
    }
}
