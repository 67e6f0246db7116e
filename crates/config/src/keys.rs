//! All configuration keys. Each is one field: its meaning, which is also its row in `agentd help`; its type; its name
//! in files; its default, with the reason behind it; its range; and the changes that a project's file may make to it.
//!
//! A new key is a new row here, and an example of its use in the help topic that shows its section.

use crate::schema::ListKind::{Dirs, Files, Formatters, Hosts, Rules, Variables, Verifiers};
use crate::schema::Tightness::{LaterWord, Smaller, SmallerButZero, StricterMode};
use crate::schema::UntrustedMay::{Anything, Nothing, Tighten};
use crate::schema::ValueKind::{Count, List, Name, Time, Url, Word};
use crate::schema::{ConfigKey, UntrustedMay};
use crate::section::{Section, Worded, section, words};
use crate::value::ListItem;
use crate::vendors::{PROVIDER_NAMES, ProviderName, VENDORS};
use protocol::confinement::{Level, Limits, Network, Tier};
use protocol::context::CompactionKind;
use protocol::did_you_mean::nearest;
use protocol::hosts::HostRule;
use protocol::judgement::PermissionMode;
use protocol::provider::ReplaySpeed;
use protocol::web::{PrivateNetworks, WebSettings};
use std::path::PathBuf;

/// Longest time that is configured anywhere: a day, in milliseconds.
const DAY: u64 = 86_400_000;
/// The daemon serves all projects of its user, so no project sets it.
const DAEMON: UntrustedMay = UntrustedMay::Misplaced(
    "the daemon serves all your projects; set it in your own configuration file",
);

// The words of keys, the loosest first where they are ordered.
words!(bool: "on" => true, "off" => false);
words!(ReplaySpeed: "full" => Self::Full, "recorded" => Self::Recorded);
words!(PermissionMode: "auto" => Self::Auto, "sandboxed" => Self::Sandboxed, "accept-edits" => Self::AcceptEdits,
       "ask" => Self::Ask, "dont-ask" => Self::DontAsk, "plan" => Self::Plan);
words!(Level: "best-effort" => Self::BestEffort, "required" => Self::Required);
words!(Tier: "b" => Self::B, "a" => Self::A);
words!(Network: "on" => Self::On, "allow" => Self::Listed, "off" => Self::Off);
words!(PrivateNetworks: "allow" => Self::Reached, "refuse" => Self::Refused);
words!(CompactionKind: "summary" => Self::Summary, "cut" => Self::Cut);
words!(UiNotify: "bell" => Self::Bell, "osc9" => Self::Osc9, "osc777" => Self::Osc777, "off" => Self::Off);
words!(UiKeys: "emacs" => Self::Emacs, "vim" => Self::Vim);
words!(UiBusy: "queue" => Self::Queue, "steer" => Self::Steer);
words!(UiView: "inline" => Self::Inline, "full" => Self::Full);

