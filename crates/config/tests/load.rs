//! Loading from real files: layers, origins, refusals with their places, and what a foreign project
//! cannot do.
#![allow(clippy::unwrap_used)]

use config::{
    Config, ConfigError, Layer, PROJECT_FILE, ProviderName, Sources, Trust, TrustStore, UiNotify,
    VENDORS, init_project, init_text,
};
use protocol::confinement::{Level, Network, Tier};
use protocol::judgement::{Audience, ExampleVerdict, PermissionMode, RuleEffect};
use protocol::provider::Auth;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// A project, a home and a managed file in a directory of their own.
struct Place {
    dir: TempDir,
    sources: Sources,
}

fn place() -> Place {
    let dir = tempfile::tempdir().unwrap();
    let project = dir.path().join("project");
    fs::create_dir_all(project.join(".agentd")).unwrap();
    let sources = Sources {
        managed: dir.path().join("managed.toml"),
        user: Some(dir.path().join("user.toml")),
        project,
        environment: [("HOME", "/home/me")].into_iter().collect(),
        flags: Vec::new(),
        trust: Trust::AsRecorded(TrustStore::at(dir.path().join("trust"))),
        plugin_trust: TrustStore::at(dir.path().join("trust")),
        claude_rules: |text, _| Ok(vec![text.to_lowercase()]),
    };
    Place { dir, sources }
}

impl Place {
    fn write(self, name: &str, text: impl AsRef<[u8]>) -> Self {
        fs::write(self.dir.path().join(name), text).unwrap();
        self
    }
    fn user(self, text: &str) -> Self {
        self.write("user.toml", text)
    }
    fn project(self, text: &str) -> Self {
        self.write("project/.agentd/config.toml", text)
    }
    fn local(self, text: &str) -> Self {
        self.write("project/.agentd/config.local.toml", text)
    }
    fn managed(self, text: &str) -> Self {
        self.write("managed.toml", text)
    }
    fn env(mut self, pairs: &[(&str, &str)]) -> Self {
        self.sources.environment = pairs.iter().copied().collect();
        self
    }
    fn flag(mut self, key: &str, value: &str) -> Self {
        self.sources.flags.push((key.into(), value.into()));
        self
    }
    fn trusted(mut self) -> Self {
        self.sources.trust = Trust::Trusted;
        self
    }
    fn load(&self) -> Config {
        Config::load(&self.sources).unwrap()
    }
    fn error(&self) -> String {
        Config::load(&self.sources).unwrap_err().to_string()
    }
}

fn origin(config: &Config, key: &str) -> (Layer, u32) {
    let row = config.rows.iter().find(|row| row.key == key).unwrap();
    (row.origin.layer, row.origin.line)
}

/// The variable that a key comes from, and how it is sent.
fn variable(key: config::KeySource) -> Option<(&'static str, Auth)> {
    match key {
        config::KeySource::Variable(key) => Some((key.name, key.auth)),
        config::KeySource::File { .. } | config::KeySource::Command { .. } => None,
    }
}

#[test]
fn a_named_model_never_sends_one_vendor_s_key_to_another_s_server() {
    let at = place()
        .user(
            "[provider]\nbase_url = 'https://proxy'\nkey_command = 'pass show a'\n\
             [models.g]\nprovider = 'gemini'\nmodel = 'gemini-2.5-pro'\n",
        )
        .env(&[("GEMINI_API_KEY", "k")])
        .flag("provider.model", "g");
    let config = at.load().provider;
    assert_eq!(config.model.as_deref(), Some("gemini-2.5-pro"));
    assert_eq!(config.base_url, "https://generativelanguage.googleapis.com");
    assert_eq!(config.key.and_then(variable), Some(("GEMINI_API_KEY", Auth::ApiKey)));
    assert_eq!(config.facts.context, Some(1_048_576));
    assert_eq!(config.facts.prices, None, "not known, so not said");
}

#[test]
fn models_to_choose_from_are_those_of_tables_and_of_the_vendor_s_own_server() {
    let names = |text: &str| -> Vec<String> {
        let models = place().user(text).load().provider.models.into_iter();
        models.map(|model| model.name).collect()
    };
    let tables = "[models.b]\nmodel = 'x'\n[models.a]\nmodel = 'y'\n";
    let all = names(tables);
    assert_eq!(all[..2], ["a", "b"]);
    assert!(all.iter().any(|name| name == "claude-sonnet-4-5"), "{all:?}");
    assert_eq!(
        names(&format!("[provider]\nbase_url = 'http://127.0.0.1:1'\n{tables}")),
        ["a", "b"]
    );
}

#[test]
fn images_and_schemas_are_those_of_the_model_and_of_its_server() {
    let facts = |lines: &str| {
        let at = place().user(&format!("[models.m]\n{lines}\n")).env(&[("OPENAI_API_KEY", "k")]);
        let facts = at.flag("provider.model", "m").load().provider.facts;
        (facts.images.count, facts.json_schema)
    };
    let chat = "provider = 'openai-chat'\nmodel = 'gpt-5'";
    assert_eq!(facts(chat), (500, Some(true)), "the vendor's own server");
    let elsewhere = format!("{chat}\nbase_url = 'http://127.0.0.1:1/v1'");
    assert_eq!(facts(&elsewhere), (10, None), "a server that is not known");
    let own = format!("{elsewhere}\nimages = 4\njson_schema = true");
    assert_eq!(facts(&own), (4, Some(true)), "the person's word");
    assert_eq!(facts(&format!("{chat}\njson_schema = false")), (500, Some(false)));
    assert_eq!(facts("provider = 'openai-chat'\nmodel = 'x'").1, None, "no such row");
}

#[test]
fn what_is_wrong_with_a_model_is_said_with_its_place() {
    for (text, words) in [
        ("colour = 1", "there is no key `models.m.colour`"),
        ("context = 'big'", "`models.m.context` is a text"),
        ("effort = 'some'", "`models.m.effort`"),
        ("json_schema = 1", "`models.m.json_schema`"),
        ("images = 0", "`models.m.images`"),
        ("images = 3001", "`models.m.images`"),
        ("price = { input = 1.0 }", "`models.m.price`"),
        ("price = { input = 1.0, output = -1.0 }", "`models.m.price`"),
        ("headers = { Authorization = 'x' }", "key_file or key_command"),
        ("headers = { 'a b' = 'x' }", "a header"),
        ("provider = 'nobody'", "`provider.name`"),
        ("key_file = 'relative'", "an absolute path"),
    ] {
        let at = place().user(&format!("[models.m]\n{text}\n")).flag("provider.model", "m");
        let error = at.error();
        assert!(error.contains(words) && error.contains("user.toml:2"), "{text}: {error}");
    }
}

