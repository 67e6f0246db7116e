//! Keys for hosts that commands reach through the proxy: the `[net.credentials."HOST"]` tables of the
//! person's own file, or of the administrator's.

use crate::error::{ABSOLUTE_PATH, ConfigError, SourceLine};
use crate::keys::names_a_key;
use crate::origin::{Layer, ValueOrigin};
use crate::ownership::KeyFile;
use crate::schema::ValueKind;
use crate::source_text::IndexedSource;
use crate::sources::{Sources, key_path};
use crate::value;
use protocol::did_you_mean::nearest;
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

/// A credential as written in a file: its key's file may begin with `~/`.
#[derive(Debug, Clone)]
pub(crate) struct WrittenCredential {
    host: HostPort,
    user: Option<String>,
    key: CredentialKey,
    /// Of the host and of the key.
    places: [SourceLine; 2],
    layer: Layer,
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
        let wanted = "one host, such as \"npm.example.org\" or \"npm.example.org:8443\"";
        source.bad(TABLE, name.span(), format!("{:?}", name.get_ref()), wanted)
    })?;
    let (mut user, mut key) = (None, None);
    for (field, value) in source.table(&path, fields)? {
        let at = format!("{path}.{}", field.get_ref());
        if !FIELDS.contains(&field.get_ref().as_ref()) {
            return Err(source.unknown(field, at, hint(field.get_ref())));
        }
        // A text that does not fit is not shown: it may be the key itself.
        let text = value::read(ValueKind::Name, value.get_ref()).ok();
        let text = text.and_then(|text| text.text().map(str::to_owned));
        let text = text.ok_or_else(|| source.unfit(&at, value, value::wanted(ValueKind::Name)))?;
        let said = match field.get_ref().as_ref() {
            "user" if text.contains(':') => {
                let wanted = "a name without a colon, which would end it";
                return Err(source.bad(&at, value.span(), format!("{text:?}"), wanted));
            }
            "user" => {
                user = Some(text);
                continue;
            }
            "key_file" => CredentialKey::File(text.into()),
            _ => CredentialKey::Command(text),
        };
        if key.replace((said, source.place(&field.span()))).is_some() {
            let wanted = "left out: a key has one source, key_file or key_command";
            return Err(source.bad(&at, value.span(), "a second source of the key", wanted));
        }
    }
    let (key, place) = key.ok_or_else(|| {
        let wanted = "one with key_file or key_command in it";
        source.bad(&path, name.span(), "a table without a key", wanted)
    })?;
    let places = [source.place(&name.span()), place];
    Ok(WrittenCredential { host, user, key, places, layer: source.source.layer })
}

fn hint(field: &str) -> String {
    if names_a_key(field) {
        return ": a configuration never holds a key. Name a file or a command that has it in key_file or \
                key_command"
            .into();
    }
    match nearest(field, FIELDS).first() {
        Some(meant) => format!("; did you mean `{meant}`?"),
        None => ". A credential has key_file or key_command, and user".into(),
    }
}

/// The credentials in force: for one host, the later of two.
pub(crate) fn all(
    written: Vec<WrittenCredential>,
    sources: &Sources,
) -> Result<Vec<CredentialConfig>, ConfigError> {
    let mut found: Vec<CredentialConfig> = Vec::new();
    for WrittenCredential { host, user, mut key, places: [place, at], layer } in written {
        if let CredentialKey::File(path) = &mut key {
            let written = path.to_string_lossy().into_owned();
            *path = key_path(&written, sources).ok_or_else(|| ConfigError::BadValue {
                place: at,
                key: format!("{TABLE}.\"{host}\".key_file"),
                found: format!("{written:?}"),
                wanted: ABSOLUTE_PATH.into(),
            })?;
        }
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
