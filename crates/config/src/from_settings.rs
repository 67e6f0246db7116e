//! Builds the typed configuration from the merged settings.

use crate::config::{
    AgentLimits, BudgetConfig, Config, ConfigRow, ContextConfig, DaemonConfig, Permissions,
    ProviderConfig, SandboxConfig, ToolsConfig, UiConfig, UiNotify, UiView,
};
use crate::edit_hooks;
use crate::error::{ConfigError, SourceLine};
use crate::event_hooks::EventHookConfig;
use crate::managed::ManagedLimits;
use crate::model_catalog;
use crate::models::ModelExtras;
use crate::origin::{Layer, ValueOrigin};
use crate::proxy;
use crate::schema::KEYS;
use crate::settings::LayeredSettings;
use crate::sources::{Sources, key_path};
use crate::value::{ConfigValue, ListExample, ListItem};
use crate::vendors::{KeySource, NONE, ProviderName, VENDORS_OWN, Vendor};
use crate::warning::ConfigWarning;
use protocol::client::{ImageLimits, ModelFacts};
use protocol::confinement::{Level, Limits, Network, Tier};
use protocol::context::CompactionKind;
use protocol::hosts::HostRule;
use protocol::judgement::{PermissionMode, Rule, RuleEffect, RuleExample};
use protocol::provider::{Auth, ProviderTimeouts, ReplaySpeed};
use protocol::web::{PrivateNetworks, WebSettings};
use std::path::{Path, PathBuf};

