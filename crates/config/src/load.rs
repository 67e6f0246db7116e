//! The story of loading: layer by layer, the lowest first.

use crate::config::{Config, ConfigRow};
use crate::credentials;
use crate::dirs::project_rules_beside;
use crate::error::{ConfigError, SourceLine};
use crate::file_text::read_text;
use crate::keys;
use crate::load_hooks::CollectedHooks;
use crate::load_servers::CollectedServers;
use crate::managed::ManagedLimits;
use crate::mcp::HANDED_SERVERS;
use crate::model_catalog;
use crate::models::{self, NamedModel};
use crate::origin::{Layer, ValueOrigin};
use crate::ownership::{KeyFile, user_file_is_own};
use crate::project::{self, FileTrust};
use crate::project_trust::project_trust;
use crate::settings::{LayeredSettings, SettingEntry};
use crate::source_text::FileSource;
use crate::sources::{Sources, Trust, key_path};
use crate::text::{self, Entries};
use crate::value::ConfigValue;
use crate::variables;
use crate::vendors::{NONE, ProviderName, Vendor};
use crate::warning::ConfigWarning;
use std::cmp::Ordering;
use std::path::Path;

/// The administrator's file.
pub const MANAGED_FILE: &str = "/etc/agentd/config.toml";
/// The project's file, relative to the project.
pub const PROJECT_FILE: &str = ".agentd/config.toml";
/// The project's file that is not shared, relative to the project.
pub const PROJECT_LOCAL_FILE: &str = ".agentd/config.local.toml";
const KEY_FILE: &str = "provider.key_file";

impl Config {
    /// Reads all layers. The only IO is reading the files that `sources` names.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn load(sources: &Sources) -> Result<Self, ConfigError> {
        let mut settings = LayeredSettings::default();
        let mut warnings = Vec::new();
        let built_in =
            FileSource { layer: Layer::BuiltIn, file: "built-in", text: &keys::defaults() };
        put_all(text::entries(&built_in)?.entries, &mut settings);

