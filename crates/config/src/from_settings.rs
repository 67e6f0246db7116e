//! Builds the typed configuration from the merged settings.

use crate::config::{Config, ConfigRow, Permissions, ProviderConfig};
use crate::edit_hooks::HookConfig;
use crate::error::{ABSOLUTE_PATH, ConfigError, SourceLine};
use crate::event_hooks::EventHookConfig;
use crate::keys::{self, FormatKeys, HookKeys, NetKeys, PermissionKeys, ProviderKeys, VerifyKeys};
use crate::managed::ManagedLimits;
use crate::model_catalog;
use crate::models::ModelExtras;
use crate::origin::{Layer, ValueOrigin};
use crate::proxy;
use crate::section::Section;
use crate::settings::LayeredSettings;
use crate::sources::{Sources, key_path};
use crate::value::{ConfigValue, ListExample, ListItem};
use crate::vendors::{KeySource, VENDORS_OWN};
use crate::warning::ConfigWarning;
use protocol::client::{ImageLimits, ModelFacts};
use protocol::confinement::Network;
use protocol::judgement::{Rule, RuleEffect, RuleExample};
use protocol::provider::{Auth, ProviderTimeouts};

impl Config {
    pub(crate) fn from_settings(
        settings: &LayeredSettings,
        extras: ModelExtras,
        sources: &Sources,
        mut warnings: Vec<ConfigWarning>,
    ) -> Result<Self, ConfigError> {
        let net = NetKeys::read(settings, sources)?;
        let permissions = PermissionKeys::read(settings, sources)?;
        let verify = VerifyKeys::read(settings, sources)?;
        let format = FormatKeys::read(settings, sources)?;
        let hooks = HookKeys::read(settings, sources)?;
        let provider = provider(settings, extras, sources, &mut warnings)?;
        warnings.extend(ineffective_denials(settings, &net, &permissions.deny)?);
        warnings.extend(narrower_permissions(&permissions.allow));
        warnings.extend(ineffective_hosts(settings, &net)?);
        Ok(Self {
            provider,
            permissions: permissions_of(permissions)?,
            sandbox: Section::read(settings, sources)?,
            network: net.mode,
            hosts: net.allow,
            web: Section::read(settings, sources)?,
            tools: Section::read(settings, sources)?,
            verify: HookConfig::of(
                "verify.commands",
                verify.mode,
                &verify.commands,
                verify.timeout_ms,
            )?,
            format: HookConfig::of(
                "format.commands",
                format.mode,
                &format.commands,
                format.timeout_ms,
            )?,
            plugins: Vec::new(),
            servers: Vec::new(),
            hooks: EventHookConfig { commands: Vec::new(), idle_ms: hooks.idle_ms },
            context: Section::read(settings, sources)?,
            budget: Section::read(settings, sources)?,
            ui: Section::read(settings, sources)?,
            daemon: Section::read(settings, sources)?,
            credentials: Vec::new(),
            key_files: Vec::new(),
            managed: ManagedLimits::default(),
            project_is_trusted: false,
            warnings,
            rows: rows(settings)?,
        })
    }
}