impl Config {
    pub(crate) fn from_settings(
        settings: &LayeredSettings,
        extras: ModelExtras,
        sources: &Sources,
        mut warnings: Vec<ConfigWarning>,
    ) -> Result<Self, ConfigError> {
        Ok(Self {
            provider: provider(settings, extras, sources, &mut warnings)?,
            permissions: permissions(settings, &mut warnings)?,
            sandbox: sandbox(settings)?,
            network: Network::parse(settings.text("net.mode")?)
                .ok_or(ConfigError::Incomplete { key: "net.mode" })?,
            hosts: allowed_hosts(settings, &mut warnings)?,
            web: WebSettings {
                search_url: settings.text("web.search_url")?.to_owned(),
                private: match settings.text("web.private_networks")? {
                    "allow" => PrivateNetworks::Reached,
                    _ => PrivateNetworks::Refused,
                },
            },
            tools: ToolsConfig {
                max_result_chars: narrow(settings, "tools.max_result_chars")?,
                max_read_chars: narrow(settings, "tools.max_read_chars")?,
                timeout_ms: settings.number("tools.timeout_ms")?,
                background_after_ms: settings.number("tools.background_after_ms")?,
                add_dirs: directories("tools.add_dirs", settings, sources)?,
            },
            verify: edit_hooks::read_hooks(
                settings,
                ("verify.mode", "verify.commands", "verify.timeout_ms"),
            )?,
            format: edit_hooks::read_hooks(
                settings,
                ("format.mode", "format.commands", "format.timeout_ms"),
            )?,
            plugins: Vec::new(),
            servers: Vec::new(),
            hooks: EventHookConfig {
                commands: Vec::new(),
                idle_ms: settings.number("hooks.idle_after")?,
            },
            context: ContextConfig {
                files: settings.list("context.files")?.iter().map(|it| it.text.clone()).collect(),
                compaction: match settings.text("context.compaction")? {
                    "cut" => CompactionKind::Cut,
                    _ => CompactionKind::Summary,
                },
            },
            budget: BudgetConfig {
                rounds: narrow(settings, "budget.rounds")?,
                calls: narrow(settings, "budget.calls")?,
                session_calls: Some(narrow(settings, "budget.session_calls")?)
                    .filter(|calls| *calls > 0),
                agents: AgentLimits {
                    depth: narrow(settings, "agents.depth")?,
                    at_once: narrow(settings, "agents.at_once")?,
                },
            },
            ui: UiConfig {
                leader: settings.text("ui.leader")?.to_owned(),
                accessible: settings.text("ui.accessible")? == "on",
                mouse: settings.text("ui.mouse")? == "on",
                theme: settings.text("ui.theme")?.to_owned(),
                notify: match settings.text("ui.notify")? {
                    "osc9" => UiNotify::Osc9,
                    "osc777" => UiNotify::Osc777,
                    "off" => UiNotify::Off,
                    _ => UiNotify::Bell,
                },
                view: match settings.text("ui.view")? {
                    "full" => UiView::Full,
                    _ => UiView::Inline,
                },
            },
            daemon: daemon(settings)?,
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
    // The paths of the interfaces begin with a slash.
    let base_url = settings.text("provider.base_url")?.trim_end_matches('/').to_owned();
    let name = ProviderName::parse(settings.text("provider.name")?)
        .ok_or(ConfigError::Incomplete { key: "provider.name" })?;
    let key = key(settings, sources, name.vendor())?;
    let model = settings.text("provider.model")?;
    let model = (model != VENDORS_OWN).then(|| {
        let aliased = model_catalog::aliased_model(name.vendor().name, model);
        aliased.filter(|_| extras.table.is_none()).unwrap_or_else(|| model.to_owned())
    });
    let fallback = settings.text("provider.fallback_model")?;
    let fallback_model = (fallback != NONE).then(|| fallback.to_owned());
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
        fallback_model,
        max_tokens: narrow(settings, "provider.max_tokens")?,
        patience: ProviderTimeouts {
            tries: narrow(settings, "provider.tries")?,
            max_wait_ms: settings.number("provider.max_wait")?,
            byte_timeout_ms: settings.number("provider.byte_timeout")?,
            progress_timeout_ms: settings.number("provider.progress_timeout")?,
            connect_timeout_ms: settings.number("provider.connect_timeout")?,
        },
        replay_speed: match settings.text("provider.replay_speed")? {
            "recorded" => ReplaySpeed::Recorded,
            _ => ReplaySpeed::Full,
        },
        key,
        proxy: proxy::proxy_for(&base_url, &sources.environment)?,
        base_url,
    })
}

/// Most rules of a session, and most examples. People write tens. The bound keeps the broker's
/// `Rules` message below its cap, and the time to parse it below a second.
const RULES_CAP: usize = 10_000;

/// Where the key comes from: a file or a command that is named comes before the environment.
fn key(
    settings: &LayeredSettings,
    sources: &Sources,
    vendor: &Vendor,
) -> Result<Option<KeySource>, ConfigError> {
    let named = |key: &'static str| -> Result<Option<(&str, &ValueOrigin)>, ConfigError> {
        let (_, origin) = settings.get(key)?;
        Ok(Some(settings.text(key)?).filter(|text| *text != NONE).map(|text| (text, origin)))
    };
    let auth = vendor.keys.first().map_or(Auth::ApiKey, |key| key.auth);
    let bad = |key: &str, found: &str, origin: &ValueOrigin, wanted: &str| ConfigError::BadValue {
        place: SourceLine { file: origin.file.clone(), line: origin.line, column: 0 },
        key: key.into(),
        found: format!("{found:?}"),
        wanted: wanted.into(),
    };
    Ok(match (named("provider.key_file")?, named("provider.key_command")?) {
        (Some(_), Some((line, origin))) => {
            let wanted = "\"none\" where provider.key_file names a file: a key has one source";
            return Err(bad("provider.key_command", line, origin, wanted));
        }
        (Some((path, origin)), None) => {
            let wanted = "an absolute path, or one that begins with ~/ where HOME is set";
            let path = key_path(path, sources)
                .ok_or_else(|| bad("provider.key_file", path, origin, wanted))?;
            Some(KeySource::File { path, auth })
        }
        (None, Some((line, _))) => Some(KeySource::Command { line: line.to_owned(), auth }),
        (None, None) => {
            let mut keys = vendor.keys.iter().copied();
            let set = keys.find(|key| sources.environment.get(key.name).is_some());
            set.map(KeySource::Variable)
        }
    })
}