#[test]
fn defaults_hold_where_nobody_says_otherwise() {
    let config = place().load();
    assert_eq!(config.provider.name, ProviderName::parse("anthropic").unwrap());
    assert_eq!(config.provider.base_url, "https://api.anthropic.com");
    assert_eq!(
        (config.provider.patience.tries, config.provider.patience.byte_timeout_ms),
        (5, 60_000)
    );
    assert_eq!(config.provider.key, None);
    assert_eq!((config.permissions.mode, config.permissions.rules.len()), (PermissionMode::Ask, 0));
    assert_eq!((config.sandbox.level, config.sandbox.highest_tier), (Level::Required, Tier::A));
    assert_eq!(config.network, Network::Off);
    assert_eq!((config.tools.max_result_chars, config.tools.timeout_ms), (30_000, 120_000));
    assert_eq!(config.tools.max_read_chars, 100_000);
    assert_eq!((config.budget.rounds, config.budget.calls), (25, 300));
    assert_eq!(config.budget.session_calls, None, "0 is no bound");
    assert_eq!(config.daemon.idle_exit_ms, 1_800_000);
    assert_eq!(config.warnings, []);
    assert!(config.rows.iter().all(|row| row.origin.layer == Layer::BuiltIn));
}

#[test]
fn every_default_has_its_reason() {
    let lines: Vec<&str> = include_str!("../src/keys.rs").lines().collect();
    // Keys without a reason of their own: the comment above their section has it.
    let of_section = ["verify.mode", "format.mode", "provider.key_command"];
    let is_row = |line: &str| line.starts_with("        ") && line.contains(" = key(\"");
    let mut rows = 0;
    for (at, row) in lines.iter().enumerate().filter(|(_, line)| is_row(line)) {
        rows += 1;
        let above = lines[..at].iter().rev().take_while(|line| line.trim().starts_with("//"));
        let has_reason = above.into_iter().any(|line| !line.trim().starts_with("///"));
        assert!(has_reason || of_section.iter().any(|key| row.contains(key)), "no reason: {row}");
    }
    assert!(rows > 50, "{rows}");
}

#[test]
fn each_layer_wins_over_those_below_and_is_named_as_the_origin() {
    let key = "tools.timeout_ms";
    let mut at = place();
    assert_eq!((at.load().tools.timeout_ms, origin(&at.load(), key).0), (120_000, Layer::BuiltIn));
    // Each lower than the one below: a project's file that is not trusted only tightens.
    at = at.managed("tools.timeout_ms = 1005\n");
    assert_eq!((at.load().tools.timeout_ms, origin(&at.load(), key)), (1005, (Layer::Managed, 1)));
    at = at.user("\n[tools]\ntimeout_ms = 1004\n");
    assert_eq!((at.load().tools.timeout_ms, origin(&at.load(), key)), (1004, (Layer::User, 3)));
    at = at.project("# words\ntools = { timeout_ms = 1003 }\n");
    assert_eq!((at.load().tools.timeout_ms, origin(&at.load(), key)), (1003, (Layer::Project, 2)));
    at = at.local("tools.timeout_ms = 1_002\n");
    assert_eq!((at.load().tools.timeout_ms, origin(&at.load(), key)), (1002, (Layer::Local, 1)));
    at = at.flag(key, "1001");
    assert_eq!((at.load().tools.timeout_ms, origin(&at.load(), key)), (1001, (Layer::Flag, 0)));

    let at = place().user("provider.model = 'a'").env(&[("ANTHROPIC_MODEL", "b")]);
    assert_eq!(at.load().provider.model.as_deref(), Some("b"));
    assert_eq!(origin(&at.load(), "provider.model"), (Layer::Environment, 0));
    let at = at.flag("provider.model", "c");
    assert_eq!(at.load().provider.model.as_deref(), Some("c"));
}

#[test]
fn rules_of_all_layers_add_up_with_their_places() {
    let at = place()
        .managed("permissions.deny = ['bash:curl *']")
        .user("[permissions]\nallow = [\n  'bash:cargo *',\n  'bash:rg *',\n]\n")
        .project(
            "permissions.deny = ['write:Cargo.lock']\npermissions.ask = ['bash:cargo publish *']",
        )
        .flag("permissions.allow", "bash:just *");
    let config = at.load();
    let rules: Vec<_> =
        config.permissions.rules.iter().map(|r| (r.effect, r.text.as_str(), r.line)).collect();
    assert_eq!(
        rules,
        [
            (RuleEffect::Deny, "bash:curl *", 1),
            (RuleEffect::Deny, "write:Cargo.lock", 1),
            (RuleEffect::Ask, "bash:cargo publish *", 2),
            (RuleEffect::Allow, "bash:cargo *", 3),
            (RuleEffect::Allow, "bash:rg *", 4),
            (RuleEffect::Allow, "bash:just *", 0),
        ]
    );
    assert_eq!(config.permissions.rules[5].file, "flag");
    assert!(config.permissions.rules[3].file.ends_with("user.toml"));
    let set = config.rule_set(Path::new("/p"), Audience::NonInteractive);
    assert_eq!(
        (set.rules.len(), set.project.as_str(), set.audience),
        (6, "/p", Audience::NonInteractive)
    );
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let rows: [(&str, &[&str]); 27] = [
        ("[permisions]\nmode = 'ask'", &["user.toml:1:2", "no key `permisions`"]),
        (
            "[permissions]\nmoode = 'ask'",
            &["user.toml:2:1", "no key `permissions.moode`", "did you mean `permissions.mode`"],
        ),
        (
            "\n\nbase_url = 'https://x'",
            &["user.toml:3:1", "`base_url`", "did you mean `provider.base_url`"],
        ),
        ("[net]\nrounds = 3", &["user.toml:2:1", "did you mean `budget.rounds`"]),
        (
            "[provider]\napi_key = 'sk-1'",
            &["user.toml:2:1", "Set ANTHROPIC_API_KEY", "in the environment"],
        ),
        (
            "permissions.mode = 'yolo'",
            &["user.toml:1:20", "`permissions.mode` is \"yolo\"", "\"dont-ask\""],
        ),
        ("permissions.mode = 3", &["user.toml:1:20", "is 3"]),
        ("permissions.allow = 'bash:cargo *'", &["user.toml:1:21", "is a text", "a list of rules"]),
        ("permissions.allow = [\n 'bash:ls',\n 7]", &["user.toml:3:2", "is 7"]),
        ("permissions.allow = ['']", &["user.toml:1:22", "`permissions.allow`"]),
        ("permissions = 'ask'", &["user.toml:1:15", "a table, written [permissions]"]),
        ("ui.notify = true", &["user.toml:1:13", "is true", "\"off\""]),
        ("permissions.mode = true", &["user.toml:1:20", "is true", "\"dont-ask\""]),
        ("budget.rounds = true", &["is true", "a whole number from 1 to"]),
        (
            "net.mode = 'yes'",
            &["user.toml:1:12", "\"on\", \"allow\", \"off\", true (on) or false (off)"],
        ),
        ("budget.rounds = 0", &["is 0", "a whole number from 1 to"]),
        ("budget.rounds = -1", &["is -1"]),
        ("budget.rounds = 1.5", &["a number with a fraction"]),
        ("budget.rounds = 99999999999999999999", &["user.toml:1:17"]),
        ("provider.max_wait = 60", &["is 60", "\"60s\""]),
        ("provider.max_wait = '1 minute'", &["a time from"]),
        ("provider.base_url = 'ftp://x'", &["a URL such as"]),
        ("provider.base_url = 'https://me:secret@x'", &["no user"]),
        ("sandbox.env = ['GITHUB_TOKEN']", &["user.toml:1", "GITHUB_TOKEN", "stay with programs"]),
        ("tools.add_dirs = ['data']", &["user.toml:1", "absolute path"]),
        ("budget.rounds = 1\nbudget.rounds = 2", &["user.toml:2:", "not TOML", "duplicate key"]),
        ("[net\nmode = 'off'", &["user.toml:1:", "not TOML"]),
    ];
    for (text, wanted) in rows {
        let error = place().user(text).error();
        for part in wanted {
            assert!(error.contains(part), "{text:?}: {part:?} is not in: {error}");
        }
    }
}

