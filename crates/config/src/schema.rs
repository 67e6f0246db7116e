//! All configuration keys in one table: their values, and the changes that a project's file may
//! make.

use crate::vendors::{PROVIDER_NAMES, VENDORS};

/// The type of a key's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueKind {
    /// One line of text.
    Name,
    /// `http` or `https` URL.
    Url,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A whole number from the first to the second.
    Count(u64, u64),
    /// A time such as `60s`, from the first to the second in milliseconds.
    Time(u64, u64),
    /// Permission rules; layers add to each other.
    Rules,
    /// Directories; layers add to each other.
    Dirs,
    /// Files as tools are given them; layers add to each other.
    Files,
    /// Hosts; layers add to each other.
    Hosts,
    /// Variables that commands see; layers add to each other.
    Variables,
    /// Commands to run after edits; layers add to each other.
    Verifiers,
    /// Commands that put edited files in form; layers add to each other.
    Formatters,
}

/// Which way is tighter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tightness {
    /// The key's values are ordered from loosest to tightest.
    LaterWord,
    /// A smaller number.
    Smaller,
    /// A smaller number; 0 is no bound at all.
    SmallerButZero,
}

/// The changes that a project's file may make to a key while it is not trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UntrustedMay {
    /// Anything: it neither loosens nor tightens.
    Anything,
    /// Only tighten.
    Tighten(Tightness),
    /// Nothing: any value loosens.
    Nothing,
    /// Not even when trusted; an error with this reason.
    Misplaced(&'static str),
}

/// One key.
#[derive(Debug)]
pub(crate) struct ConfigKey {
    /// Dotted.
    pub name: &'static str,
    /// The type of its value.
    pub kind: ValueKind,
    /// The changes that an untrusted project's file may make.
    pub project: UntrustedMay,
}

const fn key(name: &'static str, kind: ValueKind, project: UntrustedMay) -> ConfigKey {
    ConfigKey { name, kind, project }
}

/// Longest time that is configured anywhere: a day, in milliseconds.
const DAY: u64 = 86_400_000;
/// The daemon serves all projects of its user, so no project sets it.
const DAEMON: UntrustedMay = UntrustedMay::Misplaced(
    "the daemon serves all your projects; set it in your own configuration file",
);

/// The values of `permissions.mode`, loosest first.
pub(crate) const MODES: &[&str] = &["auto", "accept-edits", "ask", "dont-ask", "plan"];

use Tightness::{LaterWord, Smaller, SmallerButZero};
use UntrustedMay::{Anything, Nothing, Tighten};
use ValueKind::{
    Count, Dirs, Files, Formatters, Hosts, Name, Rules, Time, Url, Variables, Verifiers, Word,
};