section! {
    /// Where answers come from, as written. `ProviderConfig` is what follows from it.
    #[derive(Debug)]
    pub(crate) struct ProviderKeys {
        // A foreign base URL would be sent the conversation and the key.
        /// Vendor, as for `--provider`.
        name: ProviderName = key("provider.name", "anthropic", Word(PROVIDER_NAMES), Nothing),
        // For anthropic a model that is good at tools at a medium price. Another one costs more, or is a named one
        // with its server and its key.
        /// Model. The built-in default is for `anthropic` only; with other vendors, name one.
        model: String = key("provider.model", "vendor", Name, Nothing),
        // A model that you did not choose may be weaker, or cost more.
        /// Model with which a session goes on if its own does not answer, see `--fallback-model` in `agentd help
        /// scripts`.
        fallback_model: Option<String> = key("provider.fallback_model", "none", Name, Nothing),
        // ANTHROPIC_BASE_URL and similar variables name a compatible server.
        /// Server. Default: the vendor's own.
        base_url: String = key("provider.base_url", "vendor", Url, Nothing),
        // The usual place of a key is the environment.
        /// File with the key, readable only by you (mode 0600). Without one, the key is in the environment.
        key_file: Option<String> = key("provider.key_file", "none", Name, Nothing),
        /// Command that prints the key, such as `pass show anthropic`.
        key_command: Option<String> = key("provider.key_command", "none", Name, Nothing),
        // Room for a whole file in one answer; a runaway answer ends.
        /// Most tokens of one answer.
        max_tokens: u32 = key("provider.max_tokens", 16384, Count(1, 1_000_000), Tighten(Smaller)),
        // Enough for a short outage; a longer one is reported instead of waited for. Each try is paid for.
        /// Most tries of one request. An overloaded server that refuses it gets twice as many within 5 minutes, unless
        /// this is below the default or there is a fallback model.
        tries: u32 = key("provider.tries", 5, Count(1, 20), Tighten(Smaller)),
        // Each wait is a turn that hangs.
        /// Longest wait that a server may ask for; beyond it the turn ends.
        max_wait_ms: u64 = key("provider.max_wait", "1m", Time(0, DAY), Tighten(Smaller)),
        // Vendors ping every few seconds, so a minute without a byte is a dead connection.
        /// Longest time without a byte from the server.
        byte_timeout_ms: u64 = key("provider.byte_timeout", "1m", Time(100, DAY), Tighten(Smaller)),
        // Pings do not count; even long thinking sends something within this time.
        /// Longest time without a part of the answer.
        progress_timeout_ms: u64 = key("provider.progress_timeout", "5m", Time(100, DAY), Tighten(Smaller)),
        // A handshake that takes longer never completes.
        /// Longest time to connect.
        connect_timeout_ms: u64 = key("provider.connect_timeout", "10s", Time(100, DAY), Tighten(Smaller)),
        // A recording plays without delays.
        /// Speed of `--replay`: `full` or `recorded`.
        replay_speed: ReplaySpeed = key("provider.replay_speed", "full", Word(ReplaySpeed::WORDS), Anything),
    }
}

section! {
    /// Permission mode and rules, as written.
    #[derive(Debug)]
    pub(crate) struct PermissionKeys {
        // You decide about each mutation that matches no rule.
        /// What to do with calls that match no rule.
        mode: PermissionMode = key("permissions.mode", "ask", Word(PermissionMode::WORDS), Tighten(StricterMode)),
        // No mutation runs without asking until you add a rule.
        /// Rules that allow.
        allow: Vec<ListItem> = key("permissions.allow", [], List(Rules), Nothing),
        // Calls that need your answer even if the mode allows them.
        /// Rules that ask.
        ask: Vec<ListItem> = key("permissions.ask", [], List(Rules), Anything),
        // The cage applies in any case; these deny calls that it would permit.
        /// Rules that deny.
        deny: Vec<ListItem> = key("permissions.deny", [], List(Rules), Anything),
    }
}

section! {
    /// How calls are confined.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct SandboxConfig {
        // If the cage cannot be made, the call is refused; a weaker cage is never used.
        /// `required`: a cage that cannot be made is a refusal; `best-effort`: tier B is accepted.
        level: Level = key("sandbox.level", "required", Word(Level::WORDS), Tighten(LaterWord)),
        // The strongest tier that this host allows.
        /// Highest tier: `a` or `b`.
        highest_tier: Tier = key("sandbox.tier", "a", Word(Tier::WORDS), Tighten(LaterWord)),
        // Commands see the variables of compilers and tools. A project could use it to read the contents of the
        // user's variables.
        /// More environment variables that commands see, such as `DATABASE_HOST` or `MYAPP_*`; never keys.
        env: Vec<String> = key("sandbox.env", [], List(Variables), Nothing),
    }
    with {
        /// Bounds of one call.
        limits: Limits
    }
}

section! {
    of Limits {
        // A wide parallel build fits, a fork bomb does not.
        /// Most processes of a call; 0 means no limit, here and below.
        processes: u64 = key("sandbox.limits.processes", 1024, Count(0, 1_000_000), Tighten(SmallerButZero)),
        // A large link fits, a leak ends before the machine swaps.
        /// Most memory of a call, in bytes.
        memory_bytes: u64 = key("sandbox.limits.memory_bytes", 8589934592, Count(0, i64::MAX as u64),
            Tighten(SmallerButZero)),
        // 24 processors for the ten minutes that a call may last.
        /// Most processor time of a call.
        cpu_seconds: u64 = key("sandbox.limits.cpu_seconds", 14400, Count(0, 1_000_000_000), Tighten(SmallerButZero)),
        // More than any build output, less than a disk.
        /// Largest file that a call may write, in bytes.
        file_bytes: u64 = key("sandbox.limits.file_bytes", 8589934592, Count(0, i64::MAX as u64),
            Tighten(SmallerButZero)),
        // Linkers and test servers open many files; more is a leak.
        /// Most open files of a process.
        open_files: u64 = key("sandbox.limits.open_files", 4096, Count(0, 1_048_576), Tighten(SmallerButZero)),
    }
}