#[test]
fn the_secret_in_a_misplaced_key_is_not_repeated() {
    for text in [
        "[provider]\napi_key = 'sk-ant-verysecret'",
        "[net.credentials.'a.example']\nkey_file = \"verysecret\\n\"",
    ] {
        let error = place().user(text).error();
        assert!(!error.contains("verysecret") && error.contains("user.toml:2:"), "{error}");
    }
}

#[test]
fn what_is_on_or_off_takes_true_and_false_from_every_source() {
    let loaded = place().user("ui.accessible = true\nui.mouse = false\nui.notify = false").load();
    assert!(loaded.ui.accessible && !loaded.ui.mouse);
    assert_eq!(loaded.ui.notify, UiNotify::Off);
    let flagged =
        place().user("ui.mouse = true").flag("ui.mouse", "false").flag("net.mode", "true");
    let flagged = flagged.load();
    assert_eq!((flagged.ui.mouse, flagged.network), (false, Network::On));
    // A project may turn the network off in either spelling, and on in none.
    let off = place().user("net.mode = true").project("net.mode = false").load();
    assert_eq!(off.network, Network::Off);
    let on = place().user("net.mode = false").project("net.mode = true").load();
    assert_eq!(on.network, Network::Off);
}

#[test]
fn flags_and_variables_are_checked_like_files() {
    let error = place().flag("net.mode", "maybe").error();
    assert_eq!(
        error,
        "flag: `net.mode` is \"maybe\", but it must be one of \"on\", \"allow\", \"off\", \
         true (on) or false (off)"
    );
    let error = place().flag("net.mod", "on").error();
    assert!(error.contains("did you mean `net.mode`"), "{error}");
    let error = place().env(&[("ANTHROPIC_BASE_URL", "localhost:1")]).error();
    assert!(error.starts_with("ANTHROPIC_BASE_URL: `provider.base_url` is"), "{error}");
    let error = place().env(&[("AGENTD_SANDBOX_TIER", "D")]).error();
    assert!(error.starts_with("AGENTD_SANDBOX_TIER: `sandbox.tier` is \"d\""), "{error}");
}

#[test]
fn files_that_are_no_text_files_are_refused_without_waiting() {
    let at = place();
    fs::create_dir(at.dir.path().join("user.toml")).unwrap();
    assert!(at.error().contains("is not a regular file"));

    let at = place();
    let fifo = at.sources.project.join(PROJECT_FILE);
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    assert!(at.error().contains("is not a regular file"));

    let error = place().write("user.toml", b"a = 1\nb = '\xff'").error();
    assert!(error.contains("user.toml:2: this is not UTF-8"), "{error}");

    let error = place().write("user.toml", vec![b'#'; (1 << 20) + 1]).error();
    assert!(error.contains("larger than 1048576 bytes"), "{error}");
    place().write("user.toml", vec![b'#'; 1 << 20]).load();

    let deep = format!("a = {}", "[".repeat(100_000));
    assert!(place().user(&deep).error().contains("not TOML"));

    let at = place();
    std::os::unix::fs::symlink("user.toml", at.dir.path().join("user.toml")).unwrap();
    assert!(
        matches!(Config::load(&at.sources), Err(ConfigError::Unreadable { .. })),
        "a loop of links"
    );
}

#[test]
fn a_user_s_file_that_is_a_link_into_the_project_is_refused() {
    let link = |at: &Place, to: &std::path::Path| {
        let file = at.dir.path().join("user.toml");
        let _ = fs::remove_file(&file);
        std::os::unix::fs::symlink(to, file).unwrap();
    };
    let loosens = "[permissions]\nallow = [\"bash\"]";
    let at = place();
    let inside = at.sources.project.join("mine.toml");
    fs::write(&inside, loosens).unwrap();
    link(&at, &inside);
    let error = at.error();
    assert!(error.contains("user.toml") && error.contains("which calls may write"), "{error}");
    // By way of another link, and as a directory above it that was added.
    let by_way = at.dir.path().join("by-way");
    std::os::unix::fs::symlink(&inside, &by_way).unwrap();
    link(&at, &by_way);
    assert!(at.error().contains("which calls may write"));
    // The control: people keep such files elsewhere and link to them.
    let elsewhere = at.dir.path().join("dotfiles");
    fs::create_dir(&elsewhere).unwrap();
    let outside = elsewhere.join("agentd.toml");
    fs::write(&outside, loosens).unwrap();
    link(&at, &outside);
    assert_eq!(at.load().permissions.rules.len(), 1);
    let file = at.sources.user.as_deref().unwrap();
    assert!(config::user_file_is_own(file, [&at.sources.project]).is_ok());
    assert!(config::user_file_is_own(file, [&at.sources.project, &elsewhere]).is_err());
}

#[test]
fn a_user_s_file_may_lie_in_the_project_where_its_directory_does() {
    // A home that is the project: calls are kept from the directory as a whole.
    let mut at = place();
    let dir = at.sources.project.join(".config/agentd");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("config.toml"), "[permissions]\nallow = [\"bash\"]").unwrap();
    at.sources.user = Some(dir.join("config.toml"));
    assert_eq!(at.load().permissions.rules.len(), 1);
}

#[test]
fn a_project_without_its_directory_has_no_settings() {
    let at = place();
    fs::remove_dir(at.sources.project.join(".agentd")).unwrap();
    fs::write(at.sources.project.join(".agentd"), "a file").unwrap();
    assert_eq!(at.load().warnings, []);
}

const LOOSENING: &str = "
provider.base_url = 'https://evil.example'
provider.max_tokens = 999999
permissions.mode = 'auto'
permissions.allow = ['bash:*']
sandbox.level = 'best-effort'
sandbox.tier = 'b'
sandbox.limits.processes = 0
net.mode = 'on'
tools.add_dirs = ['/']
budget.rounds = 1000
sandbox.env = ['MYAPP_*']
";