fn provider(
    settings: &LayeredSettings,
    extras: ModelExtras,
    sources: &Sources,
    warnings: &mut Vec<ConfigWarning>,
) -> Result<ProviderConfig, ConfigError> {
    let written = ProviderKeys::read(settings, sources)?;
    // The paths of the interfaces begin with a slash.
    let base_url = written.base_url.trim_end_matches('/').to_owned();
    let name = written.name;
    let key = key(settings, &written, sources)?;
    let model = Some(written.model).filter(|model| model != VENDORS_OWN).map(|model| {
        let aliased = model_catalog::aliased_model(name.vendor().name, &model);
        aliased.filter(|_| extras.table.is_none()).unwrap_or(model)
    });
    let known = model.as_deref().map(model_catalog::facts).unwrap_or_default();
    if key.is_some() && base_url.starts_with("http://") && !proxy::is_loopback(&base_url) {
        warnings.push(ConfigWarning {
            origin: settings.get("provider.base_url")?.1.clone(),
            key: "provider.base_url".into(),
            text: format!(
                "is {base_url}: your key and your files travel there unencrypted. Use https"
            ),
        });
    }
    Ok(ProviderConfig {
        name,
        local: proxy::is_loopback(&base_url),
        facts: ModelFacts {
            context: extras.facts.context.or(known.context),
            prices: extras.facts.prices.or(known.prices),
            vision: extras.facts.vision.or(known.vision),
            // Other servers know a vendor's models by the same names, and take less.
            json_schema: extras
                .facts
                .json_schema
                .or_else(|| known.json_schema.filter(|_| name.vendor().has_server(&base_url))),
            images: ImageLimits {
                count: extras.images.unwrap_or(name.vendor().images_at(&base_url).count),
                ..name.vendor().images_at(&base_url)
            },
        },
        model,
        table: extras.table,
        headers: extras.headers,
        effort: extras.effort,
        max_tokens: written.max_tokens,
        patience: ProviderTimeouts {
            tries: written.tries,
            overload_tries: overload_tries(written.tries, written.fallback_model.as_deref()),
            max_wait_ms: written.max_wait_ms,
            byte_timeout_ms: written.byte_timeout_ms,
            progress_timeout_ms: written.progress_timeout_ms,
            connect_timeout_ms: written.connect_timeout_ms,
        },
        fallback_model: written.fallback_model,
        replay_speed: written.replay_speed,
        key,
        models: Vec::new(),
        proxy: proxy::proxy_for(&base_url, &sources.environment)?,
        base_url,
    })
}

/// The default of `provider.tries`.
const USUAL_TRIES: u32 = 5;

/// An overload passes within minutes, so it is worth more tries than another failure. Who wants fewer than usual has no
/// more, and who has another model need not wait.
fn overload_tries(tries: u32, fallback_model: Option<&str>) -> u32 {
    match (tries, fallback_model) {
        (0..USUAL_TRIES, _) | (_, Some(_)) => tries,
        (_, None) => tries.saturating_mul(2),
    }
}

/// Most rules of a session, and most examples. People write tens. The bound keeps the broker's
/// `Rules` message below its cap, and the time to parse it below a second.
const RULES_CAP: usize = 10_000;

/// Where the key comes from: a file or a command that is named comes before the environment.
fn key(
    settings: &LayeredSettings,
    written: &ProviderKeys,
    sources: &Sources,
) -> Result<Option<KeySource>, ConfigError> {
    let vendor = written.name.vendor();
    let auth = vendor.keys.first().map_or(Auth::ApiKey, |key| key.auth);
    let bad = |key, found: &str, wanted: &str| {
        Ok(ConfigError::unfit(settings.get(key)?.1, key, found, wanted))
    };
    Ok(match (&written.key_file, &written.key_command) {
        (Some(_), Some(line)) => {
            let wanted = "\"none\" where provider.key_file names a file: a key has one source";
            return Err(bad("provider.key_command", line, wanted)?);
        }
        (Some(path), None) => match key_path(path, sources) {
            Some(path) => Some(KeySource::File { path, auth }),
            None => return Err(bad("provider.key_file", path, ABSOLUTE_PATH)?),
        },
        (None, Some(line)) => Some(KeySource::Command { line: line.clone(), auth }),
        (None, None) => {
            let mut keys = vendor.keys.iter().copied();
            let set = keys.find(|key| sources.environment.get(key.name).is_some());
            set.map(KeySource::Variable)
        }
    })
}

fn permissions_of(written: PermissionKeys) -> Result<Permissions, ConfigError> {
    let (mut rules, mut examples) = (Vec::new(), Vec::new());
    for (items, effect) in [
        (written.deny, RuleEffect::Deny),
        (written.ask, RuleEffect::Ask),
        (written.allow, RuleEffect::Allow),
    ] {
        for ListItem { text, origin: ValueOrigin { file, line, .. }, examples: beside } in items {
            let rule = Rule { effect, text, file, line };
            examples.extend(beside.into_iter().map(|ListExample { said, what, line }| {
                RuleExample { rule: rule.clone(), what, said, line }
            }));
            rules.push(rule);
        }
    }
    let place = |file: &String, line| SourceLine { file: file.clone(), line, column: 0 };
    let (what, place) = match (rules.get(RULES_CAP), examples.get(RULES_CAP)) {
        (None, None) => return Ok(Permissions { mode: written.mode, rules, examples }),
        (Some(rule), _) => ("rule", place(&rule.file, rule.line)),
        (None, Some(example)) => ("example", place(&example.rule.file, example.line)),
    };
    Err(ConfigError::TooManyRules { what, place, cap: RULES_CAP })
}