section! {
    /// The network of commands.
    #[derive(Debug)]
    pub(crate) struct NetKeys {
        // Without network a command cannot send your files.
        /// `off`, `allow` (the hosts of `net.allow`), or `on`.
        mode: Network = key("net.mode", "off", Word(Network::WORDS), Tighten(LaterWord)),
        // A project could choose the hosts to which its commands send data.
        /// Hosts that commands may reach. `*.crates.io` does not include `crates.io`. Ports are 80 and 443 unless one
        /// is given.
        allow: Vec<HostRule> = key("net.allow", [], List(Hosts), Nothing),
    }
}

section! {
    of WebSettings {
        // Another search page would receive every search query.
        /// Page of the tool `web_search`; the query goes into its parameter `q`.
        search_url: String = key("web.search_url", "https://html.duckduckgo.com/html/", Url, Nothing),
        // Servers of an intranet and of this machine trust their neighbours.
        /// `refuse`, or `allow`: `web_fetch` may read pages of your private networks and of this machine.
        private: PrivateNetworks = key("web.private_networks", "refuse", Word(PrivateNetworks::WORDS), Tighten(LaterWord)),
    }
}

section! {
    /// Bounds of tools.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ToolsConfig {
        // About 8,000 tokens. A result of fewer characters than the least has no room for its exit line.
        /// Most characters of one result.
        max_result_chars: u32 = key("tools.max_result_chars", 30000, Count(1_000, 10_000_000), Tighten(Smaller)),
        // 24,000 to 33,000 tokens of numbered source.
        /// Most characters of one `read`, at most the tokens of the model's context.
        max_read_chars: u32 = key("tools.max_read_chars", 100000, Count(1_000, 10_000_000), Tighten(Smaller)),
        // Enough for a test suite; a command that waits for input ends. The most is the contract of `bash`.
        /// Longest time of a command that requests none. A call may request up to ten minutes.
        timeout_ms: u64 = key("tools.timeout_ms", 120000, Count(100, 600_000), Tighten(Smaller)),
        // A command in the background may run longer than `tools.timeout_ms`.
        /// A command that runs this long goes on in the background, with the conversation. `0`: never.
        background_after_ms: u64 = key("tools.background_after_ms", 0, Count(0, 600_000), Nothing),
        // Commands get no directory besides the project.
        /// More directories that tools may use.
        add_dirs: Vec<PathBuf> = key("tools.add_dirs", [], List(Dirs), Nothing),
    }
}

// Hooks after edits run only in trusted projects (`agentd init`, --trust-project): they run code of the project.
section! {
    /// Commands to run after edits.
    #[derive(Debug)]
    pub(crate) struct VerifyKeys {
        /// `on`, or `off`: no check runs.
        mode: bool = key("verify.mode", "on", Word(bool::WORDS), Tighten(LaterWord)),
        // Reports compile errors with the edit.
        /// Checks, each `PATTERN in FILE: COMMAND`. Your own replace the built-in one for the same files.
        commands: Vec<ListItem> = key("verify.commands",
            ["*.rs in Cargo.toml: cargo check --offline --message-format json"], List(Verifiers), Nothing),
        // Enough for an incremental check; use a command for the first full build.
        /// Longest time of one check.
        timeout_ms: u64 = key("verify.timeout_ms", 60000, Count(100, 600_000), Tighten(Smaller)),
    }
}

section! {
    /// Formatters for edited files.
    #[derive(Debug)]
    pub(crate) struct FormatKeys {
        /// `on`, or `off`: no formatter runs.
        mode: bool = key("format.mode", "on", Word(bool::WORDS), Tighten(LaterWord)),
        // The look of a file is for its people to choose.
        /// Formatters, each `PATTERN: COMMAND`.
        commands: Vec<ListItem> = key("format.commands", [], List(Formatters), Nothing),
        // One file takes a fraction of a second; a longer run is a mistake.
        /// Longest time of one formatter.
        timeout_ms: u64 = key("format.timeout_ms", 10000, Count(100, 600_000), Tighten(Smaller)),
    }
}