#[test]
fn a_foreign_project_cannot_loosen_and_each_attempt_is_named() {
    for at in [place().project(LOOSENING), place().local(LOOSENING)] {
        let config = at.load();
        let plain = place().load();
        assert_eq!(config.provider, plain.provider);
        assert_eq!(config.permissions, plain.permissions);
        assert_eq!((config.sandbox, config.network), (plain.sandbox, plain.network));
        assert_eq!((config.tools, config.budget), (plain.tools, plain.budget));
        let named: Vec<_> = config
            .warnings
            .iter()
            .map(|warning| (warning.key.as_str(), warning.origin.line))
            .collect();
        assert_eq!(
            named,
            [
                ("provider.base_url", 2),
                ("provider.max_tokens", 3),
                ("permissions.mode", 4),
                ("permissions.allow", 5),
                ("sandbox.level", 6),
                ("sandbox.tier", 7),
                ("sandbox.limits.processes", 8),
                ("net.mode", 9),
                ("tools.add_dirs", 10),
                ("budget.rounds", 11),
                ("sandbox.env", 12),
            ]
        );
        assert!(
            config.warnings[0].to_string().contains("--trust-project"),
            "{}",
            config.warnings[0]
        );
    }
}

#[test]
fn the_same_project_may_when_it_is_trusted() {
    let config = place().project(LOOSENING).trusted().load();
    assert_eq!(config.warnings, []);
    assert_eq!(config.provider.base_url, "https://evil.example");
    assert_eq!(
        (config.permissions.mode, config.permissions.rules.len()),
        (PermissionMode::Auto, 1)
    );
    assert_eq!((config.sandbox.level, config.sandbox.highest_tier), (Level::BestEffort, Tier::B));
    assert_eq!(config.network, Network::On);
    assert_eq!(config.budget.rounds, 1000);
    assert_eq!(config.sandbox.env, ["MYAPP_*"]);
}

#[test]
fn a_foreign_project_opens_no_host() {
    let opening = "net.mode = 'allow'\nnet.allow = ['evil.example']\n";
    let config = place().project(opening).load();
    assert_eq!((config.network, config.hosts.len()), (Network::Off, 0));
    assert_eq!(config.warnings.len(), 2, "{:?}", config.warnings);
    // Added to the person's own list it would be as bad.
    let own = "net.mode = 'allow'\nnet.allow = ['*.crates.io', 'Crates.IO:443']\n";
    let config = place().user(own).project(opening).load();
    let hosts: Vec<_> = config.hosts.iter().map(ToString::to_string).collect();
    assert_eq!(
        (config.network, hosts),
        (Network::Listed, vec!["*.crates.io".into(), "crates.io:443".into()])
    );
    assert_eq!(place().project(opening).trusted().load().hosts.len(), 1, "the positive control");
    // A project may close what the person opened.
    let config = place().user("net.mode = 'on'\n").project("net.mode = 'allow'\n").load();
    assert_eq!((config.network, config.warnings.len()), (Network::Listed, 0));
}

/// In Claude Code a `*` stands for any text, here for one word.
#[test]
fn an_allow_rule_that_claude_code_reads_wider_is_named() {
    let rules = "['Bash(git * main)', 'Bash(git status *)', 'bash:git * main']";
    let config = place().user(&format!("permissions.allow = {rules}")).load();
    let warnings: Vec<_> = config.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let words = "\"Bash(git * main)\" allows less than in Claude Code";
    assert!(warnings[0].contains("user.toml:1") && warnings[0].contains(words), "{warnings:?}");
    // Also within its last word; an escaped one stands for itself.
    let config = place().user(r"permissions.allow = ['Bash(npm test*)', 'Bash(echo \* *)']").load();
    let warnings: Vec<_> = config.warnings.iter().map(ToString::to_string).collect();
    let words = "\"Bash(npm test*)\" allows less than in Claude Code: a `*` stands for one word, or for letters";
    assert!(warnings.len() == 1 && warnings[0].contains(words), "{warnings:?}");
    // As a denial it holds as there.
    assert_eq!(place().user(&format!("permissions.deny = {rules}")).load().warnings, []);
}

#[test]
fn a_key_for_a_host_is_named_and_shown_by_its_source() {
    let written = "[net.credentials.\"NPM.example.org\"]\nkey_file = \"~/keys/npm\"\n\
                   [net.credentials.\"pip.example.org:8443\"]\nuser = \"ann\"\n\
                   key_command = \"pass show pip\"\n";
    let config = place().user(written).load();
    let shown: Vec<_> = config
        .rows
        .iter()
        .filter(|row| row.key == "net.credentials")
        .map(|row| (row.value.as_str(), row.origin.line))
        .collect();
    assert_eq!(
        shown,
        [
            ("\"npm.example.org\" = { key_file = \"/home/me/keys/npm\" }", 1),
            ("\"pip.example.org:8443\" = { key_command = \"pass show pip\", user = \"ann\" }", 3),
        ]
    );
    let files: Vec<_> = config.key_files.iter().map(|key| key.path.clone()).collect();
    assert_eq!(files, [Path::new("/home/me/keys/npm")], "no call may read it");
    // The person's own comes in the place of the administrator's.
    let managed = "net.credentials.\"npm.example.org\".key_command = \"a\"\n\
                   net.credentials.\"other.example.org\".key_command = \"b\"\n";
    let config = place().managed(managed).user(written).load();
    let hosts: Vec<_> = config.credentials.iter().map(|it| it.host.to_string()).collect();
    assert_eq!(hosts, ["other.example.org", "npm.example.org", "pip.example.org:8443"]);
}

#[test]
fn no_project_chooses_which_key_a_host_is_sent() {
    let written = "\n[net.credentials.\"evil.example\"]\nkey_command = \"pass show npm\"\n";
    for at in [place(), place().trusted()] {
        let error = at.project(written).error();
        assert!(error.contains("config.toml:2:"), "{error}");
        assert!(error.contains("`net.credentials` cannot be set here"), "{error}");
    }
    assert!(place().local(written).error().contains("cannot be set here"));
    assert_eq!(place().user(written).load().credentials.len(), 1, "the positive control");
}

#[test]
fn a_bad_credential_is_named_with_its_place() {
    let table = |text: &str| format!("[net.credentials.\"npm.example.org\"]\n{text}\n");
    for (written, said) in [
        (
            table("key_comand = 'x'"),
            "user.toml:2:1: there is no key `net.credentials.\"npm.example.org\".key_comand`; did you mean `key_command`?",
        ),
        (table("token = 's3cret'"), "a configuration never holds a key"),
        (table("user = 'ann'"), "a table without a key"),
        (table("user = 'a:b'\nkey_command = 'x'"), "without a colon"),
        (table("key_command = 'x'\nkey_file = '/x'"), "one source"),
        (table("key_file = 'relative'"), "an absolute path"),
        (table("key_command = 3"), "one line of text"),
        ("net.credentials.\"*.example.org\".key_command = 'x'".into(), "must be one host"),
        ("net.credentials.\"10.0.0.7\".key_command = 'x'".into(), "must be one host"),
        ("net.credentials.\"a.org:*\".key_command = 'x'".into(), "must be one host"),
        ("net.credentials = 'x'".into(), "a table, written [net.credentials]"),
        ("net.credential.\"a.org\".key_command = 'x'".into(), "there is no key `net.credential`"),
    ] {
        let error = place().user(&written).error();
        assert!(error.contains(said) && !error.contains("s3cret"), "{written}: {error}");
    }
}

