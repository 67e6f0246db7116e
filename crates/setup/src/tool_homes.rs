//! The user's programs and certificates that commands use, beyond the usual directories that the
//! policy knows. Used by the session specification.

use crate::writable_paths::writable_paths;
use protocol::confinement::{Confinement, FilePath};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Limit of files examined in a directory of certificates.
const MAX_FILES: usize = 1024;

/// Directories that commands can write.
#[derive(Debug, Default)]
pub(crate) struct WrittenPaths {
    /// Those of this session.
    pub(crate) own: Vec<PathBuf>,
    /// Those of any project, now or earlier.
    pub(crate) elsewhere: Vec<PathBuf>,
}

impl WrittenPaths {
    pub(crate) fn of(confinement: &Confinement) -> Self {
        let elsewhere = confinement.written_elsewhere.iter().map(FilePath::to_path);
        Self { own: writable_paths(confinement), elsewhere: elsewhere.collect() }
    }

    /// True if commands decide which file a path names.
    pub(crate) fn lead(&self, path: &Path) -> bool {
        sandbox::is_led_by_commands(path, &self.own, &self.elsewhere)
    }
}

/// Paths from environment variables, with the names that the policy uses. Paths are excluded if
/// they reach keys, or if commands can write or redirect them. `CARGO_HOME` contains keys, so the
/// policy grants only parts of it.
pub(crate) fn from_variables(
    env: &[(String, String)],
    forbidden: &[PathBuf],
    written: &WrittenPaths,
    left_out: &mut Vec<String>,
) -> Vec<(String, FilePath)> {
    let near = |path: &Path| forbidden.iter().find(|at| reaches(path, at));
    let mut is_fit = |name: &str, path: &Path| {
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let is_public = !config::CERTIFICATES.contains(&name) || !holds_key(&real);
        let reached = near(&real).filter(|_| name != "CARGO_HOME");
        let is_led = written.lead(path);
        // By its name alone it would have been granted.
        let is_turned = real != path && near(path).is_none() && (is_led || reached.is_some());
        if is_turned && !written.own.iter().any(|dir| real.starts_with(dir)) {
            left_out.push(turned(name, path, &real));
        }
        is_public && reached.is_none() && !is_led
    };
    let is_known =
        |name: &str| config::TOOL_HOMES.contains(&name) || config::CERTIFICATES.contains(&name);
    let known = env.iter().filter(|(name, _)| is_known(name));
    let each = known.flat_map(|(name, value)| match name.as_str() {
        "SSL_CERT_DIR" | "GOPATH" => {
            std::env::split_paths(value).map(|path| (name, path)).collect()
        }
        _ => vec![(name, PathBuf::from(value))],
    });
    let fit = each.filter(|(name, path)| is_fit(name, path));
    fit.map(|(name, path)| (name.clone(), FilePath::from(path))).collect()
}

/// True if a directory lies in another one, or contains it.
pub(crate) fn reaches(path: &Path, other: &Path) -> bool {
    path.starts_with(other) || other.starts_with(path)
}

/// Why a directory that the person's environment names is left out.
fn turned(variable: &str, named: &Path, real: &Path) -> String {
    format!(
        "{} of {variable} is left out: it leads to {}, by a link that commands can write or to a place of \
         keys. Have it lead to another directory",
        named.display(),
        real.display()
    )
}

/// True if a certificate file, or a file in a directory of certificates, contains a private key.
fn holds_key(path: &Path) -> bool {
    let found = |file: &Path| {
        config::secrets::holds_private_key(&sandbox::small_file(file).unwrap_or_default())
    };
    match std::fs::read_dir(path) {
        Ok(entries) => entries.flatten().take(MAX_FILES).any(|entry| found(&entry.path())),
        Err(_) => found(path),
    }
}