        let (managed, _) = file_entries(&sources.managed, Layer::Managed, &mut warnings)?;
        let (mut named, mut written) = (managed.models, managed.credentials);
        let mut hooks = CollectedHooks::default();
        hooks.add(managed.hooks, FileTrust::Trusted);
        let mut servers = CollectedServers::default();
        servers.add(managed.servers, FileTrust::Trusted);
        let managed = managed.entries;
        let limits = ManagedLimits::of(&managed);
        put_all(managed.clone(), &mut settings);
        let of_project =
            sources.user.as_ref().map(|user| project_rules_beside(user, &sources.project));
        for user in sources.user.iter().chain(&of_project) {
            user_file_is_own(user, [&sources.project])?;
            let (user, _) = file_entries(user, Layer::User, &mut warnings)?;
            named.extend(user.models);
            written.extend(user.credentials);
            hooks.add(user.hooks, FileTrust::Trusted);
            servers.add(user.servers, FileTrust::Trusted);
            put_all(user.entries, &mut settings);
        }
        let mut file_trusts = Vec::new();
        for (name, layer) in [(PROJECT_FILE, Layer::Project), (PROJECT_LOCAL_FILE, Layer::Local)] {
            let path = sources.project.join(name);
            let (file, content) = file_entries(&path, layer, &mut warnings)?;
            let file_trust = project_trust(&sources.trust, &path, &content, &mut warnings);
            if sources.trust == Trust::Trusted || !content.is_empty() {
                file_trusts.push(file_trust);
            }
            hooks.add(file.hooks, file_trust);
            servers.add(file.servers, file_trust);
            project::put_project(file.entries, file_trust, &mut settings, &mut warnings)?;
            named.extend(project::models(file.models, file_trust, &mut warnings));
        }
        let model = models::chosen(&named, &sources.flags, &settings)?.cloned();
        if model.is_none()
            && let Some(config) = Self::without_alias(sources)?
        {
            return Ok(config);
        }
        if let Some(model) = &model {
            models::put(model, &mut settings)?;
        }
        let vendor = vendor(sources, &settings)?;
        settings.put_vendor(vendor);
        put_environment(sources, vendor, &mut settings, &mut warnings)?;
        servers.add_handed(&sources.flags)?;
        let flags: Vec<_> =
            sources.flags.iter().filter(|(key, _)| key != HANDED_SERVERS).cloned().collect();
        let flags = variables::from_flags(&flags)?;
        for flag in &flags {
            limits.check_value(flag.key.name, &flag.value)?;
        }
        put_all(flags, &mut settings);
        if let Some(model) = &model {
            same_provider(model, &sources.flags)?;
            let replay = settings.text("provider.name")? == "replay";
            let entries = model.entries.iter().filter(|e| !replay || e.key.name != "provider.name");
            put_all(entries.cloned().collect(), &mut settings);
        }
        put_ceilings(managed, &mut settings, &mut warnings)?;
        hooks.add_claude(&settings, sources)?;
        servers.add_project(sources)?;
        let plugins = hooks.add_plugins(&settings, sources, &mut servers)?;
        let extras = model.map(|model| model.extras).unwrap_or_default();
        let mut config = Self::from_settings(&settings, extras, sources, warnings)?;
        config.provider.models = models::known(&named, &config.provider);
        config.managed = limits;
        config.plugins = plugins;
        config.credentials = credentials::all(written, sources)?;
        config.rows.extend(config.credentials.iter().map(|credential| ConfigRow {
            key: credentials::TABLE,
            value: credential.in_words(),
            origin: credential.origin.clone(),
        }));
        let user = sources.user.as_deref().and_then(Path::parent).map(Path::to_owned);
        let of_hosts = config.credentials.iter().filter_map(|one| one.file(user.clone()));
        config.key_files = key_files(&settings, &named, sources)?;
        config.key_files.extend(of_hosts);
        config.key_files_are_apart([&sources.project].into_iter().chain(&config.tools.add_dirs))?;
        // Each file must be trusted: another may have changed since.
        let trusted = |file_trust| file_trust == FileTrust::Trusted;
        config.project_is_trusted = !file_trusts.is_empty() && file_trusts.into_iter().all(trusted);
        if !config.project_is_trusted {
            config.verify.untrusted = std::mem::take(&mut config.verify.commands);
            config.format.untrusted = std::mem::take(&mut config.format.commands);
        }
        hooks.put_into(&mut config);
        servers.put_into(&mut config);
        Ok(config)
    }
}

impl Config {
    /// The configuration without the last flag for the model, where that is a word which stands for no model of this
    /// provider: the model is then as without it.
    fn without_alias(sources: &Sources) -> Result<Option<Self>, ConfigError> {
        let at = sources.flags.iter().rposition(|(key, _)| key == "provider.model");
        let Some(at) = at.filter(|at| model_catalog::is_model_alias(&sources.flags[*at].1)) else {
            return Ok(None);
        };
        let mut others = sources.clone();
        let (key, word) = others.flags.remove(at);
        let mut config = Self::load(&others)?;
        let provider = config.provider.name.vendor().name;
        let stands = model_catalog::aliased_model(provider, &word).is_some();
        if stands && config.provider.table.is_none() {
            return Ok(None);
        }
        if word != "inherit" {
            let (layer, file) = (Layer::Flag, "flag".to_owned());
            let text = format!(
                "is {word:?}, which stands for no model of the provider {provider}: the model stays as it is. A table \
                 `[models.{word}]` gives the word a model"
            );
            config.warnings.push(ConfigWarning {
                origin: ValueOrigin { layer, file, line: 0 },
                key,
                text,
            });
        }
        Ok(Some(config))
    }
}

fn put_all(entries: Vec<SettingEntry>, settings: &mut LayeredSettings) {
    for entry in entries {
        settings.put(entry);
    }
}