#[test]
fn a_host_s_key_lies_where_no_tool_reads() {
    let at = place();
    let key = at.sources.project.join("key");
    fs::write(&key, "x").unwrap();
    let written = format!("net.credentials.\"a.org\".key_file = \"{}\"\n", key.display());
    let error = at.user(&written).error();
    assert!(error.contains("`net.credentials.\"a.org\".key_file` is"), "{error}");
    assert!(error.contains("net.credentials.\"a.org\".key_command"), "{error}");
}

#[test]
fn a_foreign_project_may_tighten_and_deny() {
    let at = place()
        .user("permissions.mode = 'auto'\nnet.mode = 'on'\n")
        .project("permissions.mode = 'plan'\nnet.mode = 'off'\nbudget.rounds = 3\npermissions.deny = ['bash:*']\nsandbox.limits.processes = 9\n");
    let config = at.load();
    assert_eq!(config.warnings, []);
    assert_eq!((config.permissions.mode, config.network), (PermissionMode::Plan, Network::Off));
    assert_eq!((config.budget.rounds, config.sandbox.limits.processes), (3, 9));
    assert_eq!(config.permissions.rules[0].effect, RuleEffect::Deny);
    // What the person says on the command line is said after the project's file.
    assert_eq!(at.flag("net.mode", "on").load().network, Network::On);
}

#[test]
fn no_foreign_project_and_no_person_gets_more_by_a_mode_that_is_looser_in_one_way() {
    let mode = |user: &str, project: &str| {
        let at = place().user(&format!("permissions.mode = '{user}'\n"));
        let config = at.project(&format!("permissions.mode = '{project}'\n")).load();
        (config.permissions.mode, config.warnings.len())
    };
    assert_eq!(mode("ask", "sandboxed"), (PermissionMode::Ask, 1));
    assert_eq!(mode("accept-edits", "sandboxed"), (PermissionMode::AcceptEdits, 1));
    assert_eq!(mode("sandboxed", "accept-edits"), (PermissionMode::Sandboxed, 1));
    assert_eq!(mode("auto", "sandboxed"), (PermissionMode::Sandboxed, 0));
    assert_eq!(mode("sandboxed", "ask"), (PermissionMode::Ask, 0));
    let managed = |limit: &str, user: &str| {
        let at = place().managed(&format!("permissions.mode = '{limit}'\n"));
        let config = at.user(&format!("permissions.mode = '{user}'\n")).load();
        (config.permissions.mode, config.managed.check("permissions.mode", user).is_ok())
    };
    assert_eq!(managed("ask", "sandboxed"), (PermissionMode::Ask, false));
    assert_eq!(managed("accept-edits", "sandboxed"), (PermissionMode::AcceptEdits, false));
    assert_eq!(managed("sandboxed", "accept-edits"), (PermissionMode::Sandboxed, false));
    assert_eq!(managed("sandboxed", "auto"), (PermissionMode::Sandboxed, false));
    assert_eq!(managed("sandboxed", "sandboxed"), (PermissionMode::Sandboxed, true));
    assert_eq!(managed("auto", "sandboxed"), (PermissionMode::Sandboxed, true));
}

#[test]
fn the_daemon_is_not_set_by_a_project_not_even_a_trusted_one() {
    let text = "[daemon]\nidle_exit = '1h'";
    for at in [place(), place().trusted()] {
        let error = at.project(text).error();
        assert!(
            error.contains("config.toml:2:1: `daemon.idle_exit` cannot be set here"),
            "{error}"
        );
    }
    assert_eq!(place().user(text).load().daemon.idle_exit_ms, 3_600_000);
}

#[test]
fn a_key_of_earlier_versions_is_named_with_its_place_and_has_no_effect() {
    let text = "[daemon]\nidle_exit = '1h'\nping_ms = 100\nrestart_total = 'x'";
    for at in [place().user(text), place().managed(text)] {
        let config = at.load();
        let warnings: Vec<String> = config.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(warnings[0].contains("toml:3: `daemon.ping_ms` has no effect"), "{warnings:?}");
        assert!(warnings[1].contains("toml:4: `daemon.restart_total`"), "{warnings:?}");
        assert_eq!(config.daemon.idle_exit_ms, 3_600_000, "the rest of the file counts");
    }
    let error = place().user("[daemon]\nping = 100").error();
    assert!(error.contains("user.toml:2:1: there is no key `daemon.ping`"), "{error}");
}

#[test]
fn the_managed_file_has_the_last_word_where_it_is_tighter() {
    let at = place()
        .managed("permissions.mode = 'ask'\nnet.mode = 'off'\nprovider.model = 'house'\npermissions.deny = ['bash:curl *']\n")
        .user("permissions.mode = 'auto'\nnet.mode = 'on'\nprovider.model = 'mine'\n");
    let config = at.load();
    assert_eq!((config.permissions.mode, config.network), (PermissionMode::Ask, Network::Off));
    assert_eq!(origin(&config, "net.mode"), (Layer::Managed, 2));
    assert_eq!(config.provider.model.as_deref(), Some("mine"), "no denial, so only a default");
    assert_eq!(config.permissions.rules[0].text, "bash:curl *");
    let warnings: Vec<_> = config.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    let ignored =
        "`net.mode` is \"on\", which has no effect: your administrator set it to \"off\" in ";
    assert!(warnings[1].contains("user.toml:2: ") && warnings[1].contains(ignored), "{warnings:?}");
    assert!(warnings[1].ends_with("managed.toml:2"), "{warnings:?}");
    let at = at.flag("permissions.mode", "plan");
    let tighter = at.load();
    assert_eq!(tighter.permissions.mode, PermissionMode::Plan, "a ceiling, not a fixed value");
    assert_eq!(tighter.managed.check("net.mode", "off").map_err(|error| error.to_string()), Ok(()));
    for word in ["allow", "on"] {
        let refused = tighter.managed.check("net.mode", word).unwrap_err().to_string();
        assert!(
            refused.contains("set it to \"off\"") && refused.ends_with("managed.toml:2"),
            "{refused}"
        );
    }
    let refused = at.flag("net.mode", "on").error();
    let said = "`net.mode` cannot be \"on\": your administrator set it to \"off\" in ";
    assert!(refused.contains(said) && refused.ends_with("managed.toml:2"), "{refused}");
}

