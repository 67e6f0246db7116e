//! The flags of a task. A task may ask for less than the configuration of the host that runs it gives, and for
//! nothing more: anybody who may submit writes its flags. `submit` refuses what no host takes, and `task_run` what
//! this host does not.

use crate::error::FleetError;
use approval::{gives_right, rules_of_flag};
use config::{Config, Dirs, Environment, MANAGED_FILE, Sources, Trust, TrustStore};
use protocol::judgement::{PermissionMode, RuleEffect};
use std::path::PathBuf;

/// A flag that a task may have.
#[derive(Debug, PartialEq, Eq)]
enum TaskFlag {
    /// Models are the host's, and each request is paid with its key.
    Model,
    MaxCost,
    MaxTurns(u32),
    Mode(PermissionMode),
    /// Rules that give no right beyond the session.
    Allow(Vec<String>),
}

/// The part of a host's configuration that flags are compared with.
#[derive(Debug)]
pub(crate) struct HostSettings {
    mode: PermissionMode,
    rounds: u32,
    /// Its allow rules.
    allow: Vec<String>,
}

impl HostSettings {
    /// Of this user and this host's administrator. A task's repository has no say: the project does not exist.
    ///
    /// # Errors
    /// The configuration cannot be read.
    pub(crate) fn load(dirs: &Dirs) -> Result<Self, FleetError> {
        let config = Config::load(&Sources {
            managed: PathBuf::from(MANAGED_FILE),
            user: dirs.user_file(),
            project: dirs.state.join("no-project"),
            environment: Environment::of_process(),
            flags: Vec::new(),
            trust: Trust::AsRecorded(TrustStore::at(dirs.trust_file())),
            plugin_trust: TrustStore::at(dirs.trust_file()),
            claude_rules: approval::claude_rule,
        })
        .map_err(|error| FleetError::ThisHost(error.to_string()))?;
        let allow = config.permissions.rules.into_iter();
        let allow = allow.filter(|rule| rule.effect == RuleEffect::Allow).map(|rule| rule.text);
        let (mode, rounds) = (config.permissions.mode, config.budget.rounds);
        Ok(Self { mode, rounds, allow: allow.collect() })
    }

    /// Checks that a flag asks for no more than this host's configuration gives.
    ///
    /// # Errors
    /// A sentence with the flag and the setting that would allow it.
    pub(crate) fn check(&self, flag: &str) -> Result<(), String> {
        match parse(flag)? {
            TaskFlag::Model | TaskFlag::MaxCost => Ok(()),
            TaskFlag::MaxTurns(turns) if turns <= self.rounds => Ok(()),
            TaskFlag::MaxTurns(_) => Err(format!(
                "the task's flag {flag} is above this host's budget.rounds = {}: raise that in the host's \
                 configuration",
                self.rounds
            )),
            TaskFlag::Mode(mode) if mode.is_within(self.mode) => Ok(()),
            TaskFlag::Mode(mode) => Err(format!(
                "the task's flag {flag} is above this host's permissions.mode = \"{}\": set \"{}\" in the \
                 host's configuration",
                self.mode.name(),
                mode.name()
            )),
            TaskFlag::Allow(rules) => match rules.iter().find(|rule| {
                let runs =
                    self.mode == PermissionMode::Auto && approval::adds_nothing_to_auto(rule);
                !runs && !self.allow.contains(rule)
            }) {
                None => Ok(()),
                Some(rule) => Err(format!(
                    "the task's flag {flag} allows more than this host: add {rule:?} to permissions.allow in the \
                     host's configuration; for commands permissions.mode = \"auto\" there does, too"
                )),
            },
        }
    }
}

/// Checks that some host could take this flag.
///
/// # Errors
/// A sentence with the flag and the reason.
pub(crate) fn check_before_submission(flag: &str) -> Result<(), String> {
    parse(flag).map(drop)
}