/// The user's program directories that this cage does not let commands execute from yet.
pub(crate) fn from_path(
    env: &[(String, String)],
    confinement: &Confinement,
    (forbidden, written): (&[PathBuf], &WrittenPaths),
    left_out: &mut Vec<String>,
) -> Vec<(String, FilePath)> {
    let path = env.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.as_str());
    let home = confinement.home.as_ref().map(FilePath::to_path);
    let person = nix::unistd::getuid().as_raw();
    let owner = home.as_ref().and_then(|home| home.metadata().ok()).map(|found| found.uid());
    let ground = config::PathPolicy {
        home: home.as_deref(),
        known: &sandbox::runnable_paths(confinement),
        kept: forbidden,
        writable: &written.own,
        elsewhere: &written.elsewhere,
        is_led_by: sandbox::is_led_by_commands,
        persons: [person, owner.unwrap_or(person)],
    };
    let path = path.unwrap_or_default();
    for named in std::env::split_paths(path) {
        let Ok(real) = named.canonicalize() else { continue };
        let is_granted = ground.known.iter().any(|known| real.starts_with(known));
        let is_key = forbidden.iter().any(|at| reaches(&real, at) && !reaches(&named, at));
        let is_led = sandbox::is_redirectable_in(&named, &written.elsewhere);
        if real != named && !is_granted && (is_key || is_led) {
            left_out.push(turned("PATH", &named, &real));
        }
    }
    let places = config::granted_path_dirs(path, &ground).into_iter();
    places.map(|place| ("PATH".to_owned(), FilePath::from(place))).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use config::CredentialPaths;

    #[test]
    fn a_variable_opens_tool_chains_and_certificates_and_no_key() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        let at = |name: &str| home.join(name);
        for made in ["jdk", ".ssh", ".local/share", "certs", "mixed", "project/jdk"] {
            std::fs::create_dir_all(at(made)).unwrap();
        }
        let (public, private) = ("-----BEGIN CERTIFICATE-----", "-----BEGIN PRIVATE KEY-----");
        for (to, link) in [
            ("certs", "project/led"),
            ("project/led", "by-project"),
            ("project/jdk", "in-project"),
            ("certs", "apart"),
        ] {
            std::os::unix::fs::symlink(at(to), at(link)).unwrap();
        }
        for (name, text) in [
            ("certs/a.pem", public),
            ("mixed/a.pem", public),
            ("mixed/b.pem", private),
            (".ssh/a.pem", public),
        ] {
            std::fs::write(at(name), text).unwrap();
        }
        let forbidden = CredentialPaths::of(&[], Some(&home)).places();
        for (name, value, is_granted) in [
            ("JAVA_HOME", "jdk", true),
            ("JAVA_HOME", "project/jdk", false),
            ("JAVA_HOME", "in-project", false),
            ("JAVA_HOME", "by-project", false),
            ("JAVA_HOME", "apart", true),
            ("PIP_CERT", "by-project/a.pem", false),
            ("PIP_CERT", "apart/a.pem", true),
            ("SSL_CERT_DIR", "project/../certs", false),
            ("JAVA_HOME", ".ssh", false),
            ("BUN_INSTALL", ".local", false),
            ("CARGO_HOME", ".cargo", true),
            ("PIP_CERT", "certs/a.pem", true),
            ("PIP_CERT", "mixed/b.pem", false),
            ("PIP_CERT", ".ssh/a.pem", false),
            ("SSL_CERT_DIR", "certs", true),
            ("SSL_CERT_DIR", "mixed", false),
            ("EDITOR", "jdk", false),
        ] {
            let env = [(name.to_owned(), at(value).display().to_string())];
            let (own, mut left) = (vec![at("project")], Vec::new());
            let written = WrittenPaths { own, ..WrittenPaths::default() };
            let found = from_variables(&env, &forbidden, &written, &mut left);
            assert_eq!(found.len(), usize::from(is_granted), "{name}={value}: {found:?}");
        }
        let both = format!("{}:{}", at("mixed").display(), at("certs").display());
        let (none, mut left) = (WrittenPaths::default(), Vec::new());
        let env = [("SSL_CERT_DIR".to_owned(), both)];
        let found = from_variables(&env, &forbidden, &none, &mut left);
        assert_eq!(found, [("SSL_CERT_DIR".to_owned(), FilePath::from(at("certs")))]);
    }
}