/// Warns where rules deny hosts and the network is on: only the proxy of an allow-list sees hosts.
fn ineffective_denials(
    settings: &LayeredSettings,
    net: &NetKeys,
    denials: &[ListItem],
) -> Result<Option<ConfigWarning>, ConfigError> {
    let names_host = |item: &&ListItem| {
        let name = item.text.split(':').next().unwrap_or_default();
        name.trim().eq_ignore_ascii_case("host")
    };
    let mut denied = denials.iter().filter(names_host);
    let (Network::On, Some(first)) = (net.mode, denied.next()) else { return Ok(None) };
    let (_, mode) = settings.get("net.mode")?;
    let others = match denied.count() {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    Ok(Some(ConfigWarning {
        origin: first.origin.clone(),
        key: "permissions.deny".into(),
        text: format!(
            "{:?}{others} has no effect while net.mode is \"on\" ({mode}): only the proxy of an \
             allow-list enforces it, with net.mode = \"allow\"",
            first.text
        ),
    }))
}

/// Warns where a rule in Claude Code's brackets allows less than there: a `*` stands for one word, or
/// for letters of one, unless it is the last word.
fn narrower_permissions(allowed: &[ListItem]) -> Option<ConfigWarning> {
    let is_narrower = |item: &&ListItem| {
        let text = item.text.trim();
        let name = text.split('(').next().unwrap_or_default();
        let inner = text[name.len()..].strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
        let front = inner.map(|inner| inner.trim_end_matches(":*").trim_end_matches(" *"));
        name.eq_ignore_ascii_case("bash")
            && front.is_some_and(|front| front.replace("\\\\", "").replace("\\*", "").contains('*'))
    };
    let mut narrower = allowed.iter().filter(is_narrower);
    let first = narrower.next()?;
    let others = match narrower.count() {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    Some(ConfigWarning {
        origin: first.origin.clone(),
        key: "permissions.allow".into(),
        text: format!(
            "{:?}{others} allows less than in Claude Code: a `*` stands for one word, or for letters of \
             one, unless it is the last word",
            first.text
        ),
    })
}

/// Warns where the hosts of `net.allow` have no effect because a file switches the network off; a flag that does so is
/// the user's choice for one run.
fn ineffective_hosts(
    settings: &LayeredSettings,
    net: &NetKeys,
) -> Result<Option<ConfigWarning>, ConfigError> {
    let (_, mode) = settings.get("net.mode")?;
    let first = settings.get("net.allow")?.0.items().and_then(<[ListItem]>::first);
    let (Network::Off, true, Some(first)) = (net.mode, mode.layer != Layer::Flag, first) else {
        return Ok(None);
    };
    Ok(Some(ConfigWarning {
        origin: first.origin.clone(),
        key: "net.allow".into(),
        text: format!(
            "has no effect while net.mode is \"off\" ({mode}). These hosts need \
             net.mode = \"allow\""
        ),
    }))
}

fn rows(settings: &LayeredSettings) -> Result<Vec<ConfigRow>, ConfigError> {
    let mut rows = Vec::new();
    for key in keys::all() {
        let (value, origin) = settings.get(key.name)?;
        let row = |value: String, origin: &ValueOrigin| ConfigRow {
            key: key.name,
            value,
            origin: origin.clone(),
        };
        match value {
            ConfigValue::Text(_) | ConfigValue::Number(_) => {
                rows.push(row(value.written(key.kind), origin))
            }
            ConfigValue::List(items) if items.is_empty() => rows.push(row("[]".into(), origin)),
            ConfigValue::List(items) => {
                rows.extend(items.iter().map(|item| row(format!("{:?}", item.text), &item.origin)));
            }
        }
    }
    Ok(rows)
}