/// The file of the key in use, and those of models that may be chosen later.
fn key_files(
    settings: &LayeredSettings,
    named: &[NamedModel],
    sources: &Sources,
) -> Result<Vec<KeyFile>, ConfigError> {
    let (used, origin) = settings.get(KEY_FILE)?;
    let of_models = named.iter().flat_map(|model| &model.entries);
    let of_models = of_models.filter(|entry| entry.key.name == KEY_FILE);
    let all = of_models.map(|entry| (&entry.value, entry.origin()));
    let user = sources.user.as_deref().and_then(Path::parent);
    let file = |(value, origin): (&ConfigValue, ValueOrigin)| {
        let path = key_path(value.text().filter(|text| *text != NONE)?, sources)?;
        let (setting, withheld) = (KEY_FILE.to_owned(), user.map(Path::to_owned));
        Some(KeyFile { path, setting, origin, withheld })
    };
    Ok([(used, origin.clone())].into_iter().chain(all).filter_map(file).collect())
}

/// The vendor in use, which determines the variables to read: from a flag, else from the files.
fn vendor(sources: &Sources, settings: &LayeredSettings) -> Result<&'static Vendor, ConfigError> {
    let flag = sources.flags.iter().rev().find(|(key, _)| key == "provider.name");
    let word = match flag {
        Some((_, word)) => word,
        None => settings.text("provider.name")?,
    };
    // A flag's bad word is refused with its place when flags are read.
    Ok(ProviderName::parse(word).unwrap_or(ProviderName::Replay).vendor())
}

/// A flag that names another provider than the model's is a slip.
fn same_provider(model: &NamedModel, flags: &[(String, String)]) -> Result<(), ConfigError> {
    let own = model.entries.iter().find(|entry| entry.key.name == "provider.name");
    let flag = flags.iter().rev().find(|(key, _)| key == "provider.name");
    match (own.and_then(|entry| entry.value.text()), flag) {
        (Some(own), Some((_, said))) if own != said && said != "replay" => {
            Err(ConfigError::BadValue {
                place: SourceLine { file: "flag".into(), line: 0, column: 0 },
                key: "provider.name".into(),
                found: format!("{said:?}"),
                wanted: format!("{own:?}, which the model `{}` is of, or left out", model.name),
            })
        }
        (Some(_) | None, _) => Ok(()),
    }
}

fn put_environment(
    sources: &Sources,
    vendor: &Vendor,
    settings: &mut LayeredSettings,
    warnings: &mut Vec<ConfigWarning>,
) -> Result<(), ConfigError> {
    for entry in variables::from_environment(&sources.environment, vendor, warnings)? {
        // The tier's variable can only lower: it is for tests and for hosts that namespaces disturb.
        let raises_tier = entry.key.name == "sandbox.tier"
            && settings.tightness(&entry) == Some(Ordering::Greater);
        if !raises_tier {
            settings.put(entry);
        }
    }
    Ok(())
}

/// Values of the managed file override all layers where they are tighter. Its rules need no step
/// here: rules of all layers are added to each other.
fn put_ceilings(
    managed: Vec<SettingEntry>,
    settings: &mut LayeredSettings,
    warnings: &mut Vec<ConfigWarning>,
) -> Result<(), ConfigError> {
    for entry in managed {
        if settings.is_looser_than(&entry) {
            let (value, origin) = settings.get(entry.key.name)?;
            warnings.push(ConfigWarning {
                origin: origin.clone(),
                key: entry.key.name.to_owned(),
                text: format!(
                    "is {}, which has no effect: your administrator set it to {} in {}:{}",
                    value.written(entry.key.kind),
                    entry.value.written(entry.key.kind),
                    entry.place.file,
                    entry.place.line
                ),
            });
            settings.put(entry);
        }
    }
    Ok(())
}

/// The entries of a file and its bytes, over which trust is recorded; none where there is no such file.
fn file_entries(
    path: &Path,
    layer: Layer,
    warnings: &mut Vec<ConfigWarning>,
) -> Result<(Entries, Vec<u8>), ConfigError> {
    let Some((file, text)) = read_text(path)? else { return Ok(Default::default()) };
    let mut found = text::entries(&FileSource { layer, file: &file, text: &text })?;
    warnings.append(&mut found.warnings);
    Ok((found, text.into_bytes()))
}
