//! The context of a command: environment, directories, project.

use crate::cli_error::CliError;
use config::{Config, Dirs, Environment, Sources, Trust, TrustStore};
use sandbox::HostProbe;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Variables that are passed to a supervisor beyond those that commands may see: the ones that the
/// provider and the configuration need. `config` lists the variables with key directories.
const PASSED: &[&str] = &[
    "EDITOR",
    "VISUAL",
    "TMPDIR",
    "GIT_CONFIG_GLOBAL",
    "PIP_CONFIG_FILE",
    "UV_CONFIG_FILE",
    "XDG_CONFIG_DIRS",
    "AGENTD_SANDBOX_TIER",
    "HTTPS_PROXY",
    "https_proxy",
    "HTTP_PROXY",
    "http_proxy",
    "ALL_PROXY",
    "all_proxy",
    "NO_PROXY",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_DATA_HOME",
    "XDG_CACHE_HOME",
    "RUST_LOG",
];

/// Environment and directories.
#[derive(Debug)]
pub(crate) struct CliContext {
    pub(crate) environment: Environment,
    pub(crate) dirs: Dirs,
}

/// This process's file mode creation mask, which the kernel tells without a change of it; 022 where /proc does
/// not.
pub(crate) fn own_umask() -> u32 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    line.and_then(|octal| u32::from_str_radix(octal.trim(), 8).ok()).unwrap_or(0o022)
}

impl CliContext {
    pub(crate) fn of_process() -> Result<Self, CliError> {
        let environment = Environment::of_process();
        let dirs = Dirs::resolve(&environment)?;
        Ok(Self { environment, dirs })
    }

    pub(crate) fn audit_dir(&self) -> PathBuf {
        self.dirs.state.join("audit")
    }

    /// What cages can be made here, tried where calls' temporary files will lie. It forks, so it runs
    /// before this process has threads.
    pub(crate) fn probe_host(&self) -> Result<HostProbe, CliError> {
        let root =
            sandbox::temporary_root(config::temporary_fallback(&self.environment).as_deref());
        let root = root.map_err(|error| CliError::config(error.to_string()))?;
        sandbox::probe_host(&root).map_err(|error| CliError::config(error.to_string()))
    }

    pub(crate) fn sessions_dir(&self) -> PathBuf {
        self.dirs.state.join("sessions")
    }

    /// Creates the state directory if it is missing, and writes a file there as a test.
    pub(crate) fn writable_state(&self) -> Result<(), CliError> {
        let dir = &self.dirs.state;
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
        let tried = made.and_then(|()| {
            // Permission bits are not enough: the file system may be read-only or full.
            let probe = dir.join(format!(".probe-{}", std::process::id()));
            fs::File::create(&probe)?;
            fs::remove_file(&probe)
        });
        tried.map_err(|error| {
            CliError::config(format!(
                "the state directory {} cannot be written: {error}",
                dir.display()
            ))
            .hint("set XDG_STATE_HOME to a directory of your own")
        })
    }

    /// The configuration as the supervisor will load it, so that errors are reported before
    /// anything starts.
    pub(crate) fn load(
        &self,
        project: &Path,
        flags: &[(String, String)],
        trust: TrustFlag,
    ) -> Result<Config, CliError> {
        let trust = match trust {
            TrustFlag::Given => Trust::Trusted,
            TrustFlag::NotGiven => Trust::AsRecorded(TrustStore::at(self.dirs.trust_file())),
        };
        Ok(Config::load(&Sources {
            managed: PathBuf::from(config::MANAGED_FILE),
            user: self.dirs.user_file(),
            project: project.to_owned(),
            environment: self.environment.clone(),
            flags: flags.to_vec(),
            trust,
            plugin_trust: TrustStore::at(self.dirs.trust_file()),
            claude_rules: approval::claude_rule,
        })?)
    }

    /// The variables that are passed to the supervisor, including those that `sandbox.env` adds.
    /// The variable with the key is included without its value.
    pub(crate) fn passed(&self, key: Option<&str>, added: &[String]) -> Vec<(String, String)> {
        let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        let mut passed = Vec::new();
        for name in names {
            // Messages carry UTF-8 only; no variable above needs other bytes.
            let Some(value) = self.environment.get(&name).and_then(OsStr::to_str) else { continue };
            let known = config::command_may_see(&name, value)
                || config::names_credential_path(&name)
                || config::is_added(added, &name, value)
                || config::names_server_or_model(&name);
            if known || PASSED.contains(&name.as_str()) {
                passed.push((name, value.to_owned()));
            }
        }
        passed.extend(key.map(|name| (name.to_owned(), "set".to_owned())));
        passed
    }
}

/// Use of the flag `--trust-project`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrustFlag {
    Given,
    NotGiven,
}

/// The real path of a directory.
pub(crate) fn real_dir(named: &Path, what: &str) -> Result<PathBuf, CliError> {
    let shown = named.display();
    // A file server may resolve the path and then refuse `stat`.
    let looked = fs::canonicalize(named).and_then(|real| Ok((real.metadata()?.is_dir(), real)));
    match looked {
        Ok((true, real)) => Ok(real),
        Ok((false, _)) => Err(CliError::user(format!("{what} {shown} is not a directory"))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(CliError::user(format!("{what} {shown} does not exist"))
                .hint("give an existing directory, or create it first"))
        }
        Err(error) => Err(CliError::user(format!("{what} {shown} cannot be used: {error}"))),
    }
}