fn permissions(
    settings: &LayeredSettings,
    warnings: &mut Vec<ConfigWarning>,
) -> Result<Permissions, ConfigError> {
    warnings.extend(ineffective_denials(settings)?);
    warnings.extend(narrower_permissions(settings)?);
    let key = "permissions.mode";
    let mode = PermissionMode::parse(settings.text(key)?).ok_or(ConfigError::Incomplete { key })?;
    let (mut rules, mut examples) = (Vec::new(), Vec::new());
    for (key, effect) in [
        ("permissions.deny", RuleEffect::Deny),
        ("permissions.ask", RuleEffect::Ask),
        ("permissions.allow", RuleEffect::Allow),
    ] {
        for ListItem { text, origin, examples: beside } in settings.list(key)? {
            let (text, file, line) = (text.clone(), origin.file.clone(), origin.line);
            let rule = Rule { effect, text, file, line };
            examples.extend(beside.iter().map(|ListExample { said, what, line }| RuleExample {
                rule: rule.clone(),
                what: what.clone(),
                said: *said,
                line: *line,
            }));
            rules.push(rule);
        }
    }
    let place = |file: &String, line| SourceLine { file: file.clone(), line, column: 0 };
    let too_many = match (rules.get(RULES_CAP), examples.get(RULES_CAP)) {
        (None, None) => {
            return Ok(Permissions { mode, rules, examples });
        }
        (Some(rule), _) => ("rule", place(&rule.file, rule.line)),
        (None, Some(example)) => ("example", place(&example.rule.file, example.line)),
    };
    let (what, place) = too_many;
    Err(ConfigError::TooManyRules { what, place, cap: RULES_CAP })
}