section! {
    /// Hooks at events of a session, and plugins.
    #[derive(Debug)]
    pub(crate) struct HookKeys {
        // An untrusted project would switch the user's own guards off.
        /// `on`: follow the hooks, `permissions.deny` and `permissions.ask` of Claude Code's settings, see `agentd help
        /// hooks`.
        claude_files: bool = key("hooks.claude_files", "on", Word(bool::WORDS), Nothing),
        // A plugin runs hooks in every project, so you name each one.
        /// Plugins of every session, see `agentd help commands`; each one counts while you trust it as it is.
        plugin_dirs: Vec<PathBuf> = key("plugins.dirs", [], List(Dirs), Nothing),
        // As Claude Code does: long enough to read an answer.
        /// Hooks of `Notification` run when a session has waited this long for your prompt.
        idle_ms: u64 = key("hooks.idle_after", "1m", Time(100, DAY), Nothing),
    }
}

section! {
    /// Content that a conversation starts with, in addition to the prompt.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ContextConfig {
        // They are read as the model reads any file: in scope, and where no rule denies it.
        /// Pinned files: each request contains their current text.
        files: Vec<String> = key("context.files", [], List(Files), Anything),
        // The model keeps what it needs of a long conversation; to cut costs no request and keeps less.
        /// How a conversation that nearly fills the model's context is made smaller: `summary` or `cut`, see `agentd
        /// help context`.
        compaction: CompactionKind = key("context.compaction", "summary", Word(CompactionKind::WORDS), Tighten(LaterWord)),
    }
}

section! {
    /// Bounds of a turn and of a session.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct BudgetConfig {
        // A turn with more requests to the model is going in circles.
        /// Most requests to the model in one turn.
        rounds: u32 = key("budget.rounds", 25, Count(1, 100_000), Tighten(Smaller)),
        // 12 calls in each of 25 rounds, more than models make.
        /// Most tool calls in one turn.
        calls: u32 = key("budget.calls", 300, Count(1, 1_000_000), Tighten(Smaller)),
        // Long sessions are the person's to end.
        /// Most tool calls in one session; 0 means no limit.
        session_calls: Option<u32> = key("budget.session_calls", 0, Count(0, 1_000_000_000), Tighten(SmallerButZero)),
    }
    with {
        /// Bounds of sub-agents.
        agents: AgentLimits
    }
}

section! {
    /// Bounds of sub-agents.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct AgentLimits {
        // Sub-agents start no sub-agents; each level multiplies the requests to the model.
        /// Levels of sub-agents below your session; 0 means none.
        depth: u32 = key("agents.depth", 1, Count(0, 8), Tighten(Smaller)),
        // Each sends requests of its own.
        /// Most sub-agents of one session at the same time.
        at_once: u32 = key("agents.at_once", 4, Count(1, 32), Tighten(Smaller)),
    }
}

section! {
    /// Settings of the terminal: the user's choice in every project.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct UiConfig {
        // No shell or editor uses this key on its input line.
        /// Key that starts a command to the terminal; with d it detaches.
        leader: String = key("ui.leader", "Ctrl-\\", Name, Nothing),
        // Each character is text then, as in shells.
        /// Keys of the input line: `emacs`, or `vim` with its insert mode and normal mode.
        keys: UiKeys = key("ui.keys", "emacs", Word(UiKeys::WORDS), Nothing),
        // Few need it, and `--screen-reader` does it for one run.
        /// `on`: print lines with a label each, for a screen reader.
        accessible: bool = key("ui.accessible", "off", Word(bool::WORDS), Nothing),
        // A terminal then selects text only with Shift.
        /// `on`: the full-screen view uses the mouse, and selects text by it. `off`: the terminal keeps it.
        mouse: bool = key("ui.mouse", "on", Word(bool::WORDS), Nothing),
        // Most terminals tell their ground; the colours of the others are their owner's.
        /// Colours of the full-screen view: `dark`, `light`, `daltonised` (blue and orange), `ansi` (the terminal's
        /// palette). `auto` asks the terminal for its ground. A theme of `bat`, such as `Nord`, is for code alone.
        theme: String = key("ui.theme", "auto", Name, Nothing),
        // Whoever works in several tabs sees which one asks.
        /// `on`: the title of the terminal's window or tab has the name of the session, `●` while a turn runs and `?`
        /// while a question is open, in the full-screen view. On leaving, the title of before is back.
        title: bool = key("ui.title", "on", Word(bool::WORDS), Nothing),
        // Every terminal has one.
        /// A call when a question appears, or a turn ends in a terminal without focus: `bell`, `osc9`, `osc777`
        /// (notifications of the desktop) or `off`. In the full-screen view.
        notify: UiNotify = key("ui.notify", "bell", Word(UiNotify::WORDS), Nothing),
        // Whoever types while the model works mostly corrects it.
        /// A prompt that Enter sends while a turn runs: `steer` gives its words to the model with the results of the
        /// round, and interrupts nothing; `queue` lets it wait for the end of the turn. Tab sends it the other way.
        busy: UiBusy = key("ui.busy", "steer", Word(UiBusy::WORDS), Nothing),
        // `--inline` prints lines for one run.
        /// View of a session: `full` uses the whole terminal; `inline` prints lines that scroll away.
        view: UiView = key("ui.view", "full", Word(UiView::WORDS), Nothing),
    }
}