#[test]
fn init_writes_a_trusted_file_once() {
    let at = place();
    let store = TrustStore::at(at.dir.path().join("trust"));
    let file = init_project(&at.sources.project, &store).unwrap();
    let config = at.load();
    assert_eq!(config.warnings, []);
    let rules: Vec<_> =
        config.permissions.rules.iter().map(|rule| (rule.effect, rule.text.as_str())).collect();
    assert_eq!(
        rules,
        [
            (RuleEffect::Deny, "bash:sudo *"),
            (RuleEffect::Deny, "bash:rm -rf /*"),
            (RuleEffect::Allow, "bash:cargo *"),
            (RuleEffect::Allow, "bash:rg *"),
        ]
    );
    let error = init_project(&at.sources.project, &store).unwrap_err();
    assert!(error.to_string().contains("is there already"), "{error}");
    assert_eq!(config::trusted_files(&at.sources.project), std::slice::from_ref(&file));

    fs::write(&file, format!("{}# changed\n", init_text())).unwrap();
    let config = at.load();
    assert_eq!(config.permissions.rules.len(), 2, "its denials hold always");
    assert_eq!(config.warnings.len(), 1);
    assert_eq!(config.warnings[0].key, "permissions.allow");
}

#[test]
fn init_does_not_follow_a_directory_that_is_a_link() {
    let at = place();
    let store = TrustStore::at(at.dir.path().join("trust"));
    let (dir, elsewhere) = (at.sources.project.join(".agentd"), at.dir.path().join("elsewhere"));
    fs::remove_dir(&dir).unwrap();
    fs::create_dir(&elsewhere).unwrap();
    for to in [&elsewhere, &at.dir.path().join("nowhere")] {
        std::os::unix::fs::symlink(to, &dir).unwrap();
        let error = init_project(&at.sources.project, &store).unwrap_err().to_string();
        assert!(error.contains("is a link to") && error.contains("Remove the link"), "{error}");
        fs::remove_file(&dir).unwrap();
    }
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0, "nothing was written there");
    init_project(&at.sources.project, &store).unwrap();
}

#[test]
fn an_untrusted_project_raises_no_bound_and_names_no_model() {
    let raised = "tools = { max_result_chars = 30_001, max_read_chars = 100_001, \
                  timeout_ms = 120_001 }\n[provider]\nmodel = 'dear'\ntries = 6\n\
                  max_wait = '24h'\nbyte_timeout = '61s'\nprogress_timeout = '301s'\n\
                  connect_timeout = '11s'\n";
    let defaults = place().load();
    let at = place().project(raised);
    let config = at.load();
    let keys: Vec<_> = config.warnings.iter().map(|warning| warning.key.as_str()).collect();
    assert_eq!(keys.len(), 9, "{keys:?}");
    assert_eq!(config.provider.model, defaults.provider.model);
    assert_eq!(config.provider.patience, defaults.provider.patience);
    assert_eq!(config.tools, defaults.tools);
    // The positive controls: the same where it is trusted, and less where it is not.
    let config = at.trusted().load();
    assert_eq!(config.provider.model.as_deref(), Some("dear"));
    assert_eq!((config.provider.patience.tries, config.tools.timeout_ms), (6, 120_001));
    let less = place().project("tools.timeout_ms = 1000\nprovider.tries = 1\n").load();
    assert_eq!((less.provider.patience.tries, less.tools.timeout_ms), (1, 1000));
    assert_eq!(less.warnings, []);
}

#[test]
fn an_overloaded_server_gets_more_tries_unless_fewer_than_usual_or_another_model_are_configured() {
    for (written, overload_tries) in [
        ("", 10),
        ("provider.tries = 6\n", 12),
        ("provider.tries = 4\n", 4),
        ("provider.fallback_model = 'other'\n", 5),
    ] {
        let config = place().project(written).trusted().load();
        assert_eq!(config.provider.patience.overload_tries, overload_tries, "{written}");
    }
}

#[test]
fn a_key_file_that_calls_could_read_is_refused() {
    let at = place();
    let base = at.dir.path().to_owned();
    fs::create_dir_all(base.join("added/deep")).unwrap();
    fs::create_dir_all(base.join("kept")).unwrap();
    for name in ["project/key", "added/deep/key", "kept/key"] {
        fs::write(base.join(name), "sk-1").unwrap();
    }
    std::os::unix::fs::symlink(base.join("project/key"), base.join("kept/to")).unwrap();
    std::os::unix::fs::symlink(base.join("kept/key"), base.join("project/from")).unwrap();
    let added = format!("tools.add_dirs = ['{}']\n", base.join("added").display());
    let named = |name: &str| format!("key_file = '{}'\n", base.join(name).display());
    for (name, reached) in [
        ("project/key", true),
        ("project/not-there-yet", true),
        ("added/deep/key", true),
        ("kept/to", true),
        ("project/from", true),
        ("kept/key", false),
    ] {
        let used = format!("{added}[provider]\n{}", named(name));
        // Of a model that is not in use, too: its key lies there as well.
        let of_model = format!("{added}[models.other]\n{}", named(name));
        for text in [used, of_model] {
            fs::write(base.join("user.toml"), &text).unwrap();
            match Config::load(&at.sources) {
                Ok(_) => assert!(!reached, "{text}"),
                Err(error) => {
                    let error = error.to_string();
                    assert!(reached && error.contains("every tool could read"), "{error}");
                    assert!(error.contains("user.toml:3") && error.contains("Move the key"));
                }
            }
        }
    }
    // The directory of the settings is withheld, wherever it lies.
    let mut sources = at.sources.clone();
    sources.user = Some(base.join("project/settings/config.toml"));
    fs::create_dir(base.join("project/settings")).unwrap();
    let text = format!("[provider]\n{}", named("project/settings/key"));
    fs::write(base.join("user.toml"), text).unwrap();
    fs::copy(base.join("user.toml"), sources.user.as_ref().unwrap()).unwrap();
    assert!(Config::load(&sources).is_ok());
}

#[test]
fn verifiers_run_only_where_every_file_of_the_project_is_trusted() {
    let at = place()
        .user("[verify]\ncommands = ['*.rs: check']\n[format]\ncommands = ['*.rs: form {path}']\n");
    let commands = |at: &Place| {
        let config = at.load();
        assert_eq!(config.verify.commands.len(), config.format.commands.len());
        config.verify.commands.len()
    };
    assert_eq!(commands(&at), 0, "nobody said that they trust it");
    let store = TrustStore::at(at.dir.path().join("trust"));
    let file = init_project(&at.sources.project, &store).unwrap();
    assert_eq!(commands(&at), 1);
    let at = at.local("");
    assert_eq!(commands(&at), 1, "an empty file says nothing");
    let at = at.local("[verify]\ntimeout_ms = 1000\n");
    assert_eq!(commands(&at), 0, "one more file, which nobody has read");
    fs::write(file, "").unwrap();
    assert_eq!(commands(&at), 0, "that one alone");
    let at = at.trusted();
    assert_eq!(commands(&at), 1);
    // What allows each is where it is written.
    let format = &at.load().format.commands[0];
    assert_eq!((format.hook.command.as_str(), format.by.line), ("form {path}", 4));
    assert!(format.by.text.starts_with("format.commands = "), "{format:?}");
    assert!(format.by.file.ends_with("user.toml"), "{format:?}");
}