fn parse(flag: &str) -> Result<TaskFlag, String> {
    let unknown = || format!("a task may not give its run the flag {flag:?}");
    let invalid = |why: &str| format!("the task's flag {flag} is not valid: {why}");
    let (name, value) = flag.split_once('=').ok_or_else(unknown)?;
    match name {
        "--model" => Ok(TaskFlag::Model),
        "--max-cost" => Ok(TaskFlag::MaxCost),
        "--max-turns" => {
            value.parse().map(TaskFlag::MaxTurns).map_err(|_| invalid("it is no number of turns"))
        }
        "--permission-mode" => PermissionMode::parse(value)
            .map(TaskFlag::Mode)
            .ok_or_else(|| invalid("there is no such permission mode")),
        "--allowed-tools" => {
            let rules = rules_of_flag(value, RuleEffect::Allow);
            let rules = rules.map_err(|error| invalid(&error.to_string()))?;
            match rules.iter().find(|rule| gives_right(rule)) {
                None => Ok(TaskFlag::Allow(rules)),
                Some(rule) => Err(format!(
                    "the task's flag {flag} gives calls a right beyond their session, which no task may: \
                     add {rule:?} to permissions.allow in the configuration of the hosts that are to give it"
                )),
            }
        }
        _ => Err(unknown()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn host(mode: PermissionMode, allow: &[&str]) -> HostSettings {
        HostSettings {
            mode,
            rounds: 25,
            allow: allow.iter().map(|&rule| rule.to_owned()).collect(),
        }
    }

    #[test]
    fn no_task_brings_a_right_to_any_host() {
        let auto = host(PermissionMode::Auto, &["network:*"]);
        for rule in [
            "network:*",
            "network",
            "Network:curl *",
            "host:evil.example",
            "directory:/etc",
            "git-admin:*",
            "git-sign",
            "git-sign:git commit *",
            "bash:ls *,network:curl *",
            "Read,Bash(ls:*),network",
            "read host",
        ] {
            let flag = format!("--allowed-tools={rule}");
            for refused in [check_before_submission(&flag), auto.check(&flag)] {
                let why = refused.unwrap_err();
                assert!(why.contains(&flag) && why.contains("permissions.allow"), "{why}");
            }
        }
        for flag in ["--add-dir=/", "--net=on", "--allow-host=h", "--env=A", "--agents={}", "x", ""]
        {
            assert!(check_before_submission(flag).unwrap_err().contains("may not"), "{flag}");
        }
        assert!(check_before_submission("--permission-mode=root").is_err());
        assert!(check_before_submission("--allowed-tools=bsh:*").is_err());
        for flag in ["--model=m", "--max-cost=1", "--max-turns=3", "--permission-mode=auto"] {
            check_before_submission(flag).unwrap();
            auto.check(flag).unwrap();
        }
        for rule in ["bash:cargo *", "Read", "mcp__s__t"] {
            auto.check(&format!("--allowed-tools={rule}")).unwrap();
        }
        // In auto, too, these would be asked about.
        for rule in
            ["web_fetch", "web_fetch:*", "memory_add", "memory_add:user", "write", "edit:./.npmrc"]
        {
            let flag = format!("--allowed-tools={rule}");
            assert!(auto.check(&flag).unwrap_err().contains("permissions.allow"), "{rule}");
        }
    }

    #[test]
    fn a_task_asks_for_no_more_than_its_host_gives() {
        use PermissionMode::{AcceptEdits, Ask, Auto, DontAsk, Plan, Sandboxed};
        let modes = [Plan, DontAsk, Ask, AcceptEdits, Auto];
        for (at, of_host) in modes.into_iter().enumerate() {
            for (asked, mode) in modes.into_iter().enumerate() {
                let checked =
                    host(of_host, &[]).check(&format!("--permission-mode={}", mode.name()));
                assert_eq!(checked.is_ok(), asked <= at, "{mode:?} on a host with {of_host:?}");
                let named = checked.err().is_none_or(|why| why.contains("permissions.mode"));
                assert!(named, "the setting is named");
            }
        }
        // Neither lets less pass than the other.
        for (of_host, mode) in [(AcceptEdits, "sandboxed"), (Sandboxed, "accept-edits")] {
            assert!(host(of_host, &[]).check(&format!("--permission-mode={mode}")).is_err());
        }
        for (of_host, mode) in [(Auto, "sandboxed"), (Sandboxed, "sandboxed"), (Sandboxed, "ask")] {
            host(of_host, &[]).check(&format!("--permission-mode={mode}")).unwrap();
        }
        let asks = host(Ask, &["bash:cargo *"]);
        asks.check("--allowed-tools=bash:cargo *").unwrap();
        let why = asks.check("--allowed-tools=bash:*").unwrap_err();
        assert!(why.contains("\"bash:*\" to permissions.allow"), "{why}");
        asks.check("--max-turns=25").unwrap();
        assert!(asks.check("--max-turns=26").unwrap_err().contains("budget.rounds"));
    }
}