/// A way to call the person at a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UiNotify {
    /// The terminal's bell.
    Bell,
    /// A desktop notification by OSC 9.
    Osc9,
    /// A desktop notification by OSC 777.
    Osc777,
    /// None.
    Off,
}

/// The keys of an input line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UiKeys {
    /// Those of shells.
    Emacs,
    /// Those of vim.
    Vim,
}

/// What becomes of a prompt while a turn runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UiBusy {
    /// It waits for the end of the turn.
    Queue,
    /// It joins the turn.
    Steer,
}

/// A view of an attached session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UiView {
    /// Lines that scroll away.
    Inline,
    /// The whole terminal.
    Full,
}

section! {
    /// Waits of the supervisor, in milliseconds.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct DaemonConfig {
        // A question asked in the evening is still open in the morning.
        /// Longest wait for your answer to a question.
        question_deadline_ms: u64 = key("daemon.question_deadline", "24h", Time(100, 30 * DAY), DAEMON),
        // The next command starts one again.
        /// The daemon ends after this time without clients and work.
        idle_exit_ms: u64 = key("daemon.idle_exit", "30m", Time(100, 30 * DAY), DAEMON),
        // Keeps a connection open between your prompts, and costs nothing overnight.
        /// The provider process of a session ends after this time without a request.
        idle_provider_ms: u64 = key("daemon.idle_provider", "1m", Time(10, DAY), DAEMON),
        // Commands start sooner, and nothing stays overnight.
        /// The runner that is started for the next command while the model thinks ends after this time. `0s`: no such
        /// runner.
        idle_reserve_ms: u64 = key("daemon.idle_reserve", "1m", Time(0, DAY), DAEMON),
    }
}

/// Keys of `[daemon]` in earlier versions: limits of workers, which have one right value. Tests alone set others.
const RETIRED: &str = "hello_ms ping_ms shutdown_ms restart_crashes restart_crash_window_ms restart_total \
                       restart_window_ms restart_delay_ms restart_delay_cap_ms replay_crashes \
                       replay_crash_window_ms";

/// True for a key of earlier versions, which has no effect any more.
pub(crate) fn is_retired(name: &str) -> bool {
    name.strip_prefix("daemon.").is_some_and(|key| RETIRED.split(' ').any(|retired| retired == key))
}

/// The keys of all sections, in the order in which `agentd config show` prints them.
const SECTIONS: [&[ConfigKey]; 15] = [
    ProviderKeys::KEYS,
    PermissionKeys::KEYS,
    SandboxConfig::KEYS,
    Limits::KEYS,
    NetKeys::KEYS,
    WebSettings::KEYS,
    ToolsConfig::KEYS,
    VerifyKeys::KEYS,
    FormatKeys::KEYS,
    HookKeys::KEYS,
    ContextConfig::KEYS,
    BudgetConfig::KEYS,
    AgentLimits::KEYS,
    UiConfig::KEYS,
    DaemonConfig::KEYS,
];

/// All keys.
pub(crate) fn all() -> impl Iterator<Item = &'static ConfigKey> {
    SECTIONS.into_iter().flatten()
}