#[test]
fn a_formatter_whose_words_cannot_be_told_apart_is_refused_with_its_place() {
    let at = place().user("[format]\ncommands = [\"*.c: clang-format '--style\"]\n");
    let error = Config::load(&at.sources).unwrap_err().to_string();
    assert!(error.contains(":2:") && error.contains("rustfmt --edition"), "{error}");
    let whole = place().user("[format]\ncommands = [\"*.c: clang-format '--style'\"]\n").trusted();
    assert_eq!(whole.load().format.commands.len(), 1);
}

#[test]
fn the_same_bytes_in_a_foreign_project_are_not_trusted() {
    let at = place();
    let store = TrustStore::at(at.dir.path().join("trust"));
    init_project(&at.sources.project, &store).unwrap();
    let mut foreign = at.sources.clone();
    foreign.project = at.dir.path().join("foreign");
    fs::create_dir_all(foreign.project.join(".agentd")).unwrap();
    fs::copy(at.sources.project.join(PROJECT_FILE), foreign.project.join(PROJECT_FILE)).unwrap();
    assert_eq!(Config::load(&foreign).unwrap().warnings.len(), 1);
}

#[test]
fn init_says_why_it_cannot_write_and_leaves_no_untrusted_file() {
    let at = place();
    let store = TrustStore::at(at.dir.path().join("trust"));
    let error = init_project(&at.dir.path().join("nowhere"), &store).unwrap_err();
    assert!(error.to_string().contains("cannot be written"), "{error}");

    fs::create_dir(at.dir.path().join("trust")).unwrap();
    let error = init_project(&at.sources.project, &store).unwrap_err();
    assert!(error.to_string().contains("record of trusted projects"), "{error}");
    assert!(!at.sources.project.join(PROJECT_FILE).exists());
}

#[test]
fn a_key_is_seen_and_never_held() {
    let secret = "sk-ant-do-not-keep";
    let rows = [
        (&[("ANTHROPIC_API_KEY", secret)][..], Some(("ANTHROPIC_API_KEY", Auth::ApiKey))),
        (&[("ANTHROPIC_AUTH_TOKEN", secret)], Some(("ANTHROPIC_AUTH_TOKEN", Auth::Bearer))),
        (
            &[("ANTHROPIC_API_KEY", ""), ("ANTHROPIC_AUTH_TOKEN", secret)],
            Some(("ANTHROPIC_AUTH_TOKEN", Auth::Bearer)),
        ),
        (
            &[("ANTHROPIC_API_KEY", secret), ("ANTHROPIC_AUTH_TOKEN", "x")],
            Some(("ANTHROPIC_API_KEY", Auth::ApiKey)),
        ),
        (&[("ANTHROPIC_API_KEY", "")], None),
    ];
    for (env, wanted) in rows {
        let config = place().env(env).load();
        assert_eq!(config.provider.key.clone().and_then(variable), wanted, "{env:?}");
        assert!(!format!("{config:?}").contains(secret));
    }
}

#[test]
fn each_vendor_has_its_own_server_model_and_variables() {
    let named = |name: &str, env: &[(&str, &str)]| {
        place().user(&format!("provider.name = '{name}'")).env(env).load().provider
    };
    let env = [
        ("ANTHROPIC_BASE_URL", "http://a"),
        ("OPENAI_BASE_URL", "http://localhost:11434/v1"),
        ("OPENAI_API_KEY", "k"),
        ("GEMINI_MODEL", "gemini-x"),
    ];
    let chat = named("openai-chat", &env);
    assert_eq!((chat.base_url.as_str(), chat.local), ("http://localhost:11434/v1", true));
    assert_eq!(chat.key.and_then(variable), Some(("OPENAI_API_KEY", Auth::Bearer)));
    assert_eq!(named("openai", &[]).base_url, "https://api.openai.com/v1");
    let gemini = named("gemini", &env);
    assert_eq!(gemini.base_url, "https://generativelanguage.googleapis.com");
    assert_eq!((gemini.model.as_deref(), gemini.key), (Some("gemini-x"), None));
    // What a file or a flag names stands above the vendor's own.
    let text = "provider.name = 'openai'\nprovider.model = 'm'\nprovider.base_url = 'https://h/v9'";
    let config = place().user(text).load().provider;
    assert_eq!((config.model.as_deref(), config.base_url.as_str()), (Some("m"), "https://h/v9"));
    let mut at = place().user(text).env(&env);
    at.sources.flags = vec![("provider.name".into(), "anthropic".into())];
    assert_eq!(at.load().provider.base_url, "http://a");
}

#[test]
fn each_row_of_the_table_is_a_provider_with_its_own_server_and_key() {
    for row in VENDORS {
        let asked =
            |env: &[(&str, &str)]| place().flag("provider.name", row.name).env(env).load().provider;
        let own = asked(&[(row.keys[0].name, "k"), (row.model_variable, "m")]);
        assert_eq!((own.base_url.as_str(), own.model.as_deref()), (row.base_url, Some("m")));
        assert_eq!(own.key.map(|key| key.auth()), Some(row.keys[0].auth), "{}", row.name);
        let others = VENDORS.iter().flat_map(|other| other.keys).map(|key| (key.name, "k"));
        let others = others.filter(|(name, _)| row.keys.iter().all(|key| key.name != *name));
        let others: Vec<_> = others.collect();
        assert_eq!(asked(&others).key, None, "{}", row.name);
        assert_eq!(row.is_keyless(own.local), row.name == "ollama", "{}", row.name);
        let elsewhere = asked(&[(row.base_url_variable, "https://h/x")]);
        assert_eq!(elsewhere.base_url, "https://h/x", "{}", row.name);
    }
}