/// Warns where rules deny hosts and the network is on: only the proxy of an allow-list sees hosts.
fn ineffective_denials(settings: &LayeredSettings) -> Result<Option<ConfigWarning>, ConfigError> {
    if settings.text("net.mode")? != "on" {
        return Ok(None);
    }
    let (_, mode) = settings.get("net.mode")?;
    let names_host = |item: &&ListItem| {
        let name = item.text.split(':').next().unwrap_or_default();
        name.trim().eq_ignore_ascii_case("host")
    };
    let mut denied = settings.list("permissions.deny")?.iter().filter(names_host);
    let Some(first) = denied.next() else { return Ok(None) };
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

/// Warns where a rule in Claude Code's brackets allows less than there: a `*` before the last word
/// stands for one word, or for letters of one.
fn narrower_permissions(settings: &LayeredSettings) -> Result<Option<ConfigWarning>, ConfigError> {
    let is_narrower = |item: &&ListItem| {
        let text = item.text.trim();
        let name = text.split('(').next().unwrap_or_default();
        let inner = text[name.len()..].strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
        let front = inner.map(|inner| inner.trim_end_matches(":*").trim_end_matches(" *"));
        name.eq_ignore_ascii_case("bash") && front.is_some_and(|front| front.contains('*'))
    };
    let mut narrower = settings.list("permissions.allow")?.iter().filter(is_narrower);
    let Some(first) = narrower.next() else { return Ok(None) };
    let others = match narrower.count() {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    Ok(Some(ConfigWarning {
        origin: first.origin.clone(),
        key: "permissions.allow".into(),
        text: format!(
            "{:?}{others} allows less than in Claude Code: a `*` before the last word stands for one \
             word",
            first.text
        ),
    }))
}

fn sandbox(settings: &LayeredSettings) -> Result<SandboxConfig, ConfigError> {
    Ok(SandboxConfig {
        level: match settings.text("sandbox.level")? {
            "best-effort" => Level::BestEffort,
            _ => Level::Required,
        },
        highest_tier: if settings.text("sandbox.tier")? == "b" { Tier::B } else { Tier::A },
        limits: Limits {
            processes: settings.number("sandbox.limits.processes")?,
            memory_bytes: settings.number("sandbox.limits.memory_bytes")?,
            cpu_seconds: settings.number("sandbox.limits.cpu_seconds")?,
            file_bytes: settings.number("sandbox.limits.file_bytes")?,
            open_files: settings.number("sandbox.limits.open_files")?,
        },
        env: settings.list("sandbox.env")?.iter().map(|item| item.text.clone()).collect(),
    })
}

fn daemon(settings: &LayeredSettings) -> Result<DaemonConfig, ConfigError> {
    Ok(DaemonConfig {
        question_deadline_ms: settings.number("daemon.question_deadline")?,
        idle_exit_ms: settings.number("daemon.idle_exit")?,
        idle_provider_ms: settings.number("daemon.idle_provider")?,
        idle_reserve_ms: settings.number("daemon.idle_reserve")?,
        hello_ms: settings.number("daemon.hello_ms")?,
        ping_ms: settings.number("daemon.ping_ms")?,
        shutdown_ms: settings.number("daemon.shutdown_ms")?,
        restart_crashes: narrow(settings, "daemon.restart_crashes")?,
        restart_crash_window_ms: settings.number("daemon.restart_crash_window_ms")?,
        restart_total: narrow(settings, "daemon.restart_total")?,
        restart_window_ms: settings.number("daemon.restart_window_ms")?,
        restart_delay_ms: settings.number("daemon.restart_delay_ms")?,
        restart_delay_cap_ms: settings.number("daemon.restart_delay_cap_ms")?,
        replay_crashes: narrow(settings, "daemon.replay_crashes")?,
        replay_crash_window_ms: settings.number("daemon.replay_crash_window_ms")?,
    })
}

/// The hosts of `net.allow`. Warns where they have no effect because a file switches the network off; a
/// flag that does so is the user's choice for one run. Each host was parsed when its file was read.
fn allowed_hosts(
    settings: &LayeredSettings,
    warnings: &mut Vec<ConfigWarning>,
) -> Result<Vec<HostRule>, ConfigError> {
    let bad = |_| ConfigError::Incomplete { key: "net.allow" };
    let items = settings.list("net.allow")?;
    let (_, mode) = settings.get("net.mode")?;
    let is_off = settings.text("net.mode")? == "off" && mode.layer != Layer::Flag;
    if let (true, Some(first)) = (is_off, items.first()) {
        warnings.push(ConfigWarning {
            origin: first.origin.clone(),
            key: "net.allow".into(),
            text: format!(
                "has no effect while net.mode is \"off\" ({mode}). These hosts need \
                 net.mode = \"allow\""
            ),
        });
    }
    let mut found: Vec<HostRule> = Vec::new();
    for item in items {
        let rule = item.text.parse().map_err(bad)?;
        if !found.contains(&rule) {
            found.push(rule);
        }
    }
    Ok(found)
}

/// Absolute directories: `~/` is the caller's home, and a project's file may say it relative to the
/// project. Elsewhere a relative path would mean another directory in every shell.
pub(crate) fn directories(
    key: &'static str,
    settings: &LayeredSettings,
    sources: &Sources,
) -> Result<Vec<PathBuf>, ConfigError> {
    let mut found = Vec::new();
    for ListItem { text, origin, .. } in settings.list(key)? {
        let absolute = match text.strip_prefix("~/") {
            Some(below) => sources.environment.absolute("HOME").map(|home| home.join(below)),
            None if Path::new(text).is_absolute() => Some(PathBuf::from(text)),
            None if matches!(origin.layer, Layer::Project | Layer::Local) => {
                Some(sources.project.join(text))
            }
            None => None,
        };
        found.push(absolute.ok_or_else(|| ConfigError::BadValue {
            place: SourceLine { file: origin.file.clone(), line: origin.line, column: 0 },
            key: key.into(),
            found: format!("{text:?}"),
            wanted: "an absolute path, or one that begins with ~/ where HOME is set".into(),
        })?);
    }
    Ok(found)
}

fn rows(settings: &LayeredSettings) -> Result<Vec<ConfigRow>, ConfigError> {
    let mut rows = Vec::new();
    for key in KEYS {
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

/// The table's bounds keep these below 2^32.
fn narrow(settings: &LayeredSettings, key: &'static str) -> Result<u32, ConfigError> {
    u32::try_from(settings.number(key)?).map_err(|_| ConfigError::Incomplete { key })
}