/// All keys.
pub(crate) const KEYS: &[ConfigKey] = &[
    // A foreign base URL would be sent the conversation and the key.
    key("provider.name", Word(PROVIDER_NAMES), Nothing),
    // Another model costs more, or is a named one with its server and its key.
    key("provider.model", Name, Nothing),
    key("provider.fallback_model", Name, Nothing),
    key("provider.base_url", Url, Nothing),
    key("provider.key_file", Name, Nothing),
    key("provider.key_command", Name, Nothing),
    key("provider.max_tokens", Count(1, 1_000_000), Tighten(Smaller)),
    // Each try is paid for, and each wait is a turn that hangs.
    key("provider.tries", Count(1, 20), Tighten(Smaller)),
    key("provider.max_wait", Time(0, DAY), Tighten(Smaller)),
    key("provider.byte_timeout", Time(100, DAY), Tighten(Smaller)),
    key("provider.progress_timeout", Time(100, DAY), Tighten(Smaller)),
    key("provider.connect_timeout", Time(100, DAY), Tighten(Smaller)),
    key("provider.replay_speed", Word(&["full", "recorded"]), Anything),
    key("permissions.mode", Word(MODES), Tighten(LaterWord)),
    key("permissions.allow", Rules, Nothing),
    key("permissions.ask", Rules, Anything),
    key("permissions.deny", Rules, Anything),
    key("sandbox.level", Word(&["best-effort", "required"]), Tighten(LaterWord)),
    key("sandbox.tier", Word(&["b", "a"]), Tighten(LaterWord)),
    key("sandbox.limits.processes", Count(0, 1_000_000), Tighten(SmallerButZero)),
    key("sandbox.limits.memory_bytes", Count(0, i64::MAX as u64), Tighten(SmallerButZero)),
    key("sandbox.limits.cpu_seconds", Count(0, 1_000_000_000), Tighten(SmallerButZero)),
    key("sandbox.limits.file_bytes", Count(0, i64::MAX as u64), Tighten(SmallerButZero)),
    key("sandbox.limits.open_files", Count(0, 1_048_576), Tighten(SmallerButZero)),
    // A project could use it to read the contents of the user's variables.
    key("sandbox.env", Variables, Nothing),
    key("net.mode", Word(&["on", "allow", "off"]), Tighten(LaterWord)),
    // A project could choose the hosts to which its commands send data.
    key("net.allow", Hosts, Nothing),
    // Another search page would receive every search query.
    key("web.search_url", Url, Nothing),
    key("web.private_networks", Word(&["allow", "refuse"]), Tighten(LaterWord)),
    // A result of fewer characters than this has no room for its exit line.
    key("tools.max_result_chars", Count(1_000, 10_000_000), Tighten(Smaller)),
    key("tools.max_read_chars", Count(1_000, 10_000_000), Tighten(Smaller)),
    // The largest is the contract of `bash`: ten minutes.
    key("tools.timeout_ms", Count(100, 600_000), Tighten(Smaller)),
    // A command in the background may run longer than `tools.timeout_ms`.
    key("tools.background_after_ms", Count(0, 600_000), Nothing),
    key("tools.add_dirs", Dirs, Nothing),
    // A project's hooks run only once the user trusts the project.
    key("verify.mode", Word(&["on", "off"]), Tighten(LaterWord)),
    key("verify.commands", Verifiers, Nothing),
    key("verify.timeout_ms", Count(100, 600_000), Tighten(Smaller)),
    key("format.mode", Word(&["on", "off"]), Tighten(LaterWord)),
    key("format.commands", Formatters, Nothing),
    key("format.timeout_ms", Count(100, 600_000), Tighten(Smaller)),
    // An untrusted project would switch the user's own guards off.
    key("hooks.claude_files", Word(&["on", "off"]), Nothing),
    // A plugin's hooks run in every project.
    key("plugins.dirs", Dirs, Nothing),
    key("hooks.idle_after", Time(100, DAY), Nothing),
    // They are read as the model reads any file: in scope, and where no rule denies it.
    key("context.files", Files, Anything),
    // A summary is a request more.
    key("context.compaction", Word(&["summary", "cut"]), Tighten(LaterWord)),
    key("budget.rounds", Count(1, 100_000), Tighten(Smaller)),
    key("budget.calls", Count(1, 1_000_000), Tighten(Smaller)),
    key("budget.session_calls", Count(0, 1_000_000_000), Tighten(SmallerButZero)),
    // Each sub-agent sends requests of its own.
    key("agents.depth", Count(0, 8), Tighten(Smaller)),
    key("agents.at_once", Count(1, 32), Tighten(Smaller)),
    // The leader key is the user's choice in every project.
    key("ui.leader", Name, Nothing),
    key("ui.accessible", Word(&["on", "off"]), Nothing),
    key("ui.mouse", Word(&["on", "off"]), Nothing),
    key("ui.theme", Name, Nothing),
    key("ui.notify", Word(&["bell", "osc9", "osc777", "off"]), Nothing),
    key("ui.view", Word(&["inline", "full"]), Nothing),
    key("daemon.question_deadline", Time(100, 30 * DAY), DAEMON),
    key("daemon.idle_exit", Time(100, 30 * DAY), DAEMON),
    key("daemon.idle_provider", Time(10, DAY), DAEMON),
    key("daemon.idle_reserve", Time(0, DAY), DAEMON),
    key("daemon.hello_ms", Count(10, DAY), DAEMON),
    key("daemon.ping_ms", Count(10, DAY), DAEMON),
    key("daemon.shutdown_ms", Count(10, DAY), DAEMON),
    key("daemon.restart_crashes", Count(1, 100_000), DAEMON),
    key("daemon.restart_crash_window_ms", Count(1, DAY), DAEMON),
    key("daemon.restart_total", Count(1, 1_000_000), DAEMON),
    key("daemon.restart_window_ms", Count(1, DAY), DAEMON),
    key("daemon.restart_delay_ms", Count(1, DAY), DAEMON),
    key("daemon.restart_delay_cap_ms", Count(1, DAY), DAEMON),
    key("daemon.replay_crashes", Count(1, 100_000), DAEMON),
    key("daemon.replay_crash_window_ms", Count(1, DAY), DAEMON),
];

/// The key of that name.
pub(crate) fn find(name: &str) -> Option<&'static ConfigKey> {
    KEYS.iter().find(|key| key.name == name)
}

/// True if there are keys below this table.
pub(crate) fn is_table(name: &str) -> bool {
    KEYS.iter().any(|key| key.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
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
    let same_end: Vec<_> =
        KEYS.iter().filter(|key| key.name.rsplit('.').next() == Some(last)).collect();
    let meant = match same_end[..] {
        [only] => Some(only.name),
        _ => crate::did_you_mean::nearest(name, KEYS.iter().map(|key| key.name)),
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
        let free = KEYS.iter().filter(|key| key.project == UntrustedMay::Anything);
        let free: Vec<_> = free.map(|key| (key.name, key.kind)).collect();
        let reasons = [
            // How fast a recording is played: no server and no key are there.
            ("provider.replay_speed", Word(&["full", "recorded"])),
            // Added to the person's own, and each only asks or refuses more.
            ("permissions.ask", Rules),
            ("permissions.deny", Rules),
            // Added too; read as the model reads any file.
            ("context.files", Files),
        ];
        assert_eq!(free, reasons);
    }

    #[test]
    fn names_are_unique_and_no_key_is_a_table_too() {
        for (at, key) in KEYS.iter().enumerate() {
            assert!(KEYS[..at].iter().all(|other| other.name != key.name), "{} twice", key.name);
            assert!(!is_table(key.name), "{} is a table too", key.name);
        }
    }
}
