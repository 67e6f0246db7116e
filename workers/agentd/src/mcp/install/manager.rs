//! Runs npm and pip: with the person's registry settings, a home of their own, and nothing else of the
//! person's environment. Used by `npm` and `pypi`.

use crate::cli_error::CliError;
use crate::cli_exit::CliExit;
use client::run_installer;
use config::Environment;
use protocol::hidden::on_screen;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

/// Variables that name a registry and the way to it.
const KEPT: [&str; 34] = [
    "PATH",
    "LANG",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NETRC",
    "PIP_CONFIG_FILE",
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "PIP_FIND_LINKS",
    "PIP_NO_INDEX",
    "PIP_TRUSTED_HOST",
    "PIP_CERT",
    "PIP_CLIENT_CERT",
    "PIP_PROXY",
    "PIP_DEFAULT_TIMEOUT",
    "NPM_CONFIG_REGISTRY",
    "npm_config_registry",
    "NPM_CONFIG_USERCONFIG",
    "npm_config_userconfig",
    "NPM_CONFIG_GLOBALCONFIG",
    "npm_config_globalconfig",
    "NPM_CONFIG_CAFILE",
    "npm_config_cafile",
];
/// Last lines of a failed program that are shown.
const SHOWN: usize = 12;

/// Runs package managers in one directory.
pub(super) struct PackageManager {
    env: Vec<(String, OsString)>,
    dir: PathBuf,
}

impl PackageManager {
    /// Those with this home and these temporary files, which work in `dir`.
    pub(super) fn new(environment: &Environment, dir: &Path, home: &Path) -> Self {
        let kept = KEPT
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), environment.get(name)?.to_owned())));
        let mut env: Vec<(String, OsString)> = kept.collect();
        let mut default = |names: &[&str], value: Option<PathBuf>| {
            let is_set = env.iter().any(|(name, _)| names.contains(&name.as_str()));
            let value = value.filter(|value| !is_set && value.is_file());
            let name = names.first().map(|name| (*name).to_owned());
            env.extend(name.zip(value.map(PathBuf::into_os_string)));
        };
        // Their usual places are below the home that they do not have.
        let own = environment.absolute("HOME");
        let below = |path: &str| own.as_ref().map(|home| home.join(path));
        default(&["NPM_CONFIG_USERCONFIG", "npm_config_userconfig"], below(".npmrc"));
        default(&["NETRC"], below(".netrc"));
        let settings = environment.absolute("XDG_CONFIG_HOME").or_else(|| below(".config"));
        default(&["PIP_CONFIG_FILE"], settings.map(|settings| settings.join("pip/pip.conf")));
        default(&["PIP_CONFIG_FILE"], below(".pip/pip.conf"));
        let npmrc = env.iter().find(|(name, _)| name.eq_ignore_ascii_case("npm_config_userconfig"));
        let npmrc = npmrc.and_then(|(_, file)| std::fs::read_to_string(file).ok());
        // A token is often a variable there.
        for name in npmrc.map(|text| config::variables_in(&text)).unwrap_or_default() {
            let value = environment.get(&name).map(OsStr::to_owned);
            env.extend(value.map(|value| (name, value)));
        }
        for (name, path) in [("HOME", home.to_owned()), ("TMPDIR", home.join("tmp"))] {
            env.push((name.to_owned(), path.into_os_string()));
        }
        for (name, value) in [
            ("LC_ALL", "C.UTF-8"),
            ("NPM_CONFIG_UPDATE_NOTIFIER", "false"),
            ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
            ("PIP_NO_INPUT", "1"),
            ("PIP_USER", "0"),
        ] {
            env.push((name.to_owned(), value.into()));
        }
        Self { env, dir: dir.to_owned() }
    }

    /// The output of a program that succeeds.
    ///
    /// # Errors
    /// It is missing or fails, with its last words.
    pub(super) fn run(&self, program: &str, arguments: &[&str]) -> Result<String, CliError> {
        let words: Vec<&OsStr> = arguments.iter().map(|word| OsStr::new(*word)).collect();
        let failed = |why: String| CliError::config(why).exit(CliExit::Failed);
        let ran = run_installer((OsStr::new(program), &words), &self.env, &self.dir);
        let ran = ran.map_err(|error| match error.kind() == io::ErrorKind::NotFound {
            true => failed(format!("{program} is not on your PATH"))
                .hint("npx comes with Node.js and npm; for PyPI agentd uses python3 with pip"),
            false => failed(format!("{program} cannot be started: {error}")),
        })?;
        let out = String::from_utf8_lossy(&ran.stdout).into_owned();
        if ran.status.success() {
            return Ok(out);
        }
        let err = String::from_utf8_lossy(&ran.stderr);
        let said = if err.trim().is_empty() { out.as_str() } else { &err };
        let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines.get(lines.len().saturating_sub(SHOWN)..).unwrap_or_default().join("\n");
        Err(failed(format!("{program} failed ({}):\n{}", ran.status, on_screen(&last)))
            .hint("nothing was changed"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn registries_are_kept_and_all_else_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().to_str().unwrap();
        std::fs::write(dir.path().join(".npmrc"), "//r.example/:_authToken=${R_TOKEN}\n").unwrap();
        let environment: Environment = [
            ("HOME", home),
            ("PATH", "/usr/bin"),
            ("PIP_INDEX_URL", "https://pip.example/simple"),
            ("R_TOKEN", "for the registry"),
            ("GITHUB_TOKEN", "not for it"),
            ("NODE_OPTIONS", "--require /x.js"),
            ("PYTHONPATH", "/x"),
        ]
        .into_iter()
        .collect();
        let manager = PackageManager::new(&environment, Path::new("/"), Path::new("/h"));
        let value = |name: &str| {
            let found = manager.env.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.to_str().unwrap().to_owned())
        };
        assert_eq!(value("HOME").as_deref(), Some("/h"));
        assert_eq!(value("NPM_CONFIG_USERCONFIG"), Some(format!("{home}/.npmrc")));
        assert_eq!(value("R_TOKEN").as_deref(), Some("for the registry"));
        assert_eq!(value("PIP_INDEX_URL").as_deref(), Some("https://pip.example/simple"));
        for absent in ["GITHUB_TOKEN", "NODE_OPTIONS", "PYTHONPATH", "NETRC", "PIP_CONFIG_FILE"] {
            assert_eq!(value(absent), None, "{absent}");
        }
    }
}