/// The keys that begin so, as a table in Markdown for `agentd help`.
#[must_use]
pub fn table(begins: &[&str]) -> String {
    let mut table = "| Key | Meaning |\n|---|---|\n".to_owned();
    for key in all().filter(|key| begins.iter().any(|begin| key.name.starts_with(begin))) {
        table.push_str(&format!("| `{}` |{}", key.name, key.meaning.concat()));
        match key.default {
            // The meaning says which.
            "\"vendor\"" => {}
            "[]" => table.push_str(" Default: `[]`."),
            default => {
                let default = default.trim_matches(['[', '"', ']']).replace(r"\\", r"\");
                table.push_str(&format!(" Default: `{default}`."));
            }
        }
        table.push_str(" |\n");
    }
    table
}

/// The defaults as a configuration file.
pub(crate) fn defaults() -> String {
    all().map(|key| format!("{} = {}\n", key.name, key.default)).collect()
}
/// The key of that name.
pub(crate) fn find(name: &str) -> Option<&'static ConfigKey> {
    all().find(|key| key.name == name)
}

/// True if there are keys below this table.
pub(crate) fn is_table(name: &str) -> bool {
    all().any(|key| key.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
}

/// True if a user would expect to set a secret by this name.
pub(crate) fn names_a_key(word: &str) -> bool {
    ["api_key", "key", "apikey", "auth_token", "token", "password"].contains(&word)
}

/// The hint after "there is no key `name`": the key that was probably meant.
pub(crate) fn hint(name: &str) -> String {
    let last = name.rsplit('.').next().unwrap_or(name);
    if names_a_key(last) {
        let variable = VENDORS.iter().flat_map(|vendor| vendor.keys).next();
        return format!(
            ": a configuration never holds a key. Set {}, or the variable of your vendor, in the \
             environment, or name a file or a command that has the key in provider.key_file or \
             provider.key_command",
            variable.map_or("the key", |key| key.name)
        );
    }
    let same_end: Vec<_> = all().filter(|key| key.name.rsplit('.').next() == Some(last)).collect();
    let meant = match same_end[..] {
        [only] => Some(only.name),
        _ => nearest(name, all().map(|key| key.name)).first().copied(),
    };
    match meant {
        Some(meant) => format!("; did you mean `{meant}`?"),
        None => ". `agentd config show` lists those there are".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_name_the_key_that_was_meant() {
        for (wrong, meant) in [
            ("permisions.mode", "`permissions.mode`"),
            ("permission.allow", "`permissions.allow`"),
            ("base_url", "`provider.base_url`"),
            ("provider.rounds", "`budget.rounds`"),
            ("tools.timeout", "`tools.timeout_ms`"),
            ("provider.api_key", "ANTHROPIC_API_KEY"),
            ("colour", "agentd config show"),
        ] {
            assert!(hint(wrong).contains(meant), "{wrong}: {}", hint(wrong));
        }
    }

    /// A key that joins this list needs its reason here: no value of it may loosen a restriction.
    #[test]
    fn an_untrusted_project_sets_only_these_as_it_likes() {
        let free = all().filter(|key| key.project == UntrustedMay::Anything);
        let free: Vec<_> = free.map(|key| (key.name, key.kind)).collect();
        let reasons = [
            // How fast a recording is played: no server and no key are there.
            ("provider.replay_speed", Word(&["full", "recorded"])),
            // Added to the person's own, and each only asks or refuses more.
            ("permissions.ask", List(Rules)),
            ("permissions.deny", List(Rules)),
            // Added too; read as the model reads any file.
            ("context.files", List(Files)),
        ];
        assert_eq!(free, reasons);
    }

    #[test]
    fn words_are_those_of_the_command_line_and_of_records() {
        for (word, mode) in PermissionMode::WORDS.iter().zip(PermissionMode::VALUES) {
            assert_eq!(*word, mode.name());
        }
        for (word, network) in Network::WORDS.iter().zip(Network::VALUES) {
            assert_eq!(*word, network.name());
        }
        let kinds = CompactionKind::WORDS.iter().zip(CompactionKind::VALUES);
        assert!(kinds.eq(CompactionKind::NAMES.iter().map(|(word, kind)| (word, kind))));
    }

    #[test]
    fn every_meaning_is_a_sentence_of_one_row() {
        for key in all() {
            let meaning = key.meaning.concat();
            assert!(meaning.ends_with('.') && !meaning.contains('|'), "{}: {meaning}", key.name);
            assert!(!is_retired(key.name), "{}", key.name);
        }
    }

    #[test]
    fn names_are_unique_and_no_key_is_a_table_too() {
        for key in all() {
            assert_eq!(all().filter(|other| other.name == key.name).count(), 1, "{}", key.name);
            assert!(!is_table(key.name), "{} is a table too", key.name);
        }
    }
}