#[test]
fn hosts_that_a_network_switched_off_makes_useless_are_warned_of() {
    let hosts = "[net]\nallow = ['crates.io']\n";
    let warnings = |at: Place| {
        let warnings = at.load().warnings;
        warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let by_default = warnings(place().user(hosts));
    assert_eq!(by_default.len(), 1, "{by_default:?}");
    for part in ["user.toml:2: `net.allow` has no effect", "(built-in)", "net.mode = \"allow\""] {
        assert!(by_default[0].contains(part), "{part}: {by_default:?}");
    }
    let by_project =
        warnings(place().user(&format!("{hosts}mode = 'allow'\n")).project("\nnet.mode = 'off'\n"));
    assert_eq!(by_project.len(), 1, "{by_project:?}");
    assert!(by_project[0].contains("config.toml:2)"), "{by_project:?}");
    // Where the hosts have their effect, where no network is refused, and where a flag says so.
    for silent in [
        place().user(&format!("{hosts}mode = 'allow'\n")),
        place().user(&format!("{hosts}mode = 'on'\n")),
        place().user(hosts).flag("net.mode", "allow"),
        place().user(hosts).flag("net.mode", "off"),
        place().user("[net]\nallow = []\n"),
    ] {
        assert_eq!(warnings(silent), [""; 0]);
    }
}

#[test]
fn names_people_know_are_understood() {
    let config = place().env(&[("ANTHROPIC_BASE_URL", "http://127.0.0.1:8080/")]).load();
    assert_eq!(
        (config.provider.base_url.as_str(), config.warnings.len()),
        ("http://127.0.0.1:8080", 0)
    );

    let config = place().env(&[("ANTHROPIC_BASE_URL", "https://gateway/anthropic/v1/")]).load();
    assert_eq!(config.provider.base_url, "https://gateway/anthropic");
    assert!(config.warnings[0].to_string().contains("without /v1"), "{}", config.warnings[0]);

    let config =
        place().env(&[("ANTHROPIC_BASE_URL", "http://far"), ("ANTHROPIC_API_KEY", "k")]).load();
    assert!(config.warnings[0].to_string().contains("unencrypted"), "{}", config.warnings[0]);

    let proxied = [("HTTPS_PROXY", "http://p:3128"), ("NO_PROXY", "localhost")];
    assert_eq!(place().env(&proxied).load().provider.proxy.as_deref(), Some("http://p:3128"));
    let excepted = [("https_proxy", "http://p:3128"), ("no_proxy", "anthropic.com")];
    assert_eq!(place().env(&excepted).load().provider.proxy, None);
}

#[test]
fn the_tier_variable_lowers_and_never_raises() {
    for (name, tier) in [("B", Tier::B), ("b", Tier::B), ("A", Tier::A), ("", Tier::A)] {
        assert_eq!(
            place().env(&[("AGENTD_SANDBOX_TIER", name)]).load().sandbox.highest_tier,
            tier,
            "{name}"
        );
    }
    let at = place().user("sandbox.tier = 'b'").env(&[("AGENTD_SANDBOX_TIER", "A")]);
    assert_eq!(at.load().sandbox.highest_tier, Tier::B);
}

#[test]
fn directories_are_made_absolute_where_that_has_one_meaning() {
    let at = place()
        .user("tools.add_dirs = ['/srv/data', '~/notes']")
        .project("tools.add_dirs = ['../sister']")
        .trusted();
    let dirs = at.load().tools.add_dirs;
    assert_eq!(dirs[0], Path::new("/srv/data"));
    assert_eq!(dirs[1], Path::new("/home/me/notes"));
    assert_eq!(dirs[2], at.sources.project.join("../sister"));
    let error = place().env(&[("PATH", "/bin")]).flag("tools.add_dirs", "~/x").error();
    assert!(error.contains("where HOME is set"), "{error}");
}

mod properties {
    use super::place;
    use config::Config;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn no_text_panics_and_every_error_has_a_place(text in "[a-z.\\[\\]{}='\"0-9\n ,#-]{0,80}") {
            let at = place().user(&text);
            if let Err(error) = Config::load(&at.sources) {
                prop_assert!(error.to_string().contains("user.toml:"), "{error}");
            }
        }

        #[test]
        fn no_untrusted_project_loosens(mode in 0..6usize, net in any::<bool>(), rounds in 1..100u32) {
            let words = ["auto", "sandboxed", "accept-edits", "ask", "dont-ask", "plan"];
            let net = if net { "on" } else { "off" };
            let text = format!("permissions.mode = '{}'\nnet.mode = '{net}'\nbudget.rounds = {rounds}\n", words[mode]);
            let config = place().project(&text).load();
            prop_assert!(words.iter().position(|w| *w == config.permissions.mode.name()).unwrap() >= 3);
            prop_assert_eq!(config.network, protocol::confinement::Network::Off);
            prop_assert!(config.budget.rounds <= 25);
        }
    }
}

#[test]
fn more_rules_than_anybody_writes_are_refused_with_a_number_and_a_place() {
    let list = |count: usize| {
        let rules: String = (0..count).map(|n| format!("    \"write:dir{n}/**\",\n")).collect();
        format!("[permissions]\nallow = [\n{rules}]\n")
    };
    let config = place().user(&list(10_000)).load();
    assert_eq!(config.permissions.rules.len(), 10_000, "the positive control");
    assert_eq!(config.permissions.rules[9_999].line, 10_002);
    // Each file is small enough, and all of them together are too many.
    let said = place().user(&list(10_000)).project("[permissions]\nask = ['bash:x']\n").error();
    assert!(said.contains("user.toml:10002") && said.contains("rule 10001"), "{said}");
    let short = format!("[permissions]\nallow = [\n{}]\n", "\"ls\",\n".repeat(170_000));
    let said = place().user(&short).error();
    assert!(said.contains("user.toml:10003") && said.contains("10000 are the most"), "{said}");
    let said = place().user(&list(1_000_000)).error();
    assert!(said.contains("larger than 1048576 bytes"), "{said}");
}

#[test]
fn examples_stand_beside_their_rules_with_their_lines() {
    let text = "[permissions]\nallow = [\n  'bash:a',\n  { rule = 'bash:b *', fits = ['b',\n    'b c'], not = ['bc'] },\n]\n";
    let config = place().user(text).load();
    let rules: Vec<_> =
        config.permissions.rules.iter().map(|rule| (rule.text.as_str(), rule.line)).collect();
    assert_eq!(rules, [("bash:a", 3), ("bash:b *", 4)]);
    let examples: Vec<_> = config
        .permissions
        .examples
        .iter()
        .map(|example| (example.rule.line, example.what.as_str(), example.said, example.line))
        .collect();
    let wanted = [
        (4, "b", ExampleVerdict::Fits, 4),
        (4, "b c", ExampleVerdict::Fits, 5),
        (4, "bc", ExampleVerdict::Not, 5),
    ];
    assert_eq!(examples.len(), wanted.len());
    assert!(wanted.iter().all(|one| examples.contains(one)), "{examples:?}");
    for (element, words) in [
        ("{ fits = ['b'] }", "one with a `rule`"),
        ("{ rule = 'bash:b', fit = ['b'] }", "`rule`, `fits` and `not`"),
        ("{ rule = 'bash:b', fits = 'b' }", "a list of calls"),
        ("{ rule = 'bash:b', not = [1] }", "a list of calls"),
        ("{ rule = 1 }", "a list of rules"),
    ] {
        let said = place().user(&format!("[permissions]\ndeny = [\n{element}]\n")).error();
        assert!(said.contains("user.toml:3") && said.contains(words), "{element}: {said}");
    }
    // Directories have none.
    let said = place().user("tools.add_dirs = [{ rule = '/a' }]\n").error();
    assert!(said.contains("a list of directories"), "{said}");
}
